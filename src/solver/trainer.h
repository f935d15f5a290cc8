/* The trainer: nets, data, parameters and the loop that brings them together.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_TRAINER_H
#define LS_SOLVER_TRAINER_H

#include "engine/engine.h"
#include "engine/figures.h"
#include "engine/forecast.h"
#include "lockstep/lockstep.h"
#include "schema/solver.h"
#include "solver/groups.h"
#include "solver/outputs.h"
#include "solver/schedule.h"
#include "solver/statistics.h"

/* Requests from outside (enum lockstep_request), as bits. */
enum ls_wanted {
    LS_SNAPSHOT_WANTED = 1,
    LS_STOP_WANTED = 2,
    LS_SNAPSHOT_FAILED = 4 /* one that had to succeed: rank 0's to all */
};

/* A gradient 2^LS_OUTGREW times as large as any that its parameter has had lately is an early sign
 * of divergence. Signs with at most LS_OUTGREW_GAP updates between them are one event. */
enum { LS_OUTGREW = 8, LS_OUTGREW_GAP = 10 };

/* All ranks of a job compare their weights before and after a trainer's first update, and after
 * every update whose number is a multiple of this. */
enum { LS_COMPARE_EVERY = 100 };

/* A net that is tested between updates. */
struct ls_test {
    struct ls_net *net;
    struct ls_pass *pass;
    struct ls_prefetcher *prefetcher; /* made for the first test and kept; NULL before */
    int64_t batches;                  /* one pass over its data, or test_iter */
    struct ls_digest *digests;        /* by data set: of what the last test has read, if `tested` */
    bool tested;
    bool warned; /* of a loss that is not finite */
};

/* Hashes of the weights every LS_CHAIN_EVERY iterations, each joined to those before; a function of
 * the training alone, and kept in snapshots (solver/chain.c). */
struct ls_chain {
    uint64_t value;
    int64_t begin;    /* iteration at which it begins */
    int64_t linked;   /* iteration of the last link that this trainer has made; -1: none */
    uint64_t weights; /* hash of that link */
};

/* The best value of a figure. */
struct ls_best {
    bool known;
    double value;
};

/* The best value of snapshot_best so far, and what it was before the tests of `iteration`. That is
 * what a snapshot of this iteration holds, whether it is written before the tests or after: a
 * resume repeats them. */
struct ls_best_so_far {
    struct ls_best now, before;
    int64_t iteration;
};

/* The train data as a test, where the solver has test_on_train: the last of the trainer's tests. */
struct ls_train_test {
    bool there;
    Lockstep__NetParameter *net; /* of `definition` */
    struct ls_net_definition definition;
};

/* What decides the bits of a training besides definition, data and seed (solver/environment.h). */
struct ls_numerics {
    char *environment; /* here; owned */
    char *history;     /* the environments that this training has had; owned */
    bool allow_other;  /* a resume may go on in another environment */
    bool isa_taken;    /* the instruction set is the snapshot's, though there are wider ones */
};

/* The figures of the last update and the last test. */
struct ls_trainer_figures {
    double *losses;            /* of the last average_loss updates; [iteration % average_loss] */
    double loss;               /* data loss of the last update */
    double test_loss;          /* of the last evaluation */
    double penalty;            /* as of the last display */
    double rate;               /* learning rate of the last update */
    struct ls_totals totals;   /* of the last update */
    struct ls_outputs outputs; /* of what was shown or tested last */
};

/* How large gradients have been (the trainer looks at it after each pass). */
struct ls_gradient_watch {
    /* When a gradient outgrew its recent past: the last iteration, and the first of those before it
     * with at most LS_OUTGREW_GAP between them; -1: never. */
    int64_t outgrew_first, outgrew_last;
    int64_t repeated; /* updates that were repeated, those that outgrew aside */
};

/* Whether the data are still those that the training began with (solver/data.c). */
struct ls_data_watch {
    struct ls_epochs *epochs;           /* by data set */
    struct ls_cross_read *read;         /* by data set: of one micro-batch */
    struct ls_cross_check *cross_check; /* with other ranks, in the first epoch of a run; or NULL */
    int64_t unchecked;                  /* samples until it ends */
    int64_t skipped; /* samples that this trainer has trained on in the place of bad ones */
    bool mixed;      /* what was trained on has changed: no snapshot is worth keeping */
};

/* When an event of a kind was sent last: rates in the next one are those since then. */
struct ls_event_mark {
    double time;     /* ls_clock; 0: none was sent */
    int64_t samples; /* as in struct ls_trainer */
};

struct ls_timeline;
struct ls_blobs;

struct ls_trainer {
    const struct ls_solver_definition *definition; /* outlives the trainer */
    const Lockstep__SolverParameter *solver;
    uint64_t seed;
    struct lockstep_callbacks callbacks;
    char *prefix; /* of snapshots */
    const struct ls_device *device;
    struct ls_comm *comm;    /* the ranks of the job, the caller's or `alone` */
    char *status_file;       /* NULL: there is none, or the job has it */
    double beaten;           /* when that was written (ls_clock) */
    char last_warning[1024]; /* "": there was none */
    struct ls_comm *alone;   /* of a process by itself; else NULL */
    int *cards;              /* by rank, where the ranks are threads with cards; else NULL */
    struct ls_numerics numerics;
    int workers;
    int64_t micro_batch;              /* as the nets are asked for; 0: the rule */
    struct ls_net **nets;             /* all of them, made when they are fitted */
    size_t memory;                    /* that the caller lets it take; 0: no limit */
    bool elsewhere;                   /* it is planned for other machines than this one */
    struct ls_forecast forecast;      /* what it takes */
    double audited_part;              /* of the micro-batches */
    bool measures;                    /* statistics of parameters */
    struct ls_statistics *statistics; /* NULL: they are not wanted */
    bool keeps_blobs, finds_data_gradients;
    struct ls_net_definition watched; /* that of the train net, whose blobs are measured */
    struct ls_blobs *blobs;           /* NULL: they are not kept */
    char *trace_path;
    struct ls_timeline *trace; /* NULL: nothing is recorded */
    size_t trace_bytes;        /* that it may take */

    struct ls_parameter_set *parameters;
    size_t train_parameters; /* of these, the first ones: those of the train net */
    struct ls_view_set views;
    struct ls_engine *engine;
    struct ls_store *store;
    struct ls_net *train;
    struct ls_pass *train_pass;
    struct ls_prefetcher *prefetcher;
    struct ls_prefetch_memory decoded; /* samples, of whatever net runs */
    struct ls_test *tests; /* the solver's test nets, then the train data if test_on_train */
    size_t test_count;
    struct ls_train_test train_test;

    struct ls_schedule schedule;
    struct ls_groups *groups; /* of parameters: the rules of the update at hand */

    int64_t iteration;     /* updates done */
    int64_t run_end;       /* where this run ends, at most schedule.max_iter */
    bool prefetcher_ready; /* the prefetcher stands at `iteration` */
    bool compared;         /* ranks have compared the weights that they began with */
    bool torn;             /* a failure has left some weights changed and some not */
    struct ls_trainer_figures figures;
    struct ls_chain chain;
    struct ls_best_so_far best;
    struct ls_gradient_watch gradients;
    struct ls_data_watch data;

    uint32_t wanted;     /* enum ls_wanted: requests that all ranks know of, not yet answered */
    uint32_t *answers;   /* by rank: what was wanted, during a test */
    int64_t snapshot_at; /* iteration of the last snapshot; -1: none yet */
    struct ls_snapshots *snapshots;
    char *course; /* LS_NOTE_COURSE, on rank 0; NULL: unchanged */
    bool goes_on; /* rank 0: the snapshots of the prefix are this training's own */

    /* (optional) Called by all ranks after each update that ls_trainer_run makes (verification). */
    int (*after_update)(void *user, struct ls_error *error);
    void *after_update_user;

    struct ls_event_mark progress, display;
    int64_t samples; /* that it has trained on */
};

int ls_trainer_create(const struct ls_solver_definition *definition,
                      const struct lockstep_train_options *options, struct ls_trainer **trainer,
                      struct ls_error *error);
/* The same as one of a job's ranks: all of them call it. `comm` outlives the trainer; NULL: a
 * process by itself.
 */
int ls_trainer_join(const struct ls_solver_definition *definition,
                    const struct lockstep_train_options *options, struct ls_comm *comm,
                    struct ls_trainer **trainer, struct ls_error *error);
void ls_trainer_free(struct ls_trainer *trainer);

/* One update. Where it fails while weights change, they are torn: updates, tests and snapshots fail
 * from then on. Before that a failure leaves those of the iteration before. */
int ls_trainer_update(struct ls_trainer *trainer, struct ls_error *error);
/* The gradients of the update that comes next, and nothing else; for a process by itself. */
int ls_trainer_gradients(struct ls_trainer *trainer, struct ls_error *error);
/* Fails if the weights are torn. */
int ls_trainer_check_whole(const struct ls_trainer *trainer, struct ls_error *error);
/* Exchanges weights and their averages; a second call brings them back. Where it fails, the weights
 * are torn. Views are not refreshed. */
int ls_trainer_swap_average(struct ls_trainer *trainer, struct ls_error *error);

#endif
