/* A pass: the micro-batches of an update, or of some batches of a test, and what they leave. One
 * per net, reused; engine/step.h and engine/evaluation.h make it run.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_PASS_H
#define LS_ENGINE_PASS_H

#include <pthread.h>
#include <stdatomic.h>

#include "engine/engine.h"
#include "engine/exchange.h"
#include "engine/not_finite.h"
#include "engine/scheduler.h"

struct ls_audit;
struct ls_watch;
struct ls_sample_states;

struct ls_pass {
    struct ls_engine *engine;
    struct ls_net *net;
    struct ls_batch *batches; /* of an update */
    struct ls_micro *micro;   /* of a batch */
    struct ls_unit *units;
    size_t unit_count, unit_capacity;
    struct ls_wave *waves; /* one a batch, or one of all where labels are counted on the way */
    size_t wave_count;
    /* By unit: its record and its lists, in the device's memory, and as they are read; NULL: that
     * is the host's. */
    double *records_there;
    struct ls_pinned records_read;
    double *records; /* by unit: its record, its lists, what was read for it (engine/read.c) */
    /* Doubles of a record, of the lists behind it, and of all for a unit. */
    size_t record_size, list_size, record_stride;
    struct ls_rankings *rankings; /* what a test has found; NULL: nothing is ranked */
    double *total;
    double *normalizers;
    struct ls_exchange *exchange;
    float **averages;           /* by parameter: what moving averages become; NULL for all others */
    struct ls_mirror merged;    /* what is merged for one group, while averages are advanced */
    struct ls_reader **readers; /* [worker][data set]: for what runs before the pass */
    void **before_inputs;       /* [worker][input]; NULL: not looked at before the pass */
    struct ls_sample_states *states; /* per sample; NULL: the net has none */
    struct ls_audit *audit;          /* NULL: nothing is audited */
    const struct ls_watch *watch;    /* of a training; the caller's. NULL: none */
    struct ls_digest *tested;        /* by data set: of all that a test has read, */
    int64_t skipped;                 /* and how many samples' records it has skipped */
    void **blank;                    /* by input: zeros for units whose data cannot be read */

    /* The pass at hand. */
    struct ls_prefetcher *prefetcher;
    const struct ls_prefetch_item **items; /* by unit: held while a wave runs */
    const struct ls_graph **graphs;        /* by unit: of its plan */
    bool training;
    bool reduces;    /* what is contributed goes to other ranks */
    bool resent;     /* sums did not fit 48 bits: the pass is repeated with 64 */
    bool wrong;      /* an audit has found that a micro-batch was computed wrongly, or doubts it */
    size_t diverged; /* the unit that ended a pass as divergence */
    bool updated;    /* the caller's: weights have changed since they were filled or read */
    struct ls_not_finite cause; /* of a test: where its first loss that is not finite came from */
    int *owners;                /* by unit: its rank, with a work queue as soon as that is known */
    struct ls_scheduler scheduler;
    pthread_mutex_t lock; /* guards what is below, and `blank` */
    size_t failed_unit;   /* the first unit that failed, SIZE_MAX: none */
    struct ls_error failure;
    size_t bad_unit; /* the first of this rank's whose data cannot be read; SIZE_MAX: none */
    struct ls_error bad_data;
    size_t broken_unit; /* the first that the device could not compute; SIZE_MAX: none */
    struct ls_error broken;
};

/* Doubles of the lists behind the record of the largest micro-batch: the net's first graph may be
 * that of a smaller one. */
static inline size_t ls_pass_list_size(const struct ls_net *net)
{
    const struct ls_graph *graph = ls_net_graph(net);
    return (size_t)(graph->list_size / graph->samples * ls_batching_largest(&net->batching));
}

static inline double *ls_pass_record(const struct ls_pass *pass, size_t unit)
{
    return pass->records + unit * pass->record_stride;
}

/* Whether a unit is this rank's, or may become so. */
static inline bool ls_pass_may_run(const struct ls_pass *pass, size_t unit)
{
    return pass->units[unit].slot >= 0 || pass->engine->work_queue != NULL;
}

/* Doubles behind the record of each micro-batch, for what it has read (engine/read.h): whether its
 * data are bad, and digests by data set. */
static inline size_t ls_pass_read_size(const struct ls_net *net)
{
    _Static_assert(sizeof(struct ls_digests) % sizeof(double) == 0, "digests as doubles");
    return 1 + (size_t)net->dataset_count * (sizeof(struct ls_digests) / sizeof(double));
}

/* How many micro-batches an update has at most. */
int64_t ls_pass_update_micro_batches(const struct ls_net *net);
/* Batches whose micro-batches are one pass: those of an update, or some of a test. */
int64_t ls_pass_batches(const struct ls_net *net);

/* Memory for the lists and records of a net's passes. What else belongs to it is made by
 * ls_step_create. */
int ls_pass_create(struct ls_engine *engine, struct ls_net *net, struct ls_pass **pass,
                   struct ls_error *error);
void ls_pass_free(struct ls_pass *pass);

/* Micro-batches that are listed. */
size_t ls_pass_units(const struct ls_pass *pass);
/* Empties the list. */
void ls_pass_clear(struct ls_pass *pass);
/* Adds the micro-batches of a batch. *index is the number in the prefetcher of its first one, and
 * becomes that behind its last. */
int ls_pass_add_batch(struct ls_pass *pass, const struct ls_batch *batch, int64_t update,
                      int *index, struct ls_error *error);
/* After the last one: partitions them among the ranks and workers, and makes room for their plans.
 */
int ls_pass_make_ready(struct ls_pass *pass, struct ls_error *error);

/* Begins to run the listed units, and ends it: `finish` returns what went wrong first in their
 * order, or shares the records of all units with the other ranks. */
void ls_pass_begin(struct ls_pass *pass, struct ls_prefetcher *prefetcher, bool training);
int ls_pass_finish(struct ls_pass *pass, struct ls_error *error);
/* Merges the records of units [begin, end) along the binary tree; the result is in the first. */
void ls_pass_merge_records(struct ls_pass *pass, size_t begin, size_t end);

/* A failure keeps workers from beginning a wave. It is noted only where a barrier follows before
 * workers read `failed_unit`, or where no worker waits for another. What the device could not
 * compute may be noted at any time: the pass goes on, and fails when all units have run. */
void ls_pass_note_failure(struct ls_pass *pass, size_t unit, const struct ls_error *error);
void ls_pass_note_broken(struct ls_pass *pass, size_t unit, const struct ls_error *error);
/* For samples with a figure that is not a number: fails if one of them has a bad label. All ranks
 * call it, as all have all figures, and all get the answer of the first rank that finds one. */
int ls_pass_find_bad_label(const struct ls_pass *pass, const struct ls_batch *range,
                           struct ls_error *error);

#endif
