/* All devices: the one place that names them.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_DEVICES_H
#define LS_OPS_DEVICES_H

#include "device/device.h"

/* The device that computes where none is asked for. */
const struct ls_device *ls_device_default(void);

#endif
