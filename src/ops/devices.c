/* The table of devices. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/devices.h"

#include "ops/cpu/device.h"

const struct ls_device *ls_device_default(void)
{
    return &ls_device_cpu;
}
