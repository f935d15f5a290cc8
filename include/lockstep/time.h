/* Where the time goes, and which settings take the least. A part of lockstep/lockstep.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LOCKSTEP_TIME_H
#define LOCKSTEP_TIME_H

#include <stddef.h>
#include <stdint.h>

#include "lockstep/report.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What cores can do at this moment, together. */
struct lockstep_probe {
    int cores;
    double flops; /* fp32 operations a second: fused multiply-adds, two each */
    double bytes; /* of memory a second, read and written */
};
/* Measures `cores` cores (0, or more than this process may use: all of those), for some tenths of a
 * second. */
LOCKSTEP_API int lockstep_probe(int cores, struct lockstep_probe *probe,
                                struct lockstep_error *error);

struct lockstep_time_options {
    size_t struct_size;
    int workers;        /* 0: lockstep_default_workers() */
    const char *isa;    /* as in lockstep_train_options */
    uint64_t memory;    /* as in lockstep_train_options */
    int64_t iterations; /* that are measured; 0: 20. Fewer where max_iter says so */
    struct lockstep_callbacks callbacks; /* `poll` can stop it: LOCKSTEP_STOPPED */
    const char *device;                  /* as in lockstep_train_options */
};
LOCKSTEP_API void lockstep_time_options_init(struct lockstep_time_options *options);

enum lockstep_time_kind {
    LOCKSTEP_TIME_FORWARD,
    LOCKSTEP_TIME_REPLAY, /* forward again, in the backward pass, instead of keeping results */
    LOCKSTEP_TIME_BACKWARD_DATA,
    LOCKSTEP_TIME_BACKWARD_WEIGHTS,
    LOCKSTEP_TIME_REDUCTION, /* gradients into exact sums, weights into other layouts */
    LOCKSTEP_TIME_UPDATE,    /* of the weights */
    LOCKSTEP_TIME_KINDS
};

/* Of an iteration. Seconds are those of all workers divided by their number, so that all parts add
 * up to the seconds of an iteration. */
struct lockstep_time_part {
    double seconds;
    double flops; /* that the definition asks for, two a multiply-add; those of recomputations not
                     again */
    double bytes; /* that its steps read and write, in caches or in memory */
};

struct lockstep_time_layer {
    const char *name, *type;
    struct lockstep_time_part part[LOCKSTEP_TIME_KINDS];
};

struct lockstep_time_total {
    int workers;
    int64_t iterations; /* that were measured, after some to warm up */
    int64_t batch, micro_batch;
    int64_t samples; /* of all these iterations */
    double seconds;  /* of an iteration: the mean, what all parts add up to */
    double fastest, median, slowest;
    /* What is no layer's: seconds as in struct lockstep_time_part. */
    double data;     /* waiting for data */
    double barriers; /* waiting for other workers */
    double merging;  /* partial results of sync points, across micro-batches */
    double serial;   /* one worker works alone, the others wait */
    double overhead; /* all else within the workers' tasks: norms of gradients, taking work */
    struct lockstep_probe before, after; /* of as many cores as there are workers. 0 cores: a card
                                            computed, and what it could do is not measured */
};

struct lockstep_timing;

/* Trains some iterations, as lockstep_trainer_step would, and takes the time of everything. Nothing
 * is written to disk. */
LOCKSTEP_API int lockstep_time(const struct lockstep_solver *solver,
                               const struct lockstep_time_options *options,
                               struct lockstep_timing **timing, struct lockstep_error *error);
LOCKSTEP_API void lockstep_timing_free(struct lockstep_timing *timing);
/* What these return belongs to the timing until lockstep_timing_free. */
LOCKSTEP_API const struct lockstep_time_total *
lockstep_timing_total(const struct lockstep_timing *timing);
/* All `count` layers of the train net, in order. */
LOCKSTEP_API const struct lockstep_time_layer *
lockstep_timing_layers(const struct lockstep_timing *timing, size_t *count);

struct lockstep_tune_options {
    size_t struct_size;
    const char *isa; /* as in lockstep_train_options */
    double seconds;  /* that each point is measured, without starting up; 0: 2.5 */
    struct lockstep_callbacks callbacks; /* NOTICE lines of progress; `poll` can stop it */
    const char *device;                  /* as in lockstep_train_options */
};
LOCKSTEP_API void lockstep_tune_options_init(struct lockstep_tune_options *options);

/* A way to train, and how fast it is. Batch and micro_batch are part of what is trained: another
 * one gives other weights. The number of workers is not. */
struct lockstep_tune_point {
    int workers;                     /* 0: lockstep_default_workers(), which it becomes */
    int64_t batch;                   /* 0: the definition's, which it becomes */
    int64_t micro_batch;             /* 0: the definition's or that of the rule; what it becomes */
    double median, slowest, fastest; /* samples a second, of several turns; 0: not measured */
    uint64_t memory;                 /* bytes that such a training takes, as planned */
    int status;                      /* why it cannot be: an enum lockstep_status */
    char reason[1024];
};

/* Measures points in alternation: several turns, each with all points, so that a slow phase of the
 * machine hits all alike. A point that cannot be has a status; if the first one cannot, that is the
 * error. Nothing is written to disk. */
LOCKSTEP_API int lockstep_tune(const struct lockstep_solver *solver,
                               const struct lockstep_tune_options *options,
                               struct lockstep_tune_point *points, size_t count,
                               struct lockstep_error *error);

#ifdef __cplusplus
}
#endif
#endif
