/* Products and windows: convolution, deconvolution, inner products, pooling, in all their passes.
 *
 * Along each axis a position i of x, o of y and k of the kernel belong together where
 *
 *     i = stride o + dilation k - pad
 *
 * and a pass of a convolution adds up the products of two of x, w and y in the third, over all
 * positions that do. So one loop is all passes. A deconvolution is a convolution with x and y
 * exchanged.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <float.h>

#include "ops/reference/reference.h"

enum { AXES = 3 };

/* Windows of the shape of `k` that move over x and make y. */
struct windows {
    const struct ls_window *window;
    int64_t x[AXES], y[AXES], k[AXES]; /* sizes by axis, and in all: */
    int64_t x_points, y_points, k_points;
};

/* Positions of x and of the kernel that belong together. */
struct pair {
    int64_t x, k;
};

static int64_t set_size(int axes, const int64_t *dim, int64_t size[AXES])
{
    int64_t points = 1;
    for (int a = 0; a < AXES; a++)
        points *= size[a] = a < axes ? dim[a] : 1;
    return points;
}

static struct windows make_windows(const struct ls_window *window, const struct ls_value *x,
                                   const struct ls_value *y)
{
    struct windows windows = {.window = window};
    const int axes = window->axes;
    windows.x_points = set_size(axes, x->shape.dim + x->shape.rank - axes, windows.x);
    windows.y_points = set_size(axes, y->shape.dim + y->shape.rank - axes, windows.y);
    windows.k_points = set_size(axes, window->kernel, windows.k);
    return windows;
}

/* Lists what belongs to position `at` of y, in the order of the kernel. */
static int64_t list_pairs(const struct windows *windows, int64_t at, struct pair *pair)
{
    const struct ls_window *window = windows->window;
    int64_t count = 0, first[AXES] = {0};
    for (int a = AXES - 1; a >= 0; at /= windows->y[a--])
        if (a < window->axes)
            first[a] = at % windows->y[a] * window->stride[a] - window->pad[a];
    for (int64_t k = 0; k < windows->k_points; k++) {
        int64_t rest = k, x = 0, step = 1;
        bool inside = true;
        for (int a = AXES - 1; a >= 0; rest /= windows->k[a], step *= windows->x[a--]) {
            int64_t dilation = a < window->axes ? window->dilation[a] : 1;
            int64_t place = first[a] + dilation * (rest % windows->k[a]);
            inside = inside && place >= 0 && place < windows->x[a];
            x += place * step;
        }
        if (inside)
            pair[count++] = (struct pair){x, k};
    }
    return count;
}

/* ---- Products -------------------------------------------------------------------------------- */

/* Of x, w and y one is the result of a pass; the products of the others are added to it, in double
 * and in scratch. A pass goes forward (w and x make y), to data, or to weights. */
enum role { X, W, Y, ROLES };

struct pass {
    enum role result;
    bool ends; /* with bias and ReLU */
    const struct ls_value *value[ROLES];
    const float *data[ROLES];
    float *out;
    double *sum;
};

/* in: x or dy, w; or x, dy. A deconvolution has x and y exchanged. */
static struct pass make_pass(const struct ls_ref_call *call, bool weights, bool data,
                             bool exchanged)
{
    const enum role x = exchanged ? Y : X, y = exchanged ? X : Y;
    struct pass pass = {.result = weights ? W
                                  : data  ? x
                                          : y,
                        .ends = !weights && !data,
                        .out = call->out[0],
                        .sum = call->scratch};
    const enum role in[2] = {data ? y : x, weights ? y : W};
    for (int k = 0; k < 2; k++) {
        pass.value[in[k]] = call->op->input[k];
        pass.data[in[k]] = call->in[k];
    }
    pass.value[pass.result] = call->op->output[0];
    for (int64_t i = 0; i < ls_ref_size(call->op->output[0]); i++)
        pass.sum[i] = 0;
    return pass;
}

/* Rounds the result, forward y = f(y + bias); to weights also db, the sum of dy by channel. */
static void finish(const struct ls_ref_call *call, const struct pass *pass,
                   const struct ls_ref_split *y, bool relu, float slope)
{
    const float *bias = pass->ends ? ls_ref_in(call, 2) : NULL;
    float *db = call->op->outputs > 1 ? call->out[1] : NULL;
    for (int64_t i = 0; i < ls_ref_size(call->op->output[0]); i++) {
        double z = pass->sum[i] + (bias != NULL ? (double)bias[ls_ref_along(y, i)] : 0);
        pass->out[i] = (float)(relu && pass->ends ? ls_ref_relu(z, slope) : z);
    }
    for (int64_t c = 0; db != NULL && c < y->dim; c++) {
        double sum = 0;
        for (int64_t i = 0; i < y->outer * y->inner; i++)
            sum += ls_ref_at(call, 1, (i / y->inner * y->dim + c) * y->inner + i % y->inner);
        db[c] = (float)sum;
    }
}

/* Adds up, for one position of y, all samples, groups and channels. */
static void add_position(const struct pass *pass, const struct windows *windows, int64_t position,
                         const struct pair *pair, int64_t pairs, const struct ls_ref_split *x,
                         const struct ls_ref_split *y, int64_t groups)
{
    const enum role first = (pass->result + 1) % ROLES, second = (pass->result + 2) % ROLES;
    const float *a = pass->data[first], *b = pass->data[second];
    const int64_t inputs = x->dim / groups, outputs = y->dim / groups;
    for (int64_t i = 0; i < x->outer * y->dim * inputs; i++) {
        const int64_t n = i / inputs / y->dim, o = i / inputs % y->dim, c = i % inputs;
        const int64_t x_at = (n * x->dim + o / outputs * inputs + c) * windows->x_points;
        const int64_t w_at = (o * inputs + c) * windows->k_points;
        int64_t at[ROLES] = {[Y] = (n * y->dim + o) * windows->y_points + position};
        for (int64_t p = 0; p < pairs; p++) {
            at[X] = x_at + pair[p].x;
            at[W] = w_at + pair[p].k;
            pass->sum[at[pass->result]] += (double)a[at[first]] * (double)b[at[second]];
        }
    }
}

static void convolve(const struct ls_ref_call *call, bool weights, bool data, bool exchanged)
{
    const struct ls_convolution_attr *attr = &call->op->attr.convolution;
    const struct pass pass = make_pass(call, weights, data, exchanged);
    const struct windows windows = make_windows(&attr->window, pass.value[X], pass.value[Y]);
    const int axis = pass.value[X]->shape.rank - attr->window.axes - 1; /* of channels */
    const struct ls_ref_split x = ls_ref_split(pass.value[X], axis, 1);
    const struct ls_ref_split y = ls_ref_split(pass.value[Y], axis, 1);
    struct pair *pair = (struct pair *)(pass.sum + ls_ref_size(call->op->output[0]));
    for (int64_t at = 0; at < windows.y_points; at++)
        add_position(&pass, &windows, at, pair, list_pairs(&windows, at, pair), &x, &y,
                     attr->group);
    finish(call, &pass, exchanged ? &x : &y, attr->relu, attr->relu_slope);
}

static void convolution(const struct ls_ref_call *call)
{
    const enum ls_op_kind kind = call->op->kind;
    const bool exchanged = kind == LS_OP_DECONVOLUTION || kind == LS_OP_DECONVOLUTION_DATA ||
                           kind == LS_OP_DECONVOLUTION_WEIGHTS;
    convolve(call, kind == LS_OP_CONVOLUTION_WEIGHTS || kind == LS_OP_DECONVOLUTION_WEIGHTS,
             kind == LS_OP_CONVOLUTION_DATA || kind == LS_OP_DECONVOLUTION_DATA, exchanged);
}

static void inner_product(const struct ls_ref_call *call)
{
    const struct ls_inner_product_attr *attr = &call->op->attr.inner_product;
    const struct pass pass = make_pass(call, call->op->kind == LS_OP_INNER_PRODUCT_WEIGHTS,
                                       call->op->kind == LS_OP_INNER_PRODUCT_DATA, false);
    const enum role first = (pass.result + 1) % ROLES, second = (pass.result + 2) % ROLES;
    const struct ls_ref_split y = {attr->m, attr->n, 1};
    const float *a = pass.data[first], *b = pass.data[second];
    for (int64_t i = 0; i < attr->m * attr->n; i++) {
        const int64_t m = i / attr->n, n = i % attr->n;
        for (int64_t k = 0; k < attr->k; k++) {
            const int64_t at[ROLES] = {[X] = m * attr->k + k,
                                       [W] = attr->transpose ? k * attr->n + n : n * attr->k + k,
                                       [Y] = i};
            pass.sum[at[pass.result]] += (double)a[at[first]] * (double)b[at[second]];
        }
    }
    finish(call, &pass, &y, attr->relu, attr->relu_slope);
}

/* ---- Pooling --------------------------------------------------------------------------------- */

/* By what the average of output `at` is divided: positions of the window that lie in the padded
 * input, as Caffe counts them. */
static double pool_size(const struct windows *windows, int64_t at)
{
    const struct ls_window *window = windows->window;
    double size = 1;
    for (int a = window->axes - 1; a >= 0; at /= windows->y[a--]) {
        int64_t first = at % windows->y[a] * window->stride[a] - window->pad[a];
        int64_t behind = first + window->kernel[a], padded = windows->x[a] + window->pad[a];
        size *= (double)((behind < padded ? behind : padded) - first);
    }
    return size;
}

/* A maximum is the first of the largest, and a NaN is none; an average without numbers is 0. */
static void pooling(const struct ls_ref_call *call)
{
    const struct ls_pooling_attr *attr = &call->op->attr.pooling;
    const struct windows windows =
        make_windows(&attr->window, call->op->input[0], call->op->output[0]);
    const int64_t planes = ls_shape_count(&call->op->input[0]->shape, 0, 2);
    int32_t *index = call->op->outputs > 1 ? call->out[1] : NULL;
    struct pair *pair = call->scratch;
    for (int64_t i = 0; i < windows.y_points * planes; i++) {
        const int64_t at = i / planes, plane = i % planes, to = plane * windows.y_points + at;
        const int64_t pairs = list_pairs(&windows, at, pair);
        int64_t winner = -1;
        double sum = 0, largest = -(double)FLT_MAX;
        for (int64_t p = 0; p < pairs; p++) {
            const double x = ls_ref_at(call, 0, plane * windows.x_points + pair[p].x);
            sum += x;
            winner = x > largest ? pair[p].x : winner;
            largest = x > largest ? x : largest;
        }
        if (attr->method == LS_POOL_AVERAGE)
            largest = pairs > 0 ? sum / pool_size(&windows, at) : 0;
        ((float *)call->out[0])[to] = (float)largest;
        if (index != NULL)
            index[to] = (int32_t)winner;
    }
}

/* in: dy, (index). */
static void pooling_backward(const struct ls_ref_call *call)
{
    const struct ls_pooling_attr *attr = &call->op->attr.pooling;
    const struct ls_value *dx = call->op->output[0], *dy = call->op->input[0];
    const struct windows windows = make_windows(&attr->window, dx, dy);
    double *sum = call->scratch;
    struct pair *pair = (struct pair *)(sum + ls_ref_size(dx));
    for (int64_t i = 0; i < ls_ref_size(dx); i++)
        sum[i] = 0;
    for (int64_t i = 0; i < ls_ref_size(dy); i++) {
        const int64_t at = i % windows.y_points, plane = i / windows.y_points * windows.x_points;
        const int64_t pairs = list_pairs(&windows, at, pair);
        const bool largest = attr->method == LS_POOL_MAX;
        const double size = largest ? 1 : pool_size(&windows, at);
        for (int64_t p = 0; p < pairs; p++)
            if (!largest || ((const int32_t *)call->in[1])[i] == pair[p].x)
                sum[plane + pair[p].x] += ls_ref_at(call, 0, i) / size;
    }
    for (int64_t i = 0; i < ls_ref_size(dx); i++)
        ((float *)call->out[0])[i] = (float)sum[i];
}

/* ---- The table ------------------------------------------------------------------------------- */

/* The result in double, and pairs of the positions of a kernel. */
static size_t scratch_bytes(const struct ls_op *op)
{
    const bool pools = op->kind == LS_OP_POOLING || op->kind == LS_OP_POOLING_BACKWARD;
    const struct ls_window *window =
        pools ? &op->attr.pooling.window : &op->attr.convolution.window;
    int64_t points[AXES];
    return (size_t)ls_ref_size(op->output[0]) * sizeof(double) +
           (size_t)set_size(window->axes, window->kernel, points) * sizeof(struct pair);
}

const struct ls_ref_compute ls_ref_windows[LS_OP_KINDS] = {
    [LS_OP_CONVOLUTION] = {.run = convolution, .scratch = scratch_bytes},
    [LS_OP_CONVOLUTION_DATA] = {.run = convolution, .scratch = scratch_bytes},
    [LS_OP_CONVOLUTION_WEIGHTS] = {.run = convolution, .scratch = scratch_bytes},
    [LS_OP_DECONVOLUTION] = {.run = convolution, .scratch = scratch_bytes},
    [LS_OP_DECONVOLUTION_DATA] = {.run = convolution, .scratch = scratch_bytes},
    [LS_OP_DECONVOLUTION_WEIGHTS] = {.run = convolution, .scratch = scratch_bytes},
    [LS_OP_INNER_PRODUCT] = {.run = inner_product, .scratch = ls_ref_output_doubles},
    [LS_OP_INNER_PRODUCT_DATA] = {.run = inner_product, .scratch = ls_ref_output_doubles},
    [LS_OP_INNER_PRODUCT_WEIGHTS] = {.run = inner_product, .scratch = ls_ref_output_doubles},
    [LS_OP_POOLING] = {.run = pooling, .scratch = scratch_bytes},
    [LS_OP_POOLING_BACKWARD] = {.run = pooling_backward, .scratch = scratch_bytes},
};
