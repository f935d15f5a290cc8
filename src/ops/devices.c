/* The table of devices. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/devices.h"

#include <stdio.h>
#include <string.h>

#include "ops/cpu/device.h"
#include "ops/reference/reference.h"

const struct ls_device *const ls_devices[] = {
    &ls_device_cpu,
    &ls_device_reference,
};
const int ls_device_count = sizeof ls_devices / sizeof *ls_devices;
_Static_assert(sizeof ls_devices / sizeof *ls_devices <= LS_DEVICES_MAX, "others count on that");

const struct ls_device *ls_device_default(void)
{
    return ls_devices[0];
}

int ls_device_find(const char *name, const struct ls_device **device, struct ls_error *error)
{
    char list[128] = "";
    *device = ls_device_default();
    for (int i = 0; name != NULL && i < ls_device_count; i++) {
        *device = ls_devices[i];
        if (strcmp(name, ls_devices[i]->name) == 0)
            return 0;
        size_t length = strlen(list);
        snprintf(list + length, sizeof list - length, "%s%s",
                 i > 0 ? ", " : "there are: ", ls_devices[i]->name);
    }
    return name == NULL
               ? 0
               : ls_fail(error, LOCKSTEP_USAGE, NULL, list, "there is no device '%s'", name);
}
