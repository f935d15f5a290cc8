/* Filter: the samples whose selector is not 0; the others are left out of all that follows.
 *
 * Bottoms x1 [N, ...], x2 [N, ...], ..., and last the selector, one number a sample; one top for
 * each bottom but the last. Caffe's tops have as many rows as samples are selected; here they keep
 * all N rows, those that are left out are zeros, and what follows counts them nowhere
 * (ir/filter.h). Gradients go back to the rows that are selected, the others get zeros, the
 * selector none. It takes no parameters.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ir/filter.h"
#include "layers/common.h"

struct filter {
    struct ls_value *selected;
};

static int check_bottom(const struct ls_layer *layer, struct ls_error *error, int bottom)
{
    const struct ls_value *x = layer->bottom[bottom], *selector = layer->bottom[layer->bottoms - 1];
    char a[160], b[160];
    LS_TRY(ls_layer_check_samples(layer, error, bottom));
    const bool mixed = ls_layer_is_mixed(layer, x) || ls_layer_is_mixed(layer, selector);
    if (x->shape.dim[0] == selector->shape.dim[0] && (x->rows == selector->rows || mixed))
        return 0;
    return ls_layer_fail(layer, error, NULL, "bottom", NULL,
                         "its bottoms must agree in axis 0, but '%s' is %s and the selector '%s' "
                         "is %s",
                         x->name, ls_shape_text(&x->shape, a, sizeof a), selector->name,
                         ls_shape_text(&selector->shape, b, sizeof b));
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    const int last = layer->bottoms - 1;
    const struct ls_value *selector = layer->bottom[last];
    char text[160];
    LS_TRY(ls_layer_begin(layer, error, NULL));
    if (layer->tops != last)
        return ls_layer_fail(layer, error, NULL, "top", NULL,
                             "it needs a top for each of its bottoms but the last, the selector: "
                             "%d, not %d",
                             last, layer->tops);
    LS_TRY(ls_layer_check_samples(layer, error, last));
    if (ls_shape_size(&selector->shape) != selector->shape.dim[0])
        return ls_layer_fail(layer, error, NULL, "bottom", NULL,
                             "its last bottom, the selector '%s', must be one number a sample, but "
                             "is %s",
                             selector->name, ls_shape_text(&selector->shape, text, sizeof text));
    int status = 0;
    for (int i = 0; i < last; i++) {
        int bad = check_bottom(layer, error, i);
        status = status != 0 ? status : bad;
    }
    return status;
}

/* What another Filter layer has made of the same selector, so that their tops go together. */
static struct ls_value *find_selected(const struct ls_graph *graph, const struct ls_value *selector)
{
    for (size_t i = 0; i < graph->op_count; i++)
        if (graph->ops[i]->kind == LS_OP_SELECT && graph->ops[i]->input[0] == selector)
            return graph->ops[i]->output[0];
    return NULL;
}

static struct ls_value *select_rows(struct ls_layer *layer)
{
    struct ls_graph *graph = layer->graph;
    struct ls_value *selector = layer->bottom[layer->bottoms - 1];
    struct ls_value *selected = find_selected(graph, selector);
    if (selected != NULL)
        return selected;
    const struct ls_shape rows = {.rank = 1, .dim = {selector->shape.dim[0]}};
    selected = ls_graph_value(graph, selector->name, &rows, selector);
    struct ls_op *op = ls_graph_op(graph, LS_OP_SELECT);
    ls_op_in(graph, op, selector);
    if (selector->selected != NULL)
        ls_op_in(graph, op, selector->selected);
    ls_op_out(graph, op, selected);
    if (selected != NULL)
        selected->needs_grad = false;
    return selected;
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    struct filter *state = layer->state;
    state->selected = select_rows(layer);
    for (int i = 0; i < layer->tops; i++) {
        struct ls_value *x = layer->bottom[i], *y = ls_layer_make_top(layer, i, &x->shape, x);
        ls_filter_emit(layer->graph, x, state->selected, 0, y);
        if (y != NULL)
            y->selected = state->selected;
    }
    return 0;
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    const struct filter *state = layer->state;
    const int last = layer->bottoms - 1;
    if (layer->propagate[last])
        return ls_layer_fail(layer, error, NULL, "bottom",
                             "write propagate_down, once for each bottom and false for the last, "
                             "into the layer to stop the gradient there",
                             "a Filter layer cannot backpropagate to its selector, but '%s' "
                             "depends on learned parameters",
                             layer->bottom[last]->name);
    for (int i = 0; i < last; i++) {
        struct ls_value *dy = ls_graph_gradient(layer->graph, layer->top[i]);
        struct ls_value *inputs[] = {dy, state->selected};
        if (layer->propagate[i] && dy != NULL)
            ls_layer_emit_gradient(layer, i, LS_OP_FILTER, inputs, 2);
    }
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    for (int i = 0; i < layer->tops; i++) {
        cost->forward_bytes += 2 * ls_layer_bytes(layer->top[i]);
        if (ls_layer_has_gradient(layer, i))
            cost->backward_bytes += 2 * ls_layer_bytes(layer->top[i]);
    }
}

const struct ls_layer_type ls_layer_filter = {
    .type = "Filter",
    .state_size = sizeof(struct filter),
    .bottoms_min = 2,
    .bottoms_max = -1,
    .tops_min = 1,
    .tops_max = -1,
    .filtered = LS_FILTERED_COUNTED,
    .setup = setup,
    .forward = forward,
    .backward = backward,
    .cost = cost,
};
