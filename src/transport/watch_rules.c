/* The watch: who is gone, silent or hangs, and how that is said. See transport/watch.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "transport/watch_inner.h"

/* ---- Words ----------------------------------------------------------------------------------- */

static void add(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void add(char *text, size_t size, const char *format, ...)
{
    size_t length = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + length, size - length, format, arguments);
    va_end(arguments);
}

void ls_watch_name(struct ls_watch *watch, int rank, char *text, size_t size)
{
    const struct ls_member *member = ls_watch_member(watch, rank);
    const char *host = rank == watch->transport->rank ? watch->transport->host
                       : member != NULL               ? member->who.host
                                                      : "";
    if (host[0] != '\0')
        snprintf(text, size, "rank %d (%.63s)", rank, host);
    else
        snprintf(text, size, "rank %d", rank);
}

/* ", it was computing layer 'conv2' in iteration 410" */
static void add_doing(char *text, size_t size, const struct ls_doing *doing)
{
    if (doing->iteration < 0) {
        add(text, size, "; it had not begun its first update");
        return;
    }
    if (doing->waiting > 0)
        add(text, size, "; it was waiting for other ranks");
    else if (doing->layer[0] != '\0')
        add(text, size, "; it was computing layer '%s'", doing->layer);
    else
        add(text, size, "; it was between layers");
    add(text, size, " in iteration %lld", (long long)doing->iteration);
    if (doing->waiting > 0 && doing->layer[0] != '\0')
        add(text, size, " (layer '%s')", doing->layer);
}

void ls_watch_describe_gone(struct ls_watch *watch, int rank, double now, char *text, size_t size)
{
    const struct ls_member *member = ls_watch_member(watch, rank);
    ls_watch_name(watch, rank, text, size);
    if (member == NULL) {
        add(text, size, " died: its process is gone");
        return;
    }
    add(text, size, " died: its process %lld is gone", (long long)member->who.process.number);
    if (watch->transport->rank != 0 && rank != 0) /* such ranks tell nothing to each other */
        return;
    add(text, size, ", %.1f s after it was last heard of", now - member->heard);
    add_doing(text, size, &member->doing);
}

static void describe_silent(struct ls_watch *watch, const struct ls_member *member, double now,
                            char *text, size_t size)
{
    ls_watch_name(watch, member->rank, text, size);
    add(text, size, " has not been heard of for %.0f s", now - member->heard);
    enum ls_process_state state = watch->senses.look(watch->senses.user, &member->who.process);
    if (state == LS_PROCESS_STOPPED)
        add(text, size, ", its process %lld is stopped", (long long)member->who.process.number);
    else if (state == LS_PROCESS_UNKNOWN)
        add(text, size, ": it hangs, its machine is down or the network is cut");
    add_doing(text, size, &member->doing);
}

static void describe_hang(struct ls_watch *watch, const struct ls_member *member, int waiting,
                          double now, char *text, size_t size)
{
    char other[160];
    ls_watch_name(watch, waiting, other, sizeof other);
    ls_watch_name(watch, member->rank, text, size);
    add(text, size, " hangs: it has not gone on for %.0f s, and %s waits", now - member->moved,
        other);
    add_doing(text, size, &member->doing);
}

/* ---- Rules ----------------------------------------------------------------------------------- */

/* The neighbours' processes. A rank that sees another one die tells rank 0, and reports it itself
 * only if that does nothing; where it is rank 0 that died, the nearest rank before it comes first.
 */
void ls_watch_look(struct ls_watch *watch, double now)
{
    char text[LS_WATCH_TEXT];
    for (int i = 0; i < watch->neighbour_count; i++) {
        const struct ls_member *member = &watch->members[watch->neighbours[i]];
        if (member->left || watch->charge.made ||
            watch->senses.look(watch->senses.user, &member->who.process) != LS_PROCESS_GONE)
            continue;
        double patience = 0;
        if (watch->transport->rank != 0) {
            ls_watch_send(watch, 0, LS_MESSAGE_GONE, LOCKSTEP_LOST, member->rank, NULL);
            patience = member->rank == 0 ? 0.5 * i : LS_WATCH_PATIENCE;
        }
        ls_watch_describe_gone(watch, member->rank, now, text, sizeof text);
        ls_watch_charge(watch, LS_REASON_DIED, member->rank, LOCKSTEP_LOST, now + patience, text);
    }
}

static void judge_silence(struct ls_watch *watch, double now)
{
    char text[LS_WATCH_TEXT];
    int ranks = watch->transport->rank == 0 ? watch->member_count : 1;
    for (int i = 0; i < ranks; i++) {
        const struct ls_member *member = &watch->members[i];
        if (member->left || now - member->heard <= watch->timeout)
            continue;
        double patience = watch->transport->rank == 0 || watch->leads ? 0 : LS_WATCH_PATIENCE;
        describe_silent(watch, member, now, text, sizeof text);
        ls_watch_charge(watch, LS_REASON_SILENT, member->rank, LOCKSTEP_LOST, now + patience, text);
        return;
    }
}

/* Rank 0's: who computes and does not go on, while another rank waits just as long. */
static void judge_progress(struct ls_watch *watch, double now)
{
    char text[LS_WATCH_TEXT];
    const struct ls_member *computing = NULL, *waiting = NULL;
    int stuck = 0, there = 0;
    for (int i = 0; i < watch->member_count; i++) {
        const struct ls_member *member = &watch->members[i];
        if (member->left)
            continue;
        there++;
        if (now - member->moved <= watch->timeout)
            continue;
        stuck++;
        if (member->doing.waiting > 0)
            waiting = waiting != NULL ? waiting : member;
        else
            computing = computing != NULL ? computing : member;
    }
    if (waiting == NULL || (computing == NULL && stuck < there))
        return;
    if (computing != NULL) {
        describe_hang(watch, computing, waiting->rank, now, text, sizeof text);
    } else {
        computing = waiting;
        snprintf(text, sizeof text, "the ranks wait for each other: none has gone on for %.0f s",
                 now - waiting->moved);
        add_doing(text, sizeof text, &waiting->doing);
    }
    ls_watch_charge(watch, LS_REASON_HANGS, computing->rank, LOCKSTEP_LOST, now, text);
}

void ls_watch_judge(struct ls_watch *watch, double now)
{
    if (!(watch->timeout > 0))
        return;
    judge_silence(watch, now);
    if (watch->transport->rank == 0 && !watch->charge.made)
        judge_progress(watch, now);
}
