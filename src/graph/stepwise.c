/* Nets that can be computed token by token. See graph/stepwise.h.
 *
 * Each value has an axis along which the tokens of a text follow each other, or none. Ops hand that
 * on, and those that do more along this axis than go from place to place are found here.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "graph/stepwise.h"

#include "base/memory.h"
#include "ir/layer.h"

/* Instead of an axis. */
enum { NO_TOKENS = -1, MIXED = -2 };

/* The axis of the tokens in a value of another shape with the same numbers. */
static int follow_view(const struct ls_value *x, const struct ls_value *y, int axis)
{
    const int64_t before = ls_shape_count(&x->shape, 0, axis);
    for (int i = 0; i < y->shape.rank; i++)
        if (y->shape.dim[i] == x->shape.dim[axis] && ls_shape_count(&y->shape, 0, i) == before)
            return i;
    return MIXED;
}

/* The axes from one behind the tokens' on are the inputs of a product. */
static int follow_product(const struct ls_op *op, int axis)
{
    const struct ls_shape *x = &op->input[0]->shape;
    for (int i = axis + 1; i <= x->rank; i++)
        if (ls_shape_count(x, i, x->rank) == op->attr.inner_product.k)
            return axis;
    return MIXED;
}

static int follow_permutation(const struct ls_op *op, int axis)
{
    for (int i = 0; i < op->input[0]->shape.rank; i++)
        if (op->attr.order[i] == axis)
            return i;
    return MIXED;
}

/* All inputs of an op that goes from place to place must have their tokens along the same axis. */
static int follow_all(const struct ls_op *op, const int *axes)
{
    const int axis = axes[op->input[0]->index];
    for (int i = 1; i < op->inputs; i++)
        if (op->input[i] != NULL && axes[op->input[i]->index] != axis)
            return MIXED;
    return axis;
}

/* A factor and a bias that are the same for all tokens. */
static int follow_factors(const struct ls_op *op, const int *axes)
{
    const struct ls_scale_attr *attr = &op->attr.scale;
    const int axis = axes[op->input[0]->index];
    for (int i = 1; i < op->inputs; i++)
        if (op->input[i] != NULL && axes[op->input[i]->index] != NO_TOKENS)
            return MIXED;
    return axis < attr->axis || axis >= attr->axis + attr->axes ? axis : MIXED;
}

/* The axis along which output 0 of an op has tokens, if its inputs have them as `axes` says. */
static int follow_op(const struct ls_op *op, const int *axes)
{
    const int axis = op->input[0] != NULL ? axes[op->input[0]->index] : NO_TOKENS;
    if (op->kind == LS_OP_EMBED)
        return axes[op->input[1]->index];
    if (axis == NO_TOKENS)
        return MIXED;
    switch (op->kind) {
    case LS_OP_REORDER:
    case LS_OP_ACTIVATION:
    case LS_OP_DROPOUT:
        return axis;
    case LS_OP_VIEW:
        return follow_view(op->input[0], op->output[0], axis);
    case LS_OP_INNER_PRODUCT:
        return follow_product(op, axis);
    case LS_OP_ELTWISE:
        return follow_all(op, axes);
    case LS_OP_CONCAT:
    case LS_OP_SLICE:
        return op->attr.axis != axis ? follow_all(op, axes) : MIXED;
    case LS_OP_GLU:
        return op->attr.glu.axis != axis || op->inputs > 1 ? follow_all(op, axes) : MIXED;
    case LS_OP_SOFTMAX:
        if (op->inputs > 1 && op->input[1] != NULL)
            return MIXED;
        return op->attr.axis != axis ? axis : MIXED;
    case LS_OP_NORMALIZE:
        return op->attr.normalize.axis > axis ? axis : MIXED;
    case LS_OP_REDUCE:
        return op->attr.reduction.axis > axis ? axis : MIXED;
    case LS_OP_SCALE:
        return follow_factors(op, axes);
    case LS_OP_PERMUTE:
        return follow_permutation(op, axis);
    case LS_OP_RECURRENT:
        return axis == 0 ? 0 : MIXED;
    default:
        return MIXED;
    }
}

static bool has_tokens(const struct ls_op *op, const int *axes)
{
    for (int i = 0; i < op->inputs; i++)
        if (op->input[i] != NULL && axes[op->input[i]->index] != NO_TOKENS)
            return true;
    return false;
}

/* Notes the axes of an op's outputs; whether it leaves tokens apart. */
static bool follow(const struct ls_op *op, int *axes)
{
    if (op->kind == LS_OP_KEEP || !has_tokens(op, axes))
        return true;
    const int axis = follow_op(op, axes);
    for (int i = 0; i < op->outputs && axis != MIXED; i++)
        if (op->output[i] !=
            NULL) /* of a recurrent layer those behind hidden are of the last step */
            axes[op->output[i]->index] = op->kind == LS_OP_RECURRENT && i > 0 ? NO_TOKENS : axis;
    return axis != MIXED;
}

int ls_graph_find_token_mixer(const struct ls_graph *graph, const struct ls_language_net *language,
                              const struct ls_layer **mixer, struct ls_error *error)
{
    int *axes = ls_alloc(graph->value_count + 1, sizeof *axes);
    *mixer = NULL;
    if (axes == NULL)
        return ls_fail_memory(error, "a net");
    for (size_t i = 0; i < graph->value_count; i++)
        axes[i] = NO_TOKENS;
    for (size_t i = 0; i < graph->input_count; i++) {
        const struct ls_value *value = graph->inputs[i].value;
        if (ls_language_net_input(language, value->name) != LS_TOKEN_UNUSED)
            axes[value->index] = 1 - value->sample_axis;
    }
    for (size_t i = 0; i < graph->op_count && *mixer == NULL; i++)
        if (!follow(graph->ops[i], axes))
            *mixer = graph->ops[i]->layer;
    ls_free(axes);
    return 0;
}

bool ls_graph_is_endless(const struct ls_graph *graph, const struct ls_language_net *language)
{
    (void)graph;
    for (size_t i = 0; i < language->input_count; i++)
        if (language->inputs[i].what == LS_TOKEN_POSITIONS)
            return false;
    return language->recurrent;
}
