/* Ops that hand gradients over: to the exact sums, and as factors. See ops/cuda/ops.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ir/layer.h"
#include "ops/cuda/accumulator.h"
#include "ops/cuda/convert.h"
#include "ops/cuda/kernels/kernels.h"
#include "ops/cuda/ops.h"

/* Whether a gradient has the axes of its parameter: a layer that shares a parameter may see it in
 * another shape (PERMISSIVE). */
static bool has_axes_of_parameter(const struct ls_op *op)
{
    return ls_shape_equal(&op->input[0]->shape, &op->attr.parameter->shape);
}

/* A gradient lies as its parameter does, whose layout is settled; the rows of a matrix, their
 * numbers, and what has other axes are plain. */
static int accumulate_layouts(const struct ls_op *op, struct ls_op_layouts *layouts,
                              struct ls_error *error)
{
    (void)error;
    for (int i = 0; i < op->inputs; i++)
        layouts->in[i] = &ls_layout_plain;
    if (op->inputs == 1 && has_axes_of_parameter(op))
        layouts->in[0] = op->attr.parameter->layout;
    return 0;
}

/* For a gradient that does not lie as its parameter does, which is channels-last. */
static size_t accumulate_scratch(const struct ls_op *op)
{
    const bool lies = op->inputs > 1 || has_axes_of_parameter(op) ||
                      op->attr.parameter->layout == &ls_layout_plain;
    return lies ? 0 : ls_parameter_bytes(op->attr.parameter);
}

static int accumulate(const struct ls_card_call *call)
{
    const struct ls_context *context = call->context;
    const struct ls_parameter *parameter = call->op->attr.parameter;
    const struct ls_shape *shape = &call->op->input[0]->shape;
    const int64_t *micro_batch = &context->numbers->micro_batch;
    if (call->op->inputs > 1) {
        const struct ls_accumulated_rows rows = {call->in[0], call->in[1], (size_t)shape->dim[0],
                                                 (size_t)shape->dim[1]};
        return ls_card_accumulate_rows(call->stream, context->accumulator, micro_batch,
                                       parameter->index, &rows);
    }
    const bool lies = accumulate_scratch(call->op) == 0;
    const int code = lies ? cudaSuccess
                          : ls_card_lay_out_plain(call->stream, &parameter->shape,
                                                  parameter->layout, call->in[0], call->scratch);
    return code != cudaSuccess
               ? code
               : ls_card_accumulate(call->stream, context->accumulator, micro_batch,
                                    parameter->index, lies ? call->in[0] : call->scratch);
}

static int record(const struct ls_card_call *call)
{
    const struct ls_factor_target *factor = &call->context->factor;
    const size_t numbers = (size_t)ls_shape_size(&call->op->input[0]->shape);
    int code = cudaMemsetAsync(factor->largest, 0, sizeof *factor->largest, call->stream);
    if (code == cudaSuccess && numbers > 0)
        code = cudaMemcpyAsync(factor->rows, call->in[0], numbers * sizeof(float),
                               cudaMemcpyDeviceToDevice, call->stream);
    if (code == cudaSuccess)
        code = ls_cuda_largest(call->stream, call->in[0], numbers, factor->largest);
    return code;
}

/* A plugin's code reads and writes memory of the host. */
static int refuse_plugin(const struct ls_op *op, struct ls_error *error)
{
    return ls_layer_fail(op->layer, error, NULL, NULL, "train on the CPU, without --gpu",
                         "plugins compute in the host's memory, which cards cannot reach");
}

const struct ls_card_op ls_card_gradients[LS_OP_KINDS] = {
    [LS_OP_ACCUMULATE] = {.run = accumulate,
                          .layouts = accumulate_layouts,
                          .scratch = accumulate_scratch,
                          .bits = LS_BITS_EXACT},
    [LS_OP_RECORD] = {.run = record, .bits = LS_BITS_EXACT},
    [LS_OP_PLUGIN] = {.check = refuse_plugin},
    [LS_OP_PLUGIN_BACKWARD] = {.check = refuse_plugin},
};
