/* Elementwise product, sum and maximum of n inputs, in any layout that they share.
 *
 * Tiles stay in the first-level cache. With three inputs and more, or a ReLU, a tile is finished
 * before it is written, because the output may lie where an input lies that is read again.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "ops/cpu/kernels.h"
#include "ops/cpu/tiles.h"
#include "ops/cpu/vector/elementwise.h"

enum { TILE = LS_TILE };

static float coefficient(const struct ls_eltwise_attr *attr, int i)
{
    return attr->coefficients != NULL ? attr->coefficients[i] : 1;
}

/* y = a (op) x; x is input `which`. */
static void combine(const struct ls_eltwise_attr *attr, const float *a, const float *x, int which,
                    float *y, size_t n)
{
    switch (attr->method) {
    case LS_ELTWISE_PROD:
        ls_vector_elementwise()->multiply(a, x, y, n);
        break;
    case LS_ELTWISE_MAX:
        ls_vector_elementwise()->larger(a, x, y, n);
        break;
    case LS_ELTWISE_SUM:
        if (attr->coefficients == NULL)
            ls_vector_elementwise()->add(a, x, y, n);
        else
            ls_vector_elementwise()->add_scaled(a, x, attr->coefficients[which], y, n);
        break;
    }
}

/* What was combined, through the ReLU that was fused, at `from`. */
static void finish(const struct ls_op *op, void *const *in, size_t from, const float *tile,
                   float *y, size_t count)
{
    const struct ls_eltwise_attr *attr = &op->attr.eltwise;
    const int last = op->inputs - 1;
    float wide[TILE];
    if (attr->gated)
        ls_vector_elementwise()->relu_backward(
            tile, ls_tile_read(op->input[last], in[last], from, count, wide), y, attr->relu_slope,
            count);
    else if (attr->relu)
        ls_vector_elementwise()->relu(tile, y, attr->relu_slope, count);
    else
        memcpy(y, tile, count * sizeof *y);
}

/* Numbers [from, from + count), to `y`. */
static void combine_tile(const struct ls_op *op, void *const *in, size_t from, size_t count,
                         float *y)
{
    const struct ls_eltwise_attr *attr = &op->attr.eltwise;
    bool scaled = attr->method == LS_ELTWISE_SUM && attr->coefficients != NULL;
    int inputs = op->inputs - attr->gated;
    bool direct = inputs > 1 && !attr->relu && !attr->gated;
    float tile[TILE], wide[TILE];
    const float *so_far = ls_tile_read(op->input[0], in[0], from, count, tile);
    if (scaled || inputs == 1) {
        ls_vector_elementwise()->multiply_by(so_far, scaled ? coefficient(attr, 0) : 1, tile,
                                             count);
        so_far = tile;
    }
    for (int i = 1; i < inputs; i++) {
        float *to = direct && i == inputs - 1 ? y : tile;
        combine(attr, so_far, ls_tile_read(op->input[i], in[i], from, count, wide), i, to, count);
        so_far = tile;
    }
    if (!direct)
        finish(op, in, from, tile, y, count);
}

/* Whether two values of bf16 are added as they are. */
static bool is_plain_sum(const struct ls_op *op)
{
    const struct ls_eltwise_attr *attr = &op->attr.eltwise;
    return attr->method == LS_ELTWISE_SUM && attr->coefficients == NULL &&
           op->inputs == 2 + attr->gated && ls_all_bf16(op);
}

/* Numbers [begin, n) of all. */
static void combine_all(const struct ls_op *op, void *const *in, void *const *out, size_t begin,
                        size_t n)
{
    const struct ls_eltwise_attr *attr = &op->attr.eltwise;
    if (is_plain_sum(op)) {
        const uint16_t *a = in[0], *b = in[1], *gate = attr->gated ? in[2] : NULL;
        ls_vector_elementwise()->add_bf16(a + begin, b + begin, gate != NULL ? gate + begin : NULL,
                                          attr->gated || attr->relu ? &attr->relu_slope : NULL,
                                          (uint16_t *)out[0] + begin, n - begin);
        return;
    }
    float wide[TILE];
    for (size_t from = begin; from < n; from += TILE) {
        size_t count = n - from < TILE ? n - from : TILE;
        float *y = ls_tile_begin(op->output[0], out[0], from, wide);
        combine_tile(op, in, from, count, y);
        ls_tile_end(op->output[0], out[0], from, count, y);
    }
}

static int eltwise_run(const struct ls_prepared *prepared, void *local, void *const *in,
                       void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)scratch, (void)context;
    combine_all(prepared->op, in, out, 0, ls_value_elements(prepared->op->output[0]));
    return 0;
}

/* Blocks of channels lie one behind the other in a sample, whatever their size. */
static int eltwise_channels(const struct ls_prepared *prepared, void *const *in, void *const *out,
                            void *scratch, const struct ls_context *context, int64_t begin,
                            int64_t end)
{
    (void)scratch, (void)context;
    const struct ls_value *y = prepared->op->output[0];
    const int64_t block = y->layout->block > 1 ? y->layout->block : 1;
    const int64_t channels = (y->shape.dim[1] + block - 1) / block * block;
    const int64_t points = ls_shape_count(&y->shape, 2, y->shape.rank);
    if (end > channels)
        end = channels;
    for (int64_t n = 0; n < y->shape.dim[0]; n++)
        combine_all(prepared->op, in, out, (size_t)((n * channels + begin) * points),
                    (size_t)((n * channels + end) * points));
    return 0;
}

static int eltwise_prepare(struct ls_prepared *prepared, struct ls_error *error)
{
    const struct ls_value *y = prepared->op->output[0];
    if (y->shape.rank >= 2 && LS_SYNC_BLOCK % (y->layout->block > 1 ? y->layout->block : 1) == 0)
        prepared->channels = ls_sync_round(y->shape.dim[1]);
    return ls_own_prepare(prepared, error);
}

/* Values follow the first one, or that which is the gate: it was laid out by a forward pass. */
static int eltwise_layouts(const struct ls_op *op, struct ls_op_layouts *layouts,
                           struct ls_error *error)
{
    if (!op->attr.eltwise.gated)
        return ls_layouts_follow(op, layouts, error);
    const struct ls_layout *layout = layouts->in[op->inputs - 1];
    for (int i = 0; i < op->inputs; i++)
        layouts->in[i] = layout;
    layouts->out[0] = layout;
    return 0;
}

/* dx = dy * product of the other inputs, from the first to the last, as in Caffe's stable form. */
static void product_tile(const struct ls_op *op, void *const *in, size_t from, float *dx,
                         size_t count)
{
    float product[TILE], wide[TILE];
    const float *others = NULL;
    for (int i = 1; i < op->inputs; i++) {
        if (i - 1 == op->attr.eltwise.which)
            continue;
        const float *x = ls_tile_read(op->input[i], in[i], from, count, others ? wide : product);
        if (others != NULL)
            ls_vector_elementwise()->multiply(others, x, product, count);
        others = others != NULL ? product : x;
    }
    const float *dy = ls_tile_read(op->input[0], in[0], from, count, wide);
    if (others != NULL)
        ls_vector_elementwise()->multiply(others, dy, dx, count);
    else
        memmove(dx, dy, count * sizeof *dx);
}

/* The gradient goes to the input that is the maximum; of equal ones to the second rather than the
 * first, and to any of these two rather than a later one, as in Caffe. */
static void maximum_tile(const struct ls_op *op, void *const *in, size_t from, float *dx,
                         size_t count)
{
    const struct ls_vector_elementwise *vector = ls_vector_elementwise();
    float top[TILE], wide[TILE];
    int32_t winner[TILE];
    const int first = op->inputs == 2 ? 1 : 2;
    memcpy(top, ls_tile_read(op->input[first], in[first], from, count, wide), count * sizeof *top);
    for (size_t i = 0; i < count; i++)
        winner[i] = first - 1;
    for (int i = 0; i < op->inputs - 1; i++)
        if (i != 1)
            vector->challenge(ls_tile_read(op->input[i + 1], in[i + 1], from, count, wide), top,
                              winner, i, count);
    vector->pick(ls_tile_read(op->input[0], in[0], from, count, wide), winner,
                 op->attr.eltwise.which, dx, count);
}

static int backward_run(const struct ls_prepared *prepared, void *local, void *const *in,
                        void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)scratch, (void)context;
    const struct ls_op *op = prepared->op;
    const struct ls_eltwise_attr *attr = &op->attr.eltwise;
    size_t n = ls_value_elements(op->output[0]);
    float tile[TILE], wide[TILE];
    for (size_t from = 0; from < n; from += TILE) {
        size_t count = n - from < TILE ? n - from : TILE;
        float *dx = ls_tile_begin(op->output[0], out[0], from, tile);
        if (attr->method == LS_ELTWISE_PROD)
            product_tile(op, in, from, dx, count);
        else if (attr->method == LS_ELTWISE_MAX)
            maximum_tile(op, in, from, dx, count);
        else
            ls_vector_elementwise()->multiply_by(
                ls_tile_read(op->input[0], in[0], from, count, wide),
                coefficient(attr, attr->which), dx, count);
        ls_tile_end(op->output[0], out[0], from, count, dx);
    }
    return 0;
}

const struct ls_kernel ls_kernel_eltwise = {
    .kind = LS_OP_ELTWISE,
    .bits = LS_BITS_OWN,
    .name = "eltwise",
    .takes_bf16 = ls_all_bf16,
    .layouts = eltwise_layouts,
    .prepare = eltwise_prepare,
    .run = eltwise_run,
    .run_channels = eltwise_channels,
    .in_place = LS_IN_PLACE_ANY,
};

const struct ls_kernel ls_kernel_eltwise_backward = {
    .kind = LS_OP_ELTWISE_BACKWARD,
    .bits = LS_BITS_NOT_PROBED,
    .name = "eltwise backward",
    .takes_bf16 = ls_all_bf16,
    .layouts = ls_layouts_follow,
    .prepare = ls_own_prepare,
    .run = backward_run,
    .in_place = 0,
};
