/* Jobs within a test: see comm_ranks.h. SPDX-License-Identifier: BSD-2-Clause */
#include "support/comm_ranks.h"

#include <stdlib.h>

#include "support/support.h"
#include "transport/comm_job.h"
#include "transport/local.h"

static void *run_rank(void *user)
{
    struct comm_rank *rank = user;
    const struct ls_comm_options options = {.timeout = 60, .dynamic = rank->job->dynamic};
    CHECK(rank, ls_comm_create(rank->transport, &options, &rank->comm, rank->error) == 0);
    if (rank->failed != 0)
        return NULL;
    int workers = rank->job->growing ? rank->transport->rank + 1 : 1;
    CHECK(rank, ls_comm_start(rank->comm, workers, NULL, rank->error) == 0);
    rank->job->body(rank);
    ls_comm_end(rank->comm);
    return NULL;
}

void run_comm_job(const struct comm_job *job)
{
    struct ls_transport *transports[COMM_RANKS_MAX];
    struct comm_rank ranks[COMM_RANKS_MAX] = {0};
    assert_in_range(job->ranks, 1, COMM_RANKS_MAX);
    assert_int_equal(ls_local_transports(job->ranks, transports, NULL), 0);
    if (job->prepare != NULL)
        job->prepare(transports);
    for (int r = 0; r < job->ranks; r++) {
        ranks[r].job = job;
        ranks[r].transport = transports[r];
        ranks[r].error = calloc(1, sizeof *ranks[r].error);
        assert_non_null(ranks[r].error);
        assert_int_equal(pthread_create(&ranks[r].thread, NULL, run_rank, &ranks[r]), 0);
    }
    for (int r = 0; r < job->ranks; r++)
        assert_int_equal(pthread_join(ranks[r].thread, NULL), 0);
    for (int r = 0; r < job->ranks; r++) {
        if (ranks[r].failed != 0)
            fail_msg("rank %d of %d: the check in line %d", r, job->ranks, ranks[r].failed);
        free(ranks[r].error);
    }
}
