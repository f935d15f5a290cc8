/* The search for what to recompute: what plan/recompute.c and plan/budget.c share.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_PLAN_SEARCH_H
#define LS_PLAN_SEARCH_H

#include "plan/program.h"

/* What a choice of dropped steps comes to. */
struct ls_measure {
    double bytes, area, work;
};

struct ls_search {
    struct ls_program *program;
    const struct ls_memory_budget *budget;
    size_t steps;
    bool *pure; /* by step: may be done twice */
    bool *cheap;
    bool *read;       /* by step: the backward pass reads what it writes */
    size_t *bytes;    /* by step: what it writes */
    int *last_reader; /* by step: the last forward step that reads what it wrote, or a view of it */
    size_t *frontier; /* by step: bytes that are read across its end, going forward */
    double work_max;
    size_t lines_left; /* planning must end: no more lines than this are made */
    struct ls_error *error;
};

static inline const struct ls_op *ls_search_op(const struct ls_search *search, size_t step)
{
    return search->program->plan->steps[step].prepared.op;
}

/* Builds the program for the steps that are dropped now. */
int ls_search_try(struct ls_search *search, struct ls_measure *measure);

/* Steps of a list in the order of what it costs to recompute them for a byte, the dearest first. */
struct ls_price {
    double each;
    int step;
};
/* The prices of the steps that are dropped and recomputed for some reader; `price` has room for all
 * steps. */
size_t ls_search_prices(const struct ls_search *search, struct ls_price *price);

/* Chooses the least work that fits the budget, beginning with what is dropped now, and packs it; or
 * the smallest there is (plan/budget.c). */
int ls_search_fit(struct ls_search *search, struct ls_packing *packing);

#endif
