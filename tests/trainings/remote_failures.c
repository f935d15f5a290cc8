/* Calls of the remote device that fail when a test wants it. See remote_device.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdatomic.h>

#include "trainings/remote_device.h"
#include "trainings/remote_parts.h"

const char *const remote_call_names[REMOTE_CALL_COUNT] = {
#define ENTRY(name) #name,
    REMOTE_CALLS(ENTRY)
#undef ENTRY
};

static _Atomic long calls[REMOTE_CALL_COUNT];
static _Atomic int to_fail = -1;
static _Atomic long calls_left;
static _Atomic bool has_failed;

bool remote_call_fails(enum remote_call call)
{
    atomic_fetch_add(&calls[call], 1);
    if (atomic_load(&to_fail) != (int)call || atomic_fetch_sub(&calls_left, 1) != 0)
        return false;
    atomic_store(&has_failed, true);
    return true;
}

int remote_say_failure(enum remote_call call, struct ls_error *error)
{
    return ls_fail(error, LOCKSTEP_INTERNAL, NULL, NULL, "the remote device fails in %s",
                   remote_call_names[call]);
}

void remote_fail(enum remote_call call, long after)
{
    for (int c = 0; c < REMOTE_CALL_COUNT; c++)
        atomic_store(&calls[c], 0);
    atomic_store(&has_failed, false);
    atomic_store(&calls_left, after);
    atomic_store(&to_fail, (int)call);
}

void remote_fail_nothing(void)
{
    atomic_store(&to_fail, -1);
}

bool remote_has_failed(void)
{
    return atomic_load(&has_failed);
}

long remote_calls(enum remote_call call)
{
    return atomic_load(&calls[call]);
}
