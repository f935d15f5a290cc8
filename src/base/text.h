/* A string that grows. After a failed allocation it stays as it was and `failed` is set, so that
 * a long run of appends needs one check at its end.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_BASE_TEXT_H
#define LS_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct ls_text {
    char *data; /* NUL-terminated; NULL while empty */
    size_t length, capacity;
    bool failed; /* an append ran out of memory */
};

void ls_text_add(struct ls_text *text, const char *string);
void ls_text_add_bytes(struct ls_text *text, const void *bytes, size_t length);
void ls_text_format(struct ls_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* As a string of JSON, quoted and escaped. Characters beyond ASCII stay as they are. */
void ls_text_add_json(struct ls_text *text, const char *string);
void ls_text_free(struct ls_text *text);

/* A number for people and other programs: what is whole has all its digits, of others the shortest
 * decimal form that reads back to the same float (of one beyond floats, to the same number). */
void ls_format_number(char out[32], double value);
/* The shortest decimal form that reads back to the same number ("0.1", "1e-05", "inf"). */
void ls_format_float(char out[32], float value);
void ls_format_double(char out[32], double value);
/* The number that a text of ls_format_double begins with, whatever the locale. */
double ls_parse_double(const char *text);

/* Levenshtein distance, at most `limit` + 1; for "did you mean". */
int ls_edit_distance(const char *a, const char *b, int limit);
/* The candidate nearest to `word` if it is near enough to suggest, else NULL. */
const char *ls_suggest(const char *word, const char *const *candidates, size_t count);

#endif
