/* How boxes differ from priors, in the codes that nets of SSD predict. See device/defined.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_BOX_CODES_H
#define LS_DEVICE_BOX_CODES_H

#include "device/boxes.h"
#include "ir/op.h"

/* How `box` differs from the prior: what a net learns to predict. */
void ls_box_encode(enum ls_box_code code, const struct ls_box *prior, const struct ls_box *box,
                   double target[4]);
/* The box that `code` says of the prior; `variance` has the prior's four, NULL: they are ones. */
struct ls_box ls_box_decode(enum ls_box_code code, const struct ls_box *prior,
                            const float *variance, const float *difference);

#endif
