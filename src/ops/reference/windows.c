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

/* Windows that move over x and make y: sizes by axis, and in all; unused axes have windows of 1. */
struct windows {
    struct ls_window of;
    int64_t x[AXES], y[AXES], x_points, y_points, k_points;
};

/* Positions of x and of the kernel that belong together. */
struct pair {
    int64_t x, k;
};

static struct windows make_windows(const struct ls_window *window, const struct ls_value *x,
                                   const struct ls_value *y)
{
    struct windows windows = {*window, {1, 1, 1}, {1, 1, 1}, 1, 1, 1};
    for (int a = 0; a < AXES; a++) {
        const int from = x->shape.rank - window->axes + a;
        const bool used = a < window->axes;
        windows.x_points *= windows.x[a] = used ? x->shape.dim[from] : 1;
        windows.y_points *= windows.y[a] = used ? y->shape.dim[from] : 1;
        windows.k_points *= windows.of.kernel[a] = used ? window->kernel[a] : 1;
    }
    return windows;
}

/* Where the window of position `at` of y begins. */
static void begin_window(const struct windows *windows, int64_t at, int64_t first[AXES])
{
    const struct ls_window *of = &windows->of;
    for (int a = AXES - 1; a >= 0; at /= windows->y[a--])
        first[a] = a < of->axes ? at % windows->y[a] * of->stride[a] - of->pad[a] : 0;
}

/* Lists what belongs to position `at` of y, in the order of the kernel. */
static int64_t list_pairs(const struct windows *windows, int64_t at, struct pair *pair)
{
    const struct ls_window *of = &windows->of;
    int64_t count = 0, first[AXES];
    begin_window(windows, at, first);
    for (int64_t k = 0; k < windows->k_points; k++) {
        int64_t rest = k, x = 0, step = 1;
        bool inside = true;
        for (int a = AXES - 1; a >= 0; rest /= of->kernel[a], step *= windows->x[a--]) {
            const int64_t along = rest % of->kernel[a];
            const int64_t place = first[a] + (along > 0 ? of->dilation[a] * along : 0);
            inside = inside && place >= 0 && place < windows->x[a];
            x += place * step;
        }
        if (inside)
            pair[count++] = (struct pair){x, k};
    }
    return count;
}

/* ---- Products -------------------------------------------------------------------------------- */

enum role { X, W, Y, ROLES };

/* What inputs 0 and 1 and output 0 of an op are. A deconvolution has x and y exchanged. */
static const enum role roles[LS_OP_KINDS][ROLES] = {
    [LS_OP_CONVOLUTION] = {X, W, Y},           [LS_OP_DECONVOLUTION] = {Y, W, X},
    [LS_OP_CONVOLUTION_DATA] = {Y, W, X},      [LS_OP_DECONVOLUTION_DATA] = {X, W, Y},
    [LS_OP_CONVOLUTION_WEIGHTS] = {X, Y, W},   [LS_OP_DECONVOLUTION_WEIGHTS] = {Y, X, W},
    [LS_OP_INNER_PRODUCT] = {X, W, Y},         [LS_OP_INNER_PRODUCT_DATA] = {Y, W, X},
    [LS_OP_INNER_PRODUCT_WEIGHTS] = {X, Y, W},
};

/* A pass over x [n, channels, points], w and y: the products of two are added up in the third. */
struct pass {
    enum role result;
    const float *data[ROLES];
    double *sum;
    struct ls_axes x, y;
    int64_t groups, w_out, w_in; /* steps of w from one channel of y and of x to the next */
};

static struct pass make_pass(const struct ls_call *call)
{
    const enum role *role = roles[call->op->kind];
    struct pass pass = {.result = role[2], .sum = call->sum[0], .groups = 1};
    pass.data[role[0]] = call->in[0];
    pass.data[role[1]] = call->in[1];
    return pass;
}

/* Adds up for one position of y. */
static void add_products(const struct pass *pass, int64_t position, const struct pair *pair,
                         int64_t pairs)
{
    const int64_t inputs = pass->x.dim / pass->groups, outputs = pass->y.dim / pass->groups;
    const float *x = pass->data[X], *w = pass->data[W], *y = pass->data[Y];
    double *sum = pass->sum;
    for (int64_t i = 0; i < pass->x.outer * pass->y.dim; i++) {
        const int64_t n = i / pass->y.dim, o = i % pass->y.dim, y_at = i * pass->y.inner + position;
        for (int64_t c = 0; c < inputs; c++) {
            const int64_t x_at = (n * pass->x.dim + o / outputs * inputs + c) * pass->x.inner;
            const int64_t w_at = o * pass->w_out + c * pass->w_in;
            double total = 0;
            for (int64_t p = 0; pass->result == Y && p < pairs; p++)
                total += (double)x[x_at + pair[p].x] * (double)w[w_at + pair[p].k];
            sum[pass->result == Y ? y_at : 0] += total;
            for (int64_t p = 0; pass->result == X && p < pairs; p++)
                sum[x_at + pair[p].x] += (double)y[y_at] * (double)w[w_at + pair[p].k];
            for (int64_t p = 0; pass->result == W && p < pairs; p++)
                sum[w_at + pair[p].k] += (double)y[y_at] * (double)x[x_at + pair[p].x];
        }
    }
}

/* Forward f(y + bias); to weights db, the sum of dy, which is input 1. `y` is the op's own. */
static void finish(const struct ls_call *call, const struct ls_axes *y, bool relu, float slope)
{
    const bool weights = roles[call->op->kind][2] == W;
    const float *bias = weights ? NULL : ls_in(call, 2);
    for (int64_t i = 0; i < y->outer * y->dim * y->inner; i++) {
        const int64_t c = ls_along(y, i);
        if (weights && call->sum[1] != NULL)
            call->sum[1][c] += ls_at(call, 1, i);
        if (bias != NULL)
            call->sum[0][i] += (double)bias[c];
        if (!weights && relu)
            call->sum[0][i] = ls_relu(call->sum[0][i], slope);
    }
}

static void convolution(const struct ls_call *call)
{
    const struct ls_op *op = call->op;
    const struct ls_convolution_attr *attr = &op->attr.convolution;
    const enum role *role = roles[op->kind];
    const struct ls_value *const given[] = {op->input[0], op->input[1], op->output[0]};
    const struct ls_value *value[ROLES];
    struct pass pass = make_pass(call);
    for (int k = 0; k < ROLES; k++)
        value[role[k]] = given[k];
    const struct windows windows = make_windows(&attr->window, value[X], value[Y]);
    const int axis = value[X]->shape.rank - attr->window.axes - 1; /* of channels */
    pass.x = ls_axes(value[X], axis, 1);
    pass.y = ls_axes(value[Y], axis, 1);
    pass.groups = attr->group;
    pass.w_in = windows.k_points;
    pass.w_out = pass.x.dim / attr->group * windows.k_points;
    for (int64_t at = 0; at < windows.y_points; at++)
        add_products(&pass, at, call->scratch, list_pairs(&windows, at, call->scratch));
    if (role[2] == W || op->kind == LS_OP_CONVOLUTION || op->kind == LS_OP_DECONVOLUTION)
        finish(call, role[1] == X || role[2] == X ? &pass.x : &pass.y, attr->relu,
               attr->relu_slope);
}

static void inner_product(const struct ls_call *call)
{
    static const struct pair only = {0, 0};
    const struct ls_inner_product_attr *attr = &call->op->attr.inner_product;
    struct pass pass = make_pass(call);
    pass.x = (struct ls_axes){attr->m, attr->k, 1};
    pass.y = (struct ls_axes){attr->m, attr->n, 1};
    pass.w_in = attr->transpose ? attr->n : 1;
    pass.w_out = attr->transpose ? 1 : attr->k;
    add_products(&pass, 0, &only, 1);
    if (call->op->kind != LS_OP_INNER_PRODUCT_DATA)
        finish(call, &pass.y, attr->relu, attr->relu_slope);
}

/* ---- Pooling --------------------------------------------------------------------------------- */

/* By what the average of output `at` is divided: positions of the window that lie in the padded
 * input, as Caffe counts them. */
static double pool_size(const struct windows *windows, int64_t at)
{
    double size = 1;
    int64_t first[AXES];
    begin_window(windows, at, first);
    for (int a = 0; a < windows->of.axes; a++) {
        const int64_t left = windows->x[a] + windows->of.pad[a] - first[a];
        size *= (double)(left < windows->of.kernel[a] ? left : windows->of.kernel[a]);
    }
    return size;
}

/* in: x, or dy, (index). A maximum is the first of the largest, and a NaN is none; an average
 * without numbers is 0. */
static void pooling(const struct ls_call *call)
{
    const struct ls_op *op = call->op;
    const bool backward = op->kind == LS_OP_POOLING_BACKWARD;
    const bool maximum = op->attr.pooling.method == LS_POOL_MAX;
    const struct ls_value *x = backward ? op->output[0] : op->input[0];
    const struct windows windows =
        make_windows(&op->attr.pooling.window, x, backward ? op->input[0] : op->output[0]);
    const int64_t planes = ls_shape_count(&x->shape, 0, 2);
    int32_t *index = maximum && backward ? call->in[1] : op->outputs > 1 ? call->out[1] : NULL;
    struct pair *pair = call->scratch;
    for (int64_t i = 0, pairs = 0; i < windows.y_points * planes; i++) {
        const int64_t at = i / planes, plane = i % planes, o = plane * windows.y_points + at;
        const double size = maximum ? 1 : pool_size(&windows, at);
        int64_t winner = -1;
        double sum = 0, largest = -(double)FLT_MAX;
        if (plane == 0)
            pairs = list_pairs(&windows, at, pair);
        for (int64_t p = 0; p < pairs; p++) {
            const int64_t from = plane * windows.x_points + pair[p].x;
            if (backward && (!maximum || index[o] == pair[p].x))
                call->sum[0][from] += ls_at(call, 0, o) / size;
            const double number = backward ? 0 : ls_at(call, 0, from);
            sum += number;
            winner = number > largest ? pair[p].x : winner;
            largest = number > largest ? number : largest;
        }
        if (!backward)
            call->sum[0][o] = maximum ? largest : pairs > 0 ? sum / size : 0;
        if (!backward && index != NULL)
            index[o] = (int32_t)winner;
    }
}

/* ---- The table ------------------------------------------------------------------------------- */

static size_t pair_bytes(const struct ls_op *op)
{
    const bool pools = op->kind == LS_OP_POOLING || op->kind == LS_OP_POOLING_BACKWARD;
    const struct ls_window *of = pools ? &op->attr.pooling.window : &op->attr.convolution.window;
    size_t bytes = sizeof(struct pair);
    for (int a = 0; a < of->axes; a++)
        bytes *= (size_t)of->kernel[a];
    return bytes;
}

const struct ls_compute ls_ref_windows[LS_OP_KINDS] = {
    [LS_OP_CONVOLUTION] = {.add = convolution, .scratch = pair_bytes},
    [LS_OP_CONVOLUTION_DATA] = {.add = convolution, .scratch = pair_bytes},
    [LS_OP_CONVOLUTION_WEIGHTS] = {.add = convolution, .scratch = pair_bytes},
    [LS_OP_DECONVOLUTION] = {.add = convolution, .scratch = pair_bytes},
    [LS_OP_DECONVOLUTION_DATA] = {.add = convolution, .scratch = pair_bytes},
    [LS_OP_DECONVOLUTION_WEIGHTS] = {.add = convolution, .scratch = pair_bytes},
    [LS_OP_INNER_PRODUCT] = {.add = inner_product},
    [LS_OP_INNER_PRODUCT_DATA] = {.add = inner_product},
    [LS_OP_INNER_PRODUCT_WEIGHTS] = {.add = inner_product},
    [LS_OP_POOLING] = {.add = pooling, .scratch = pair_bytes},
    [LS_OP_POOLING_BACKWARD] = {.add = pooling, .scratch = pair_bytes},
};
