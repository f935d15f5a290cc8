/* Numbers of fillers, for host code and kernels alike; see device/filler.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_FILLER_NUMBER_H
#define LS_DEVICE_FILLER_NUMBER_H

#include <math.h>
#include <stdint.h>

#include "base/host_device.h"

enum ls_filler_kind {
    LS_FILLER_CONSTANT, /* first */
    LS_FILLER_UNIFORM,  /* from first to second: uniform, xavier */
    LS_FILLER_INTEGER,  /* whole numbers from first to second, both included */
    /* rows [0, class, 0, xmin, ymin, xmax, ymax, 0], classes as INTEGER, corners left and above in
     * [0, 1/2), right and below in [1/2, 1) */
    LS_FILLER_BOXES,
    LS_FILLER_NORMAL,   /* mean first, standard deviation second: gaussian, msra */
    LS_FILLER_UNITBALL, /* rows of uniform numbers, each divided by its sum */
    LS_FILLER_BILINEAR  /* (1 - |x/f - c|) (1 - |y/f - c|) on a square */
};

/* A filler resolved for one shape. */
struct ls_filler {
    enum ls_filler_kind kind;
    double first, second;
    uint64_t keep; /* NORMAL: a number stays if the mask's word is below; 2^32: all (not sparse) */
    int64_t row;   /* UNITBALL: numbers in a row; BILINEAR: the square's side */
};

enum { LS_BOX_ROW = 8 };

/* Number i of BOXES, from a random number in [0, 1). */
LS_HOST_DEVICE double ls_filler_box(const struct ls_filler *filler, uint64_t i, double random)
{
    switch (i % LS_BOX_ROW) {
    case 1:
        return filler->first + (double)(int64_t)(random * (filler->second - filler->first + 1));
    case 3:
    case 4:
        return random / 2;
    case 5:
    case 6:
        return 0.5 + random / 2;
    default:
        return 0;
    }
}

/* Number i of fillers other than NORMAL, from a random number in [0, 1); rows of UNITBALL are not
 * divided yet. */
LS_HOST_DEVICE double ls_filler_number(const struct ls_filler *filler, uint64_t i, double random)
{
    const double span = filler->second - filler->first;
    const uint64_t side = (uint64_t)filler->row;
    double f, c;
    switch (filler->kind) {
    case LS_FILLER_UNIFORM:
        return filler->first + random * span;
    case LS_FILLER_INTEGER:
        return filler->first + floor(random * (span + 1));
    case LS_FILLER_BOXES:
        return ls_filler_box(filler, i, random);
    case LS_FILLER_UNITBALL:
        return random;
    case LS_FILLER_BILINEAR:
        f = (double)((side + 1) / 2);
        c = (double)(side - 1) / (2 * f);
        return (1 - fabs((double)(i % side) / f - c)) *
               (1 - fabs((double)(i / side % side) / f - c));
    default:
        return filler->first;
    }
}

#endif
