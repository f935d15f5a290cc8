/* The calling thread: what the program has set there is not ours to depend on, nor to change.
 *
 * Rounding, traps on floating-point exceptions, whether denormals are flushed, and the number of
 * OpenMP's threads are properties of a thread. Every function of the public interface that
 * computes puts its own in place and gives back what it found; callbacks see what their program
 * has set, and may set something else. The card that the thread works with (base/thread.h) is
 * given back, too: a function sets that of the object that it is called for.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_API_CALLER_H
#define LS_API_CALLER_H

#include <fenv.h>

#include "lockstep/lockstep.h"
#include "ops/devices.h"

struct ls_caller {
    fenv_t floats;
    int threads[LS_DEVICES_MAX]; /* what each device wants back */
    int card;                    /* ls_thread_card was it */
    struct ls_caller *outer;     /* of a call within a callback */
};

/* Between the two, the thread computes as workers do. Calls nest. */
void ls_caller_enter(struct ls_caller *caller);
void ls_caller_leave(struct ls_caller *caller);

/* Around a callback within such a call: it sees the caller's state, and may change it. */
void ls_caller_pause(void);
void ls_caller_go_on(void);

/* In front of what a function computes: enters, and leaves wherever the function returns. */
#define LS_OWN_MODE                                                                                \
    __attribute__((cleanup(ls_caller_leave))) struct ls_caller caller;                             \
    ls_caller_enter(&caller)

/* Callbacks that call `inner` in the caller's state. `inner` must stay where it is. */
struct lockstep_callbacks ls_caller_callbacks(struct lockstep_callbacks *inner);

#endif
