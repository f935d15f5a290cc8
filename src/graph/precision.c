/* Element types of values in layers that compute with bf16 (docs/numerics.md, section 16), and
 * which products take their factors in TF32 (section 27).
 *
 * Ops say by their records which of their outputs are rounded (ir/ops.def: outputs), and which of
 * their inputs, as products of bf16 numbers (rounded_inputs). Everything else is fp32. What does
 * not depend on a learned parameter is input of the net, labels among it, and keeps its type; but
 * numbers that data are read to, and that nothing reads but products which round them, are rounded
 * when they are read: half the bytes are decoded ahead, and no copy is made.
 *
 * A value has the type that its own layer gives it, and a gradient that of the value that it is the
 * gradient of, so that rewrites may join ops of layers in different precision: what they join is
 * computed in fp32 and rounded to the type of the result.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "graph/build.h"
#include "ir/layer.h"
#include "ir/op_type.h"

/* The type that all inputs have; F32 where they differ. */
static enum ls_dtype common_type(const struct ls_op *op)
{
    enum ls_dtype type = op->input[0]->type;
    for (int i = 1; i < op->inputs; i++)
        if (op->input[i]->type != type)
            type = LS_F32;
    return type;
}

static enum ls_dtype output_type(const struct ls_op *op, int index)
{
    const struct ls_value *value = op->output[index];
    const enum ls_op_outputs outputs = ls_op_type(op->kind)->outputs;
    if (op->kind == LS_OP_VIEW) /* it shares memory */
        return op->input[0]->type;
    if (value->type != LS_F32 || value->storage != LS_STORE_ARENA)
        return value->type;
    if (value->gradient_of != NULL)
        return value->gradient_of->type;
    if (op->backward)
        return LS_F32;
    if (outputs == LS_OUTPUTS_MOVED)
        return common_type(op);
    bool rounded = outputs == LS_OUTPUTS_ROUNDED && index == 0 && op->layer != NULL &&
                   op->layer->bf16 && value->learned;
    return rounded ? LS_BF16 : LS_F32;
}

/* Whether the precision of its layer decides what an op reads or writes. */
static bool has_precision(const struct ls_op *op)
{
    const struct ls_op_type *type = ls_op_type(op->kind);
    bool rounds = type->outputs == LS_OUTPUTS_ROUNDED && !op->backward && op->output[0]->learned;
    return op->layer != NULL && (type->rounded_inputs > 0 || rounds);
}

/* Whether the sums of a product have a declared order in fp32, which cannot be TF32's. */
static bool is_declared(const struct ls_op *op)
{
    return op->kind != LS_OP_MATMUL && ls_op_is_portable_product(op);
}

/* A net without products is portable where the definition asks for a precision that is. */
static bool is_portable(const struct ls_graph *graph)
{
    bool any = false, all = true;
    for (size_t i = 0; i < graph->layer_count; i++)
        any = any || graph->layers[i]->bf16;
    for (size_t i = 0; i < graph->op_count; i++) {
        const struct ls_op *op = graph->ops[i];
        const bool product = ls_op_type(op->kind)->rounded_inputs > 0 && op->kind != LS_OP_RECORD;
        any = any || product;
        all = all && (!product || ls_op_is_portable_product(op));
    }
    return any && all;
}

/* Whether an op rounds `value` wherever it reads it. */
static bool rounds_input(const struct ls_op *op, const struct ls_value *value)
{
    for (int i = 0; i < op->inputs; i++)
        if (op->input[i] == value && !(op->bf16 && i < ls_op_type(op->kind)->rounded_inputs))
            return false;
    return true;
}

static bool reads(const struct ls_op *op, const struct ls_value *value)
{
    for (int i = 0; i < op->inputs; i++)
        if (op->input[i] == value)
            return true;
    return false;
}

void ls_graph_round_inputs(struct ls_graph *graph)
{
    for (size_t i = 0; i < graph->input_count; i++) {
        struct ls_value *value = graph->inputs[i].value;
        bool read = false, rounded = value->type == LS_F32;
        for (size_t j = 0; j < graph->op_count; j++) {
            read = read || reads(graph->ops[j], value);
            rounded = rounded && rounds_input(graph->ops[j], value);
        }
        if (read && rounded)
            value->type = LS_BF16;
    }
}

void ls_graph_set_precision(struct ls_graph *graph)
{
    for (size_t i = 0; i < graph->op_count; i++) {
        struct ls_op *op = graph->ops[i];
        op->bf16 = ls_op_type(op->kind)->rounded_inputs > 0 && op->layer != NULL && op->layer->bf16;
        op->tf32 =
            ls_op_type(op->kind)->tf32 && op->layer != NULL && op->layer->tf32 && !is_declared(op);
        if (has_precision(op) && (op->tf32 || !op->layer->tf32))
            graph->layers[op->layer->index]->rounds = true;
        for (int j = 0; j < op->outputs; j++)
            if (op->output[j] != NULL)
                op->output[j]->type = output_type(op, j);
    }
    graph->portable = is_portable(graph);
}
