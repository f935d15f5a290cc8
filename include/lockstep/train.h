/* Training, and comparing trainings and snapshots. A part of lockstep/lockstep.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LOCKSTEP_TRAIN_H
#define LOCKSTEP_TRAIN_H

#include <stddef.h>
#include <stdint.h>

#include "lockstep/job.h"
#include "lockstep/net.h"
#include "lockstep/report.h"

#ifdef __cplusplus
extern "C" {
#endif

struct lockstep_train_options {
    size_t struct_size;       /* sizeof(struct lockstep_train_options) */
    struct lockstep_job *job; /* with other ranks; outlives the trainer. NULL: alone */
    int workers;              /* of this rank; 0: lockstep_job_workers(job) */
    /* "generic" "sse41" "avx2" "avx512" "avx512_bf16" "amx": pin it. NULL: what the process
     * computes with already; else that of the snapshot to resume from, where this processor has it;
     * else the best here. The first trainer, model or plan of a process decides, once. */
    const char *isa;
    const char *snapshot_prefix; /* NULL: the solver's, and none are written with dummy data */
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
    /* What computes: "cpu", "reference", plain C that is slow and that other devices are compared
     * with, or cards ("cuda:0,1": lockstep/cards.h). NULL: the card that the solver asks for with
     * solver_mode and device_id, if it is there and no other ranks are in a job; else "cpu". */
    const char *device;
    const char *map; /* the map of names of `weights`, as in lockstep_model_options */
    /* STATISTICS events follow DISPLAYs. They take time and a copy of the weights; no result
     * depends on them. All ranks say the same. */
    int statistics;
    /* A file that gets a trace in Chrome's JSON, which Perfetto (ui.perfetto.dev) shows: what each
     * thread of each rank did when. It is written at the end of lockstep_trainer_run, by rank 0 for
     * all ranks. NULL: none. All ranks say the same. No result depends on it. */
    const char *trace;
    uint64_t trace_limit; /* bytes that each rank remembers for it at most; 0: 16 MiB */
    /* Blobs of the train net and their gradients are kept for lockstep_trainer_read_blob: all of
     * those of an update, copied as they are computed. Not with a job or a limit on memory. No
     * result depends on it. */
    int blobs;
    int data_gradients; /* with `blobs`: the first tops of data layers have gradients, too */
    /* Where lockstep_trainer_run says how the training stands (at most ten seconds old) or ended,
     * as JSON: docs/jobs.md. "": "status.json" beside the snapshots; NULL: nowhere. A job of
     * several processes has lockstep_job_options.status_file in its place. */
    const char *status_file;
    /* Of the weights to start from, what has the net's names is meant: parameters may stay random
     * although a tensor of their shape is left over. 0: that is an error, unless the solver has
     * partial_weights. */
    int partial_weights;
};
/* Fills in the defaults. */
LOCKSTEP_API void lockstep_train_options_init(struct lockstep_train_options *options);

/* The definition that snapshots carry: the solver as it is, with its train net inside of it, as
 * text. It belongs to the solver, until the next call; NULL where it cannot be written. */
LOCKSTEP_API const char *lockstep_solver_text(struct lockstep_solver *solver,
                                              struct lockstep_error *error);

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
 * a snapshot). LOCKSTEP_STOPPED when poll asked to stop; the snapshot is written by then.
 * LOCKSTEP_DIVERGED for a loss or statistics that are not finite: the weights are those of the
 * iteration before. */
LOCKSTEP_API int lockstep_trainer_run(struct lockstep_trainer *trainer, int64_t iterations,
                                      struct lockstep_error *error);

/* `count` updates and nothing else: no tests, no snapshots. An update that fails before it changes
 * weights leaves those of the iteration before; one that fails while it does leaves a trainer that
 * refuses further updates, tests and snapshots. */
LOCKSTEP_API int lockstep_trainer_step(struct lockstep_trainer *trainer, int64_t count,
                                       struct lockstep_error *error);
LOCKSTEP_API int64_t lockstep_trainer_iteration(const struct lockstep_trainer *trainer);
/* Where lockstep_trainer_run ends by itself: max_iter, or what max_epoch makes of it. */
LOCKSTEP_API int64_t lockstep_trainer_iteration_end(const struct lockstep_trainer *trainer);
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

/* Runs test net `index` (of lockstep_trainer_test_count) over its data; the outputs belong to the
 * trainer, until the next call. With weight_average it tests the averages in place of the weights;
 * where a failure keeps it from bringing the weights back, the trainer refuses further updates,
 * tests and snapshots. */
LOCKSTEP_API int lockstep_trainer_evaluate(struct lockstep_trainer *trainer, int index,
                                           const struct lockstep_output **outputs, size_t *count,
                                           struct lockstep_error *error);

/* How many test nets the solver has. */
LOCKSTEP_API size_t lockstep_trainer_test_count(const struct lockstep_trainer *trainer);

/* Writes a snapshot to `path` (NULL: "<prefix>_iter_<N>.safetensors"). */
LOCKSTEP_API int lockstep_trainer_snapshot(struct lockstep_trainer *trainer, const char *path,
                                           struct lockstep_error *error);

/* How many micro-batches each worker of this rank has run since the trainer was made; `counts` has
 * room for `workers` numbers, and gets zeros for workers that there are not. */
LOCKSTEP_API void lockstep_trainer_micro_batches(const struct lockstep_trainer *trainer,
                                                 int64_t *counts, int workers);

/* Learnable parameters, in the net's order; names are "<layer>.weight", "<layer>.bias", ... Where
 * there is no parameter `index` the name is NULL and the size 0. */
LOCKSTEP_API size_t lockstep_trainer_parameter_count(const struct lockstep_trainer *trainer);
LOCKSTEP_API const char *lockstep_trainer_parameter_name(const struct lockstep_trainer *trainer,
                                                         size_t index);
LOCKSTEP_API size_t lockstep_trainer_parameter_size(const struct lockstep_trainer *trainer,
                                                    size_t index); /* elements */
/* Its extents in Caffe's order, to the first of `extent`; returns how many, 0 without a parameter.
 */
LOCKSTEP_API int lockstep_trainer_parameter_shape(const struct lockstep_trainer *trainer,
                                                  size_t index, int64_t extent[LOCKSTEP_AXES_MAX]);
/* Copies a parameter out of or into the trainer, in Caffe's order of elements. `data` has `size`
 * elements, as many as the parameter (else LOCKSTEP_USAGE). Moving averages of weights stay. */
LOCKSTEP_API int lockstep_trainer_read_parameter(const struct lockstep_trainer *trainer,
                                                 size_t index, float *data, size_t size,
                                                 struct lockstep_error *error);
LOCKSTEP_API int lockstep_trainer_write_parameter(struct lockstep_trainer *trainer, size_t index,
                                                  const float *data, size_t size,
                                                  struct lockstep_error *error);
/* The gradient of the last update's data loss with respect to a parameter (before clipping and
 * decay), in Caffe's order of elements; `data` and `size` as above. With a job all ranks call it,
 * and all get it. */
LOCKSTEP_API int lockstep_trainer_read_gradient(const struct lockstep_trainer *trainer,
                                                size_t index, float *data, size_t size,
                                                struct lockstep_error *error);

/* The forward and the backward pass of the update that comes next, without the update: its loss,
 * its gradients and, with options.blobs, its blobs can be read then. Weights, moving averages and
 * the iteration stay, and the update takes the same data. Not with a job (LOCKSTEP_USAGE). */
LOCKSTEP_API int lockstep_trainer_gradients(struct lockstep_trainer *trainer,
                                            struct lockstep_error *error);

/* Blobs of the train net, in its order, with options.blobs (else there are none): those that belong
 * to samples, and figures (losses, accuracies). A blob that several layers write one after the
 * other, in place, is what the last of them leaves. A layer that is computed in one with the next
 * may have no blob that is ever written: it is not among them. */
LOCKSTEP_API size_t lockstep_trainer_blob_count(const struct lockstep_trainer *trainer);
LOCKSTEP_API const char *lockstep_trainer_blob_name(const struct lockstep_trainer *trainer,
                                                    size_t index); /* NULL: there is none */
/* Its extents for all samples of an update (iter_size batches one behind the other, along the axis
 * of samples); returns how many there are: 0 for one number. */
LOCKSTEP_API int lockstep_trainer_blob_shape(const struct lockstep_trainer *trainer, size_t index,
                                             int64_t extent[LOCKSTEP_AXES_MAX]);
/* Whether it has a gradient: the loss depends on it, and the backward pass comes to it (to data it
 * does with options.data_gradients). */
LOCKSTEP_API int lockstep_trainer_blob_has_gradient(const struct lockstep_trainer *trainer,
                                                    size_t index);
/* Copies what the last update has computed (or lockstep_trainer_gradients): a blob or, with
 * `gradient`, the gradient of the update's data loss with respect to it. `size` is the number of
 * its elements (else LOCKSTEP_USAGE, as before the first update). */
LOCKSTEP_API int lockstep_trainer_read_blob(const struct lockstep_trainer *trainer, size_t index,
                                            int gradient, float *data, size_t size,
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
    const int *dynamic; /* as lockstep_job_options.dynamic_balance, 0 and 1; default: 0 */
    size_t dynamic_count;
    const uint64_t *memory; /* limits, of each rank; 0: none (the default), LOCKSTEP_MEMORY_LEAST */
    size_t memory_count;
    int stops;                           /* 0: none */
    int64_t iterations;                  /* updates; < 0: as many as the solver says, at most 50 */
    const char *isa;                     /* as in lockstep_train_options */
    const char *weights;                 /* the same */
    struct lockstep_callbacks callbacks; /* a NOTICE for each training, behind WARNINGs that none
                                            before it gave; poll between two of them. Meanwhile
                                            NOTICEs with `samples` updates done of all
                                            `iteration_end`, which come from another thread where
                                            there are several ranks, while the caller's waits */
    void (*trained)(void *user, const struct lockstep_verified *training); /* may be NULL */
    void *user;                                                            /* for `trained` */
    const char *device; /* as in lockstep_train_options */
    /* Several of these, with other cards each ("cuda:0", "cuda:0,0", "cuda:0,1"), in place of
     * `device` and of `ranks`; default of `workers` is 1 then. */
    const char *const *devices;
    size_t device_count;
};
LOCKSTEP_API void lockstep_verify_options_init(struct lockstep_verify_options *options);
/* LOCKSTEP_DIFFERENT: all trainings were run, and the error names the first update in which the
 * first one that differs does so, parameter, element, and both values (a second run of the two
 * finds them). Snapshots lie in a folder that is made in $TMPDIR or /tmp, and removed. */
LOCKSTEP_API int lockstep_verify(const struct lockstep_solver *solver,
                                 const struct lockstep_verify_options *options,
                                 struct lockstep_error *error);

#ifdef __cplusplus
}
#endif
#endif
