/* Sums and accumulators of the remote device: the CPU's, in its memory. See remote_device.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/device.h"
#include "trainings/remote_device.h"
#include "trainings/remote_parts.h"

static int sums_largest(const float *x, size_t n, uint32_t *bits, struct ls_error *error)
{
    REMOTE_MAY_FAIL(REMOTE_LARGEST, error);
    return ls_device_cpu.sums->largest(remote_near(x), n, bits, error);
}

static int sums_squares(const float *x, size_t n, double *sum, struct ls_error *error)
{
    REMOTE_MAY_FAIL(REMOTE_SUM_SQUARES, error);
    return ls_device_cpu.sums->squares(remote_near(x), n, sum, error);
}

static int sums_magnitudes(const float *x, size_t n, double *sum, struct ls_error *error)
{
    REMOTE_MAY_FAIL(REMOTE_SUM_MAGNITUDES, error);
    return ls_device_cpu.sums->magnitudes(remote_near(x), n, sum, error);
}

const struct ls_device_sums remote_sums = {
    .largest = sums_largest,
    .squares = sums_squares,
    .magnitudes = sums_magnitudes,
};

static int accumulator_create(const size_t *elements, const size_t *place, size_t count,
                              int workers, struct ls_accumulator **accumulator,
                              struct ls_error *error)
{
    *accumulator = NULL;
    REMOTE_MAY_FAIL(REMOTE_ACCUMULATOR, error);
    return ls_device_cpu.accumulator->create(elements, place, count, workers, accumulator, error);
}

static void accumulator_free(struct ls_accumulator *accumulator)
{
    ls_device_cpu.accumulator->free(accumulator);
}

static int accumulator_cut(struct ls_accumulator *accumulator, int parameter, size_t rows,
                           const float *row, struct ls_error *error)
{
    REMOTE_MAY_FAIL(REMOTE_CUT, error);
    return ls_device_cpu.accumulator->cut(accumulator, parameter, rows, remote_near(row), error);
}

static void accumulator_part(const struct ls_accumulator *accumulator, int parameter,
                             struct ls_accumulated *part)
{
    ls_device_cpu.accumulator->part(accumulator, parameter, part);
    part->exponent = remote_far(part->exponent);
    part->largest = remote_far(part->largest);
    part->first_not_finite = remote_far(part->first_not_finite);
}

static int accumulator_begin(struct ls_accumulator *accumulator, bool measure,
                             struct ls_error *error)
{
    REMOTE_MAY_FAIL(REMOTE_BEGIN, error);
    return ls_device_cpu.accumulator->begin(accumulator, measure, error);
}

static int64_t *accumulator_all(const struct ls_accumulator *accumulator)
{
    return remote_far(ls_device_cpu.accumulator->all(accumulator));
}

static int accumulator_clear_rest(struct ls_accumulator *accumulator, int parameter,
                                  struct ls_error *error)
{
    REMOTE_MAY_FAIL(REMOTE_CLEAR_REST, error);
    return ls_device_cpu.accumulator->clear_rest(accumulator, parameter, error);
}

static int accumulator_read(const struct ls_accumulator *accumulator, int parameter, size_t begin,
                            size_t count, float *out, struct ls_error *error)
{
    REMOTE_MAY_FAIL(REMOTE_READ_SUM, error);
    return ls_device_cpu.accumulator->read(accumulator, parameter, begin, count, remote_near(out),
                                           error);
}

static int accumulator_squares(const struct ls_accumulator *accumulator, int parameter,
                               size_t begin, size_t count, double *chunk, struct ls_error *error)
{
    REMOTE_MAY_FAIL(REMOTE_SQUARES, error);
    return ls_device_cpu.accumulator->squares(accumulator, parameter, begin, count, chunk, error);
}

const struct ls_device_accumulator remote_accumulator = {
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
