/* Regions that a network proposes against values of tools/reference/proposal.py, on both devices.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/op_makers.h"

enum { N = 2, RATIOS = 2, SCALES = 2, A = RATIOS * SCALES, ROWS = 4, COLUMNS = 5, INFO = 4 };

static const float ratios[RATIOS] = {0.5F, 1.5F}, scales[SCALES] = {1, 2.5F};
static const float info[N * INFO] = {40, 50, 0.5F, 0.75F, 30, 36, 1, 0.25F};

static void put(struct op_scene *scene, int64_t each, int64_t step, float scale)
{
    const struct ls_shape shape = shape_of(4, N, each * A, ROWS, COLUMNS);
    float *x = scene_in(scene, shape, -1, 1);
    for (int64_t i = 0; i < ls_shape_size(&shape); i++)
        x[i] = (float)(i * step % 101 - 50) / scale;
}

static void fill(struct op_scene *scene, uint32_t least, int64_t before, int64_t regions,
                 float overlap)
{
    scene->op.kind = LS_OP_PROPOSAL;
    scene->op.attr.proposal = (struct ls_proposal_attr){.ratio = ratios,
                                                        .scale = scales,
                                                        .ratios = RATIOS,
                                                        .scales = SCALES,
                                                        .info = INFO,
                                                        .before = before,
                                                        .regions = regions,
                                                        .base = 16,
                                                        .stride = 8,
                                                        .least = least,
                                                        .overlap = overlap};
    put(scene, 2, 37, 50);
    put(scene, 4, 29, 60);
    float *numbers = scene_in(scene, (struct ls_shape){2, {N, INFO}}, 0, 1);
    memcpy(numbers, info, sizeof info);
    scene_out(scene, (struct ls_shape){2, {N * regions, 5}});
    scene_out(scene, (struct ls_shape){2, {N * regions, 1}});
}

static void regions_are_those_of_the_formulas(void **state)
{
    (void)state;
    static const struct {
        uint32_t least;
        int64_t before, regions;
        float overlap;
        struct {
            int64_t count;
            double sum, weighted, scores;
        } of[N];
    } cases[] = {
        {16,
         6000,
         10,
         0.5F,
         {{10, 933.242507, 11953.7751, 7.8}, {10, 747.978632, 9925.30697, 4.64}}},
        {20, 25, 12, 0.3F, {{8, 699.305349, 7092.77883, 4.64}, {5, 381.627151, 2069.6843, 1.18}}},
    };
    for (size_t c = 0; c < 2 * sizeof cases / sizeof *cases; c++) {
        struct op_scene scene = {.round = 1, .normalizers = {1}};
        struct op_result result;
        const int64_t regions = cases[c / 2].regions;
        fill(&scene, cases[c / 2].least, cases[c / 2].before, regions, cases[c / 2].overlap);
        scene_run(&scene, c % 2 == 0 ? ls_device_default() : reference_device(), &ls_layout_plain,
                  &result);
        for (int n = 0; n < N; n++) {
            double sum = 0, weighted = 0, scores = 0;
            int64_t count = 0;
            for (int64_t i = 0; i < regions; i++) {
                const float *row = result.out[0] + (n * regions + i) * 5;
                assert_true(row[0] == (float)n);
                for (int k = 1; k < 5; k++) {
                    sum += (double)row[k];
                    weighted += (double)(i * k) * (double)row[k];
                }
                scores += (double)result.out[1][n * regions + i];
                count += row[3] > row[1];
            }
            assert_int_equal(count, cases[c / 2].of[n].count);
            if (fabs(sum - cases[c / 2].of[n].sum) > 1e-3 ||
                fabs(weighted - cases[c / 2].of[n].weighted) > 1e-2 ||
                fabs(scores - cases[c / 2].of[n].scores) > 1e-5)
                fail_msg("case %zu, picture %d: %.9g, %.9g, %.9g", c, n, sum, weighted, scores);
        }
        result_free(&result);
        scene_free(&scene);
    }
}

/* Numbers that are not finite propose nothing, and nothing that is not finite. */
static void what_is_not_finite_is_left_out(void **state)
{
    (void)state;
    for (int input = 0; input < 2; input++) {
        struct op_scene scene = {.round = 1, .normalizers = {1}};
        struct op_result result;
        fill(&scene, 16, 100, 100, 0.9F);
        float *x = scene.plain[scene.in[input]->index];
        for (int64_t i = 0; i < ls_shape_size(&scene.in[input]->shape); i++)
            x[i] = NAN;
        scene_run(&scene, ls_device_default(), &ls_layout_plain, &result);
        for (int64_t i = 0; i < (int64_t)N * 100 * 5; i++)
            assert_true(result.out[0][i] == (i % 5 == 0 ? (float)(i / 500) : 0));
        for (int64_t i = 0; i < (int64_t)N * 100; i++)
            assert_true(result.out[1][i] == 0);
        result_free(&result);
        scene_free(&scene);
    }
}

/* Of boxes with equal scores the first position comes first. */
static void equal_scores_come_in_order(void **state)
{
    (void)state;
    struct op_scene scene = {.round = 1, .normalizers = {1}};
    struct op_result result;
    fill(&scene, 1, 1, 1, 0.5F);
    for (int input = 0; input < 2; input++)
        memset(scene.plain[scene.in[input]->index], 0,
               (size_t)ls_shape_size(&scene.in[input]->shape) * sizeof(float));
    scene_run(&scene, ls_device_default(), &ls_layout_plain, &result);
    /* The anchor of ratio 0.5 is 23 x 12 around 7.5, 7.5, of which a part is in the picture. */
    static const float wanted[] = {0, 0, 2, 19.5F, 14};
    for (int i = 0; i < 5; i++)
        if (result.out[0][i] != wanted[i])
            fail_msg("number %d is %g, not %g", i, (double)result.out[0][i], (double)wanted[i]);
    result_free(&result);
    scene_free(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(regions_are_those_of_the_formulas),
        cmocka_unit_test(what_is_not_finite_is_left_out),
        cmocka_unit_test(equal_scores_come_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
