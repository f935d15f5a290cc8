/* Exact sums. See transport/sums.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "transport/sums.h"

#include <limits.h>
#include <stdatomic.h>
#include <string.h>

#include "base/memory.h"
#include "base/thread.h"
#include "ops/cpu/exact.h"

enum {
    TARGET = 38,                  /* the largest element becomes about 2^38 units */
    CEILING = LS_EXACT_LIMIT - 1, /* units of a contribution stay below 2^50: 2^12 of them fit */
    FLOOR = 26,                   /* and its largest element is at least 2^26 of them */
    EXPONENT_MIN = -150
};

struct tile {
    struct ls_spin_lock lock;
    uint32_t update; /* the last update that stored here */
};

struct sum {
    int64_t *total; /* in the parameter's layout; a part of `all` */
    size_t elements;
    struct tile *tiles;
    size_t tile_count;
    int exponent;                 /* of contributions from now on */
    int total_exponent;           /* of the total that is there */
    uint32_t largest;             /* bits of the largest contribution of the last update */
    _Atomic int first_not_finite; /* micro-batch; INT_MAX: none */
};

struct ls_sums {
    struct sum *items;
    int64_t *all;
    void (*contributed)(void *user, int parameter);
    void *user;
    size_t count;
    int workers;
    bool gauge;
    uint32_t update;           /* number of the running update, for tile.update */
    _Atomic uint32_t *largest; /* [parameter]: bits, by all workers */
};

/* Numbers that all sums take together: with what lies behind the last one, up to a cache line of
 * weights, for it travels between ranks, too. */
static size_t all_elements(const size_t *elements, const size_t *place, size_t count)
{
    size_t all = 0;
    for (size_t i = 0; i < count; i++) {
        size_t end = (place != NULL ? place[i] : all) + elements[i];
        all = end > all ? end : all;
    }
    return (all + 15) / 16 * 16;
}

int ls_sums_create(const size_t *elements, const size_t *place, size_t count, int workers,
                   struct ls_sums **out, struct ls_error *error)
{
    *out = NULL;
    struct ls_sums *sums = ls_alloc(1, sizeof *sums);
    if (sums == NULL)
        return ls_fail_memory(error, "gradient sums");
    sums->count = count;
    sums->workers = workers;
    sums->items = ls_alloc(count + 1, sizeof *sums->items);
    sums->largest = ls_alloc(count + 1, sizeof *sums->largest);
    sums->all = ls_alloc_aligned(all_elements(elements, place, count) * sizeof *sums->all);
    bool ready = sums->items != NULL && sums->largest != NULL && sums->all != NULL;
    for (size_t i = 0, at = 0; ready && i < count; at += elements[i++]) {
        struct sum *sum = &sums->items[i];
        sum->elements = elements[i];
        sum->tile_count = (elements[i] + LS_SUMS_TILE - 1) / LS_SUMS_TILE;
        sum->tiles = ls_alloc(sum->tile_count, sizeof *sum->tiles);
        sum->total = sums->all + (place != NULL ? place[i] : at);
        sum->exponent = LS_SUMS_EXPONENT_UNSET;
        ready = sum->tiles != NULL;
    }
    if (!ready) {
        ls_sums_free(sums);
        return ls_fail_memory(error, "gradient sums");
    }
    *out = sums;
    return 0;
}

void ls_sums_free(struct ls_sums *sums)
{
    if (sums == NULL)
        return;
    for (size_t i = 0; i < sums->count && sums->items != NULL; i++)
        ls_free(sums->items[i].tiles);
    ls_free_aligned(sums->all);
    ls_free(sums->items);
    ls_free((void *)sums->largest);
    ls_free(sums);
}

void ls_sums_tell(struct ls_sums *sums, void (*contributed)(void *user, int parameter), void *user)
{
    sums->contributed = contributed;
    sums->user = user;
}

void ls_sums_begin(struct ls_sums *sums, bool gauge)
{
    sums->gauge = gauge;
    sums->update++;
    for (size_t i = 0; i < sums->count; i++) {
        atomic_store_explicit(&sums->largest[i], 0, memory_order_relaxed);
        atomic_store_explicit(&sums->items[i].first_not_finite, INT_MAX, memory_order_relaxed);
    }
}

/* Adds elements [begin, begin + count) of a contribution under the tile's lock. The first of an
 * update stores, so that nobody has to clear the sums. */
static uint32_t add_tile(const struct ls_sums *sums, struct sum *sum, size_t tile,
                         const float *gradient)
{
    size_t begin = tile * LS_SUMS_TILE;
    size_t count = sum->elements - begin < LS_SUMS_TILE ? sum->elements - begin : LS_SUMS_TILE;
    struct tile *guard = &sum->tiles[tile];
    ls_spin_acquire(&guard->lock);
    bool first = guard->update != sums->update;
    guard->update = sums->update;
    uint32_t bits = ls_exact_add(sum->total + begin, gradient + begin, count, sum->exponent, first);
#ifdef LS_MUTANT_FLOATS /* cmake/mutants.cmake: rounded as float sums are, in order of arrival */
    for (size_t i = begin; i < begin + count; i++)
        sum->total[i] = (int64_t)(float)sum->total[i];
#endif
    ls_spin_release(&guard->lock);
    return bits;
}

void ls_sums_contribute(void *contributor, int parameter, const float *gradient, size_t elements)
{
    const struct ls_contributor *from = contributor;
    struct ls_sums *sums = from->sums;
    struct sum *sum = &sums->items[parameter];
    uint32_t largest = 0;
    if (sums->gauge) {
        largest = ls_largest(gradient, elements);
    } else {
        /* Workers start at different tiles, so that they seldom wait for each other. */
        size_t start = sum->tile_count * (size_t)from->worker / (size_t)sums->workers;
        for (size_t i = 0; i < sum->tile_count; i++) {
            uint32_t bits = add_tile(sums, sum, (start + i) % sum->tile_count, gradient);
            largest = bits > largest ? bits : largest;
        }
    }
    ls_raise_to(&sums->largest[parameter], largest);
    if (largest >= LS_NOT_FINITE)
        ls_lower_to(&sum->first_not_finite, from->micro_batch);
    if (sums->contributed != NULL && !sums->gauge)
        sums->contributed(sums->user, parameter);
}

/* ---- Several ranks --------------------------------------------------------------------------- */

int64_t *ls_sums_all(const struct ls_sums *sums)
{
    return sums->all;
}

void ls_sums_clear_rest(struct ls_sums *sums, int parameter)
{
    struct sum *sum = &sums->items[parameter];
    for (size_t tile = 0; tile < sum->tile_count; tile++) {
        size_t begin = tile * LS_SUMS_TILE, left = sum->elements - begin;
        if (sum->tiles[tile].update != sums->update)
            memset(sum->total + begin, 0,
                   (left < LS_SUMS_TILE ? left : LS_SUMS_TILE) * sizeof *sum->total);
    }
}

void ls_sums_note(const struct ls_sums *sums, struct ls_sums_note *notes)
{
    for (size_t i = 0; i < sums->count; i++)
        notes[i] = (struct ls_sums_note){
            .largest = atomic_load_explicit(&sums->largest[i], memory_order_relaxed),
            .first_not_finite =
                atomic_load_explicit(&sums->items[i].first_not_finite, memory_order_relaxed)};
}

void ls_sums_hear(struct ls_sums *sums, const struct ls_sums_note *notes)
{
    for (size_t i = 0; i < sums->count; i++) {
        ls_raise_to(&sums->largest[i], notes[i].largest);
        ls_lower_to(&sums->items[i].first_not_finite, notes[i].first_not_finite);
    }
}

/* ---- The end of an update -------------------------------------------------------------------- */

/* floor(log2 |x|) of an fp32 number given by its bits; very low for zero. */
static int magnitude(uint32_t bits)
{
    if (bits == 0)
        return -1000;
    int exponent = (int)(bits >> 23);
    if (exponent > 0)
        return exponent - 127;
    return 31 - __builtin_clz(bits) - 149; /* denormal */
}

static int exponent_for(int largest)
{
    int exponent = TARGET - largest;
    if (exponent > LS_SUMS_EXPONENT_UNSET)
        return LS_SUMS_EXPONENT_UNSET;
    return exponent < EXPONENT_MIN ? EXPONENT_MIN : exponent;
}

/* Whether the exponent suits what was contributed; if not, it is changed. */
static bool exponent_fits(struct sum *sum, bool gauge)
{
    int largest = magnitude(sum->largest);
    sum->total_exponent = sum->exponent;
    if (sum->largest == 0)
        return true;
    bool fits = largest + 1 + sum->exponent <= CEILING;
    fits &= largest + sum->exponent >= FLOOR || sum->exponent == LS_SUMS_EXPONENT_UNSET;
    if (!fits || gauge)
        sum->exponent = exponent_for(largest);
    return fits || gauge;
}

enum ls_sums_result ls_sums_end(struct ls_sums *sums, int *parameter, int *micro_batch)
{
    enum ls_sums_result result = LS_SUMS_GOOD;
    int first = INT_MAX;
    for (size_t i = 0; i < sums->count; i++) {
        int bad = atomic_load_explicit(&sums->items[i].first_not_finite, memory_order_relaxed);
        if (bad < first) {
            first = bad;
            *parameter = (int)i;
            *micro_batch = bad;
            result = LS_SUMS_NOT_FINITE;
        }
    }
    if (result != LS_SUMS_GOOD)
        return result;
    for (size_t i = 0; i < sums->count; i++) {
        struct sum *sum = &sums->items[i];
        sum->largest = atomic_load_explicit(&sums->largest[i], memory_order_relaxed);
        if (!exponent_fits(sum, sums->gauge) && result == LS_SUMS_GOOD) {
            result = LS_SUMS_REPEAT;
            *parameter = (int)i;
        }
    }
    return result;
}

bool ls_sums_measured(const struct ls_sums *sums)
{
    bool any = false;
    for (size_t i = 0; i < sums->count; i++) {
        any |= sums->items[i].elements > 0;
        if (sums->items[i].elements > 0 && sums->items[i].exponent != LS_SUMS_EXPONENT_UNSET)
            return true;
    }
    return !any;
}

const int64_t *ls_sums_total(const struct ls_sums *sums, int parameter)
{
    return sums->items[parameter].total;
}

int ls_sums_exponent(const struct ls_sums *sums, int parameter)
{
    return sums->items[parameter].exponent;
}

int ls_sums_total_exponent(const struct ls_sums *sums, int parameter)
{
    return sums->items[parameter].total_exponent;
}

void ls_sums_set_exponent(struct ls_sums *sums, int parameter, int exponent)
{
    if (exponent > LS_SUMS_EXPONENT_UNSET)
        exponent = LS_SUMS_EXPONENT_UNSET;
    sums->items[parameter].exponent = exponent < EXPONENT_MIN ? EXPONENT_MIN : exponent;
}

void ls_sums_next(struct ls_sums *sums, int parameter, uint32_t largest)
{
    struct sum *sum = &sums->items[parameter];
    if (sum->largest > largest)
        largest = sum->largest;
    if (largest != 0)
        sum->exponent = exponent_for(magnitude(largest));
}
