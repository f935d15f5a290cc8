/* What the parts of a pass share: the micro-batches of the job at hand and what they leave.
 * Internal to the engine; others see engine/engine.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_PASS_H
#define LS_ENGINE_PASS_H

#include <pthread.h>
#include <stdatomic.h>

#include "engine/engine.h"
#include "engine/exchange.h"

/* A micro-batch of the job at hand. */
struct ls_unit {
    int64_t update; /* the prefetcher's: which update (a test: which batch) */
    int index;      /* the prefetcher's: which micro-batch of it */
    struct ls_batch range;
    struct ls_net_plan *plan;
    int rank;    /* of the job: whose it is where they are shared out */
    int slot;    /* of this rank's units of the wave, its number; -1: another rank's */
    bool broken; /* a kernel failed: no later step of it runs */
};

/* Micro-batches that go through the net together, where they exchange partial results. */
struct ls_wave {
    size_t begin, end; /* units */
};

struct ls_audit;

struct ls_pass {
    struct ls_engine *engine;
    struct ls_net *net;
    struct ls_batch *batches; /* of an update */
    struct ls_micro *micro;   /* of a batch */
    struct ls_unit *units;
    size_t unit_count, unit_capacity;
    struct ls_wave *waves; /* one a batch, or one of all where labels are counted on the way */
    size_t wave_count;
    double *records; /* by unit: its record, and behind it what was read for it (engine/read.c) */
    size_t record_size, record_stride; /* doubles of a record, and of all for a unit */
    double *total;
    double *normalizers;
    struct ls_exchange *exchange;
    float **averages;           /* by parameter: what moving averages become; NULL for all others */
    struct ls_mirror merged;    /* what is merged for one group, while averages are advanced */
    struct ls_reader **readers; /* [worker][data set]: for what runs before the pass */
    float **before_inputs;      /* [worker][input]; NULL: not looked at before the pass */
    struct ls_audit *audit;     /* NULL: nothing is audited */
    struct ls_digest *tested;   /* by data set: of all that a test has read, */
    int64_t skipped;            /* and how many samples' records it has skipped */
    float **blank;              /* by input: zeros for units whose data cannot be read */

    /* The job at hand. */
    struct ls_prefetcher *prefetcher;
    const struct ls_prefetch_item **items; /* by unit: held while a wave runs */
    const struct ls_graph **graphs;        /* by unit: of its plan */
    bool training;
    bool resent;     /* sums did not fit 48 bits: the pass is repeated with 64 */
    bool wrong;      /* an audit has found that a micro-batch was computed wrongly, or doubts it */
    size_t diverged; /* the unit that ended a pass as divergence */
    int *owners;     /* by unit: its rank */
    size_t *own;     /* this rank's units, in order */
    size_t own_count;
    _Atomic size_t next;  /* of `own` */
    bool round;           /* micro-batches can be taken, */
    size_t round_end;     /* for units before this one */
    int granted;          /* units that this rank was granted; by the thread that receives grants */
    pthread_mutex_t lock; /* guards what is below, and `blank` */
    size_t failed_unit;   /* the first unit that failed, SIZE_MAX: none */
    struct ls_error failure;
    size_t bad_unit; /* the first of this rank's whose data cannot be read; SIZE_MAX: none */
    struct ls_error bad_data;
    size_t broken_unit; /* the first that a kernel could not compute; SIZE_MAX: none */
    struct ls_error broken;
};

static inline double *ls_pass_record(const struct ls_pass *pass, size_t unit)
{
    return pass->records + unit * pass->record_stride;
}

/* Whether a unit is this rank's, or may become so. */
static inline bool ls_pass_may_run(const struct ls_pass *pass, size_t unit)
{
    return pass->units[unit].slot >= 0 || pass->engine->work_queue != NULL;
}

/* Where the gradients of a micro-batch go. */
struct ls_gradients {
    struct ls_contributor contributor;
    struct ls_recorder recorder;
};
/* What a worker's kernels need to see when it runs a unit (engine/run.c). */
struct ls_context ls_pass_context(struct ls_pass *pass, int worker, size_t unit,
                                  struct ls_gradients *gradients);
/* Runs a segment of a plan (or all: LS_RUN_ALL) in the memory of a slot: see ls_net_run. */
int ls_pass_compute(const struct ls_pass *pass, int worker, const struct ls_net_plan *plan,
                    int slot, int segment, float *const *inputs, const struct ls_context *context,
                    struct ls_error *error);
/* Reads the samples of a unit anew, by readers of the net's data sets; inputs[i] NULL: that one is
 * not needed (engine/normalizers.c). */
int ls_pass_fetch(const struct ls_pass *pass, struct ls_reader *const *readers, size_t unit,
                  float *const *inputs, struct ls_error *error);

/* Partitions the units among the ranks of the job, once they are listed, and lists this rank's. */
void ls_pass_partition(struct ls_pass *pass);
/* An error of the calling thread, cleared, for what a worker finds; the next call gives the same
 * one. (It is large, and every thread of the process has memory for it: so there is only one.) */
struct ls_error *ls_pass_error(void);
/* Starts a job over the pass's units (engine/job.c); `finish` returns what went wrong first in
 * their order, or shares the records of all units with the other ranks. */
void ls_pass_start(struct ls_pass *pass, struct ls_prefetcher *prefetcher, bool training);
int ls_pass_finish(struct ls_pass *pass, struct ls_error *error);
/* A failure keeps workers from beginning a wave: it is noted where they all wait for each other
 * before they look, or where none waits for another. What a kernel could not compute may be noted
 * at any time: the pass goes on, and fails when all have run. */
void ls_pass_note_failure(struct ls_pass *pass, size_t unit, const struct ls_error *error);
void ls_pass_note_broken(struct ls_pass *pass, size_t unit, const struct ls_error *error);

/* What is read (engine/read.c). */
int ls_pass_create_read(struct ls_pass *pass, struct ls_error *error);
void ls_pass_free_read(struct ls_pass *pass);
void ls_pass_note_read(struct ls_pass *pass, size_t unit, const struct ls_prefetch_item *item);
/* A unit's data are bad: it runs on zeros, so that ranks keep step, and when all units have run
 * ls_pass_check_data says what was wrong, on all ranks. Anything but LOCKSTEP_DATA is a failure:
 * false. */
bool ls_pass_note_bad_data(struct ls_pass *pass, size_t unit, const struct ls_error *error);
int ls_pass_check_data(struct ls_pass *pass, struct ls_error *error);
/* The inputs of a unit: its item's, or zeros. */
float *const *ls_pass_inputs(const struct ls_pass *pass, size_t unit);

/* Runs all units (engine/run.c). */
void ls_pass_run(struct ls_pass *pass);
/* Merges the records of units [begin, end) along the binary tree; the result is in the first. */
void ls_pass_merge_records(struct ls_pass *pass, size_t begin, size_t end);

/* The divisors of the losses of an update over all units (engine/normalizers.c). */
int ls_pass_create_normalizers(struct ls_pass *pass, struct ls_error *error);
void ls_pass_free_normalizers(struct ls_pass *pass);
int ls_pass_find_normalizers(struct ls_pass *pass, struct ls_error *error);
/* Of one whose labels were counted during the pass: other ranks' counts first. */
int ls_pass_share_count(struct ls_pass *pass, int sync, struct ls_error *error);
void ls_pass_merge_count(struct ls_pass *pass, int sync);

/* Moving averages (engine/averages.c): what they become is found before the weights change, and
 * written afterwards by ls_engine_advance_averages. */
int ls_pass_create_averages(struct ls_pass *pass, struct ls_error *error);
void ls_pass_free_averages(struct ls_pass *pass);
int ls_pass_find_averages(struct ls_pass *pass, int64_t iteration, struct ls_error *error);

#endif
