/* Jobs of several processes. A part of lockstep/lockstep.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LOCKSTEP_JOB_H
#define LOCKSTEP_JOB_H

#include <stddef.h>
#include <stdint.h>

#include "lockstep/base.h"

#ifdef __cplusplus
extern "C" {
#endif

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
    int dynamic_balance; /* micro-batches go to ranks as they get free, instead of by the number of
                            workers. The result is the same */
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

/* All ranks: agrees on the status of a step that each did by itself. Each passes its own, with its
 * error. Returns the status of the first rank that failed, or 0; where another rank failed, `error`
 * gets what it said, with its name. */
LOCKSTEP_API int lockstep_job_agree(struct lockstep_job *job, int status,
                                    struct lockstep_error *error);
/* Something may have happened, as a signal says: the failure detector checks the other ranks soon.
 * May be called by a signal's handler. */
LOCKSTEP_API void lockstep_job_poll_soon(struct lockstep_job *job);

/* All ranks: the end of this rank's work, with the status and the error (may be NULL) that it ended
 * with. Waits for the others and frees the job; trainers must be freed before. Returns the status
 * of the first rank that has one that is not 0: what all should exit with. A rank that comes here
 * with a failure while others never come ends the job. */
LOCKSTEP_API int lockstep_job_close(struct lockstep_job *job, int status,
                                    struct lockstep_error *error);

#ifdef __cplusplus
}
#endif
#endif
