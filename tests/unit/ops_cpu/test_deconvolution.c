/* Deconvolutions and their gradients against the double-precision reference of a convolution with
 * its parts exchanged, itself checked here by finite differences; the same bits per sample whatever
 * the number of samples and threads.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "convolution_trial.h"

#include <math.h>

#include "support/gradient.h"
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
static bool exchange(struct reference_convolution *c, const int size[3])
{
    for (int a = 0; a < 3; a++) {
        int extent = c->dilation[a] * (c->kernel[a] - 1) + 1;
        c->in[a] = c->stride[a] * (size[a] - 1) + extent - 2 * c->pad[a];
        if (c->in[a] < 1)
            return false;
    }
    assert_true(reference_convolution_shape(c));
    for (int a = 0; a < 3; a++)
        assert_int_equal(c->out[a], size[a]);
    return true;
}

static struct reference_convolution make_case(const struct shape_case *shape)
{
    struct reference_convolution result = {
        .n = shape->n, .c = shape->o, .o = shape->c, .group = shape->group};
    int size[3];
    set_windows(&result, shape, size);
    assert_true(exchange(&result, size));
    return result;
}

/* `slope` is that of a ReLU behind the bias; NULL: there is none. */
static struct trial *make_trial_relu(const struct ls_kernel *kernel,
                                     const struct reference_convolution *c, int axes, bool bias,
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

static struct trial *make_trial(const struct ls_kernel *kernel,
                                const struct reference_convolution *c, int axes, bool bias)
{
    return make_trial_relu(kernel, c, axes, bias, NULL);
}

/* y of the reference: [n][c][in] */
static void deconvolve(const struct reference_convolution *c, const double *x, const double *w,
                       const double *b, double *y)
{
    reference_convolution_data(c, x, w, y);
    int points = c->in[0] * c->in[1] * c->in[2];
    for (int i = 0; b != NULL && i < c->n * c->c * points; i++)
        y[i] += b[i / points % c->c];
}

/* db of the reference, [c] */
static void sum_channels(const struct reference_convolution *c, const double *dy, double *db)
{
    int points = c->in[0] * c->in[1] * c->in[2];
    for (int i = 0; i < c->c; i++)
        db[i] = 0;
    for (int i = 0; i < c->n * c->c * points; i++)
        db[i / points % c->c] += dy[i];
}

static void check_forward(const struct reference_convolution *c, int axes, bool bias,
                          const char *what)
{
    struct trial *trial = make_trial(&ls_kernel_deconvolution, c, axes, bias);
    trial_run(trial);
    double *x = trial_doubles(trial, trial->in[0]), *w = trial_doubles(trial, trial->in[1]);
    double *b = bias ? trial_doubles(trial, trial->in[2]) : NULL;
    double *y = trial_doubles(trial, trial->out[0]);
    deconvolve(c, x, w, b, y);
    trial_compare(trial, trial->out[0], y, c->o / c->group * product(c->kernel) + 1, what);
    free(x);
    free(w);
    free(b);
    free(y);
    trial_free(trial);
}

static void check_data(const struct reference_convolution *c, int axes, const char *what)
{
    struct trial *trial = make_trial(&ls_kernel_deconvolution_data, c, axes, false);
    trial_run(trial);
    double *dy = trial_doubles(trial, trial->in[0]), *w = trial_doubles(trial, trial->in[1]);
    double *dx = trial_doubles(trial, trial->out[0]);
    reference_convolution_forward(c, dy, w, NULL, 0, 0, dx);
    trial_compare(trial, trial->out[0], dx, c->c / c->group * product(c->kernel), what);
    free(dy);
    free(w);
    free(dx);
    trial_free(trial);
}

static void check_weights(const struct reference_convolution *c, int axes, bool bias,
                          const char *what)
{
    struct trial *trial = make_trial(&ls_kernel_deconvolution_weights, c, axes, bias);
    trial_run(trial);
    double *x = trial_doubles(trial, trial->in[0]), *dy = trial_doubles(trial, trial->in[1]);
    double *dw = trial_doubles(trial, trial->out[0]);
    reference_convolution_weights(c, dy, x, dw, NULL);
    trial_compare(trial, trial->out[0], dw, c->n * product(c->out), what);
    if (bias) {
        double *db = trial_doubles(trial, trial->out[1]);
        sum_channels(c, dy, db);
        trial_compare(trial, trial->out[1], db, c->n * product(c->in), what);
        free(db);
    }
    free(x);
    free(dy);
    free(dw);
    trial_free(trial);
}

static void check_all(const struct reference_convolution *c, int axes, bool bias, const char *what)
{
    check_forward(c, axes, bias, what);
    check_data(c, axes, what);
    check_weights(c, axes, bias, what);
}

static void named_shapes(void **state)
{
    (void)state;
    for (size_t i = 0; i < NAMED; i++) {
        struct reference_convolution c = make_case(&named_cases[i]);
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
static bool random_case(uint64_t round, struct reference_convolution *c, int *axes)
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
        struct reference_convolution c;
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
    struct reference_convolution c = make_case(&many);
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
    struct reference_convolution c = make_case(shape);
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
        struct reference_convolution c = make_case(&named_cases[i]);
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
        struct reference_convolution c = make_case(&named_cases[i]);
        for (int k = 0; k < 3; k++) {
            struct trial *trial = make_trial(kernels[k], &c, named_cases[i].axes, true);
            if (strstr(trial->prepared.implementation, "ref") != NULL)
                fail_msg("%s: %s is done by %s", named_cases[i].name, kernels[k]->name,
                         trial->prepared.implementation);
            trial_free(trial);
        }
    }
}

/* ---- The reference ---- */

struct slope {
    const struct reference_convolution *c;
    const double *x, *w, *dy;
    double *y;
};

static double loss(const struct slope *slope, const double *x, const double *w)
{
    double sum = 0;
    deconvolve(slope->c, x, w, NULL, slope->y);
    for (int i = 0; i < slope->c->n * slope->c->c * (int)product(slope->c->in); i++)
        sum += slope->y[i] * slope->dy[i];
    return sum;
}

static double of_data(const double *x, void *data)
{
    const struct slope *slope = data;
    return loss(slope, x, slope->w);
}

static double of_weights(const double *w, void *data)
{
    const struct slope *slope = data;
    return loss(slope, slope->x, w);
}

static double *random_doubles(uint64_t salt, size_t count)
{
    double *result = malloc(count * sizeof *result);
    assert_non_null(result);
    for (size_t i = 0; i < count; i++)
        result[i] = 2 * (double)ls_random_uniform(salt, 5, i) - 1;
    return result;
}

static void reference_has_slopes(void **state)
{
    static const struct shape_case shape = {"", 2, 2, 4, 6, 2, 3, 3, 2, 1, 2};
    (void)state;
    struct reference_convolution c = make_case(&shape);
    size_t xs = (size_t)(c.n * c.o) * (size_t)product(c.out);
    size_t ys = (size_t)(c.n * c.c) * (size_t)product(c.in);
    size_t ws = (size_t)(c.o * c.c / c.group) * (size_t)product(c.kernel);
    double *x = random_doubles(1, xs), *w = random_doubles(2, ws), *dy = random_doubles(3, ys);
    double *dx = random_doubles(4, xs), *dw = random_doubles(5, ws), *y = random_doubles(6, ys);
    struct slope slope = {&c, x, w, dy, y};
    reference_convolution_forward(&c, dy, w, NULL, 0, 0, dx);
    reference_convolution_weights(&c, dy, x, dw, NULL);
    check_gradient(of_data, &slope, x, xs, dx, 1e-7, "by data");
    check_gradient(of_weights, &slope, w, ws, dw, 1e-7, "by weights");
    double *const all[] = {x, w, dy, dx, dw, y};
    for (int i = 0; i < 6; i++)
        free(all[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reference_has_slopes), cmocka_unit_test(named_shapes),
        cmocka_unit_test(random_shapes),        cmocka_unit_test(bits_of_a_sample),
        cmocka_unit_test(threads_at_once),      cmocka_unit_test(nothing_is_a_reference),
        cmocka_unit_test(relu_behind_the_bias),
    };
    return trial_main(tests);
}
