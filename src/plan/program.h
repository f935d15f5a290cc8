/* A plan's steps as plain numbers, to try out what memory they would take.
 *
 * The lines of a program are the steps of a plan in their order, and recomputations of forward
 * steps where the backward pass wants a result that was dropped. A recomputation writes copies of
 * the values that its step wrote; readers behind it read the copies. All that packing and
 * recomputation decide they decide on programs, and a plan is made from the one that was chosen
 * (plan/memory.c).
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_PLAN_PROGRAM_H
#define LS_PLAN_PROGRAM_H

#include "plan/plan.h"

struct ls_line {
    int step; /* of the plan: what is done */
    int segment;
    bool recomputed;
    size_t operands;      /* in program->operand: the values read, then those written; -1: absent */
    int chain, chain_end; /* the first and the last line of the chain that it is part of */
    int64_t at_once;      /* channels that the chain does at a time */
};

/* When a value, or all that share its memory, is alive. */
struct ls_live_range {
    int root;        /* the value whose memory it shares; itself: the rest counts */
    int first, last; /* lines; first -1: never written */
    bool stashed;    /* live across a cut */
};

struct ls_program {
    const struct ls_plan *plan;
    struct ls_value *const *keep;
    size_t keep_count;
    size_t values; /* of the graph */
    int *producer; /* by value of the graph: the step that writes it; -1: none */
    int *segment;  /* by step */
    bool *dropped; /* by step: the backward pass recomputes it. To be set before a program is built;
                      what is a view is dropped with what it is a view of */
    double *work;  /* by step: ls_step_work */
    int *instance; /* by value of the graph: its latest copy; -1: none */
    bool *wanted;  /* by step: scratch memory of ls_program_build */
    int *stack;    /* the same */

    struct ls_line *line;
    size_t line_count, line_capacity;
    int *operand;
    size_t operand_count, operand_capacity;
    int *original; /* by value of the program: the graph's that it is, or is a copy of */
    size_t original_capacity;
    size_t value_count;
    struct ls_live_range *live; /* by value of the program */
    size_t life_capacity;
    size_t *arena_at, *stashed_at; /* by line: bytes alive */
    size_t at_capacity, stashed_at_capacity;

    size_t arena_bytes, stashed_bytes; /* the most that is alive at once */
    double area;                       /* bytes alive, added up over lines, in arenas and stashed */
    size_t recomputations;
    double recompute_work;
};

int ls_program_create(struct ls_program *program, const struct ls_plan *plan,
                      struct ls_value *const *keep, size_t keep_count, struct ls_error *error);
void ls_program_free(struct ls_program *program);

/* Makes the lines for the steps that are `dropped`, marks chains and finds the live ranges of all
 * values.
 */
int ls_program_build(struct ls_program *program, struct ls_error *error);
/* The part of it that finds live ranges (plan/liveness.c). */
int ls_program_find_live_ranges(struct ls_program *program, struct ls_error *error);

/* Marks which lines are carried out together, some channels at a time (plan/chain.c). */
void ls_program_chain(struct ls_program *program);

/* Bytes that value `v` of a program takes. */
static inline size_t ls_program_bytes(const struct ls_program *program, int v)
{
    return ls_value_bytes(program->plan->graph->values[program->original[v]]);
}

static inline enum ls_dtype ls_program_type(const struct ls_program *program, int v)
{
    return program->plan->graph->values[program->original[v]]->type;
}

/* Whether a value lies in memory that is planned: its root's storage says it. */
static inline bool ls_program_in_arena(const struct ls_program *program, int v)
{
    return v >= 0 && program->plan->graph->values[program->original[v]]->storage == LS_STORE_ARENA;
}

/* Where everything lies (plan/pack.c): by value of the program (roots), and scratch by line. */
struct ls_packing {
    size_t *value, *scratch;
    size_t arena_bytes, stashed_bytes;
};
int ls_program_pack(const struct ls_program *program, struct ls_packing *packing,
                    struct ls_error *error);
void ls_packing_free(struct ls_packing *packing);

/* Sets program->dropped (plan/recompute.c): what is always worth it, and what a budget asks for;
 * builds the program and packs it. */
int ls_program_recompute(struct ls_program *program, const struct ls_memory_budget *budget,
                         struct ls_packing *packing, struct ls_error *error);

/* What a step costs, as an estimate: FLOPs, and what its memory traffic is worth in FLOPs. */
double ls_step_work(const struct ls_step *step);
/* Traffic of one byte, in FLOPs. */
#define LS_WORK_OF_BYTE 8.0

#endif
