/* Crop, and its gradient: a box of a tensor. Blocks of channels are kept where all channels are
 * taken.
 *
 * The box is copied in runs along the innermost axis. Leading axes that are taken as a whole, and
 * trailing ones, are joined first, so that runs are as long as they can be; a block of channels is
 * a trailing axis more.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "base/memory.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/tiles.h"

/* A box: `taken` positions from `offset` on of the `whole`, axis by axis. */
struct box {
    int rank;
    int64_t whole[LS_RANK_MAX + 1], taken[LS_RANK_MAX + 1], offset[LS_RANK_MAX + 1];
    size_t size; /* of an element */
};

/* x or dx, and y or dy. */
static const struct ls_value *inner_value(const struct ls_op *op)
{
    return op->kind == LS_OP_CROP ? op->input[0] : op->output[0];
}

static const struct ls_value *outer_value(const struct ls_op *op)
{
    return op->kind == LS_OP_CROP ? op->output[0] : op->input[0];
}

static int crop_layouts(const struct ls_op *op, struct ls_op_layouts *layouts,
                        struct ls_error *error)
{
    const struct ls_shape *x = &inner_value(op)->shape, *y = &outer_value(op)->shape;
    LS_TRY(ls_layouts_follow(op, layouts, error));
    if (layouts->in[0]->block > 1 && x->dim[1] != y->dim[1])
        layouts->in[0] = layouts->out[0] = &ls_layout_plain;
    return 0;
}

/* Adds an axis behind the others; one that is taken as a whole is joined with the one in front. */
static void add_axis(struct box *box, int64_t whole, int64_t taken, int64_t offset)
{
    if (whole == taken && box->rank > 0) {
        box->whole[box->rank - 1] *= whole;
        box->taken[box->rank - 1] *= whole;
        box->offset[box->rank - 1] *= whole;
        return;
    }
    box->whole[box->rank] = whole;
    box->taken[box->rank] = taken;
    box->offset[box->rank++] = offset;
}

static int crop_prepare(struct ls_prepared *prepared, struct ls_error *error)
{
    const struct ls_op *op = prepared->op;
    const struct ls_shape *x = &inner_value(op)->shape, *y = &outer_value(op)->shape;
    int64_t block = inner_value(op)->layout->block;
    struct box *box = ls_alloc(1, sizeof *box);
    if (box == NULL)
        return ls_fail_memory(error, "a crop");
    for (int i = 0; i < x->rank; i++) {
        bool blocked = i == 1 && block > 1;
        int64_t whole = blocked ? (x->dim[1] + block - 1) / block : x->dim[i];
        add_axis(box, whole, blocked ? whole : y->dim[i], op->attr.crop.offset[i]);
    }
    if (block > 1)
        add_axis(box, block, block, 0);
    box->size = ls_dtype_size(inner_value(op)->type);
    prepared->state = box;
    return ls_own_prepare(prepared, error);
}

/* Copies the box from axis `axis` on between where it lies in the whole and the part by itself. */
static void copy_box(const struct box *box, int axis, char *whole, char *part, bool take)
{
    if (axis == box->rank - 1) {
        const size_t bytes = (size_t)box->taken[axis] * box->size;
        char *run = whole + (size_t)box->offset[axis] * box->size;
        memcpy(take ? part : run, take ? run : part, bytes);
        return;
    }
    int64_t whole_step = (int64_t)box->size, part_step = whole_step;
    for (int i = axis + 1; i < box->rank; i++) {
        whole_step *= box->whole[i];
        part_step *= box->taken[i];
    }
    whole += box->offset[axis] * whole_step;
    for (int64_t i = 0; i < box->taken[axis]; i++)
        copy_box(box, axis + 1, whole + i * whole_step, part + i * part_step, take);
}

static int crop_run(const struct ls_prepared *prepared, void *local, void *const *in,
                    void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)scratch, (void)context;
    copy_box(prepared->state, 0, in[0], out[0], true);
    return 0;
}

static int crop_backward_run(const struct ls_prepared *prepared, void *local, void *const *in,
                             void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)scratch, (void)context;
    memset(out[0], 0, ls_value_bytes(prepared->op->output[0]));
    copy_box(prepared->state, 0, out[0], in[0], false);
    return 0;
}

const struct ls_kernel ls_kernel_crop = {
    .kind = LS_OP_CROP,
    .bits = LS_BITS_EXACT,
    .name = "crop",
    .takes_bf16 = ls_all_bf16,
    .layouts = crop_layouts,
    .prepare = crop_prepare,
    .release = ls_own_release,
    .run = crop_run,
    .in_place = -1,
};

const struct ls_kernel ls_kernel_crop_backward = {
    .kind = LS_OP_CROP_BACKWARD,
    .bits = LS_BITS_EXACT,
    .name = "crop backward",
    .takes_bf16 = ls_all_bf16,
    .layouts = crop_layouts,
    .prepare = crop_prepare,
    .release = ls_own_release,
    .run = crop_backward_run,
    .in_place = -1,
};
