/* Exact sums: contributions, and the notes that ranks exchange. See transport/sums.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "transport/sums.h"

#include <limits.h>
#include <string.h>

#include "base/memory.h"
#include "base/mutant.h"
#include "transport/sums_inner.h"

/* ---- Creation -------------------------------------------------------------------------------- */

/* Numbers that all sums take together: with what lies behind the last one, up to a cache line of
 * weights, for it goes to the other ranks, too. */
static size_t sums_all_elements(const size_t *elements, const size_t *place, size_t count)
{
    size_t all = 0;
    for (size_t i = 0; i < count; i++) {
        size_t end = (place != NULL ? place[i] : all) + elements[i];
        all = end > all ? end : all;
    }
    return (all + 15) / 16 * 16;
}

static int sums_create_sum(struct ls_sum *sum, size_t elements, int64_t *total,
                           struct ls_error *error)
{
    sum->elements = elements;
    sum->total = total;
    sum->tile_count = (elements + LS_SUMS_TILE - 1) / LS_SUMS_TILE;
    sum->tiles = ls_alloc(sum->tile_count, sizeof *sum->tiles);
    if (sum->tiles == NULL)
        return ls_fail_memory(error, "gradient sums");
    return ls_sum_set_rows(sum, 1, error);
}

int ls_sums_create(const struct ls_device *device, const size_t *elements, const size_t *place,
                   size_t count, int workers, struct ls_sums **out, struct ls_error *error)
{
    *out = NULL;
    struct ls_sums *sums = ls_alloc(1, sizeof *sums);
    if (sums == NULL)
        return ls_fail_memory(error, "gradient sums");
    sums->workers = workers;
    sums->items = ls_alloc(count + 1, sizeof *sums->items);
    sums->all = ls_alloc_aligned(sums_all_elements(elements, place, count) * sizeof *sums->all);
    int status = 0;
    if (sums->items == NULL || sums->all == NULL)
        status = ls_fail_memory(error, "gradient sums");
    for (size_t i = 0, at = 0; status == 0 && i < count; at += elements[i++]) {
        sums->count++;
        int64_t *total = sums->all + (place != NULL ? place[i] : at);
        sums->items[i].device = device->sums;
        status = sums_create_sum(&sums->items[i], elements[i], total, error);
    }
    if (status != 0)
        ls_sums_free(sums);
    else
        *out = sums;
    return status;
}

void ls_sums_free(struct ls_sums *sums)
{
    if (sums == NULL)
        return;
    for (size_t i = 0; i < sums->count; i++) {
        struct ls_sum *sum = &sums->items[i];
        ls_free(sum->tiles);
        ls_free(sum->runs);
        ls_free(sum->lanes);
        ls_free(sum->numbers);
        ls_free((void *)sum->raised);
    }
    ls_free_aligned(sums->all);
    ls_free(sums->items);
    ls_free(sums);
}

void ls_sums_tell(struct ls_sums *sums, void (*contributed)(void *user, int parameter), void *user)
{
    sums->contributed = contributed;
    sums->user = user;
}

/* ---- Contributions --------------------------------------------------------------------------- */

void ls_sums_begin(struct ls_sums *sums, bool calibrate)
{
    sums->calibrate = calibrate;
    sums->update++;
    for (size_t i = 0; i < sums->count; i++) {
        struct ls_sum *sum = &sums->items[i];
        memset((void *)sum->raised, 0, sum->rows * sizeof *sum->raised);
        atomic_store_explicit(&sum->first_not_finite, INT_MAX, memory_order_relaxed);
    }
}

/* Adds a run, or only measures it. `gradient` is the whole contribution. Returns the bits of the
 * largest. */
static uint32_t sums_take_run(struct ls_sum *sum, const struct ls_sums_run *run,
                              const float *gradient, bool first, bool calibrate)
{
    int64_t *total = sum->total + run->begin;
    const float *from = gradient + run->begin;
    if (run->rows == NULL) {
        uint32_t bits =
            calibrate ? sum->device->largest(from, run->count)
                      : sum->device->add(total, from, run->count, sum->exponent[run->row], first);
        ls_raise_to(&sum->raised[run->row], bits);
        return bits;
    }
    int32_t exponent[LS_EXACT_LANES];
    uint32_t largest[LS_EXACT_LANES] = {0}, all;
    for (int j = 0; j < LS_EXACT_LANES; j++)
        exponent[j] = sum->exponent[run->rows[j]];
    all = calibrate ? sum->device->largest_lanes(from, run->count, largest)
                    : sum->device->add_lanes(total, from, run->count, exponent, largest, first);
    for (int j = 0; j < LS_EXACT_LANES; j++)
        if (largest[j] != 0)
            ls_raise_to(&sum->raised[run->rows[j]], largest[j]);
    return all;
}

static uint32_t sums_take_elements(struct ls_sum *sum, size_t begin, size_t count,
                                   const float *gradient, bool first, bool calibrate)
{
    uint32_t *largest = (uint32_t *)(void *)(sum->raised + begin); /* guarded by the tile's lock */
    if (calibrate)
        return sum->device->largest_each(gradient + begin, count, largest);
    return sum->device->add_each(sum->total + begin, gradient + begin, count, sum->exponent + begin,
                                 largest, first);
}

static uint32_t sums_take_tile(struct ls_sum *sum, size_t tile, const float *gradient, bool first,
                               bool calibrate)
{
    size_t begin = tile * LS_SUMS_TILE;
    size_t count = sum->elements - begin < LS_SUMS_TILE ? sum->elements - begin : LS_SUMS_TILE;
    struct ls_sums_run whole = {.begin = begin, .count = count};
    uint32_t largest = 0;
    if (sum->cut == LS_CUT_ELEMENTS)
        return sums_take_elements(sum, begin, count, gradient, first, calibrate);
    if (sum->cut == LS_CUT_WHOLE)
        return sums_take_run(sum, &whole, gradient, first, calibrate);
    for (size_t r = sum->tiles[tile].first_run;
         r < sum->run_count && sum->runs[r].begin < begin + count; r++) {
        uint32_t bits = sums_take_run(sum, &sum->runs[r], gradient, first, calibrate);
        largest = bits > largest ? bits : largest;
    }
    return largest;
}

/* Adds a tile of a contribution under the tile's lock, or measures it. The first of an update
 * stores: the sums need not be cleared. */
static uint32_t sums_add_tile(const struct ls_sums *sums, struct ls_sum *sum, size_t tile,
                              const float *gradient)
{
    struct ls_sums_tile *guard = &sum->tiles[tile];
    ls_spin_acquire(&guard->lock);
    bool first = guard->update != sums->update;
    guard->update = sums->calibrate ? guard->update : sums->update;
    uint32_t bits = sums_take_tile(sum, tile, gradient, first, sums->calibrate);
    if (LS_MUTANT(FLOATS)) /* rounded as float sums are, in order of arrival */
        for (size_t i = tile * LS_SUMS_TILE; i < sum->elements && i / LS_SUMS_TILE == tile; i++)
            sum->total[i] = (int64_t)(float)sum->total[i];
    ls_spin_release(&guard->lock);
    return bits;
}

void ls_sums_contribute(void *contributor, int parameter, const float *gradient, size_t elements)
{
    const struct ls_contributor *from = contributor;
    struct ls_sums *sums = from->sums;
    struct ls_sum *sum = &sums->items[parameter];
    uint32_t largest = 0;
    (void)elements;
    /* Workers start at different tiles, so that they seldom wait for each other. */
    size_t start = sum->tile_count * (size_t)from->worker / (size_t)sums->workers;
    for (size_t i = 0; i < sum->tile_count; i++) {
        size_t tile = (start + i) % sum->tile_count;
        uint32_t bits = sums_add_tile(sums, sum, tile, gradient);
        largest = bits > largest ? bits : largest;
    }
    if (largest >= LS_NOT_FINITE)
        ls_lower_to(&sum->first_not_finite, from->micro_batch);
    if (sums->contributed != NULL && !sums->calibrate)
        sums->contributed(sums->user, parameter);
}

/* ---- Several ranks --------------------------------------------------------------------------- */

int64_t *ls_sums_all(const struct ls_sums *sums)
{
    return sums->all;
}

void ls_sums_clear_rest(struct ls_sums *sums, int parameter)
{
    struct ls_sum *sum = &sums->items[parameter];
    for (size_t tile = 0; tile < sum->tile_count; tile++) {
        size_t begin = tile * LS_SUMS_TILE, left = sum->elements - begin;
        if (sum->tiles[tile].update != sums->update)
            memset(sum->total + begin, 0,
                   (left < LS_SUMS_TILE ? left : LS_SUMS_TILE) * sizeof *sum->total);
    }
}

size_t ls_sums_note_bytes(size_t parameters, size_t rows)
{
    return parameters * sizeof(int32_t) + (rows + 7) / 8 * 8;
}

size_t ls_sums_all_rows(const struct ls_sums *sums)
{
    size_t rows = 0;
    for (size_t i = 0; i < sums->count; i++)
        rows += sums->items[i].rows;
    return rows;
}

void ls_sums_note(const struct ls_sums *sums, void *notes)
{
    int32_t *bad = notes;
    uint8_t *power = (uint8_t *)(bad + sums->count);
    for (size_t i = 0; i < sums->count; i++) {
        struct ls_sum *sum = &sums->items[i];
        bad[i] = atomic_load_explicit(&sum->first_not_finite, memory_order_relaxed);
        for (size_t row = 0; row < sum->rows; row++)
            *power++ =
                (uint8_t)(atomic_load_explicit(&sum->raised[row], memory_order_relaxed) >> 23);
    }
}

void ls_sums_hear(struct ls_sums *sums, const void *notes)
{
    const int32_t *bad = notes;
    const uint8_t *power = (const uint8_t *)(bad + sums->count);
    for (size_t i = 0; i < sums->count; i++) {
        struct ls_sum *sum = &sums->items[i];
        ls_lower_to(&sum->first_not_finite, bad[i]);
        for (size_t row = 0; row < sum->rows; row++, power++)
            ls_raise_to(&sum->raised[row], (uint32_t)*power << 23);
    }
}

/* ---- Totals ---------------------------------------------------------------------------------- */

const int64_t *ls_sums_total(const struct ls_sums *sums, int parameter)
{
    return sums->items[parameter].total;
}

/* The run that an element lies in. */
static const struct ls_sums_run *sums_find_run(const struct ls_sum *sum, size_t element)
{
    const struct ls_sums_run *run = &sum->runs[sum->tiles[element / LS_SUMS_TILE].first_run];
    while (element >= run->begin + run->count)
        run++;
    return run;
}

static void sums_read_runs(const struct ls_sum *sum, size_t begin, size_t count, float *out)
{
    const struct ls_sums_run *run = sums_find_run(sum, begin);
    for (size_t end = begin + count, n; begin < end; begin += n, out += n, run++) {
        size_t skipped = begin - run->begin;
        n = run->count - skipped < end - begin ? run->count - skipped : end - begin;
        if (run->rows == NULL) {
            sum->device->to_float(sum->total + begin, sum->total_exponent[run->row], out, n);
            continue;
        }
        int32_t exponent[LS_EXACT_LANES];
        for (size_t j = 0; j < LS_EXACT_LANES; j++)
            exponent[j] = sum->total_exponent[run->rows[(skipped + j) % LS_EXACT_LANES]];
        sum->device->to_float_lanes(sum->total + begin, exponent, out, n);
    }
}

void ls_sums_read(const struct ls_sums *sums, int parameter, size_t begin, size_t count, float *out)
{
    const struct ls_sum *sum = &sums->items[parameter];
    if (count == 0)
        return;
    if (sum->cut == LS_CUT_ELEMENTS)
        sum->device->to_float_each(sum->total + begin, sum->total_exponent + begin, out, count);
    else if (sum->cut == LS_CUT_WHOLE)
        sum->device->to_float(sum->total + begin, sum->total_exponent[0], out, count);
    else
        sums_read_runs(sum, begin, count, out);
}

void ls_sums_squares(const struct ls_sums *sums, int parameter, size_t begin, size_t count,
                     double *chunk)
{
    float read[LS_EXACT_CHUNK];
    for (size_t at = 0, n; at < count; at += n) {
        n = count - at < LS_EXACT_CHUNK ? count - at : LS_EXACT_CHUNK;
        ls_sums_read(sums, parameter, begin + at, n, read);
        *chunk++ = sums->items[parameter].device->squares(read, n);
    }
}
