/* YOLOv3's loss, and what YOLO's nets have found, against values of tools/reference/yolo.py, on
 * both devices. SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/op_makers.h"

enum { N = 2, A = 2, K = 3, ROWS = 3, COLUMNS = 4, TRUTHS = 4, KEEP = 6, ROW = 7 };

/* All anchors, in pixels; those of the bottom; and in positions. */
static const float anchors[] = {40, 30, 16, 24, 60, 12, 8, 90};
static const uint32_t mask[A] = {2, 1};
static const float positions[] = {1.25F, 0.9375F, 0.5F, 0.75F};

/* The first number of a row is that of its sample. */
static const float truths[N * TRUTHS][8] = {
    {0, 1, 0, 0.1F, 0.2F, 0.4F, 0.9F, 0},
    {0, 3, 0, 0.5F, 0.5F, 1, 0.75F, 0},
    {-1, 1, 0, 0, 0, 1, 1, 0},
    {0, 2, 0, 0.52F, 0.5F, 0.98F, 0.75F, 0},
    {1, 2, 0, 0, 0, 0.25F, 0.5F, 0},
    {1, -1, 0, 0.25F, 0.25F, 0.5F, 0.5F, 0},
    {1, 3, 0, 0.05F, 0.1F, 0.2F, 0.4F, 0},
    {1, 1, 0, 0.4F, 0.3F, 0.9F, 0.95F, 0},
};

static void put_planes(struct op_scene *scene, int64_t rows, int64_t columns)
{
    const struct ls_shape shape = shape_of(4, N, (int64_t)A * (5 + K), rows, columns);
    float *x = scene_in(scene, shape, -1, 1);
    for (int64_t i = 0; i < ls_shape_size(&shape); i++)
        x[i] = (float)(i * 37 % 101 - 50) / 25;
}

static const struct ls_device *device_of(int index)
{
    return index == 0 ? ls_device_default() : reference_device();
}

/* ---- The loss -------------------------------------------------------------------------------- */

static void fill_loss(struct op_scene *scene, float also, bool logistic)
{
    scene->op.kind = LS_OP_YOLO_LOSS;
    scene->op.attr.yolo = (struct ls_yolo_attr){
        .loss = {.normalization = LS_NORM_BATCH_SIZE, .normalizer = -1, .loss_weight = 1},
        .anchors = A,
        .all = 4,
        .mask = mask,
        .biases = anchors,
        .step = 16,
        .classes = K,
        .objects = TRUTHS,
        .object = logistic ? 5 : 1,
        .kind = 2,
        .place = 1.5F,
        .threshold = 0.3F,
        .also = also,
        .smoothing = 0.1F,
        .logistic = logistic};
    put_planes(scene, ROWS, COLUMNS);
    float *rows = scene_in(scene, shape_of(3, N, TRUTHS, 8, 0), 0, 1);
    memcpy(rows, truths, sizeof truths);
    scene_out(scene, scene->in[0]->shape);
}

static void losses_are_those_of_the_formulas(void **state)
{
    (void)state;
    static const struct {
        float also;
        bool logistic;
        double loss, sum, weighted;
        int64_t nonzero;
    } cases[] = {{1, false, 75.793607, 26.9692707, 9.7112588, 65},
                 {0.25F, false, 160.787939, 30.0291216, -21.8584077, 87},
                 {0.25F, true, 235.84527, 12.4708648, -41.3684769, 87}};
    for (size_t c = 0; c < 2 * sizeof cases / sizeof *cases; c++) {
        struct op_scene scene = {.round = 1, .normalizers = {1}};
        struct op_result result;
        double sum = 0, weighted = 0;
        int64_t nonzero = 0;
        fill_loss(&scene, cases[c / 2].also, cases[c / 2].logistic);
        scene_run(&scene, device_of(c % 2), &ls_layout_plain, &result);
        for (int64_t i = 0; i < ls_shape_size(&scene.out[0]->shape); i++) {
            sum += (double)result.out[0][i];
            weighted += (double)result.out[0][i] * (double)(i % 17 - 8);
            nonzero += result.out[0][i] != 0;
        }
        assert_true(result.record[1] == N);
        assert_int_equal(nonzero, cases[c / 2].nonzero);
        if (fabs(result.record[0] - cases[c / 2].loss) > 1e-4 ||
            fabs(sum - cases[c / 2].sum) > 1e-5 || fabs(weighted - cases[c / 2].weighted) > 1e-4)
            fail_msg("case %zu: %.9g, %.9g, %.9g", c, result.record[0], sum, weighted);
        result_free(&result);
        scene_free(&scene);
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
        fill_loss(&scene, 1, false);
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
        fill_loss(&scene, 0.1F, true);
        float *row = scene.plain[scene.in[1]->index];
        row[3] = row[4] = places[i] - 0.25F;
        row[5] = row[6] = places[i] + 0.25F;
        scene_run(&scene, ls_device_default(), &ls_layout_plain, &result);
        assert_true(isfinite(result.record[0]));
        result_free(&result);
        scene_free(&scene);
    }
}

/* ---- What was found -------------------------------------------------------------------------- */

static void fill_output(struct op_scene *scene, bool softmax, float threshold)
{
    static const uint32_t both[2 * A] = {2, 0, 3, 1}, steps[] = {16, 32};
    scene->op.kind = LS_OP_YOLO_OUTPUT;
    scene->op.attr.yolo_output =
        (struct ls_yolo_output_attr){.anchors = A,
                                     .mask = softmax ? NULL : both,
                                     .biases = softmax ? positions : anchors,
                                     .steps = softmax ? NULL : steps,
                                     .classes = K,
                                     .keep = KEEP,
                                     .softmax = softmax,
                                     .threshold = threshold,
                                     .nms_threshold = 0.45F};
    put_planes(scene, ROWS, COLUMNS);
    put_planes(scene, 2, 2);
    scene_out(scene, shape_of(3, N, KEEP, ROW, 0));
}

static void rows_are_those_of_the_formulas(void **state)
{
    (void)state;
    static const struct {
        float first[KEEP]; /* classes */
        double sum, weighted;
    } cases[2][N] = {{{{2, 2, 2, 2, 2, 2}, 27.0193909, 65.5440997},
                      {{2, 2, 2, 2, 2, 3}, 27.9377395, 68.8077953}},
                     {{{2, 2, 3, 3, 3, 2}, 30.6864808, 72.7142378},
                      {{3, 3, 2, 2, 2, 3}, 30.4761419, 70.7676196}}};
    for (int c = 0; c < 4; c++) {
        struct op_scene scene = {.round = 1, .normalizers = {1}};
        struct op_result result;
        fill_output(&scene, c < 2, 0.25F);
        scene_run(&scene, device_of(c % 2), &ls_layout_plain, &result);
        for (int n = 0; n < N; n++) {
            double sum = 0, weighted = 0;
            for (int i = 0; i < KEEP; i++) {
                const float *row = result.out[0] + (n * KEEP + i) * ROW;
                assert_true(row[0] == result.out[0][0] + (float)n);
                assert_true(row[1] == cases[c / 2][n].first[i]);
                for (int k = 1; k < ROW; k++) {
                    sum += (double)row[k];
                    weighted += i * (double)row[k];
                }
            }
            if (fabs(sum - cases[c / 2][n].sum) > 1e-5 ||
                fabs(weighted - cases[c / 2][n].weighted) > 1e-5)
                fail_msg("case %d, sample %d: %.9g, %.9g", c, n, sum, weighted);
        }
        result_free(&result);
        scene_free(&scene);
    }
}

static void rows_that_are_left_over_hold_minus_one(void **state)
{
    (void)state;
    for (int softmax = 0; softmax < 2; softmax++) {
        struct op_scene scene = {.round = 1, .normalizers = {1}};
        struct op_result result;
        fill_output(&scene, softmax, 0.99F);
        scene.plain[scene.in[0]->index][0] = NAN;
        scene_run(&scene, ls_device_default(), &ls_layout_plain, &result);
        for (int i = 0; i < N * KEEP * ROW; i++)
            assert_true(result.out[0][i] == -1);
        result_free(&result);
        scene_free(&scene);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_are_those_of_the_formulas),
        cmocka_unit_test(a_box_of_no_class_makes_the_loss_nan),
        cmocka_unit_test(boxes_at_the_border_have_a_position),
        cmocka_unit_test(rows_are_those_of_the_formulas),
        cmocka_unit_test(rows_that_are_left_over_hold_minus_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
