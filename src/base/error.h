/* What went wrong, in the user's own terms: a status, a place, a message, a hint.
 *
 * The library never prints, exits or aborts on bad input. A function that can fail returns a
 * status (0 is success) and takes a `struct ls_error *` last, to which it appends what it found;
 * several problems of one definition are collected before the caller gives up. The structure has
 * a fixed size, so that "out of memory" can be reported too. Statuses are the numbers of
 * `enum lockstep_status`, which are also the exit codes of the command line.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_BASE_ERROR_H
#define LS_BASE_ERROR_H

#include <stddef.h>

#include "lockstep/base.h" /* enum lockstep_status */

enum { LS_PROBLEMS_MAX = 24 };

struct ls_problem {
    int status;        /* enum lockstep_status */
    char place[320];   /* "net.prototxt:12:5", "layer 'conv1'", a file name; may be empty */
    char message[768]; /* one sentence without a full stop */
    char hint[512];    /* what to do about it; may be empty */
};

struct ls_error {
    int status;  /* status of the first problem; 0 while there is none */
    int count;   /* problems kept, at most LS_PROBLEMS_MAX */
    int dropped; /* further problems that found no room */
    struct ls_problem problems[LS_PROBLEMS_MAX];
};

void ls_error_clear(struct ls_error *error);

/* Appends a problem and returns `status`, so that a caller can write `return ls_fail(...)`. What
 * was said before of the same place is not said again.
 * `place` and `hint` may be NULL; `error` may be NULL when the text is not wanted. */
int ls_fail(struct ls_error *error, int status, const char *place, const char *hint,
            const char *format, ...) __attribute__((format(printf, 5, 6)));

/* As ls_fail, for a function that finds what is wrong with something whose name its caller alone
 * knows: the one problem has no place, and the caller hands it to ls_fail with one. Until something
 * is wrong `*problem` need not be initialized; it may be NULL when the text is not wanted. */
int ls_problem_set(struct ls_problem *problem, int status, const char *hint, const char *format,
                   ...) __attribute__((format(printf, 4, 5)));

/* As ls_fail, for a failed allocation of `what`; the status is LOCKSTEP_RESOURCE. */
int ls_fail_memory(struct ls_error *error, const char *what);

/* As ls_fail, with the text of `errno` behind the message: "cannot open: No such file ...". */
int ls_fail_errno(struct ls_error *error, int status, const char *place, const char *doing);

/* Appends all problems of one error to another. */
void ls_error_add(struct ls_error *error, const struct ls_error *more);

/* Writes all problems to `text`, one a line, as "place: message. hint: ..."; always ends with NUL.
 * Returns the length that the whole text has, as snprintf does. */
size_t ls_error_format(const struct ls_error *error, char *text, size_t size);

/* A failure is never 0: clang's analyzer, which sees one file at a time, takes it from here. */
#if defined(__clang_analyzer__) && !defined(LS_ERROR_C)
void ls_analyzed(const void *error, ...);
#define ls_fail(error, status, ...)          (ls_analyzed(error, __VA_ARGS__), (status))
#define ls_problem_set(problem, status, ...) (ls_analyzed(problem, __VA_ARGS__), (status))
#define ls_fail_memory(error, what)          (ls_analyzed(error, what), (int)LOCKSTEP_RESOURCE)
#define ls_fail_errno(error, status, ...)    (ls_analyzed(error, __VA_ARGS__), (status))
#endif

/* Leaves the calling function with the status of a call that failed. */
#define LS_TRY(call)                                                                               \
    do {                                                                                           \
        int ls_try_status = (call);                                                                \
        if (ls_try_status != 0)                                                                    \
            return ls_try_status;                                                                  \
    } while (0)

#endif
