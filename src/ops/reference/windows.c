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

#include "ops/reference/windows.h"

enum { AXES = LS_REF_AXES };

struct ls_ref_windows ls_ref_windows_of(const struct ls_window *window, const struct ls_value *x,
                                        const struct ls_value *y)
{
    struct ls_ref_windows windows = {*window, {1, 1, 1}, {1, 1, 1}, 1, 1, 1};
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
static void begin_window(const struct ls_ref_windows *windows, int64_t at, int64_t first[AXES])
{
    const struct ls_window *of = &windows->of;
    for (int a = AXES - 1; a >= 0; at /= windows->y[a--])
        first[a] = a < of->axes ? at % windows->y[a] * of->stride[a] - of->pad[a] : 0;
}

int64_t ls_ref_list_pairs(const struct ls_ref_windows *windows, int64_t at,
                          struct ls_ref_pair *pair)
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
            pair[count++] = (struct ls_ref_pair){x, k};
    }
    return count;
}

/* ---- Products -------------------------------------------------------------------------------- */

enum { ROLES = LS_REF_ROLES };

#define ARE(first, second, result)                                                                 \
    {                                                                                              \
        LS_REF_##first, LS_REF_##second, LS_REF_##result                                           \
    }

const enum ls_ref_role ls_ref_roles[LS_OP_KINDS][LS_REF_ROLES] = {
    [LS_OP_CONVOLUTION] = ARE(X, W, Y),           [LS_OP_DECONVOLUTION] = ARE(Y, W, X),
    [LS_OP_CONVOLUTION_DATA] = ARE(Y, W, X),      [LS_OP_DECONVOLUTION_DATA] = ARE(X, W, Y),
    [LS_OP_CONVOLUTION_WEIGHTS] = ARE(X, Y, W),   [LS_OP_DECONVOLUTION_WEIGHTS] = ARE(Y, X, W),
    [LS_OP_INNER_PRODUCT] = ARE(X, W, Y),         [LS_OP_INNER_PRODUCT_DATA] = ARE(Y, W, X),
    [LS_OP_INNER_PRODUCT_WEIGHTS] = ARE(X, Y, W),
};

static struct ls_ref_product convolution_of(const struct ls_op *op)
{
    const struct ls_convolution_attr *attr = &op->attr.convolution;
    const enum ls_ref_role *role = ls_ref_roles[op->kind];
    const struct ls_value *const given[] = {op->input[0], op->input[1], op->output[0]};
    const struct ls_value *value[ROLES];
    for (int k = 0; k < ROLES; k++)
        value[role[k]] = given[k];
    const int axis = value[LS_REF_X]->shape.rank - attr->window.axes - 1; /* of channels */
    struct ls_ref_product product = {
        .windows = ls_ref_windows_of(&attr->window, value[LS_REF_X], value[LS_REF_Y]),
        .x = ls_axes(value[LS_REF_X], axis, 1),
        .y = ls_axes(value[LS_REF_Y], axis, 1),
        .groups = attr->group,
    };
    product.w_in = product.windows.k_points;
    product.w_out = product.x.dim / attr->group * product.w_in;
    return product;
}

struct ls_ref_product ls_ref_product_of(const struct ls_op *op)
{
    const struct ls_inner_product_attr *attr = &op->attr.inner_product;
    if (op->kind != LS_OP_INNER_PRODUCT && op->kind != LS_OP_INNER_PRODUCT_DATA &&
        op->kind != LS_OP_INNER_PRODUCT_WEIGHTS)
        return convolution_of(op);
    return (struct ls_ref_product){
        .windows = {.x = {1, 1, 1},
                    .y = {1, 1, 1},
                    .of = {.kernel = {1, 1, 1}},
                    .x_points = 1,
                    .y_points = 1,
                    .k_points = 1},
        .x = {attr->m, attr->k, 1},
        .y = {attr->m, attr->n, 1},
        .groups = 1,
        .w_in = attr->transpose ? attr->n : 1,
        .w_out = attr->transpose ? 1 : attr->k,
    };
}

/* A pass over x, w and y: the products of two are added up in the third. */
struct pass {
    struct ls_ref_product of;
    enum ls_ref_role result;
    const float *data[ROLES];
    double *sum;
};

static struct pass make_pass(const struct ls_call *call)
{
    const enum ls_ref_role *role = ls_ref_roles[call->op->kind];
    struct pass pass = {.of = ls_ref_product_of(call->op), .result = role[2], .sum = call->sum[0]};
    pass.data[role[0]] = call->in[0];
    pass.data[role[1]] = call->in[1];
    return pass;
}

/* Adds up for one position of y. */
static void add_products(const struct pass *pass, int64_t position, const struct ls_ref_pair *pair,
                         int64_t pairs)
{
    const struct ls_axes x_of = pass->of.x, y_of = pass->of.y;
    const int64_t inputs = x_of.dim / pass->of.groups, outputs = y_of.dim / pass->of.groups;
    const float *x = pass->data[LS_REF_X], *w = pass->data[LS_REF_W], *y = pass->data[LS_REF_Y];
    double *sum = pass->sum;
    for (int64_t i = 0; i < x_of.outer * y_of.dim; i++) {
        const int64_t n = i / y_of.dim, o = i % y_of.dim, y_at = i * y_of.inner + position;
        for (int64_t c = 0; c < inputs; c++) {
            const int64_t x_at = (n * x_of.dim + o / outputs * inputs + c) * x_of.inner;
            const int64_t w_at = o * pass->of.w_out + c * pass->of.w_in;
            double total = 0;
            for (int64_t p = 0; pass->result == LS_REF_Y && p < pairs; p++)
                total += (double)x[x_at + pair[p].x] * (double)w[w_at + pair[p].k];
            sum[pass->result == LS_REF_Y ? y_at : 0] += total;
            for (int64_t p = 0; pass->result == LS_REF_X && p < pairs; p++)
                sum[x_at + pair[p].x] += (double)y[y_at] * (double)w[w_at + pair[p].k];
            for (int64_t p = 0; pass->result == LS_REF_W && p < pairs; p++)
                sum[w_at + pair[p].k] += (double)y[y_at] * (double)x[x_at + pair[p].x];
        }
    }
}

/* Forward f(y + bias); to weights db, the sum of dy, which is input 1. `y` is the op's own. */
static void finish(const struct ls_call *call, const struct ls_axes *y, bool relu, float slope)
{
    const bool weights = ls_ref_roles[call->op->kind][2] == LS_REF_W;
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
    const enum ls_ref_role *role = ls_ref_roles[op->kind];
    const struct pass pass = make_pass(call);
    const struct ls_ref_windows *windows = &pass.of.windows;
    for (int64_t at = 0; at < windows->y_points; at++)
        add_products(&pass, at, call->scratch, ls_ref_list_pairs(windows, at, call->scratch));
    if (role[2] == LS_REF_W || op->kind == LS_OP_CONVOLUTION || op->kind == LS_OP_DECONVOLUTION)
        finish(call, role[1] == LS_REF_X || role[2] == LS_REF_X ? &pass.of.x : &pass.of.y,
               attr->relu, attr->relu_slope);
}

static void inner_product(const struct ls_call *call)
{
    static const struct ls_ref_pair only = {0, 0};
    const struct ls_inner_product_attr *attr = &call->op->attr.inner_product;
    const struct pass pass = make_pass(call);
    add_products(&pass, 0, &only, 1);
    if (call->op->kind != LS_OP_INNER_PRODUCT_DATA)
        finish(call, &pass.of.y, attr->relu, attr->relu_slope);
}

/* ---- Pooling --------------------------------------------------------------------------------- */

double ls_ref_pool_size(const struct ls_ref_windows *windows, int64_t at)
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
    const struct ls_ref_windows windows =
        ls_ref_windows_of(&op->attr.pooling.window, x, backward ? op->input[0] : op->output[0]);
    const int64_t planes = ls_shape_count(&x->shape, 0, 2);
    int32_t *index = maximum && backward ? call->in[1] : op->outputs > 1 ? call->out[1] : NULL;
    struct ls_ref_pair *pair = call->scratch;
    for (int64_t i = 0, pairs = 0; i < windows.y_points * planes; i++) {
        const int64_t at = i / planes, plane = i % planes, o = plane * windows.y_points + at;
        const double size = maximum ? 1 : ls_ref_pool_size(&windows, at);
        int64_t winner = -1;
        double sum = 0, largest = -(double)FLT_MAX;
        if (plane == 0)
            pairs = ls_ref_list_pairs(&windows, at, pair);
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

size_t ls_ref_pair_bytes(const struct ls_op *op)
{
    const bool pools = op->kind == LS_OP_POOLING || op->kind == LS_OP_POOLING_BACKWARD;
    const struct ls_window *of = pools ? &op->attr.pooling.window : &op->attr.convolution.window;
    size_t bytes = sizeof(struct ls_ref_pair);
    for (int a = 0; a < of->axes; a++)
        bytes *= (size_t)of->kernel[a];
    return bytes;
}

const struct ls_compute ls_ref_windows[LS_OP_KINDS] = {
    [LS_OP_CONVOLUTION] = {.add = convolution, .scratch = ls_ref_pair_bytes},
    [LS_OP_CONVOLUTION_DATA] = {.add = convolution, .scratch = ls_ref_pair_bytes},
    [LS_OP_CONVOLUTION_WEIGHTS] = {.add = convolution, .scratch = ls_ref_pair_bytes},
    [LS_OP_DECONVOLUTION] = {.add = convolution, .scratch = ls_ref_pair_bytes},
    [LS_OP_DECONVOLUTION_DATA] = {.add = convolution, .scratch = ls_ref_pair_bytes},
    [LS_OP_DECONVOLUTION_WEIGHTS] = {.add = convolution, .scratch = ls_ref_pair_bytes},
    [LS_OP_INNER_PRODUCT] = {.add = inner_product},
    [LS_OP_INNER_PRODUCT_DATA] = {.add = inner_product},
    [LS_OP_INNER_PRODUCT_WEIGHTS] = {.add = inner_product},
    [LS_OP_POOLING] = {.add = pooling, .scratch = ls_ref_pair_bytes},
    [LS_OP_POOLING_BACKWARD] = {.add = pooling, .scratch = ls_ref_pair_bytes},
};
