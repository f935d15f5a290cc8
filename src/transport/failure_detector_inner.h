/* What the files of the failure detector share. Its parts: messages and turns (failure_detector.c),
 * the rules for silent, dead and hanging ranks (failure_rules.c), and how a job ends
 * (failure_end.c).
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TRANSPORT_FAILURE_DETECTOR_INNER_H
#define LS_TRANSPORT_FAILURE_DETECTOR_INNER_H

#include <pthread.h>

#include "transport/failure_detector.h"

enum {
    LS_DETECTOR_NAME = 96,         /* of a layer, in messages; longer ones are cut */
    LS_DETECTOR_TEXT = 3072,       /* of what is said */
    LS_DETECTOR_NEIGHBOURS = 4,    /* processes that each rank looks after */
    LS_DETECTOR_PATIENCE = 5,      /* seconds that a rank gives others to end the job */
    LS_DETECTOR_PATIENCE_LEFT = 10 /* for others to come where one has left with a failure */
};

/* ---- Messages -------------------------------------------------------------------------------- */

enum ls_detector_message {
    LS_MESSAGE_HEARTBEAT = 1, /* struct ls_heartbeat: a rank to rank 0, rank 0 to all */
    LS_MESSAGE_FAILED,        /* struct ls_word: a rank cannot go on */
    LS_MESSAGE_GONE,          /* struct ls_word: the process of `rank` is gone */
    LS_MESSAGE_LEFT,          /* struct ls_word: a rank has done its work */
    LS_MESSAGE_END,           /* struct ls_word: all have, with `status` */
    LS_MESSAGE_DECISION       /* struct ls_word: rank 0 ends the job */
};

/* What a rank does. */
struct ls_doing {
    int64_t iteration; /* -1: nothing has been noted */
    uint64_t progress; /* changes whenever it goes on */
    int32_t waiting;   /* threads that wait for other ranks */
    uint32_t reserved;
    char layer[LS_DETECTOR_NAME];
};

struct ls_heartbeat {
    uint32_t kind, reserved;
    struct ls_doing doing;
};

struct ls_word {
    uint32_t kind;
    int32_t status, rank;
    uint32_t reserved;
    struct ls_doing doing;
    char text[LS_DETECTOR_TEXT];
};

/* ---- State ----------------------------------------------------------------------------------- */

/* Another rank, or on rank 0 this one, as it is known here. */
struct ls_member {
    int rank;
    struct ls_identity who; /* host "": not known */
    struct ls_doing doing;
    double heard; /* when it was heard of */
    double moved; /* when it went on */
    bool left;
    int status; /* with which it left */
};

/* Why a job fails, from what weighs most. */
enum ls_reason {
    LS_REASON_FAILED,
    LS_REASON_DIED,
    LS_REASON_SILENT,
    LS_REASON_HANGS,
    LS_REASON_LEFT,
    LS_REASON_LOST,   /* a rank has lost others, for an unknown reason */
    LS_REASON_DECIDED /* rank 0 has said it already */
};

/* A failure that will be reported when it is due, unless it turns out that another one was first.
 */
struct ls_failure_report {
    bool made;
    double due;
    enum ls_reason reason;
    int status, rank;
    struct ls_doing doing;
    char text[LS_DETECTOR_TEXT];
};

struct ls_detector {
    struct ls_transport *transport;
    double timeout; /* 0: for ever */
    char *status_file;
    char found[1024]; /* wrongly computed, the last one */
    int64_t found_count;
    char warning[LS_DETECTOR_TEXT]; /* the last one that was told (ls_detector_warn) */
    ls_detector_on_failure *on_failure;
    void *on_failure_user;
    ls_detector_on_message *on_message;
    void *on_message_user;
    struct ls_detector_senses senses;

    /* The own note: any thread. */
    _Atomic int64_t iteration;
    _Atomic(const char *) layer;
    _Atomic uint64_t progress;
    _Atomic int waiting;

    _Atomic bool alarm;   /* the job fails; `decision` says why */
    _Atomic bool resting; /* all have left: nothing is watched any more */
    _Atomic bool ended;   /* the transport has been told to end the job (and came back) */
    _Atomic bool hurry;   /* look at everything in the next turn */

    _Atomic uint64_t turns; /* that have been completed */
    _Atomic bool claimed;   /* a thread reports the failure and ends the job */

    pthread_mutex_t lock; /* held during a turn, calls of the transport included; guards all that
                             follows */
    /* Held for a moment by what changes members, neighbours or what status.json is written
     * from, inside of `lock`: the watchdog reads these where a turn does not end. */
    pthread_mutex_t known;
    struct ls_member *members; /* rank 0: all, by rank; others: rank 0 and their neighbours */
    int member_count;
    int neighbours[LS_DETECTOR_NEIGHBOURS], neighbour_count; /* indices of `members` */
    bool leads; /* reports the silence of rank 0: no other rank of this machine is before it */
    bool begun;
    double last_turn, next_hearing, next_heartbeat, next_answer, next_look, hurried_until,
        blind_until, next_status;
    struct ls_failure_report report;
    char decision[LS_DETECTOR_TEXT];
    bool leaving; /* this rank has done its work */
    int left_count;
    bool lost;       /* a rank has left because it lost others */
    int agreed;      /* the status that all leave with */
    char *last_text; /* what the first failing rank said as it left */
    int last_rank;
};

/* ---- detector.c ---------------------------------------------------------------------------------
 */

struct ls_member *ls_detector_member(struct ls_detector *detector, int rank);
struct ls_doing ls_detector_doing(const struct ls_detector *detector);
void ls_detector_send(struct ls_detector *detector, int to, enum ls_detector_message kind,
                      int status, int rank, const char *text);
/* Takes a turn now, however soon after the last one; waits where another thread is at it. */
void ls_detector_poll_now(struct ls_detector *detector);

/* ---- failure_rules.c: with the lock held -------------------------------------------------------
 */

void ls_detector_look(struct ls_detector *detector, double now);
void ls_detector_decide(struct ls_detector *detector, double now);
/* "rank 2 (node7)" */
void ls_detector_name(struct ls_detector *detector, int rank, char *text, size_t size);
/* What is said of a rank whose process is gone. */
void ls_detector_describe_gone(struct ls_detector *detector, int rank, double now, char *text,
                               size_t size);
/* What is said of a rank that is not heard of. */
void ls_detector_describe_silent(struct ls_detector *detector, const struct ls_member *member,
                                 double now, char *text, size_t size);
/* What is said of this rank where its transport has not come back for so many seconds. */
void ls_detector_describe_stuck(struct ls_detector *detector, double seconds, char *text,
                                size_t size);

/* ---- failure_end.c: with the lock held ---------------------------------------------------------
 */

void ls_detector_report(struct ls_detector *detector, enum ls_reason reason, int rank, int status,
                        double due, const char *text);
void ls_detector_receive_word(struct ls_detector *detector, int from, const struct ls_word *word,
                              double now);
/* Now and then: status.json says where a job is. */
void ls_detector_tell_running(struct ls_detector *detector, double now);
/* Reports what is due. */
void ls_detector_carry_out(struct ls_detector *detector, double now);
/* Without `lock`, with `known`: reports a failure and ends this process, with no call of the
 * transport. No effect where another thread has begun to end the job. */
void ls_detector_end_process(struct ls_detector *detector, const struct ls_failure_report *report);

#endif
