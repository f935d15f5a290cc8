/* Labels: floats that hold integers.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_LABEL_H
#define LS_DEVICE_LABEL_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/host_device.h"

/* Whether a label (or target) counts nowhere. As in Caffe, what is behind the point is cut off. */
LS_HOST_DEVICE bool ls_label_ignored(float label, bool has_ignore, int ignore_label)
{
    return has_ignore && trunc((double)label) == (double)ignore_label;
}

/* The class that a label names, or -1 if it is not an integer in [0, classes). */
LS_HOST_DEVICE int64_t ls_label_class(float label, int64_t classes)
{
    if (!(label >= 0 && (double)label < (double)classes) || label != truncf(label))
        return -1;
    return (int64_t)label;
}

#endif
