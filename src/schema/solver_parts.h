/* Inside of the solver's reader: its steps.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SCHEMA_SOLVER_PARTS_H
#define LS_SCHEMA_SOLVER_PARTS_H

#include "schema/solver.h"

/* A solver while it is put together. */
struct ls_solver_reading {
    struct ls_solver_definition *out;
    Lockstep__SolverParameter *solver; /* out->solver, to be changed */
    struct ls_error *error;
    const char **warning; /* grows in the definition's arena */
    size_t warning_count;
    const char **failed; /* files of nets whose problems have been reported */
    size_t failed_count;
    int status;               /* of reading the solver itself */
    int *damage;              /* of reading each of out->file */
    int64_t batch;            /* of the override "batch=N"; 0: there is none */
    const char *batch_source; /* that option */
};

/* Applies one override "field=value". */
int ls_solver_set(struct ls_solver_reading *reading, const char *set);
/* Takes the override "batch=value", `source` as the user wrote it; and gives it to the train net,
 * once that is read. */
int ls_solver_take_batch(struct ls_solver_reading *reading, const char *source, const char *value);
int ls_solver_set_batch(struct ls_solver_reading *reading);
/* Finds, reads, upgrades and filters the nets. If the solver is not `complete`, because parts of
 * it could not be read, nothing is said about nets that are not named. */
int ls_solver_find_nets(struct ls_solver_reading *reading, bool complete);
/* Checks every field; `nets_known` says that out->test_count holds. Returns 0 or the status of
 * the first problem. */
int ls_solver_check(struct ls_solver_reading *reading, bool nets_known);
/* What the numbers of a field may be: [low, high], or without an end that is open. */
struct ls_solver_range {
    const char *field; /* float or int32 */
    double low, high;
    bool low_open, high_open;
};
/* Checks fields of the solver or of a message in it. */
int ls_solver_check_ranges(struct ls_solver_reading *reading, const ProtobufCMessage *message,
                           const struct ls_solver_range *ranges, size_t count);
/* The parts of this that are about the rule of update and groups of parameters. */
int ls_solver_check_type(struct ls_solver_reading *reading);
int ls_solver_check_groups(struct ls_solver_reading *reading);
/* The part of this that is about the learning rate. */
int ls_solver_check_rate(struct ls_solver_reading *reading);
/* The part that is about fields of the nets (schema/net_check.c). */
int ls_solver_check_nets(struct ls_solver_reading *reading);

/* The file beside a definition that a path passes over, as the working directory has another one of
 * that name, which goes first (free with ls_free); NULL: there is none. */
char *ls_solver_passed_over(const char *path, const char *definition);

/* Whether the solver says something about a field. */
bool ls_solver_has(const struct ls_solver_reading *reading, const char *field);
/* Reports a problem of a field, with its place; returns LOCKSTEP_DEFINITION. */
int ls_solver_problem(struct ls_solver_reading *reading, const char *field, const char *hint,
                      const char *format, ...) __attribute__((format(printf, 4, 5)));
/* The same about a field of a message in the solver's file. */
int ls_solver_problem_at(struct ls_solver_reading *reading, const void *message, const char *field,
                         const char *hint, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* Adds a warning about a field. */
void ls_solver_warn(struct ls_solver_reading *reading, const char *field, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same about a field of a message of one of the nets. */
void ls_solver_warn_at(struct ls_solver_reading *reading, const struct ls_definition *definition,
                       const void *message, const char *field, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* Reports an unknown word, with the one that may have been meant. */
int ls_solver_unknown(struct ls_solver_reading *reading, const char *field, const char *what,
                      const char *word, const char *const *known, size_t count);
int ls_solver_unknown_at(struct ls_solver_reading *reading, const void *message, const char *field,
                         const char *what, const char *word, const char *const *known,
                         size_t count);

#endif
