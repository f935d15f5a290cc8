/* Runs a plan with marks instead of numbers, to prove that its memory is safe: a step marks what it
 * writes, and a step that reads must find the marks of the value that it asks for. That is the case
 * if and only if nothing that is still needed is overwritten, in place, by scratch memory, by
 * another value or, between segments, by another micro-batch in the same arena.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_UNIT_PLAN_PLAN_MEMORY_H
#define LS_TESTS_UNIT_PLAN_PLAN_MEMORY_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"

enum { MARKED = 64 }; /* bytes that have one mark: blocks are aligned to as many */

struct memory_check {
    const struct ls_plan *plan;
    uint64_t *contents;              /* by value: the mark of what it must hold */
    uint64_t *memory[2];             /* the arena, and what the micro-batch holds: marks */
    size_t size[2], used[2];         /* in marks; used: behind the last block */
    size_t shared, stashed, chained; /* steps in place, values that are stashed, steps in chains */
    char problem[256];               /* the first; "" if there is none */
};

/* ---- What values hold ------------------------------------------------------------------------ */

static inline uint64_t mix_mark(uint64_t mark, uint64_t with)
{
    mark = (mark ^ with) * 0x9e3779b97f4a7c15u;
    return mark ^ mark >> 29;
}

/* What an op writes follows from the op and from what it reads: a recomputation marks its copies as
 * the step marked the values that they are copies of. A view holds what its source holds, and so
 * does a value in another layout or type. */
static inline void set_op_contents(uint64_t *contents, const struct ls_op *op)
{
    uint64_t mark = mix_mark((uint64_t)op->kind + 1, (uint64_t)(uintptr_t)op->layer);
    for (int i = 0; i < op->inputs; i++)
        mark = mix_mark(mark, op->input[i] != NULL ? contents[op->input[i]->index] : 1);
    for (int i = 0; i < op->outputs; i++)
        if (op->output[i] != NULL)
            contents[op->output[i]->index] = op->kind == LS_OP_VIEW || op->kind == LS_OP_REORDER
                                                 ? contents[op->input[0]->index]
                                                 : mix_mark(mark, (uint64_t)i + 1) | 1;
}

/* For values that no op writes: inputs and parameters. */
static inline void set_source_contents(uint64_t *contents, const struct ls_graph *graph)
{
    for (size_t v = 0; v < graph->value_count; v++)
        contents[v] = mix_mark(v + 1, 7) | 1;
}

/* ---- Where they lie -------------------------------------------------------------------------- */

struct block_place {
    int region;        /* 0: arena, 1: stashed */
    size_t begin, end; /* marks; begin == end: not in planned memory */
};

static inline const struct ls_value *memory_root(const struct ls_value *value)
{
    while (value->same_memory != NULL)
        value = value->same_memory;
    return value;
}

static inline struct block_place place_of(const struct memory_check *check,
                                          const struct ls_value *value)
{
    const struct ls_value *root = value != NULL ? memory_root(value) : NULL;
    if (root == NULL || root->storage != LS_STORE_ARENA)
        return (struct block_place){0};
    size_t begin = check->plan->offset[root->index];
    return (struct block_place){.region = check->plan->stashed[root->index],
                                .begin = begin / MARKED,
                                .end =
                                    begin / MARKED + (ls_value_bytes(value) + MARKED - 1) / MARKED};
}

static inline struct block_place place_of_scratch(const struct ls_step *step)
{
    size_t marks = (step->prepared.scratch_bytes + MARKED - 1) / MARKED;
    size_t begin = marks > 0 ? step->scratch_offset / MARKED : 0;
    return (struct block_place){.begin = begin, .end = begin + marks};
}

static inline bool overlap(struct block_place a, struct block_place b)
{
    return a.region == b.region && a.begin < b.end && b.begin < a.end;
}

/* ---- The run --------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static inline void memory_problem(struct memory_check *check,
                                                                        const char *format, ...)
{
    va_list arguments;
    if (check->problem[0] != '\0')
        return;
    va_start(arguments, format);
    vsnprintf(check->problem, sizeof check->problem, format, arguments);
    va_end(arguments);
}

static inline void mark_block(struct memory_check *check, struct block_place place, uint64_t mark)
{
    if (place.end > check->size[place.region]) {
        memory_problem(check, "a block ends behind the memory");
        return;
    }
    if (place.end > check->used[place.region])
        check->used[place.region] = place.end;
    for (size_t i = place.begin; i < place.end; i++)
        check->memory[place.region][i] = mark;
}

static inline void expect_marks(struct memory_check *check, size_t step, const char *what,
                                struct block_place place, uint64_t mark)
{
    for (size_t i = place.begin; i < place.end && place.end <= check->size[place.region]; i++)
        if (check->memory[place.region][i] != mark) {
            memory_problem(check, "step %zu (%s): %s was overwritten", step,
                           ls_op_kind_name(check->plan->steps[step].prepared.op->kind), what);
            return;
        }
}

/* An output may lie where an input lies if the kernel says so, and then exactly there. */
static inline void check_in_place(struct memory_check *check, size_t s)
{
    const struct ls_prepared *prepared = &check->plan->steps[s].prepared;
    const struct ls_op *op = prepared->op;
    for (int o = 0; o < op->outputs; o++)
        for (int i = 0; i < op->inputs; i++) {
            struct block_place out = place_of(check, op->output[o]);
            struct block_place in = place_of(check, op->input[i]);
            if (!overlap(out, in))
                continue;
            int allowed = prepared->kernel->in_place;
            bool may = op->kind == LS_OP_VIEW || allowed == i || allowed == LS_IN_PLACE_ANY;
            if (o > 0 || !may || out.begin != in.begin || out.end != in.end)
                memory_problem(check, "step %zu (%s): output %d lies on input %d", s,
                               ls_op_kind_name(op->kind), o, i);
            check->shared += op->kind != LS_OP_VIEW;
        }
}

static inline void run_marked_step(struct memory_check *check, size_t s)
{
    const struct ls_step *step = &check->plan->steps[s];
    const struct ls_op *op = step->prepared.op;
    const struct block_place scratch = place_of_scratch(step);
    mark_block(check, scratch, 2);
    for (int i = 0; i < op->inputs; i++)
        if (op->input[i] != NULL)
            expect_marks(check, s, "an input", place_of(check, op->input[i]),
                         check->contents[op->input[i]->index]);
    for (int i = 0; i < op->outputs; i++)
        if (op->output[i] != NULL)
            mark_block(check, place_of(check, op->output[i]),
                       check->contents[op->output[i]->index]);
    for (int i = 0; i < op->outputs; i++)
        if (op->output[i] != NULL)
            expect_marks(check, s, "an output", place_of(check, op->output[i]),
                         check->contents[op->output[i]->index]);
    expect_marks(check, s, "scratch memory", scratch, 2);
    check_in_place(check, s);
}

/* The steps of a chain take turns, some channels each: none of their blocks lie on each other,
 * unless they are one. */
static inline void check_chain(struct memory_check *check, size_t first)
{
    enum { BLOCKS_MAX = 4096 };
    static struct block_place place[BLOCKS_MAX];
    static const struct ls_value *root[BLOCKS_MAX];
    size_t count = 0;
    for (size_t s = first; s < first + check->plan->steps[first].chain; s++) {
        const struct ls_op *op = check->plan->steps[s].prepared.op;
        for (int i = 0; i < op->inputs + op->outputs && count < BLOCKS_MAX; i++) {
            const struct ls_value *value =
                i < op->inputs ? op->input[i] : op->output[i - op->inputs];
            if (value == NULL)
                continue;
            root[count] = memory_root(value);
            place[count++] = place_of(check, value);
        }
        if (count < BLOCKS_MAX) {
            root[count] = NULL; /* scratch memory is free between two turns */
            place[count++] = place_of_scratch(&check->plan->steps[s]);
        }
        check->chained++;
    }
    for (size_t a = 0; a < count; a++)
        for (size_t b = 0; b < a; b++)
            if (root[a] != root[b] && overlap(place[a], place[b]))
                memory_problem(check, "the chain at step %zu: two blocks lie on each other", first);
}

/* The arena belongs to another micro-batch between two segments. */
static inline void run_marked(struct memory_check *check, struct ls_value *const *keep,
                              size_t keep_count)
{
    const struct ls_plan *plan = check->plan;
    for (size_t g = 0; g < plan->segments; g++) {
        if (plan->segment[g] < plan->segment[g + 1])
            memset(check->memory[0], 0, check->size[0] * sizeof *check->memory[0]);
        for (size_t s = plan->segment[g]; s < plan->segment[g + 1]; s++) {
            run_marked_step(check, s);
            if (plan->steps[s].chain > 0)
                check_chain(check, s);
        }
    }
    for (size_t i = 0; i < keep_count; i++)
        expect_marks(check, plan->step_count - 1, "what should be kept", place_of(check, keep[i]),
                     check->contents[keep[i]->index]);
    for (size_t v = 0; v < plan->graph->value_count; v++)
        check->stashed += plan->stashed[v];
}

/* Runs the plan; check.problem says what is wrong, if anything is. */
static inline struct memory_check check_plan_memory(const struct ls_plan *plan,
                                                    struct ls_value *const *keep, size_t keep_count)
{
    struct memory_check check = {.plan = plan};
    check.size[0] = plan->arena_bytes / MARKED;
    check.size[1] = plan->stashed_bytes / MARKED;
    check.contents = calloc(plan->graph->value_count + 1, sizeof *check.contents);
    for (int i = 0; i < 2; i++)
        check.memory[i] = calloc(check.size[i] + 1, sizeof *check.memory[i]);
    if (check.contents == NULL || check.memory[0] == NULL || check.memory[1] == NULL)
        abort();
    set_source_contents(check.contents, plan->graph);
    for (size_t s = 0; s < plan->step_count; s++)
        set_op_contents(check.contents, plan->steps[s].prepared.op);
    run_marked(&check, keep, keep_count);
    if (check.used[0] != check.size[0] || check.used[1] != check.size[1])
        memory_problem(&check, "%zu and %zu bytes, of which %zu and %zu are used",
                       check.size[0] * MARKED, check.size[1] * MARKED, check.used[0] * MARKED,
                       check.used[1] * MARKED);
    if (plan->live_bytes > plan->arena_bytes || plan->stashed_live_bytes > plan->stashed_bytes)
        memory_problem(&check, "less memory than what is alive at once");
    for (int i = 0; i < 2; i++)
        free(check.memory[i]);
    return check; /* `contents` is the caller's to free */
}

#endif
