/* What a run reports while it goes on, and what can be asked of it. A part of lockstep/lockstep.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LOCKSTEP_REPORT_H
#define LOCKSTEP_REPORT_H

#include <stddef.h>
#include <stdint.h>

#include "lockstep/base.h"

#ifdef __cplusplus
extern "C" {
#endif

enum lockstep_event_kind {
    LOCKSTEP_EVENT_START,    /* text: one line of what matters about this run; many of them */
    LOCKSTEP_EVENT_WARNING,  /* text */
    LOCKSTEP_EVENT_NOTICE,   /* text: something worth a line on the screen */
    LOCKSTEP_EVENT_PROGRESS, /* after every update: iteration, loss, learning_rate, ... */
    LOCKSTEP_EVENT_DISPLAY,  /* every `display` iterations: as PROGRESS, and outputs */
    LOCKSTEP_EVENT_TEST,     /* a finished test phase: test_net, outputs, samples */
    LOCKSTEP_EVENT_SNAPSHOT, /* text: the file that was written */
    LOCKSTEP_EVENT_END,      /* training is done */
    LOCKSTEP_EVENT_RUN,      /* run: the facts of this run as figures; once, before START */
    LOCKSTEP_EVENT_AUDIT,    /* text, audit: a core has computed wrongly (see options.audit) */
    LOCKSTEP_EVENT_HASH,     /* weights_hash, chain: every 20 iterations; with a text at the end */
    LOCKSTEP_EVENT_STATISTICS, /* statistics: of parameters, behind a DISPLAY, where wanted */
    LOCKSTEP_EVENT_DETAIL      /* text: a line for logs, which --verbose shows */
};

/* What a run is, in figures: what its START lines say in words. */
struct lockstep_run {
    const char *version;     /* of the program */
    const char *environment; /* the numeric environment (lockstep_build_info) */
    const char *solver;      /* "SGD", ... */
    const char *lr_policy;
    double base_lr; /* as it is used: scaled by base_batch_size */
    uint64_t seed;
    int64_t first_iteration; /* updates done before this run: 0, or what it resumes from */
    int64_t iteration_end;   /* where this run will stop */
    int64_t max_iter;        /* where the training ends */
    int64_t display, test_interval, snapshot_interval; /* iterations; 0: never */
    int64_t batch, iter_size, micro_batches; /* samples in a batch, batches an update, parts of a
                                                batch */
    int64_t micro_batch;                     /* samples of the largest of these parts */
    int64_t samples;                         /* of the training data; 0: without end */
    double iterations_per_epoch;             /* 0: unknown */
    int ranks, workers;                      /* processes, and workers of all of them */
    int64_t learned, fixed;                  /* numbers in parameters */
    double flops_per_sample;                 /* of a training step */
    uint64_t memory, memory_limit;           /* bytes: forecast, and the limit (0: none) */
    const char *definition;                  /* of solver and nets, as snapshots hold it */
    const char *net; /* the trained net's name; without one, that of the solver's file */
};

/* An output of a net: a loss, an accuracy, figures per class. */
struct lockstep_output {
    const char *name;     /* the blob's name */
    const double *values; /* `count` figures, in order */
    size_t count;
    double loss_weight; /* 0: not part of the loss */
    /* What the class of each figure is called ("": it has no name). NULL in it: a class that is not
     * measured, as the background of boxes; its figure says nothing. NULL: they are of no classes,
     * or of classes without names. */
    const char *const *classes;
    int better; /* which figure is: 1 a larger one, -1 a smaller one, 0: it is not known */
};

/* A computation of a micro-batch that was wrong, as others of the same have shown. */
struct lockstep_audit {
    int own; /* it was the update's own, which was computed anew; else that which checks it */
    const char *host;                  /* NULL where there is one process */
    int rank, worker, core;            /* core: as the system numbers them; -1: not known */
    int64_t micro_batch;               /* of the update */
    int64_t first_sample, last_sample; /* ordinals */
    const char *name;                  /* the first parameter or layer with other numbers */
    int64_t differing;                 /* how many such there are */
};

/* How numbers are distributed: counts[i] of them are from edges[i] to below edges[i + 1], the last
 * bin's upper edge included. */
struct lockstep_histogram {
    const double *edges;    /* count + 1, rising: the least number ... the largest; where all are
                               the same there is one bin around them */
    const uint64_t *counts; /* they add up to the parameter's size */
    size_t count;
    double sum; /* of the numbers */
};

/* Of a parameter that is trained. Norms are L2; the gradient is that of the data loss, as
 * lockstep_trainer_read_gradient has it; the update is what was added to the weights. */
struct lockstep_parameter_statistics {
    const char *name;
    int64_t size;                      /* elements */
    double weight_norm, gradient_norm; /* weights: after the update */
    double update_norm;
    struct lockstep_histogram weights, gradient;
};

/* Windows of a convolution over one or three channels, as a picture can show them. */
struct lockstep_filters {
    const char *name; /* of the parameter */
    int64_t count, channels, height, width;
    const float *weights; /* in this order */
};

/* Of an update: the same on any number of workers and ranks. */
struct lockstep_statistics {
    const struct lockstep_parameter_statistics *parameters; /* in the net's order */
    size_t parameter_count;
    double weight_norm, gradient_norm, update_norm; /* of all these parameters together */
    const struct lockstep_filters *filters;         /* the net's first; NULL: it has none */
};

struct lockstep_event {
    enum lockstep_event_kind kind;
    const char *text;          /* see the kinds; else NULL */
    int64_t iteration;         /* updates done so far, in every kind */
    int64_t iteration_end;     /* where this run will stop */
    double epoch;              /* passes over the training data so far; 0 if unknown */
    double loss;               /* the same as data_loss: what is printed as the loss */
    double data_loss;          /* weighted sum of the losses over the whole update, without the
                                  penalty; mean over average_loss updates. TEST: that of the test
                                  net if the solver has test_compute_loss, else 0 */
    double penalty;            /* of weight decay, at the weights before the update. NaN: it was not
                                  measured for this event (DISPLAY events have it) */
    double learning_rate;      /* of this update */
    double samples_per_second; /* since the last event of this kind, without tests and snapshots */
    double seconds;            /* since the last event of this kind, likewise */
    int test_net;              /* TEST: which test net; -1: the train data, un-augmented */
    int64_t samples;           /* TEST: how many were tested */
    const struct lockstep_output *outputs; /* in the order that Caffe prints */
    size_t output_count;
    const struct lockstep_run *run;     /* RUN: the facts; else NULL */
    const struct lockstep_audit *audit; /* AUDIT; else NULL */
    /* HASH: of all weights and averages as they are now; and the chain (lockstep_trainer_chain). */
    uint64_t weights_hash, chain;
    int64_t chain_begin;
    /* TEST: samples whose records are bad, so that others were tested in their place
     * (on_bad_record: SKIP); END: the same of this run's training. */
    int64_t skipped;
    const struct lockstep_statistics *statistics; /* STATISTICS; else NULL */
};

/* Answers of a `poll` callback. */
enum lockstep_request {
    LOCKSTEP_GO_ON = 0,
    LOCKSTEP_SNAPSHOT_AND_GO_ON = 1,
    LOCKSTEP_SNAPSHOT_AND_STOP = 2
};

struct lockstep_callbacks {
    void *user; /* handed to both */
    /* May be NULL. The event and all it points to are valid during the call only. */
    void (*event)(void *user, const struct lockstep_event *event);
    /* May be NULL. Asked between updates and between test batches. */
    enum lockstep_request (*poll)(void *user);
};

#ifdef __cplusplus
}
#endif
#endif
