/* Attention. See ops/cuda/ops.h and device/attention.h. SPDX-License-Identifier: BSD-2-Clause */
#include "device/attention.h"

#include <sleef.h>

#include "ir/layer.h"
#include "ops/cuda/kernels/attention.h"
#include "ops/cuda/ops.h"

/* Rows of operand `which` in a value that lies at `data`. */
static struct ls_cuda_rows rows_of(const struct ls_attention_attr *attr, int which,
                                   enum ls_dtype type, void *data)
{
    const struct ls_attention_rows first = ls_attention_rows_of(attr, which, 0, 0);
    const struct ls_attention_rows next = ls_attention_rows_of(attr, which, 1, 0);
    char *const at = data;
    return (struct ls_cuda_rows){.data = at != NULL ? at + (size_t)first.at * ls_dtype_size(type)
                                                    : NULL,
                                 .bf16 = type == LS_BF16,
                                 .batch = next.at - first.at,
                                 .pitch = first.pitch,
                                 .head = which == LS_ATTENTION_V ? attr->value_depth : attr->depth};
}

/* Rows of y or dy. */
static struct ls_cuda_rows values_of(const struct ls_attention_attr *attr, enum ls_dtype type,
                                     void *data)
{
    const int64_t pitch = attr->heads * attr->value_depth;
    return (struct ls_cuda_rows){.data = data,
                                 .bf16 = type == LS_BF16,
                                 .batch = attr->queries * pitch,
                                 .pitch = pitch,
                                 .head = attr->value_depth};
}

/* `first`: which input q is. */
static struct ls_cuda_attention sizes_of(const struct ls_op *op, int first)
{
    const struct ls_value *q = op->input[first];
    const int mask = first + LS_ATTENTION_MASK, positions = first + LS_ATTENTION_POSITIONS;
    struct ls_cuda_attention of = {.attr = op->attr.attention,
                                   .batch = q->shape.dim[0],
                                   .rows = q->sample_axis == 0 ? q->rows : q->shape.dim[0],
                                   .back = op->kind == LS_OP_ATTENTION_BACKWARD};
    if (mask < op->inputs && op->input[mask] != NULL) {
        const struct ls_shape *shape = &op->input[mask]->shape;
        of.mask_samples = shape->dim[0];
        of.mask_heads = shape->rank == 4 ? shape->dim[1] : 1;
    }
    if (positions < op->inputs && op->input[positions] != NULL) {
        static const float there; /* what says that there are some, until their place is known */
        of.positions = &there;
    }
    return of;
}

static struct ls_cuda_attention attention_of(const struct ls_card_call *call, int first)
{
    const struct ls_op *op = call->op;
    struct ls_cuda_attention of = sizes_of(op, first);
    for (int which = LS_ATTENTION_Q; which <= LS_ATTENTION_V; which++) {
        const int in = first + ls_attention_input_of(&of.attr, which);
        of.in[which] = rows_of(&of.attr, which, op->input[in]->type, call->in[in]);
    }
    of.lengths = ls_card_in(call, first + LS_ATTENTION_LENGTHS);
    of.key_mask = ls_card_in(call, first + LS_ATTENTION_KEY_MASK);
    of.mask = ls_card_in(call, first + LS_ATTENTION_MASK);
    of.segments = ls_card_in(call, first + LS_ATTENTION_SEGMENTS);
    of.positions = ls_card_in(call, first + LS_ATTENTION_POSITIONS);
    of.powers = (const double *)(const void *)call->constants;
    of.numbers = call->context->numbers;
    of.scratch = call->scratch;
    return of;
}

static size_t forward_scratch(const struct ls_op *op)
{
    const struct ls_cuda_attention of = sizes_of(op, 0);
    return ls_cuda_attention_scratch(&of);
}

static size_t backward_scratch(const struct ls_op *op)
{
    const struct ls_cuda_attention of = sizes_of(op, LS_ATTENTION_IN_FRONT);
    return ls_cuda_attention_scratch(&of);
}

/* base^(-2 i / dims), as ls_attention_angles has it. */
static size_t power_bytes(const struct ls_op *op)
{
    return (size_t)op->attr.attention.rotary.dims / 2 * sizeof(double);
}

static void find_powers(const struct ls_op *op, void *table)
{
    const struct ls_rotary_attr *rotary = &op->attr.attention.rotary;
    double *power = table;
    for (int64_t i = 0; i < rotary->dims / 2; i++)
        power[i] =
            Sleef_cinz_powd1_u10purec((double)rotary->base, -2 * (double)i / (double)rotary->dims);
}

/* The keys and values of the inputs go to the cache. */
static int append(const struct ls_card_call *call, const struct ls_cuda_attention *of)
{
    struct ls_attention_attr from = of->attr;
    int code = cudaSuccess;
    from.cache = 0;
    from.keys = from.queries;
    for (int which = LS_ATTENTION_K; which <= LS_ATTENTION_V && code == cudaSuccess; which++) {
        const int in = ls_attention_input_of(&from, which);
        const struct ls_cuda_rows rows =
            rows_of(&from, which, call->op->input[in]->type, call->in[in]);
        code = ls_cuda_append_rows(call->stream, of, &rows, rows.head, &of->in[which]);
    }
    return code;
}

static int attention(const struct ls_card_call *call)
{
    const struct ls_cuda_attention of = attention_of(call, 0);
    const struct ls_cuda_rows y = values_of(&of.attr, call->op->output[0]->type, call->out[0]);
    const int code = of.attr.cache > 0 ? append(call, &of) : cudaSuccess;
    return code != cudaSuccess ? code : ls_cuda_attend(call->stream, &of, &y, ls_card_out(call, 1));
}

/* in: dy, y, the log of the sum, then as forward */
static int attention_backward(const struct ls_card_call *call)
{
    const struct ls_op *op = call->op;
    struct ls_cuda_attention_back by = {.of = attention_of(call, LS_ATTENTION_IN_FRONT)};
    const struct ls_attention_attr *attr = &by.of.attr;
    by.dy = values_of(attr, op->input[0]->type, call->in[0]);
    by.y = values_of(attr, op->input[1]->type, call->in[1]);
    by.log_sum = call->in[2];
    for (int which = LS_ATTENTION_Q; which <= LS_ATTENTION_V; which++) {
        const int out = attr->fused ? 0 : which;
        const bool there = out < op->outputs && op->output[out] != NULL;
        by.out[which] = rows_of(attr, which, there ? op->output[out]->type : LS_F32,
                                there ? call->out[out] : NULL);
    }
    return ls_cuda_attend_backward(call->stream, &by);
}

/* Values of layers may be bf16, each by itself; what says which pairs count, caches and logs of
 * sums are fp32. */
static bool takes_bf16(const struct ls_op *op)
{
    const bool back = op->kind == LS_OP_ATTENTION_BACKWARD;
    const int first = back ? LS_ATTENTION_IN_FRONT : 0, log_sum = back ? 2 : -1;
    bool takes = back || op->outputs < 2 || op->output[1] == NULL || op->output[1]->type == LS_F32;
    for (int i = 0; i < op->inputs; i++)
        if ((i == log_sum || i >= first + LS_ATTENTION_LENGTHS) && op->input[i] != NULL)
            takes = takes && op->input[i]->type != LS_BF16;
    return takes;
}

const struct ls_card_op ls_card_attention[LS_OP_KINDS] = {
    [LS_OP_ATTENTION] = {.run = attention,
                         .scratch = forward_scratch,
                         .table_bytes = power_bytes,
                         .make_table = find_powers,
                         .takes_bf16 = takes_bf16,
                         .bits = LS_BITS_DEFINED},
    [LS_OP_ATTENTION_BACKWARD] = {.run = attention_backward,
                                  .scratch = backward_scratch,
                                  .table_bytes = power_bytes,
                                  .make_table = find_powers,
                                  .takes_bf16 = takes_bf16,
                                  .bits = LS_BITS_DEFINED},
};
