/* See convert.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/convert.h"

#include "base/memory.h"
#include "ir/convert.h"
#include "ops/cuda/kernels/reorder.h"

/* A value that has no layout yet is plain. */
static bool is_known(const struct ls_layout *layout)
{
    return layout == NULL || layout == &ls_layout_plain || layout == &ls_layout_channels_last;
}

static bool leads(const struct ls_layout *from, enum ls_dtype from_type, const struct ls_layout *to,
                  enum ls_dtype to_type)
{
    return is_known(from) && is_known(to) && ls_dtype_converts(from_type, to_type);
}

static struct ls_cuda_reorder reorder_of(const struct ls_shape *shape, const struct ls_layout *from,
                                         const struct ls_layout *to)
{
    const bool was_last = from == &ls_layout_channels_last, last = to == &ls_layout_channels_last;
    struct ls_cuda_reorder of = {.outer = 1, .rows = 1, .columns = ls_shape_size(shape)};
    if (was_last == last || shape->rank < 3)
        return of;
    const int64_t channels = shape->dim[1], points = ls_shape_count(shape, 2, shape->rank);
    of.outer = shape->dim[0];
    of.rows = last ? channels : points;
    of.columns = last ? points : channels;
    return of;
}

static int give(cudaStream_t stream, const struct ls_cuda_reorder *of, const void *in, void *out)
{
    const bool lies = of->rows == 1 || of->columns == 1;
    const size_t bytes = (size_t)(of->outer * of->rows * of->columns) * ls_dtype_size(of->from);
    if (!lies || of->from != of->to)
        return ls_cuda_lay_out(stream, of, in, out);
    return bytes == 0 || in == out
               ? cudaSuccess
               : cudaMemcpyAsync(out, in, bytes, cudaMemcpyDeviceToDevice, stream);
}

int ls_card_lay_out_plain(cudaStream_t stream, const struct ls_shape *shape,
                          const struct ls_layout *layout, const float *plain, float *laid_out)
{
    const struct ls_cuda_reorder of = reorder_of(shape, &ls_layout_plain, layout);
    return give(stream, &of, plain, laid_out);
}

/* ---- Ops ------------------------------------------------------------------------------------- */

static bool accepts(const struct ls_op *op)
{
    const struct ls_value *from = op->input[0], *to = op->output[0];
    return leads(from->layout, from->type, to->layout, to->type);
}

/* The plan has set both layouts before. */
static int layouts(const struct ls_op *op, struct ls_op_layouts *layouts, struct ls_error *error)
{
    (void)error;
    if (op->output[0]->layout != NULL)
        layouts->out[0] = op->output[0]->layout;
    if (layouts->in[0] == NULL)
        layouts->in[0] = &ls_layout_plain;
    return 0;
}

static bool takes_bf16(const struct ls_op *op)
{
    (void)op;
    return true;
}

static int reorder(const struct ls_card_call *call)
{
    const struct ls_value *from = call->op->input[0], *to = call->op->output[0];
    struct ls_cuda_reorder of = reorder_of(&from->shape, from->layout, to->layout);
    of.from = from->type;
    of.to = to->type;
    return give(call->stream, &of, call->in[0], call->out[0]);
}

static bool is_copy(const struct ls_op *op)
{
    return op->input[0]->type == op->output[0]->type;
}

/* Both values are in Caffe's order: their axes may be others. */
static int view(const struct ls_card_call *call)
{
    const size_t bytes = ls_value_bytes(call->op->output[0]);
    return bytes == 0 || call->out[0] == call->in[0]
               ? cudaSuccess
               : cudaMemcpyAsync(call->out[0], call->in[0], bytes, cudaMemcpyDeviceToDevice,
                                 call->stream);
}

const struct ls_card_op ls_card_moves[LS_OP_KINDS] = {
    [LS_OP_REORDER] = {.run = reorder,
                       .accepts = accepts,
                       .layouts = layouts,
                       .takes_bf16 = takes_bf16,
                       .bits = LS_BITS_EXACT},
    [LS_OP_VIEW] = {.run = view, .accepts = is_copy, .bits = LS_BITS_EXACT},
};

/* ---- Parameters ------------------------------------------------------------------------------ */

static int fail_unknown(const struct ls_layout *from, const struct ls_layout *to,
                        enum ls_dtype type, struct ls_error *error)
{
    return ls_fail(error, LOCKSTEP_INTERNAL, NULL, NULL,
                   "a card converts no weights from %s %s to %s %s", from->name,
                   ls_dtype_name(LS_F32), to->name, ls_dtype_name(type));
}

/* The stream of the thread does it, and is over when the function returns. */
static int reorder_now(const struct ls_cuda_reorder *of, const void *in, void *out,
                       struct ls_error *error)
{
    cudaStream_t stream = ls_card_own_stream(error);
    if (stream == NULL)
        return LOCKSTEP_RESOURCE;
    return ls_card_finish(give(stream, of, in, out), "lay weights out", error);
}

int ls_card_from_plain(const struct ls_layout *layout, const struct ls_shape *shape,
                       const float *plain, float *laid_out, struct ls_error *error)
{
    const struct ls_cuda_reorder of = reorder_of(shape, &ls_layout_plain, layout);
    const size_t bytes = (size_t)ls_shape_size(shape) * sizeof *plain;
    if (!leads(&ls_layout_plain, LS_F32, layout, LS_F32))
        return fail_unknown(&ls_layout_plain, layout, LS_F32, error);
    if (of.rows == 1)
        return ls_card_memory.write(NULL, laid_out, plain, bytes, error);
    float *there = ls_card_memory.create(bytes);
    int status = there != NULL ? ls_card_memory.write(NULL, there, plain, bytes, error)
                               : ls_fail_memory(error, "weights on their way to a card");
    if (status == 0)
        status = reorder_now(&of, there, laid_out, error);
    ls_card_memory.free(there);
    return status;
}

int ls_card_to_plain(const struct ls_layout *layout, const struct ls_shape *shape,
                     const float *laid_out, float *plain, struct ls_error *error)
{
    const struct ls_cuda_reorder of = reorder_of(shape, layout, &ls_layout_plain);
    const size_t bytes = (size_t)ls_shape_size(shape) * sizeof *plain;
    if (!leads(layout, LS_F32, &ls_layout_plain, LS_F32))
        return fail_unknown(layout, &ls_layout_plain, LS_F32, error);
    if (of.rows == 1)
        return ls_card_memory.read(NULL, plain, laid_out, bytes, error);
    float *there = ls_card_memory.create(bytes);
    int status = there != NULL ? reorder_now(&of, laid_out, there, error)
                               : ls_fail_memory(error, "weights on their way from a card");
    if (status == 0)
        status = ls_card_memory.read(NULL, plain, there, bytes, error);
    ls_card_memory.free(there);
    return status;
}

/* ---- Views of parameters --------------------------------------------------------------------- */

int ls_card_converter_new(const struct ls_layout *from, const struct ls_layout *to,
                          const struct ls_shape *shape, enum ls_dtype type,
                          struct ls_converter **out, struct ls_error *error)
{
    *out = NULL;
    if (!leads(from, LS_F32, to, type))
        return fail_unknown(from, to, type, error);
    struct ls_cuda_reorder *of = ls_alloc(1, sizeof *of);
    if (of == NULL)
        return ls_fail_memory(error, "a view of weights");
    *of = reorder_of(shape, from, to);
    of->to = type;
    *out = (struct ls_converter *)(void *)of;
    return 0;
}

int ls_card_converter_run(struct ls_converter *converter, const float *source, void *target,
                          struct ls_error *error)
{
    return reorder_now((const void *)converter, source, target, error);
}

void ls_card_converter_free(struct ls_converter *converter)
{
    ls_free(converter);
}
