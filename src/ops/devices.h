/* All devices: the one place that names them.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_DEVICES_H
#define LS_OPS_DEVICES_H

#include "device/device.h"

enum { LS_DEVICES_MAX = 8 };

/* `ls_device_count` of them; the first one computes where none is asked for. */
extern const struct ls_device *const ls_devices[];
extern const int ls_device_count;
/* The same and, behind them, the one that is loaded; NULL where none is (LS_DEVICES_MAX at most).
 */
const struct ls_device *ls_device_here(int index);

/* The device of that name; NULL: the first one. An unknown name is LOCKSTEP_USAGE, with a hint that
 * lists them; so is a device that is not complete. "cuda", which may have its cards behind it
 * ("cuda:0,1"), is loaded. */
int ls_device_find(const char *name, const struct ls_device **device, struct ls_error *error);
const struct ls_device *ls_device_default(void);

/* Fails with LOCKSTEP_USAGE, and names them, where members of a device are NULL that are not
 * optional (device/device.h). */
int ls_device_check(const struct ls_device *device, struct ls_error *error);

#endif
