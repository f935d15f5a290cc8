/* Lockstep: data-parallel training of neural networks whose result does not depend on how many
 * workers computed it.
 *
 * The trained model is a function of the definition (prototxt in Caffe's language and its
 * extensions), the data and the seed. This header is the whole public interface; the command
 * line is written with nothing else.
 *
 * Conventions
 *   - A function that can fail returns an `enum lockstep_status` (0 is success) and describes the
 *     failure in its last argument, which may be NULL. Nothing is printed; nothing exits.
 *   - Objects are made by `..._load`, `..._create` or `..._new` and released by the `..._free` of
 *     the same name, which accepts NULL. On failure the result is set to NULL.
 *   - Strings are UTF-8, NUL-terminated, and belong to the object that returned them.
 *   - An object is used by one thread at a time; different objects are independent.
 *   - What the calling thread has set (rounding, floating-point traps, denormals, OpenMP's threads,
 *     the locale) does not change results and is there again afterwards; callbacks see it, too.
 *   - Tensors are fp32 in Caffe's order: samples, channels, height, width.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LOCKSTEP_LOCKSTEP_H
#define LOCKSTEP_LOCKSTEP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define LOCKSTEP_API __attribute__((visibility("default")))
#else
#define LOCKSTEP_API
#endif

/* ---- Statuses and errors ---------------------------------------------------------------- */

/* What a function returns; also the exit codes of the command line. */
enum lockstep_status {
    LOCKSTEP_OK = 0,
    LOCKSTEP_INTERNAL = 1,   /* a mistake of ours */
    LOCKSTEP_USAGE = 2,      /* arguments that make no sense */
    LOCKSTEP_DEFINITION = 3, /* the net or the solver */
    LOCKSTEP_DATA = 4,       /* a data source or a record of it */
    LOCKSTEP_WEIGHTS = 5,    /* weights or a snapshot */
    LOCKSTEP_DIVERGED = 6,   /* a loss or gradient that is not finite */
    LOCKSTEP_RESOURCE = 7,   /* out of memory or disk */
    LOCKSTEP_DIFFERENT = 8,  /* verify, ranks of a job, audits or replay found different bytes */
    LOCKSTEP_LOST = 9,       /* another rank of the job failed, or is not heard of */
    LOCKSTEP_STOPPED = 75    /* stopped by request, with a snapshot to resume from */
};

/* Why a call failed: one or more problems, each with its place, a message and a hint. */
struct lockstep_error;
LOCKSTEP_API struct lockstep_error *lockstep_error_new(void); /* NULL: out of memory */
LOCKSTEP_API void lockstep_error_free(struct lockstep_error *error);
LOCKSTEP_API int lockstep_error_status(const struct lockstep_error *error);
/* All problems, one a line: "net.prototxt:12:5: message. hint: ...". "" without any. */
LOCKSTEP_API const char *lockstep_error_text(struct lockstep_error *error);

/* The version of the numerical contract (docs/numerics.md). It is raised when a bit of any trained
 * model changes on purpose, with a line in the CHANGELOG. Versions of Lockstep with the same number
 * train the same bits in the same numeric environment. */
#define LOCKSTEP_NUMERICS 2

/* "0.1.0" */
LOCKSTEP_API const char *lockstep_version(void);
/* LOCKSTEP_NUMERICS as the library was built with. */
LOCKSTEP_API int lockstep_numerics(void);
/* What the library is built on and what it found here: versions, instruction set; many lines. */
LOCKSTEP_API const char *lockstep_build_info(void);
/* How many workers a run uses unless told otherwise: the cores that this process may use. */
LOCKSTEP_API int lockstep_default_workers(void);

/* ---- Definitions ------------------------------------------------------------------------- */

/* A solver with its nets, parsed and checked. */
struct lockstep_solver;

/* Reads a solver prototxt and the nets that it names. `set` holds `set_count` strings
 * "field=value" that override solver fields, in the text format's notation ("base_lr=0.02"). */
LOCKSTEP_API int lockstep_solver_load(const char *path, const char *const *set, size_t set_count,
                                      struct lockstep_solver **solver,
                                      struct lockstep_error *error);
LOCKSTEP_API void lockstep_solver_free(struct lockstep_solver *solver);

/* ---- What a run reports ------------------------------------------------------------------ */

enum lockstep_event_kind {
    LOCKSTEP_EVENT_START,    /* text: one line of what matters about this run; many of them */
    LOCKSTEP_EVENT_WARNING,  /* text */
    LOCKSTEP_EVENT_NOTICE,   /* text: something worth a line in the log (an update repeated ...) */
    LOCKSTEP_EVENT_PROGRESS, /* after every update: iteration, loss, learning_rate, ... */
    LOCKSTEP_EVENT_DISPLAY,  /* every `display` iterations: as PROGRESS, and outputs */
    LOCKSTEP_EVENT_TEST,     /* a finished test phase: test_net, outputs, samples */
    LOCKSTEP_EVENT_SNAPSHOT, /* text: the file that was written */
    LOCKSTEP_EVENT_END,      /* training is done */
    LOCKSTEP_EVENT_RUN,      /* run: the facts of this run as figures; once, before START */
    LOCKSTEP_EVENT_AUDIT,    /* text, audit: a core has computed wrongly (see options.audit) */
    LOCKSTEP_EVENT_HASH      /* weights_hash, chain: every 20 iterations; with a text at the end */
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
};

/* An output of a net: a loss, an accuracy, figures per class. */
struct lockstep_output {
    const char *name;     /* the blob's name */
    const double *values; /* `count` figures, in order */
    size_t count;
    double loss_weight; /* 0: not part of the loss */
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

/* ---- Jobs of several processes ----------------------------------------------------------- */

/* The processes (ranks) that a launcher of MPI has started together: mpirun of Open MPI or of
 * MPICH, srun. They train one net together; each has its own workers. Functions that say so are
 * called by all ranks, in the same order; what one of them finds wrong, all of them return then.
 *
 * A rank that dies, hangs or fails by itself ends the job on all ranks, so that none waits for
 * ever. That is the one case in which the library ends the process, after `failed` was called on
 * the rank that reports it (rank 0, if it lives). */
struct lockstep_job;

struct lockstep_job_options {
    size_t struct_size;  /* sizeof(struct lockstep_job_options) */
    double timeout;      /* seconds after which a rank that is silent or hangs is lost; 0: never */
    int dynamic_balance; /* micro-batches go to who is free, instead of by the number of workers.
                            The result is the same */
    /* Where rank 0 says how the job stands or ended, as JSON ("status": "running", "finished",
     * "stopped" or "failed"); NULL: "status.json" beside the snapshots. */
    const char *status_file;
    /* Told why the job will be ended now: from any thread, at most once. `text` may have several
     * lines; each names the rank and its host. NULL: they go to stderr. */
    void (*failed)(void *user, int status, const char *text);
    void *user;
};
/* Fills in the defaults: a timeout of 300 seconds. */
LOCKSTEP_API void lockstep_job_options_init(struct lockstep_job_options *options);

/* How many processes the launcher has started, by its environment alone; *rank (may be NULL) is
 * this one's number. 1: this process was started by itself, or that does not show there. */
LOCKSTEP_API int lockstep_job_launched(int *rank);

/* Joins the job that this process was started in, once in a process; waits for its other ranks. All
 * ranks call it, from the thread that will close it. *job is NULL, and the result 0, where the
 * process was started by itself: then the functions below take NULL. LOCKSTEP_RESOURCE where there
 * is no module for the launcher's MPI library; LOCKSTEP_DIFFERENT where another rank runs another
 * version. */
LOCKSTEP_API int lockstep_job_open(const struct lockstep_job_options *options,
                                   struct lockstep_job **job, struct lockstep_error *error);
LOCKSTEP_API int lockstep_job_rank(const struct lockstep_job *job); /* NULL: 0 */
LOCKSTEP_API int lockstep_job_size(const struct lockstep_job *job); /* NULL: 1 */
/* How many workers this rank uses unless told otherwise: its part of the cores that it may use,
 * where other ranks of the same machine may use them, too. NULL: lockstep_default_workers(). */
LOCKSTEP_API int lockstep_job_workers(const struct lockstep_job *job);

/* All ranks: who failed? Each hands in how a step went for it that it did by itself, with its
 * error. Returns the status of the first rank for which it was not 0; where that is another one,
 * `error` gets what it said. */
LOCKSTEP_API int lockstep_job_agree(struct lockstep_job *job, int status,
                                    struct lockstep_error *error);
/* Something may have happened, as a signal says: the next look at the other ranks is taken soon.
 * May be called by a signal's handler. */
LOCKSTEP_API void lockstep_job_poll_soon(struct lockstep_job *job);

/* All ranks: the end of this rank's work, with the status and the error (may be NULL) that it ended
 * with. Waits for the others and frees the job; trainers must be freed before. Returns the status
 * of the first rank that has one that is not 0: what all should exit with. A rank that comes here
 * with a failure while others never come ends the job. */
LOCKSTEP_API int lockstep_job_close(struct lockstep_job *job, int status,
                                    struct lockstep_error *error);

/* ---- Training ---------------------------------------------------------------------------- */

struct lockstep_train_options {
    size_t struct_size;       /* sizeof(struct lockstep_train_options) */
    struct lockstep_job *job; /* with other ranks; outlives the trainer. NULL: alone */
    int workers;              /* of this rank; 0: lockstep_job_workers(job) */
    /* "sse41" "avx2" "avx512": pin it. NULL: what the process computes with already; else that of
     * the snapshot to resume from, where this processor has it; else the best here. The first
     * trainer, model or plan of a process decides, once. */
    const char *isa;
    const char *snapshot_prefix; /* NULL: the solver's */
    const char *resume;          /* a snapshot, "auto", or NULL */
    const char *weights;         /* files to start from, separated by commas, or NULL */
    uint64_t memory; /* bytes that the process may take (its own, without mapped files and the data
                        cache); 0: no limit. Recomputes to fit; never changes a result */
    struct lockstep_callbacks callbacks;
    /* This part of the micro-batches, 0 to 1, is computed a second time, by another worker or rank
     * if there is one, and compared bit by bit before the update is committed. What was wrong is
     * computed anew, and an event says where. Costs that part of the computation; never changes a
     * result. */
    double audit;
    /* A snapshot that cannot be written (a disk that is full) ends the training, with
     * LOCKSTEP_RESOURCE. 0: it is a WARNING, and training goes on to the next one; only the last
     * snapshot before the end, or before a stop, must succeed. */
    int snapshot_required;
    /* Training may begin anew where snapshots of an earlier run are, and write over them. 0: that
     * is an error of lockstep_trainer_run (LOCKSTEP_USAGE), before anything is changed. */
    int overwrite;
    /* A resume goes on although the snapshot was made in another numeric environment (instruction
     * set, version of oneDNN, caches, version of the numerical contract ...), with other bits; all
     * snapshots from there on name both. 0: that is an error (LOCKSTEP_DIFFERENT). */
    int allow_other_numerics;
};
/* Fills in the defaults. */
LOCKSTEP_API void lockstep_train_options_init(struct lockstep_train_options *options);

/* With a job, all ranks make the same trainer and call the same functions of it in the same order,
 * but for those that only tell what it has: its iteration, its loss, counts of micro-batches, and
 * names, sizes and values of parameters (not their gradients). Only rank 0 gets events and writes
 * files; it alone needs to see snapshots and weights. `poll` is asked on all ranks, and what one of
 * them wants all do, after the same update. Ranks must have the same definition, data, version and
 * numeric environment (LOCKSTEP_DIFFERENT says what differs); workers and memory are each rank's
 * own affair. */
struct lockstep_trainer;

/* Builds nets, opens data, fills or reads weights. Everything that can be known to be wrong before
 * the first iteration is reported here. The trainer keeps its own reference to what it needs of
 * `solver`, which may be freed. */
LOCKSTEP_API int lockstep_trainer_create(const struct lockstep_solver *solver,
                                         const struct lockstep_train_options *options,
                                         struct lockstep_trainer **trainer,
                                         struct lockstep_error *error);
LOCKSTEP_API void lockstep_trainer_free(struct lockstep_trainer *trainer);

/* The whole training: tests, displays and snapshots where the solver wants them, until max_iter,
 * or until `iterations` updates in total if that is >= 0 (which changes no schedule and ends with
 * a snapshot). LOCKSTEP_STOPPED when poll asked to stop; the snapshot is written by then. */
LOCKSTEP_API int lockstep_trainer_run(struct lockstep_trainer *trainer, int64_t iterations,
                                      struct lockstep_error *error);

/* `count` updates and nothing else: no tests, no snapshots. */
LOCKSTEP_API int lockstep_trainer_step(struct lockstep_trainer *trainer, int64_t count,
                                       struct lockstep_error *error);
LOCKSTEP_API int64_t lockstep_trainer_iteration(const struct lockstep_trainer *trainer);
/* The data loss of the last update. */
LOCKSTEP_API double lockstep_trainer_loss(const struct lockstep_trainer *trainer);

/* The hash of all weights and averages as they are now: the same for the same bits, on any number
 * of workers and ranks, in one numeric environment. */
LOCKSTEP_API int lockstep_trainer_hash(struct lockstep_trainer *trainer, uint64_t *hash,
                                       struct lockstep_error *error);
/* Every 20 iterations that hash is joined to the chain: chain = hash(chain before, iteration, hash
 * of the weights). So two trainings with the same chain had the same weights at each link. It goes
 * on after a resume: snapshots hold it. Returns the iteration of the last link that this trainer
 * has made, -1: none; *weights (may be NULL) is the hash of that link, *chain the chain now, *begin
 * (may be NULL) the iteration that it begins at. */
LOCKSTEP_API int64_t lockstep_trainer_chain(const struct lockstep_trainer *trainer,
                                            uint64_t *weights, uint64_t *chain, int64_t *begin);

/* Runs test net `index` over its data; the outputs belong to the trainer, until the next call. */
LOCKSTEP_API int lockstep_trainer_evaluate(struct lockstep_trainer *trainer, int index,
                                           const struct lockstep_output **outputs, size_t *count,
                                           struct lockstep_error *error);

/* Writes a snapshot to `path` (NULL: "<prefix>_iter_<N>.safetensors"). */
LOCKSTEP_API int lockstep_trainer_snapshot(struct lockstep_trainer *trainer, const char *path,
                                           struct lockstep_error *error);

/* How many micro-batches each worker has run since the trainer was made (for tests and the
 * curious); `counts` has room for `workers` numbers. */
LOCKSTEP_API void lockstep_trainer_micro_batches(const struct lockstep_trainer *trainer,
                                                 int64_t *counts, int workers);

/* Learnable parameters, in the net's order; names are "<layer>.weight", "<layer>.bias", ... */
LOCKSTEP_API size_t lockstep_trainer_parameter_count(const struct lockstep_trainer *trainer);
LOCKSTEP_API const char *lockstep_trainer_parameter_name(const struct lockstep_trainer *trainer,
                                                         size_t index);
LOCKSTEP_API size_t lockstep_trainer_parameter_size(const struct lockstep_trainer *trainer,
                                                    size_t index); /* elements */
/* Copies a parameter out of or into the trainer, in Caffe's order of elements. */
LOCKSTEP_API int lockstep_trainer_read_parameter(const struct lockstep_trainer *trainer,
                                                 size_t index, float *data, size_t size,
                                                 struct lockstep_error *error);
LOCKSTEP_API int lockstep_trainer_write_parameter(struct lockstep_trainer *trainer, size_t index,
                                                  const float *data, size_t size,
                                                  struct lockstep_error *error);
/* The gradient of the last update's data loss with respect to a parameter (before clipping and
 * decay), in Caffe's order of elements. */
LOCKSTEP_API int lockstep_trainer_read_gradient(const struct lockstep_trainer *trainer,
                                                size_t index, float *data, size_t size,
                                                struct lockstep_error *error);

/* Verification: whether this training keeps the promise. It is run in several forms that must not
 * matter, one after the other: each number of workers with each number of ranks (threads of this
 * process that speak as processes would), each balance, and each limit on memory. With `stops`
 * all of them run once more, each stopped so often after updates drawn from the seed, freed, and
 * resumed from its snapshot in another of the forms. Tests and snapshots are made where the solver
 * wants them. Compared with the first training, byte for byte: losses, metrics and divisors of each
 * update; weights, averages, what the optimizer remembers and exponents after it; figures of tests;
 * and the last snapshot's file. */
#define LOCKSTEP_MEMORY_LEAST    UINT64_MAX /* in place of a limit: the least that it can do with */
#define LOCKSTEP_TRAININGS_LIMIT 256        /* of a verification */
struct lockstep_verified {
    const char *training; /* "2 ranks of 3 workers, dynamic, least memory"; valid in the call */
    const char *hash;     /* SHA-256 of all tensors of the last snapshot, 64 digits; as above */
    int64_t iterations;   /* updates */
    double seconds;
    int same;    /* as the first one, in all that is compared; of the first one 1 */
    int library; /* oneDNN computes a part: with another instruction set the bits may be others */
};
struct lockstep_verify_options {
    size_t struct_size;
    /* Lists; one without entries is the default. */
    const int *workers; /* of each rank; default: 1, 2, 3 */
    size_t worker_count;
    const int *ranks; /* default: 1 */
    size_t rank_count;
    const int *dynamic; /* where there are several ranks: 0 shared out, 1 who is free; default: 0 */
    size_t dynamic_count;
    const uint64_t *memory; /* limits, of each rank; 0: none (the default), LOCKSTEP_MEMORY_LEAST */
    size_t memory_count;
    int stops;                           /* 0: none */
    int64_t iterations;                  /* updates; < 0: as many as the solver says, at most 50 */
    const char *isa;                     /* as in lockstep_train_options */
    const char *weights;                 /* the same */
    struct lockstep_callbacks callbacks; /* a NOTICE for each training, behind WARNINGs that none
                                            before it gave; poll between two of them */
    void (*trained)(void *user, const struct lockstep_verified *training); /* may be NULL */
    void *user;                                                            /* for `trained` */
};
LOCKSTEP_API void lockstep_verify_options_init(struct lockstep_verify_options *options);
/* LOCKSTEP_DIFFERENT: all trainings were run, and the error names the first update in which the
 * first one that differs does so, parameter, element, and both values (a second run of the two
 * finds them). Snapshots lie in a folder that is made in $TMPDIR or /tmp, and removed. */
LOCKSTEP_API int lockstep_verify(const struct lockstep_solver *solver,
                                 const struct lockstep_verify_options *options,
                                 struct lockstep_error *error);

/* Compares two snapshots (or other safetensors files) and tells what differs, a line each: tensors
 * with how many elements and the first of them, fields of the definition, notes. 0 where all
 * tensors are the same, whatever the notes; LOCKSTEP_DIFFERENT where they are not. */
LOCKSTEP_API int lockstep_diff(const char *first, const char *second,
                               void (*tell)(void *user, const char *line), void *user,
                               struct lockstep_error *error);

/* ---- Using a trained net ----------------------------------------------------------------- */

struct lockstep_model_options {
    size_t struct_size;
    int workers;     /* 0: lockstep_default_workers() */
    const char *isa; /* as in lockstep_train_options */
    int level;       /* the net's state, for include and exclude rules */
    const char *const *stages;
    size_t stage_count;
    int64_t iterations; /* lockstep_model_test: batches to test; 0: every sample once */
    uint64_t memory;    /* as in lockstep_train_options */
    struct lockstep_callbacks callbacks;
};
LOCKSTEP_API void lockstep_model_options_init(struct lockstep_model_options *options);

/* A net in its test phase with weights. */
struct lockstep_model;

/* `path` is a net prototxt (train-and-test or deploy form), or a solver's; `weights` a snapshot, a
 * safetensors file or a caffemodel (several, separated by commas). */
LOCKSTEP_API int lockstep_model_load(const char *path, const char *weights,
                                     const struct lockstep_model_options *options,
                                     struct lockstep_model **model, struct lockstep_error *error);
LOCKSTEP_API void lockstep_model_free(struct lockstep_model *model);

/* Runs the net over its own data. The outputs belong to the model until its next call. A loss that
 * is not finite is LOCKSTEP_DIVERGED; the outputs are given then, too. */
LOCKSTEP_API int lockstep_model_test(struct lockstep_model *model,
                                     const struct lockstep_output **outputs, size_t *count,
                                     int64_t *samples, struct lockstep_error *error);

/* The shape that one input sample has after transformation (channels, height, width). */
LOCKSTEP_API void lockstep_model_input_shape(const struct lockstep_model *model, int64_t shape[3]);
/* Numbers a sample yields: the size of the prediction (for a classifier, one per class). */
LOCKSTEP_API size_t lockstep_model_output_size(const struct lockstep_model *model);
/* Positions that these numbers are for: 1 for a classifier; height x width where every position of
 * a picture is classified, and the output is one map after the other, class by class. */
LOCKSTEP_API size_t lockstep_model_output_positions(const struct lockstep_model *model);
/* The name of a class, from the weights file; NULL if it is not known. */
LOCKSTEP_API const char *lockstep_model_class_name(const struct lockstep_model *model,
                                                   size_t index);

/* `count` samples of input (already transformed) to `count` x output_size numbers: the values of
 * the layer before the loss, through a softmax where the loss has one. */
LOCKSTEP_API int lockstep_model_predict(struct lockstep_model *model, const float *input,
                                        size_t count, float *output, struct lockstep_error *error);
/* Reads a JPEG or PNG picture, resizes and transforms it as the test phase's data layer would, and
 * predicts. */
LOCKSTEP_API int lockstep_model_predict_picture(struct lockstep_model *model, const char *path,
                                                float *output, struct lockstep_error *error);
/* The index-th sample of the test phase's data: pixels before transformation (channels, height,
 * width, 0..255; three channels are red, green, blue; `pixels` has room for what `shape` says and
 * may be NULL), its label, and the prediction (`output` may be NULL). */
LOCKSTEP_API int lockstep_model_predict_sample(struct lockstep_model *model, int64_t index,
                                               int64_t shape[3], float *pixels, int *label,
                                               float *output, struct lockstep_error *error);
/* Samples in the test phase's data; 0 if the net has no data layer. */
LOCKSTEP_API int64_t lockstep_model_sample_count(const struct lockstep_model *model);

/* Writes the model's weights: a caffemodel where `path` ends so, else safetensors. */
LOCKSTEP_API int lockstep_model_save(struct lockstep_model *model, const char *path,
                                     struct lockstep_error *error);

/* ---- Plans ------------------------------------------------------------------------------- */

struct lockstep_plan_options {
    size_t struct_size;
    int workers;     /* 0: lockstep_default_workers() */
    const char *isa; /* as in lockstep_train_options */
    uint64_t memory; /* as in lockstep_train_options */
    int level;       /* lockstep_plan_model: as in lockstep_model_options */
    const char *const *stages;
    size_t stage_count;
};
LOCKSTEP_API void lockstep_plan_options_init(struct lockstep_plan_options *options);

/* What a training or a test will do and take, known before anything large is allocated. */
struct lockstep_plan;

/* Bytes of a layer: activations for one micro-batch, what is learned once. */
struct lockstep_plan_layer {
    const char *name, *type;
    uint64_t output;     /* what its tops hold, in place or not */
    uint64_t kept;       /* of what it writes, what stays for the backward pass */
    uint64_t scratch;    /* the most that one of its steps needs for itself */
    uint64_t parameters; /* its own; those that it shares are the owner's */
    uint64_t views;      /* copies of its parameters in other layouts */
    uint64_t gradients;  /* exact sums */
    uint64_t state;      /* what the optimizer remembers, and averages of the weights */
};

/* A step, in the order in which a worker does them. */
struct lockstep_plan_step {
    const char *layer;          /* NULL: none */
    const char *op;             /* "convolution backward data" */
    const char *implementation; /* "jit:avx512_core" */
    const char *layout;         /* of what it writes first; NULL: nothing */
    uint64_t scratch;           /* bytes */
    int backward;               /* part of the backward pass */
    int slow;                   /* a reference path */
    int reorder;                /* changes nothing but a layout */
    int recomputed;             /* computes again what was not kept */
    int sync;                   /* other micro-batches are waited for here */
    int gathered;               /* all workers share it, for the rows of all micro-batches */
    /* A chain begins: this step and those behind it, so many in all, are done together, some
     * channels at a time, so that they find in the caches what they share. 0: none begins. */
    size_t chain;
    int64_t channels; /* of a chain: at a time */
    int library; /* oneDNN computes it: its bits depend on the CPU's type and oneDNN's version */
};

/* A net of the plan. Its steps and layers are for a whole micro-batch. */
struct lockstep_plan_net {
    const char *name; /* "train", "test", "test #1" */
    int training;     /* with a backward pass */
    int64_t batch, micro_batch, micro_batches;
    const struct lockstep_plan_layer *layers;
    size_t layer_count;
    const struct lockstep_plan_step *steps;
    size_t step_count;
    size_t segments;        /* runs of steps between sync points that others are waited for at */
    uint64_t arena;         /* bytes of the arena that it takes of a worker */
    uint64_t stashed;       /* bytes that each micro-batch of a batch keeps across sync points */
    uint64_t scratch;       /* bytes of the largest step */
    double recomputed_part; /* work of recomputations as a part of all other */
    /* Layers with steps that oneDNN computes, in order. Where there are none, the bits are the same
     * on all processors for which the same kernels are chosen, and with every oneDNN. */
    const char *const *library_layers;
    size_t library_layer_count;
};

/* Where memory goes, in bytes. */
struct lockstep_plan_memory {
    int workers, stashes;    /* stashes: micro-batches that keep something across sync points */
    uint64_t arena, stashed; /* of each worker, of each stash */
    uint64_t parameters, views, gradients, state, averages;
    uint64_t statistics; /* sync points and records of micro-batches */
    uint64_t data;       /* samples decoded ahead */
    uint64_t snapshot;   /* while one is written */
    uint64_t code;       /* plans and kernels' code */
    uint64_t runtime;    /* libraries, threads */
    uint64_t total;      /* of all these */
    uint64_t cache;      /* decoded data that are kept, apart from the total */
    uint64_t limit;      /* lockstep_plan_options.memory */
};

/* Plans a training with its tests, or the test of a net (prototxt, or a solver's).
 * LOCKSTEP_RESOURCE where it does not fit `memory`: the error says what would. */
LOCKSTEP_API int lockstep_plan_training(const struct lockstep_solver *solver,
                                        const struct lockstep_plan_options *options,
                                        struct lockstep_plan **plan, struct lockstep_error *error);
LOCKSTEP_API int lockstep_plan_model(const char *path, const struct lockstep_plan_options *options,
                                     struct lockstep_plan **plan, struct lockstep_error *error);
LOCKSTEP_API void lockstep_plan_free(struct lockstep_plan *plan);

/* What these return belongs to the plan, with all that it points at, until lockstep_plan_free. */
LOCKSTEP_API const struct lockstep_plan_memory *
lockstep_plan_memory(const struct lockstep_plan *plan);
LOCKSTEP_API size_t lockstep_plan_net_count(const struct lockstep_plan *plan);
/* In a training net 0 is the train net, test nets follow. NULL where there is no net `index`. */
LOCKSTEP_API const struct lockstep_plan_net *lockstep_plan_net(const struct lockstep_plan *plan,
                                                               size_t index);
/* The largest batch of net `index` that fits `memory`, with the micro_batch that it has: of the
 * train net while training, of a test net when that is tested alone. 0: none does. *bounded is 0
 * where memory does not limit it, and *batch is the largest that there can be then. */
LOCKSTEP_API int lockstep_plan_largest_batch(struct lockstep_plan *plan, size_t index,
                                             uint64_t memory, int64_t *batch, int *bounded,
                                             struct lockstep_error *error);

/* ---- Where the time goes ----------------------------------------------------------------- */

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
    double overhead; /* all else within the workers' jobs: norms of gradients, taking work */
    struct lockstep_probe before, after; /* of as many cores as there are workers */
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

/* ---- Plans for many ranks ---------------------------------------------------------------- */

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
};
/* Links of 10 Gbit/s with 20 us, and 1 us a message. */
LOCKSTEP_API void lockstep_scaling_options_init(struct lockstep_scaling_options *options);

/* Bytes that a rank hands to others. */
struct lockstep_traffic {
    uint64_t sums;    /* gradients, to those who update them */
    uint64_t weights; /* what these made of them, to all */
    uint64_t factors; /* of large inner products, whose gradients and weights stay at home */
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

/* ---- Data tools -------------------------------------------------------------------------- */

struct lockstep_source_options {
    size_t struct_size;
    const char *backend;       /* "LMDB" "IDX" "CIFAR" "IMAGES" "SYNTHETIC" */
    const char *const *source; /* files or folders, as `data_param.source` */
    size_t source_count;
    const char *label_source;        /* IDX: the labels; else NULL */
    const char *root_folder;         /* IMAGES with a list file: put before each path; else NULL */
    int resize_height, resize_width; /* IMAGES; 0: as they are */
    int gray;                        /* IMAGES: one channel */
    int shuffle;                     /* convert: in a random order of `seed` */
    int64_t seed;
    const char *split; /* "train:0.9" and the like, or NULL */
    struct lockstep_callbacks callbacks;
};
LOCKSTEP_API void lockstep_source_options_init(struct lockstep_source_options *options);
/* Writes every record of a source into a new LMDB database of Caffe's Datum records. */
LOCKSTEP_API int lockstep_convert(const struct lockstep_source_options *source, const char *path,
                                  int64_t *records, struct lockstep_error *error);
/* Writes the mean over all records as a binaryproto that Caffe reads; `channel_means` (room for
 * 16, may be NULL) gets the mean of each channel, and *channels their number. */
LOCKSTEP_API int lockstep_mean(const struct lockstep_source_options *source, const char *path,
                               double *channel_means, int *channels, struct lockstep_error *error);

/* A record that cannot be trained on or tested with, and a source that was read to its end. `net`
 * is "train", "test" or "test #1"; `name` is that of a picture or key, or empty. Strings live as
 * long as the call of the callback. */
struct lockstep_bad_record {
    const char *net, *layer, *source, *name, *reason;
    int64_t record;
};
struct lockstep_checked_source {
    const char *net, *layer, *source;
    int64_t records, bad;
    int64_t skippable; /* bad ones in whose place on_bad_record: SKIP would put others */
    double seconds;
};
struct lockstep_check_options {
    size_t struct_size;
    int threads; /* that read; 0: as many as there are cores */
    void *user;  /* for the two below, which may be NULL */
    void (*bad)(void *user, const struct lockstep_bad_record *record);
    void (*source)(void *user, const struct lockstep_checked_source *source);
    struct lockstep_callbacks callbacks; /* progress as that of lockstep_convert */
};
LOCKSTEP_API void lockstep_check_options_init(struct lockstep_check_options *options);
/* Reads every record of every data layer of a solver's nets, or of a net's test phase, once, as
 * training or testing would, and tells of each that is bad: cannot be read or decoded, has a size
 * that does not fit, or a label that is no class of a layer that takes it. LOCKSTEP_DATA if there
 * are any, or if a source cannot be opened at all; LOCKSTEP_DEFINITION where records differ in size
 * and the net has layers that cannot take some of the sizes (all are named, with a record). */
LOCKSTEP_API int lockstep_check(const struct lockstep_solver *solver,
                                const struct lockstep_check_options *options,
                                struct lockstep_error *error);
LOCKSTEP_API int lockstep_check_model(const char *path,
                                      const struct lockstep_check_options *options,
                                      struct lockstep_error *error);

#ifdef __cplusplus
}
#endif
#endif
