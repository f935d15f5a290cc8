/* The profiler: what the workers of a pool do with their time. Optional.
 *
 * What a step of a plan takes is counted with its binding (engine/net.h); this is all the rest.
 * Each worker writes its own figures only. All are nanoseconds.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_PROFILER_H
#define LS_ENGINE_PROFILER_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/thread.h"

struct ls_profiler_worker {
    uint64_t working;  /* in tasks, with all that is below */
    uint64_t barriers; /* waiting for the others within a task */
    uint64_t data;     /* waiting for data */
    uint64_t merging;  /* partial results of sync points */
    uint64_t *update;  /* by parameter: the update of its weights */
    uint64_t *product; /* by parameter: its gradient from factors */
    uint64_t *views;   /* by parameter: its copies in other layouts */
    char apart[64];    /* two workers do not write to one line of a cache */
};

struct ls_profiler {
    uint64_t tasks; /* from the beginning of each task until all workers are done with it */
    int workers;
    struct ls_profiler_worker *worker;
};

int ls_profiler_create(int workers, size_t parameters, struct ls_profiler **profiler,
                       struct ls_error *error);
void ls_profiler_free(struct ls_profiler *profiler);

/* The time now; 0 without a profiler, because reading the clock takes some, too. */
static inline uint64_t ls_profiler_start(const struct ls_profiler *profiler)
{
    return profiler != NULL ? ls_nanoseconds() : 0;
}

#endif
