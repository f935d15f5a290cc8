/* The failure detector: rules for dead, silent and hanging ranks, and their messages. See
 * transport/failure_detector.h. SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "transport/failure_detector_inner.h"

/* ---- Words ----------------------------------------------------------------------------------- */

static void detector_add(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void detector_add(char *text, size_t size, const char *format, ...)
{
    size_t length = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + length, size - length, format, arguments);
    va_end(arguments);
}

void ls_detector_name(struct ls_detector *detector, int rank, char *text, size_t size)
{
    const struct ls_member *member = ls_detector_member(detector, rank);
    const char *host = rank == detector->transport->rank ? detector->transport->host
                       : member != NULL                  ? member->who.host
                                                         : "";
    if (host[0] != '\0')
        snprintf(text, size, "rank %d (%.63s)", rank, host);
    else
        snprintf(text, size, "rank %d", rank);
}

/* ", it was computing layer 'conv2' in iteration 410" */
static void detector_add_doing(char *text, size_t size, const struct ls_doing *doing)
{
    if (doing->iteration < 0) {
        detector_add(text, size, "; it had not begun its first update");
        return;
    }
    if (doing->waiting > 0)
        detector_add(text, size, "; it was waiting for other ranks");
    else if (doing->layer[0] != '\0')
        detector_add(text, size, "; it was computing layer '%s'", doing->layer);
    else
        detector_add(text, size, "; it was between layers");
    detector_add(text, size, " in iteration %lld", (long long)doing->iteration);
    if (doing->waiting > 0 && doing->layer[0] != '\0')
        detector_add(text, size, " (layer '%s')", doing->layer);
}

void ls_detector_describe_gone(struct ls_detector *detector, int rank, double now, char *text,
                               size_t size)
{
    const struct ls_member *member = ls_detector_member(detector, rank);
    ls_detector_name(detector, rank, text, size);
    if (member == NULL) {
        detector_add(text, size, " died: its process is gone");
        return;
    }
    detector_add(text, size, " died: its process %lld is gone",
                 (long long)member->who.process.number);
    if (detector->transport->rank != 0 && rank != 0) /* such ranks tell nothing to each other */
        return;
    detector_add(text, size, ", %.1f s after it was last heard of", now - member->heard);
    detector_add_doing(text, size, &member->doing);
}

void ls_detector_describe_silent(struct ls_detector *detector, const struct ls_member *member,
                                 double now, char *text, size_t size)
{
    ls_detector_name(detector, member->rank, text, size);
    detector_add(text, size, " has not been heard of for %.0f s", now - member->heard);
    enum ls_process_state state =
        detector->senses.look(detector->senses.user, &member->who.process);
    if (state == LS_PROCESS_STOPPED)
        detector_add(text, size, ", its process %lld is stopped",
                     (long long)member->who.process.number);
    else if (state == LS_PROCESS_UNKNOWN)
        detector_add(text, size, ": it hangs, its machine is down or the network is cut");
    detector_add_doing(text, size, &member->doing);
}

void ls_detector_describe_stuck(struct ls_detector *detector, double seconds, char *text,
                                size_t size)
{
    const struct ls_doing own = ls_detector_doing(detector);
    ls_detector_name(detector, detector->transport->rank, text, size);
    detector_add(text, size, " hangs: a call of %s has not returned for %.0f s",
                 detector->transport->name, seconds);
    detector_add_doing(text, size, &own);
}

static void detector_describe_hang(struct ls_detector *detector, const struct ls_member *member,
                                   int waiting, double now, char *text, size_t size)
{
    char other[160];
    ls_detector_name(detector, waiting, other, sizeof other);
    ls_detector_name(detector, member->rank, text, size);
    detector_add(text, size, " hangs: it has not gone on for %.0f s, and %s waits",
                 now - member->moved, other);
    detector_add_doing(text, size, &member->doing);
}

/* ---- Rules ----------------------------------------------------------------------------------- */

/* The neighbours' processes. A rank that sees another one die tells rank 0, and reports it itself
 * only if that does nothing; where it is rank 0 that died, the nearest rank before it comes first.
 */
void ls_detector_look(struct ls_detector *detector, double now)
{
    char text[LS_DETECTOR_TEXT];
    for (int i = 0; i < detector->neighbour_count; i++) {
        const struct ls_member *member = &detector->members[detector->neighbours[i]];
        if (member->left || detector->report.made ||
            detector->senses.look(detector->senses.user, &member->who.process) != LS_PROCESS_GONE)
            continue;
        double patience = 0;
        if (detector->transport->rank != 0) {
            ls_detector_send(detector, 0, LS_MESSAGE_GONE, LOCKSTEP_LOST, member->rank, NULL);
            patience = member->rank == 0 ? 0.5 * i : LS_DETECTOR_PATIENCE;
        }
        ls_detector_describe_gone(detector, member->rank, now, text, sizeof text);
        ls_detector_report(detector, LS_REASON_DIED, member->rank, LOCKSTEP_LOST, now + patience,
                           text);
    }
}

/* The silent rank to name: one whose process is seen to be stopped, because others may be silent
 * on its account; else the first. */
static const struct ls_member *detector_find_silent(struct ls_detector *detector, double now)
{
    const struct ls_member *first = NULL;
    int ranks = detector->transport->rank == 0 ? detector->member_count : 1;
    for (int i = 0; i < ranks; i++) {
        const struct ls_member *member = &detector->members[i];
        if (member->left || now - member->heard <= detector->timeout)
            continue;
        if (detector->senses.look(detector->senses.user, &member->who.process) ==
            LS_PROCESS_STOPPED)
            return member;
        first = first != NULL ? first : member;
    }
    return first;
}

static void detector_judge_silence(struct ls_detector *detector, double now)
{
    char text[LS_DETECTOR_TEXT];
    const struct ls_member *member = detector_find_silent(detector, now);
    if (member == NULL)
        return;
    double patience = detector->transport->rank == 0 || detector->leads ? 0 : LS_DETECTOR_PATIENCE;
    ls_detector_describe_silent(detector, member, now, text, sizeof text);
    ls_detector_report(detector, LS_REASON_SILENT, member->rank, LOCKSTEP_LOST, now + patience,
                       text);
}

/* On rank 0: a rank that makes no progress, while another rank waits just as long. */
static void detector_judge_progress(struct ls_detector *detector, double now)
{
    char text[LS_DETECTOR_TEXT];
    const struct ls_member *computing = NULL, *waiting = NULL;
    int stuck = 0, there = 0;
    for (int i = 0; i < detector->member_count; i++) {
        const struct ls_member *member = &detector->members[i];
        if (member->left)
            continue;
        there++;
        if (now - member->moved <= detector->timeout)
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
        detector_describe_hang(detector, computing, waiting->rank, now, text, sizeof text);
    } else {
        computing = waiting;
        snprintf(text, sizeof text, "the ranks wait for each other: none has gone on for %.0f s",
                 now - waiting->moved);
        detector_add_doing(text, sizeof text, &waiting->doing);
    }
    ls_detector_report(detector, LS_REASON_HANGS, computing->rank, LOCKSTEP_LOST, now, text);
}

void ls_detector_decide(struct ls_detector *detector, double now)
{
    if (!(detector->timeout > 0))
        return;
    detector_judge_silence(detector, now);
    if (detector->transport->rank == 0 && !detector->report.made)
        detector_judge_progress(detector, now);
}
