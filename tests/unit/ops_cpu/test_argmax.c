/* ArgMax against a sort of all numbers, with ties and numbers that are none.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/own_kernel.h"

struct entry {
    float value;
    int64_t place;
};

/* Caffe's order of pairs (value, place), the largest first; NaNs before all numbers. */
static int by_size(const void *a, const void *b)
{
    const struct entry *first = a, *second = b;
    bool none[2] = {isnan(first->value), isnan(second->value)};
    if (none[0] != none[1])
        return none[0] ? -1 : 1;
    if (!none[0] && first->value != second->value)
        return first->value > second->value ? -1 : 1;
    return first->place > second->place ? -1 : 1;
}

static struct entry *sorted(const float *x, int64_t n, int64_t stride)
{
    struct entry *entries = malloc((size_t)n * sizeof *entries);
    assert_non_null(entries);
    for (int64_t i = 0; i < n; i++)
        entries[i] = (struct entry){x[i * stride], i};
    qsort(entries, (size_t)n, sizeof *entries, by_size);
    return entries;
}

static struct own *run_argmax(const struct ls_shape *shape, int axis, int64_t k, bool values,
                              bool ties)
{
    struct own *own = own_new(&ls_kernel_argmax);
    own->op.attr.argmax = (struct ls_argmax_attr){.axis = axis, .top_k = k, .values = values};
    const struct ls_value *x = own_in(own, shape, 9, 1);
    float *numbers = own->plain[x->index];
    for (int64_t i = 0; ties && i < ls_shape_size(shape); i++)
        numbers[i] = i % 13 == 5 ? NAN : i % 7 == 2 ? -0.0F : truncf(3 * numbers[i]);
    struct ls_shape top = *shape;
    if (axis >= 0)
        top.dim[axis] = k;
    else
        top = (struct ls_shape){3, {shape->dim[0], values ? 2 : 1, k}};
    own_out(own, &top);
    own_run(own, &ls_layout_plain);
    return own;
}

/* The same number, or both none. */
static bool same(float a, float b)
{
    return a == b || (isnan(a) && isnan(b));
}

static void check_rows(const struct ls_shape *shape, int64_t k, bool values, bool ties)
{
    struct own *own = run_argmax(shape, -1, k, values, ties);
    const float *x = own_plain(own, own->in[0]), *y = own_plain(own, own->out[0]);
    int64_t n = ls_shape_count(shape, 1, shape->rank), step = values ? 2 * k : k;
    for (int64_t r = 0; r < shape->dim[0]; r++) {
        struct entry *entries = sorted(x + r * n, n, 1);
        for (int64_t i = 0; i < k; i++) {
            assert_true(y[r * step + i] == (float)entries[i].place);
            assert_true(!values || same(y[r * step + k + i], entries[i].value));
        }
        free(entries);
    }
    own_free(own);
}

static void check_axis(const struct ls_shape *shape, int axis, int64_t k, bool values, bool ties)
{
    struct own *own = run_argmax(shape, axis, k, values, ties);
    const float *x = own_plain(own, own->in[0]), *y = own_plain(own, own->out[0]);
    int64_t n = shape->dim[axis], inner = ls_shape_count(shape, axis + 1, shape->rank);
    for (int64_t o = 0; o < ls_shape_size(shape) / n; o++) {
        int64_t from = o / inner * n * inner + o % inner, to = o / inner * k * inner + o % inner;
        struct entry *entries = sorted(x + from, n, inner);
        for (int64_t i = 0; i < k; i++) {
            float wanted = values ? entries[i].value : (float)entries[i].place;
            assert_true(same(y[to + i * inner], wanted));
        }
        free(entries);
    }
    own_free(own);
}

static void test_all(void **state)
{
    (void)state;
    const struct ls_shape shape = {4, {2, 11, 3, 4}};
    for (int code = 0; code < 4; code++) {
        bool values = (code & 1) != 0, ties = (code & 2) != 0;
        const int64_t counts[] = {1, 2, 5, 11, 60, 132};
        for (int c = 0; c < 6; c++)
            check_rows(&shape, counts[c], values, ties);
        for (int axis = 0; axis < 4; axis++)
            for (int64_t k = 1; k <= shape.dim[axis]; k++)
                check_axis(&shape, axis, k, values, ties);
    }
}

/* Of equal numbers the later one comes first. */
static void test_later_wins(void **state)
{
    (void)state;
    const struct ls_shape shape = {2, {1, 5}}, top = {3, {1, 1, 3}};
    struct own *own = own_new(&ls_kernel_argmax);
    own->op.attr.argmax = (struct ls_argmax_attr){.axis = -1, .top_k = 3};
    const struct ls_value *x = own_in(own, &shape, 1, 1);
    const float numbers[] = {4, 7, 4, 7, 1};
    memcpy(own->plain[x->index], numbers, sizeof numbers);
    const struct ls_value *y = own_out(own, &top);
    own_run(own, &ls_layout_plain);
    const float wanted[] = {3, 1, 2};
    assert_memory_equal(own_plain(own, y), wanted, sizeof wanted);
    own_free(own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all),
        cmocka_unit_test(test_later_wins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
