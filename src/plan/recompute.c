/* Recomputation: which forward steps the backward pass replays, so that what they wrote need not be
 * kept. A replay gives the same bits, so this is a matter of memory and time alone.
 *
 * Two rules decide, both from the plan and the budget only.
 *
 * Always: what is cheap to have again (batch norm applied, a ReLU, a sum, a join) from what is kept
 * anyway is replayed, if the work is small for the bytes. Where a plan is cut at sync points that
 * may be a chain of such steps, because each of many micro-batches holds what lives across a cut.
 *
 * To fit a budget: candidates are tried, each of which cuts the forward pass into groups of about
 * the same bytes. What is read across the end of a group is kept, all else replayed, group by
 * group, when the backward pass gets there; once with all steps, once with the cheap ones only.
 * (With n layers in groups of sqrt(n), about 2 sqrt(n) results are there at once. Chen, Xu, Zhang,
 * Guestrin: Training deep nets with sublinear memory cost; 2016.) The candidate with the least work
 * that fits wins; then steps that cost the most for what they save are no longer dropped, one by
 * one, as long as it fits. Where nothing fits the smallest is made smaller step by step, as far as
 * that goes.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "plan/program.h"

enum {
    SIZES = 40,               /* of groups that are tried */
    ROUNDS = 4,               /* of making the smallest smaller */
    LINES_TRIED_MAX = 8 << 20 /* planning must end: no more lines than this are made */
};

/* Traffic for a byte that is not kept, at most, where replaying is always worth it: of what each
 * micro-batch holds; and of what is kept in an arena, where one step that reads and writes is all
 * that is no slower than to read from further away what was kept. */
#define HELD_TRAFFIC  20.0
#define ARENA_TRAFFIC 3.0
/* The same for a step by itself, to count as cheap. */
#define CHEAP_TRAFFIC 8.0
/* A candidate may not cost more than this part of the whole work. */
#define WORK_SHARE_MAX 1.0

struct measure {
    double bytes, area, work;
};

struct search {
    struct ls_program *program;
    const struct ls_memory_budget *budget;
    size_t steps;
    bool *pure; /* by step: may be done twice */
    bool *cheap;
    bool *read;       /* by step: the backward pass reads what it writes */
    size_t *bytes;    /* by step: what it writes */
    bool *best;       /* by step: dropped in the best choice so far */
    int *last_reader; /* by value: the last forward step that reads it, or a view of it */
    size_t *frontier; /* by step: bytes that are read across its end, going forward */
    double work_max;
    size_t lines_tried;
    struct ls_error *error;
};

static const struct ls_op *op_of(const struct search *search, size_t step)
{
    return search->program->plan->steps[step].prepared.op;
}

/* ---- What is known of each step -------------------------------------------------------------- */

static bool is_pure(const struct ls_step *step)
{
    const struct ls_op *op = step->prepared.op;
    bool writes =
        op->outputs > 0 && op->output[0] != NULL && op->output[0]->storage == LS_STORE_ARENA;
    return writes && step->in_pass && !op->backward && op->kind != LS_OP_VIEW &&
           !ls_op_has_effect(op->kind);
}

/* The step that made what a view shows; -1: none. */
static int maker_of(const struct search *search, const struct ls_value *value)
{
    int step = value != NULL ? search->program->producer[value->index] : -1;
    while (step >= 0 && op_of(search, (size_t)step)->kind == LS_OP_VIEW)
        step = search->program->producer[op_of(search, (size_t)step)->input[0]->index];
    return step;
}

static void describe_steps(struct search *search)
{
    const struct ls_plan *plan = search->program->plan;
    for (size_t s = 0; s < search->steps; s++) {
        const struct ls_op *op = op_of(search, s);
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
static void find_frontier(struct search *search)
{
    size_t alive = 0;
    for (size_t s = 0; s < search->steps; s++) {
        int last = search->last_reader[s];
        if (op_of(search, s)->backward || last < 0 || op_of(search, s)->kind == LS_OP_VIEW)
            continue;
        search->frontier[s] += search->bytes[s];
        search->frontier[last] -= search->bytes[s]; /* wraps; the sum wraps back */
    }
    for (size_t s = 0; s < search->steps; s++)
        alive = search->frontier[s] += alive;
}

/* What is not read by the backward pass costs nothing to drop; it is replayed where something
 * behind it is. */
static void drop_unread(struct search *search)
{
    for (size_t s = 0; s < search->steps; s++)
        search->program->dropped[s] = search->pure[s] && search->cheap[s] && !search->read[s];
}

/* ---- Trying ---------------------------------------------------------------------------------- */

static int try(struct search *search, struct measure *measure)
{
    struct ls_program *program = search->program;
    LS_TRY(ls_program_build(program, search->error));
    search->lines_tried += program->line_count;
    measure->bytes = (double)program->arena_bytes * search->budget->workers +
                     (double)program->held_bytes * search->budget->slots;
    measure->area = program->area;
    measure->work = program->replay_work;
    return 0;
}

static bool may_go_on(const struct search *search)
{
    return search->lines_tried < LINES_TRIED_MAX;
}

/* ---- Candidates for a budget ----------------------------------------------------------------- */

/* Keeps what is read across the end of step `end`. */
static void keep_frontier(struct search *search, size_t end)
{
    for (size_t s = 0; s <= end; s++)
        if (search->last_reader[s] > (int)end)
            search->program->dropped[s] = false;
}

/* The step from `s` on at whose end the least is read across, before another half of `size` bytes
 * would have been dropped. */
static size_t find_boundary(const struct search *search, size_t s, size_t size)
{
    size_t best = s, beyond = 0;
    for (size_t end = s + 1; end < search->steps && !op_of(search, end)->backward; end++) {
        if (search->program->dropped[end] && search->read[end])
            beyond += search->bytes[end];
        if (beyond > size / 2)
            break;
        if (search->frontier[end] < search->frontier[best])
            best = end;
    }
    return best;
}

/* Groups of about `size` bytes. The last one is kept: its turn comes at once. */
static void drop_groups(struct search *search, size_t size, bool cheap_only)
{
    struct ls_program *program = search->program;
    size_t group = 0, begin = 0;
    for (size_t s = 0; s < search->steps; s++)
        program->dropped[s] = search->pure[s] && (search->cheap[s] || !cheap_only);
    for (size_t s = 0; s < search->steps && !op_of(search, s)->backward; s++) {
        if (program->dropped[s] && search->read[s])
            group += search->bytes[s];
        if (group < size)
            continue;
        s = find_boundary(search, s, size);
        keep_frontier(search, s);
        group = 0;
        begin = s + 1;
    }
    for (size_t s = begin; s < search->steps; s++)
        program->dropped[s] = program->dropped[s] && !search->read[s];
}

static bool fits(const struct search *search, const struct measure *measure)
{
    return measure->bytes <= (double)search->budget->bytes;
}

/* Whether `now` is the better choice: it fits and is less work, or is smaller. */
static bool is_better(const struct search *search, const struct measure *now,
                      const struct measure *best)
{
    if (fits(search, now) != fits(search, best))
        return fits(search, now);
    if (fits(search, now) && now->work != best->work)
        return now->work < best->work;
    if (now->bytes != best->bytes)
        return now->bytes < best->bytes;
    return now->area < best->area;
}

static void save(struct search *search)
{
    memcpy(search->best, search->program->dropped, search->steps * sizeof *search->best);
}

static void restore(struct search *search)
{
    memcpy(search->program->dropped, search->best, search->steps * sizeof *search->best);
}

static int try_candidate(struct search *search, struct measure *best)
{
    struct measure now;
    LS_TRY(try(search, &now));
    if (now.work > search->work_max || !is_better(search, &now, best))
        return 0;
    *best = now;
    save(search);
    return 0;
}

static int try_groups(struct search *search, struct measure *best)
{
    double size = 1;
    for (size_t s = 0; s < search->steps; s++)
        size += search->pure[s] && search->read[s] ? (double)search->bytes[s] : 0;
    for (int i = 0; i < SIZES && size >= 1 && may_go_on(search); i++, size *= 0.8) {
        drop_groups(search, (size_t)size, true);
        LS_TRY(try_candidate(search, best));
        drop_groups(search, (size_t)size, false);
        LS_TRY(try_candidate(search, best));
    }
    return 0;
}

/* ---- One by one ------------------------------------------------------------------------------ */

/* Drops or keeps single steps as long as that makes the plan smaller. */
static int make_smaller(struct search *search, struct measure *best)
{
    bool *dropped = search->program->dropped;
    bool changed = true;
    for (int round = 0; round < ROUNDS && changed && !fits(search, best); round++) {
        changed = false;
        for (size_t s = search->steps; s-- > 0 && may_go_on(search) && !fits(search, best);) {
            struct measure now;
            if (!search->pure[s] || !search->read[s])
                continue;
            dropped[s] = !dropped[s];
            LS_TRY(try(search, &now));
            bool smaller =
                now.bytes < best->bytes || (now.bytes == best->bytes && now.area < best->area);
            if (smaller && now.work <= search->work_max) {
                *best = now;
                changed = true;
            } else {
                dropped[s] = !dropped[s];
            }
        }
    }
    return 0;
}

/* Those that cost the most for a byte come first. */
struct price {
    double each;
    int step;
};

static int by_price(const void *a, const void *b)
{
    const struct price *first = a, *second = b;
    if (first->each != second->each)
        return first->each > second->each ? -1 : 1;
    return first->step - second->step;
}

/* Keeps what is dropped and need not be, within `bytes`. */
static int keep_dear(struct search *search, struct measure *best, double bytes)
{
    struct ls_program *program = search->program;
    size_t count = 0;
    int status = 0;
    struct price *price = ls_alloc(search->steps + 1, sizeof *price);
    if (price == NULL)
        return ls_fail_memory(search->error, "a plan");
    for (size_t s = 0; s < search->steps; s++)
        if (program->dropped[s] && (search->read[s] || !search->cheap[s]))
            price[count++] = (struct price){
                .each = program->work[s] / ((double)search->bytes[s] + 1), .step = (int)s};
    qsort(price, count, sizeof *price, by_price);
    for (size_t i = 0; i < count && status == 0 && may_go_on(search); i++) {
        struct measure now;
        program->dropped[price[i].step] = false;
        status = try(search, &now);
        if (status == 0 && now.bytes <= bytes && now.work <= best->work)
            *best = now;
        else
            program->dropped[price[i].step] = true;
    }
    ls_free(price);
    return status;
}

/* ---- Always ---------------------------------------------------------------------------------- */

/* Drops cheap steps, going forward, where that pays; then keeps what makes no difference. */
static int drop_cheap(struct search *search)
{
    struct ls_program *program = search->program;
    double traffic = program->plan->segments > 1 ? HELD_TRAFFIC : ARENA_TRAFFIC;
    struct measure best, now;
    LS_TRY(try(search, &best));
    for (size_t s = 0; s < search->steps && may_go_on(search); s++) {
        if (!search->pure[s] || !search->cheap[s] || !search->read[s])
            continue;
        program->dropped[s] = true;
        LS_TRY(try(search, &now));
        double limit = traffic * LS_WORK_OF_BYTE * (double)search->bytes[s];
        if (now.area < best.area && now.bytes <= best.bytes && now.work - best.work <= limit)
            best = now;
        else
            program->dropped[s] = false;
    }
    return keep_dear(search, &best, best.bytes);
}

/* ---- All of it ------------------------------------------------------------------------------- */

static int fit(struct search *search)
{
    struct measure best;
    LS_TRY(try(search, &best));
    if (fits(search, &best))
        return 0;
    save(search);
    LS_TRY(try_groups(search, &best));
    restore(search);
    if (!fits(search, &best))
        LS_TRY(make_smaller(search, &best));
    double bytes = fits(search, &best) ? (double)search->budget->bytes : best.bytes;
    return keep_dear(search, &best, bytes);
}

static int create(struct search *search)
{
    size_t n = search->steps + 1;
    search->pure = ls_alloc(n, sizeof *search->pure);
    search->cheap = ls_alloc(n, sizeof *search->cheap);
    search->read = ls_alloc(n, sizeof *search->read);
    search->bytes = ls_alloc(n, sizeof *search->bytes);
    search->best = ls_alloc(n, sizeof *search->best);
    search->last_reader = ls_alloc(n, sizeof *search->last_reader);
    search->frontier = ls_alloc(n, sizeof *search->frontier);
    if (search->pure == NULL || search->cheap == NULL || search->read == NULL ||
        search->bytes == NULL || search->best == NULL || search->last_reader == NULL ||
        search->frontier == NULL)
        return ls_fail_memory(search->error, "a plan");
    return 0;
}

static void destroy(struct search *search)
{
    ls_free(search->pure);
    ls_free(search->cheap);
    ls_free(search->read);
    ls_free(search->bytes);
    ls_free(search->best);
    ls_free(search->last_reader);
    ls_free(search->frontier);
}

static int choose(struct search *search)
{
    LS_TRY(create(search));
    describe_steps(search);
    find_frontier(search);
    drop_unread(search);
    LS_TRY(drop_cheap(search));
    for (size_t s = 0; s < search->steps; s++)
        search->work_max += WORK_SHARE_MAX * search->program->work[s];
    return search->budget->bytes > 0 ? fit(search) : 0;
}

int ls_program_recompute(struct ls_program *program, const struct ls_memory_budget *budget,
                         struct ls_error *error)
{
    struct ls_memory_budget used = *budget;
    used.workers = used.workers > 0 ? used.workers : 1;
    used.slots = used.slots > 0 ? used.slots : 1;
    struct search search = {
        .program = program, .budget = &used, .steps = program->plan->step_count, .error = error};
    int status = choose(&search);
    destroy(&search);
    return status != 0 ? status : ls_program_build(program, error);
}
