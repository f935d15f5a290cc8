/* What the events of a training say. See include/lockstep/log.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_REPORT_LOG_H
#define LS_REPORT_LOG_H

#include <time.h>

#include "base/error.h"
#include "base/json_tree.h"
#include "lockstep/log.h"
#include "report/series.h"
#include "report/spread.h"

/* More of one log is left out: a hostile one could fill memory with them. */
enum {
    LS_LOG_SERIES = 64,
    LS_LOG_FACTS = 64,
    LS_LOG_MESSAGES = 200,
    LS_LOG_PARAMETERS = 4096,
    LS_LOG_TEXT = 1 << 16,  /* bytes of a fact or a message */
    LS_LOG_LINE = 64 << 20, /* bytes of a line: "statistics" of large nets are long */
    LS_LOG_FIGURES = 8      /* of an output with one for each class */
};

struct lockstep_log {
    struct ls_series *series; /* LS_LOG_SERIES of them */
    size_t series_count;
    struct lockstep_series *shown; /* the same, as the public interface has them */
    struct ls_series hashes;       /* of the weights; the figures themselves are zeros */
    struct lockstep_fact *facts;
    size_t fact_count, fact_room;
    struct lockstep_log_message *messages;
    size_t message_count, message_room;
    struct lockstep_log_parameter *parameters;
    size_t parameter_count, parameter_room;
    struct ls_log_spread *spreads; /* LS_SPREADS_OF_A_LOG of them; NULL: no statistics yet */
    size_t spread_count;
    struct lockstep_log_state state;
    double elapsed; /* of the present run */
    double earlier; /* seconds of those before it */
    int64_t first;  /* updates done when the present run began */
    time_t written; /* when its file was last written to; 0: it was not read from a file */
    char hash[24];
    char *last_snapshot, *best_snapshot; /* NULL: none */
};

/* Takes an event. */
int ls_log_take(struct lockstep_log *log, const struct ls_json_tree *event, struct ls_error *error);

int ls_log_line(struct lockstep_log *log, const char *line, size_t length, struct ls_error *error);
int ls_log_read(struct lockstep_log *log, const char *path, struct ls_error *error);
struct lockstep_log *ls_log_new(void); /* NULL: no memory */
void ls_log_free(struct lockstep_log *log);

/* The series of that name; NULL: there is none. */
const struct ls_series *ls_log_find(const struct lockstep_log *log, const char *name);
/* A fact's value; NULL: there is none. */
const char *ls_log_fact(const struct lockstep_log *log, const char *name);

#endif
