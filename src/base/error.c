/* Collecting what went wrong. Everything lives in the caller's structure, so that nothing here can
 * fail; texts that are too long end in "...", and what would break a line of a terminal (control
 * characters from a hostile file) is replaced, because a problem is always one line.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#define LS_ERROR_C
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

/* Not all of it: it is large, and cleared for each step of a training. Behind the first problem
 * texts are read only where `count` says that they are there. */
void ls_error_clear(struct ls_error *error)
{
    if (error == NULL)
        return;
    error->status = error->count = error->dropped = 0;
    error->problems[0] = (struct ls_problem){0};
}

/* Makes `text`, a buffer of `size` bytes that should have held `length`, presentable. */
static void tidy(char *text, size_t size, int length)
{
    if (length < 0) {
        snprintf(text, size, "(a message that cannot be formatted)");
    } else if ((size_t)length >= size) {
        size_t end = size - 4;
        /* A UTF-8 character must not be cut: step back over its continuation bytes. */
        while (end > 0 && ((unsigned char)text[end] & 0xc0) == 0x80)
            end--;
        memcpy(text + end, "...", 4);
    }
    for (char *p = text; *p != '\0'; p++) {
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
    }
}

static void copy(char *to, size_t size, const char *from)
{
    tidy(to, size, snprintf(to, size, "%s", from != NULL ? from : ""));
}

/* The place for one more problem, or NULL when it can only be counted. */
static struct ls_problem *next_problem(struct ls_error *error, int status)
{
    if (error == NULL)
        return NULL;
    if (error->status == 0)
        error->status = status;
    if (error->count >= LS_PROBLEMS_MAX) {
        error->dropped++;
        return NULL;
    }
    struct ls_problem *problem = &error->problems[error->count++];
    problem->status = status;
    return problem;
}

/* Whether a number stands at `at`, behind `start`, that says which copy of a block something
 * belongs to: "h.3.qkv", "copy 3 of block 'h'". Its digits are counted in *length. */
static bool is_copy_number(const char *start, const char *at, size_t *length)
{
    *length = strspn(at, "0123456789");
    if (*length == 0 || at == start)
        return false;
    if (at[-1] == '.')
        return at[*length] == '.';
    return at - start >= 5 && memcmp(at - 5, "copy ", 5) == 0;
}

/* Whether two texts say the same, be it of different copies of a block. */
static bool say_the_same(const char *a, const char *b)
{
    const char *at = a, *of = b;
    while (*at != '\0' && *of != '\0') {
        size_t length, other;
        if (is_copy_number(a, at, &length) && is_copy_number(b, of, &other)) {
            at += length;
            of += other;
        } else if (*at++ != *of++) {
            return false;
        }
    }
    return *at == *of;
}

/* Takes the newest problem back if it was said before: the train net and the test net of a
 * definition, or two data layers with one source, have much in common, and so do the copies of a
 * block. */
static void drop_repeated(struct ls_error *error)
{
    const struct ls_problem *newest = &error->problems[error->count - 1];
    for (const struct ls_problem *old = error->problems; old < newest; old++)
        if (old->place[0] != '\0' && strcmp(old->place, newest->place) == 0 &&
            say_the_same(old->message, newest->message)) {
            error->count--;
            return;
        }
}

static void fill(struct ls_problem *problem, const char *place, const char *hint,
                 const char *format, va_list arguments) __attribute__((format(printf, 4, 0)));

static void fill(struct ls_problem *problem, const char *place, const char *hint,
                 const char *format, va_list arguments)
{
    int length = vsnprintf(problem->message, sizeof problem->message, format, arguments);
    tidy(problem->message, sizeof problem->message, length);
    copy(problem->place, sizeof problem->place, place);
    copy(problem->hint, sizeof problem->hint, hint);
}

int ls_fail(struct ls_error *error, int status, const char *place, const char *hint,
            const char *format, ...)
{
    struct ls_problem *problem = next_problem(error, status);
    if (problem == NULL)
        return status;
    va_list arguments;
    va_start(arguments, format);
    fill(problem, place, hint, format, arguments);
    va_end(arguments);
    drop_repeated(error);
    return status;
}

int ls_problem_set(struct ls_problem *problem, int status, const char *hint, const char *format,
                   ...)
{
    if (problem == NULL)
        return status;
    va_list arguments;
    problem->status = status;
    va_start(arguments, format);
    fill(problem, NULL, hint, format, arguments);
    va_end(arguments);
    return status;
}

int ls_fail_memory(struct ls_error *error, const char *what)
{
    const char *why = ls_noted_memory();
    const int status = ls_fail(error, LOCKSTEP_RESOURCE, NULL, NULL, "out of memory for %s%s%s",
                               what, why[0] != '\0' ? ": " : "", why);
    ls_note_memory(NULL);
    return status;
}

int ls_fail_errno(struct ls_error *error, int status, const char *place, const char *doing)
{
    char buffer[128];
    /* The GNU variant: the text may be the buffer or a constant. */
    const char *reason = strerror_r(errno, buffer, sizeof buffer);
    return ls_fail(error, status, place, NULL, "%s: %s", doing, reason);
}

/* Appends to a text of which only the first `size` bytes exist, and counts all of it. */
static void append(char *text, size_t size, size_t *length, const char *part)
{
    size_t count = strlen(part);
    if (*length + 1 < size) {
        size_t room = size - 1 - *length;
        size_t kept = count < room ? count : room;
        memcpy(text + *length, part, kept);
        text[*length + kept] = '\0';
    }
    *length += count;
}

void ls_error_add(struct ls_error *error, const struct ls_error *more)
{
    for (int i = 0; i < more->count; i++) {
        const struct ls_problem *problem = &more->problems[i];
        ls_fail(error, problem->status, problem->place, problem->hint, "%s", problem->message);
    }
}

size_t ls_error_format(const struct ls_error *error, char *text, size_t size)
{
    size_t length = 0;
    if (size > 0)
        text[0] = '\0';
    for (int i = 0; i < error->count; i++) {
        const struct ls_problem *problem = &error->problems[i];
        if (i > 0)
            append(text, size, &length, "\n");
        if (problem->place[0] != '\0') {
            append(text, size, &length, problem->place);
            append(text, size, &length, ": ");
        }
        append(text, size, &length, problem->message);
        if (problem->hint[0] != '\0') {
            append(text, size, &length, ". hint: ");
            append(text, size, &length, problem->hint);
        }
    }
    if (error->dropped > 0) {
        char more[64];
        snprintf(more, sizeof more, "\n(and %d more)", error->dropped);
        append(text, size, &length, more);
    }
    return length;
}
