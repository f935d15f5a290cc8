/* Intersections over unions against plain loops; scores that are NaN or equal; wrong labels.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/own_kernel.h"

#include "support/reference_counts.h"

enum { OFFSET = 3, IGNORED = 255 };

/* Scores with ties, every fifth label ignored if `has_ignore`. */
static struct own *trial(const struct ls_shape *shape, int axis, bool has_ignore)
{
    int64_t classes = shape->dim[axis];
    const struct ls_shape label_shape = {1, {ls_shape_size(shape) / classes}};
    struct own *own = own_new(&ls_kernel_mean_iou);
    struct ls_value *x = own_in(own, shape, 1, 1), *label = own_in(own, &label_shape, 2, 1);
    for (int64_t i = 0; i < ls_shape_size(shape); i++)
        own->plain[x->index][i] = floorf(own->plain[x->index][i] * 6);
    for (int64_t i = 0; i < label_shape.dim[0]; i++)
        own->plain[label->index][i] =
            has_ignore && i % 5 == 2 ? IGNORED
                                     : (float)ls_random_below(9, 0, (uint64_t)i, (uint32_t)classes);
    own->op.attr.mean_iou = (struct ls_mean_iou_attr){.axis = axis,
                                                      .has_ignore = has_ignore,
                                                      .ignore_label = IGNORED,
                                                      .classes = classes,
                                                      .metric_offset = OFFSET};
    return own;
}

static void check(const struct ls_shape *shape, int axis, bool has_ignore)
{
    struct own *own = trial(shape, axis, has_ignore);
    int classes = (int)shape->dim[axis], hits[16], taken[16], of[16];
    const struct reference_classes reference = {
        .outer = (int)ls_shape_count(shape, 0, axis),
        .classes = classes,
        .inner = (int)ls_shape_count(shape, axis + 1, shape->rank),
        .has_ignore = has_ignore,
        .ignore_label = IGNORED};
    own_run(own, &ls_layout_plain);
    double *x = own_doubles(own_plain(own, own->in[0]), ls_shape_size(shape));
    double *label = own_doubles(own_plain(own, own->in[1]), ls_shape_size(shape) / classes);
    reference_overlaps(&reference, x, label, hits, taken, of);
    for (int c = 0; c < classes; c++) {
        assert_true(own->partials[OFFSET + c] == hits[c]);
        assert_true(own->partials[OFFSET + classes + c] == taken[c]);
        assert_true(own->partials[OFFSET + 2 * classes + c] == of[c]);
    }
    assert_true(own->partials[OFFSET - 1] == 0 && own->partials[OFFSET + 3 * classes] == 0);
    own_free(own);
    free(x);
    free(label);
}

static void test_counts(void **state)
{
    (void)state;
    const struct ls_shape shapes[] = {{2, {200, 6}},        {4, {2, 5, 7, 9}}, {4, {1, 3, 23, 37}},
                                      {4, {2, 12, 16, 16}}, {2, {4, 1}},       {3, {6, 11, 4}}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int ignore = 0; ignore < 2; ignore++)
            check(&shapes[i], i == 5 ? 2 : 1, ignore != 0);
}

/* The first of equal scores is taken; none where a score is NaN, but the label counts. */
static void test_rules(void **state)
{
    (void)state;
    const struct ls_shape shape = {2, {6, 3}};
    const float x[18] = {1, 1, 0,   /**/ NAN, 5,         1,         /**/ 0, NAN, 2, /**/
                         7, 8, NAN, /**/ -1,  -INFINITY, -INFINITY, /**/ 2, 3,   3};
    const float label[6] = {0, 1, 2, 0, 0, 2};
    static const double expected[9] = {2, 0, 0, /**/ 2, 1, 0, /**/ 3, 1, 2};
    struct own *own = trial(&shape, 1, false);
    memcpy(own->plain[0], x, sizeof x);
    memcpy(own->plain[1], label, sizeof label);
    own_run(own, &ls_layout_plain);
    for (int i = 0; i < 9; i++)
        assert_true(own->partials[OFFSET + i] == expected[i]);
    own_free(own);
}

static void test_bad_labels(void **state)
{
    (void)state;
    static const float bad[] = {-1, 3, 0.25F, NAN, -1e30F, INFINITY};
    const struct ls_shape shape = {2, {5, 3}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct own *own = trial(&shape, 1, false);
        own->plain[1][2] = bad[i];
        own_run(own, &ls_layout_plain);
        assert_true(isnan(own->partials[OFFSET]));
        own_free(own);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_bad_labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
