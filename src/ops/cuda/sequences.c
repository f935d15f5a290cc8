/* Products of matrices, gated units, places along an axis, rows of tables, fillers. See
 * ops/cuda/ops.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/kernels/sequences.h"

#include <string.h>

#include "base/hash.h"
#include "device/filler.h"
#include "ir/convert.h"
#include "ir/layer.h"
#include "ops/cuda/ops.h"

static int64_t size_of(const struct ls_value *value)
{
    return ls_shape_size(&value->shape);
}

/* Kernels that sort number what they sort by 32 bits. */
static int check_numbers(const struct ls_op *op, int64_t numbers, struct ls_error *error)
{
    return numbers < (int64_t)UINT32_MAX
               ? 0
               : ls_layer_fail(op->layer, error, NULL, NULL, "use a smaller batch_size, or table",
                               "a card sorts fewer than 2^32 numbers in one layer");
}

/* ---- Products of matrices -------------------------------------------------------------------- */

static bool matmul_takes_bf16(const struct ls_op *op)
{
    return op->input[0]->type == op->input[1]->type;
}

static int matmul(const struct ls_card_call *call)
{
    const struct ls_matmul_attr *attr = &call->op->attr.matmul;
    const struct ls_cuda_matmul of = {.of = ls_matmul_of(call->op),
                                      .transpose_a = attr->transpose_a,
                                      .transpose_b = attr->transpose_b,
                                      .scale = attr->scale,
                                      .bf16 = call->op->input[0]->type == LS_BF16,
                                      .out_bf16 = call->op->output[0]->type == LS_BF16};
    return ls_cuda_multiply_matrices(call->stream, &of, call->in[0], call->in[1], call->out[0]);
}

/* ---- Gated linear units ---------------------------------------------------------------------- */

/* `x`: the input that holds the value; y has n elements. */
static struct ls_cuda_glu glu_of(const struct ls_op *op, const struct ls_value *x, bool halves,
                                 int64_t n)
{
    const struct ls_glu_attr *attr = &op->attr.glu;
    return (struct ls_cuda_glu){.gate = attr->gate,
                                .linear = attr->linear,
                                .keeps_x = ls_activation_keeps_x(&attr->gate),
                                .halves = halves,
                                .gate_first = attr->gate_first,
                                .bf16 = x->type == LS_BF16,
                                .n = n,
                                .run = ls_shape_count(&x->shape, attr->axis, x->shape.rank) / 2};
}

/* All values have one type. */
static bool glu_takes_bf16(const struct ls_op *op)
{
    bool takes = true;
    for (int i = 1; i < op->inputs; i++)
        takes = takes && op->input[i]->type == op->input[0]->type;
    for (int i = 0; i < op->outputs; i++)
        takes = takes && (op->output[i] == NULL || op->output[i]->type == op->input[0]->type);
    return takes;
}

static int glu(const struct ls_card_call *call)
{
    const bool halves = call->op->inputs == 1;
    const struct ls_cuda_glu of =
        glu_of(call->op, call->op->input[0], halves, size_of(call->op->output[0]));
    return ls_cuda_gate(call->stream, &of, call->in[0], call->in[halves ? 0 : 1], call->out[0]);
}

/* in: dy, x; or dy, value, gate */
static int glu_backward(const struct ls_card_call *call)
{
    const bool halves = call->op->inputs == 2;
    const struct ls_cuda_glu of =
        glu_of(call->op, call->op->input[1], halves, size_of(call->op->input[0]));
    return ls_cuda_gate_backward(call->stream, &of, call->in[0], call->in[1],
                                 call->in[halves ? 1 : 2], call->out[0],
                                 halves ? call->out[0] : ls_card_out(call, 1));
}

/* ---- Places along an axis -------------------------------------------------------------------- */

static struct ls_cuda_gather gather_of(const struct ls_op *op, const struct ls_value *x)
{
    const struct ls_gather_attr *attr = &op->attr.gather;
    const struct ls_shape *index = &op->input[1]->shape, *shape = &x->shape;
    struct ls_cuda_gather of = {.outer = ls_shape_count(shape, 0, attr->axis),
                                .places = shape->dim[attr->axis],
                                .picks = index->dim[index->rank - 1],
                                .inner = ls_shape_count(shape, attr->axis + 1, shape->rank),
                                .bytes = (int)ls_dtype_size(x->type)};
    of.each = attr->shared ? of.outer : of.outer / index->dim[0];
    return of;
}

static int gather(const struct ls_card_call *call)
{
    const struct ls_cuda_gather of = gather_of(call->op, call->op->input[0]);
    return ls_cuda_take_places(call->stream, &of, call->in[0], call->in[1], call->out[0]);
}

static int check_gather_backward(const struct ls_op *op, struct ls_error *error)
{
    return check_numbers(op, size_of(op->output[0]), error);
}

static size_t gather_backward_scratch(const struct ls_op *op)
{
    const struct ls_cuda_gather of = gather_of(op, op->output[0]);
    return ls_cuda_take_places_scratch(&of);
}

static int gather_backward(const struct ls_card_call *call)
{
    const struct ls_cuda_gather of = gather_of(call->op, call->op->output[0]);
    return ls_cuda_take_places_backward(call->stream, &of, call->in[0], call->in[1], call->scratch,
                                        call->out[0]);
}

static struct ls_cuda_pad pad_of(const struct ls_op *op, const struct ls_value *x,
                                 const struct ls_value *y)
{
    const struct ls_pad_attr *attr = &op->attr.pad;
    struct ls_cuda_pad of = {.reflect = attr->mode == LS_PAD_REFLECT,
                             .edge = attr->mode == LS_PAD_EDGE,
                             .rank = x->shape.rank,
                             .bytes = (int)ls_dtype_size(x->type)};
    for (int a = 0; a < of.rank; a++) {
        of.x[a] = x->shape.dim[a];
        of.y[a] = y->shape.dim[a];
        of.before[a] = attr->before[a];
    }
    ls_dtype_convert(LS_F32, &attr->value, x->type, &of.value, 1);
    return of;
}

static int pad(const struct ls_card_call *call)
{
    const struct ls_cuda_pad of = pad_of(call->op, call->op->input[0], call->op->output[0]);
    return ls_cuda_pad_places(call->stream, &of, call->in[0], call->out[0]);
}

static int pad_backward(const struct ls_card_call *call)
{
    const struct ls_cuda_pad of = pad_of(call->op, call->op->output[0], call->op->input[0]);
    return ls_cuda_pad_places_backward(call->stream, &of, call->in[0], call->out[0]);
}

/* Numbers that are moved have one type. */
static bool moves_bf16(const struct ls_op *op)
{
    return op->input[0]->type == op->output[0]->type &&
           (op->inputs < 2 || op->input[1]->type == LS_F32);
}

static int positions(const struct ls_card_call *call)
{
    const struct ls_shape *y = &call->op->output[0]->shape;
    return ls_cuda_positions(call->stream, ls_shape_size(y) / y->dim[1], y->dim[1],
                             call->op->attr.offset, call->context->numbers, ls_card_in(call, 0),
                             call->out[0]);
}

/* ---- Rows of a table ------------------------------------------------------------------------- */

static int embed(const struct ls_card_call *call)
{
    const struct ls_shape *table = &call->op->input[0]->shape;
    const struct ls_cuda_embed of = {size_of(call->op->input[1]), table->dim[0], table->dim[1]};
    return ls_cuda_take_rows(call->stream, &of, call->in[0], call->in[1], ls_card_in(call, 2),
                             call->out[0]);
}

/* in: dy, index */
static struct ls_cuda_embed embed_back_of(const struct ls_op *op)
{
    const struct ls_shape *dy = &op->input[0]->shape;
    const struct ls_value *dw = op->output[0];
    const bool rows = op->kind == LS_OP_EMBED_ROWS;
    return (struct ls_cuda_embed){size_of(op->input[1]),
                                  rows         ? op->attr.embed_rows
                                  : dw != NULL ? dw->shape.dim[0]
                                               : 0,
                                  dy->dim[dy->rank - 1]};
}

static int check_embed(const struct ls_op *op, struct ls_error *error)
{
    const struct ls_cuda_embed of = embed_back_of(op);
    return check_numbers(op, of.n > of.rows ? of.n : of.rows, error);
}

static size_t embed_scratch(const struct ls_op *op)
{
    const struct ls_cuda_embed of = embed_back_of(op);
    return ls_cuda_embed_scratch(&of);
}

static int embed_weights(const struct ls_card_call *call)
{
    const struct ls_cuda_embed of = embed_back_of(call->op);
    return ls_cuda_embed_weights(call->stream, &of, call->in[0], call->in[1], call->scratch,
                                 call->out[0], ls_card_out(call, 1));
}

static int embed_rows(const struct ls_card_call *call)
{
    const struct ls_cuda_embed of = embed_back_of(call->op);
    return ls_cuda_embed_rows(call->stream, &of, size_of(call->op->output[1]), call->in[0],
                              call->in[1], call->scratch, call->out[0], call->out[1],
                              ls_card_out(call, 2));
}

/* `first`: which input the index is. */
static struct ls_cuda_bags bags_of(const struct ls_card_call *call, int first, int64_t rows,
                                   int64_t columns)
{
    const struct ls_bag_attr *attr = &call->op->attr.bag;
    const struct ls_shape *index = &call->op->input[first]->shape;
    const int64_t length = index->dim[index->rank - 1];
    return (struct ls_cuda_bags){.bags = ls_shape_size(index) / length,
                                 .length = length,
                                 .rows = rows,
                                 .columns = columns,
                                 .mean = attr->mean,
                                 .has_padding = attr->has_padding,
                                 .padding = attr->padding,
                                 .index = call->in[first],
                                 .lengths = ls_card_in(call, first + 1),
                                 .weights = ls_card_in(call, first + 2)};
}

static int embed_bag(const struct ls_card_call *call)
{
    const struct ls_shape *table = &call->op->input[0]->shape;
    const struct ls_cuda_bags of = bags_of(call, 1, table->dim[0], table->dim[1]);
    return ls_cuda_embed_bag(call->stream, &of, call->in[0], call->out[0]);
}

static int embed_bag_rows(const struct ls_card_call *call)
{
    const struct ls_shape *dy = &call->op->input[0]->shape;
    const struct ls_cuda_bags of = bags_of(call, 1, 0, dy->dim[dy->rank - 1]);
    return ls_cuda_embed_bag_rows(call->stream, &of, call->in[0], call->out[0]);
}

/* in: dy, w, index, (lengths) */
static int embed_bag_factors(const struct ls_card_call *call)
{
    const struct ls_shape *table = &call->op->input[1]->shape;
    const struct ls_cuda_bags of = bags_of(call, 2, table->dim[0], table->dim[1]);
    return ls_cuda_embed_bag_factors(call->stream, &of, call->in[0], call->in[1], call->out[0]);
}

/* ---- Fillers --------------------------------------------------------------------------------- */

/* Numbers that differ from sample to sample are for values whose first axis is that of the samples.
 */
static int check_fill(const struct ls_op *op, struct ls_error *error)
{
    struct ls_filler filler;
    int64_t each;
    LS_TRY(ls_filler_resolve_op(&filler, op, &each, error));
    if (filler.kind == LS_FILLER_CONSTANT || op->output[0]->sample_axis <= 0)
        return 0;
    return ls_layer_fail(op->layer, error, NULL, NULL, "use the filler constant",
                         "random numbers are for values whose samples lie along axis 0");
}

static int fill(const struct ls_card_call *call)
{
    const struct ls_value *y = call->op->output[0];
    struct ls_cuda_fill of = {.key = call->op->attr.fill.key,
                              .mask_key = ls_mix(call->op->attr.fill.key + 1),
                              .samples = y->sample_axis == 0,
                              .n = size_of(y)};
    LS_TRY(ls_filler_resolve_op(&of.filler, call->op, &of.each, NULL)); /* which was checked */
    if (of.filler.kind == LS_FILLER_CONSTANT || !of.samples)
        of.each = of.n;
    return ls_cuda_fill_numbers(call->stream, &of, call->context->numbers, call->out[0]);
}

const struct ls_card_op ls_card_sequences[LS_OP_KINDS] = {
    [LS_OP_MATMUL] = {.run = matmul, .takes_bf16 = matmul_takes_bf16, .bits = LS_BITS_DEFINED},
    [LS_OP_GLU] = {.run = glu, .takes_bf16 = glu_takes_bf16},
    [LS_OP_GLU_BACKWARD] = {.run = glu_backward, .takes_bf16 = glu_takes_bf16},
    [LS_OP_GATHER] = {.run = gather, .takes_bf16 = moves_bf16, .bits = LS_BITS_EXACT},
    [LS_OP_GATHER_BACKWARD] = {.run = gather_backward,
                               .scratch = gather_backward_scratch,
                               .check = check_gather_backward},
    [LS_OP_PAD] = {.run = pad, .takes_bf16 = moves_bf16, .bits = LS_BITS_EXACT},
    [LS_OP_PAD_BACKWARD] = {.run = pad_backward},
    [LS_OP_POSITIONS] = {.run = positions, .bits = LS_BITS_EXACT},
    [LS_OP_EMBED] = {.run = embed},
    [LS_OP_EMBED_WEIGHTS] = {.run = embed_weights, .scratch = embed_scratch, .check = check_embed},
    [LS_OP_EMBED_ROWS] = {.run = embed_rows, .scratch = embed_scratch, .check = check_embed},
    [LS_OP_EMBED_BAG] = {.run = embed_bag},
    [LS_OP_EMBED_BAG_ROWS] = {.run = embed_bag_rows},
    [LS_OP_EMBED_BAG_FACTORS] = {.run = embed_bag_factors},
    [LS_OP_FILL] = {.run = fill, .check = check_fill},
};
