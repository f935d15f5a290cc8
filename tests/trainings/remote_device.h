/* A device for tests: the CPU, as a device with memory of its own would be.
 *
 * Host code that touches its memory crashes: an address that it hands out is none. Contributions to
 * sums and rows of factors are added later than the kernel returns, by a thread of the stream; only
 * an event, or a wait for the stream, says that they are there. And each call that can fail does so
 * when a test wants it. Results have the bits of the CPU.
 *
 * Programs that use it are linked with --wrap=ls_device_find (cmake/tests.cmake).
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_REMOTE_DEVICE_H
#define LS_TESTS_REMOTE_DEVICE_H

#include <stdbool.h>

#include "device/device.h"

/* The calls that can fail. */
#define REMOTE_CALLS(C)                                                                            \
    C(CREATE)                                                                                      \
    C(WRITE)                                                                                       \
    C(READ)                                                                                        \
    C(COPY)                                                                                        \
    C(ZERO)                                                                                        \
    C(SWAP)                                                                                        \
    C(HASH)                                                                                        \
    C(STREAM)                                                                                      \
    C(WAIT)                                                                                        \
    C(EVENT)                                                                                       \
    C(RECORD)                                                                                      \
    C(EVENT_WAIT)                                                                                  \
    C(TO_LAYOUT)                                                                                   \
    C(TO_PLAIN)                                                                                    \
    C(CONVERTER)                                                                                   \
    C(CONVERT)                                                                                     \
    C(MERGE)                                                                                       \
    C(WEIGHT_GRADIENT)                                                                             \
    C(BIAS_GRADIENT)                                                                               \
    C(UPDATE)                                                                                      \
    C(CLEAR_MASKED)                                                                                \
    C(LARGEST)                                                                                     \
    C(SUM_SQUARES)                                                                                 \
    C(SUM_MAGNITUDES)                                                                              \
    C(RUN)                                                                                         \
    C(RUN_CHANNELS)                                                                                \
    C(TILE)                                                                                        \
    C(ACCUMULATOR)                                                                                 \
    C(CUT)                                                                                         \
    C(BEGIN)                                                                                       \
    C(CLEAR_REST)                                                                                  \
    C(READ_SUM)                                                                                    \
    C(SQUARES)

enum remote_call {
#define ENTRY(name) REMOTE_##name,
    REMOTE_CALLS(ENTRY)
#undef ENTRY
        REMOTE_CALL_COUNT
};

extern const char *const remote_call_names[REMOTE_CALL_COUNT];

/* From now on trainings use it, or the CPU again. */
void remote_use(bool on);
/* The call after `after` more of that kind fails, once; counts from zero again. */
void remote_fail(enum remote_call call, long after);
/* No call fails. */
void remote_fail_nothing(void);
/* Whether the call that was to fail has; and how often each was made since remote_fail. */
bool remote_has_failed(void);
long remote_calls(enum remote_call call);
/* Bytes that were handed out and are not freed. */
size_t remote_bytes(void);

#endif
