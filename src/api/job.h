/* A job of several processes, behind the public interface.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_API_JOB_H
#define LS_API_JOB_H

#include "base/thread.h"
#include "lockstep/lockstep.h"
#include "transport/comm.h"
#include "transport/failure_detector.h"

struct lockstep_job {
    struct ls_comm *comm;
    int workers;      /* of this rank, unless told otherwise */
    int machine_rank; /* ranks of this machine that have a smaller number than this one */
    bool has_status_file;
};

/* Joins over this transport, which is taken over, also where it fails. */
int ls_job_open(struct ls_transport *transport, const struct lockstep_job_options *options,
                struct lockstep_job **job, struct ls_error *error);

static inline struct ls_comm *ls_job_comm(struct lockstep_job *job)
{
    return job != NULL ? job->comm : NULL;
}

/* Unless the job has one: status.json goes beside the snapshots of this prefix. */
void ls_job_place_status(struct lockstep_job *job, const char *prefix);

/* What ranks tell each other about themselves. */
struct ls_card {
    struct ls_identity identity;
    uint64_t cores[LS_CPU_WORDS];
};
/* How many workers rank `rank` of `size` should have: each core that it may use counts as one over
 * the ranks of its machine that may use it, too; at least 1. `usable` is what ls_cpu_count says. */
int ls_job_share(const struct ls_card *cards, int size, int rank, int usable);

#endif
