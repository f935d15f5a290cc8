/* A library that only notes how it was called and answers as a test says, so that the program can
 * be tested without training anything.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_FAKE_LIBRARY_H
#define LS_TESTS_FAKE_LIBRARY_H

#include <stddef.h>
#include <stdint.h>

#include "lockstep/lockstep.h"

struct fake {
    /* What to answer. */
    int load_status, create_status, run_status, test_status, verify_status, convert_status;
    int board_room;                            /* events that a folder takes; 0: any */
    int hash_status;                           /* of the weights' hash, */
    int64_t hash_from;                         /* from this iteration on */
    int confusion_status;                      /* of boxes, too */
    int boxes;                                 /* the net finds boxes */
    const char *last_snapshot, *best_snapshot; /* that logs name; NULL: none */
    int picture_status;                        /* of pictures whose name begins with "bad" */
    const char *message;                       /* of a failure */
    const struct lockstep_event *events;       /* sent by run, test, verify, convert and mean */
    size_t event_count;
    int signal;      /* raised by run before it polls; 0: none */
    int signals;     /* how often, at least once */
    int ranks, rank; /* of a job; 0: there is none */
    int job_status, agree_status;
    const char *failure; /* told by close before it returns; NULL: nothing */

    /* What was heard; texts are copies. */
    char calls[1024]; /* "load(lenet.prototxt|base_lr=1|...) create(...) " */
    enum lockstep_request polled[4];
    int polls;        /* how often run polls */
    int looks;        /* at other ranks */
    int live_objects; /* solvers, trainers, models and errors that were not freed */
};
extern struct fake fake;

/* All answers are successes again, all notes are gone. */
void fake_reset(void);

#endif
