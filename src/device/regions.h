/* Regions of pictures and rows by number: what all devices in the host's memory share, to the bit.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_REGIONS_H
#define LS_DEVICE_REGIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "device/region_bins.h"
#include "ir/op.h"

/* Bin (i, j) of a region on a plane of `height` x `width`, as ROIPooling has it. */
struct ls_bin ls_region_bin(const struct ls_regions_attr *attr, const float *region, int64_t i,
                            int64_t j, int64_t height, int64_t width);
/* The same for PSROIPooling. */
struct ls_bin ls_region_fine_bin(const struct ls_regions_attr *attr, const float *region, int64_t i,
                                 int64_t j, int64_t height, int64_t width);

/* Checks what an op of regions, PICK, GATHER or one of bags is told by its inputs, before it runs:
 * each number names one of the pictures, rows or places that there are, edges are finite, and a bag
 * is no longer than its indices are many. The message names the layer.
 * Other ops have nothing to check. */
int ls_check_numbers(const struct ls_op *op, void *const *in, struct ls_error *error);

#endif
