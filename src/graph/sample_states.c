/* States per sample, checked. See graph/sample_states.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "graph/sample_states.h"

#include <string.h>

#include "ir/layer.h"

/* How often a state is kept, as what it is; -1: something else is kept in it. */
static int count_kept(const struct ls_graph *graph, size_t state)
{
    const struct ls_value *recalled = graph->sample_states[state].value;
    int count = 0;
    for (size_t i = 0; i < graph->op_count; i++) {
        const struct ls_op *op = graph->ops[i];
        if (op->kind != LS_OP_KEEP || op->attr.sample_state != (int)state)
            continue;
        const struct ls_value *kept = op->input[0];
        if (kept->type != recalled->type || kept->sample_axis != recalled->sample_axis ||
            kept->rows != recalled->rows || !ls_shape_equal(&kept->shape, &recalled->shape))
            return -1;
        count++;
    }
    return count;
}

int ls_graph_check_states(const struct ls_graph *graph, struct ls_error *error)
{
    for (size_t i = 0; i < graph->op_count; i++)
        if (graph->ops[i]->kind == LS_OP_KEEP &&
            graph->ops[i]->attr.sample_state >= (int)graph->sample_state_count)
            return ls_fail(error, LOCKSTEP_INTERNAL, graph->ops[i]->layer->name, NULL,
                           "keeps a state that it has not declared");
    for (size_t i = 0; i < graph->sample_state_count; i++) {
        const struct ls_sample_state *state = &graph->sample_states[i];
        int kept = count_kept(graph, i);
        if (state->value->sample_axis < 0)
            return ls_fail(error, LOCKSTEP_INTERNAL, state->name, NULL,
                           "a state per sample has no samples");
        if (state->value->shape.dim[state->value->sample_axis] !=
                state->value->rows * graph->samples &&
            !ls_layer_is_mixed(state->layer, state->value))
            return ls_layer_fail(state->layer, error, NULL, NULL,
                                 "recurrent_param { expose_hidden: true } keeps nothing from one "
                                 "batch to the next",
                                 "keeps '%s' for each sample, but reads rows that are no samples: "
                                 "a layer before it mixes them",
                                 state->name);
        if (kept != 1)
            return ls_fail(error, LOCKSTEP_INTERNAL, state->name, NULL,
                           kept < 0 ? "what is kept in this state is not like it"
                                    : "this state is not kept exactly once");
        for (size_t other = 0; other < i; other++)
            if (strcmp(graph->sample_states[other].name, state->name) == 0)
                return ls_fail(error, LOCKSTEP_INTERNAL, state->name, NULL,
                               "a layer has two states of this name");
    }
    return 0;
}
