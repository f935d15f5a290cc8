/* What the parts of the remote device need of each other (remote_device.h is for tests).
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_REMOTE_PARTS_H
#define LS_TESTS_REMOTE_PARTS_H

#include "device/device.h"
#include "trainings/remote_device.h"

/* Counts a call; whether it is the one that is to fail. */
bool remote_call_fails(enum remote_call call);
/* Says that it does; returns the status. */
int remote_say_failure(enum remote_call call, struct ls_error *error);
/* Leaves the calling function if the call is to fail. */
#define REMOTE_MAY_FAIL(call, error)                                                               \
    do {                                                                                           \
        if (remote_call_fails(call))                                                               \
            return remote_say_failure(call, error);                                                \
    } while (0)

/* The address that the device hands out for one of its memory, and back. The way back ends the
 * program for an address of the host's memory, unless the device's own code asks, which may call
 * itself: between remote_enter and remote_leave, on this thread. NULL stays NULL. */
void *remote_far(const void *near);
void *remote_near(const void *address);
void remote_enter(void);
void remote_leave(void);

/* Gives the context's stream a kernel that takes `count` numbers, which are copied: they are the
 * kernel's input 0. */
void remote_stream_give(const struct ls_prepared *prepared, const struct ls_kernel *kernel,
                        const float *numbers, size_t count, const struct ls_context *context);

extern const struct ls_device_memory remote_memory;
extern const struct ls_device_streams remote_streams;
extern const struct ls_device_sums remote_sums;
extern const struct ls_device_accumulator remote_accumulator;

#endif
