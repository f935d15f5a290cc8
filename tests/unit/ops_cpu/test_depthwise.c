/* The gradient by x of depthwise convolutions against its definition, in both layouts.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/own_kernel.h"

struct depthwise_case {
    int64_t n, c, h, w;
    struct ls_window window;
};

static const struct depthwise_case cases[] = {
    {2, 32, 14, 14, {2, {3, 3, 1}, {1, 1, 1}, {1, 1, 0}, {1, 1, 1}}},
    {2, 20, 14, 15, {2, {3, 3, 1}, {2, 2, 1}, {1, 1, 0}, {1, 1, 1}}},
    {1, 4, 7, 23, {2, {5, 3, 1}, {1, 2, 1}, {2, 0, 0}, {1, 1, 1}}},
    {3, 17, 9, 8, {2, {3, 5, 1}, {2, 1, 1}, {2, 4, 0}, {2, 2, 1}}},
    {1, 8, 11, 13, {2, {2, 2, 1}, {3, 3, 1}, {0, 0, 0}, {1, 1, 1}}}, /* some x in no window */
    {1, 24, 8, 40, {2, {7, 7, 1}, {1, 1, 1}, {3, 3, 0}, {1, 1, 1}}},
    {2, 16, 5, 6, {2, {1, 1, 1}, {2, 1, 1}, {0, 0, 0}, {1, 1, 1}}},
    {1, 9, 1, 3, {2, {3, 3, 1}, {1, 1, 1}, {2, 2, 0}, {1, 1, 1}}}, /* windows beyond x */
};

static int64_t extent_of_y(int64_t x, const struct ls_window *window, int axis)
{
    int64_t reach = window->dilation[axis] * (window->kernel[axis] - 1) + 1;
    return (x + 2 * window->pad[axis] - reach) / window->stride[axis] + 1;
}

/* Adds what one number of dy gives to dx; both are of one channel. */
static void scatter(const struct depthwise_case *c, int64_t row, int64_t column, double dy,
                    const float *w, double *dx)
{
    const struct ls_window *window = &c->window;
    for (int64_t i = 0; i < window->kernel[0]; i++)
        for (int64_t j = 0; j < window->kernel[1]; j++) {
            int64_t y = row * window->stride[0] - window->pad[0] + i * window->dilation[0];
            int64_t x = column * window->stride[1] - window->pad[1] + j * window->dilation[1];
            if (y >= 0 && y < c->h && x >= 0 && x < c->w)
                dx[y * c->w + x] += dy * (double)w[i * window->kernel[1] + j];
        }
}

static double *expected_gradient(const struct depthwise_case *c, int64_t rows, int64_t columns,
                                 const float *dy, const float *w)
{
    const int64_t size = c->window.kernel[0] * c->window.kernel[1];
    double *dx = calloc((size_t)(c->n * c->c * c->h * c->w), sizeof *dx);
    assert_non_null(dx);
    for (int64_t plane = 0; plane < c->n * c->c; plane++)
        for (int64_t p = 0; p < rows * columns; p++)
            scatter(c, p / columns, p % columns, (double)dy[plane * rows * columns + p],
                    w + plane % c->c * size, dx + plane * c->h * c->w);
    return dx;
}

static void check_case(const struct depthwise_case *c, const char *isa, float **kept)
{
    assert_int_equal(ls_cpu_isa_select(isa, NULL), 0);
    int64_t rows = extent_of_y(c->h, &c->window, 0), columns = extent_of_y(c->w, &c->window, 1);
    const struct ls_shape x = own_shape(4, (const int64_t[]){c->n, c->c, c->h, c->w});
    const struct ls_shape y = own_shape(4, (const int64_t[]){c->n, c->c, rows, columns});
    const struct ls_shape w =
        own_shape(4, (const int64_t[]){c->c, 1, c->window.kernel[0], c->window.kernel[1]});
    struct own *own = own_new(&ls_kernel_depthwise_data);
    own->op.attr.convolution = (struct ls_convolution_attr){.window = c->window, .group = c->c};
    const struct ls_value *dy = own_in(own, &y, 1, 1), *weights = own_in(own, &w, 2, 1);
    const struct ls_value *dx = own_out(own, &x);
    own_run(own, &ls_layout_plain);
    double *expected =
        expected_gradient(c, rows, columns, own_plain(own, dy), own_plain(own, weights));
    own_near(own, dx, expected, 1e-5);
    own_keep_or_compare(kept, own, dx);
    free(expected);
    own_free(own);
}

/* Every case by its definition; blocks of 16 and of 8, and every instruction set, the same bits. */
static void test_gradients_are_right(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float *kept = NULL;
        if (ls_cpu_isa_supported(LS_ISA_AVX512))
            check_case(&cases[i], "avx512", &kept);
        if (ls_cpu_isa_supported(LS_ISA_AVX2))
            check_case(&cases[i], "avx2", &kept);
        free(kept);
    }
}

/* What it leaves to other kernels: groups of several channels, few channels, narrow registers. */
static void test_what_is_accepted(void **state)
{
    (void)state;
    if (!ls_cpu_isa_supported(LS_ISA_AVX2))
        skip();
    struct ls_value dy = {.shape = {4, {1, 8, 4, 4}}}, w = {.shape = {4, {8, 1, 3, 3}}};
    struct ls_value dx = {.shape = {4, {1, 8, 4, 4}}};
    struct ls_value *in[] = {&dy, &w}, *out[] = {&dx};
    struct ls_op op = {
        .kind = LS_OP_CONVOLUTION_DATA, .inputs = 2, .outputs = 1, .input = in, .output = out};
    op.attr.convolution = (struct ls_convolution_attr){.window = cases[0].window, .group = 8};
    bool (*accepts)(const struct ls_op *) = ls_kernel_depthwise_data.accepts;
    assert_int_equal(ls_cpu_isa_select("avx2", NULL), 0);
    assert_true(accepts(&op));
    op.attr.convolution.group = 4;
    assert_false(accepts(&op));
    op.attr.convolution.group = 8;
    dy.shape.dim[1] = 16; /* two outputs a channel */
    assert_false(accepts(&op));
    dy.shape.dim[1] = 8;
    op.attr.convolution.window.kernel[0] = op.attr.convolution.window.kernel[1] = 8;
    assert_false(accepts(&op));
    op.attr.convolution.window = cases[0].window;
    if (ls_cpu_isa_supported(LS_ISA_SSE41)) {
        assert_int_equal(ls_cpu_isa_select("sse41", NULL), 0);
        assert_false(accepts(&op));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients_are_right),
        cmocka_unit_test(test_what_is_accepted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
