/* Recurrent cells. See ops/cuda/ops.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/kernels/recurrent.h"

#include "ops/cuda/ops.h"

static struct ls_cuda_cells cells_of(const struct ls_op *op)
{
    const struct ls_recurrent_attr *attr = &op->attr.recurrent;
    return (struct ls_cuda_cells){.lstm = attr->cell == LS_CELL_LSTM,
                                  .gru = attr->cell == LS_CELL_GRU,
                                  .bf16 = attr->bf16,
                                  .parts = ls_cell_parts(attr->cell),
                                  .steps = attr->steps,
                                  .rows = attr->rows,
                                  .hidden = attr->hidden};
}

static size_t forward_scratch(const struct ls_op *op)
{
    const struct ls_cuda_cells cells = cells_of(op);
    return ls_cuda_recurrent_scratch(&cells);
}

static size_t backward_scratch(const struct ls_op *op)
{
    const struct ls_cuda_cells cells = cells_of(op);
    return ls_cuda_recurrent_back_scratch(&cells);
}

static int recurrent(const struct ls_card_call *call)
{
    const struct ls_cuda_recurrent of = {.cells = cells_of(call->op),
                                         .z = call->in[0],
                                         .cont = call->in[1],
                                         .still = ls_card_in(call, 2),
                                         .w = ls_card_in(call, 3),
                                         .b = ls_card_in(call, 4),
                                         .h0 = ls_card_in(call, 5),
                                         .c0 = ls_card_in(call, 6),
                                         .h = call->out[0],
                                         .gates = ls_card_out(call, 1),
                                         .before = ls_card_out(call, 2),
                                         .c = ls_card_out(call, 3),
                                         .h_last = ls_card_out(call, 4),
                                         .c_last = ls_card_out(call, 5),
                                         .z_bf16 = call->op->input[0]->type == LS_BF16,
                                         .h_bf16 = call->op->output[0]->type == LS_BF16,
                                         .scratch = call->scratch};
    return ls_cuda_run_cells(call->stream, &of);
}

static bool is_bf16(const struct ls_op *op, int input)
{
    return op->input[input] != NULL && op->input[input]->type == LS_BF16;
}

/* z and h, their gradients, and h of the backward pass may be bf16; what goes on from step to step
 * is fp32. */
static bool takes_bf16(const struct ls_op *op)
{
    const bool back = op->kind == LS_OP_RECURRENT_BACKWARD;
    bool takes = true;
    for (int i = 1; i < op->inputs; i++)
        takes = takes && (!is_bf16(op, i) || (back && i == 4));
    for (int i = 1; i < op->outputs; i++)
        takes = takes && (op->output[i] == NULL || op->output[i]->type == LS_F32);
    return takes;
}

static int recurrent_backward(const struct ls_card_call *call)
{
    const struct ls_cuda_recurrent_back of = {.cells = cells_of(call->op),
                                              .dh = call->in[0],
                                              .dh_last = ls_card_in(call, 1),
                                              .dc_last = ls_card_in(call, 2),
                                              .gates = ls_card_in(call, 3),
                                              .h = ls_card_in(call, 4),
                                              .before = ls_card_in(call, 5),
                                              .c = ls_card_in(call, 6),
                                              .c0 = ls_card_in(call, 7),
                                              .cont = call->in[8],
                                              .w = ls_card_in(call, 9),
                                              .dz = call->out[0],
                                              .du = ls_card_out(call, 1),
                                              .dstill = ls_card_out(call, 2),
                                              .dh0 = ls_card_out(call, 3),
                                              .dc0 = ls_card_out(call, 4),
                                              .dh_bf16 = is_bf16(call->op, 0),
                                              .h_bf16 = is_bf16(call->op, 4),
                                              .dz_bf16 = call->op->output[0]->type == LS_BF16,
                                              .scratch = call->scratch};
    return ls_cuda_run_cells_backward(call->stream, &of);
}

const struct ls_card_op ls_card_recurrent[LS_OP_KINDS] = {
    [LS_OP_RECURRENT] = {.run = recurrent, .scratch = forward_scratch, .takes_bf16 = takes_bf16},
    [LS_OP_RECURRENT_BACKWARD] = {.run = recurrent_backward,
                                  .scratch = backward_scratch,
                                  .takes_bf16 = takes_bf16},
};
