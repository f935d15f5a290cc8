/* A job's beginning and end. See transport/comm_job.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "transport/comm_job.h"

#include "base/memory.h"
#include "transport/comm.h"
#include "transport/failure_detector.h"
#include "transport/progress_thread.h"
#include "transport/watchdog.h"

static void comm_job_release(struct ls_comm *comm)
{
    ls_detector_free(comm->detector);
    ls_free(comm->first);
    ls_free(comm->bytes);
    ls_free(comm->statuses);
    ls_free_aligned(comm->out);
    ls_free_aligned(comm->in);
    ls_free(comm);
}

/* `transport` NULL: one rank. */
static int comm_job_new(struct ls_transport *transport, struct ls_comm **out,
                        struct ls_error *error)
{
    size_t size = transport != NULL ? (size_t)transport->size : 1;
    struct ls_comm *comm = *out = ls_alloc(1, sizeof *comm);
    if (comm == NULL)
        return ls_fail_memory(error, "a job");
    comm->transport = transport;
    comm->rank = transport != NULL ? transport->rank : 0;
    comm->size = comm->machine_ranks = (int)size; /* until it is known where they are */
    comm->first = ls_alloc(size + 1, sizeof *comm->first);
    comm->bytes = ls_alloc(4 * size, sizeof *comm->bytes);
    comm->offset = comm->bytes != NULL ? comm->bytes + 2 * size : NULL;
    comm->statuses = ls_alloc(size, sizeof *comm->statuses);
    bool ready = comm->first != NULL && comm->bytes != NULL && comm->statuses != NULL;
    return ready ? 0 : ls_fail_memory(error, "a job");
}

int ls_comm_create_alone(struct ls_comm **out, struct ls_error *error)
{
    int status = comm_job_new(NULL, out, error);
    if (status == 0)
        return 0;
    ls_comm_end(*out);
    *out = NULL;
    return status;
}

int ls_comm_create(struct ls_transport *transport, const struct ls_comm_options *options,
                   struct ls_comm **out, struct ls_error *error)
{
    int status = comm_job_new(transport, out, error);
    struct ls_comm *comm = *out;
    if (status == 0) {
        comm->timeout = options->timeout;
        comm->dynamic = options->dynamic && comm->size > 1;
        comm->watched = options->watched;
        status = ls_detector_create(transport, options->timeout, &comm->detector, error);
    }
    if (status == 0)
        return 0;
    if (comm != NULL)
        comm_job_release(comm);
    *out = NULL;
    transport->calls->abort(transport, status);
    return status;
}

int ls_comm_start(struct ls_comm *comm, int workers, void (*enter_thread)(void),
                  struct ls_error *error)
{
    int status = 0;
    comm->workers = workers;
    if (comm->progress_thread == NULL && comm->size > 1)
        status = ls_progress_thread_start(comm, enter_thread, &comm->progress_thread, error);
    if (status == 0 && comm->watched && comm->watchdog == NULL && comm->size > 1)
        status = ls_watchdog_start(comm->detector, &comm->watchdog, error);
    int mine = status == 0 ? workers : 0; /* the others wait for this in any case */
    int lost = ls_comm_all_gather(comm, &mine, sizeof mine, comm->first + 1, error);
    for (int r = 0; r < comm->size && lost == 0; r++)
        comm->first[r + 1] += comm->first[r];
    return status != 0 ? status : lost;
}

void ls_comm_end(struct ls_comm *comm)
{
    if (comm == NULL)
        return;
    ls_progress_thread_stop(comm->progress_thread);
    ls_watchdog_stop(comm->watchdog);
    if (comm->transport != NULL)
        comm->transport->calls->end(comm->transport);
    comm_job_release(comm);
}
