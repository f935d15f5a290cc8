/* Patterns of tensors' names: "h.{i}.ln_1.weight", "{x}.running_mean".
 *
 * "{i}", "{j}", "{k}" and "{l}" stand for the digits of a number, "{x}" for any text that is not
 * empty, once in a pattern. What they stood for in a name is put into other patterns.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SNAPSHOT_WEIGHT_PATTERN_H
#define LS_SNAPSHOT_WEIGHT_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

enum { LS_PATTERN_WORDS = 5 }; /* i j k l x */

/* What the words of a pattern stood for; at NULL: the pattern does not have it. */
struct ls_pattern_match {
    struct {
        const char *at; /* within the name */
        size_t length;
    } word[LS_PATTERN_WORDS];
};

/* Why a pattern is none (a constant), or NULL where it is one. */
const char *ls_pattern_problem(const char *pattern);
/* Whether two patterns have the same words. */
bool ls_pattern_same_words(const char *a, const char *b);
/* Whether all words of `part` are words of `whole`. */
bool ls_pattern_has_words(const char *whole, const char *part);

/* Whether a name fits a pattern. */
bool ls_pattern_fits(const char *pattern, const char *name, struct ls_pattern_match *match);
/* Appends a pattern with its words replaced. */
void ls_pattern_fill(const char *pattern, const struct ls_pattern_match *match,
                     struct ls_text *out);

#endif
