/* The public interface: jobs of several processes.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "api/job.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "api/options.h"
#include "base/memory.h"
#include "transport/comm_job.h"
#include "transport/failure_end.h"
#include "transport/launch.h"
#include "transport/status_file.h"

static const double default_timeout = 300;

/* What ranks tell each other first. Its form stays as it is for ever, so that programs of different
 * versions find out that they are. */
struct greeting {
    char version[64], host[64];
};

void lockstep_job_options_init(struct lockstep_job_options *options)
{
    *options =
        (struct lockstep_job_options){.struct_size = sizeof *options, .timeout = default_timeout};
}

int lockstep_job_launched(int *rank)
{
    int size = ls_launched(rank);
    return size > 1 ? size : 1;
}

/* ---- Joining --------------------------------------------------------------------------------- */

static int check_options(const struct lockstep_job_options *options, struct ls_error *error)
{
    if (!(options->timeout >= 0) || !isfinite(options->timeout))
        return ls_fail(error, LOCKSTEP_USAGE, NULL, "use 0 for no limit",
                       "a timeout of %g seconds is not possible", options->timeout);
    return 0;
}

static int compare_greetings(const struct greeting *all, int size, struct ls_error *error)
{
    for (int r = 1; r < size; r++)
        if (strncmp(all[r].version, all[0].version, sizeof all->version) != 0)
            return ls_fail(error, LOCKSTEP_DIFFERENT, NULL, "install the same version everywhere",
                           "rank %d (%.63s) runs Lockstep %.63s, rank 0 (%.63s) runs %.63s", r,
                           all[r].host, all[r].version, all[0].host, all[0].version);
    return 0;
}

static int greet(struct ls_comm *comm, struct ls_error *error)
{
    struct greeting mine = {.version = LOCKSTEP_VERSION};
    struct greeting *all = ls_alloc((size_t)comm->size, sizeof *all);
    if (all == NULL)
        return ls_fail_memory(error, "a job");
    snprintf(mine.host, sizeof mine.host, "%s", comm->transport->host);
    int status = ls_comm_all_gather(comm, &mine, sizeof mine, all, error);
    if (status == 0)
        status = compare_greetings(all, comm->size, error);
    ls_free(all);
    return status;
}

/* Whether two ranks run on the same cores. Containers of one machine may have names of their own,
 * and processes of one name may be in several. */
static bool same_machine(const struct ls_identity *a, const struct ls_identity *b)
{
    return strncmp(a->host, b->host, sizeof a->host) == 0 ||
           (a->process.space != 0 && a->process.space == b->process.space);
}

int ls_job_share(const struct ls_card *cards, int size, int rank, int usable)
{
    enum { CORES = 64 * LS_CPU_WORDS };
    int users[CORES] = {0}, own = 0;
    double share = 0;
    for (int r = 0; r < size; r++) {
        if (!same_machine(&cards[r].identity, &cards[rank].identity))
            continue;
        for (int core = 0; core < CORES; core++)
            users[core] += (int)(cards[r].cores[core / 64] >> core % 64 & 1);
    }
    for (int core = 0; core < CORES; core++)
        if (cards[rank].cores[core / 64] >> core % 64 & 1) {
            share += 1.0 / users[core];
            own++;
        }
    if (usable < own) /* a quota of time, of which each has as large a part as of the cores */
        share *= (double)usable / own;
    return share >= 1 ? (int)(share + 1e-6) : 1;
}

static void count_neighbours(struct lockstep_job *job, const struct ls_identity *all)
{
    job->comm->machine_ranks = 0;
    for (int r = 0; r < job->comm->size; r++)
        if (same_machine(&all[r], &all[job->comm->rank])) {
            job->comm->machine_ranks++;
            job->machine_rank += r < job->comm->rank;
        }
}

static int meet(struct lockstep_job *job, struct ls_error *error)
{
    struct ls_comm *comm = job->comm;
    struct ls_card mine = {.identity = ls_detector_self(comm->detector)};
    struct ls_card *cards = ls_alloc((size_t)comm->size, sizeof *cards);
    struct ls_identity *all = ls_alloc((size_t)comm->size, sizeof *all);
    ls_cpu_mask(mine.cores);
    int status = cards == NULL || all == NULL ? ls_fail_memory(error, "a job") : 0;
    if (status == 0)
        status = ls_comm_all_gather(comm, &mine, sizeof mine, cards, error);
    for (int r = 0; r < comm->size && status == 0; r++)
        all[r] = cards[r].identity;
    if (status == 0) {
        job->workers = ls_job_share(cards, comm->size, comm->rank, ls_cpu_count());
        count_neighbours(job, all);
        status = ls_detector_set_members(comm->detector, all, error);
    }
    ls_free(cards);
    ls_free(all);
    return status;
}

static int set_up(struct lockstep_job *job, const struct lockstep_job_options *options,
                  struct ls_error *error)
{
    struct ls_detector *detector = job->comm->detector;
    ls_detector_set_on_failure(detector, options->failed, options->user);
    LS_TRY(greet(job->comm, error));
    LS_TRY(meet(job, error));
    job->has_status_file = options->status_file != NULL;
    return ls_detector_set_status_file(detector, options->status_file, error);
}

int ls_job_open(struct ls_transport *transport, const struct lockstep_job_options *options,
                struct lockstep_job **out, struct ls_error *error)
{
    *out = NULL;
    const struct ls_comm_options comm_options = {
        .timeout = options->timeout, .dynamic = options->dynamic_balance != 0, .watched = true};
    struct lockstep_job *job = ls_alloc(1, sizeof *job);
    if (job == NULL) {
        transport->calls->abort(transport, LOCKSTEP_RESOURCE);
        return ls_fail_memory(error, "a job");
    }
    int status = ls_comm_create(transport, &comm_options, &job->comm, error);
    if (status != 0) {
        ls_free(job);
        return status;
    }
    status = ls_comm_agree(job->comm, set_up(job, options, error), error);
    if (status == 0) {
        *out = job;
        return 0;
    }
    if (status == LOCKSTEP_LOST) /* no good order is left to end it in */
        ls_detector_abort(job->comm->detector, status, "the job could not be set up");
    ls_comm_end(job->comm);
    ls_free(job);
    return status;
}

int lockstep_job_open(const struct lockstep_job_options *options, struct lockstep_job **job,
                      struct lockstep_error *error)
{
    struct ls_error *inner = ls_api_error(error);
    struct ls_transport *transport;
    *job = NULL;
    struct lockstep_job_options mine;
    LS_TRY(LS_API_OPTIONS(mine, options, "lockstep_job_options_init", inner));
    options = &mine;
    LS_TRY(check_options(options, inner));
    LS_TRY(ls_launch(&transport, inner));
    return transport != NULL ? ls_job_open(transport, options, job, inner) : 0;
}

void ls_job_place_status(struct lockstep_job *job, const char *prefix)
{
    if (job == NULL || job->has_status_file)
        return;
    char *path = ls_status_file_beside(prefix);
    /* Where that cannot be written, no snapshot can: the trainer says so. */
    job->has_status_file =
        path != NULL && ls_detector_set_status_file(job->comm->detector, path, NULL) == 0;
    ls_free(path);
}

/* ---- Being in one ---------------------------------------------------------------------------- */

int lockstep_job_rank(const struct lockstep_job *job)
{
    return job != NULL ? job->comm->rank : 0;
}

int lockstep_job_size(const struct lockstep_job *job)
{
    return job != NULL ? job->comm->size : 1;
}

int lockstep_job_workers(const struct lockstep_job *job)
{
    return job != NULL ? job->workers : lockstep_default_workers();
}

int lockstep_job_agree(struct lockstep_job *job, int status, struct lockstep_error *error)
{
    struct ls_error *inner = error != NULL ? &error->inner : NULL;
    return job != NULL ? ls_comm_agree(job->comm, status, inner) : status;
}

void lockstep_job_poll_soon(struct lockstep_job *job)
{
    if (job != NULL)
        ls_detector_hurry(job->comm->detector);
}

int lockstep_job_close(struct lockstep_job *job, int status, struct lockstep_error *error)
{
    if (job == NULL)
        return status;
    const char *text = status != 0 && error != NULL ? lockstep_error_text(error) : NULL;
    int agreed = ls_detector_leave(job->comm->detector, status, text);
    ls_comm_end(job->comm);
    ls_free(job);
    return agreed;
}
