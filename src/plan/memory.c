/* Memory: what the steps of a plan keep, recompute and share, and where in memory it lies.
 *
 * First the steps to recompute are chosen (plan/recompute.c) and live ranges computed
 * (plan/liveness.c). Then values are packed (plan/pack.c): values that are live within one segment
 * into the worker's arena, values that are live across a sync point into memory that the
 * micro-batch holds. Finally the steps of the resulting program become the plan's.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdint.h>
#include <string.h>

#include "base/memory.h"
#include "plan/program.h"

/* ---- Recomputations become steps ------------------------------------------------------------- */

/* The values that the program has beyond those of the graph. */
static bool add_values(struct ls_graph *graph, const struct ls_program *program)
{
    for (size_t v = program->values; v < program->value_count; v++) {
        const struct ls_value *original = graph->values[program->original[v]];
        struct ls_value *copy = ls_graph_value(graph, original->name, &original->shape, original);
        if (copy == NULL)
            return false;
        copy->type = original->type;
        copy->layout = original->layout;
        copy->learned = original->learned;
        copy->gradient_of = original->gradient_of;
    }
    return true;
}

/* The op of a recomputation: the same on copies. */
static struct ls_op *copy_op(struct ls_graph *graph, const struct ls_op *original)
{
    struct ls_op *op = ls_graph_op(graph, original->kind);
    for (int i = 0; i < original->inputs; i++)
        ls_op_in(graph, op, original->input[i]);
    for (int i = 0; i < original->outputs; i++)
        ls_op_out(graph, op, original->output[i]);
    if (graph->failed)
        return NULL;
    op->layer = original->layer;
    op->backward = true;
    op->bf16 = original->bf16;
    op->tf32 = original->tf32;
    op->attr = original->attr;
    return op;
}

/* The step of a line: it reads and writes the values that the program says. */
static bool make_step(struct ls_plan *plan, const struct ls_program *program, size_t l,
                      struct ls_step *step)
{
    struct ls_value *const *values = plan->graph->values;
    const struct ls_line *line = &program->line[l];
    *step = plan->steps[line->step];
    if (line->recomputed) {
        step->prepared.op = copy_op(plan->graph, step->prepared.op);
        step->before_pass = step->gathered = false;
        step->recomputed = true;
    }
    const struct ls_op *op = step->prepared.op;
    if (op == NULL)
        return false;
    const int *in = program->operand + line->operands, *out = in + op->inputs;
    for (int i = 0; i < op->inputs; i++)
        op->input[i] = in[i] >= 0 ? values[in[i]] : NULL;
    for (int i = 0; i < op->outputs; i++)
        op->output[i] = out[i] >= 0 ? values[out[i]] : NULL;
    return true;
}

/* `view` has an entry for each value. */
static bool extend_views(struct ls_plan *plan, size_t before)
{
    if (plan->view == NULL)
        return true;
    int *longer = ls_resize(plan->view, plan->graph->value_count + 1, sizeof *longer);
    if (longer == NULL)
        return false;
    for (size_t v = before; v < plan->graph->value_count; v++)
        longer[v] = -1;
    plan->view = longer;
    return true;
}

static bool add_recomputations(struct ls_plan *plan, const struct ls_program *program)
{
    struct ls_step *steps = ls_alloc(program->line_count + 1, sizeof *steps);
    bool good =
        steps != NULL && add_values(plan->graph, program) && extend_views(plan, program->values);
    /* Recomputations first: they are copies of the steps as these were. */
    for (size_t l = 0; l < program->line_count && good; l++)
        if (program->line[l].recomputed)
            good = make_step(plan, program, l, &steps[l]);
    for (size_t l = 0; l < program->line_count && good; l++)
        if (!program->line[l].recomputed)
            good = make_step(plan, program, l, &steps[l]);
    if (!good) {
        ls_free(steps);
        return false;
    }
    ls_free(plan->steps);
    plan->steps = steps;
    plan->step_count = program->line_count;
    plan->recomputations = program->recomputations;
    return true;
}

/* ---- What the plan says ---------------------------------------------------------------------- */

/* A step where a chain begins says so. */
static void set_chain(struct ls_plan *plan, const struct ls_program *program, int line)
{
    const int end = program->line[line].chain_end;
    if (program->line[line].chain != line || end == line)
        return;
    plan->steps[line].chain = (size_t)(end - line) + 1;
    plan->steps[line].at_once = program->line[line].at_once;
}

static int place(struct ls_plan *plan, const struct ls_program *program,
                 const struct ls_packing *packing, struct ls_error *error)
{
    plan->offset = ls_alloc(program->value_count + 1, sizeof *plan->offset);
    plan->stashed = ls_alloc(program->value_count + 1, sizeof *plan->stashed);
    if (plan->offset == NULL || plan->stashed == NULL)
        return ls_fail_memory(error, "a plan");
    for (size_t v = 0; v < program->value_count; v++) {
        int root = (int)v;
        while (program->live[root].root != root)
            root = program->live[root].root;
        plan->offset[v] = packing->value[root];
        plan->stashed[v] = program->live[root].stashed;
        if (root != (int)v)
            plan->graph->values[v]->same_memory = plan->graph->values[root];
    }
    for (size_t s = 0; s < plan->step_count; s++) {
        plan->steps[s].scratch_offset = packing->scratch[s];
        if (plan->steps[s].prepared.scratch_bytes > plan->scratch_bytes)
            plan->scratch_bytes = plan->steps[s].prepared.scratch_bytes;
        if (!plan->steps[s].recomputed)
            plan->work += ls_step_work(&plan->steps[s]);
        set_chain(plan, program, (int)s);
    }
    plan->recompute_work = program->recompute_work;
    plan->arena_bytes = packing->arena_bytes;
    plan->stashed_bytes = packing->stashed_bytes;
    plan->live_bytes = program->arena_bytes;
    plan->stashed_live_bytes = program->stashed_bytes;
    return 0;
}

/* What is gathered is not, if that takes too much memory. */
static int reconsider(struct ls_plan *plan, const struct ls_plan_options *options,
                      struct ls_error *error)
{
    struct ls_program program;
    struct ls_packing packing = {0};
    struct ls_memory_budget budget = options->budget;
    budget.bytes = 0;
    int status = ls_program_create(&program, plan, options->keep, options->keep_count, error);
    if (status == 0)
        status = ls_program_recompute(&program, &budget, &packing, error);
    if (status == 0 &&
        !ls_plan_gather_pays(plan, packing.arena_bytes, packing.stashed_bytes, &options->budget))
        ls_plan_scatter(plan);
    ls_packing_free(&packing);
    ls_program_free(&program);
    return status;
}

int ls_plan_memory(struct ls_plan *plan, const struct ls_plan_options *options,
                   struct ls_error *error)
{
    struct ls_program program;
    struct ls_packing packing = {0};
    if (options->gather == LS_GATHER_WHERE_IT_PAYS && ls_plan_gathers(plan))
        LS_TRY(reconsider(plan, options, error));
    int status = ls_program_create(&program, plan, options->keep, options->keep_count, error);
    if (status == 0)
        status = ls_program_recompute(&program, &options->budget, &packing, error);
    if (status == 0 && program.recomputations > 0 && !add_recomputations(plan, &program))
        status = ls_fail_memory(error, "a plan");
    if (status == 0) {
        ls_plan_set_segments(plan);
        status = place(plan, &program, &packing, error);
    }
    ls_packing_free(&packing);
    ls_program_free(&program);
    return status;
}
