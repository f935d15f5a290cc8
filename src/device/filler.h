/* Caffe's seven fillers, and two of ours (integer, boxes): how parameters begin, and what DummyData
 * consists of.
 *
 * A number is a function of (key, ordinal, its plain index): element i uses the random number
 * (key, ordinal, i) of base/random.h, in double, rounded to float once. The same bits on every
 * machine and for every way to cut the work.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_FILLER_H
#define LS_DEVICE_FILLER_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "ir/op.h"
#include "lockstep.pb-c.h"

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
static inline double ls_filler_box(const struct ls_filler *filler, uint64_t i, double random)
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

/* Resolves a filler (NULL: zeros) for blobs of `shape`. xavier and msra divide the variance by
 * n = count / shape[0] (FAN_IN), count / shape[1] (FAN_OUT), or the mean of both (AVERAGE).
 * Fails with LOCKSTEP_DEFINITION for an unknown type, parameters out of range, or a shape that
 * the filler cannot fill. */
int ls_filler_resolve(struct ls_filler *filler, const Lockstep__FillerParameter *parameter,
                      const struct ls_shape *shape, struct ls_error *error);

/* The filler of an op FILL. One that looks at the shape sees that of one sample, so that what a
 * number is cannot depend on how many samples it happens to be computed with: the op's output is
 * filled `each` numbers at a time, one sample after the other, or all at once. */
int ls_filler_resolve_op(struct ls_filler *filler, const struct ls_op *op, int64_t *each,
                         struct ls_error *error);

#endif
