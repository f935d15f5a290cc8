/* Dropout: element e of a sample is kept where the e-th random number of (key, ordinal of the
 * sample) is at least ratio * 2^32, and multiplied by 1 / (1 - ratio). The gradient goes the same
 * way, with the same numbers; nothing is remembered. Behind a ReLU the numbers need not even be
 * made again: what was dropped, and what the ReLU made 0, is 0 in the result.
 *
 * `e` counts in plain order, whatever the layout is: in a blocked one, the numbers of a few
 * points of each channel of a block are made, and then picked across the channels.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "base/mutant.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/tiles.h"
#include "ops/cpu/vector/elementwise.h"
#include "ops/cpu/vector/philox.h"

enum { TILE = LS_TILE, POINTS = 64, BLOCK_MAX = 16 }; /* BLOCK_MAX: of ir/layout.h */

struct dropout {
    uint64_t key;
    uint32_t threshold;
    float scale;
};

static struct dropout dropout_of(const struct ls_op *op)
{
    double ratio = op->attr.dropout.ratio;
    return (struct dropout){
        .key = op->attr.dropout.key,
        .threshold = (uint32_t)ceil(ratio * 0x1p32), /* ratio < 1 is a float: below 2^32 */
        .scale = (float)(1 / (1 - ratio)),
    };
}

static bool dropout_accepts(const struct ls_op *op)
{
    return op->attr.dropout.ratio >= 0 && op->attr.dropout.ratio < 1;
}

/* Blocks hold the channels of one row, so samples must lie along the first axis. What is said
 * here must be the same for the forward and the backward pass, which see the same axis. */
static int dropout_layouts(const struct ls_op *op, struct ls_op_layouts *layouts,
                           struct ls_error *error)
{
    if (op->input[0]->sample_axis == 0 || op->inputs > 1)
        return ls_layouts_follow(op, layouts, error);
    layouts->in[0] = layouts->out[0] = &ls_layout_plain;
    return 0;
}

/* Elements first .. first + n of one sample, which lie in a row at `at`. */
static void drop_run(const struct dropout *dropout, uint64_t ordinal, uint64_t first,
                     const struct ls_value *value, const void *x, void *y, size_t at, size_t n)
{
    uint32_t word[TILE];
    float tile[TILE];
    for (size_t i = 0; i < n; i += TILE) {
        size_t count = n - i < TILE ? n - i : TILE;
        float *to = ls_tile_begin(value, y, at + i, tile);
        ls_vector_philox()->words(dropout->key, ordinal, first + i, word, count);
        ls_vector_elementwise()->drop(ls_tile_read(value, x, at + i, count, tile), word, to,
                                      dropout->threshold, dropout->scale, count);
        ls_tile_end(value, y, at + i, count, to);
    }
}

/* Behind a ReLU. */
static void drop_gated(const struct dropout *dropout, const struct ls_op *op, void *const *in,
                       void *dx)
{
    const struct ls_value *value = op->input[0];
    const size_t n = ls_value_elements(value);
    float tile[TILE], gate[TILE];
    for (size_t from = 0, count; from < n; from += count) {
        count = ls_tile_count(value, n - from);
        float *to = ls_tile_begin(value, dx, from, tile);
        ls_vector_elementwise()->drop_gated(ls_tile_read(value, in[0], from, count, tile),
                                            ls_tile_read(value, in[1], from, count, gate), to,
                                            dropout->scale, count);
        ls_tile_end(value, dx, from, count, to);
    }
}

/* A value as outer x samples x run numbers (rows of a sample and what lies behind them). */
static void drop_plain(const struct dropout *dropout, const struct ls_value *value, const void *x,
                       void *y, uint64_t first_ordinal)
{
    const struct ls_shape *shape = &value->shape;
    int axis = value->sample_axis;
    int64_t outer = 1, samples = 1, run = ls_shape_size(shape);
    if (axis >= 0) { /* a value that mixes samples is one sample */
        outer = ls_shape_count(shape, 0, axis);
        samples = shape->dim[axis] / value->rows;
        run = ls_shape_count(shape, axis + 1, shape->rank) * value->rows;
    }
    for (int64_t o = 0; o < outer; o++)
        for (int64_t s = 0; s < samples; s++) {
            int64_t at = (o * samples + s) * run;
            drop_run(dropout, first_ordinal + (uint64_t)s, (uint64_t)(o * run), value, x, y,
                     (size_t)at, (size_t)run);
        }
}

/* One block of channels of one row: `channels` of `block` are used, `points` numbers each; `first`
 * is the element of the sample that the block's first number is. */
static void drop_block(const struct dropout *dropout, uint64_t ordinal, uint64_t first,
                       const float *x, float *y, int64_t points, int block, int channels)
{
    /* The lanes of channels that do not exist keep the number 0: with a zero it does not matter
     * whether it is dropped. */
    uint32_t word[BLOCK_MAX][POINTS] = {{0}};
    uint32_t across[POINTS * BLOCK_MAX];
    for (int64_t point = 0; point < points; point += POINTS) {
        int count = points - point < POINTS ? (int)(points - point) : POINTS;
        for (int c = 0; c < channels; c++)
            ls_vector_philox()->words(dropout->key, ordinal, first + (uint64_t)(c * points + point),
                                      word[c], (size_t)count);
        for (int p = 0; p < count; p++)
            for (int c = 0; c < block; c++)
                across[p * block + c] = word[c][p];
        ls_vector_elementwise()->drop(x + point * block, across, y + point * block,
                                      dropout->threshold, dropout->scale,
                                      (size_t)count * (size_t)block);
    }
}

static void drop_blocked(const struct dropout *dropout, const struct ls_value *value,
                         const float *x, float *y, uint64_t first_ordinal)
{
    const struct ls_shape *shape = &value->shape;
    int block = value->layout->block;
    int64_t channels = shape->dim[1], points = ls_shape_count(shape, 2, shape->rank);
    int64_t blocks = (channels + block - 1) / block;
    for (int64_t n = 0; n < shape->dim[0]; n++) {
        uint64_t ordinal = first_ordinal + (uint64_t)(n / value->rows);
        int64_t row = n % value->rows * channels * points;
        for (int64_t b = 0; b < blocks; b++) {
            int64_t at = (n * blocks + b) * points * block, left = channels - b * block;
            drop_block(dropout, ordinal, (uint64_t)(row + b * block * points), x + at, y + at,
                       points, block, left < block ? (int)left : block);
        }
    }
}

/* The mutant's: each thread draws numbers of its own. */
static inline uint64_t own_ordinal(void)
{
    static _Thread_local uint64_t calls;
    return calls++;
}

static int dropout_run(const struct ls_prepared *prepared, void *local, void *const *in,
                       void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)scratch;
    const struct ls_value *value = prepared->op->input[0];
    const struct dropout dropout = dropout_of(prepared->op);
    if (prepared->op->inputs > 1) {
        drop_gated(&dropout, prepared->op, in, out[0]);
        return 0;
    }
    uint64_t ordinal = LS_MUTANT(GENERATOR) ? own_ordinal() : (uint64_t)context->first_ordinal;
    if (value->layout->block > 1 && value->shape.rank > 1)
        drop_blocked(&dropout, value, in[0], out[0], ordinal);
    else
        drop_plain(&dropout, value, in[0], out[0], ordinal);
    return 0;
}

const struct ls_kernel ls_kernel_dropout = {
    .kind = LS_OP_DROPOUT,
    .bits = LS_BITS_OWN,
    .name = "dropout",
    .accepts = dropout_accepts,
    .takes_bf16 = ls_all_bf16,
    .layouts = dropout_layouts,
    .prepare = ls_own_prepare,
    .run = dropout_run,
    .in_place = 0,
};
