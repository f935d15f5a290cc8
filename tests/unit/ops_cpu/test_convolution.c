/* Convolutions and their gradients against a double-precision reference, itself checked by finite
 * differences; the same bits per sample whatever the number of samples and threads.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/convolution_trial.h"

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

static struct convolution_size make_case(const struct shape_case *shape)
{
    struct convolution_size result = {
        .n = shape->n, .c = shape->c, .o = shape->o, .group = shape->group};
    set_windows(&result, shape, result.in);
    assert_true(set_extents(&result));
    return result;
}

struct fused {
    bool bias, relu;
    float slope;
};

static struct trial *make_trial(const struct ls_kernel *kernel, const struct convolution_size *c,
                                int axes, struct fused fused)
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

static void check_forward(const struct convolution_size *c, int axes, struct fused fused,
                          const char *what)
{
    struct trial *trial = make_trial(&ls_kernel_convolution, c, axes, fused);
    trial_run(trial);
    trial_near_reference(trial, (double[2]){c->c / c->group * product(c->kernel) + 1}, what);
    trial_free(trial);
}

static void check_data(const struct convolution_size *c, int axes, const char *what)
{
    struct trial *trial = make_trial(&ls_kernel_convolution_data, c, axes, (struct fused){0});
    trial_run(trial);
    trial_near_reference(trial, (double[2]){c->o / c->group * product(c->kernel)}, what);
    trial_free(trial);
}

static void check_weights(const struct convolution_size *c, int axes, bool bias, const char *what)
{
    const double terms = c->n * product(c->out);
    struct fused fused = {.bias = bias};
    struct trial *trial = make_trial(&ls_kernel_convolution_weights, c, axes, fused);
    trial_run(trial);
    trial_near_reference(trial, (double[2]){terms, terms}, what);
    trial_free(trial);
}

static void check_all(const struct convolution_size *c, int axes, struct fused fused,
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
        struct convolution_size c = make_case(&named_cases[i]);
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
static bool random_case(uint64_t round, struct convolution_size *c, int *axes)
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
    return set_extents(c);
}

static void random_shapes(void **state)
{
    (void)state;
    int done = 0;
    for (uint64_t round = 0; done < 120; round++) {
        struct convolution_size c;
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
    struct convolution_size c = make_case(&many);
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
        struct convolution_size c = make_case(&named_cases[i]);
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
        struct convolution_size c = make_case(&named_cases[i]);
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
    struct convolution_size c = make_case(&shape);
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
        struct convolution_size c = make_case(&named_cases[i]);
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
        struct convolution_size c = make_case(shape);
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
    struct convolution_size c = make_case(shape);
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
    struct convolution_size c = make_case(&named_cases[0]);
    struct trial *trial = make_trial(&ls_kernel_convolution, &c, 2, (struct fused){0});
    struct ls_op_layouts layouts = {0};
    ls_error_clear(&error);
    trial->op.attr.convolution.window.pad[1] = (int64_t)1 << 40;
    assert_int_equal(trial->kernel->layouts(&trial->op, &layouts, &error), LOCKSTEP_DEFINITION);
    assert_int_equal(error.count, 1);
    assert_non_null(strstr(error.problems[0].message, "window"));
    trial_free(trial);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
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
