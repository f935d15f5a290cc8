/* Ops that move numbers: views, joining, cutting and repeating along an axis.
 *
 * A tensor is `outer` runs of consecutive numbers, one for each index in front of the axis; a join
 * takes one run of each input in turn. That is so in the blocked layouts, too, for the axis of
 * channels, where every input (but the last) fills its blocks.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "base/assert.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/tiles.h"

static int view_run(const struct ls_prepared *prepared, void *local, void *const *in,
                    void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)scratch, (void)context;
    const struct ls_value *value = prepared->op->input[0];
    if (in[0] != out[0]) /* where the plan did not let them share memory */
        memcpy(out[0], in[0], ls_value_bytes(value));
    return 0;
}

const struct ls_kernel ls_kernel_view = {
    .kind = LS_OP_VIEW,
    .bits = LS_BITS_EXACT,
    .name = "view",
    .prepare = ls_own_prepare,
    .run = view_run,
    .in_place = 0,
};

/* Whether `count` values can be joined along the axis as they lie in `layout`. */
static bool joins_blocks(struct ls_value *const *value, int count, int axis,
                         const struct ls_layout *layout)
{
    if (layout->block <= 1 || axis != 1)
        return false;
    for (int i = 0; i + 1 < count; i++)
        if (value[i]->shape.dim[1] % layout->block != 0)
            return false;
    return true;
}

/* What the op would like: a gradient as its value lies; else the blocks that any input has. */
static const struct ls_layout *preferred(const struct ls_op *op,
                                         const struct ls_op_layouts *layouts)
{
    if (op->backward)
        return ls_gradient_layout(op, layouts);
    int i = 0;
    while (i + 1 < op->inputs && layouts->in[i]->block <= 1)
        i++;
    return layouts->in[i];
}

static int join_layouts(struct ls_value *const *parts, int count, const struct ls_op *op,
                        struct ls_op_layouts *layouts)
{
    const struct ls_layout *layout = preferred(op, layouts);
    if (!joins_blocks(parts, count, op->attr.axis, layout))
        layout = &ls_layout_plain;
    for (int i = 0; i < op->inputs; i++)
        layouts->in[i] = layout;
    for (int i = 0; i < op->outputs; i++)
        layouts->out[i] = layout;
    return 0;
}

static int concat_layouts(const struct ls_op *op, struct ls_op_layouts *layouts,
                          struct ls_error *error)
{
    (void)error;
    return join_layouts(op->input, op->inputs, op, layouts);
}

static int slice_layouts(const struct ls_op *op, struct ls_op_layouts *layouts,
                         struct ls_error *error)
{
    (void)error;
    return join_layouts(op->output, op->outputs, op, layouts);
}

/* Copies between the whole and its parts; the pointers of absent parts (outputs
 * without a reader) are NULL, and their numbers are skipped. */
static void move_runs(struct ls_value *const *part, int count, int axis, char *whole,
                      void *const *memory, bool join)
{
    int64_t outer = ls_shape_count(&part[0]->shape, 0, axis);
    for (int64_t index = 0; index < outer; index++) {
        for (int i = 0; i < count; i++) {
            size_t run = ls_value_bytes(part[i]) / (size_t)outer;
            char *piece = memory[i];
            if (piece != NULL && join)
                memcpy(whole, piece + (size_t)index * run, run);
            else if (piece != NULL)
                memcpy(piece + (size_t)index * run, whole, run);
            whole += run;
        }
    }
}

static int concat_run(const struct ls_prepared *prepared, void *local, void *const *in,
                      void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)scratch, (void)context;
    const struct ls_op *op = prepared->op;
    move_runs(op->input, op->inputs, op->attr.axis, out[0], in, true);
    return 0;
}

static int slice_run(const struct ls_prepared *prepared, void *local, void *const *in,
                     void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)scratch, (void)context;
    const struct ls_op *op = prepared->op;
    move_runs(op->output, op->outputs, op->attr.axis, in[0], out, false);
    return 0;
}

const struct ls_kernel ls_kernel_concat = {
    .kind = LS_OP_CONCAT,
    .bits = LS_BITS_EXACT,
    .name = "concat",
    .takes_bf16 = ls_all_bf16,
    .layouts = concat_layouts,
    .prepare = ls_own_prepare,
    .run = concat_run,
    .in_place = -1,
};

const struct ls_kernel ls_kernel_slice = {
    .kind = LS_OP_SLICE,
    .bits = LS_BITS_EXACT,
    .name = "slice",
    .takes_bf16 = ls_all_bf16,
    .layouts = slice_layouts,
    .prepare = ls_own_prepare,
    .run = slice_run,
    .in_place = -1,
};

/* ---- Tiles ----------------------------------------------------------------------------------- */

enum { CHUNK = 256 };

/* Blocks lie behind each other along the axis of channels if all are full, and inside a block's
 * planes there is room for what is behind it. */
static const struct ls_layout *tile_layout(const struct ls_op *op, const struct ls_value *once,
                                           const struct ls_layout *layout)
{
    int axis = op->attr.tile.axis;
    bool whole = axis == 1 && layout->block > 1 && once->shape.dim[1] % layout->block == 0;
    return whole || axis >= 2 ? layout : &ls_layout_plain;
}

static int tile_layouts(const struct ls_op *op, struct ls_op_layouts *layouts,
                        struct ls_error *error)
{
    (void)error;
    const struct ls_value *once = op->backward ? op->output[0] : op->input[0];
    const struct ls_layout *layout =
        op->backward ? ls_gradient_layout(op, layouts) : layouts->in[0];
    layouts->in[0] = layouts->out[0] = tile_layout(op, once, layout);
    return 0;
}

/* How many runs of numbers `value` is, each of which is repeated. */
static int64_t tile_runs(const struct ls_value *value, int axis)
{
    const struct ls_shape *shape = &value->shape;
    int64_t block = value->layout->block;
    if (block <= 1 || axis < 2)
        return ls_shape_count(shape, 0, axis);
    return shape->dim[0] * ((shape->dim[1] + block - 1) / block) * ls_shape_count(shape, 2, axis);
}

static int tile_run(const struct ls_prepared *prepared, void *local, void *const *in,
                    void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)scratch, (void)context;
    const struct ls_op *op = prepared->op;
    const struct ls_tile_attr *attr = &op->attr.tile;
    int64_t runs = tile_runs(op->input[0], attr->axis);
    size_t run = ls_value_bytes(op->input[0]) / (size_t)runs;
    const char *x = in[0];
    char *y = out[0];
    for (int64_t i = 0; i < runs; i++, x += run)
        for (int64_t t = 0; t < attr->tiles; t++, y += run)
            memcpy(y, x, run);
    return 0;
}

/* Numbers [first, first + count) of a run of dx from those of its copies, which begin at `from`:
 * dx[i] = dy[i] + dy[run + i] + ..., in double. */
static void add_copies(const struct ls_op *op, const void *dy, size_t from, size_t run,
                       size_t count, float *dx)
{
    double sum[CHUNK];
    float wide[CHUNK];
    LS_ASSERT(op->attr.tile.tiles > 0);
    for (int64_t t = 0; t < op->attr.tile.tiles; t++) {
        const float *copy = ls_tile_read(op->input[0], dy, from + (size_t)t * run, count, wide);
        for (size_t i = 0; i < count; i++)
            sum[i] = t == 0 ? (double)copy[i] : sum[i] + (double)copy[i];
    }
    for (size_t i = 0; i < count; i++)
        dx[i] = (float)sum[i];
}

static int tile_backward_run(const struct ls_prepared *prepared, void *local, void *const *in,
                             void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)scratch, (void)context;
    const struct ls_op *op = prepared->op;
    const struct ls_tile_attr *attr = &op->attr.tile;
    int64_t runs = tile_runs(op->output[0], attr->axis);
    size_t run = ls_value_elements(op->output[0]) / (size_t)runs;
    const size_t tiles = (size_t)attr->tiles;
    float tile[CHUNK];
    for (size_t i = 0; i < (size_t)runs; i++)
        for (size_t first = 0; first < run; first += CHUNK) {
            const size_t count = run - first < CHUNK ? run - first : CHUNK;
            float *dx = ls_tile_begin(op->output[0], out[0], i * run + first, tile);
            add_copies(op, in[0], i * tiles * run + first, run, count, dx);
            ls_tile_end(op->output[0], out[0], i * run + first, count, dx);
        }
    return 0;
}

const struct ls_kernel ls_kernel_tile = {
    .kind = LS_OP_TILE,
    .bits = LS_BITS_EXACT,
    .name = "tile",
    .takes_bf16 = ls_all_bf16,
    .layouts = tile_layouts,
    .prepare = ls_own_prepare,
    .run = tile_run,
    .in_place = -1,
};

const struct ls_kernel ls_kernel_tile_backward = {
    .kind = LS_OP_TILE_BACKWARD,
    .bits = LS_BITS_OWN,
    .name = "tile backward",
    .takes_bf16 = ls_all_bf16,
    .layouts = tile_layouts,
    .prepare = ls_own_prepare,
    .run = tile_backward_run,
    .in_place = -1,
};
