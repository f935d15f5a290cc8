/* Exact sums in the host's memory. See ops/cpu/accumulator.h.
 *
 * A parameter is cut into tiles. A worker that contributes takes one tile after the other, each
 * under its lock, beginning where the others do not; the first of an update stores, so that the
 * sums need not be cleared. Rows of a tile are runs: stretches of one row, or of rows that come in
 * turns of LS_EXACT_LANES, as blocked layouts have them.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/accumulator.h"

#include <stdatomic.h>
#include <string.h>

#include "base/memory.h"
#include "base/mutant.h"
#include "base/thread.h"
#include "ops/cpu/exact.h"

enum {
    TILE = 8192,   /* elements that one lock guards */
    TOGETHER = 64, /* elements that are compared at once */
    UNIFORM = 16   /* elements of one row in a row that are a run by themselves */
};
_Static_assert(TILE % LS_EXACT_CHUNK == 0, "chunks do not go over the end of a tile");

/* How the elements of a parameter belong to rows. */
enum cut {
    CUT_WHOLE,    /* all to row 0 */
    CUT_ELEMENTS, /* each is a row */
    CUT_RUNS      /* as runs say */
};

/* Elements [begin, begin + count) of a parameter, within a tile: of one row, or in lanes, where
 * element i belongs to rows[(i - begin) % LS_EXACT_LANES]. */
struct run {
    size_t begin, count;
    const int32_t *rows; /* NULL: `row` */
    int32_t row;
};

struct tile {
    struct ls_spin_lock lock;
    uint32_t update;  /* the last update that stored here */
    size_t first_run; /* of CUT_RUNS */
};

struct sum {
    int64_t *total; /* in the parameter's layout; a part of `all` */
    size_t elements;
    struct tile *tiles;
    size_t tile_count;
    enum cut cut;
    struct run *runs;
    size_t run_count;
    int32_t *lanes; /* what `rows` of runs points to */
    size_t rows;
    int32_t *exponent;         /* by row: the host's */
    int32_t *total_exponent;   /* behind it: of the total that is there */
    _Atomic uint32_t *largest; /* by row */
    _Atomic int32_t first_not_finite;
};

struct ls_accumulator {
    struct sum *items;
    size_t count;
    int64_t *all;
    int workers;
    bool measure;
    uint32_t update; /* number of the running update, for tile.update */
};

/* ---- Creation -------------------------------------------------------------------------------- */

/* Numbers that all sums take together: with what lies behind the last one, up to a cache line of
 * weights, for it goes to the other ranks, too. */
static size_t all_elements(const size_t *elements, const size_t *place, size_t count)
{
    size_t all = 0;
    for (size_t i = 0; i < count; i++) {
        size_t end = (place != NULL ? place[i] : all) + elements[i];
        all = end > all ? end : all;
    }
    return (all + 15) / 16 * 16;
}

static int set_rows(struct sum *sum, size_t rows, struct ls_error *error)
{
    int32_t *exponent = ls_alloc(2 * rows, sizeof *exponent);
    _Atomic uint32_t *largest = ls_alloc(rows, sizeof *largest);
    if (exponent == NULL || largest == NULL) {
        ls_free(exponent);
        ls_free((void *)largest);
        return ls_fail_memory(error, "gradient sums");
    }
    ls_free(sum->exponent);
    ls_free((void *)sum->largest);
    sum->rows = rows;
    sum->exponent = exponent;
    sum->total_exponent = exponent + rows;
    sum->largest = largest;
    return 0;
}

static void accumulator_free(struct ls_accumulator *accumulator)
{
    if (accumulator == NULL)
        return;
    for (size_t i = 0; i < accumulator->count; i++) {
        struct sum *sum = &accumulator->items[i];
        ls_free(sum->tiles);
        ls_free(sum->runs);
        ls_free(sum->lanes);
        ls_free(sum->exponent);
        ls_free((void *)sum->largest);
    }
    ls_free_aligned(accumulator->all);
    ls_free(accumulator->items);
    ls_free(accumulator);
}

static int create_sum(struct sum *sum, size_t elements, int64_t *total, struct ls_error *error)
{
    sum->elements = elements;
    sum->total = total;
    sum->tile_count = (elements + TILE - 1) / TILE;
    sum->tiles = ls_alloc(sum->tile_count, sizeof *sum->tiles);
    if (sum->tiles == NULL)
        return ls_fail_memory(error, "gradient sums");
    return set_rows(sum, 1, error);
}

static int accumulator_create(const size_t *elements, const size_t *place, size_t count,
                              int workers, struct ls_accumulator **out, struct ls_error *error)
{
    *out = NULL;
    struct ls_accumulator *accumulator = ls_alloc(1, sizeof *accumulator);
    if (accumulator == NULL)
        return ls_fail_memory(error, "gradient sums");
    accumulator->workers = workers;
    accumulator->items = ls_alloc(count + 1, sizeof *accumulator->items);
    accumulator->all =
        ls_alloc_aligned(all_elements(elements, place, count) * sizeof *accumulator->all);
    int status = 0;
    if (accumulator->items == NULL || accumulator->all == NULL)
        status = ls_fail_memory(error, "gradient sums");
    for (size_t i = 0, at = 0; status == 0 && i < count; at += elements[i++]) {
        accumulator->count++;
        status = create_sum(&accumulator->items[i], elements[i],
                            accumulator->all + (place != NULL ? place[i] : at), error);
    }
    if (status != 0)
        accumulator_free(accumulator);
    else
        *out = accumulator;
    return status;
}

/* ---- Rows ------------------------------------------------------------------------------------ */

static int32_t row_of(const float *row, size_t element)
{
    return row[element] > 0 ? (int32_t)row[element] - 1 : 0; /* padding is zero: any row will do */
}

/* `count` if elements [at, at + count) lie before `end` and equal those in front, else 1. */
static size_t repeats(const float *row, size_t at, size_t count, size_t end)
{
    return at + count <= end && memcmp(row + at, row + at - count, count * sizeof *row) == 0 ? count
                                                                                             : 1;
}

/* How many elements from `begin` on are of one row. */
static size_t same_row(const float *row, size_t begin, size_t end)
{
    size_t at = begin + 1;
    while (at < end && row_of(row, at) == row_of(row, begin))
        at += at - begin >= TOGETHER ? repeats(row, at, TOGETHER, end) : 1;
    return at - begin;
}

/* How many elements from `begin` on belong to rows as the first LS_EXACT_LANES do. */
static size_t same_lanes(const float *row, size_t begin, size_t end)
{
    size_t at = begin;
    while (at < end &&
           (at - begin < LS_EXACT_LANES || row_of(row, at) == row_of(row, at - LS_EXACT_LANES)))
        at += at - begin >= LS_EXACT_LANES ? repeats(row, at, LS_EXACT_LANES, end) : 1;
    size_t count = at - begin;
    return at == end ? count : count / LS_EXACT_LANES * LS_EXACT_LANES;
}

/* Cuts a tile into runs; `sum->runs` and `lanes` NULL: counts them. */
static void cut_tile(struct sum *sum, const float *row, size_t begin, size_t end, size_t *lanes)
{
    for (size_t count; begin < end; begin += count, sum->run_count++) {
        count = same_row(row, begin, end);
        bool uniform = count >= UNIFORM || count == end - begin;
        if (!uniform)
            count = same_lanes(row, begin, end);
        if (sum->runs != NULL) {
            struct run *run = &sum->runs[sum->run_count];
            *run = (struct run){.begin = begin, .count = count, .row = row_of(row, begin)};
            run->rows = uniform ? NULL : sum->lanes + *lanes;
            for (size_t j = 0; !uniform && j < LS_EXACT_LANES; j++)
                sum->lanes[*lanes + j] = row_of(row, j < count ? begin + j : begin);
        }
        *lanes += uniform ? 0 : LS_EXACT_LANES;
    }
}

static size_t cut_all(struct sum *sum, const float *row)
{
    size_t lanes = 0;
    sum->run_count = 0;
    for (size_t tile = 0; tile < sum->tile_count; tile++) {
        size_t begin = tile * TILE, left = sum->elements - begin;
        sum->tiles[tile].first_run = sum->run_count;
        cut_tile(sum, row, begin, begin + (left < TILE ? left : TILE), &lanes);
    }
    return lanes;
}

static int accumulator_cut(struct ls_accumulator *accumulator, int parameter, size_t rows,
                           const float *row, struct ls_error *error)
{
    struct sum *sum = &accumulator->items[parameter];
    ls_free(sum->runs);
    ls_free(sum->lanes);
    sum->runs = NULL;
    sum->lanes = NULL;
    sum->cut = row == NULL ? CUT_ELEMENTS : CUT_RUNS;
    if (row == NULL)
        return set_rows(sum, sum->elements, error);
    size_t lanes = cut_all(sum, row);
    struct run *runs = ls_alloc(sum->run_count + 1, sizeof *runs);
    sum->lanes = ls_alloc(lanes + 1, sizeof *sum->lanes);
    sum->runs = runs;
    if (runs == NULL || sum->lanes == NULL)
        return ls_fail_memory(error, "gradient sums");
    cut_all(sum, row);
    return set_rows(sum, rows, error);
}

static void accumulator_part(const struct ls_accumulator *accumulator, int parameter,
                             struct ls_accumulated *part)
{
    struct sum *sum = &accumulator->items[parameter];
    *part = (struct ls_accumulated){.rows = sum->rows,
                                    .exponent = sum->exponent,
                                    .largest = (uint32_t *)(void *)sum->largest,
                                    .first_not_finite = (int32_t *)(void *)&sum->first_not_finite};
}

/* ---- Contributions --------------------------------------------------------------------------- */

static int accumulator_begin(struct ls_accumulator *accumulator, bool measure,
                             struct ls_error *error)
{
    (void)error;
    accumulator->measure = measure;
    accumulator->update++;
    for (size_t i = 0; i < accumulator->count; i++) {
        struct sum *sum = &accumulator->items[i];
        memset((void *)sum->largest, 0, sum->rows * sizeof *sum->largest);
        memcpy(sum->total_exponent, sum->exponent, sum->rows * sizeof *sum->exponent);
        atomic_store_explicit(&sum->first_not_finite, INT32_MAX, memory_order_relaxed);
    }
    return 0;
}

/* Adds a run, or only measures it. `gradient` is the whole contribution. Returns the bits of the
 * largest. */
static uint32_t take_run(struct sum *sum, const struct run *run, const float *gradient, bool first,
                         bool measure)
{
    int64_t *total = sum->total + run->begin;
    const float *from = gradient + run->begin;
    if (run->rows == NULL) {
        uint32_t bits = measure
                            ? ls_largest(from, run->count)
                            : ls_exact_add(total, from, run->count, sum->exponent[run->row], first);
        ls_raise_to(&sum->largest[run->row], bits);
        return bits;
    }
    int32_t exponent[LS_EXACT_LANES];
    uint32_t largest[LS_EXACT_LANES] = {0}, all;
    for (int j = 0; j < LS_EXACT_LANES; j++)
        exponent[j] = sum->exponent[run->rows[j]];
    all = measure ? ls_largest_lanes(from, run->count, largest)
                  : ls_exact_add_lanes(total, from, run->count, exponent, largest, first);
    for (int j = 0; j < LS_EXACT_LANES; j++)
        if (largest[j] != 0)
            ls_raise_to(&sum->largest[run->rows[j]], largest[j]);
    return all;
}

static uint32_t take_elements(struct sum *sum, size_t begin, size_t count, const float *gradient,
                              bool first, bool measure)
{
    uint32_t *largest = (uint32_t *)(void *)(sum->largest + begin); /* guarded by the tile's lock */
    if (measure)
        return ls_largest_each(gradient + begin, count, largest);
    return ls_exact_add_each(sum->total + begin, gradient + begin, count, sum->exponent + begin,
                             largest, first);
}

static uint32_t take_tile(struct sum *sum, size_t tile, const float *gradient, bool first,
                          bool measure)
{
    size_t begin = tile * TILE;
    size_t count = sum->elements - begin < TILE ? sum->elements - begin : TILE;
    struct run whole = {.begin = begin, .count = count};
    uint32_t largest = 0;
    if (sum->cut == CUT_ELEMENTS)
        return take_elements(sum, begin, count, gradient, first, measure);
    if (sum->cut == CUT_WHOLE)
        return take_run(sum, &whole, gradient, first, measure);
    for (size_t r = sum->tiles[tile].first_run;
         r < sum->run_count && sum->runs[r].begin < begin + count; r++) {
        uint32_t bits = take_run(sum, &sum->runs[r], gradient, first, measure);
        largest = bits > largest ? bits : largest;
    }
    return largest;
}

/* Adds a tile of a contribution under the tile's lock, or measures it. */
static uint32_t add_tile(const struct ls_accumulator *accumulator, struct sum *sum, size_t tile,
                         const float *gradient)
{
    struct tile *guard = &sum->tiles[tile];
    ls_spin_acquire(&guard->lock);
    bool first = guard->update != accumulator->update;
    guard->update = accumulator->measure ? guard->update : accumulator->update;
    uint32_t bits = take_tile(sum, tile, gradient, first, accumulator->measure);
    if (LS_MUTANT(FLOATS)) /* rounded as float sums are, in order of arrival */
        for (size_t i = tile * TILE; i < sum->elements && i / TILE == tile; i++)
            sum->total[i] = (int64_t)(float)sum->total[i];
    ls_spin_release(&guard->lock);
    return bits;
}

void ls_cpu_accumulate(struct ls_accumulator *accumulator, int worker, int micro_batch,
                       int parameter, const float *gradient)
{
    struct sum *sum = &accumulator->items[parameter];
    uint32_t largest = 0;
    /* Workers start at different tiles, so that they seldom wait for each other. */
    size_t start = sum->tile_count * (size_t)worker / (size_t)accumulator->workers;
    for (size_t i = 0; i < sum->tile_count; i++) {
        size_t tile = (start + i) % sum->tile_count;
        uint32_t bits = add_tile(accumulator, sum, tile, gradient);
        largest = bits > largest ? bits : largest;
    }
    if (largest >= LS_NOT_FINITE)
        ls_lower_to(&sum->first_not_finite, micro_batch);
}

/* ---- Contributions of rows ------------------------------------------------------------------- */

/* The run that an element lies in. */
static const struct run *find_run(const struct sum *sum, size_t element)
{
    const size_t tile = element / TILE;
    size_t low = sum->tiles[tile].first_run;
    size_t high = tile + 1 < sum->tile_count ? sum->tiles[tile + 1].first_run : sum->run_count;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (sum->runs[middle].begin <= element)
            low = middle;
        else
            high = middle;
    }
    return &sum->runs[low];
}

/* How many elements from `element` on, up to `end`, are of the row that it is of: *row. */
static size_t stretch_of_row(const struct sum *sum, size_t element, size_t end, int32_t *row)
{
    *row = 0;
    if (sum->cut == CUT_WHOLE)
        return end - element;
    const struct run *run = find_run(sum, element);
    const size_t last = run->begin + run->count < end ? run->begin + run->count : end;
    *row = run->row;
    if (run->rows == NULL)
        return last - element;
    size_t at = element;
    *row = run->rows[(element - run->begin) % LS_EXACT_LANES];
    while (at < last && run->rows[(at - run->begin) % LS_EXACT_LANES] == *row)
        at++;
    return at - element;
}

/* Adds elements [begin, end) of a tile, or only measures them. */
static uint32_t take_part(struct sum *sum, size_t begin, size_t end, const float *from,
                          bool measure)
{
    uint32_t largest = 0, *each = (uint32_t *)(void *)(sum->largest + begin);
    if (sum->cut == CUT_ELEMENTS)
        return measure ? ls_largest_each(from, end - begin, each)
                       : ls_exact_add_each(sum->total + begin, from, end - begin,
                                           sum->exponent + begin, each, false);
    for (size_t n; begin < end; begin += n, from += n) {
        int32_t row;
        n = stretch_of_row(sum, begin, end, &row);
        const uint32_t bits =
            measure ? ls_largest(from, n)
                    : ls_exact_add(sum->total + begin, from, n, sum->exponent[row], false);
        ls_raise_to(&sum->largest[row], bits);
        largest = bits > largest ? bits : largest;
    }
    return largest;
}

/* The same under the tile's lock; the first of an update clears the rest of the tile. */
static uint32_t add_part(const struct ls_accumulator *accumulator, struct sum *sum, size_t begin,
                         size_t end, const float *from)
{
    struct tile *guard = &sum->tiles[begin / TILE];
    const size_t first = begin / TILE * TILE, left = sum->elements - first;
    ls_spin_acquire(&guard->lock);
    if (!accumulator->measure && guard->update != accumulator->update) {
        memset(sum->total + first, 0, (left < TILE ? left : TILE) * sizeof *sum->total);
        guard->update = accumulator->update;
    }
    const uint32_t bits = take_part(sum, begin, end, from, accumulator->measure);
    if (LS_MUTANT(FLOATS)) /* as in add_tile */
        for (size_t i = begin; i < end; i++)
            sum->total[i] = (int64_t)(float)sum->total[i];
    ls_spin_release(&guard->lock);
    return bits;
}

void ls_cpu_accumulate_rows(struct ls_accumulator *accumulator, int micro_batch, int parameter,
                            const struct ls_accumulated_rows *rows)
{
    struct sum *sum = &accumulator->items[parameter];
    uint32_t largest = 0;
    for (size_t r = 0; r < rows->count && rows->number[r] >= 0; r++) {
        const float *from = rows->rows + r * rows->columns;
        size_t begin = (size_t)rows->number[r] * rows->columns, end = begin + rows->columns;
        for (size_t n; begin < end; begin += n, from += n) {
            n = TILE - begin % TILE < end - begin ? TILE - begin % TILE : end - begin;
            const uint32_t bits = add_part(accumulator, sum, begin, begin + n, from);
            largest = bits > largest ? bits : largest;
        }
    }
    if (largest >= LS_NOT_FINITE)
        ls_lower_to(&sum->first_not_finite, micro_batch);
}

/* ---- Totals ---------------------------------------------------------------------------------- */

static int64_t *accumulator_all(const struct ls_accumulator *accumulator)
{
    return accumulator->all;
}

static int accumulator_clear_rest(struct ls_accumulator *accumulator, int parameter,
                                  struct ls_error *error)
{
    (void)error;
    struct sum *sum = &accumulator->items[parameter];
    for (size_t tile = 0; tile < sum->tile_count; tile++) {
        size_t begin = tile * TILE, left = sum->elements - begin;
        if (sum->tiles[tile].update == accumulator->update)
            continue;
        memset(sum->total + begin, 0, (left < TILE ? left : TILE) * sizeof *sum->total);
        sum->tiles[tile].update = accumulator->update;
    }
    return 0;
}

static void read_runs(const struct sum *sum, size_t begin, size_t count, float *out)
{
    const struct run *run = find_run(sum, begin);
    for (size_t end = begin + count, n; begin < end; begin += n, out += n, run++) {
        size_t skipped = begin - run->begin;
        n = run->count - skipped < end - begin ? run->count - skipped : end - begin;
        if (run->rows == NULL) {
            ls_exact_to_float(sum->total + begin, sum->total_exponent[run->row], out, n);
            continue;
        }
        int32_t exponent[LS_EXACT_LANES];
        for (size_t j = 0; j < LS_EXACT_LANES; j++)
            exponent[j] = sum->total_exponent[run->rows[(skipped + j) % LS_EXACT_LANES]];
        ls_exact_to_float_lanes(sum->total + begin, exponent, out, n);
    }
}

/* Elements of one tile. One that nothing was added to is not even read. */
static void read_tile(const struct ls_accumulator *accumulator, const struct sum *sum, size_t begin,
                      size_t count, float *out)
{
    if (sum->tiles[begin / TILE].update != accumulator->update)
        memset(out, 0, count * sizeof *out);
    else if (sum->cut == CUT_ELEMENTS)
        ls_exact_to_float_each(sum->total + begin, sum->total_exponent + begin, out, count);
    else if (sum->cut == CUT_WHOLE)
        ls_exact_to_float(sum->total + begin, sum->total_exponent[0], out, count);
    else
        read_runs(sum, begin, count, out);
}

static int accumulator_read(const struct ls_accumulator *accumulator, int parameter, size_t begin,
                            size_t count, float *out, struct ls_error *error)
{
    (void)error;
    const struct sum *sum = &accumulator->items[parameter];
    for (size_t n; count > 0; begin += n, count -= n, out += n) {
        n = TILE - begin % TILE < count ? TILE - begin % TILE : count;
        read_tile(accumulator, sum, begin, n, out);
    }
    return 0;
}

static int accumulator_squares(const struct ls_accumulator *accumulator, int parameter,
                               size_t begin, size_t count, double *chunk, struct ls_error *error)
{
    float read[LS_EXACT_CHUNK];
    for (size_t at = 0, n; at < count; at += n) {
        n = count - at < LS_EXACT_CHUNK ? count - at : LS_EXACT_CHUNK;
        LS_TRY(accumulator_read(accumulator, parameter, begin + at, n, read, error));
        *chunk++ = ls_sum_squares(read, n);
    }
    return 0;
}

const struct ls_device_accumulator ls_cpu_accumulator = {
    .create = accumulator_create,
    .free = accumulator_free,
    .cut = accumulator_cut,
    .part = accumulator_part,
    .begin = accumulator_begin,
    .all = accumulator_all,
    .clear_rest = accumulator_clear_rest,
    .read = accumulator_read,
    .squares = accumulator_squares,
};
