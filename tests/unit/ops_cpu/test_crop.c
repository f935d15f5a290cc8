/* Cropping and its gradient against the reference device: in every layout, along every axis but the
 * first.
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

static void every_element_ends_where_the_reference_has_it(void **state)
{
    (void)state;
    static const struct ls_kernel *const kernels[] = {&ls_kernel_crop, &ls_kernel_crop_backward};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (int i = 0; i < 2 * OWN_LAYOUTS; i++) {
            struct own *own = make(kernels[i % 2], &cases[k]);
            own_run(own, own_layouts[i / 2]);
            own_same_as_reference(own);
            own_free(own);
        }
}

/* Blocks stay where no channel is cut off, and only there. */
static void blocks_stay_where_no_channel_is_cut_off(void **state)
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
        cmocka_unit_test(every_element_ends_where_the_reference_has_it),
        cmocka_unit_test(blocks_stay_where_no_channel_is_cut_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
