/* Functions of one number against the reference device, in every layout and on every instruction
 * set; what is not finite, bounds, and constants. SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/own_kernel.h"

#include "ops/cpu/vector/activation.h"

static const struct ls_shape shapes[] = {
    {4, {2, 3, 5, 7}},     {4, {1, 20, 3, 9}}, {2, {5, 50}}, {1, {37}},
    {5, {1, 20, 2, 3, 4}}, {0, {0}},           {2, {3, 16}},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* x from [-range, range); where `positive`, scale x + shift is made larger than zero. */
struct function_case {
    const char *name;
    struct ls_activation_attr attr;
    float range;
    bool positive;
};

static const struct function_case cases[] = {
    {"elu", {.function = LS_ELU, .slope = 1}, 6, false},
    {"elu, another alpha", {.function = LS_ELU, .slope = 0.3F}, 6, false},
    {"elu, alpha 0", {.function = LS_ELU, .slope = 0}, 6, false},
    {"elu, negative alpha", {.function = LS_ELU, .slope = -0.7F}, 6, false},
    {"elu near 0", {.function = LS_ELU, .slope = 1}, 1e-4F, false},
    {"swish", {.function = LS_SWISH, .slope = 1}, 9, false},
    {"swish, another beta", {.function = LS_SWISH, .slope = -1.5F}, 9, false},
    {"swish, beta 0", {.function = LS_SWISH, .slope = 0}, 9, false},
    {"swish, large", {.function = LS_SWISH, .slope = 2}, 300, false},
    {"gelu", {.function = LS_GELU}, 6, false},
    {"gelu, large", {.function = LS_GELU}, 300, false},
    {"gelu near 0", {.function = LS_GELU}, 1e-4F, false},
    {"gelu by tanh", {.function = LS_GELU_TANH}, 6, false},
    {"gelu by tanh, large", {.function = LS_GELU_TANH}, 300, false},
    {"absolute", {.function = LS_ABSOLUTE}, 5, false},
    {"exp", {.function = LS_EXP, .scale = 1, .factor = 1}, 3, false},
    {"exp, scaled", {.function = LS_EXP, .scale = -0.7F, .factor = 2.5F}, 3, false},
    {"exp, constant", {.function = LS_EXP, .scale = 0, .factor = 2.5F}, 3, false},
    {"log", {.function = LS_LOG, .scale = 1, .factor = 1}, 5, true},
    {"log, scaled", {.function = LS_LOG, .scale = -2, .shift = 0.5F, .factor = 1.4F}, 5, true},
    {"power 1", {.function = LS_POWER, .power = 1, .scale = 0.5F, .shift = 2}, 3, false},
    {"power 2", {.function = LS_POWER, .power = 2, .scale = -0.5F, .shift = 1}, 3, false},
    {"power 3", {.function = LS_POWER, .power = 3, .scale = 0.5F, .shift = 0}, 3, false},
    {"power -1", {.function = LS_POWER, .power = -1, .scale = 1, .shift = 4}, 3, false},
    {"root", {.function = LS_POWER, .power = 0.5F, .scale = 2, .shift = 0.1F}, 3, true},
    {"power 2.7", {.function = LS_POWER, .power = 2.7F, .scale = 1, .shift = 0}, 3, true},
    {"power 0", {.function = LS_POWER, .power = 0, .scale = 1, .shift = 1}, 3, false},
    {"scale 0", {.function = LS_POWER, .power = 3, .scale = 0, .shift = -2}, 3, false},
    {"bnll", {.function = LS_BNLL}, 9, false},
    {"bnll, large", {.function = LS_BNLL}, 300, false},
    {"clip", {.function = LS_CLIP, .low = -1, .high = 2}, 4, false},
    {"clip above 0", {.function = LS_CLIP, .low = 1, .high = 1}, 4, false},
    {"threshold", {.function = LS_THRESHOLD, .low = 0.5F}, 2, false},
    {"threshold below 0", {.function = LS_THRESHOLD, .low = -0.5F}, 2, false},
};
enum { CASES = sizeof cases / sizeof *cases };

static struct ls_value *put_x(struct own *own, const struct ls_shape *shape,
                              const struct function_case *c)
{
    struct ls_value *x = own_in(own, shape, 1, c->range);
    for (int64_t i = 0; c->positive && i < ls_shape_size(shape); i++) {
        float *at = &own->plain[x->index][i];
        float inner = fabsf(c->attr.scale * *at + c->attr.shift) + 0.3F;
        *at = (inner - c->attr.shift) / c->attr.scale;
    }
    return x;
}

static void check_case(const struct function_case *c, const struct ls_shape *shape,
                       const struct ls_layout *layout)
{
    struct own *own = own_new(&ls_kernel_activation);
    const int64_t size = ls_shape_size(shape);
    own->op.attr.activation = c->attr;
    struct ls_value *x = put_x(own, shape, c), *y = own_out(own, shape);
    own_run(own, layout);
    assert_ptr_equal(y->layout, layout);
    own_near_reference(own, c->attr.function == LS_POWER ? 1e-6 : 4e-7);
    if (c->attr.function == LS_THRESHOLD) {
        own_free(own);
        return;
    }
    struct own *back = own_new(&ls_kernel_activation_backward);
    back->op.attr = own->op.attr;
    own_in(back, shape, 2, 1);
    struct ls_value *given = own_in(back, shape, 0, 0), *dx = own_out(back, shape);
    memcpy(back->plain[given->index], own->plain[(ls_activation_keeps_x(&c->attr) ? x : y)->index],
           (size_t)size * sizeof(float));
    own_run(back, layout);
    assert_ptr_equal(dx->layout, layout);
    own_near_reference(back, 1e-6);
    own_free(own);
    own_free(back);
}

static void test_functions(void **state)
{
    (void)state;
    for (int c = 0; c < CASES; c++)
        for (int s = 0; s < SHAPES; s++)
            for (int l = 0; l < OWN_LAYOUTS; l++)
                check_case(&cases[c], &shapes[s], own_layouts[l]);
}

/* f(x) or, for a dy of 1, f'(x), of one number. */
static float one(const struct ls_activation_attr *attr, bool backward, float given)
{
    const struct ls_shape shape = {1, {1}};
    struct own *own = own_new(backward ? &ls_kernel_activation_backward : &ls_kernel_activation);
    own->op.attr.activation = *attr;
    if (backward)
        own->plain[own_in(own, &shape, 1, 0)->index][0] = 1;
    own->plain[own_in(own, &shape, 1, 0)->index][0] = given;
    struct ls_value *out = own_out(own, &shape);
    own_run(own, &ls_layout_plain);
    float result = own_plain(own, out)[0];
    own_free(own);
    return result;
}

/* Whether f(x) is a NaN on every instruction set; its sign may be any. */
static bool is_nan(const struct ls_activation_attr *attr, float x)
{
    bool all = true;
    for (int isa = 0; isa < LS_ISAS; isa++) {
        float y = 0;
        if (!ls_cpu_isa_supported((enum ls_isa)isa))
            continue;
        assert_int_equal(ls_cpu_isa_select(ls_cpu_isa_name((enum ls_isa)isa), NULL), 0);
        ls_vector_activation()->forward(attr, &x, &y, 1);
        all &= isnan(y) != 0;
    }
    return all;
}

/* A NaN stays one, so that it is found; but for functions that do not look at x. */
static void test_not_finite(void **state)
{
    (void)state;
    for (int c = 0; c < CASES; c++) {
        const struct ls_activation_attr *attr = &cases[c].attr;
        bool constant = attr->function == LS_POWER && (attr->power == 0 || attr->scale == 0);
        assert_true(constant || is_nan(attr, NAN));
        assert_true(!constant || !is_nan(attr, NAN));
    }
    const struct ls_activation_attr exponential = {.function = LS_EXP, .scale = 1, .factor = 1};
    assert_true(isinf(one(&exponential, false, 100)));
    assert_true(one(&exponential, false, -200) == 0);
    const struct ls_activation_attr logarithm = {.function = LS_LOG, .scale = 1, .factor = 1};
    assert_true(is_nan(&logarithm, -1));
    assert_true(one(&logarithm, false, 0) == -INFINITY);
    const struct ls_activation_attr root = {.function = LS_POWER, .power = 0.5F, .scale = 1};
    assert_true(is_nan(&root, -1));
    assert_true(one(&root, false, 0) == 0);
    assert_true(isinf(one(&root, true, 0)));
}

/* x P(x) by the C library, in double. */
static double true_gelu(double x)
{
    return x * 0.5 * erfc(-x / sqrt(2));
}

/* Also far below 0, where P is small: each number is right to 1e-6 of itself, and the same on every
 * instruction set. */
static void test_gelu_is_accurate(void **state)
{
    enum { COUNT = 25000 };
    static float x[COUNT], y[COUNT], first[COUNT];
    const struct ls_activation_attr gelu = {.function = LS_GELU};
    bool any = false;
    (void)state;
    for (int i = 0; i < COUNT; i++)
        x[i] = -12.49F + 0.001F * (float)i + 1e-4F * (float)(i % 7);
    for (int isa = 0; isa < LS_ISAS; isa++) {
        if (!ls_cpu_isa_supported((enum ls_isa)isa))
            continue;
        assert_int_equal(ls_cpu_isa_select(ls_cpu_isa_name((enum ls_isa)isa), NULL), 0);
        ls_vector_activation()->forward(&gelu, x, y, COUNT);
        for (int i = 0; i < COUNT; i++) {
            const double want = true_gelu((double)x[i]);
            if (!(fabs((double)y[i] - want) <= 1e-6 * fabs(want)))
                fail_msg("gelu of %.9g is %.9g, not %.9g", (double)x[i], (double)y[i], want);
        }
        if (any)
            assert_memory_equal(y, first, sizeof y);
        memcpy(first, y, sizeof y);
        any = true;
    }
    assert_true(any);
}

static void test_gelu_far_out(void **state)
{
    (void)state;
    const struct ls_activation_attr exact = {.function = LS_GELU},
                                    tanh = {.function = LS_GELU_TANH};
    assert_true(one(&exact, false, 1e30F) == 1e30F && one(&exact, false, INFINITY) == INFINITY);
    assert_true(one(&exact, false, -1e30F) == 0 && one(&exact, false, -INFINITY) == 0);
    assert_true(one(&exact, true, 1e30F) == 1 && one(&exact, true, -1e30F) == 0);
    assert_true(one(&exact, false, 0) == 0 && one(&exact, true, 0) == 0.5F);
    assert_true(one(&tanh, false, 1e30F) == 1e30F && one(&tanh, false, -1e30F) == 0);
    assert_true(one(&tanh, true, 1e30F) == 1 && fabsf(one(&tanh, true, -1e30F)) < 1e-30F);
    assert_true(isnan(one(&exact, true, NAN)) && isnan(one(&tanh, true, NAN)));
}

static void test_kinks(void **state)
{
    (void)state;
    const struct ls_activation_attr absolute = {.function = LS_ABSOLUTE};
    assert_true(one(&absolute, true, 0) == 0);
    const struct ls_activation_attr clip = {.function = LS_CLIP, .low = -1, .high = 2};
    assert_true(one(&clip, true, -1) == 1 && one(&clip, true, 2) == 1);
    assert_true(one(&clip, true, -1.01F) == 0 && one(&clip, true, 2.01F) == 0);
    assert_true(one(&clip, false, INFINITY) == 2 && one(&clip, false, -INFINITY) == -1);
    const struct ls_activation_attr threshold = {.function = LS_THRESHOLD, .low = 0.5F};
    assert_true(one(&threshold, false, 0.5F) == 0 && one(&threshold, false, 0.6F) == 1);
    const struct ls_activation_attr elu = {.function = LS_ELU, .slope = 0.25F};
    assert_true(one(&elu, true, 0) == 0.25F);
    assert_true(one(&elu, false, -INFINITY) == -0.25F);
    const struct ls_activation_attr cube = {.function = LS_POWER, .power = 3, .scale = 1};
    assert_true(one(&cube, true, 0) == 0);
    struct ls_op op = {.kind = LS_OP_ACTIVATION_BACKWARD, .attr.activation = threshold};
    assert_false(ls_kernel_activation_backward.accepts(&op));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_gelu_is_accurate),
        cmocka_unit_test(test_gelu_far_out),
        cmocka_unit_test(test_kinks),
    };
    ls_set_float_mode();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
