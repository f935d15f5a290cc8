/* The table of devices. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/devices.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "ops/loaded.h"

/* A new device is a folder src/ops/NAME with its ls_device_NAME, and a line here. The first one
 * computes where none is asked for. That of src/ops/cuda is loaded (ops/loaded.h). */
#define DEVICE_TABLE(DEVICE)                                                                       \
    DEVICE(cpu)                                                                                    \
    DEVICE(reference)

#define DEVICE_DECLARE(name) extern const struct ls_device ls_device_##name;
#define DEVICE_ENTRY(name)   &ls_device_##name,
DEVICE_TABLE(DEVICE_DECLARE)
const struct ls_device *const ls_devices[] = {DEVICE_TABLE(DEVICE_ENTRY)};
const int ls_device_count = sizeof ls_devices / sizeof *ls_devices;
_Static_assert(sizeof ls_devices / sizeof *ls_devices < LS_DEVICES_MAX, "callers have room");

const struct ls_device *ls_device_here(int index)
{
    return index < ls_device_count    ? ls_devices[index]
           : index == ls_device_count ? ls_device_loaded()
                                      : NULL;
}

const struct ls_device *ls_device_default(void)
{
    return ls_devices[0];
}

/* "cuda:0,1" names the device and its cards. */
static bool is_name(const char *name, const char *device)
{
    const size_t length = strcspn(name, ":");
    return strlen(device) == length && strncmp(name, device, length) == 0;
}

int ls_device_find(const char *name, const struct ls_device **device, struct ls_error *error)
{
    char list[128] = "";
    *device = ls_device_default();
    for (int i = 0; name != NULL && i < ls_device_count; i++) {
        *device = ls_devices[i];
        if (strcmp(name, ls_devices[i]->name) == 0)
            return ls_device_check(ls_devices[i], error);
        size_t length = strlen(list);
        snprintf(list + length, sizeof list - length, "%s%s",
                 i > 0 ? ", " : "there are: ", ls_devices[i]->name);
    }
    if (name == NULL)
        return 0;
    if (is_name(name, ls_loaded_device_name)) {
        LS_TRY(ls_device_load(device, error));
        return ls_device_check(*device, error);
    }
    size_t length = strlen(list);
    snprintf(list + length, sizeof list - length, ", %s", ls_loaded_device_name);
    return ls_fail(error, LOCKSTEP_USAGE, NULL, list, "there is no device '%s'", name);
}

int ls_device_check(const struct ls_device *device, struct ls_error *error)
{
    const struct ls_device_environment *environment = device->environment;
    const struct {
        const char *name;
        bool there;
    } members[] = {
#define MEMBER(name) {#name, device->name != NULL}
        MEMBER(kernels),
        MEMBER(supports),
        MEMBER(memory),
        MEMBER(streams),
        MEMBER(parameter_from_plain),
        MEMBER(parameter_to_plain),
        MEMBER(converter_new),
        MEMBER(converter_run),
        MEMBER(converter_free),
        MEMBER(merge),
        MEMBER(fill),
        MEMBER(sums),
        MEMBER(accumulator),
        MEMBER(weight_gradient),
        MEMBER(bias_gradient),
        MEMBER(update),
        MEMBER(clear_masked),
        MEMBER(environment),
#undef MEMBER
#define MEMBER(name) {"environment." #name, environment == NULL || environment->name != NULL}
        MEMBER(isa),
        MEMBER(widest_isa),
        MEMBER(describe),
#undef MEMBER
    };
    struct ls_text missing = {0};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (!members[i].there)
            ls_text_format(&missing, "%s%s", missing.data != NULL ? ", " : "", members[i].name);
    int status = missing.failed ? ls_fail_memory(error, "a message") : 0;
    if (status == 0 && missing.data != NULL)
        status = ls_fail(error, LOCKSTEP_USAGE, NULL,
                         "device/plain.h has functions for devices that compute in the host's "
                         "memory",
                         "the device '%s' is not complete: its struct ls_device has no %s",
                         device->name, missing.data);
    ls_text_free(&missing);
    return status;
}
