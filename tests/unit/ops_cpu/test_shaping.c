/* Views, joining, cutting and repeating against the reference device, and the layouts they keep.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/own_kernel.h"

static void a_view_is_plain_and_has_the_same_bytes(void **state)
{
    (void)state;
    const struct ls_shape from = {4, {2, 3, 4, 5}}, to = {2, {2, 60}};
    struct own *own = own_new(&ls_kernel_view);
    struct ls_value *x = own_in(own, &from, 1, 1), *y = own_out(own, &to);
    own_run(own, &ls_layout_blocked16); /* refused: a view is plain */
    assert_ptr_equal(x->layout, &ls_layout_plain);
    assert_memory_equal(own_plain(own, x), own_plain(own, y), 120 * sizeof(float));
    own_free(own);
}

/* Parts of lengths[0..count) along an axis, joined, and cut again. */
static void check_join(const struct ls_shape *like, int axis, const int64_t *lengths, int count,
                       const struct ls_layout *layout, const struct ls_layout *wanted)
{
    struct ls_shape whole = *like, part = *like;
    whole.dim[axis] = 0;
    for (int i = 0; i < count; i++)
        whole.dim[axis] += lengths[i];
    struct own *join = own_new(&ls_kernel_concat), *cut = own_new(&ls_kernel_slice);
    join->op.attr.axis = cut->op.attr.axis = axis;
    struct ls_value *source = own_in(cut, &whole, 5, 1);
    for (int i = 0; i < count; i++) {
        part.dim[axis] = lengths[i];
        own_in(join, &part, (uint64_t)i, 1);
        own_out(cut, &part);
    }
    struct ls_value *joined = own_out(join, &whole);
    own_run(join, layout);
    own_run(cut, layout);
    assert_ptr_equal(joined->layout, wanted);
    assert_ptr_equal(source->layout, wanted);
    for (int i = 0; i < count; i++) {
        assert_ptr_equal(join->in[i]->layout, wanted);
        assert_ptr_equal(cut->out[i]->layout, wanted);
    }
    own_same_as_reference(join);
    own_same_as_reference(cut);
    own_free(join);
    own_free(cut);
}

static void blocks_stay_where_channels_fill_them(void **state)
{
    (void)state;
    const struct ls_shape like = {4, {3, 0, 2, 5}};
    const int64_t odd[] = {1, 3, 20, 50}, even[] = {16, 32, 16}, last_odd[] = {32, 16, 7};
    const int64_t eights[] = {8, 24, 8};
    for (int l = 0; l < OWN_LAYOUTS; l++) {
        check_join(&like, 1, odd, 4, own_layouts[l], &ls_layout_plain);
        check_join(&like, 1, even, 3, own_layouts[l], own_layouts[l]);
        check_join(&like, 1, last_odd, 3, own_layouts[l], own_layouts[l]);
        check_join(&like, 1, odd, 1, own_layouts[l], own_layouts[l]);
    }
    check_join(&like, 1, eights, 3, &ls_layout_blocked8, &ls_layout_blocked8);
    check_join(&like, 1, eights, 3, &ls_layout_blocked16, &ls_layout_plain);
}

/* Which layout a join asks for where its inputs differ, and a gradient for that of its value. */
static void inputs_that_differ_are_asked_for_blocks(void **state)
{
    (void)state;
    const struct ls_shape half = {4, {2, 16, 3, 3}}, whole = {4, {2, 32, 3, 3}};
    struct own *join = own_new(&ls_kernel_concat);
    join->op.attr.axis = 1;
    own_in(join, &half, 1, 1);
    own_in(join, &half, 2, 1);
    struct ls_value *y = own_out(join, &whole);
    struct ls_op_layouts layouts = {.in = {&ls_layout_plain, &ls_layout_blocked16}};
    assert_int_equal(join->kernel->layouts(&join->op, &layouts, NULL), 0);
    assert_ptr_equal(layouts.in[0], &ls_layout_blocked16);
    assert_ptr_equal(layouts.out[0], &ls_layout_blocked16);
    const struct ls_value forward = {.shape = whole, .layout = &ls_layout_blocked8};
    y->gradient_of = &forward;
    join->op.backward = true;
    assert_int_equal(join->kernel->layouts(&join->op, &layouts, NULL), 0);
    assert_ptr_equal(layouts.in[0], &ls_layout_blocked8);
    assert_ptr_equal(layouts.in[1], &ls_layout_blocked8);
    assert_ptr_equal(layouts.out[0], &ls_layout_blocked8);
    own_free(join);
}

static void other_axes_are_joined_and_cut_in_plain_order(void **state)
{
    (void)state;
    const struct ls_shape like = {4, {2, 16, 3, 5}}, row = {1, {0}};
    const int64_t lengths[] = {4, 1, 2};
    for (int l = 0; l < OWN_LAYOUTS; l++) {
        check_join(&like, 0, lengths, 3, own_layouts[l], &ls_layout_plain);
        check_join(&like, 2, lengths, 3, own_layouts[l], &ls_layout_plain);
        check_join(&like, 3, lengths, 3, own_layouts[l], &ls_layout_plain);
        check_join(&row, 0, lengths, 3, own_layouts[l], &ls_layout_plain);
    }
}

/* ---- Tiles ----------------------------------------------------------------------------------- */

static struct ls_shape tiled(const struct ls_shape *shape, int axis, int64_t tiles)
{
    struct ls_shape result = *shape;
    result.dim[axis] *= tiles;
    return result;
}

static void check_tile(const struct ls_shape *once, int axis, int64_t tiles,
                       const struct ls_layout *layout, const struct ls_layout *wanted)
{
    const struct ls_shape whole = tiled(once, axis, tiles);
    struct own *own = own_new(&ls_kernel_tile);
    own->op.attr.tile = (struct ls_tile_attr){.axis = axis, .tiles = tiles};
    struct ls_value *x = own_in(own, once, 3, 1), *y = own_out(own, &whole);
    own_run(own, layout);
    assert_ptr_equal(x->layout, wanted);
    assert_ptr_equal(y->layout, wanted);
    own_same_as_reference(own);
    own_free(own);
}

/* The gradient is the sum over the copies, rounded once. */
static void check_tile_backward(const struct ls_shape *once, int axis, int64_t tiles,
                                const struct ls_layout *layout, const struct ls_layout *wanted)
{
    const struct ls_shape whole = tiled(once, axis, tiles);
    const struct ls_value forward = {.shape = *once, .layout = layout};
    struct own *own = own_new(&ls_kernel_tile_backward);
    own->op.attr.tile = (struct ls_tile_attr){.axis = axis, .tiles = tiles};
    own->op.backward = true;
    struct ls_value *dy = own_in(own, &whole, 4, 1), *dx = own_out(own, once);
    dx->gradient_of = &forward;
    own_run(own, layout);
    assert_ptr_equal(dy->layout, wanted);
    assert_ptr_equal(dx->layout, wanted);
    own_same_as_reference(own);
    own_free(own);
}

static void tiles_and_their_gradients_are_those_of_the_reference(void **state)
{
    (void)state;
    static const struct {
        struct ls_shape once;
        int axis;
        int64_t tiles;
        bool blocks; /* the blocks can stay */
    } cases[] = {
        {{4, {2, 16, 3, 5}}, 1, 3, true},   {{4, {2, 7, 3, 5}}, 1, 2, false},
        {{4, {2, 20, 3, 5}}, 2, 4, true},   {{4, {2, 20, 3, 5}}, 3, 2, true},
        {{4, {3, 16, 2, 2}}, 0, 2, false},  {{2, {3, 5}}, 1, 70, false},
        {{4, {2, 20, 30, 11}}, 2, 5, true}, {{1, {600}}, 0, 3, false},
        {{3, {2, 3, 4}}, 2, 1, true},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (int l = 0; l < OWN_LAYOUTS; l++) {
            const struct ls_layout *layout = own_layouts[l];
            const struct ls_layout *wanted = cases[c].blocks ? layout : &ls_layout_plain;
            check_tile(&cases[c].once, cases[c].axis, cases[c].tiles, layout, wanted);
            check_tile_backward(&cases[c].once, cases[c].axis, cases[c].tiles, layout, wanted);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_view_is_plain_and_has_the_same_bytes),
        cmocka_unit_test(blocks_stay_where_channels_fill_them),
        cmocka_unit_test(inputs_that_differ_are_asked_for_blocks),
        cmocka_unit_test(other_axes_are_joined_and_cut_in_plain_order),
        cmocka_unit_test(tiles_and_their_gradients_are_those_of_the_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
