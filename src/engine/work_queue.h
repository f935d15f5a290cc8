/* The work queue: which rank runs which micro-batch, where ranks take them as they get free.
 *
 * A round hands out the units of a pass, or of a wave. The first ones are assigned in advance, one
 * to each worker of the job, in order; rank 0 grants the others on request. A rank requests the
 * next unit as soon as a worker begins one, so that it has one ahead for every worker, whose data
 * are decoded meanwhile. At the end of a round all ranks exchange lists of the units that they ran.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_WORK_QUEUE_H
#define LS_ENGINE_WORK_QUEUE_H

#include <stddef.h>

#include "transport/comm.h"

struct ls_work_queue;

/* All ranks create theirs before any begins a round; a job has one at a time. Rounds are numbered
 * through all trainers of a job, so that late messages of an earlier trainer are recognized. */
int ls_work_queue_create(struct ls_comm *comm, struct ls_work_queue **queue,
                         struct ls_error *error);
/* NULL is nothing to free. */
void ls_work_queue_free(struct ls_work_queue *queue);

/* Begins a round over units [begin, end), the same on all ranks; by one thread, before others take.
 * `granted` is called for each unit that this rank gets, before a worker can take it, and with
 * SIZE_MAX when no more will come. By any thread, one at a time. */
int ls_work_queue_begin(struct ls_work_queue *queue, size_t begin, size_t end,
                        void (*granted)(void *user, size_t unit), void *user,
                        struct ls_error *error);
/* The next unit for a worker of this rank; SIZE_MAX: there are none left. */
int ls_work_queue_take(struct ls_work_queue *queue, size_t *unit, struct ls_error *error);
/* After all workers have got SIZE_MAX: which rank had unit i, to owners[i]. All ranks call it. */
int ls_work_queue_end(struct ls_work_queue *queue, int *owners, struct ls_error *error);

/* The units that this rank is assigned in advance in any round: *count units from begin + *first,
 * as far as they exist. */
void ls_work_queue_given(const struct ls_work_queue *queue, size_t *first, size_t *count);

#endif
