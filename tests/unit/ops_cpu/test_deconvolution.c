/* Deconvolutions and their gradients against the double-precision reference of a convolution with
 * its parts exchanged, itself checked here by finite differences; the same bits per sample whatever
 * the number of samples and threads.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/convolution_trial.h"

#include <math.h>

#include "support/support.h"

static const struct shape_case named_cases[] = {
    {"twice as large", 2, 2, 32, 16, 1, 7, 4, 2, 1, 1},
    {"twice as large, odd kernel", 2, 2, 32, 32, 1, 6, 3, 2, 1, 1},
    {"kernel as large as the stride", 2, 2, 64, 32, 1, 5, 2, 2, 0, 1},
    {"stride beyond the kernel", 2, 2, 16, 16, 1, 5, 2, 3, 0, 1},
    {"stride 1", 2, 2, 20, 24, 1, 8, 3, 1, 1, 1},
    {"one by one", 2, 2, 24, 40, 1, 6, 1, 1, 0, 1},
    {"to a picture", 2, 2, 32, 3, 1, 8, 4, 2, 1, 1},
    {"to one channel", 2, 2, 16, 1, 1, 8, 4, 2, 1, 1},
    {"from one channel", 2, 3, 1, 16, 1, 8, 4, 2, 1, 1},
    {"from one position", 2, 3, 20, 33, 1, 1, 4, 1, 0, 1},
    {"two classes", 2, 2, 2, 2, 1, 9, 4, 2, 1, 1},
    {"ten classes", 2, 3, 10, 10, 1, 9, 4, 2, 1, 1},
    {"21 classes", 2, 2, 21, 21, 1, 5, 4, 2, 0, 1},
    {"21 classes, 8 times", 2, 1, 21, 21, 1, 4, 16, 8, 4, 1},
    {"padded beyond the kernel", 2, 2, 6, 18, 1, 9, 3, 1, 4, 1},
    {"dilated", 2, 2, 20, 16, 1, 6, 3, 1, 2, 2},
    {"dilated, strided", 2, 2, 16, 16, 1, 6, 3, 2, 1, 3},
    {"two groups", 2, 2, 32, 64, 2, 6, 4, 2, 1, 1},
    {"two groups of 8", 2, 2, 16, 16, 2, 6, 3, 2, 1, 1},
    {"five small groups", 2, 2, 20, 10, 5, 6, 4, 2, 1, 1},
    {"each channel twice as large", 2, 2, 32, 32, 32, 7, 4, 2, 1, 1},
    {"21 channels twice as large", 2, 2, 21, 21, 21, 6, 4, 2, 0, 1},
    {"21 channels 8 times", 2, 1, 21, 21, 21, 4, 16, 8, 4, 1},
    {"two channels three times", 2, 2, 2, 2, 2, 5, 5, 3, 1, 1},
    {"each channel to two", 2, 2, 8, 16, 8, 6, 4, 2, 1, 1},
    {"each channel, dilated", 2, 2, 16, 16, 16, 6, 3, 1, 1, 2},
    {"one axis", 1, 3, 20, 24, 1, 15, 5, 2, 2, 1},
    {"one axis, each channel", 1, 3, 20, 20, 20, 15, 4, 2, 1, 1},
    {"three axes", 3, 2, 16, 20, 1, 4, 3, 2, 1, 1},
    {"three axes, each channel", 3, 2, 6, 6, 6, 4, 4, 2, 1, 1},
};
enum { NAMED = sizeof named_cases / sizeof *named_cases };

/* The convolution that leads from y back to x: c of it are y's channels, o are x's. False where y
 * would be empty. */
static bool exchange(struct convolution_size *c, const int size[3])
{
    for (int a = 0; a < 3; a++) {
        int extent = c->dilation[a] * (c->kernel[a] - 1) + 1;
        c->in[a] = c->stride[a] * (size[a] - 1) + extent - 2 * c->pad[a];
        if (c->in[a] < 1)
            return false;
    }
    assert_true(set_extents(c));
    for (int a = 0; a < 3; a++)
        assert_int_equal(c->out[a], size[a]);
    return true;
}

static struct convolution_size make_case(const struct shape_case *shape)
{
    struct convolution_size result = {
        .n = shape->n, .c = shape->o, .o = shape->c, .group = shape->group};
    int size[3];
    set_windows(&result, shape, size);
    assert_true(exchange(&result, size));
    return result;
}

/* `slope` is that of a ReLU behind the bias; NULL: there is none. */
static struct trial *make_trial_relu(const struct ls_kernel *kernel,
                                     const struct convolution_size *c, int axes, bool bias,
                                     const float *slope)
{
    struct trial *trial = trial_new(kernel);
    struct ls_shape x = tensor_shape(c->n, c->o, c->out, axes);
    struct ls_shape y = tensor_shape(c->n, c->c, c->in, axes);
    struct ls_shape w = tensor_shape(c->o, c->c / c->group, c->kernel, axes);
    struct ls_shape b = {.rank = 1, .dim = {c->c}};
    set_attributes(&trial->op.attr.convolution, c, axes, bias);
    trial->op.attr.convolution.relu = slope != NULL;
    trial->op.attr.convolution.relu_slope = slope != NULL ? *slope : 0;
    enum trial_pass pass = kernel->kind == LS_OP_DECONVOLUTION        ? TRIAL_FORWARD
                           : kernel->kind == LS_OP_DECONVOLUTION_DATA ? TRIAL_DATA
                                                                      : TRIAL_WEIGHTS;
    add_tensors(trial, pass, &x, &y, &w, bias ? &b : NULL);
    trial_prepare(trial);
    return trial;
}

static struct trial *make_trial(const struct ls_kernel *kernel, const struct convolution_size *c,
                                int axes, bool bias)
{
    return make_trial_relu(kernel, c, axes, bias, NULL);
}

static void check_forward(const struct convolution_size *c, int axes, bool bias, const char *what)
{
    struct trial *trial = make_trial(&ls_kernel_deconvolution, c, axes, bias);
    trial_run(trial);
    trial_near_reference(trial, (double[2]){c->o / c->group * product(c->kernel) + 1}, what);
    trial_free(trial);
}

static void check_data(const struct convolution_size *c, int axes, const char *what)
{
    struct trial *trial = make_trial(&ls_kernel_deconvolution_data, c, axes, false);
    trial_run(trial);
    trial_near_reference(trial, (double[2]){c->c / c->group * product(c->kernel)}, what);
    trial_free(trial);
}

static void check_weights(const struct convolution_size *c, int axes, bool bias, const char *what)
{
    struct trial *trial = make_trial(&ls_kernel_deconvolution_weights, c, axes, bias);
    trial_run(trial);
    trial_near_reference(trial, (double[2]){c->n * product(c->out), c->n * product(c->in)}, what);
    trial_free(trial);
}

static void check_all(const struct convolution_size *c, int axes, bool bias, const char *what)
{
    check_forward(c, axes, bias, what);
    check_data(c, axes, what);
    check_weights(c, axes, bias, what);
}

static void named_shapes(void **state)
{
    (void)state;
    for (size_t i = 0; i < NAMED; i++) {
        struct convolution_size c = make_case(&named_cases[i]);
        check_all(&c, named_cases[i].axes, i % 3 != 1, named_cases[i].name);
    }
}

static int pick(uint64_t round, int *draw, const int *from, size_t count)
{
    return from[ls_random_below(78, round, (uint64_t)(*draw)++, (uint32_t)count)];
}
#define PICK(...)                                                                                  \
    pick(round, &draw, (const int[]){__VA_ARGS__}, sizeof((const int[]){__VA_ARGS__}) / sizeof(int))

/* False where the shape has no output. */
static bool random_case(uint64_t round, struct convolution_size *c, int *axes)
{
    int draw = 0, size[3];
    int group = PICK(1, 1, 1, 2, 3, 5);
    *axes = PICK(1, 2, 2, 2, 3);
    c->group = group;
    c->n = PICK(1, 2, 3);
    c->c = group * PICK(1, 1, 3, 4, 8, 10, 16, 20);
    c->o = group * PICK(1, 1, 3, 6, 8, 10, 16, 33);
    for (int a = 0; a < 3; a++) {
        bool used = a < *axes;
        size[a] = used ? PICK(1, 2, 3, 5, 6) : 1;
        c->kernel[a] = used ? PICK(1, 2, 3, 3, 4, 5) : 1;
        c->stride[a] = used ? PICK(1, 2, 2, 3) : 1;
        c->pad[a] = used ? PICK(0, 0, 1, 2) : 0;
        c->dilation[a] = used ? PICK(1, 1, 1, 2, 3) : 1;
    }
    return exchange(c, size);
}

static void random_shapes(void **state)
{
    (void)state;
    int done = 0;
    for (uint64_t round = 0; done < 80; round++) {
        struct convolution_size c;
        int axes;
        char what[256];
        if (!random_case(round, &c, &axes))
            continue;
        snprintf(what, sizeof what,
                 "%d axes, %d x %d -> %d, group %d, in %dx%dx%d, kernel %dx%dx%d, stride %d %d %d, "
                 "pad %d %d %d, dilation %d %d %d",
                 axes, c.n, c.o, c.c, c.group, c.out[0], c.out[1], c.out[2], c.kernel[0],
                 c.kernel[1], c.kernel[2], c.stride[0], c.stride[1], c.stride[2], c.pad[0],
                 c.pad[1], c.pad[2], c.dilation[0], c.dilation[1], c.dilation[2]);
        check_all(&c, axes, round % 2, what);
        done++;
    }
}

/* Forward and gradient by data: a sample's bits do not depend on how many come with it, and its
 * layouts do not either. */
static void check_samples(const struct ls_kernel *kernel, const struct shape_case *shape)
{
    static const int counts[] = {1, 2, 5, 8};
    struct shape_case many = *shape;
    many.n = 9;
    struct convolution_size c = make_case(&many);
    struct trial *all = make_trial(kernel, &c, shape->axes, true);
    trial_run(all);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        c.n = counts[i];
        struct trial *some = make_trial(kernel, &c, shape->axes, true);
        trial_run(some);
        compare_samples(all, some, c.n, shape->name);
        trial_free(some);
    }
    trial_free(all);
}

static void bits_of_a_sample(void **state)
{
    (void)state;
    for (size_t i = 0; i < NAMED; i++) {
        check_samples(&ls_kernel_deconvolution, &named_cases[i]);
        check_samples(&ls_kernel_deconvolution_data, &named_cases[i]);
    }
}

/* A ReLU behind the bias has the bits of one that is an op of its own. */
static void check_relu(const struct shape_case *shape, float slope)
{
    struct convolution_size c = make_case(shape);
    struct trial *bare = make_trial(&ls_kernel_deconvolution, &c, shape->axes, true);
    struct trial *with = make_trial_relu(&ls_kernel_deconvolution, &c, shape->axes, true, &slope);
    trial_run(bare);
    trial_run(with);
    size_t count = (size_t)ls_shape_size(&bare->out[0]->shape), below = 0;
    float *y = bare->plain[bare->out[0]->index];
    for (size_t i = 0; i < count; i++) {
        below += y[i] < 0;
        y[i] = y[i] < 0 ? slope == 0 ? 0 : slope * y[i] : y[i];
    }
    assert_true(count < 50 || (below > 0 && below < count));
    if (memcmp(y, with->plain[with->out[0]->index], count * sizeof *y) != 0)
        fail_msg("%s: a ReLU with slope %g has other bits", shape->name, (double)slope);
    trial_free(bare);
    trial_free(with);
}

static void relu_behind_the_bias(void **state)
{
    (void)state;
    for (size_t i = 0; i < NAMED; i++) {
        check_relu(&named_cases[i], 0);
        check_relu(&named_cases[i], 0.3F);
    }
}

static const struct ls_kernel *const kernels[] = {
    &ls_kernel_deconvolution, &ls_kernel_deconvolution_data, &ls_kernel_deconvolution_weights};

static void threads_at_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < NAMED; i++) {
        struct convolution_size c = make_case(&named_cases[i]);
        struct trial *trial = make_trial(kernels[i % 3], &c, named_cases[i].axes, true);
        trial_run(trial);
        trial_concurrently(trial);
        trial_free(trial);
    }
}

/* No shape of those above may need a reference path, and the weights lie in one layout for the
 * pass forward and for their gradient where there are blocks. */
static void nothing_is_a_reference(void **state)
{
    (void)state;
    for (size_t i = 0; i < NAMED; i++) {
        struct convolution_size c = make_case(&named_cases[i]);
        for (int k = 0; k < 3; k++) {
            struct trial *trial = make_trial(kernels[k], &c, named_cases[i].axes, true);
            if (strstr(trial->prepared.implementation, "ref") != NULL)
                fail_msg("%s: %s is done by %s", named_cases[i].name, kernels[k]->name,
                         trial->prepared.implementation);
            trial_free(trial);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(named_shapes),           cmocka_unit_test(random_shapes),
        cmocka_unit_test(bits_of_a_sample),       cmocka_unit_test(threads_at_once),
        cmocka_unit_test(nothing_is_a_reference), cmocka_unit_test(relu_behind_the_bias),
    };
    return trial_main(tests);
}
