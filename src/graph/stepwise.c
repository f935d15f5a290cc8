/* Nets that can be computed token by token. See graph/stepwise.h.
 *
 * Each value has an axis along which the tokens of a text follow each other, or none. Ops hand that
 * on, and those that do more along this axis than go from place to place are found here.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "graph/stepwise.h"

#include "base/memory.h"
#include "ir/attention.h"
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

/* What a search knows. */
struct search {
    const struct ls_graph *graph;
    const struct ls_language_net *language;
    int *axes; /* by value */
};

/* Whether a value is an input that says `what` of each token; NULL is none that says otherwise. */
static bool is_input(const struct search *search, const struct ls_value *value,
                     enum ls_token_input what)
{
    return value == NULL || (value->storage == LS_STORE_INPUT &&
                             ls_language_net_input(search->language, value->name) == what);
}

/* The same, or the numbers of positions from 0 on that a layer makes. */
static bool are_positions(const struct search *search, const struct ls_value *value)
{
    if (is_input(search, value, LS_TOKEN_POSITIONS))
        return true;
    for (size_t i = 0; i < search->graph->op_count; i++) {
        const struct ls_op *op = search->graph->ops[i];
        if (op->kind == LS_OP_POSITIONS && op->output[0] == value)
            return op->attr.offset == 0;
    }
    return false;
}

/* Attention of tokens to themselves and those in front of them. What says that these are of one
 * text, without gaps, is as good as absent; other masks are not. */
static int follow_attention(const struct search *search, const struct ls_op *op)
{
    const struct ls_attention_attr *attr = &op->attr.attention;
    struct ls_value *const *in = op->input;
    for (int i = LS_ATTENTION_Q; i <= LS_ATTENTION_V; i++)
        if (in[i] != NULL && search->axes[in[i]->index] != 1)
            return MIXED;
    const bool plain = in[LS_ATTENTION_LENGTHS] == NULL && in[LS_ATTENTION_MASK] == NULL &&
                       is_input(search, in[LS_ATTENTION_KEY_MASK], LS_TOKEN_MASK) &&
                       is_input(search, in[LS_ATTENTION_SEGMENTS], LS_TOKEN_SEGMENTS) &&
                       are_positions(search, in[LS_ATTENTION_POSITIONS]);
    return attr->causal && attr->queries == attr->keys && plain ? 1 : MIXED;
}

/* The places of tokens, of which layer Positions looks at the shape alone. */
static int follow_positions(const struct search *search, const struct ls_op *op)
{
    const struct ls_value *of = op->layer != NULL ? op->layer->bottom[0] : NULL;
    const int axis = of != NULL ? search->axes[of->index] : NO_TOKENS;
    if (op->inputs > 0 && !is_input(search, op->input[0], LS_TOKEN_SEGMENTS))
        return MIXED;
    return axis == 1 || (axis == NO_TOKENS && op->inputs == 0) ? axis : MIXED;
}

/* The axis along which output 0 of an op has tokens, if its inputs have them as `axes` says. */
static int follow_op(const struct search *search, const struct ls_op *op)
{
    const int *axes = search->axes;
    const int axis = op->inputs > 0 && op->input[0] != NULL ? axes[op->input[0]->index] : NO_TOKENS;
    if (op->kind == LS_OP_EMBED)
        return axes[op->input[1]->index];
    if (op->kind == LS_OP_POSITIONS)
        return follow_positions(search, op);
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
    case LS_OP_ATTENTION:
        return follow_attention(search, op);
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
static bool follow(const struct search *search, const struct ls_op *op)
{
    int *axes = search->axes;
    if (op->kind == LS_OP_KEEP || (op->kind != LS_OP_POSITIONS && !has_tokens(op, axes)))
        return true;
    const int axis = follow_op(search, op);
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
    const struct search search = {graph, language, axes};
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
        if (!follow(&search, graph->ops[i]))
            *mixer = graph->ops[i]->layer;
    ls_free(axes);
    return 0;
}

bool ls_graph_is_endless(const struct ls_graph *graph, const struct ls_language_net *language)
{
    for (size_t i = 0; i < language->input_count; i++)
        if (language->inputs[i].what == LS_TOKEN_POSITIONS)
            return false;
    for (size_t i = 0; i < graph->op_count; i++)
        if (graph->ops[i]->kind == LS_OP_ATTENTION || graph->ops[i]->kind == LS_OP_POSITIONS)
            return false;
    return language->recurrent;
}
