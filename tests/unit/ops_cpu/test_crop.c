/* Cropping and its gradient, element by element: in every layout, along every axis but the first.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/own_kernel.h"

struct crop_case {
    int rank;
    int64_t whole[5], taken[5], offset[5];
};

static const struct crop_case cases[] = {
    {4, {2, 20, 9, 8}, {2, 20, 5, 4}, {0, 0, 2, 3}},
    {4, {2, 20, 9, 8}, {2, 20, 5, 8}, {0, 0, 4, 0}},
    {4, {2, 20, 9, 8}, {2, 20, 9, 3}, {0, 0, 0, 5}},
    {4, {3, 16, 6, 6}, {3, 16, 1, 1}, {0, 0, 5, 0}},
    {4, {3, 33, 6, 6}, {3, 17, 4, 4}, {0, 9, 1, 1}},
    {4, {3, 33, 6, 6}, {3, 32, 6, 6}, {0, 1, 0, 0}},
    {4, {2, 21, 5, 5}, {2, 21, 5, 5}, {0, 0, 0, 0}},
    {3, {4, 8, 9}, {4, 8, 4}, {0, 0, 1}},
    {2, {4, 20}, {4, 7}, {0, 3}},
    {5, {2, 9, 4, 5, 6}, {2, 9, 2, 5, 3}, {0, 0, 1, 0, 3}},
    {5, {2, 9, 4, 5, 6}, {2, 9, 4, 2, 6}, {0, 0, 0, 3, 0}},
};

/* Where element i of the part is in the whole. */
static int64_t place(const struct crop_case *c, int64_t i)
{
    int64_t result = 0, step = 1;
    for (int axis = c->rank - 1; axis >= 0; axis--) {
        result += (i % c->taken[axis] + c->offset[axis]) * step;
        i /= c->taken[axis];
        step *= c->whole[axis];
    }
    return result;
}

static struct own *make(const struct ls_kernel *kernel, const struct crop_case *c)
{
    struct ls_shape whole = own_shape(c->rank, c->whole), part = own_shape(c->rank, c->taken);
    bool backward = kernel->kind == LS_OP_CROP_BACKWARD;
    struct own *own = own_new(kernel);
    own_in(own, backward ? &part : &whole, 1, 1);
    own_out(own, backward ? &whole : &part);
    memcpy(own->op.attr.crop.offset, c->offset, sizeof c->offset);
    return own;
}

static void test_forward(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (int layout = 0; layout < OWN_LAYOUTS; layout++) {
            struct own *own = make(&ls_kernel_crop, &cases[k]);
            own_run(own, own_layouts[layout]);
            const float *x = own_plain(own, own->in[0]), *y = own_plain(own, own->out[0]);
            for (int64_t i = 0; i < ls_shape_size(&own->out[0]->shape); i++)
                if (y[i] != x[place(&cases[k], i)])
                    fail_msg("case %zu, %s: element %d is %g", k, own_layouts[layout]->name, (int)i,
                             (double)y[i]);
            own_free(own);
        }
}

static void test_backward(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (int layout = 0; layout < OWN_LAYOUTS; layout++) {
            struct own *own = make(&ls_kernel_crop_backward, &cases[k]);
            own_run(own, own_layouts[layout]);
            size_t count = (size_t)ls_shape_size(&own->out[0]->shape);
            float *expected = calloc(count, sizeof *expected);
            assert_non_null(expected);
            for (int64_t i = 0; i < ls_shape_size(&own->in[0]->shape); i++)
                expected[place(&cases[k], i)] = own_plain(own, own->in[0])[i];
            assert_memory_equal(own_plain(own, own->out[0]), expected, count * sizeof *expected);
            free(expected);
            own_free(own);
        }
}

/* Blocks stay where no channel is cut off, and only there. */
static void test_layouts(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct own *own = make(&ls_kernel_crop, &cases[k]);
        own_run(own, &ls_layout_blocked16);
        assert_ptr_equal(own->out[0]->layout, own->in[0]->layout);
        bool all = cases[k].whole[1] == cases[k].taken[1];
        assert_ptr_equal(own->out[0]->layout, all ? &ls_layout_blocked16 : &ls_layout_plain);
        own_free(own);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forward),
        cmocka_unit_test(test_backward),
        cmocka_unit_test(test_layouts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
