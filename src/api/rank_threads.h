/* The ranks of a job that are threads of this process, one for each card of a list.
 *
 * Rank 0 is the thread that calls the library; each other rank has a thread of its own, which waits
 * for what all are to do. They meet over a transport between threads, and are for everything below
 * what the processes of a job are: same exchanges, same bits.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_API_RANK_THREADS_H
#define LS_API_RANK_THREADS_H

#include "base/error.h"
#include "transport/comm.h"

struct ls_rank_threads;

enum { LS_RANK_THREADS_MAX = 64 };

/* What each rank does, on its thread; `user` is the same for all. */
typedef int ls_rank_threads_call(void *user, int rank, struct ls_error *error);

/* Makes `size` ranks, 2 to LS_RANK_THREADS_MAX. cards[r] is the card of rank r (ls_thread_card);
 * NULL: they have none. */
int ls_rank_threads_create(int size, const int *cards, struct ls_rank_threads **threads,
                           struct ls_error *error);
/* Ends the threads. What the ranks have made is freed before, by them. NULL: nothing to free. */
void ls_rank_threads_free(struct ls_rank_threads *threads);

int ls_rank_threads_size(const struct ls_rank_threads *threads);
/* The communicator of a rank; it ends with the threads. */
struct ls_comm *ls_rank_threads_comm(const struct ls_rank_threads *threads, int rank);

/* All ranks make the call, rank 0's on the calling thread, and all are over when it returns. The
 * status and the error are those of the rank that failed by itself, where others only suffered from
 * it. After a failure of one rank alone no exchange is possible any more: calls that need one fail
 * with LOCKSTEP_LOST. */
int ls_rank_threads_run(struct ls_rank_threads *threads, ls_rank_threads_call *call, void *user,
                        struct ls_error *error);

#endif
