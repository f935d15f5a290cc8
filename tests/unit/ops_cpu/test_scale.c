/* Factors and biases along axes, and their gradients, against the reference device; every layout
 * and instruction set. SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/own_kernel.h"

struct scale_case {
    const char *name;
    struct ls_shape shape;
    int axis, axes;
};

static const struct scale_case cases[] = {
    {"channels", {4, {3, 20, 7, 9}}, 1, 1},
    {"channels that fill their blocks", {4, {2, 32, 6, 6}}, 1, 1},
    {"one channel", {4, {3, 1, 5, 7}}, 1, 1},
    {"one position", {4, {5, 17, 1, 1}}, 1, 1},
    {"many positions", {4, {2, 5, 40, 31}}, 1, 1},
    {"three spatial axes", {5, {2, 9, 3, 4, 5}}, 1, 1},
    {"rows", {2, {6, 37}}, 1, 1},
    {"one row", {2, {1, 5}}, 1, 1},
    {"one number", {4, {2, 19, 3, 5}}, 0, 0},
    {"one number for rows", {2, {3, 5}}, 0, 0},
    {"one number for one axis", {1, {23}}, 0, 0},
    {"channels of each sample", {4, {3, 20, 7, 9}}, 0, 2},
    {"samples", {4, {3, 20, 7, 9}}, 0, 1},
    {"samples of one axis", {1, {9}}, 0, 1},
    {"samples of rows", {2, {9, 18}}, 0, 1},
    {"elements of rows", {2, {9, 18}}, 0, 2},
    {"channels and rows", {4, {3, 20, 7, 9}}, 1, 2},
    {"all of a sample", {4, {3, 20, 7, 9}}, 1, 3},
    {"everything", {4, {2, 4, 5, 3}}, 0, 4},
    {"rows of a picture", {4, {3, 20, 7, 9}}, 2, 1},
    {"columns of a picture", {4, {3, 20, 7, 9}}, 3, 1},
};
enum { CASES = sizeof cases / sizeof *cases };

static struct ls_shape factor_shape(const struct scale_case *c)
{
    struct ls_shape shape = {.rank = c->axes};
    for (int i = 0; i < c->axes; i++)
        shape.dim[i] = c->shape.dim[c->axis + i];
    return shape;
}

enum { X = 1, DY, FACTOR, BIAS }; /* salts; x is in [-2, 2), the others in [-1, 1) */

static void optional_in(struct own *own, const struct ls_shape *shape, uint64_t salt, bool there)
{
    if (there)
        own_in(own, shape, salt, 1);
    else
        own->op.inputs++;
}

static void check_forward(const struct scale_case *c, bool with_factor, bool with_bias)
{
    const struct ls_shape factor = factor_shape(c);
    float *kept = NULL;
    for (int layout = 0; layout < OWN_LAYOUTS; layout++) {
        struct own *own = own_new(&ls_kernel_scale);
        own_in(own, &c->shape, X, 2);
        optional_in(own, &factor, FACTOR, with_factor);
        optional_in(own, &factor, BIAS, with_bias);
        struct ls_value *y = own_out(own, &c->shape);
        own->op.attr.scale = (struct ls_scale_attr){c->axis, c->axes};
        own_run(own, own_layouts[layout]);
        own_near_reference(own, 2e-7);
        own_keep_or_compare(&kept, own, y);
        bool stays = c->axis + c->axes <= 2;
        assert_ptr_equal(y->layout, stays ? own_layouts[layout] : &ls_layout_plain);
        own_free(own);
    }
    free(kept);
}

/* The gradient of x lies as x does, wherever that of y lies. */
static void check_data(const struct scale_case *c)
{
    const struct ls_shape factor = factor_shape(c);
    for (int layout = 0; layout < OWN_LAYOUTS; layout++) {
        struct own *own = own_new(&ls_kernel_scale);
        struct ls_value x = {.shape = c->shape, .layout = own_layouts[layout]};
        own_in(own, &c->shape, DY, 1);
        own_in(own, &factor, FACTOR, 1);
        own->op.inputs = 3;
        own->op.backward = true;
        struct ls_value *dx = own_out(own, &c->shape);
        dx->gradient_of = &x;
        own->op.attr.scale = (struct ls_scale_attr){c->axis, c->axes};
        own_run(own, own_layouts[(layout + 1) % OWN_LAYOUTS]);
        own_near_reference(own, 2e-7);
        if (c->axis + c->axes <= 2)
            assert_ptr_equal(dx->layout, x.layout);
        own_free(own);
    }
}

static void check_sums(const struct scale_case *c, bool with_factor, bool with_bias)
{
    const struct ls_shape factor = factor_shape(c);
    for (int layout = 0; layout < OWN_LAYOUTS; layout++) {
        struct own *own = own_new(&ls_kernel_scale_sums);
        own_in(own, &c->shape, DY, 1);
        if (with_factor)
            own_in(own, &c->shape, X, 2);
        own->op.inputs = 2;
        if (with_factor)
            own_out(own, &factor);
        own->op.outputs = 1;
        if (with_bias)
            own_out(own, &factor);
        own->op.outputs = 2;
        own->op.backward = true;
        own->op.attr.scale = (struct ls_scale_attr){c->axis, c->axes};
        own_run(own, own_layouts[layout]);
        /* Summed in double and rounded once. */
        own_near_reference(own, 1e-7);
        own_free(own);
    }
}

static void test_forward(void **state)
{
    (void)state;
    for (int i = 0; i < 3 * CASES; i++) {
        const struct scale_case *c = &cases[i / 3];
        check_forward(c, i % 3 != 1, i % 3 != 0);
    }
}

static void test_backward(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        check_data(&cases[i]);
        check_sums(&cases[i], true, true);
        check_sums(&cases[i], true, false);
        check_sums(&cases[i], false, true);
    }
}

/* Multiplying by an absent factor and adding an absent bias change no bit, not even of -0. */
static void test_zeros(void **state)
{
    (void)state;
    static const float numbers[] = {-0.0F, 0.0F, INFINITY, -3.5F};
    const struct ls_shape shape = {4, {1, 1, 2, 2}}, one = {1, {1}};
    for (int layout = 0; layout < OWN_LAYOUTS; layout++) {
        struct own *own = own_new(&ls_kernel_scale);
        struct ls_value *x = own_in(own, &shape, X, 1);
        struct ls_value *factor = own_in(own, &one, FACTOR, 1);
        own->op.inputs = 3;
        struct ls_value *y = own_out(own, &shape);
        own->op.attr.scale = (struct ls_scale_attr){1, 1};
        memcpy(own->plain[x->index], numbers, sizeof numbers);
        own->plain[factor->index][0] = 1;
        own_run(own, own_layouts[layout]);
        assert_memory_equal(own->plain[y->index], numbers, sizeof numbers);
        own_free(own);
    }
}

/* Sums that fp32 would lose: 4096 times 1 beside 2^26. */
static void test_accuracy(void **state)
{
    (void)state;
    const struct ls_shape shape = {4, {4, 1, 32, 33}}, one = {1, {1}};
    for (int layout = 0; layout < OWN_LAYOUTS; layout++) {
        struct own *own = own_new(&ls_kernel_scale_sums);
        struct ls_value *dy = own_in(own, &shape, DY, 1), *x = own_in(own, &shape, X, 1);
        for (int i = 0; i < 4 * 32 * 33; i++) {
            own->plain[dy->index][i] = i == 0 ? 0x1p26F : i == 4223 ? -0x1p26F : 1;
            own->plain[x->index][i] = 1;
        }
        struct ls_value *dfactor = own_out(own, &one), *dbias = own_out(own, &one);
        own->op.attr.scale = (struct ls_scale_attr){1, 1};
        own_run(own, own_layouts[layout]);
        assert_true(own->plain[dfactor->index][0] == 4222);
        assert_true(own->plain[dbias->index][0] == 4222);
        own_free(own);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forward),
        cmocka_unit_test(test_backward),
        cmocka_unit_test(test_zeros),
        cmocka_unit_test(test_accuracy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
