/* Bins of regions of pictures, for host code and kernels.
 *
 * A region is five floats: the number of its picture (what is behind the point is cut off), then
 * left, top, right and bottom in coordinates that `scale` turns into positions of the picture. It
 * is cut into bins, which may overlap, and which the picture's edges clip. All arithmetic is that
 * of the forks that these layers come from, in fp32.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_REGION_BINS_H
#define LS_DEVICE_REGION_BINS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/host_device.h"

enum { LS_REGION_NUMBERS = 5 };

/* Rows and columns [begin, end) of a plane; empty where end <= begin. */
struct ls_bin {
    int64_t begin[2], end[2];
};

LS_HOST_DEVICE bool ls_bin_is_empty(const struct ls_bin *bin)
{
    return bin->end[0] <= bin->begin[0] || bin->end[1] <= bin->begin[1];
}

LS_HOST_DEVICE int64_t ls_bin_size(const struct ls_bin *bin)
{
    return (bin->end[0] - bin->begin[0]) * (bin->end[1] - bin->begin[1]);
}

/* As an integer, and not further outside of any plane than 2^30. */
LS_HOST_DEVICE int64_t ls_region_whole(float number)
{
    return (int64_t)fminf(fmaxf(number, -0x1p30F), 0x1p30F);
}

LS_HOST_DEVICE int64_t ls_region_clip(int64_t position, int64_t extent)
{
    return position < 0 ? 0 : position > extent ? extent : position;
}

/* How a region is cut along axis 0 (rows) or 1 (columns). */
struct ls_region_cut {
    bool fine; /* as PSROIPooling does it, else as ROIPooling */
    int axis;
    int64_t bins, extent; /* extent: of the plane */
    float scale;
};

/* Bin i along the axis. ROIPooling: the region's edges are rounded to whole positions, both belong
 * to it, and it has one position at least. PSROIPooling: edges are rounded before they are scaled,
 * and a region may begin between positions. */
LS_HOST_DEVICE void ls_region_range(const struct ls_region_cut *cut, const float *region, int64_t i,
                                    int64_t *begin, int64_t *end)
{
    const float low_edge = region[2 - cut->axis], high_edge = region[4 - cut->axis];
    if (cut->fine) {
        const float first = roundf(low_edge) * cut->scale;
        const float last = (roundf(high_edge) + 1) * cut->scale;
        const float size = fmaxf(last - first, 0.1F) / (float)cut->bins;
        const float low = (float)i * size, high = (float)(i + 1) * size;
        *begin = ls_region_clip(ls_region_whole(floorf(low + first)), cut->extent);
        *end = ls_region_clip(ls_region_whole(ceilf(high + first)), cut->extent);
        return;
    }
    const int64_t first = ls_region_whole(roundf(low_edge * cut->scale));
    const int64_t last = ls_region_whole(roundf(high_edge * cut->scale));
    const int64_t length = last - first + 1 > 1 ? last - first + 1 : 1;
    const float size = (float)length / (float)cut->bins;
    *begin = ls_region_clip(first + ls_region_whole(floorf((float)i * size)), cut->extent);
    *end = ls_region_clip(first + ls_region_whole(ceilf((float)(i + 1) * size)), cut->extent);
}

#endif
