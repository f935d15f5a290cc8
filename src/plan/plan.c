/* Planning, pass by pass. See plan/plan.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "plan/plan.h"

#include <string.h>

#include "base/memory.h"
#include "base/mutant.h"
#include "ir/layer.h"

/* What all workers share of each kernel. */
static int prepare(struct ls_plan *plan, struct ls_error *error)
{
    for (size_t i = 0; i < plan->step_count; i++) {
        struct ls_prepared *prepared = &plan->steps[i].prepared;
        if (prepared->kernel->prepare == NULL) {
            strcpy(prepared->implementation, "lockstep");
            continue;
        }
        int status = prepared->kernel->prepare(prepared, error);
        if (status != 0) {
            prepared->kernel = NULL; /* nothing to release */
            return status;
        }
    }
    return 0;
}

/* Marks the steps that must run before the pass: the label counts and all that they read. */
static void mark_before(struct ls_plan *plan)
{
    bool *needed = ls_alloc(plan->graph->value_count + 1, sizeof *needed);
    for (size_t i = plan->step_count; i-- > 0;) {
        struct ls_step *step = &plan->steps[i];
        const struct ls_op *op = step->prepared.op;
        step->in_pass = !op->before;
        step->before_pass = op->before;
        for (int j = 0; j < op->outputs && needed != NULL; j++)
            step->before_pass |= op->output[j] != NULL && needed[op->output[j]->index];
        if (!step->before_pass)
            continue;
        plan->has_before = true;
        for (int j = 0; j < op->inputs && needed != NULL; j++)
            if (op->input[j] != NULL)
                needed[op->input[j]->index] = true;
    }
    if (needed == NULL)
        plan->graph->failed = true;
    ls_free(needed);
}

/* Cuts the steps at sync points that concern other micro-batches, and around what is gathered. */
static int cut_segments(struct ls_plan *plan, const struct ls_plan_options *options,
                        struct ls_error *error)
{
    const struct ls_graph *graph = plan->graph;
    if (options->gather != LS_GATHER_NEVER)
        plan->may_gather = ls_plan_gather(plan, options->gather_samples);
    for (size_t i = 0; i < plan->step_count; i++) {
        const struct ls_op *op = plan->steps[i].prepared.op;
        if (op->kind != LS_OP_SYNC || options->local == NULL)
            continue;
        int grouping = graph->syncs[op->attr.sync].grouping;
        if (grouping >= 0 && options->local(options->user, graph->groupings[grouping]))
            continue;
        plan->steps[i].cut = true;
        plan->sync_cuts++;
    }
    size_t cuts = 0;
    for (size_t i = 0; i < plan->step_count; i++)
        cuts += ls_plan_cut_behind(plan, i);
    plan->segment = ls_alloc(cuts + 2, sizeof *plan->segment);
    if (plan->segment == NULL)
        return ls_fail_memory(error, "a plan");
    ls_plan_set_segments(plan);
    return 0;
}

void ls_plan_set_segments(struct ls_plan *plan)
{
    plan->segments = 1;
    for (size_t s = 0; s < plan->step_count; s++)
        if (ls_plan_cut_behind(plan, s))
            plan->segment[plan->segments++] = s + 1;
    plan->segment[plan->segments] = plan->step_count;
}

int ls_plan_build(struct ls_graph *graph, const struct ls_plan_options *options,
                  struct ls_plan **out, struct ls_error *error)
{
    *out = NULL;
    struct ls_plan *plan = ls_alloc(1, sizeof *plan);
    if (plan == NULL) {
        ls_graph_free(graph);
        return ls_fail_memory(error, "a plan");
    }
    plan->graph = graph;
    plan->device = options->device;
    for (size_t i = 0; LS_MUTANT(LIMIT) && options->budget.bytes > 0 && i < graph->op_count; i++)
        if (graph->ops[i]->kind == LS_OP_INNER_PRODUCT)
            graph->ops[i]->attr.inner_product.large = false; /* another kernel, another layout */
    int status = ls_plan_layouts(plan, options->views, error);
    if (status == 0)
        status = prepare(plan, error);
    if (status == 0)
        mark_before(plan);
    if (status == 0 && graph->failed)
        status = ls_fail_memory(error, "a plan");
    if (status == 0)
        status = cut_segments(plan, options, error);
    if (status == 0)
        status = ls_plan_memory(plan, options, error);
    if (status != 0) {
        ls_plan_free(plan);
        return status;
    }
    *out = plan;
    return 0;
}

void ls_plan_free(struct ls_plan *plan)
{
    if (plan == NULL)
        return;
    for (size_t i = 0; i < plan->step_count; i++) {
        struct ls_prepared *prepared = &plan->steps[i].prepared;
        if (prepared->kernel != NULL && prepared->kernel->release != NULL &&
            !plan->steps[i].recomputed)
            prepared->kernel->release(prepared);
    }
    ls_graph_free(plan->graph);
    ls_free(plan->steps);
    ls_free(plan->offset);
    ls_free(plan->stashed);
    ls_free(plan->segment);
    ls_free(plan->view);
    ls_free(plan);
}

void ls_view_set_free(struct ls_view_set *views)
{
    ls_free(views->items);
    *views = (struct ls_view_set){0};
}
