/* The update of weights by the rules of device/update.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_UPDATE_H
#define LS_OPS_CPU_UPDATE_H

#include "base/error.h"
#include "device/update.h"

int ls_update_apply(const struct ls_update_rule *rule, const struct ls_update_slice *slice,
                    struct ls_update_seen *seen, struct ls_error *error);

/* ls_device.clear_masked */
int ls_update_clear_masked(const uint32_t *mask, size_t first, float *numbers, size_t n,
                           struct ls_error *error);

#endif
