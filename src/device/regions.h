/* Regions of pictures and rows by number: what all devices share, to the bit.
 *
 * A region is five floats: the number of its picture (what is behind the point is cut off), then
 * left, top, right and bottom in coordinates that `scale` turns into positions of the picture. It
 * is cut into bins, which may overlap, and which the picture's edges clip. All arithmetic is that
 * of the forks that these layers come from, in fp32.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_REGIONS_H
#define LS_DEVICE_REGIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "ir/op.h"

enum { LS_REGION_NUMBERS = 5 };

/* Rows and columns [begin, end) of a plane; empty where end <= begin. */
struct ls_bin {
    int64_t begin[2], end[2];
};

static inline bool ls_bin_is_empty(const struct ls_bin *bin)
{
    return bin->end[0] <= bin->begin[0] || bin->end[1] <= bin->begin[1];
}

static inline int64_t ls_bin_size(const struct ls_bin *bin)
{
    return (bin->end[0] - bin->begin[0]) * (bin->end[1] - bin->begin[1]);
}

/* Bin (i, j) of a region on a plane of `height` x `width`. ROIPooling: the region's edges are
 * rounded to whole positions, both belong to it, and it has one position at least. */
struct ls_bin ls_region_bin(const struct ls_regions_attr *attr, const float *region, int64_t i,
                            int64_t j, int64_t height, int64_t width);
/* The same for PSROIPooling: edges are rounded before they are scaled, and a region may begin
 * between positions. */
struct ls_bin ls_region_fine_bin(const struct ls_regions_attr *attr, const float *region, int64_t i,
                                 int64_t j, int64_t height, int64_t width);

/* Checks what an op of regions, PICK, GATHER or one of bags is told by its inputs, before it runs:
 * each number names one of the pictures, rows or places that there are, edges are finite, and a bag
 * is no longer than its indices are many. The message names the layer.
 * Other ops have nothing to check. */
int ls_check_numbers(const struct ls_op *op, void *const *in, struct ls_error *error);

#endif
