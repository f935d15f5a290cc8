/* The hardest regions of each picture, by hand: equal losses, losses that are no number, numbers
 * that no picture has; on both devices.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/op_makers.h"

enum { ROWS = 10, WEIGHTS = 2 };

static void check(const float *pictures, const float *losses, int64_t most, const char *wanted)
{
    for (int device = 0; device < 2; device++) {
        struct op_scene scene = {.round = 1, .normalizers = {1}};
        struct op_result result;
        scene.op.kind = LS_OP_HARDEST_REGIONS;
        scene.op.attr.hardest = (struct ls_hardest_attr){.most = most, .ignore_label = -7};
        float *rois = scene_in(&scene, (struct ls_shape){2, {ROWS, 5}}, 0, 9);
        float *loss = scene_in(&scene, (struct ls_shape){2, {ROWS, 1}}, 0, 1);
        float *label = scene_in(&scene, (struct ls_shape){1, {ROWS}}, 0, 1);
        float *weight = scene_in(&scene, (struct ls_shape){2, {ROWS, WEIGHTS}}, 1, 2);
        for (int i = 0; i < ROWS; i++) {
            rois[i * 5] = pictures[i];
            loss[i] = losses[i];
            label[i] = (float)(i + 1);
            for (int k = 0; k < WEIGHTS; k++)
                weight[i * WEIGHTS + k] = (float)(1 + i + k);
        }
        scene_out(&scene, (struct ls_shape){1, {ROWS}});
        scene_out(&scene, (struct ls_shape){2, {ROWS, WEIGHTS}});
        scene_run(&scene, device == 0 ? ls_device_default() : reference_device(), &ls_layout_plain,
                  &result);
        for (int i = 0; i < ROWS; i++) {
            const bool chosen = wanted[i] == 'x';
            if (result.out[0][i] != (chosen ? (float)(i + 1) : -7))
                fail_msg("%s: the label of row %d is %g", wanted, i, (double)result.out[0][i]);
            for (int k = 0; k < WEIGHTS; k++)
                assert_true(result.out[1][i * WEIGHTS + k] == (chosen ? (float)(1 + i + k) : 0));
        }
        result_free(&result);
        scene_free(&scene);
    }
}

static const float one_picture[ROWS];
static const float two_pictures[ROWS] = {0, 1, 0, 1, 0, 1, 0, 1, 0, 1};

static void the_largest_losses_are_chosen(void **state)
{
    (void)state;
    static const float losses[ROWS] = {3, 9, 1, 8, 5, 7, 4, 6, 2, 0.5F};
    check(one_picture, losses, 1, ".x........");
    check(one_picture, losses, 4, ".x.x.x.x..");
    check(two_pictures, losses, 2, ".x.xx.x...");
    check(two_pictures, losses, 5, "xxxxxxxxxx");
    check(one_picture, losses, UINT32_MAX, "xxxxxxxxxx");
}

/* What is equally large is chosen from the first row on. */
static void equal_losses_come_in_order(void **state)
{
    (void)state;
    static const float equal[ROWS], some[ROWS] = {0, 2, 1, -0.0F, 2, 1, 1, 2, 1, 0};
    check(one_picture, equal, 3, "xxx.......");
    check(two_pictures, equal, 3, "xxxxxx....");
    check(one_picture, some, 5, ".xx.xx.x..");
    check(one_picture, some, 8, "xxx.xxxxx.");
}

static void what_is_no_number_comes_first(void **state)
{
    (void)state;
    static const float losses[ROWS] = {1, 2, 3, NAN, INFINITY, 6, 7, -INFINITY, 9, NAN};
    check(one_picture, losses, 1, "...x......");
    check(one_picture, losses, 3, "...xx....x");
    check(one_picture, losses, 9, "xxxxxxx.xx");
}

static void regions_of_no_picture_are_left_out(void **state)
{
    (void)state;
    static const float pictures[ROWS] = {0,    -1,   NAN,   INFINITY, -INFINITY,
                                         2e9F, 3e9F, 0.75F, 1,        2e9F};
    static const float losses[ROWS] = {5, 9, 9, 9, 9, 1, 9, 4, 0, 0};
    check(pictures, losses, 1, "x....x..x.");
    check(pictures, losses, 2, "x....x.xxx");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_losses_are_chosen),
        cmocka_unit_test(equal_losses_come_in_order),
        cmocka_unit_test(what_is_no_number_comes_first),
        cmocka_unit_test(regions_of_no_picture_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
