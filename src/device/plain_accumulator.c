/* An accumulator in the host's memory, as simple as can be: a lock for each parameter, and the row
 * of each element in a list. See device/accumulator.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/thread.h"
#include "device/plain.h"

struct sum {
    struct ls_spin_lock lock;
    int64_t *total; /* a part of `all` */
    size_t elements;
    uint32_t update; /* the last update that stored here */
    int32_t *row;    /* by element */
    size_t rows;
    int32_t *exponent, *total_exponent; /* by row: of contributions, and of the total */
    uint32_t *largest;                  /* by row */
    int32_t first_not_finite;
};

struct plain_accumulator {
    struct sum *items;
    size_t count;
    int64_t *all;
    bool measure;
    uint32_t update;
};

static int set_rows(struct sum *sum, size_t rows, struct ls_error *error)
{
    int32_t *exponent = ls_alloc(2 * rows, sizeof *exponent);
    uint32_t *largest = ls_alloc(rows, sizeof *largest);
    if (exponent == NULL || largest == NULL) {
        ls_free(exponent);
        ls_free(largest);
        return ls_fail_memory(error, "gradient sums");
    }
    ls_free(sum->exponent);
    ls_free(sum->largest);
    sum->rows = rows;
    sum->exponent = exponent;
    sum->total_exponent = exponent + rows;
    sum->largest = largest;
    return 0;
}

static void plain_free(struct ls_accumulator *public)
{
    struct plain_accumulator *accumulator = (void *)public;
    if (accumulator == NULL)
        return;
    for (size_t i = 0; accumulator->items != NULL && i < accumulator->count; i++) {
        ls_free(accumulator->items[i].row);
        ls_free(accumulator->items[i].exponent);
        ls_free(accumulator->items[i].largest);
    }
    ls_free_aligned(accumulator->all);
    ls_free(accumulator->items);
    ls_free(accumulator);
}

static int plain_create(const size_t *elements, const size_t *place, size_t count, int workers,
                        struct ls_accumulator **out, struct ls_error *error)
{
    (void)workers;
    *out = NULL;
    size_t all = 0;
    for (size_t i = 0; i < count; i++) {
        size_t end = (place != NULL ? place[i] : all) + elements[i];
        all = end > all ? end : all;
    }
    struct plain_accumulator *accumulator = ls_alloc(1, sizeof *accumulator);
    if (accumulator == NULL)
        return ls_fail_memory(error, "gradient sums");
    accumulator->items = ls_alloc(count + 1, sizeof *accumulator->items);
    /* Up to a cache line of weights: what lies behind the last one goes to other ranks, too. */
    accumulator->all = ls_alloc_aligned((all + 15) / 16 * 16 * sizeof *accumulator->all);
    bool ready = accumulator->items != NULL && accumulator->all != NULL;
    for (size_t i = 0, at = 0; ready && i < count; at += elements[i++]) {
        struct sum *sum = &accumulator->items[i];
        accumulator->count++;
        sum->elements = elements[i];
        sum->total = accumulator->all + (place != NULL ? place[i] : at);
        sum->row = ls_alloc(elements[i], sizeof *sum->row);
        ready = sum->row != NULL && set_rows(sum, 1, NULL) == 0;
    }
    if (!ready) {
        plain_free((struct ls_accumulator *)(void *)accumulator);
        return ls_fail_memory(error, "gradient sums");
    }
    *out = (struct ls_accumulator *)(void *)accumulator;
    return 0;
}

static int plain_cut(struct ls_accumulator *public, int parameter, size_t rows, const float *row,
                     struct ls_error *error)
{
    struct plain_accumulator *accumulator = (void *)public;
    struct sum *sum = &accumulator->items[parameter];
    for (size_t i = 0; i < sum->elements; i++)
        sum->row[i] = row == NULL ? (int32_t)i : row[i] > 0 ? (int32_t)row[i] - 1 : 0;
    return set_rows(sum, row == NULL ? sum->elements : rows, error);
}

static void plain_part(const struct ls_accumulator *public, int parameter,
                       struct ls_accumulated *part)
{
    const struct plain_accumulator *accumulator = (const void *)public;
    struct sum *sum = &accumulator->items[parameter];
    *part = (struct ls_accumulated){.rows = sum->rows,
                                    .exponent = sum->exponent,
                                    .largest = sum->largest,
                                    .first_not_finite = &sum->first_not_finite};
}

static int plain_begin(struct ls_accumulator *public, bool measure, struct ls_error *error)
{
    struct plain_accumulator *accumulator = (void *)public;
    (void)error;
    accumulator->measure = measure;
    accumulator->update++;
    for (size_t i = 0; i < accumulator->count; i++) {
        struct sum *sum = &accumulator->items[i];
        memset(sum->largest, 0, sum->rows * sizeof *sum->largest);
        memcpy(sum->total_exponent, sum->exponent, sum->rows * sizeof *sum->exponent);
        sum->first_not_finite = INT32_MAX;
    }
    return 0;
}

static int plain_clear_rest(struct ls_accumulator *public, int parameter, struct ls_error *error)
{
    struct plain_accumulator *accumulator = (void *)public;
    (void)error;
    struct sum *sum = &accumulator->items[parameter];
    if (sum->update != accumulator->update)
        memset(sum->total, 0, sum->elements * sizeof *sum->total);
    sum->update = accumulator->update;
    return 0;
}

/* Adds numbers to elements from `begin` on. */
static void plain_add(const struct plain_accumulator *accumulator, struct sum *sum, int micro_batch,
                      size_t begin, size_t count, const float *gradient)
{
    for (size_t i = begin; i < begin + count; i++, gradient++) {
        const int32_t row = sum->row[i];
        uint32_t bits;
        memcpy(&bits, gradient, sizeof bits);
        bits &= UINT32_C(0x7fffffff);
        if (bits > sum->largest[row])
            sum->largest[row] = bits;
        if (bits >= LS_NOT_FINITE && micro_batch < sum->first_not_finite)
            sum->first_not_finite = micro_batch;
        if (accumulator->measure)
            continue;
        double units = ldexp((double)*gradient, sum->exponent[row]);
        units = fabs(units) < 0x1p62 ? units : 0; /* meaningless, and judged by `largest` */
        sum->total[i] = (int64_t)((uint64_t)sum->total[i] + (uint64_t)llrint(units));
    }
}

static struct sum *plain_begin_sum(struct plain_accumulator *accumulator, int parameter)
{
    struct sum *sum = &accumulator->items[parameter];
    ls_spin_acquire(&sum->lock);
    if (!accumulator->measure)
        (void)plain_clear_rest((struct ls_accumulator *)(void *)accumulator, parameter, NULL);
    return sum;
}

void ls_plain_accumulate(struct ls_accumulator *public, int micro_batch, int parameter,
                         const float *gradient)
{
    struct plain_accumulator *accumulator = (void *)public;
    struct sum *sum = plain_begin_sum(accumulator, parameter);
    plain_add(accumulator, sum, micro_batch, 0, sum->elements, gradient);
    ls_spin_release(&sum->lock);
}

void ls_plain_accumulate_rows(struct ls_accumulator *public, int micro_batch, int parameter,
                              const struct ls_accumulated_rows *rows)
{
    struct plain_accumulator *accumulator = (void *)public;
    struct sum *sum = plain_begin_sum(accumulator, parameter);
    for (size_t r = 0; r < rows->count && rows->number[r] >= 0; r++)
        plain_add(accumulator, sum, micro_batch, (size_t)rows->number[r] * rows->columns,
                  rows->columns, rows->rows + r * rows->columns);
    ls_spin_release(&sum->lock);
}

static int64_t *plain_all(const struct ls_accumulator *public)
{
    const struct plain_accumulator *accumulator = (const void *)public;
    return accumulator->all;
}

static int plain_read(const struct ls_accumulator *public, int parameter, size_t begin,
                      size_t count, float *out, struct ls_error *error)
{
    const struct plain_accumulator *accumulator = (const void *)public;
    (void)error;
    const struct sum *sum = &accumulator->items[parameter];
    for (size_t i = begin; i < begin + count; i++)
        *out++ = sum->update == accumulator->update
                     ? (float)ldexp((double)sum->total[i], -sum->total_exponent[sum->row[i]])
                     : 0;
    return 0;
}

static int plain_squares(const struct ls_accumulator *public, int parameter, size_t begin,
                         size_t count, double *chunk, struct ls_error *error)
{
    float read[LS_EXACT_CHUNK];
    for (size_t at = 0, n; at < count; at += n) {
        n = count - at < LS_EXACT_CHUNK ? count - at : LS_EXACT_CHUNK;
        LS_TRY(plain_read(public, parameter, begin + at, n, read, error));
        LS_TRY(ls_plain_sums.squares(read, n, chunk++, error));
    }
    return 0;
}

const struct ls_device_accumulator ls_plain_accumulator = {
    .create = plain_create,
    .free = plain_free,
    .cut = plain_cut,
    .part = plain_part,
    .begin = plain_begin,
    .all = plain_all,
    .clear_rest = plain_clear_rest,
    .read = plain_read,
    .squares = plain_squares,
};
