/* How a tensor of a sample is made from a record, for data sets that lie in a device's memory, and
 * the formulas that every device makes it with (data/transform.h says what they are).
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_IR_SAMPLE_RECIPE_H
#define LS_IR_SAMPLE_RECIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/host_device.h"

/* What a sample is made of, and what its random draws came to. */
struct ls_sample_draw {
    int64_t record;             /* its number among those in the device's memory */
    int32_t top, left;          /* of the part that is taken; of the record without padding */
    float brightness, contrast; /* 0 and 1: none */
    int32_t mirror, unused;
};

/* What is the same for all samples. Records lie one behind the other, `record_bytes` apart. */
struct ls_sample_recipe {
    size_t record_bytes;
    bool image;  /* else a record is the tensor, `bytes` of it, and what follows says nothing */
    bool floats; /* the record is of fp32; else of bytes */
    int32_t channels, height, width;   /* of the record */
    int32_t rows, columns;             /* of the sample */
    bool padded, reflect, standardize; /* there is padding; by reflection */
    bool has_mean, has_channel_mean;   /* a picture of the record's shape; a number by channel */
    float scale;
    size_t bytes; /* of the tensor in the micro-batch */
    size_t runs;  /* in so many parts (struct ls_sample_place of data/reader.h) */
    bool rounded; /* fp32 becomes bf16 */
};

/* The picture goes on as a mirror image behind its border pixels: -1 is 1, size is size - 2. */
LS_HOST_DEVICE int64_t ls_sample_reflected(int64_t i, int64_t size)
{
    return i < 0 ? -i : i >= size ? 2 * (size - 1) - i : i;
}

/* Sums are made in four parts, element i in part i % 4 as far as there are four of them, the rest
 * in the first; and of these so. */
LS_HOST_DEVICE double ls_sample_sum(const double part[4])
{
    return (part[0] + part[1]) + (part[2] + part[3]);
}

LS_HOST_DEVICE float ls_sample_contrast(float x, float mean, float contrast)
{
    return (x - mean) * contrast + mean;
}

LS_HOST_DEVICE float ls_sample_centred(float x, float mean, float scale)
{
    return (x - mean) * scale;
}

LS_HOST_DEVICE double ls_sample_square(float x, double mean)
{
    return (x - mean) * (x - mean);
}

/* What numbers are multiplied by when they are standardized: `squares` is the sum of those around
 * the mean. */
LS_HOST_DEVICE float ls_sample_factor(double deviation, double least)
{
    return (float)(1 / (deviation > least ? deviation : least));
}

/* To the nearest, ties to even; what is not a number stays so, and is made quiet (ir/convert.h). */
LS_HOST_DEVICE uint16_t ls_sample_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

#endif
