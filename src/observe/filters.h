/* Filters of a convolution as one picture.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OBSERVE_FILTERS_H
#define LS_OBSERVE_FILTERS_H

#include <stdint.h>

#include "base/error.h"
#include "lockstep/report.h"

/* A PNG of all filters side by side, with black lines between them: the least weight is black, the
 * largest white; of three channels the first is blue, as Caffe's pictures have them. `shape` is
 * channels, height, width. Free *bytes with ls_free. */
int ls_filters_draw(const struct lockstep_filters *filters, int64_t shape[3], uint8_t **bytes,
                    size_t *size, struct ls_error *error);

#endif
