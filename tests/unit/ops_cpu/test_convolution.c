/* Convolutions and their gradients against a double-precision reference, itself checked by finite
 * differences; the same bits per sample whatever the number of samples and threads.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "convolution_trial.h"

#include <math.h>

#include "support/support.h"

static const struct shape_case named_cases[] = {
    {"cifar conv1", 2, 2, 3, 32, 1, 32, 5, 1, 2, 1},
    {"cifar conv2", 2, 2, 32, 32, 1, 16, 5, 1, 2, 1},
    {"cifar conv3", 2, 2, 32, 64, 1, 8, 5, 1, 2, 1},
    {"lenet conv1", 2, 2, 1, 20, 1, 28, 5, 1, 0, 1},
    {"lenet conv2", 2, 2, 20, 50, 1, 12, 5, 1, 0, 1},
    {"two channels", 2, 2, 2, 7, 1, 9, 3, 1, 1, 1},
    {"ten channels", 2, 3, 10, 10, 1, 9, 3, 1, 1, 1},
    {"five channels, strided", 2, 2, 5, 10, 1, 11, 3, 2, 1, 1},
    {"hangs over on the right", 2, 2, 16, 16, 1, 12, 3, 2, 0, 1},
    {"caffenet conv1", 2, 1, 3, 20, 1, 35, 11, 4, 0, 1},
    {"pad beyond the kernel", 2, 2, 6, 18, 1, 5, 3, 1, 4, 1},
    {"kernel beyond the input", 2, 2, 4, 3, 1, 3, 5, 1, 2, 1},
    {"kernel covers the input", 2, 2, 32, 10, 1, 4, 4, 1, 0, 1},
    {"one by one", 2, 3, 20, 50, 1, 7, 1, 1, 0, 1},
    {"one by one, strided", 2, 3, 16, 32, 1, 7, 1, 2, 0, 1},
    {"one pixel", 2, 3, 3, 4, 1, 1, 1, 1, 0, 1},
    {"dilated", 2, 2, 20, 16, 1, 11, 3, 1, 2, 2},
    {"dilated, strided", 2, 2, 32, 16, 1, 13, 3, 2, 2, 2},
    {"two groups", 2, 2, 32, 64, 2, 9, 3, 1, 1, 1},
    {"two groups of 8", 2, 2, 16, 16, 2, 9, 3, 1, 1, 1},
    {"two groups of 24", 2, 2, 48, 48, 2, 7, 3, 1, 1, 1},
    {"five small groups", 2, 2, 10, 20, 5, 7, 3, 1, 1, 1},
    {"depthwise", 2, 2, 32, 32, 32, 9, 3, 1, 1, 1},
    {"depthwise, 20 channels", 2, 2, 20, 20, 20, 9, 3, 2, 1, 1},
    {"depthwise, 3 channels", 2, 2, 3, 6, 3, 9, 3, 1, 1, 1},
    {"one axis", 1, 3, 20, 24, 1, 31, 5, 2, 2, 1},
    {"one axis, one channel", 1, 3, 1, 8, 1, 31, 7, 1, 3, 1},
    {"three axes", 3, 2, 16, 20, 1, 6, 3, 1, 1, 1},
    {"three axes, one channel", 3, 2, 1, 5, 1, 6, 3, 2, 0, 1},
};

static struct reference_convolution make_case(const struct shape_case *shape)
{
    struct reference_convolution result = {
        .n = shape->n, .c = shape->c, .o = shape->o, .group = shape->group};
    set_windows(&result, shape, result.in);
    assert_true(reference_convolution_shape(&result));
    return result;
}

struct fused {
    bool bias, relu;
    float slope;
};

static struct trial *make_trial(const struct ls_kernel *kernel,
                                const struct reference_convolution *c, int axes, struct fused fused)
{
    struct trial *trial = trial_new(kernel);
    struct ls_convolution_attr *attr = &trial->op.attr.convolution;
    struct ls_shape x = tensor_shape(c->n, c->c, c->in, axes);
    struct ls_shape y = tensor_shape(c->n, c->o, c->out, axes);
    struct ls_shape w = tensor_shape(c->o, c->c / c->group, c->kernel, axes);
    struct ls_shape b = {.rank = 1, .dim = {c->o}};
    set_attributes(attr, c, axes, fused.bias);
    attr->relu = fused.relu;
    attr->relu_slope = fused.slope;
    enum trial_pass pass = kernel->kind == LS_OP_CONVOLUTION        ? TRIAL_FORWARD
                           : kernel->kind == LS_OP_CONVOLUTION_DATA ? TRIAL_DATA
                                                                    : TRIAL_WEIGHTS;
    add_tensors(trial, pass, &x, &y, &w, fused.bias ? &b : NULL);
    trial_prepare(trial);
    return trial;
}

static void check_forward(const struct reference_convolution *c, int axes, struct fused fused,
                          const char *what)
{
    struct trial *trial = make_trial(&ls_kernel_convolution, c, axes, fused);
    trial_run(trial);
    double *x = trial_doubles(trial, trial->in[0]), *w = trial_doubles(trial, trial->in[1]);
    double *b = fused.bias ? trial_doubles(trial, trial->in[2]) : NULL;
    double *y = trial_doubles(trial, trial->out[0]);
    reference_convolution_forward(c, x, w, b, fused.relu, (double)fused.slope, y);
    trial_compare(trial, trial->out[0], y, c->c / c->group * product(c->kernel) + 1, what);
    free(x);
    free(w);
    free(b);
    free(y);
    trial_free(trial);
}

static void check_data(const struct reference_convolution *c, int axes, const char *what)
{
    struct trial *trial = make_trial(&ls_kernel_convolution_data, c, axes, (struct fused){0});
    trial_run(trial);
    double *dy = trial_doubles(trial, trial->in[0]), *w = trial_doubles(trial, trial->in[1]);
    double *dx = trial_doubles(trial, trial->out[0]);
    reference_convolution_data(c, dy, w, dx);
    trial_compare(trial, trial->out[0], dx, c->o / c->group * product(c->kernel), what);
    free(dy);
    free(w);
    free(dx);
    trial_free(trial);
}

static void check_weights(const struct reference_convolution *c, int axes, bool bias,
                          const char *what)
{
    struct fused fused = {.bias = bias};
    struct trial *trial = make_trial(&ls_kernel_convolution_weights, c, axes, fused);
    trial_run(trial);
    double *x = trial_doubles(trial, trial->in[0]), *dy = trial_doubles(trial, trial->in[1]);
    double *dw = trial_doubles(trial, trial->out[0]);
    double *db = bias ? trial_doubles(trial, trial->out[1]) : NULL;
    reference_convolution_weights(c, x, dy, dw, db);
    trial_compare(trial, trial->out[0], dw, c->n * product(c->out), what);
    if (bias)
        trial_compare(trial, trial->out[1], db, c->n * product(c->out), what);
    free(x);
    free(dy);
    free(dw);
    free(db);
    trial_free(trial);
}

static void check_all(const struct reference_convolution *c, int axes, struct fused fused,
                      const char *what)
{
    check_forward(c, axes, fused, what);
    check_data(c, axes, what);
    check_weights(c, axes, fused.bias, what);
}

static void named_shapes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof named_cases / sizeof *named_cases; i++) {
        struct reference_convolution c = make_case(&named_cases[i]);
        struct fused fused = {
            .bias = i % 3 != 1, .relu = i % 2 == 1, .slope = i % 4 == 3 ? 0.1f : 0};
        check_all(&c, named_cases[i].axes, fused, named_cases[i].name);
    }
}

static int pick(uint64_t round, int *draw, const int *from, size_t count)
{
    return from[ls_random_below(77, round, (uint64_t)(*draw)++, (uint32_t)count)];
}
#define PICK(...)                                                                                  \
    pick(round, &draw, (const int[]){__VA_ARGS__}, sizeof((const int[]){__VA_ARGS__}) / sizeof(int))

/* False where the shape has no output. */
static bool random_case(uint64_t round, struct reference_convolution *c, int *axes)
{
    int draw = 0;
    int group = PICK(1, 1, 1, 1, 2, 3);
    *axes = PICK(1, 2, 2, 2, 3);
    c->group = group;
    c->n = PICK(1, 2, 3, 5);
    c->c = group * PICK(1, 1, 3, 4, 5, 8, 10, 16, 20, 50);
    c->o = group * PICK(1, 1, 3, 6, 8, 10, 16, 20, 33);
    for (int a = 0; a < 3; a++) {
        bool used = a < *axes;
        c->in[a] = used ? PICK(1, 2, 3, 5, 6, 8, 11) : 1;
        c->kernel[a] = used ? PICK(1, 2, 3, 3, 4, 5) : 1;
        c->stride[a] = used ? PICK(1, 1, 2, 3) : 1;
        c->pad[a] = used ? PICK(0, 1, 2, 3) : 0;
        c->dilation[a] = used ? PICK(1, 1, 1, 2, 3) : 1;
    }
    return reference_convolution_shape(c);
}

static void random_shapes(void **state)
{
    (void)state;
    int done = 0;
    for (uint64_t round = 0; done < 120; round++) {
        struct reference_convolution c;
        int axes;
        char what[256];
        if (!random_case(round, &c, &axes))
            continue;
        snprintf(what, sizeof what,
                 "%d axes, %d x %d -> %d, group %d, in %dx%dx%d, kernel %dx%dx%d, stride %d %d %d, "
                 "pad %d %d %d, dilation %d %d %d",
                 axes, c.n, c.c, c.o, c.group, c.in[0], c.in[1], c.in[2], c.kernel[0], c.kernel[1],
                 c.kernel[2], c.stride[0], c.stride[1], c.stride[2], c.pad[0], c.pad[1], c.pad[2],
                 c.dilation[0], c.dilation[1], c.dilation[2]);
        struct fused fused = {.bias = round % 2, .relu = round % 3 == 0, .slope = round % 5 * 0.1f};
        check_all(&c, axes, fused, what);
        done++;
    }
}

/* Forward and gradient by data: a sample's bits do not depend on how many come with it, and its
 * layouts do not either. */
static void check_samples(const struct ls_kernel *kernel, const struct shape_case *shape)
{
    static const int counts[] = {1, 2, 13, 16};
    struct fused fused = {.bias = true, .relu = true};
    struct shape_case many = *shape;
    many.n = 20;
    struct reference_convolution c = make_case(&many);
    struct trial *all = make_trial(kernel, &c, shape->axes, fused);
    trial_run(all);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        c.n = counts[i];
        struct trial *some = make_trial(kernel, &c, shape->axes, fused);
        trial_run(some);
        compare_samples(all, some, c.n, shape->name);
        trial_free(some);
    }
    trial_free(all);
}

static void bits_of_a_sample(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof named_cases / sizeof *named_cases; i++) {
        check_samples(&ls_kernel_convolution, &named_cases[i]);
        check_samples(&ls_kernel_convolution_data, &named_cases[i]);
    }
}

static void threads_at_once(void **state)
{
    static const struct ls_kernel *const kernels[] = {
        &ls_kernel_convolution, &ls_kernel_convolution_data, &ls_kernel_convolution_weights};
    (void)state;
    for (size_t i = 0; i < sizeof named_cases / sizeof *named_cases; i++) {
        struct reference_convolution c = make_case(&named_cases[i]);
        struct trial *trial =
            make_trial(kernels[i % 3], &c, named_cases[i].axes, (struct fused){.bias = true});
        trial_run(trial);
        trial_concurrently(trial);
        trial_free(trial);
    }
}

/* The layouts that make a network fast: blocked, but for the picture; one layout of the weights
 * for the forward pass and the gradient. */
static void layouts_of_a_network(void **state)
{
    (void)state;
    if (ls_cpu_isa() < LS_ISA_AVX2)
        ls_test_skip("this instruction set has no blocked layouts");
    const struct ls_layout *wide =
        ls_cpu_isa() == LS_ISA_AVX512 ? &ls_layout_blocked16 : &ls_layout_blocked8;
    for (int i = 0; i < 3; i++) { /* the layers of cifar10_quick */
        struct reference_convolution c = make_case(&named_cases[i]);
        struct trial *forward = make_trial(&ls_kernel_convolution, &c, 2, (struct fused){0});
        struct trial *weights =
            make_trial(&ls_kernel_convolution_weights, &c, 2, (struct fused){0});
        assert_ptr_equal(forward->in[0]->layout, i == 0 ? &ls_layout_plain : wide);
        assert_ptr_equal(forward->out[0]->layout, wide);
        assert_ptr_equal(weights->in[0]->layout, forward->in[0]->layout);
        assert_ptr_equal(weights->in[1]->layout, wide);
        assert_ptr_equal(weights->out[0]->layout, forward->in[1]->layout);
        assert_non_null(strstr(forward->prepared.implementation, "jit"));
        assert_non_null(strstr(weights->prepared.implementation, "jit"));
        trial_free(forward);
        trial_free(weights);
    }
}

/* Fewer channels than a block holds, but more than a picture has: blocked in the pass forward and
 * in the gradient, in one layout of the weights. */
static void few_channels_are_widened(void **state)
{
    static const struct shape_case shape = {"", 2, 2, 6, 16, 1, 9, 3, 1, 1, 1};
    (void)state;
    if (ls_cpu_isa() < LS_ISA_AVX2)
        ls_test_skip("this instruction set has no blocked layouts");
    struct reference_convolution c = make_case(&shape);
    struct trial *forward = make_trial(&ls_kernel_convolution, &c, 2, (struct fused){0});
    struct trial *weights = make_trial(&ls_kernel_convolution_weights, &c, 2, (struct fused){0});
    const struct ls_layout *wide =
        ls_cpu_isa() == LS_ISA_AVX512 ? &ls_layout_blocked16 : &ls_layout_blocked8;
    assert_ptr_equal(forward->in[0]->layout, wide);
    assert_ptr_equal(weights->in[0]->layout, wide);
    assert_ptr_equal(weights->out[0]->layout, forward->in[1]->layout);
    trial_free(forward);
    trial_free(weights);
}

/* No shape of those above may need a reference path. */
static void nothing_is_a_reference(void **state)
{
    static const struct ls_kernel *const kernels[] = {
        &ls_kernel_convolution, &ls_kernel_convolution_data, &ls_kernel_convolution_weights};
    (void)state;
    for (size_t i = 0; i < sizeof named_cases / sizeof *named_cases; i++) {
        struct reference_convolution c = make_case(&named_cases[i]);
        for (int k = 0; k < 3; k++) {
            struct trial *trial =
                make_trial(kernels[k], &c, named_cases[i].axes, (struct fused){.bias = true});
            if (strstr(trial->prepared.implementation, "ref") != NULL)
                fail_msg("%s: %s is done by %s", named_cases[i].name, kernels[k]->name,
                         trial->prepared.implementation);
            trial_free(trial);
        }
    }
}

/* What oneDNN does by products of matrices although it is bad at it is called slow. */
static void bad_products_are_slow(void **state)
{
    static const struct shape_case few[] = {
        {"depthwise, one axis", 1, 2, 16, 16, 16, 30, 3, 1, 1, 1},
        {"depthwise, three axes", 3, 2, 16, 16, 16, 6, 3, 1, 1, 1},
        {"groups of four", 3, 2, 16, 16, 4, 6, 3, 1, 1, 1},
    };
    static const struct shape_case dilated = {"dilated volumes", 3, 2, 16, 32, 1, 8, 3, 1, 2, 2};
    static const struct ls_kernel *const kernels[] = {
        &ls_kernel_convolution, &ls_kernel_convolution_data, &ls_kernel_convolution_weights};
    (void)state;
    for (int i = 0; i < 12; i++) {
        const struct shape_case *shape = i < 9 ? &few[i / 3] : &dilated;
        struct reference_convolution c = make_case(shape);
        struct trial *trial = make_trial(kernels[i % 3], &c, shape->axes, (struct fused){0});
        bool bad = strstr(trial->prepared.implementation, "gemm") != NULL ||
                   strstr(trial->prepared.implementation, "ref") != NULL;
        bool counts = i < 9 || i % 3 == 2;
        if (counts && trial->prepared.slow != bad)
            fail_msg("%s: %s is done by %s and %s slow", shape->name, kernels[i % 3]->name,
                     trial->prepared.implementation, bad ? "not" : "called");
        trial_free(trial);
    }
}

static int ask_for_layouts(const struct shape_case *shape, int64_t samples, struct ls_error *error)
{
    struct reference_convolution c = make_case(shape);
    struct trial *trial = make_trial(&ls_kernel_convolution, &c, shape->axes, (struct fused){0});
    struct ls_op_layouts layouts = {0};
    trial->in[0]->shape.dim[0] = trial->out[0]->shape.dim[0] = samples;
    trial->in[0]->shape.dim[1] = trial->in[1]->shape.dim[1] = (int64_t)1 << 30;
    int status = trial->kernel->layouts(&trial->op, &layouts, error);
    trial_free(trial);
    return status;
}

static void what_is_too_large_is_refused(void **state)
{
    (void)state;
    struct ls_error error = {0};
    assert_int_equal(ask_for_layouts(&named_cases[0], 1, &error), LOCKSTEP_DEFINITION);
    assert_non_null(strstr(error.problems[0].message, "2^31"));
    assert_non_null(strstr(error.problems[0].hint, "micro_batch"));
    struct reference_convolution c = make_case(&named_cases[0]);
    struct trial *trial = make_trial(&ls_kernel_convolution, &c, 2, (struct fused){0});
    struct ls_op_layouts layouts = {0};
    ls_error_clear(&error);
    trial->op.attr.convolution.window.pad[1] = (int64_t)1 << 40;
    assert_int_equal(trial->kernel->layouts(&trial->op, &layouts, &error), LOCKSTEP_DEFINITION);
    assert_int_equal(error.count, 1);
    assert_non_null(strstr(error.problems[0].message, "window"));
    trial_free(trial);
}

/* The derivative of sum(y r) by one element, by a central difference; y is linear in each of them,
 * so that it is exact but for rounding. */
static double derivative(const struct reference_convolution *c, double *x, double *w, double *b,
                         const double *r, double *y, size_t count, double *element)
{
    double sum[2] = {0}, kept = *element;
    for (int side = 0; side < 2; side++) {
        *element = kept + (side ? -0.5 : 0.5);
        reference_convolution_forward(c, x, w, b, 0, 0, y);
        for (size_t i = 0; i < count; i++)
            sum[side] += y[i] * r[i];
    }
    *element = kept;
    return sum[0] - sum[1];
}

static double *random_doubles(size_t count, uint64_t salt)
{
    double *result = malloc(count * sizeof *result);
    assert_non_null(result);
    for (size_t i = 0; i < count; i++)
        result[i] = 2.0 * (double)ls_random_uniform(salt, 0, i) - 1;
    return result;
}

static void check_reference(const struct reference_convolution *c)
{
    size_t xs = (size_t)(c->n * c->c * product(c->in)),
           ys = (size_t)(c->n * c->o * product(c->out));
    size_t ws = (size_t)(c->o * (c->c / c->group) * product(c->kernel)), bs = (size_t)c->o;
    double *x = random_doubles(xs, 1), *w = random_doubles(ws, 2), *b = random_doubles(bs, 3);
    double *r = random_doubles(ys, 4), *y = random_doubles(ys, 5);
    double *dx = random_doubles(xs, 6), *dw = random_doubles(ws, 7), *db = random_doubles(bs, 8);
    reference_convolution_data(c, r, w, dx);
    reference_convolution_weights(c, x, r, dw, db);
    for (size_t i = 0; i < xs; i += 1 + xs / 40)
        assert_true(fabs(derivative(c, x, w, b, r, y, ys, &x[i]) - dx[i]) < 1e-10);
    for (size_t i = 0; i < ws; i += 1 + ws / 40)
        assert_true(fabs(derivative(c, x, w, b, r, y, ys, &w[i]) - dw[i]) < 1e-10);
    for (size_t i = 0; i < bs; i++)
        assert_true(fabs(derivative(c, x, w, b, r, y, ys, &b[i]) - db[i]) < 1e-10);
    double *const all[] = {x, w, b, r, y, dx, dw, db};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

static void reference_by_finite_differences(void **state)
{
    (void)state;
    int done = 0;
    for (uint64_t round = 0; done < 25; round++) {
        struct reference_convolution c;
        int axes;
        if (!random_case(round, &c, &axes) || product(c.in) > 130)
            continue;
        c.c = c.group * (1 + c.c / c.group % 3);
        c.o = c.group * (1 + c.o / c.group % 3);
        check_reference(&c);
        done++;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reference_by_finite_differences),
        cmocka_unit_test(named_shapes),
        cmocka_unit_test(random_shapes),
        cmocka_unit_test(bits_of_a_sample),
        cmocka_unit_test(threads_at_once),
        cmocka_unit_test(layouts_of_a_network),
        cmocka_unit_test(few_channels_are_widened),
        cmocka_unit_test(nothing_is_a_reference),
        cmocka_unit_test(bad_products_are_slow),
        cmocka_unit_test(what_is_too_large_is_refused),
    };
    return trial_main(tests);
}
