/* The update of weights by the rules of device/update.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_UPDATE_H
#define LS_OPS_CPU_UPDATE_H

#include "device/update.h"

struct ls_update_seen ls_update_apply(const struct ls_update_rule *rule,
                                      const struct ls_update_slice *slice);

#endif
