/* Resampling of pictures by the filters of OpenCV, in integers.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_RESAMPLE_H
#define LS_DATA_RESAMPLE_H

#include <stdint.h>

#include "data/source.h"

/* What an output pixel is made of along each axis: output i of n lies at (i + 1/2) m / n - 1/2
 * among m input pixels. */
enum ls_filter {
    LS_FILTER_LINEAR,  /* the two next to it */
    LS_FILTER_AREA,    /* shrinking: all that it covers; else between two, sharper than LINEAR */
    LS_FILTER_NEAREST, /* pixel floor(i m / n) */
    LS_FILTER_CUBIC,   /* four, by the cubic with slope -3/4 */
    LS_FILTER_LANCZOS4 /* eight, by the windowed sine */
};

/* Planes of 8 bits. */
struct ls_pixel_planes {
    int64_t count, height, width;
    const uint8_t *pixels; /* count x height x width */
};

/* Resizes all planes to height x width; `out` has room for them. Weights are rounded to 14 bits so
 * that those of a pixel add up to 2^14; sums of both axes are exact, and rounded once at the end to
 * the nearest number of 0..255. OpenCV's weights have 11 bits: pixels differ from its by at most 1,
 * but where its fp32 misses by a hair that an output begins with a pixel (NEAREST, enlarging AREA).
 */
int ls_resample(const struct ls_pixel_planes *in, enum ls_filter filter, int64_t height,
                int64_t width, struct ls_buffer *scratch, uint8_t *out, struct ls_problem *problem);

#endif
