/* Recomputation: which forward steps the backward pass recomputes, so that what they wrote need not
 * be kept. A recomputation gives the same bits, so this is a matter of memory and time alone.
 *
 * Two rules decide, both from the plan and the budget only. This file has the rule that always
 * applies: a cheap step (batch norm applied, a ReLU, a sum, a join) is recomputed from values that
 * are kept anyway, if its work is small for the bytes that it saves. Where a plan is cut at sync
 * points this may be a chain of such steps, because each of many micro-batches holds the values
 * that are live across a cut. Convolutions never count as cheap, however few weights they have:
 * recomputed once for each segment that reads their results, those of single channels took a tenth
 * of MobileNet's time.
 *
 * The rule for a budget is in plan/budget.c.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "base/align.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "ir/op_type.h"
#include "plan/search.h"

enum { LINES_TRIED_MAX = 8 << 20 };

/* Traffic for a byte that is not kept, at most, where recomputing is always worth it: of what each
 * micro-batch holds; and of what is kept in an arena, where one step that reads and writes is all
 * that is no slower than to read from further away what was kept. */
#define HELD_TRAFFIC  20.0
#define ARENA_TRAFFIC 3.0
/* The same for a step by itself, to count as cheap. */
#define CHEAP_TRAFFIC 8.0
/* A choice may not cost more than this part of the whole work. */
#define WORK_SHARE_MAX 1.0

/* ---- What is known of each step -------------------------------------------------------------- */

static bool is_pure(const struct ls_step *step)
{
    const struct ls_op *op = step->prepared.op;
    bool writes =
        op->outputs > 0 && op->output[0] != NULL && op->output[0]->storage == LS_STORE_ARENA;
    return writes && step->in_pass && !op->backward && op->kind != LS_OP_VIEW &&
           (!ls_op_has_effect(op->kind) || LS_MUTANT(REPLAYED));
}

/* The step that made what a view shows; -1: none. */
static int maker_of(const struct ls_search *search, const struct ls_value *value)
{
    int step = value != NULL ? search->program->producer[value->index] : -1;
    while (step >= 0 && ls_search_op(search, (size_t)step)->kind == LS_OP_VIEW)
        step = search->program->producer[ls_search_op(search, (size_t)step)->input[0]->index];
    return step;
}

static void describe_steps(struct ls_search *search)
{
    const struct ls_plan *plan = search->program->plan;
    for (size_t s = 0; s < search->steps; s++) {
        const struct ls_op *op = ls_search_op(search, s);
        search->pure[s] = is_pure(&plan->steps[s]);
        for (int i = 0; i < op->outputs; i++)
            if (op->output[i] != NULL)
                search->bytes[s] += ls_align(ls_value_bytes(op->output[i]));
        search->cheap[s] =
            search->program->work[s] <= CHEAP_TRAFFIC * LS_WORK_OF_BYTE * (double)search->bytes[s];
        search->last_reader[s] = -1;
        for (int i = 0; i < op->inputs; i++) {
            int maker = maker_of(search, op->input[i]);
            if (maker < 0)
                continue;
            if (op->backward)
                search->read[maker] = true;
            else if (op->kind != LS_OP_VIEW)
                search->last_reader[maker] = (int)s;
        }
    }
}

/* The frontier is counted by steps: all that one writes is read until its last reader. */
static void find_frontier(struct ls_search *search)
{
    size_t alive = 0;
    for (size_t s = 0; s < search->steps; s++) {
        int last = search->last_reader[s];
        if (ls_search_op(search, s)->backward || last < 0 ||
            ls_search_op(search, s)->kind == LS_OP_VIEW)
            continue;
        search->frontier[s] += search->bytes[s];
        search->frontier[last] -= search->bytes[s]; /* wraps; the sum wraps back */
    }
    for (size_t s = 0; s < search->steps; s++)
        alive = search->frontier[s] += alive;
}

/* What is not read by the backward pass costs nothing to drop; it is recomputed where something
 * behind it is. */
static void drop_unread(struct ls_search *search)
{
    for (size_t s = 0; s < search->steps; s++)
        search->program->dropped[s] = search->pure[s] && search->cheap[s] && !search->read[s];
}

/* ---- Trying ---------------------------------------------------------------------------------- */

int ls_search_try(struct ls_search *search, struct ls_measure *measure)
{
    struct ls_program *program = search->program;
    LS_TRY(ls_program_build(program, search->error));
    search->lines_left -=
        search->lines_left < program->line_count ? search->lines_left : program->line_count;
    measure->bytes = (double)program->arena_bytes * search->budget->workers +
                     (double)program->stashed_bytes * search->budget->slots;
    measure->area = program->area;
    measure->work = program->recompute_work;
    return 0;
}

static int by_price(const void *a, const void *b)
{
    const struct ls_price *first = a, *second = b;
    if (first->each != second->each)
        return first->each > second->each ? -1 : 1;
    return first->step - second->step;
}

size_t ls_search_prices(const struct ls_search *search, struct ls_price *price)
{
    const struct ls_program *program = search->program;
    size_t count = 0;
    for (size_t s = 0; s < search->steps; s++)
        if (program->dropped[s] && (search->read[s] || !search->cheap[s]))
            price[count++] = (struct ls_price){
                .each = program->work[s] / ((double)search->bytes[s] + 1), .step = (int)s};
    qsort(price, count, sizeof *price, by_price);
    return count;
}

/* Keeps what is dropped and makes no difference to the memory. */
static int keep_harmless(struct ls_search *search, struct ls_measure *best)
{
    struct ls_program *program = search->program;
    int status = 0;
    struct ls_price *price = ls_alloc(search->steps + 1, sizeof *price);
    if (price == NULL)
        return ls_fail_memory(search->error, "a plan");
    size_t count = ls_search_prices(search, price);
    for (size_t i = 0; i < count && status == 0 && search->lines_left > 0; i++) {
        struct ls_measure now;
        program->dropped[price[i].step] = false;
        status = ls_search_try(search, &now);
        if (status == 0 && now.bytes <= best->bytes && now.work <= best->work)
            *best = now;
        else
            program->dropped[price[i].step] = true;
    }
    ls_free(price);
    return status;
}

/* ---- Always ---------------------------------------------------------------------------------- */

/* Drops cheap steps, going forward, where that pays; then keeps what makes no difference. */
static int drop_cheap(struct ls_search *search)
{
    struct ls_program *program = search->program;
    double traffic = program->plan->segments > 1 ? HELD_TRAFFIC : ARENA_TRAFFIC;
    struct ls_measure best, now;
    LS_TRY(ls_search_try(search, &best));
    for (size_t s = 0; s < search->steps && search->lines_left > 0; s++) {
        if (!search->pure[s] || !search->cheap[s] || !search->read[s] ||
            ls_op_type(ls_search_op(search, s)->kind)->heavy)
            continue;
        program->dropped[s] = true;
        LS_TRY(ls_search_try(search, &now));
        double limit = traffic * LS_WORK_OF_BYTE * (double)search->bytes[s];
        if (now.area < best.area && now.bytes <= best.bytes && now.work - best.work <= limit)
            best = now;
        else
            program->dropped[s] = false;
    }
    return keep_harmless(search, &best);
}

/* ---- All of it ------------------------------------------------------------------------------- */

static int create(struct ls_search *search)
{
    size_t n = search->steps + 1;
    search->pure = ls_alloc(n, sizeof *search->pure);
    search->cheap = ls_alloc(n, sizeof *search->cheap);
    search->read = ls_alloc(n, sizeof *search->read);
    search->bytes = ls_alloc(n, sizeof *search->bytes);
    search->last_reader = ls_alloc(n, sizeof *search->last_reader);
    search->frontier = ls_alloc(n, sizeof *search->frontier);
    if (search->pure == NULL || search->cheap == NULL || search->read == NULL ||
        search->bytes == NULL || search->last_reader == NULL || search->frontier == NULL)
        return ls_fail_memory(search->error, "a plan");
    return 0;
}

static void destroy(struct ls_search *search)
{
    ls_free(search->pure);
    ls_free(search->cheap);
    ls_free(search->read);
    ls_free(search->bytes);
    ls_free(search->last_reader);
    ls_free(search->frontier);
}

static int choose(struct ls_search *search, struct ls_packing *packing)
{
    LS_TRY(create(search));
    describe_steps(search);
    find_frontier(search);
    drop_unread(search);
    LS_TRY(drop_cheap(search));
    for (size_t s = 0; s < search->steps; s++)
        search->work_max += WORK_SHARE_MAX * search->program->work[s];
    if (search->budget->bytes > 0)
        return ls_search_fit(search, packing);
    LS_TRY(ls_program_build(search->program, search->error));
    return ls_program_pack(search->program, packing, search->error);
}

int ls_program_recompute(struct ls_program *program, const struct ls_memory_budget *budget,
                         struct ls_packing *packing, struct ls_error *error)
{
    struct ls_memory_budget used = *budget;
    used.workers = used.workers > 0 ? used.workers : 1;
    used.slots = used.slots > 0 ? used.slots : 1;
    struct ls_search search = {.program = program,
                               .budget = &used,
                               .steps = program->plan->step_count,
                               .lines_left = LINES_TRIED_MAX,
                               .error = error};
    int status = choose(&search, packing);
    destroy(&search);
    return status;
}
