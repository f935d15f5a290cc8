/* Recomputation for a budget: the least work that fits.
 *
 * There is a list of choices that does not depend on the budget, each with its bytes and its work,
 * and the least work of it that fits is taken: more memory never means more work. The list:
 *
 * - Groups. The forward pass is cut into groups of about the same bytes. What is read across the
 *   end of a group is kept, all else recomputed, group by group, when the backward pass gets there;
 *   once with all steps, once with the cheap ones only. (With n layers in groups of sqrt(n), about
 *   2 sqrt(n) results are there at once. Chen, Xu, Zhang, Guestrin: Training deep nets with
 *   sublinear memory cost; 2016.) Many sizes are tried.
 * - The smallest of them made smaller, step by step, as far as that goes.
 * - Of two neighbours the smaller one with the dearest of its steps kept after all, as many as fit
 *   into so much more memory, in LEVELS that divide what lies between the two. These are worked out
 *   only where the budget lies there.
 *
 * What costs more for a byte than to go on to a smaller choice is no part of it.
 *
 * A choice fits if its packing does, which may be a little more than what is alive at once.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "plan/search.h"

enum {
    SIZES = 40,           /* of groups that are tried */
    ROUNDS = 4,           /* of making the smallest smaller */
    TOGGLES = 512,        /* tries of that */
    LEVELS = 16,          /* between two choices */
    PARTS = 32,           /* of the steps that are kept together or not at all, at most */
    LEVEL_LINES = 4 << 20 /* that are made for the levels between two choices */
};

struct choice {
    struct ls_measure measure;
    bool *dropped; /* by step */
};

struct list {
    struct choice *item; /* from the least work to the least bytes */
    size_t count, capacity;
};

static bool fits(const struct ls_search *search, const struct ls_measure *measure)
{
    return measure->bytes <= (double)search->budget->bytes;
}

/* ---- Groups ---------------------------------------------------------------------------------- */

/* Keeps what is read across the end of step `end`. */
static void keep_frontier(struct ls_search *search, size_t end)
{
    for (size_t s = 0; s <= end; s++)
        if (search->last_reader[s] > (int)end)
            search->program->dropped[s] = false;
}

/* The step from `s` on at whose end the least is read across, before another half of `size` bytes
 * would have been dropped. */
static size_t find_boundary(const struct ls_search *search, size_t s, size_t size)
{
    size_t best = s, beyond = 0;
    for (size_t end = s + 1; end < search->steps && !ls_search_op(search, end)->backward; end++) {
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
static void drop_groups(struct ls_search *search, size_t size, bool cheap_only)
{
    struct ls_program *program = search->program;
    size_t group = 0, begin = 0;
    for (size_t s = 0; s < search->steps; s++)
        program->dropped[s] = search->pure[s] && (search->cheap[s] || !cheap_only);
    for (size_t s = 0; s < search->steps && !ls_search_op(search, s)->backward; s++) {
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

/* ---- The list -------------------------------------------------------------------------------- */

static int add(struct ls_search *search, struct list *list, const struct ls_measure *measure)
{
    if (measure->work > search->work_max && list->count > 0)
        return 0;
    if (!LS_GROW(list->item, list->count, list->capacity))
        return ls_fail_memory(search->error, "a plan");
    bool *dropped = ls_alloc(search->steps + 1, sizeof *dropped);
    if (dropped == NULL)
        return ls_fail_memory(search->error, "a plan");
    memcpy(dropped, search->program->dropped, search->steps * sizeof *dropped);
    list->item[list->count++] = (struct choice){.measure = *measure, .dropped = dropped};
    return 0;
}

static void take(struct ls_search *search, const struct choice *choice)
{
    memcpy(search->program->dropped, choice->dropped, search->steps * sizeof *choice->dropped);
}

static int try_groups(struct ls_search *search, struct list *list)
{
    struct ls_measure now;
    double size = 1;
    for (size_t s = 0; s < search->steps; s++)
        size += search->pure[s] && search->read[s] ? (double)search->bytes[s] : 0;
    for (int i = 0; i < 2 * SIZES && size >= 1 && search->lines_left > 0; i++) {
        drop_groups(search, (size_t)size, i % 2 == 0);
        LS_TRY(ls_search_try(search, &now));
        LS_TRY(add(search, list, &now));
        size *= i % 2 == 0 ? 1 : 0.8;
    }
    return 0;
}

static int by_work(const void *a, const void *b)
{
    const struct ls_measure *first = &((const struct choice *)a)->measure,
                            *second = &((const struct choice *)b)->measure;
    if (first->work != second->work)
        return first->work < second->work ? -1 : 1;
    if (first->bytes != second->bytes)
        return first->bytes < second->bytes ? -1 : 1;
    return first->area < second->area ? -1 : first->area > second->area;
}

/* What a byte less costs on the way from one choice to another of more work. */
static double price_of(const struct choice *from, const struct choice *to)
{
    return (to->measure.work - from->measure.work) / (from->measure.bytes - to->measure.bytes);
}

/* Sorts the list, item 0 first, and leaves only what is smaller than all of less work; nor what
 * costs more for a byte than to go on to a smaller one: between these two the levels are better. */
static void clean(struct list *list)
{
    struct choice *item = list->item;
    size_t count = 1;
    qsort(item + 1, list->count - 1, sizeof *item, by_work);
    for (size_t i = 1; i < list->count; i++) {
        struct choice now = item[i];
        if (now.measure.bytes >= item[count - 1].measure.bytes ||
            now.measure.work < item[count - 1].measure.work) {
            ls_free(now.dropped);
            continue;
        }
        while (count > 1 &&
               price_of(&item[count - 2], &item[count - 1]) > price_of(&item[count - 1], &now))
            ls_free(item[--count].dropped);
        item[count++] = now;
    }
    list->count = count;
}

/* ---- One by one ------------------------------------------------------------------------------ */

/* Drops or keeps single steps of the smallest choice as long as that makes it smaller. */
static int make_smaller(struct ls_search *search, struct list *list)
{
    bool *dropped = search->program->dropped, changed = true;
    struct ls_measure best = list->item[list->count - 1].measure, now;
    int tries = 0;
    take(search, &list->item[list->count - 1]);
    for (int round = 0; round < ROUNDS && changed; round++) {
        changed = false;
        for (size_t s = search->steps; s-- > 0 && search->lines_left > 0 && tries < TOGGLES;) {
            if (!search->pure[s] || !search->read[s])
                continue;
            tries++;
            dropped[s] = !dropped[s];
            LS_TRY(ls_search_try(search, &now));
            bool smaller =
                now.bytes < best.bytes || (now.bytes == best.bytes && now.area < best.area);
            if (!smaller || now.work > search->work_max) {
                dropped[s] = !dropped[s];
                continue;
            }
            best = now;
            changed = true;
            LS_TRY(add(search, list, &now));
        }
    }
    return 0;
}

/* What keeping is allowed to come to. */
struct bounds {
    double bytes, work; /* at most; at least: else it would be better than the next choice */
};

/* No longer drops steps [begin, end) of a list, or what of them is within the bounds; parts of at
 * most `least` steps are not divided. */
static int keep(struct ls_search *search, const struct ls_price *price, size_t begin, size_t end,
                size_t least, const struct bounds *bounds, struct ls_measure *best)
{
    struct ls_measure now;
    bool *dropped = search->program->dropped;
    if (begin >= end || search->lines_left == 0)
        return 0;
    for (size_t i = begin; i < end; i++)
        dropped[price[i].step] = false;
    LS_TRY(ls_search_try(search, &now));
    if (now.bytes <= bounds->bytes && now.work >= bounds->work && now.work <= best->work) {
        *best = now;
        return 0;
    }
    for (size_t i = begin; i < end; i++)
        dropped[price[i].step] = true;
    if (end - begin <= least)
        return 0;
    size_t middle = begin + (end - begin) / 2;
    LS_TRY(keep(search, price, begin, middle, least, bounds, best));
    return keep(search, price, middle, end, least, bounds, best);
}

/* Keeps the dearest of what is dropped now. */
static int keep_dear(struct ls_search *search, const struct bounds *bounds, struct ls_measure *best)
{
    struct ls_price *price = ls_alloc(search->steps + 1, sizeof *price);
    if (price == NULL)
        return ls_fail_memory(search->error, "a plan");
    size_t count = ls_search_prices(search, price), least = count / PARTS + 1;
    int status = keep(search, price, 0, count, least, bounds, best);
    ls_free(price);
    return status;
}

/* ---- What fits ------------------------------------------------------------------------------- */

/* Packs what is dropped now. */
static int pack(struct ls_search *search, struct ls_packing *packing, bool *good)
{
    struct ls_measure now;
    ls_packing_free(packing);
    LS_TRY(ls_search_try(search, &now));
    LS_TRY(ls_program_pack(search->program, packing, search->error));
    *good = (double)packing->arena_bytes * search->budget->workers +
                (double)packing->stashed_bytes * search->budget->slots <=
            (double)search->budget->bytes;
    return 0;
}

/* Choice `i` of the list, which fits as far as is known, with the levels up to the one before it:
 * the least work that fits. */
static int fit_between(struct ls_search *search, const struct list *list, size_t i,
                       struct ls_packing *packing, bool *good)
{
    struct list levels = {0};
    struct ls_measure best = list->item[i].measure;
    const struct ls_measure *before = &list->item[i - 1].measure;
    double gap = before->bytes - best.bytes, bytes = best.bytes;
    int status = 0;
    take(search, &list->item[i]);
    search->lines_left = LEVEL_LINES;
    for (int level = 0; level < LEVELS && status == 0; level++) {
        struct bounds bounds = {.bytes = bytes + gap * level / LEVELS, .work = before->work};
        if (bounds.bytes > (double)search->budget->bytes)
            break;
        status = keep_dear(search, &bounds, &best);
        if (status == 0)
            status = add(search, &levels, &best);
    }
    for (size_t l = levels.count; l-- > 0 && status == 0 && !*good;) {
        take(search, &levels.item[l]);
        status = pack(search, packing, good);
    }
    if (status == 0 && !*good) {
        take(search, &list->item[i]);
        status = pack(search, packing, good);
    }
    for (size_t l = 0; l < levels.count; l++)
        ls_free(levels.item[l].dropped);
    ls_free(levels.item);
    return status;
}

static int make_list(struct ls_search *search, struct list *list)
{
    LS_TRY(try_groups(search, list));
    clean(list);
    LS_TRY(make_smaller(search, list));
    clean(list);
    /* What of the smallest need not be dropped for it to be so small. */
    struct choice *last = &list->item[list->count - 1];
    const struct bounds bounds = {.bytes = last->measure.bytes};
    take(search, last);
    LS_TRY(keep_dear(search, &bounds, &last->measure));
    memcpy(last->dropped, search->program->dropped, search->steps * sizeof *last->dropped);
    clean(list);
    return 0;
}

static int choose(struct ls_search *search, struct list *list, struct ls_packing *packing)
{
    struct ls_measure now;
    bool good = false;
    LS_TRY(ls_search_try(search, &now));
    LS_TRY(add(search, list, &now));
    if (fits(search, &now))
        LS_TRY(pack(search, packing, &good));
    if (good)
        return 0;
    LS_TRY(make_list(search, list));
    for (size_t i = 1; i < list->count && !good; i++)
        if (fits(search, &list->item[i].measure))
            LS_TRY(fit_between(search, list, i, packing, &good));
    if (good)
        return 0;
    take(search, &list->item[list->count - 1]);
    return pack(search, packing, &good);
}

int ls_search_fit(struct ls_search *search, struct ls_packing *packing)
{
    struct list list = {0};
    int status = choose(search, &list, packing);
    for (size_t i = 0; i < list.count; i++)
        ls_free(list.item[i].dropped);
    ls_free(list.item);
    return status;
}
