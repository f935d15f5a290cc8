/* Products on the CPU, in random orders of their threads, beside the reference device's in the
 * declared order: inner products, convolutions and deconvolutions, in all their passes, bit by bit.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "cuda/immediate.h"
#include "kernels/reference.h"
#include "ops/cuda/kernels/products.h"
#include "support/support.h"

enum { MOST = 40000 };

static float x[MOST], w[MOST], y[MOST], bias[256], expected[2][MOST], found[2][MOST];
static uint64_t drawn;

static void draw_all(float *numbers, int64_t n)
{
    assert_true(n <= MOST);
    for (int64_t i = 0; i < n; i++)
        numbers[i] = (float)((int32_t)ls_random_u32(5, 9, drawn++) >> 8) / 8388608.0F;
}

/* Carries an op out on the reference device, in the declared order. */
static void run_reference(struct ls_op *op, float *const in[3], float *const out[2])
{
    const struct ls_context context = {.samples = 1};
    void *inputs[3] = {in[0], in[1], in[2]}, *outputs[2] = {out[0], out[1]};
    run_on_reference(op, inputs, outputs, &context);
}

static void compare(const char *what, int64_t elements, int64_t others)
{
    if (memcmp(expected[0], found[0], (size_t)elements * sizeof(float)) != 0)
        fail_msg("%s: other bits than the reference device's", what);
    if (memcmp(expected[1], found[1], (size_t)others * sizeof(float)) != 0)
        fail_msg("%s: another gradient of the bias", what);
}

static int64_t size_of(const struct ls_value *value)
{
    return ls_shape_size(&value->shape);
}

/* ---- Inner products -------------------------------------------------------------------------- */

static const struct {
    int64_t m, n, k;
    bool transpose, relu;
} inner[] = {{1, 1, 1, false, false},    {3, 5, 33, false, true},   {65, 64, 32, true, false},
             {17, 70, 100, false, true}, {2, 130, 31, true, false}, {64, 3, 256, false, false}};

static void inner_products_have_the_declared_bits(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof inner / sizeof *inner; i++) {
        const int64_t m = inner[i].m, n = inner[i].n, k = inner[i].k;
        const bool transpose = inner[i].transpose;
        struct ls_value vx = {.shape = {2, {m, k}}}, vy = {.shape = {2, {m, n}}},
                        vb = {.shape = {1, {n}}};
        struct ls_value vw = {.shape = {2, {transpose ? k : n, transpose ? n : k}}};
        struct ls_value *in[3] = {&vx, &vw, &vb}, *out[2] = {&vy, NULL};
        struct ls_op op = {
            .kind = LS_OP_INNER_PRODUCT, .inputs = 3, .outputs = 1, .input = in, .output = out};
        op.attr.inner_product = (struct ls_inner_product_attr){.m = m,
                                                               .k = k,
                                                               .n = n,
                                                               .bias = true,
                                                               .transpose = transpose,
                                                               .relu = inner[i].relu,
                                                               .relu_slope = 0.25F,
                                                               .portable = true};
        const struct ls_cuda_inner of = {.m = m,
                                         .n = n,
                                         .k = k,
                                         .transpose = transpose,
                                         .bias = bias,
                                         .relu = inner[i].relu,
                                         .slope = 0.25F};
        struct ls_cuda_inner back = of;
        back.bias = NULL;
        back.relu = false;
        draw_all(x, m * k);
        draw_all(w, n * k);
        draw_all(bias, n);
        grid_seed(i);
        run_reference(&op, (float *[]){x, w, bias}, (float *[]){expected[0], NULL});
        assert_int_equal(ls_cuda_inner_product(NULL, &of, x, w, found[0]), 0);
        compare("forward", m * n, 0);
        draw_all(y, m * n);
        op.kind = LS_OP_INNER_PRODUCT_DATA;
        op.inputs = 2;
        in[0] = &vy;
        out[0] = &vx;
        run_reference(&op, (float *[]){y, w, NULL}, (float *[]){expected[0], NULL});
        assert_int_equal(ls_cuda_inner_product_data(NULL, &back, y, w, found[0]), 0);
        compare("by data", m * k, 0);
        op.kind = LS_OP_INNER_PRODUCT_WEIGHTS;
        op.outputs = 2;
        in[0] = &vx;
        in[1] = &vy;
        out[0] = &vw;
        out[1] = &vb;
        run_reference(&op, (float *[]){x, y, NULL}, (float *[]){expected[0], expected[1]});
        assert_int_equal(ls_cuda_inner_product_weights(NULL, &back, x, y, found[0]), 0);
        assert_int_equal(ls_cuda_sum_channels(NULL, y, false, m, n, 1, found[1]), 0);
        compare("by weights", n * k, n);
    }
}

/* ---- Convolutions ---------------------------------------------------------------------------- */

static const struct windows {
    int axes;
    int64_t samples, groups, channels, outputs; /* of a group */
    int64_t size[3], kernel[3], stride[3], pad[3], dilation[3];
} shapes[] = {
    {2, 2, 1, 3, 5, {7, 6}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {2, 1, 2, 4, 3, {9, 8}, {3, 2}, {2, 3}, {1, 0}, {1, 2}},
    {2, 3, 4, 1, 1, {6, 5}, {3, 3}, {2, 1}, {1, 2}, {1, 1}}, /* groups of single channels */
    {1, 2, 1, 17, 66, {40}, {5}, {4}, {2}, {3}},
    {3, 1, 1, 2, 3, {4, 5, 6}, {2, 3, 2}, {1, 2, 3}, {1, 1, 0}, {2, 1, 1}},
    {2, 2, 1, 8, 70, {9, 9}, {1, 1}, {2, 2}, {0, 0}, {1, 1}},
    {2, 1, 1, 1, 2, {5, 5}, {5, 5}, {1, 1}, {4, 4}, {1, 1}},
};

struct setting {
    struct ls_cuda_convolution of;
    struct ls_convolution_attr attr;
    struct ls_value x, y, w, b;
    bool deconvolution;
};

/* A deconvolution's input is the y of its windows. */
static void set_up(struct setting *s, const struct windows *shape, bool deconvolution)
{
    struct ls_cuda_convolution *of = &s->of;
    *s = (struct setting){.deconvolution = deconvolution};
    of->samples = shape->samples;
    of->groups = shape->groups;
    of->x_channels = shape->channels;
    of->y_channels = shape->outputs;
    int64_t taps = 1;
    s->x.shape = (struct ls_shape){2 + shape->axes, {of->samples, of->groups * of->x_channels}};
    s->y.shape = (struct ls_shape){2 + shape->axes, {of->samples, of->groups * of->y_channels}};
    s->attr = (struct ls_convolution_attr){.window.axes = shape->axes,
                                           .group = of->groups,
                                           .algorithm = LS_CONVOLUTION_PORTABLE,
                                           .bias = true,
                                           .relu = true,
                                           .relu_slope = 0.5F};
    for (int a = 0; a < 3; a++) {
        const bool used = a < shape->axes;
        of->x[a] = used ? shape->size[a] : 1;
        of->kernel[a] = s->attr.window.kernel[a] = used ? shape->kernel[a] : 1;
        of->stride[a] = s->attr.window.stride[a] = used ? shape->stride[a] : 1;
        of->pad[a] = s->attr.window.pad[a] = used ? shape->pad[a] : 0;
        of->dilation[a] = s->attr.window.dilation[a] = used ? shape->dilation[a] : 1;
        of->y[a] = (of->x[a] + 2 * of->pad[a] - of->dilation[a] * (of->kernel[a] - 1) - 1) /
                       of->stride[a] +
                   1;
        taps *= of->kernel[a];
        if (used) {
            s->x.shape.dim[2 + a] = of->x[a];
            s->y.shape.dim[2 + a] = of->y[a];
            s->w.shape.dim[2 + a] = of->kernel[a];
        }
    }
    /* [channels of the input or output that is not in groups, those of a group, taps] */
    s->w.shape.rank = 2 + shape->axes;
    s->w.shape.dim[0] = of->groups * of->y_channels;
    s->w.shape.dim[1] = of->x_channels;
    of->w_x = taps;
    of->w_y = of->x_channels * taps;
    of->w_group = of->y_channels * of->w_y;
    s->b.shape =
        (struct ls_shape){1, {of->groups * (deconvolution ? of->x_channels : of->y_channels)}};
}

static void run_pass(const struct setting *s, enum ls_op_kind kind, struct ls_value *const in[3],
                     struct ls_value *const out[2], float *const numbers[3],
                     float *const results[2])
{
    struct ls_value *inputs[3] = {in[0], in[1], in[2]}, *outputs[2] = {out[0], out[1]};
    struct ls_op op = {.kind = kind,
                       .inputs = in[2] != NULL ? 3 : 2,
                       .outputs = out[1] != NULL ? 2 : 1,
                       .input = inputs,
                       .output = outputs};
    op.attr.convolution = s->attr;
    run_reference(&op, numbers, results);
}

static void try_convolution(struct setting *s)
{
    struct ls_cuda_convolution plain = s->of, ended = s->of;
    ended.bias = bias;
    ended.relu = true;
    ended.slope = 0.5F;
    draw_all(x, size_of(&s->x));
    draw_all(w, size_of(&s->w));
    draw_all(bias, size_of(&s->b));
    draw_all(y, size_of(&s->y));
    const bool back = s->deconvolution;
    run_pass(s, back ? LS_OP_DECONVOLUTION_DATA : LS_OP_CONVOLUTION,
             (struct ls_value *[]){&s->x, &s->w, back ? NULL : &s->b},
             (struct ls_value *[]){&s->y, NULL}, (float *[]){x, w, bias},
             (float *[]){expected[0], NULL});
    assert_int_equal(ls_cuda_convolve_to_y(NULL, back ? &plain : &ended, x, w, found[0]), 0);
    compare("to y", size_of(&s->y), 0);
    run_pass(s, back ? LS_OP_DECONVOLUTION : LS_OP_CONVOLUTION_DATA,
             (struct ls_value *[]){&s->y, &s->w, back ? &s->b : NULL},
             (struct ls_value *[]){&s->x, NULL}, (float *[]){y, w, bias},
             (float *[]){expected[0], NULL});
    assert_int_equal(ls_cuda_convolve_to_x(NULL, back ? &ended : &plain, y, w, found[0]), 0);
    compare("to x", size_of(&s->x), 0);
    run_pass(s, back ? LS_OP_DECONVOLUTION_WEIGHTS : LS_OP_CONVOLUTION_WEIGHTS,
             (struct ls_value *[]){back ? &s->y : &s->x, back ? &s->x : &s->y, NULL},
             (struct ls_value *[]){&s->w, &s->b}, (float *[]){back ? y : x, back ? x : y, NULL},
             (float *[]){expected[0], expected[1]});
    const struct ls_value *gradient = back ? &s->x : &s->y;
    const int64_t channels = gradient->shape.dim[1];
    assert_int_equal(ls_cuda_convolve_to_w(NULL, &plain, x, y, found[0]), 0);
    assert_int_equal(ls_cuda_sum_channels(NULL, back ? x : y, false, s->of.samples, channels,
                                          size_of(gradient) / s->of.samples / channels, found[1]),
                     0);
    compare("to w", size_of(&s->w), channels);
}

static void convolutions_have_the_declared_bits(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct setting setting;
        grid_seed(i);
        set_up(&setting, &shapes[i], false);
        try_convolution(&setting);
    }
}

static void deconvolutions_have_the_declared_bits(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct setting setting;
        grid_seed(i + 50);
        set_up(&setting, &shapes[i], true);
        try_convolution(&setting);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inner_products_have_the_declared_bits),
        cmocka_unit_test(convolutions_have_the_declared_bits),
        cmocka_unit_test(deconvolutions_have_the_declared_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
