/* Maxima and averages over bins of regions. See regions.h. Where bins are is found first, once for
 * all planes; a gradient goes by places of x, each of which adds up what regions give it in their
 * order.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <float.h>
#include <math.h>

#include "device/region_bins.h"
#include "ops/cuda/kernels/cuda_c.h"
#include "ops/cuda/kernels/regions.h"

/* Rows and then columns of a region's bins: a range each. */
struct range {
    int32_t begin, end;
};

/* In scratch: of each region its picture (-1: none), and its ranges. */
struct layout {
    int32_t *picture;
    struct range *range;
};

static struct layout layout_of(const struct ls_cuda_regions *of, void *scratch)
{
    struct layout layout;
    layout.range = (struct range *)scratch;
    layout.picture = (int32_t *)(layout.range + of->regions * (of->bins[0] + of->bins[1]));
    return layout;
}

size_t ls_cuda_regions_scratch(const struct ls_cuda_regions *of)
{
    const size_t ranges = (size_t)(of->bins[0] + of->bins[1]);
    return (size_t)of->regions * (ranges * sizeof(struct range) + sizeof(int32_t));
}

/* The picture of a region; -1: none, or an edge is no finite number. */
__device__ static int32_t picture_of(const struct ls_cuda_regions *of, const float *region)
{
    bool good = region[0] > -1 && region[0] < (float)of->pictures;
    for (int k = 1; k < LS_REGION_NUMBERS; k++)
        good = good && fabsf(region[k]) <= FLT_MAX;
    return good && (int64_t)region[0] < of->pictures ? (int32_t)region[0] : -1;
}

__global__ void find_bins(struct ls_cuda_regions of, const float *region, struct layout layout)
{
    const int64_t each = of.bins[0] + of.bins[1];
    for (LS_EACH(i, of.regions * each)) {
        const int64_t r = (int64_t)i / each, bin = (int64_t)i % each;
        const float *numbers = region + r * LS_REGION_NUMBERS;
        const int axis = bin < of.bins[0] ? 0 : 1;
        const struct ls_region_cut cut = {of.average, axis, of.bins[axis], of.plane[axis],
                                          of.scale};
        const int32_t picture = picture_of(&of, numbers);
        int64_t begin = 0, end = 0;
        if (picture >= 0)
            ls_region_range(&cut, numbers, axis == 0 ? bin : bin - of.bins[0], &begin, &end);
        layout.range[i].begin = (int32_t)begin;
        layout.range[i].end = (int32_t)end;
        if (bin == 0)
            layout.picture[r] = picture;
    }
}

static int give_bins(cudaStream_t stream, const struct ls_cuda_regions *of, const float *region,
                     struct layout layout)
{
    const struct ls_cuda_regions by = *of;
    return LS_LAUNCH(find_bins, ls_blocks((uint64_t)(by.regions * (by.bins[0] + by.bins[1]))),
                     LS_THREADS, stream, by, region, layout);
}

/* ---- Forward --------------------------------------------------------------------------------- */

/* Rows and columns of bin (i, j) of region r. */
__device__ static struct ls_bin bin_at(const struct ls_cuda_regions *of, struct layout layout,
                                       int64_t r, int64_t i, int64_t j)
{
    const struct range *range = layout.range + r * (of->bins[0] + of->bins[1]);
    const struct range rows = range[i], columns = range[of->bins[0] + j];
    const struct ls_bin bin = {{rows.begin, columns.begin}, {rows.end, columns.end}};
    return bin;
}

/* The first of the largest; a NaN is none. */
__device__ static float find_maximum(const float *plane, int64_t width, const struct ls_bin *bin,
                                     int32_t *winner)
{
    float largest = ls_bin_is_empty(bin) ? 0 : -FLT_MAX;
    *winner = -1;
    for (int64_t h = bin->begin[0]; h < bin->end[0]; h++)
        for (int64_t w = bin->begin[1]; w < bin->end[1]; w++)
            if (plane[h * width + w] > largest) {
                largest = plane[h * width + w];
                *winner = (int32_t)(h * width + w);
            }
    return largest;
}

__device__ static float find_average(const float *plane, int64_t width, const struct ls_bin *bin)
{
    double sum = 0;
    for (int64_t h = bin->begin[0]; h < bin->end[0]; h++)
        for (int64_t w = bin->begin[1]; w < bin->end[1]; w++)
            sum += (double)plane[h * width + w];
    return ls_bin_is_empty(bin) ? 0 : (float)(sum / (double)ls_bin_size(bin));
}

__global__ void pool_regions(struct ls_cuda_regions of, const float *x, struct layout layout,
                             float *y, int32_t *index)
{
    const int64_t bins = of.bins[0] * of.bins[1], size = of.plane[0] * of.plane[1];
    for (LS_EACH(at, of.regions * of.channels * bins)) {
        const int64_t b = (int64_t)at % bins, c = (int64_t)at / bins % of.channels;
        const int64_t r = (int64_t)at / bins / of.channels;
        const int64_t plane = of.average ? c * bins + b : c, picture = layout.picture[r];
        const struct ls_bin bin = bin_at(&of, layout, r, b / of.bins[1], b % of.bins[1]);
        const float *from = x + (picture * of.planes + plane) * size;
        int32_t winner = -1;
        if (picture < 0)
            y[at] = NAN;
        else
            y[at] = of.average ? find_average(from, of.plane[1], &bin)
                               : find_maximum(from, of.plane[1], &bin, &winner);
        if (index != NULL)
            index[at] = winner;
    }
}

int ls_cuda_pool_regions(cudaStream_t stream, const struct ls_cuda_regions *of, const float *x,
                         const float *region, void *scratch, float *y, int32_t *index)
{
    const struct ls_cuda_regions by = *of;
    const struct layout layout = layout_of(of, scratch);
    const int64_t n = by.regions * by.channels * by.bins[0] * by.bins[1];
    const int code = give_bins(stream, of, region, layout);
    return code != 0 ? code
                     : LS_LAUNCH(pool_regions, ls_blocks((uint64_t)n), LS_THREADS, stream, by, x,
                                 layout, y, index);
}

/* ---- Backward -------------------------------------------------------------------------------- */

/* A place of a plane of x, and what it adds up. */
struct place {
    int64_t plane, row, column, at;
    double sum;
};

/* What the bins of region r give whose maximum is here. */
__device__ static void add_maxima(const struct ls_cuda_regions *of, struct layout layout, int64_t r,
                                  const float *dy, const int32_t *index, struct place *place)
{
    const struct range *range = layout.range + r * (of->bins[0] + of->bins[1]);
    const struct range *columns = range + of->bins[0];
    const int64_t first = (r * of->channels + place->plane) * of->bins[0] * of->bins[1];
    if (place->row < range[0].begin || place->row >= range[of->bins[0] - 1].end ||
        place->column < columns[0].begin || place->column >= columns[of->bins[1] - 1].end)
        return;
    for (int64_t i = 0; i < of->bins[0]; i++) {
        if (place->row < range[i].begin || place->row >= range[i].end)
            continue;
        for (int64_t j = 0; j < of->bins[1]; j++)
            if (index[first + i * of->bins[1] + j] == place->at)
                place->sum += (double)dy[first + i * of->bins[1] + j];
    }
}

/* What the one bin of region r gives that looks at the plane. */
__device__ static void add_average(const struct ls_cuda_regions *of, struct layout layout,
                                   int64_t r, const float *dy, struct place *place)
{
    const int64_t bins = of->bins[0] * of->bins[1];
    const int64_t b = place->plane % bins, c = place->plane / bins;
    const struct ls_bin bin = bin_at(of, layout, r, b / of->bins[1], b % of->bins[1]);
    if (place->row >= bin.begin[0] && place->row < bin.end[0] && place->column >= bin.begin[1] &&
        place->column < bin.end[1])
        place->sum += (double)dy[(r * of->channels + c) * bins + b] / (double)ls_bin_size(&bin);
}

__global__ void pool_regions_backward(struct ls_cuda_regions of, const float *dy,
                                      const int32_t *index, struct layout layout, float *dx)
{
    const int64_t size = of.plane[0] * of.plane[1];
    for (LS_EACH(n, of.pictures * of.planes * size)) {
        const int64_t at = (int64_t)n % size, picture = (int64_t)n / size / of.planes;
        struct place place = {(int64_t)n / size % of.planes, at / of.plane[1], at % of.plane[1], at,
                              0};
        for (int64_t r = 0; r < of.regions; r++) {
            if (layout.picture[r] != picture)
                continue;
            if (of.average)
                add_average(&of, layout, r, dy, &place);
            else
                add_maxima(&of, layout, r, dy, index, &place);
        }
        dx[n] = (float)place.sum;
    }
}

int ls_cuda_pool_regions_backward(cudaStream_t stream, const struct ls_cuda_regions *of,
                                  const float *dy, const int32_t *index, const float *region,
                                  void *scratch, float *dx)
{
    const struct ls_cuda_regions by = *of;
    const struct layout layout = layout_of(of, scratch);
    const int64_t n = by.pictures * by.planes * by.plane[0] * by.plane[1];
    const int code = give_bins(stream, of, region, layout);
    return code != 0 ? code
                     : LS_LAUNCH(pool_regions_backward, ls_blocks((uint64_t)n), LS_THREADS, stream,
                                 by, dy, index, layout, dx);
}
