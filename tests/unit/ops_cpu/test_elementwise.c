/* Activations, dropout and eltwise against the reference device, in every layout.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/own_kernel.h"

static const struct ls_shape shapes[] = {
    {4, {2, 1, 5, 7}},     {4, {3, 3, 4, 4}}, {4, {1, 20, 3, 9}}, {4, {2, 50, 9, 8}},
    {2, {5, 50}},          {2, {3, 16}},      {1, {37}},          {3, {2, 8, 33}},
    {5, {1, 20, 2, 3, 4}}, {0, {0}},          {4, {2, 17, 1, 1}},
};
enum { SHAPES = sizeof shapes / sizeof *shapes, ELEMENTS_MAX = 2 * 50 * 9 * 8 };

static int64_t size_of(const struct ls_shape *shape)
{
    int64_t size = ls_shape_size(shape);
    assert_true(size <= ELEMENTS_MAX);
    return size;
}

static void check_activation(const struct ls_shape *shape, const struct ls_layout *layout,
                             enum ls_activation function, float slope)
{
    struct own *own = own_new(&ls_kernel_activation);
    own->op.attr.activation.function = function;
    own->op.attr.activation.slope = slope;
    struct ls_value *x = own_in(own, shape, 1, function == LS_RELU ? 1 : 9);
    struct ls_value *y = own_out(own, shape);
    own_run(own, layout);
    assert_ptr_equal(y->layout, layout);
    own_near_reference(own, 3e-7);

    struct own *back = own_new(&ls_kernel_activation_backward);
    back->op.attr = own->op.attr;
    own_in(back, shape, 2, 1);
    bool wants_x = function == LS_RELU && slope < 0;
    struct ls_value *given = own_in(back, shape, 0, 0), *dx = own_out(back, shape);
    memcpy(back->plain[given->index], own->plain[(wants_x ? x : y)->index],
           (size_t)size_of(shape) * sizeof(float));
    own_run(back, layout);
    assert_ptr_equal(dx->layout, layout);
    own_near_reference(back, 3e-7);
    own_free(own);
    own_free(back);
}

static void test_activation(void **state)
{
    (void)state;
    for (int s = 0; s < SHAPES; s++)
        for (int l = 0; l < OWN_LAYOUTS; l++) {
            check_activation(&shapes[s], own_layouts[l], LS_RELU, 0);
            check_activation(&shapes[s], own_layouts[l], LS_RELU, 0.1F);
            check_activation(&shapes[s], own_layouts[l], LS_RELU, -0.3F);
            check_activation(&shapes[s], own_layouts[l], LS_SIGMOID, 0);
            check_activation(&shapes[s], own_layouts[l], LS_TANH, 0);
        }
}

/* What is not finite must not be hidden by an activation. */
static void test_not_finite(void **state)
{
    (void)state;
    const struct ls_shape shape = {1, {33}};
    for (int function = LS_RELU; function <= LS_TANH; function++) {
        struct own *own = own_new(&ls_kernel_activation);
        own->op.attr.activation.function = (enum ls_activation)function;
        struct ls_value *x = own_in(own, &shape, 1, 1), *y = own_out(own, &shape);
        own->plain[x->index][17] = NAN;
        own_run(own, &ls_layout_plain);
        for (int i = 0; i < 33; i++)
            assert_int_equal(isnan(own_plain(own, y)[i]) != 0, i == 17);
        own_free(own);
    }
}

/* A value of samples whose rows may be several, along any axis. */
static void check_dropout(const struct ls_shape *shape, const struct ls_layout *layout, int axis,
                          int64_t rows, float ratio)
{
    struct own *own = own_new(&ls_kernel_dropout);
    own->op.attr.dropout.ratio = ratio;
    own->op.attr.dropout.key = 12345;
    own->context.first_ordinal = 1000;
    struct ls_value *x = own_in(own, shape, 3, 1), *y = own_out(own, shape);
    x->sample_axis = y->sample_axis = axis;
    x->rows = y->rows = rows;
    own_run(own, layout);
    own_near_reference(own, 0); /* the same numbers are dropped */
    own_free(own);
}

/* Back through a dropout and the ReLU in front of it in one go: the bytes of both by themselves. */
static void test_dropout_behind_relu(void **state)
{
    (void)state;
    const struct ls_shape *shape = &shapes[SHAPES - 1];
    for (int l = 0; l < OWN_LAYOUTS; l++) {
        struct own *drop[3] = {own_new(&ls_kernel_dropout), own_new(&ls_kernel_dropout),
                               own_new(&ls_kernel_dropout)};
        struct own *relu = own_new(&ls_kernel_activation_backward);
        for (int i = 0; i < 3; i++) {
            drop[i]->op.attr.dropout = (struct ls_dropout_attr){.ratio = 0.3F, .key = 5};
            drop[i]->context.first_ordinal = 77;
            own_in(drop[i], shape, i == 0 ? 3 : 4, 1);
        }
        struct ls_value *z = own_in(drop[2], shape, 1, 1);
        for (int i = 0; i < 3; i++)
            own_out(drop[i], shape);
        float *y = drop[0]->plain[0]; /* what a ReLU wrote */
        for (int64_t i = 0; i < ls_shape_size(shape); i++)
            y[i] = y[i] > 0 ? y[i] : 0;
        own_run(drop[0], own_layouts[l]);
        own_run(drop[1], own_layouts[l]);
        struct ls_value *dy = own_in(relu, shape, 1, 1), *given = own_in(relu, shape, 1, 1);
        struct ls_value *dx = own_out(relu, shape);
        size_t bytes = (size_t)ls_shape_size(shape) * sizeof(float);
        memcpy(relu->plain[dy->index], own_plain(drop[1], drop[1]->out[0]), bytes);
        memcpy(relu->plain[given->index], y, bytes);
        memcpy(drop[2]->plain[z->index], own_plain(drop[0], drop[0]->out[0]), bytes);
        own_run(relu, own_layouts[l]);
        own_run(drop[2], own_layouts[l]);
        assert_memory_equal(own_plain(drop[2], drop[2]->out[0]), own_plain(relu, dx), bytes);
        own_free(relu);
        for (int i = 0; i < 3; i++)
            own_free(drop[i]);
    }
}

static void test_dropout(void **state)
{
    (void)state;
    const float ratios[] = {0, 0.5F, 0.3F, 0.9F};
    for (int s = 0; s < SHAPES; s++)
        for (int l = 0; l < OWN_LAYOUTS; l++)
            for (size_t r = 0; r < sizeof ratios / sizeof *ratios; r++) {
                if (shapes[s].rank > 0)
                    check_dropout(&shapes[s], own_layouts[l], 0, 1, ratios[r]);
                check_dropout(&shapes[s], own_layouts[l], -1, 1, ratios[r]);
                if (shapes[s].rank > 1)
                    check_dropout(&shapes[s], own_layouts[l], 1, 1, ratios[r]);
            }
    const struct ls_shape rows = {4, {6, 20, 3, 5}};
    for (int l = 0; l < OWN_LAYOUTS; l++) {
        check_dropout(&rows, own_layouts[l], 0, 3, 0.4F);
        check_dropout(&rows, own_layouts[l], 1, 5, 0.4F);
    }
    struct ls_op op = {.attr.dropout.ratio = 1};
    assert_false(ls_kernel_dropout.accepts(&op));
    op.attr.dropout.ratio = -0.1F;
    assert_false(ls_kernel_dropout.accepts(&op));
    op.attr.dropout.ratio = 0x1.fffffep-1F; /* the largest float below 1 */
    assert_true(ls_kernel_dropout.accepts(&op));
}

/* Whole micro-batches or single samples: the same numbers are dropped. */
static void test_dropout_cut(void **state)
{
    (void)state;
    const struct ls_shape all = {3, {4, 20, 9}}, one = {3, {1, 20, 9}};
    for (int l = 0; l < OWN_LAYOUTS; l++) {
        struct own *whole = own_new(&ls_kernel_dropout);
        whole->op.attr.dropout.ratio = 0.5F;
        whole->op.attr.dropout.key = 9;
        whole->context.first_ordinal = 70;
        struct ls_value *x = own_in(whole, &all, 3, 1), *y = own_out(whole, &all);
        own_run(whole, own_layouts[l]);
        for (int s = 0; s < 4; s++) {
            struct own *part = own_new(&ls_kernel_dropout);
            part->op.attr = whole->op.attr;
            part->context.first_ordinal = 70 + s;
            struct ls_value *px = own_in(part, &one, 0, 0), *py = own_out(part, &one);
            memcpy(part->plain[px->index], own_plain(whole, x) + s * 180, 180 * sizeof(float));
            own_run(part, own_layouts[(l + s) % OWN_LAYOUTS]);
            assert_memory_equal(own_plain(part, py), own_plain(whole, y) + s * 180,
                                180 * sizeof(float));
            own_free(part);
        }
        own_free(whole);
    }
}

static const float coefficients[] = {0.5F, -1, 2, 0.25F, 3};

/* Inputs with many equal elements, so that ties decide. */
static void coarsen(struct own *own, int from)
{
    for (int v = from; v < own->values; v++)
        for (int64_t i = 0; i < ls_shape_size(&own->value[v].shape); i++)
            own->plain[v][i] = roundf(own->plain[v][i] * 2) / 2;
}

static void check_eltwise(const struct ls_shape *shape, const struct ls_layout *layout,
                          enum ls_eltwise method, int count, bool scaled)
{
    struct own *own = own_new(&ls_kernel_eltwise);
    own->op.attr.eltwise.method = method;
    own->op.attr.eltwise.coefficients = scaled ? coefficients : NULL;
    for (int i = 0; i < count; i++)
        own_in(own, shape, 10 + (uint64_t)i, 2);
    if (method == LS_ELTWISE_MAX)
        coarsen(own, 0);
    struct ls_value *y = own_out(own, shape);
    own_run(own, layout);
    assert_ptr_equal(y->layout, layout);
    own_near_reference(own, 1e-6);
    for (int which = 0; which < count; which++) {
        struct own *back = own_new(&ls_kernel_eltwise_backward);
        back->op.attr = own->op.attr;
        back->op.attr.eltwise.which = which;
        own_in(back, shape, 30, 1);
        for (int i = 0; i < count && method != LS_ELTWISE_SUM; i++) {
            struct ls_value *input = own_in(back, shape, 0, 0);
            memcpy(back->plain[input->index], own->plain[i],
                   (size_t)size_of(shape) * sizeof(float));
        }
        own_out(back, shape);
        own_run(back, layout);
        own_near_reference(back, 1e-6);
        own_free(back);
    }
    own_free(own);
}

static void test_eltwise(void **state)
{
    (void)state;
    for (int s = 0; s < SHAPES; s++)
        for (int l = 0; l < OWN_LAYOUTS; l++)
            for (int count = 1; count <= 5; count++) {
                check_eltwise(&shapes[s], own_layouts[l], LS_ELTWISE_PROD, count, false);
                check_eltwise(&shapes[s], own_layouts[l], LS_ELTWISE_SUM, count, false);
                check_eltwise(&shapes[s], own_layouts[l], LS_ELTWISE_SUM, count, true);
                check_eltwise(&shapes[s], own_layouts[l], LS_ELTWISE_MAX, count, false);
            }
}

static struct own *run_eltwise(const struct ls_shape *shape, const struct ls_layout *layout,
                               const struct ls_eltwise_attr *attr, int count)
{
    struct own *own = own_new(&ls_kernel_eltwise);
    own->op.attr.eltwise = *attr;
    for (int i = 0; i < count + attr->gated; i++)
        own_in(own, shape, 10 + (uint64_t)i, 2);
    own_out(own, shape);
    own_run(own, layout);
    return own;
}

/* A ReLU that was taken in, or the gate of one, gives the bits that it gives by itself. */
static void check_eltwise_relu(const struct ls_shape *shape, const struct ls_layout *layout,
                               enum ls_eltwise method, int count, float slope)
{
    struct ls_eltwise_attr attr = {.method = method};
    struct own *plain = run_eltwise(shape, layout, &attr, count);
    attr.relu = true;
    attr.relu_slope = slope;
    struct own *relu = run_eltwise(shape, layout, &attr, count);
    attr.relu = false;
    attr.gated = true;
    struct own *gated = run_eltwise(shape, layout, &attr, count);
    const float *s = own_plain(plain, plain->out[0]), *y = own_plain(relu, relu->out[0]);
    const float *gate = own_plain(gated, gated->in[count]), *dx = own_plain(gated, gated->out[0]);
    for (int64_t i = 0; i < size_of(shape); i++) {
        float closed = slope == 0 ? 0.0F : slope * s[i];
        float expected_y = s[i] < 0 ? closed : s[i], expected_dx = gate[i] > 0 ? s[i] : closed;
        assert_memory_equal(&y[i], &expected_y, sizeof *y);
        assert_memory_equal(&dx[i], &expected_dx, sizeof *dx);
    }
    own_free(plain);
    own_free(relu);
    own_free(gated);
}

static void test_eltwise_relu(void **state)
{
    (void)state;
    for (int s = 0; s < SHAPES; s++)
        for (int l = 0; l < OWN_LAYOUTS; l++)
            for (int count = 1; count <= 3; count++)
                for (int method = LS_ELTWISE_PROD; method <= LS_ELTWISE_MAX; method++) {
                    check_eltwise_relu(&shapes[s], own_layouts[l], (enum ls_eltwise)method, count,
                                       0);
                    check_eltwise_relu(&shapes[s], own_layouts[l], (enum ls_eltwise)method, count,
                                       0.2F);
                }
}

/* The result may lie where the gate lies, which is read last. */
static void test_eltwise_in_place(void **state)
{
    (void)state;
    const struct ls_shape shape = {1, {3000}};
    const struct ls_eltwise_attr attr = {.method = LS_ELTWISE_SUM, .gated = true};
    struct own *own = run_eltwise(&shape, &ls_layout_plain, &attr, 2);
    for (int where = 0; where < 3; where++) {
        float copy[3][3000];
        for (int i = 0; i < 3; i++)
            memcpy(copy[i], own_plain(own, own->in[i]), sizeof copy[i]);
        void *in[3] = {copy[0], copy[1], copy[2]}, *out[1] = {copy[where]};
        assert_int_equal(own->kernel->run(&own->prepared, NULL, in, out, NULL, &own->context), 0);
        assert_memory_equal(copy[where], own_plain(own, own->out[0]), sizeof copy[where]);
    }
    own_free(own);
}

/* One value named three times, and the output where it lies. */
static void test_eltwise_same(void **state)
{
    (void)state;
    for (int method = LS_ELTWISE_PROD; method <= LS_ELTWISE_MAX; method++) {
        struct own *own = own_new(&ls_kernel_eltwise);
        own->op.attr.eltwise.method = (enum ls_eltwise)method;
        own->op.attr.eltwise.coefficients = method == LS_ELTWISE_SUM ? coefficients : NULL;
        const struct ls_shape shape = {2, {3, 700}};
        struct ls_value *x = own_in(own, &shape, 60, 1);
        own_in(own, &shape, 61, 1);
        own->in[own->op.inputs++] = x;
        own->in[own->op.inputs++] = x;
        own_out(own, &shape);
        own_run(own, &ls_layout_plain);
        own_near_reference(own, 1e-6);
        own_free(own);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_activation),       cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_dropout),          cmocka_unit_test(test_dropout_behind_relu),
        cmocka_unit_test(test_dropout_cut),      cmocka_unit_test(test_eltwise),
        cmocka_unit_test(test_eltwise_same),     cmocka_unit_test(test_eltwise_relu),
        cmocka_unit_test(test_eltwise_in_place),
    };
    ls_set_float_mode();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
