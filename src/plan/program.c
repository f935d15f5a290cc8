/* Programs: the lines for a choice of dropped steps. See plan/program.h.
 *
 * A backward step that reads what a dropped step wrote gets a copy, and a recomputation of that
 * step in front of it, with all that this needs and that was dropped, too. The copy serves all
 * readers that follow; but none in another segment of a plan that is cut, so that it is not
 * stashed. Readers in the segment of the step itself, and all forward steps, read the original.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "plan/program.h"

#include <string.h>

#include "base/memory.h"

static const struct ls_op *op_of(const struct ls_program *program, int step)
{
    return program->plan->steps[step].prepared.op;
}

/* ---- Creation -------------------------------------------------------------------------------- */

static void describe_steps(struct ls_program *program)
{
    const struct ls_plan *plan = program->plan;
    int segment = 0;
    for (size_t v = 0; v < program->values; v++)
        program->producer[v] = -1;
    for (size_t s = 0; s < plan->step_count; s++) {
        const struct ls_op *op = op_of(program, (int)s);
        program->segment[s] = segment;
        segment += ls_plan_cut_behind(plan, s);
        program->work[s] = ls_step_work(&plan->steps[s]);
        for (int i = 0; i < op->outputs; i++)
            if (op->output[i] != NULL)
                program->producer[op->output[i]->index] = (int)s;
    }
}

int ls_program_create(struct ls_program *program, const struct ls_plan *plan,
                      struct ls_value *const *keep, size_t keep_count, struct ls_error *error)
{
    size_t values = plan->graph->value_count, steps = plan->step_count;
    *program =
        (struct ls_program){.plan = plan, .keep = keep, .keep_count = keep_count, .values = values};
    program->producer = ls_alloc(values + 1, sizeof *program->producer);
    program->instance = ls_alloc(values + 1, sizeof *program->instance);
    program->segment = ls_alloc(steps + 1, sizeof *program->segment);
    program->dropped = ls_alloc(steps + 1, sizeof *program->dropped);
    program->wanted = ls_alloc(steps + 1, sizeof *program->wanted);
    program->stack = ls_alloc(steps + 1, sizeof *program->stack);
    program->work = ls_alloc(steps + 1, sizeof *program->work);
    if (program->producer == NULL || program->instance == NULL || program->segment == NULL ||
        program->dropped == NULL || program->wanted == NULL || program->stack == NULL ||
        program->work == NULL)
        return ls_fail_memory(error, "a plan");
    describe_steps(program);
    return 0;
}

void ls_program_free(struct ls_program *program)
{
    ls_free(program->producer);
    ls_free(program->instance);
    ls_free(program->segment);
    ls_free(program->dropped);
    ls_free(program->wanted);
    ls_free(program->stack);
    ls_free(program->work);
    ls_free(program->line);
    ls_free(program->operand);
    ls_free(program->original);
    ls_free(program->live);
    ls_free(program->arena_at);
    ls_free(program->stashed_at);
    *program = (struct ls_program){0};
}

/* ---- Lines ----------------------------------------------------------------------------------- */

static bool add_operand(struct ls_program *program, int value)
{
    if (!LS_GROW(program->operand, program->operand_count, program->operand_capacity))
        return false;
    program->operand[program->operand_count++] = value;
    return true;
}

/* A new value of the program; -1 without memory. */
static int add_value(struct ls_program *program, int original)
{
    if (!LS_GROW(program->original, program->value_count, program->original_capacity))
        return -1;
    program->original[program->value_count] = original;
    return (int)program->value_count++;
}

/* The step whose recomputation a reader in `segment` wants value `v` from; -1: it reads what is
 * there. */
static int recomputed_for(const struct ls_program *program, int v, int segment)
{
    int step = program->producer[v];
    if (step < 0 || !program->dropped[step])
        return -1;
    return program->plan->segments > 1 && program->segment[step] == segment ? -1 : step;
}

/* What a reader in `segment` reads for value `v`, where its recomputations have been done. */
static int resolve(const struct ls_program *program, int v, int segment)
{
    return recomputed_for(program, v, segment) >= 0 ? program->instance[v] : v;
}

/* Adds a line; a backward one, and a recomputation, reads copies; a recomputation writes new ones.
 */
static bool add_line(struct ls_program *program, int step, int segment, bool recomputed)
{
    const struct ls_op *op = op_of(program, step);
    bool copies = recomputed || op->backward;
    if (!LS_GROW(program->line, program->line_count, program->line_capacity))
        return false;
    program->line[program->line_count++] = (struct ls_line){.step = step,
                                                            .segment = segment,
                                                            .recomputed = recomputed,
                                                            .operands = program->operand_count};
    for (int i = 0; i < op->inputs; i++) {
        int v = op->input[i] != NULL ? op->input[i]->index : -1;
        if (!add_operand(program, v >= 0 && copies ? resolve(program, v, segment) : v))
            return false;
    }
    for (int i = 0; i < op->outputs; i++) {
        int v = op->output[i] != NULL ? op->output[i]->index : -1;
        if (v >= 0 && recomputed)
            v = program->instance[v] = add_value(program, v);
        if (!add_operand(program, v) || (v < 0 && op->output[i] != NULL))
            return false;
    }
    program->recomputations += recomputed;
    program->recompute_work += recomputed ? program->work[step] : 0;
    return true;
}

/* Marks what must be recomputed for the inputs of a step; the smallest such step, or `least`. */
static int push_recomputations(struct ls_program *program, int step, int segment, int *depth,
                               int least)
{
    const struct ls_op *op = op_of(program, step);
    for (int i = 0; i < op->inputs; i++) {
        int from =
            op->input[i] != NULL ? recomputed_for(program, op->input[i]->index, segment) : -1;
        if (from < 0 || program->wanted[from] || program->instance[op->input[i]->index] >= 0)
            continue;
        program->wanted[from] = true;
        program->stack[(*depth)++] = from;
        least = from < least ? from : least;
    }
    return least;
}

/* Recomputes all that a backward step needs, in the order of the forward pass. */
static bool add_recomputations(struct ls_program *program, int step)
{
    int depth = 0, segment = program->segment[step], most = -1;
    int least = push_recomputations(program, step, segment, &depth, step);
    for (int i = 0; i < depth; i++)
        most = program->stack[i] > most ? program->stack[i] : most;
    while (depth > 0) {
        int next = program->stack[--depth];
        least = push_recomputations(program, next, segment, &depth, least);
    }
    for (int s = least; s <= most; s++) {
        if (!program->wanted[s])
            continue;
        program->wanted[s] = false;
        if (!add_line(program, s, segment, true))
            return false;
    }
    return true;
}

/* Copies do not serve another segment. */
static void forget_copies(struct ls_program *program)
{
    for (size_t v = 0; v < program->values; v++)
        program->instance[v] = -1;
}

/* What is a view of a dropped value is dropped, and no other. */
static void drop_views(struct ls_program *program)
{
    for (size_t s = 0; s < program->plan->step_count; s++) {
        const struct ls_op *op = op_of(program, (int)s);
        if (op->kind != LS_OP_VIEW)
            continue;
        int from = program->producer[op->input[0]->index];
        program->dropped[s] = !op->backward && from >= 0 && program->dropped[from];
    }
}

static bool add_lines(struct ls_program *program)
{
    const struct ls_plan *plan = program->plan;
    for (size_t v = 0; v < program->values; v++)
        if (add_value(program, (int)v) < 0)
            return false;
    forget_copies(program);
    for (size_t s = 0; s < plan->step_count; s++) {
        if (s > 0 && ls_plan_cut_behind(plan, s - 1) && program->recomputations > 0)
            forget_copies(program);
        if (op_of(program, (int)s)->backward && !add_recomputations(program, (int)s))
            return false;
        if (!add_line(program, (int)s, program->segment[s], false))
            return false;
    }
    return true;
}

int ls_program_build(struct ls_program *program, struct ls_error *error)
{
    program->line_count = program->operand_count = program->value_count = program->recomputations =
        0;
    program->recompute_work = 0;
    drop_views(program);
    if (!add_lines(program))
        return ls_fail_memory(error, "a plan");
    ls_program_chain(program);
    return ls_program_find_live_ranges(program, error);
}
