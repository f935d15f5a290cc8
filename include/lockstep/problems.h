/* Why a call failed, problem by problem. A part of lockstep/lockstep.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LOCKSTEP_PROBLEMS_H
#define LOCKSTEP_PROBLEMS_H

#include <stddef.h>

#include "lockstep/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One of the problems that a call failed with. */
struct lockstep_problem {
    int status;          /* enum lockstep_status */
    const char *place;   /* "net.prototxt:12:5", "layer 'conv1'", a file; "" where there is none */
    const char *message; /* a sentence without a full stop */
    const char *hint;    /* what to do about it; "" */
};
/* How many problems there are to look at. The text counts those that found no room. */
LOCKSTEP_API size_t lockstep_error_count(const struct lockstep_error *error);
/* Problem `index`, whose strings belong to `error` until it is used again; empty where there is
 * none. */
LOCKSTEP_API void lockstep_error_problem(const struct lockstep_error *error, size_t index,
                                         struct lockstep_problem *problem);

#ifdef __cplusplus
}
#endif
#endif
