/* Liveness: when each value of a program is needed, which values may share bytes, and how much is
 * alive at once.
 *
 * A value lives from the line that writes it to the last that reads it. A view shares the memory of
 * its source; a kernel that can work in place does so when its input is not read afterwards. Values
 * that are live across a cut lie in the memory stashed for the micro-batch, all others in the
 * worker's arena. Values that the lines of a chain touch live for all of the chain, since the lines
 * alternate.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "base/align.h"
#include "base/memory.h"
#include "plan/program.h"

static const struct ls_op *op_of(const struct ls_program *program, const struct ls_line *line)
{
    return program->plan->steps[line->step].prepared.op;
}

static int find_root(const struct ls_program *program, int v)
{
    while (program->live[v].root != v)
        v = program->live[v].root;
    return v;
}

/* Every value by itself, before anything shares memory. */
static void find_own_ranges(struct ls_program *program)
{
    for (size_t v = 0; v < program->value_count; v++)
        program->live[v] = (struct ls_live_range){.root = (int)v, .first = -1, .last = -1};
    for (size_t l = 0; l < program->line_count; l++) {
        const struct ls_line *line = &program->line[l];
        const struct ls_op *op = op_of(program, line);
        const int *in = program->operand + line->operands, *out = in + op->inputs;
        for (int i = 0; i < op->outputs; i++) {
            if (out[i] < 0)
                continue;
            if (program->live[out[i]].first < 0)
                program->live[out[i]].first = (int)l;
            program->live[out[i]].last = (int)l;
        }
        for (int i = 0; i < op->inputs; i++)
            if (in[i] >= 0)
                program->live[in[i]].last = (int)l;
    }
    for (size_t i = 0; i < program->keep_count; i++)
        if (program->keep[i] != NULL)
            program->live[program->keep[i]->index].last = (int)program->line_count;
}

static void merge(struct ls_program *program, int into, int v)
{
    struct ls_live_range *live = program->live;
    live[v].root = into;
    if (live[v].last > live[into].last)
        live[into].last = live[v].last;
}

/* Whether line `l` may write its output 0 over its input `place`: no later line reads the input,
 * nor does the line itself under another name. */
static bool may_overwrite(const struct ls_program *program, size_t l, int place)
{
    const struct ls_line *line = &program->line[l];
    const struct ls_op *op = op_of(program, line);
    const int *in = program->operand + line->operands;
    if (!ls_program_in_arena(program, in[place]))
        return false;
    int root = find_root(program, in[place]);
    for (int i = 0; i < op->inputs; i++)
        if (i != place && ls_program_in_arena(program, in[i]) && find_root(program, in[i]) == root)
            return false;
    return program->live[root].last == (int)l && ls_program_in_arena(program, root) &&
           ls_program_type(program, in[op->inputs]) == ls_program_type(program, in[place]) &&
           ls_program_bytes(program, in[op->inputs]) == ls_program_bytes(program, in[place]);
}

static void share_memory(struct ls_program *program)
{
    for (size_t l = 0; l < program->line_count; l++) {
        const struct ls_line *line = &program->line[l];
        const struct ls_op *op = op_of(program, line);
        const int *in = program->operand + line->operands;
        int out = op->outputs > 0 ? in[op->inputs] : -1;
        if (!ls_program_in_arena(program, out))
            continue;
        if (op->kind == LS_OP_VIEW) {
            merge(program, find_root(program, in[0]), out);
            continue;
        }
        int place = program->plan->steps[line->step].prepared.kernel->in_place;
        int from = place == LS_IN_PLACE_ANY ? 0 : place;
        int behind = place == LS_IN_PLACE_ANY ? op->inputs : place + 1;
        for (int i = from; i >= 0 && i < behind && i < op->inputs; i++)
            if (may_overwrite(program, l, i)) {
                merge(program, find_root(program, in[i]), out);
                break;
            }
    }
}

/* Blocks that share bytes do so line by line and channel by channel; all others are apart for all
 * of a chain. */
static void stretch(struct ls_program *program)
{
    for (size_t v = 0; v < program->value_count; v++) {
        struct ls_live_range *live = &program->live[v];
        if (live->root != (int)v || live->first < 0)
            continue;
        live->first = program->line[live->first].chain;
        if (live->last < (int)program->line_count)
            live->last = program->line[live->last].chain_end;
    }
}

/* Segments of the first line and of the last; what is kept lives as long as the last segment. */
static bool crosses_cut(const struct ls_program *program, const struct ls_live_range *live)
{
    int end = (int)program->line_count - 1;
    int last = live->last < end ? live->last : end;
    return program->line[live->first].segment != program->line[last].segment;
}

/* Adds a block to the lines of its live; differences, summed up afterwards. */
static void count_bytes(struct ls_program *program, int first, int last, size_t bytes, bool stashed)
{
    size_t *at = stashed ? program->stashed_at : program->arena_at;
    at[first] += ls_align(bytes);
    if ((size_t)last + 1 < program->line_count)
        at[last + 1] -= ls_align(bytes); /* unsigned: wraps, and the sum wraps back */
}

static void measure(struct ls_program *program)
{
    size_t lines = program->line_count, arena = 0, stashed = 0;
    memset(program->arena_at, 0, lines * sizeof *program->arena_at);
    memset(program->stashed_at, 0, lines * sizeof *program->stashed_at);
    for (size_t v = 0; v < program->value_count; v++) {
        struct ls_live_range *live = &program->live[v];
        if (live->root != (int)v || live->first < 0 || !ls_program_in_arena(program, (int)v))
            continue;
        live->stashed = crosses_cut(program, live);
        count_bytes(program, live->first, live->last, ls_program_bytes(program, (int)v),
                    live->stashed);
    }
    program->arena_bytes = program->stashed_bytes = 0;
    program->area = 0;
    for (size_t l = 0; l < lines; l++) {
        arena = program->arena_at[l] += arena;
        stashed = program->stashed_at[l] += stashed;
        size_t scratch = program->plan->steps[program->line[l].step].prepared.scratch_bytes;
        if (arena + ls_align(scratch) > program->arena_bytes)
            program->arena_bytes = arena + ls_align(scratch);
        if (stashed > program->stashed_bytes)
            program->stashed_bytes = stashed;
        if (!program->line[l]
                 .recomputed) /* else a recomputation would seem to add all that is alive */
            program->area += (double)arena + (double)stashed;
    }
}

int ls_program_find_live_ranges(struct ls_program *program, struct ls_error *error)
{
    if (program->life_capacity < program->value_count) {
        size_t wanted = program->value_count * 2;
        struct ls_live_range *longer = ls_resize(program->live, wanted, sizeof *longer);
        if (longer == NULL)
            return ls_fail_memory(error, "a plan");
        program->live = longer;
        program->life_capacity = wanted;
    }
    if (program->at_capacity < program->line_count + 1) {
        size_t wanted = (program->line_count + 1) * 2;
        ls_free(program->arena_at);
        ls_free(program->stashed_at);
        program->at_capacity = 0;
        program->arena_at = ls_alloc(wanted, sizeof *program->arena_at);
        program->stashed_at = ls_alloc(wanted, sizeof *program->stashed_at);
        if (program->arena_at == NULL || program->stashed_at == NULL)
            return ls_fail_memory(error, "a plan");
        program->at_capacity = wanted;
    }
    find_own_ranges(program);
    share_memory(program);
    stretch(program);
    measure(program);
    return 0;
}
