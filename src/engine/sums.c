/* Exact sums between the device and the other ranks. See engine/sums.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/sums.h"

#include <string.h>

#include "base/memory.h"
#include "base/mutant.h"
#include "engine/sums_inner.h"

/* ---- Creation -------------------------------------------------------------------------------- */

static void sums_free_rows(const struct ls_sums *sums, struct ls_sum *sum)
{
    if (!sums->device->memory->host_memory) {
        ls_free(sum->exponent);
        ls_free(sum->raised);
    }
    ls_free(sum->state);
    sum->exponent = sum->state = NULL;
    sum->raised = NULL;
}

/* The rows that the device keeps of a parameter, nothing of which is known yet. */
static int sums_set_rows(struct ls_sums *sums, int parameter, struct ls_error *error)
{
    struct ls_sum *sum = &sums->items[parameter];
    sums_free_rows(sums, sum);
    sums->device->accumulator->part(sums->accumulator, parameter, &sum->there);
    sum->rows = sum->there.rows;
    sum->exponent = sum->there.exponent;
    sum->raised = sum->there.largest;
    if (!sums->device->memory->host_memory) {
        sum->exponent = ls_alloc(sum->rows, sizeof *sum->exponent);
        sum->raised = ls_alloc(sum->rows, sizeof *sum->raised);
    }
    sum->state = ls_alloc(sum->rows, sizeof *sum->state);
    if (sum->exponent == NULL || sum->raised == NULL || sum->state == NULL)
        return ls_fail_memory(error, "gradient sums");
    ls_sum_forget(sum);
    return 0;
}

int ls_sums_create(const struct ls_device *device, const size_t *elements, const size_t *place,
                   size_t count, int workers, struct ls_sums **out, struct ls_error *error)
{
    *out = NULL;
    struct ls_sums *sums = ls_alloc(1, sizeof *sums);
    if (sums == NULL)
        return ls_fail_memory(error, "gradient sums");
    sums->device = device;
    sums->items = ls_alloc(count + 1, sizeof *sums->items);
    int status = sums->items == NULL ? ls_fail_memory(error, "gradient sums") : 0;
    if (status == 0)
        status = device->streams->create(&sums->stream, error);
    if (status == 0)
        status =
            device->accumulator->create(elements, place, count, workers, &sums->accumulator, error);
    for (size_t i = 0; status == 0 && i < count; i++) {
        sums->count++;
        sums->items[i].elements = elements[i];
        status = sums_set_rows(sums, (int)i, error);
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
    for (size_t i = 0; sums->items != NULL && i < sums->count; i++)
        sums_free_rows(sums, &sums->items[i]);
    sums->device->accumulator->free(sums->accumulator);
    if (sums->stream != NULL)
        sums->device->streams->free(sums->stream);
    ls_free(sums->items);
    ls_free(sums);
}

int ls_sums_cut_elements(struct ls_sums *sums, int parameter, struct ls_error *error)
{
    return ls_sums_cut_rows(sums, parameter, sums->items[parameter].elements, NULL, error);
}

int ls_sums_cut_rows(struct ls_sums *sums, int parameter, size_t rows, const float *row,
                     struct ls_error *error)
{
    sums_free_rows(sums, &sums->items[parameter]);
    LS_TRY(sums->device->accumulator->cut(sums->accumulator, parameter, rows, row, error));
    return sums_set_rows(sums, parameter, error);
}

size_t ls_sums_rows(const struct ls_sums *sums, int parameter)
{
    return sums->items[parameter].rows;
}

/* ---- An update ------------------------------------------------------------------------------- */

struct ls_accumulator *ls_sums_accumulator(const struct ls_sums *sums)
{
    return sums->accumulator;
}

int ls_sums_begin(struct ls_sums *sums, bool calibrate, struct ls_error *error)
{
    const struct ls_device_memory *memory = sums->device->memory;
    sums->calibrate = calibrate;
    for (size_t i = 0; i < sums->count; i++) {
        struct ls_sum *sum = &sums->items[i];
        sum->total_exponent = ls_sum_least_exponent(sum);
        if (!memory->host_memory)
            LS_TRY(memory->write(sums->stream, sum->there.exponent, sum->exponent,
                                 sum->rows * sizeof *sum->exponent, error));
    }
    LS_TRY(sums->device->streams->wait(sums->stream, error));
    return sums->device->accumulator->begin(sums->accumulator, calibrate, error);
}

int ls_sums_collect(struct ls_sums *sums, struct ls_error *error)
{
    const struct ls_device_memory *memory = sums->device->memory;
    for (size_t i = 0; i < sums->count; i++) {
        struct ls_sum *sum = &sums->items[i];
        LS_TRY(memory->read(sums->stream, &sum->first_not_finite, sum->there.first_not_finite,
                            sizeof sum->first_not_finite, error));
        if (!memory->host_memory)
            LS_TRY(memory->read(sums->stream, sum->raised, sum->there.largest,
                                sum->rows * sizeof *sum->raised, error));
    }
    return LS_MUTANT(HURRIES) ? 0 : sums->device->streams->wait(sums->stream, error);
}

/* ---- Several ranks --------------------------------------------------------------------------- */

int64_t *ls_sums_all(const struct ls_sums *sums)
{
    return sums->device->accumulator->all(sums->accumulator);
}

int ls_sums_clear_rest(struct ls_sums *sums, int parameter, struct ls_error *error)
{
    return sums->device->accumulator->clear_rest(sums->accumulator, parameter, error);
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
        const struct ls_sum *sum = &sums->items[i];
        bad[i] = sum->first_not_finite;
        for (size_t row = 0; row < sum->rows; row++)
            *power++ = (uint8_t)(sum->raised[row] >> 23);
    }
}

void ls_sums_hear(struct ls_sums *sums, const void *notes)
{
    const int32_t *bad = notes;
    const uint8_t *power = (const uint8_t *)(bad + sums->count);
    for (size_t i = 0; i < sums->count; i++) {
        struct ls_sum *sum = &sums->items[i];
        sum->first_not_finite = bad[i] < sum->first_not_finite ? bad[i] : sum->first_not_finite;
        for (size_t row = 0; row < sum->rows; row++, power++) {
            uint32_t bits = (uint32_t)*power << 23;
            sum->raised[row] = bits > sum->raised[row] ? bits : sum->raised[row];
        }
    }
}

/* ---- Totals ---------------------------------------------------------------------------------- */

int ls_sums_read(const struct ls_sums *sums, int parameter, size_t begin, size_t count, float *out,
                 struct ls_error *error)
{
    return sums->device->accumulator->read(sums->accumulator, parameter, begin, count, out, error);
}

int ls_sums_squares(const struct ls_sums *sums, int parameter, size_t begin, size_t count,
                    double *chunk, struct ls_error *error)
{
    return sums->device->accumulator->squares(sums->accumulator, parameter, begin, count, chunk,
                                              error);
}
