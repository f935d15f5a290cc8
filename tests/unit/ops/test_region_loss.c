/* YOLO's loss of regions against values of tools/reference/region.py, on both devices.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/op_makers.h"

enum { N = 2, A = 2, K = 3, ROWS = 3, COLUMNS = 4, TRUTHS = 3 };

static const float anchors[2 * A] = {1, 1.5F, 2.5F, 0.75F};

/* The first number of a row is that of its sample. */
static const float truths[N * TRUTHS][8] = {
    {0, 1, 0, 0.1F, 0.2F, 0.4F, 0.9F, 0},
    {0, 3, 0, 0.5F, 0.5F, 1, 0.75F, 0},
    {-1, 1, 0, 0, 0, 1, 1, 0},
    {1, 2, 0, 0, 0, 0.25F, 0.5F, 0},
    {1, -1, 0, 0.25F, 0.25F, 0.5F, 0.5F, 0},
    {1, 3, 0, 0.05F, 0.1F, 0.2F, 0.4F, 0},
};

struct expected {
    double loss, sum, weighted;
    int64_t nonzero;
};

static void fill(struct op_scene *scene, bool by_anchor, enum ls_region_score score)
{
    scene->op.kind = LS_OP_REGION_LOSS;
    scene->op.attr.region = (struct ls_region_attr){
        .loss = {.normalization = LS_NORM_BATCH_SIZE, .normalizer = -1, .loss_weight = 1},
        .score = score,
        .anchors = A,
        .classes = K,
        .objects = TRUTHS,
        .anchor_sizes = anchors,
        .by_anchor = by_anchor,
        .object = 5,
        .no_object = 0.5F,
        .kind = 2,
        .place = 1.5F,
        .threshold = 0.3F};
    const struct ls_shape shape = shape_of(4, N, (int64_t)A * (5 + K), ROWS, COLUMNS);
    float *x = scene_in(scene, shape, -1, 1);
    for (int64_t i = 0; i < ls_shape_size(&shape); i++)
        x[i] = (float)(i * 37 % 101 - 50) / 25;
    float *rows = scene_in(scene, shape_of(3, N, TRUTHS, 8, 0), 0, 1);
    memcpy(rows, truths, sizeof truths);
    scene_out(scene, shape);
}

static void check(const struct ls_device *device, bool by_anchor, enum ls_region_score score,
                  const struct expected *expected)
{
    struct op_scene scene = {.round = 1, .normalizers = {1}};
    struct op_result result;
    struct expected got = {0};
    fill(&scene, by_anchor, score);
    scene_run(&scene, device, &ls_layout_plain, &result);
    for (int64_t i = 0; i < ls_shape_size(&scene.out[0]->shape); i++) {
        got.sum += (double)result.out[0][i];
        got.weighted += (double)result.out[0][i] * (double)(i % 17 - 8);
        got.nonzero += result.out[0][i] != 0;
    }
    got.loss = result.record[0];
    assert_true(result.record[1] == N);
    assert_int_equal(got.nonzero, expected->nonzero);
    if (fabs(got.loss - expected->loss) > 1e-4 || fabs(got.sum - expected->sum) > 1e-5 ||
        fabs(got.weighted - expected->weighted) > 1e-4)
        fail_msg("loss %.9g, sums %.9g and %.9g, not %.9g, %.9g, %.9g", got.loss, got.sum,
                 got.weighted, expected->loss, expected->sum, expected->weighted);
    result_free(&result);
    scene_free(&scene);
}

static void values_are_those_of_the_formulas(void **state)
{
    (void)state;
    static const struct expected by_anchor = {19.5370696, 1.55317989, 3.75857135, 67};
    static const struct expected by_prediction = {18.9111238, 3.26977528, -34.0384629, 68};
    static const struct expected to_be_one = {85.5499633, 0.361850883, -13.3180924, 67};
    static const struct expected overlap = {32.8701159, 2.95440086, -1.09869569, 67};
    const struct ls_device *const devices[] = {ls_device_default(), reference_device()};
    for (int d = 0; d < 2; d++) {
        check(devices[d], true, LS_REGION_SCORE_FOCUSED, &by_anchor);
        check(devices[d], false, LS_REGION_SCORE_FOCUSED, &by_prediction);
        check(devices[d], true, LS_REGION_SCORE_ONE, &to_be_one);
        check(devices[d], true, LS_REGION_SCORE_OVERLAP, &overlap);
    }
}

/* Classes begin at 1. */
static void a_box_of_no_class_makes_the_loss_nan(void **state)
{
    (void)state;
    static const float classes[] = {0, K + 1, 1.5F, NAN};
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        struct op_scene scene = {.round = 1, .normalizers = {1}};
        struct op_result result;
        fill(&scene, true, LS_REGION_SCORE_FOCUSED);
        scene.plain[scene.in[1]->index][1] = classes[i];
        scene_run(&scene, ls_device_default(), &ls_layout_plain, &result);
        /* NaN is not at least 0, so that its row is empty. */
        assert_true(isnan(classes[i]) ? isfinite(result.record[0]) : isnan(result.record[0]));
        result_free(&result);
        scene_free(&scene);
    }
}

/* Boxes on and beyond the border belong to the last position. */
static void boxes_at_the_border_have_a_position(void **state)
{
    (void)state;
    static const float places[] = {1, 7, 1e30F, -3};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct op_scene scene = {.round = 1, .normalizers = {1}};
        struct op_result result;
        fill(&scene, true, LS_REGION_SCORE_FOCUSED);
        float *row = scene.plain[scene.in[1]->index];
        row[3] = row[4] = places[i] - 0.25F;
        row[5] = row[6] = places[i] + 0.25F;
        scene_run(&scene, ls_device_default(), &ls_layout_plain, &result);
        assert_true(isfinite(result.record[0]));
        result_free(&result);
        scene_free(&scene);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_those_of_the_formulas),
        cmocka_unit_test(a_box_of_no_class_makes_the_loss_nan),
        cmocka_unit_test(boxes_at_the_border_have_a_position),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
