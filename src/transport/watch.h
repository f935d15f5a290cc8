/* The watch: signs of life between the ranks of a job, so that a rank that dies, hangs or fails
 * ends it in time, with a message that names it.
 *
 * Each rank notes what it is doing. The courier's thread takes a turn now and then: it sends that
 * note to rank 0, and rank 0's to the others; it looks whether processes of the same machine still
 * are there. Who has failed tells rank 0, which reports it, writes status.json and ends the job.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TRANSPORT_WATCH_H
#define LS_TRANSPORT_WATCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "transport/link.h"

struct ls_watch;

int ls_watch_create(struct ls_link *link, double timeout, struct ls_watch **watch,
                    struct ls_error *error);
void ls_watch_free(struct ls_watch *watch);
/* Where status.json goes (a copy is kept); NULL: nowhere. */
int ls_watch_set_status_file(struct ls_watch *watch, const char *path, struct ls_error *error);

/* What this rank is doing, cheap enough for every step. `layer` must stay valid; NULL: none. */
void ls_watch_note(struct ls_watch *watch, int64_t iteration, const char *layer);
/* It waits for other ranks (true), or goes on. */
void ls_watch_wait(struct ls_watch *watch, bool waiting);

/* The courier's: tells and hears what is due. Cheap when nothing is. */
void ls_watch_turn(struct ls_watch *watch);
/* Whether a rank is lost or has failed: nobody should wait any longer. Any thread. */
bool ls_watch_alarm(const struct ls_watch *watch);
/* Says in `error` who, where and what it did last; returns LOCKSTEP_LOST. */
int ls_watch_fail(struct ls_watch *watch, struct ls_error *error);

/* This rank cannot go on, all alone (what all ranks find out together needs none of this): says so
 * to rank 0, waits briefly until that has ended the job, else ends it itself with this exit code.
 * Does not return, except in tests. */
void ls_watch_give_up(struct ls_watch *watch, int status, const char *text);

#endif
