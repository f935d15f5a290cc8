/* Log lines as Caffe writes them, for programs that read its logs:
 *     I1123 01:02:03.123456 12345 solver.cpp:239] Iteration 0, loss = 2.3
 * They go to stderr, and to a file in a folder where that is asked for.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_GLOG_H
#define LS_CLI_GLOG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum ls_glog_level { LS_GLOG_INFO, LS_GLOG_WARNING, LS_GLOG_ERROR, LS_GLOG_FATAL };

struct ls_glog {
    int minimum; /* lines of lower levels are left out */
    int quiet;   /* lines of lower levels do not go to stderr */
    FILE *file;  /* NULL: none */
};

/* Opens "FOLDER/PROGRAM.HOST.USER.log.INFO.DATE-TIME.PID", with a link "FOLDER/PROGRAM.INFO" to it.
 * 0, or a status after a message. */
int ls_glog_open(struct ls_glog *log, const char *folder, const char *program);
void ls_glog_close(struct ls_glog *log);

/* Writes a line; text from outside is cleaned. `place` is where Caffe has such a line. */
void ls_glog_put(const struct ls_glog *log, enum ls_glog_level level, const char *place,
                 const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
