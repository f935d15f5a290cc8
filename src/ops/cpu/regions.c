/* Rows that are picked by number; maxima and averages over bins of regions; and their gradients.
 *
 * Sums run over regions (or picks) in their order, in double, one plane (or row) at a time, so that
 * they are the same on every instruction set and device. A gradient is made plane by plane: each
 * goes through all regions of its picture.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "device/regions.h"

#include <float.h>
#include <string.h>

#include "ops/cpu/kernels.h"

/* ---- Rows ------------------------------------------------------------------------------------ */

static int pick_run(const struct ls_prepared *prepared, void *local, void *const *in,
                    void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)scratch;
    const struct ls_op *op = prepared->op;
    const int64_t rows = op->output[0]->shape.dim[0];
    const size_t run = (size_t)(ls_shape_size(&op->output[0]->shape) / rows);
    const float *x = in[0], *index = in[1];
    float *y = out[0];
    LS_TRY(ls_check_numbers(op, in, context->error));
    for (int64_t n = 0; n < rows; n++)
        memcpy(y + (size_t)n * run, x + (size_t)index[n] * run, run * sizeof *y);
    return 0;
}

static int pick_backward_prepare(struct ls_prepared *prepared, struct ls_error *error)
{
    const struct ls_shape *shape = &prepared->op->output[0]->shape;
    prepared->scratch_bytes = (size_t)(ls_shape_size(shape) / shape->dim[0]) * sizeof(double);
    return ls_own_prepare(prepared, error);
}

static int pick_backward_run(const struct ls_prepared *prepared, void *local, void *const *in,
                             void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local;
    const struct ls_op *op = prepared->op;
    const int64_t rows = op->output[0]->shape.dim[0], picks = op->input[0]->shape.dim[0];
    const int64_t run = ls_shape_size(&op->output[0]->shape) / rows;
    const float *dy = in[0], *index = in[1];
    float *dx = out[0];
    double *sum = scratch;
    LS_TRY(ls_check_numbers(op, in, context->error));
    for (int64_t m = 0; m < rows; m++, dx += run) {
        memset(sum, 0, (size_t)run * sizeof *sum);
        for (int64_t n = 0; n < picks; n++)
            for (int64_t i = 0; i < run && (int64_t)index[n] == m; i++)
                sum[i] += (double)dy[n * run + i];
        for (int64_t i = 0; i < run; i++)
            dx[i] = (float)sum[i];
    }
    return 0;
}

/* ---- Regions --------------------------------------------------------------------------------- */

/* The plane of a picture that bin (i, j) of channel c looks at. */
static int64_t plane_of(const struct ls_op *op, int64_t c, int64_t i, int64_t j)
{
    const struct ls_regions_attr *attr = &op->attr.regions;
    if (op->kind == LS_OP_REGION_MAX || op->kind == LS_OP_REGION_MAX_BACKWARD)
        return c;
    return (c * attr->bins[0] + i) * attr->bins[1] + j;
}

/* The first of the largest; a NaN is none. */
static void find_maximum(const float *plane, int64_t width, const struct ls_bin *bin, float *y,
                         int32_t *index)
{
    int64_t winner = -1;
    float largest = ls_bin_is_empty(bin) ? 0 : -FLT_MAX;
    for (int64_t h = bin->begin[0]; h < bin->end[0]; h++)
        for (int64_t w = bin->begin[1]; w < bin->end[1]; w++)
            if (plane[h * width + w] > largest) {
                largest = plane[h * width + w];
                winner = h * width + w;
            }
    *y = largest;
    if (index != NULL)
        *index = (int32_t)winner;
}

static float find_average(const float *plane, int64_t width, const struct ls_bin *bin)
{
    double sum = 0;
    if (ls_bin_is_empty(bin))
        return 0;
    for (int64_t h = bin->begin[0]; h < bin->end[0]; h++)
        for (int64_t w = bin->begin[1]; w < bin->end[1]; w++)
            sum += (double)plane[h * width + w];
    return (float)(sum / (double)ls_bin_size(bin));
}

/* y of one region. */
static void pool_region(const struct ls_op *op, const float *x, const float *region, float *y,
                        int32_t *index)
{
    const struct ls_regions_attr *attr = &op->attr.regions;
    const int64_t *from = op->input[0]->shape.dim, *to = op->output[0]->shape.dim;
    const int64_t size = from[2] * from[3];
    const bool maximum = op->kind == LS_OP_REGION_MAX;
    const float *picture = x + (int64_t)region[0] * from[1] * size;
    for (int64_t i = 0; i < to[2]; i++)
        for (int64_t j = 0; j < to[3]; j++) {
            const struct ls_bin bin = (maximum ? ls_region_bin : ls_region_fine_bin)(
                attr, region, i, j, from[2], from[3]);
            for (int64_t c = 0; c < to[1]; c++) {
                const int64_t at = (c * to[2] + i) * to[3] + j;
                const float *plane = picture + plane_of(op, c, i, j) * size;
                if (maximum)
                    find_maximum(plane, from[3], &bin, &y[at], index != NULL ? &index[at] : NULL);
                else
                    y[at] = find_average(plane, from[3], &bin);
            }
        }
}

static int region_run(const struct ls_prepared *prepared, void *local, void *const *in,
                      void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)scratch;
    const struct ls_op *op = prepared->op;
    const struct ls_shape *y = &op->output[0]->shape;
    const int64_t size = ls_shape_count(y, 1, y->rank);
    int32_t *index = op->outputs > 1 ? out[1] : NULL;
    LS_TRY(ls_check_numbers(op, in, context->error));
    for (int64_t r = 0; r < y->dim[0]; r++)
        pool_region(op, in[0], (const float *)in[1] + r * LS_REGION_NUMBERS,
                    (float *)out[0] + r * size, index != NULL ? index + r * size : NULL);
    return 0;
}

static int region_backward_prepare(struct ls_prepared *prepared, struct ls_error *error)
{
    const int64_t *x = prepared->op->output[0]->shape.dim;
    prepared->scratch_bytes = (size_t)(x[2] * x[3]) * sizeof(double);
    return ls_own_prepare(prepared, error);
}

/* Adds to a plane what region r hands back to it: from all bins of channel `plane`. */
static void add_maxima(const struct ls_op *op, const float *dy, const int32_t *index, int64_t r,
                       int64_t plane, double *sum)
{
    const int64_t *y = op->input[0]->shape.dim, bins = y[2] * y[3];
    const int64_t first = (r * y[1] + plane) * bins;
    for (int64_t b = 0; b < bins; b++)
        if (index[first + b] >= 0)
            sum[index[first + b]] += (double)dy[first + b];
}

/* The same from the one bin that looks at the plane. */
static void add_averages(const struct ls_op *op, const float *dy, const float *region, int64_t r,
                         int64_t plane, double *sum)
{
    const int64_t *x = op->output[0]->shape.dim, *y = op->input[0]->shape.dim;
    const int64_t i = plane / y[3] % y[2], j = plane % y[3], c = plane / (y[2] * y[3]);
    const struct ls_bin bin = ls_region_fine_bin(&op->attr.regions, region, i, j, x[2], x[3]);
    const double share =
        (double)dy[((r * y[1] + c) * y[2] + i) * y[3] + j] / (double)ls_bin_size(&bin);
    for (int64_t h = bin.begin[0]; h < bin.end[0]; h++)
        for (int64_t w = bin.begin[1]; w < bin.end[1]; w++)
            sum[h * x[3] + w] += share;
}

static int region_backward_run(const struct ls_prepared *prepared, void *local, void *const *in,
                               void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local;
    const struct ls_op *op = prepared->op;
    const bool maximum = op->kind == LS_OP_REGION_MAX_BACKWARD;
    const int64_t *x = op->output[0]->shape.dim;
    const int64_t regions = op->input[0]->shape.dim[0], size = x[2] * x[3];
    const float *region = in[maximum ? 2 : 1];
    double *sum = scratch;
    float *dx = out[0];
    LS_TRY(ls_check_numbers(op, in, context->error));
    for (int64_t plane = 0; plane < x[0] * x[1]; plane++, dx += size) {
        memset(sum, 0, (size_t)size * sizeof *sum);
        for (int64_t r = 0; r < regions; r++) {
            const float *numbers = region + r * LS_REGION_NUMBERS;
            if ((int64_t)numbers[0] != plane / x[1])
                continue;
            if (maximum)
                add_maxima(op, in[0], in[1], r, plane % x[1], sum);
            else
                add_averages(op, in[0], numbers, r, plane % x[1], sum);
        }
        for (int64_t i = 0; i < size; i++)
            dx[i] = (float)sum[i];
    }
    return 0;
}

#define REGION_KERNEL(symbol, kind_, bits_, name_, prepare_, run_)                                 \
    const struct ls_kernel symbol = {                                                              \
        .kind = kind_,                                                                             \
        .bits = bits_,                                                                             \
        .name = name_,                                                                             \
        .prepare = prepare_,                                                                       \
        .run = run_,                                                                               \
        .in_place = -1,                                                                            \
    }

REGION_KERNEL(ls_kernel_pick, LS_OP_PICK, LS_BITS_EXACT, "pick", ls_own_prepare, pick_run);
REGION_KERNEL(ls_kernel_pick_backward, LS_OP_PICK_BACKWARD, LS_BITS_DEFINED, "pick backward",
              pick_backward_prepare, pick_backward_run);
REGION_KERNEL(ls_kernel_region_max, LS_OP_REGION_MAX, LS_BITS_DEFINED, "region maximum",
              ls_own_prepare, region_run);
REGION_KERNEL(ls_kernel_region_max_backward, LS_OP_REGION_MAX_BACKWARD, LS_BITS_DEFINED,
              "region maximum backward", region_backward_prepare, region_backward_run);
REGION_KERNEL(ls_kernel_region_average, LS_OP_REGION_AVERAGE, LS_BITS_DEFINED, "region average",
              ls_own_prepare, region_run);
REGION_KERNEL(ls_kernel_region_average_backward, LS_OP_REGION_AVERAGE_BACKWARD, LS_BITS_DEFINED,
              "region average backward", region_backward_prepare, region_backward_run);
