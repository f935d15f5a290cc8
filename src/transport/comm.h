/* The communicator: the ranks of a job as the engine and the solver see them. A process by itself
 * is a job of one rank: its exchanges return at once, and it has neither a transport nor a progress
 * thread nor a failure detector (ls_comm_create_alone,
 * transport/comm_job.h).
 *
 * Each rank runs some of the micro-batches and owns a shard of the parameters. Ranks communicate in
 * two ways: by small exchanges, which all ranks enter in the same order and wait for, and by
 * collectives, which the progress thread runs under the computation (transport/progress_thread.h).
 *
 * A failure is either common to all ranks, because all have found it in what all have, or one of
 * this rank alone. Calls that find a common one say so (ls_comm_common; ls_comm_agree does it); at
 * the end of a phase ls_comm_conclude ends the job for all others.
 *
 * Only the thread of worker 0 enters small exchanges. They fail with LOCKSTEP_LOST when a rank is
 * silent for too long or has failed; no exchange is possible after that.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TRANSPORT_COMM_H
#define LS_TRANSPORT_COMM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/partition.h"
#include "base/error.h"
#include "transport/transport.h"

struct ls_progress_thread;
struct ls_watchdog;
struct ls_detector;

/* Bytes sent to other ranks, by purpose. */
enum ls_traffic {
    LS_TRAFFIC_SMALL,
    LS_TRAFFIC_SUMS,
    LS_TRAFFIC_WEIGHTS,
    LS_TRAFFIC_FACTORS,
    LS_TRAFFICS
};

/* Time that workers waited for other ranks, by reason. */
enum ls_waiting {
    LS_WAIT_SMALL,   /* small exchanges, which worker 0 enters */
    LS_WAIT_SUMS,    /* gradients and factors, by worker 0 */
    LS_WAIT_WEIGHTS, /* counted per worker, summed over workers */
    LS_WAITS
};

struct ls_comm {
    struct ls_transport *transport; /* NULL: a process by itself */
    int rank, size;
    int workers;    /* of this rank */
    int *first;     /* by rank: workers of all ranks before it; [size]: of all ranks */
    double timeout; /* seconds without a sign of life of a rank; 0: for ever */
    bool dynamic;   /* micro-batches go to free ranks, of which there are several */
    struct ls_detector *detector; /* transport/failure_detector.h; NULL: a process by itself */
    struct ls_progress_thread *progress_thread; /* NULL until ls_comm_start, and with one rank */
    bool watched;                               /* there is to be a watchdog beside it, */
    struct ls_watchdog *watchdog;               /* this one (transport/watchdog.h) */
    _Atomic int common;     /* the status of a failure that all ranks have found; 0: none */
    _Atomic double lost_at; /* ls_detector_clock of the first ls_comm_lost; 0: none was called */
    int machine_ranks;      /* on this machine, this one included */
    uint32_t requests;      /* bits of this rank's user, not handed in yet (ls_comm_request) */
    uint32_t agreed;        /* bits that any rank has handed in, the same on all */
    uint32_t rounds;        /* of the work queue that have begun (engine/work_queue.h) */
    _Atomic bool broken;    /* a message could not be sent: waits end as LOST */
    _Atomic uint64_t sent[LS_TRAFFICS];
    _Atomic uint64_t waited[LS_WAITS]; /* nanoseconds */
    _Atomic uint64_t under_way;        /* nanoseconds that collectives were */
    /* Memory of small exchanges, grown as needed. */
    unsigned char *out, *in;
    size_t out_size, in_size;
    size_t *bytes, *offset; /* [2 * size] */
    int32_t *statuses;      /* [size]: there when memory is what has failed */
};

/* Bytes [begin, end) of an array. */
struct ls_range {
    size_t begin, end;
};

/* Which rank item `index` of `count` belongs to where they are partitioned by the number of
 * workers: the ranks have consecutive runs. */
int ls_comm_owner(const struct ls_comm *comm, int64_t index, int64_t count);
/* This rank's share of what is partitioned; everything, where it may get any of it. */
struct ls_share ls_comm_own(const struct ls_comm *comm);

/* The transport has failed, or the failure detector is alarmed: names the rank at fault in `error`,
 * as far as it is known. Waits a moment for that, together with all other calls: of many waits that
 * end so, each would add its own. Returns LOCKSTEP_LOST. Any thread. */
int ls_comm_lost(struct ls_comm *comm, struct ls_error *error);

/* Item i has `bytes` bytes (a multiple of 4) at base + i * stride; owner[i] has it, and all
 * ranks have all items afterwards. */
int ls_comm_all_gather_items(struct ls_comm *comm, void *base, size_t stride, size_t bytes,
                             const int *owner, size_t count, struct ls_error *error);
/* `bytes` bytes of each rank to all, in their order. */
int ls_comm_all_gather(struct ls_comm *comm, const void *mine, size_t bytes, void *all,
                       struct ls_error *error);
/* Rank 0's bytes to all (a multiple of 4). */
int ls_comm_broadcast(struct ls_comm *comm, void *data, size_t bytes, struct ls_error *error);
/* Every rank's bytes to rank 0: those of rank r, which it has at `mine`, belong at part[r * stride]
 * of `all` there (multiples of 4). */
int ls_comm_gather(struct ls_comm *comm, const void *mine, void *all, const struct ls_range *part,
                   size_t stride, struct ls_error *error);
/* All ranks agree on the status of a step: each passes its own; if any failed, all return the
 * status of the first rank that did. Ranks that succeeded get an error that names that rank and
 * repeats its message. */
int ls_comm_agree(struct ls_comm *comm, int status, struct ls_error *error);
/* All ranks find this failure by themselves, in the same call and in what all have: each ends by
 * it, and the others need not hear of it. Returns `status`. 0, where a phase begins: no such
 * failure yet. */
int ls_comm_common(struct ls_comm *comm, int status);
/* The end of a phase that all ranks enter: a failure that is not common is one of this rank alone.
 * The others would go on and wait for it, so it ends the job (ls_detector_abort). Returns `status`,
 * for common failures, for one rank, and in tests. */
int ls_comm_conclude(struct ls_comm *comm, int status, const struct ls_error *error);

/* Hands in requests of this rank's user, with the next exchange of the reducer that carries them
 * (engine/reducer.h). Returns what any rank has requested, once all know of it, and clears it: with
 * one rank at once. */
uint32_t ls_comm_request(struct ls_comm *comm, uint32_t bits);

#endif
