/* Plans for many ranks. A part of lockstep/lockstep.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LOCKSTEP_SCALING_H
#define LOCKSTEP_SCALING_H

#include <stddef.h>
#include <stdint.h>

#include "lockstep/job.h"
#include "lockstep/report.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { LOCKSTEP_RANKS_MAX = 65536 };

struct lockstep_scaling_options {
    size_t struct_size;
    const int *ranks; /* how many there may be, 1 to LOCKSTEP_RANKS_MAX: `count` numbers */
    size_t count;
    int workers; /* of a rank; 0: lockstep_default_workers() */
    /* The link that each rank has, for sending and receiving alike: bytes a second, seconds until
     * what was sent is there, seconds that each message takes besides. */
    double bandwidth, latency, message;
    /* Seconds that an update takes one worker alone on other machines than this; its parts are
     * estimated. 0: some updates are done here and timed. */
    double compute;
    int64_t iterations;                  /* that are timed; 0: 5. Fewer where max_iter says so */
    const char *isa;                     /* as in lockstep_train_options */
    uint64_t memory;                     /* as in lockstep_train_options, of a rank */
    struct lockstep_callbacks callbacks; /* `poll` can stop it: LOCKSTEP_STOPPED */
    const char *device;                  /* as in lockstep_train_options */
};
/* Links of 10 Gbit/s with 20 us, and 1 us a message. */
LOCKSTEP_API void lockstep_scaling_options_init(struct lockstep_scaling_options *options);

/* Bytes that a rank hands to others. */
struct lockstep_traffic {
    uint64_t sums;    /* gradients, to the ranks that update them */
    uint64_t weights; /* what these made of them, to all */
    uint64_t factors; /* of large inner products, whose gradients and weights are not sent */
    uint64_t small;   /* sync points, figures of micro-batches, what all must agree on */
};

/* What is to be expected of so many ranks. Seconds are those of an update. */
struct lockstep_scaling_row {
    int ranks;
    double seconds;        /* the next six, added up */
    double pass;           /* forward and backward, of the rank with the most micro-batches */
    double update;         /* of the weights */
    double rest;           /* merging, keeping books: what every rank does by itself */
    double small;          /* small exchanges */
    double wait_sums;      /* after the pass, for gradients */
    double wait_weights;   /* in the next forward pass, for weights */
    double transfer;       /* gradients and weights are under way, whether waited for or not */
    double efficiency;     /* 1: so many ranks are as many times as fast as one */
    int64_t micro_batches; /* of an update, that the busiest rank has */
    int idle;              /* ranks without any */
    int64_t micro_batch;   /* that would keep all workers busy (another training); 0: it does
                              already, or none would */
    struct lockstep_traffic sent; /* the mean of all ranks, rounded up */
    uint64_t memory;              /* of a rank, in all */
    uint64_t state; /* of that, optimizer and moving averages of the weights: its own part */
};

struct lockstep_scaling_total {
    int workers;                /* of a rank */
    int64_t batch, micro_batch; /* samples */
    int64_t micro_batches;      /* of an update */
    int64_t samples;            /* of an update */
    int64_t iterations;         /* that were timed; 0: the seconds were given */
    int sync_points;            /* at which ranks wait for each other, of a batch */
    int useful;                 /* ranks that have something to do */
    int fastest;                /* of 1, 2, 4, ... ranks, those with the shortest update */
    double fastest_seconds;     /* that it takes them */
    uint64_t summed;            /* bytes of parameters whose gradients are reduced as sums */
    uint64_t factored;          /* and as factors */
    double bandwidth, latency, message; /* as in the options */
};

/* What this rank of a job has done since it began: what it has handed to others, and seconds. */
struct lockstep_job_figures {
    struct lockstep_traffic sent;
    double small, wait_sums, wait_weights, transfer; /* as in struct lockstep_scaling_row */
};
LOCKSTEP_API void lockstep_job_figures(const struct lockstep_job *job, /* NULL: zeros */
                                       struct lockstep_job_figures *figures);

/* Predicts a training on several ranks; docs/scaling.md says how. */
struct lockstep_scaling;
LOCKSTEP_API int lockstep_plan_scaling(const struct lockstep_solver *solver,
                                       const struct lockstep_scaling_options *options,
                                       struct lockstep_scaling **scaling,
                                       struct lockstep_error *error);
LOCKSTEP_API void lockstep_scaling_free(struct lockstep_scaling *scaling);
/* What these return belongs to `scaling`. */
LOCKSTEP_API const struct lockstep_scaling_total *
lockstep_scaling_total(const struct lockstep_scaling *scaling);
/* A row for each of the options' numbers of ranks. */
LOCKSTEP_API const struct lockstep_scaling_row *
lockstep_scaling_rows(const struct lockstep_scaling *scaling, size_t *count);

#ifdef __cplusplus
}
#endif
#endif
