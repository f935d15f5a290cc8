/* The failure detector: signs of life between the ranks of a job, so that a rank that dies, hangs
 * or fails ends it in time, with a message that names it.
 *
 * Each rank notes what it is doing. The progress thread takes a turn now and then: it sends that
 * note to rank 0, and rank 0's to the others; it looks whether processes of the same machine still
 * are there. These are the rules:
 *
 *   failed   a rank says itself that it cannot go on (ls_detector_abort)
 *   died     its process is gone, as a rank of the same machine sees within a second
 *   lost     nothing was heard of it for `timeout` seconds
 *   hangs    it has computed the same for `timeout` seconds, and another rank waited as long; or
 *            all have waited for each other as long
 *
 * Rank 0 reports it, writes status.json and ends the job. Where rank 0 itself died or is
 * silent, the lowest surviving rank of each machine does so. A rank that was itself suspended for
 * long (stopped, swapped out) restarts the time of all others.
 *
 * Where a call of the transport does not return, there are no turns; see transport/watchdog.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TRANSPORT_FAILURE_DETECTOR_H
#define LS_TRANSPORT_FAILURE_DETECTOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/process.h"
#include "transport/transport.h"

struct ls_detector;

/* A process by itself has no failure detector: NULL. Functions that its code calls as well (note,
 * wait, found, warn, alarm, leave) have no effect then. */
int ls_detector_create(struct ls_transport *transport, double timeout,
                       struct ls_detector **detector, struct ls_error *error);
void ls_detector_free(struct ls_detector *detector);
/* Called with the message when the job fails, before it is ended: from any thread, once. By default
 * the message goes to stderr. */
typedef void ls_detector_on_failure(void *user, int status, const char *text);
void ls_detector_set_on_failure(struct ls_detector *detector, ls_detector_on_failure *on_failure,
                                void *user);

/* Host and process of a rank; without these, messages name ranks only, and deaths are not noticed.
 */
struct ls_identity {
    char host[64];
    struct ls_process process;
};
struct ls_identity ls_detector_self(const struct ls_detector *detector);
/* `all` by rank, of all ranks. What is needed of it is kept. */
int ls_detector_set_members(struct ls_detector *detector, const struct ls_identity *all,
                            struct ls_error *error);

/* What this rank is doing, cheap enough for every step. `layer` must stay valid; NULL: none. Any
 * thread. */
void ls_detector_note(struct ls_detector *detector, int64_t iteration, const char *layer);
/* A thread of this rank begins (true) or ends to wait for other ranks. Threads are counted. */
void ls_detector_wait(struct ls_detector *detector, bool waiting);

/* Sends and receives messages that are due; called by the progress thread. Cheap when none is. */
void ls_detector_poll(struct ls_detector *detector);
/* Something may have happened (a signal): the next turns check everything. May be called by a
 * signal handler. */
void ls_detector_hurry(struct ls_detector *detector);
/* Whether a rank is lost or has failed, so that all waiting must end. Any thread. */
bool ls_detector_alarm(const struct ls_detector *detector);
/* The seconds that it goes by. Any thread. */
double ls_detector_clock(const struct ls_detector *detector);

/* Messages of a transport begin with four bytes that give their type. The failure detector receives
 * all, and passes types from LS_MESSAGE_OTHERS on to this function, on the thread that takes the
 * turn. NULL: they are dropped. */
enum { LS_MESSAGE_OTHERS = 16 };
typedef void ls_detector_on_message(void *user, int from, const void *message, size_t bytes);
void ls_detector_set_on_message(struct ls_detector *detector, ls_detector_on_message *on_message,
                                void *user);
/* Hears what is there now, however soon after the last turn. Any thread. */
void ls_detector_receive_now(struct ls_detector *detector);

/* For tests: another clock, other eyes, and another end of the process than _exit. Members that are
 * NULL stay as they are. */
struct ls_detector_senses {
    double (*clock)(void *user);
    enum ls_process_state (*look)(void *user, const struct ls_process *process);
    void (*leave)(void *user, int code);
    void *user;
};
void ls_detector_set_senses(struct ls_detector *detector, const struct ls_detector_senses *senses);

#endif
