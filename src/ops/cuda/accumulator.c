/* All sums lie in one array, which is cleared when an update begins: 8 bytes a weight. Small arrays
 * by row (exponents of contributions and of totals, the largest, the first that is not finite) lie
 * in one allocation a parameter. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/accumulator.h"

#include <string.h>

#include "base/memory.h"
#include "device/exact.h"
#include "ops/cuda/kernels/kernels.h"

struct sum {
    struct ls_cuda_sum card;
    int32_t *rows, *by_element; /* allocations of the card: by row, and the row of each element */
};

struct card_accumulator {
    struct sum *items;
    size_t count, elements; /* of `all` */
    int64_t *all;
    int32_t *measure; /* one, on the card: a captured pass serves whether it measures or not */
};

static void accumulator_free(struct ls_accumulator *public)
{
    struct card_accumulator *accumulator = (void *)public;
    if (accumulator == NULL)
        return;
    for (size_t i = 0; accumulator->items != NULL && i < accumulator->count; i++) {
        ls_card_memory.free(accumulator->items[i].rows);
        ls_card_memory.free(accumulator->items[i].by_element);
    }
    ls_card_memory.free(accumulator->all);
    ls_card_memory.free(accumulator->measure);
    ls_free(accumulator->items);
    ls_free(accumulator);
}

/* Arrays for so many rows, in place of those that there are. */
static int set_rows(struct sum *sum, size_t rows, int32_t *by_element, struct ls_error *error)
{
    int32_t *arrays = ls_card_memory.create((3 * rows + 1) * sizeof *arrays);
    if (arrays == NULL) {
        ls_card_memory.free(by_element);
        return ls_fail_memory(error, "gradient sums");
    }
    ls_card_memory.free(sum->rows);
    ls_card_memory.free(sum->by_element);
    sum->rows = arrays;
    sum->by_element = by_element;
    sum->card.rows = rows;
    sum->card.row = by_element;
    sum->card.exponent = arrays;
    sum->card.total_exponent = arrays + rows;
    sum->card.largest = (uint32_t *)(void *)(arrays + 2 * rows);
    sum->card.first_not_finite = arrays + 3 * rows;
    return 0;
}

static int accumulator_create(const size_t *elements, const size_t *place, size_t count,
                              int workers, struct ls_accumulator **out, struct ls_error *error)
{
    (void)workers;
    *out = NULL;
    struct card_accumulator *accumulator = ls_alloc(1, sizeof *accumulator);
    if (accumulator == NULL)
        return ls_fail_memory(error, "gradient sums");
    for (size_t i = 0, at = 0; i < count; at += elements[i++]) {
        const size_t end = (place != NULL ? place[i] : at) + elements[i];
        accumulator->elements = end > accumulator->elements ? end : accumulator->elements;
    }
    /* Up to a cache line of weights: what lies behind the last one goes to other ranks, too. */
    accumulator->elements = (accumulator->elements + 15) / 16 * 16;
    accumulator->items = ls_alloc(count + 1, sizeof *accumulator->items);
    accumulator->all = ls_card_memory.create(accumulator->elements * sizeof *accumulator->all);
    accumulator->measure = ls_card_memory.create(sizeof *accumulator->measure);
    int status =
        accumulator->items != NULL && accumulator->all != NULL && accumulator->measure != NULL
            ? 0
            : ls_fail_memory(error, "gradient sums");
    for (size_t i = 0, at = 0; status == 0 && i < count; at += elements[i++]) {
        struct sum *sum = &accumulator->items[i];
        accumulator->count++;
        sum->card.elements = elements[i];
        sum->card.measure = accumulator->measure;
        sum->card.total = accumulator->all + (place != NULL ? place[i] : at);
        status = set_rows(sum, 1, NULL, error);
    }
    if (status != 0)
        accumulator_free((struct ls_accumulator *)(void *)accumulator);
    else
        *out = (struct ls_accumulator *)(void *)accumulator;
    return status;
}

static int accumulator_cut(struct ls_accumulator *public, int parameter, size_t rows,
                           const float *row, struct ls_error *error)
{
    struct card_accumulator *accumulator = (void *)public;
    struct sum *sum = &accumulator->items[parameter];
    if (row == NULL)
        return set_rows(sum, sum->card.elements, NULL, error);
    cudaStream_t stream = ls_card_own_stream(error);
    if (stream == NULL)
        return LOCKSTEP_RESOURCE;
    int32_t *by_element = ls_card_memory.create(sum->card.elements * sizeof *by_element);
    if (by_element == NULL)
        return ls_fail_memory(error, "gradient sums");
    int status = ls_card_finish(ls_cuda_number_rows(stream, row, by_element, sum->card.elements),
                                "number rows", error);
    if (status != 0) {
        ls_card_memory.free(by_element);
        return status;
    }
    return set_rows(sum, rows, by_element, error);
}

static void accumulator_part(const struct ls_accumulator *public, int parameter,
                             struct ls_accumulated *part)
{
    const struct card_accumulator *accumulator = (const void *)public;
    const struct sum *sum = &accumulator->items[parameter];
    *part = (struct ls_accumulated){.rows = sum->card.rows,
                                    .exponent = sum->rows,
                                    .largest = sum->card.largest,
                                    .first_not_finite = sum->card.first_not_finite};
}

static int begin_parameter(cudaStream_t stream, const struct sum *sum)
{
    const size_t rows = sum->card.rows;
    int code = cudaMemcpyAsync(sum->rows + rows, sum->rows, rows * sizeof *sum->rows,
                               cudaMemcpyDeviceToDevice, stream);
    if (code == cudaSuccess)
        code = cudaMemsetAsync(sum->card.largest, 0, rows * sizeof *sum->card.largest, stream);
    if (code == cudaSuccess)
        code = ls_cuda_fill_words(stream, (uint32_t *)(void *)sum->card.first_not_finite,
                                  (uint32_t)INT32_MAX, 1);
    return code;
}

static int accumulator_begin(struct ls_accumulator *public, bool measure, struct ls_error *error)
{
    struct card_accumulator *accumulator = (void *)public;
    cudaStream_t stream = ls_card_own_stream(error);
    if (stream == NULL)
        return LOCKSTEP_RESOURCE;
    int code =
        ls_cuda_fill_words(stream, (uint32_t *)(void *)accumulator->measure, measure ? 1 : 0, 1);
    if (code == cudaSuccess && accumulator->elements > 0)
        code =
            cudaMemsetAsync(accumulator->all, 0, accumulator->elements * sizeof(int64_t), stream);
    for (size_t i = 0; code == cudaSuccess && i < accumulator->count; i++)
        code = begin_parameter(stream, &accumulator->items[i]);
    return ls_card_finish(code, "clear gradient sums", error);
}

static int64_t *accumulator_all(const struct ls_accumulator *public)
{
    const struct card_accumulator *accumulator = (const void *)public;
    return accumulator->all;
}

/* Nothing is left to clear. */
static int accumulator_clear_rest(struct ls_accumulator *public, int parameter,
                                  struct ls_error *error)
{
    (void)public;
    (void)parameter;
    (void)error;
    return 0;
}

static int accumulator_read(const struct ls_accumulator *public, int parameter, size_t begin,
                            size_t count, float *out, struct ls_error *error)
{
    const struct card_accumulator *accumulator = (const void *)public;
    cudaStream_t stream = ls_card_own_stream(error);
    if (stream == NULL)
        return LOCKSTEP_RESOURCE;
    return ls_card_finish(
        ls_cuda_read_sums(stream, &accumulator->items[parameter].card, begin, count, out),
        "read gradient sums", error);
}

static int accumulator_squares_there(struct ls_stream *stream, const struct ls_accumulator *public,
                                     int parameter, size_t begin, size_t count,
                                     const uint32_t *mask, double *chunk, struct ls_error *error)
{
    const struct card_accumulator *accumulator = (const void *)public;
    cudaStream_t in = ls_card_stream(stream, error);
    if (in == NULL)
        return LOCKSTEP_RESOURCE;
    return ls_card_check(
        ls_cuda_square_sums(in, &accumulator->items[parameter].card, begin, count, mask, chunk),
        "compute norms", error);
}

static int accumulator_squares(const struct ls_accumulator *public, int parameter, size_t begin,
                               size_t count, double *chunk, struct ls_error *error)
{
    const size_t chunks = (count + LS_EXACT_CHUNK - 1) / LS_EXACT_CHUNK;
    if (count == 0)
        return 0;
    double *sums = ls_card_memory.create(chunks * sizeof *sums);
    int status = sums != NULL ? 0 : ls_fail_memory(error, "norms of gradients");
    if (status == 0)
        status =
            accumulator_squares_there(NULL, public, parameter, begin, count, NULL, sums, error);
    if (status == 0) /* in the same stream */
        status = ls_card_memory.read(NULL, chunk, sums, chunks * sizeof *sums, error);
    ls_card_memory.free(sums);
    return status;
}

const struct ls_device_accumulator ls_card_accumulator = {
    .create = accumulator_create,
    .free = accumulator_free,
    .cut = accumulator_cut,
    .part = accumulator_part,
    .begin = accumulator_begin,
    .all = accumulator_all,
    .clear_rest = accumulator_clear_rest,
    .read = accumulator_read,
    .squares = accumulator_squares,
    .squares_there = accumulator_squares_there,
};

int ls_card_update_from_sums(struct ls_stream *stream, const struct ls_sum_update *update,
                             struct ls_error *error)
{
    const struct card_accumulator *accumulator = (const void *)update->sums;
    cudaStream_t in = ls_card_stream(stream, error);
    if (in == NULL)
        return LOCKSTEP_RESOURCE;
    return ls_card_check(
        ls_cuda_update_from_sums(in, update, &accumulator->items[update->parameter].card),
        "update weights", error);
}

/* ---- Contributions --------------------------------------------------------------------------- */

int ls_card_accumulate(cudaStream_t stream, struct ls_accumulator *public,
                       const int64_t *micro_batch, int parameter, const float *gradient)
{
    const struct card_accumulator *accumulator = (void *)public;
    return ls_cuda_accumulate(stream, &accumulator->items[parameter].card, micro_batch, gradient);
}

int ls_card_accumulate_rows(cudaStream_t stream, struct ls_accumulator *public,
                            const int64_t *micro_batch, int parameter,
                            const struct ls_accumulated_rows *rows)
{
    const struct card_accumulator *accumulator = (void *)public;
    return ls_cuda_accumulate_rows(stream, &accumulator->items[parameter].card, micro_batch,
                                   rows->rows, rows->number, rows->count, rows->columns);
}
