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
#include "device/filler_number.h"
#include "ir/op.h"
#include "lockstep_names.h"

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
