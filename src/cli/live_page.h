/* The page of a training that is under way: a folder with its events and its page.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_LIVE_PAGE_H
#define LS_CLI_LIVE_PAGE_H

#include <stdbool.h>
#include <stdio.h>

#include "cli/page.h"
#include "lockstep/lockstep.h"

/* FOLDER/log.json has the events, so that a training that is resumed goes on with its curves;
 * FOLDER/report.html is written anew at displays and tests, at most every few seconds, and when the
 * training ends. */
struct ls_cli_live_page {
    const char *folder, *name; /* name: of the run */
    char *events, *page;       /* paths */
    FILE *file;                /* of the events; NULL until the training begins */
    char *early;               /* lines from before that, */
    size_t early_length;       /* which go to the file then */
    struct lockstep_log *log;
    struct ls_cli_page parts;
    double begun, written; /* seconds; written: when the page was */
    bool failed;           /* something could not be written */
};

/* Makes the folder where it is not there, and looks at what is in it: nothing is changed before the
 * training begins. 0, or a status after a message. `folder` and `name` must last. */
int ls_cli_live_page_open(struct ls_cli_live_page *page, const char *folder, const char *name);
/* The definition and the net that are trained. */
void ls_cli_live_page_define(struct ls_cli_live_page *page, struct lockstep_solver *solver,
                             const char *path, const struct lockstep_dummy_options *dummy);
void ls_cli_live_page_event(struct ls_cli_live_page *page, const struct lockstep_event *event);
/* Writes the page a last time. Returns `status`, or LOCKSTEP_RESOURCE where that is 0 and something
 * could not be written. */
int ls_cli_live_page_close(struct ls_cli_live_page *page, int status);

/* For a log that was opened to be read and continued: a program that was killed may have left a
 * part of a line, which would spoil the one behind it. */
void ls_cli_end_last_line(FILE *log);

#endif
