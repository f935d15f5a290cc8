/* Messages to stderr, each line as "lockstep: <text>".
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_REPORT_H
#define LS_CLI_REPORT_H

#include "lockstep/lockstep.h"

/* For a message that all ranks of a job have, before they can communicate: ranks other than 0 leave
 * it to rank 0. As that ends, the launcher ends them with a signal, which ends the wait. If only
 * this rank has the message no signal comes; then it returns after some seconds, and the rank says
 * it itself. */
void ls_cli_let_rank_0_speak(void);

/* Writes a message of the program's own (of several ranks: rank 0) and returns LOCKSTEP_USAGE. */
int ls_cli_usage_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Writes a message and returns `status`; 0: it is no error. */
int ls_cli_error(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Says that there is no memory, and returns LOCKSTEP_RESOURCE. */
int ls_cli_no_memory(void);

/* Writes all problems of a failed call, one a line, and returns `status`. */
int ls_cli_report(int status, struct lockstep_error *error);

/* A line on stderr about what is being done, unless the user wishes to hear only of errors and
 * results; for callbacks. */
void ls_cli_tell(void *user, const char *line);
/* The `event` callback of a command whose output is for other programs: warnings and notices go to
 * stderr. */
void ls_cli_put_event(void *user, const struct lockstep_event *event);

/* Writes a text of several lines. */
void ls_cli_put_lines(const char *text);
/* A line on stdout, without what a terminal would obey; a terminal gets it with lines that end
 * between words. For callbacks. */
void ls_cli_put_line(void *user, const char *line);

/* Flushes stdout. 0, or LOCKSTEP_RESOURCE after a message if something could not be written. */
int ls_cli_finish_output(void);

#endif
