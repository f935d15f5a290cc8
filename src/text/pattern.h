/* Regular expressions of tokenizers, carried out by PCRE2.
 *
 * Tokenizer files are written for Oniguruma, in the syntax of Ruby. What both libraries read alike
 * is taken as it is, classes of characters are written out (a word there is what Unicode's
 * properties say, and \s is White_Space), and what they would read differently is refused.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TEXT_PATTERN_H
#define LS_TEXT_PATTERN_H

#include <stddef.h>

#include "base/error.h"

struct ls_pattern;
struct ls_matcher; /* what matching needs besides: one for each thread */

/* What `\w` is in a class, for Oniguruma, and for the regular expressions of Rust. */
#define LS_PATTERN_WORD      "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}"
#define LS_PATTERN_RUST_WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}"
#define LS_PATTERN_SPACE     "\\p{White_Space}"

/* Compiles a regular expression in Oniguruma's syntax, in PCRE2's own (`pattern` is ours), or a
 * string that matches itself. LOCKSTEP_DATA: it cannot be read, or would be understood otherwise
 * than where it comes from. */
enum ls_pattern_syntax { LS_PATTERN_ONIGURUMA, LS_PATTERN_PCRE, LS_PATTERN_LITERAL };
int ls_pattern_compile(const char *pattern, enum ls_pattern_syntax syntax, struct ls_pattern **out,
                       struct ls_problem *problem);
void ls_pattern_free(struct ls_pattern *pattern);

struct ls_matcher *ls_matcher_new(void); /* NULL: out of memory */
void ls_matcher_free(struct ls_matcher *matcher);
/* Begins a text of so many bytes, all of whose matches together take a bounded number of steps. */
void ls_matcher_begin(struct ls_matcher *matcher, size_t length);

enum ls_found {
    LS_FOUND,
    LS_FOUND_NONE,
    LS_FOUND_LIMIT, /* it would take more steps or memory than a sane expression does */
    LS_FOUND_LONG,  /* what stands in the place of matches makes the text too long */
    LS_FOUND_MEMORY
};
/* The first match at or behind `from` in a text that is UTF-8; `only_there`: at `from` itself. */
enum ls_found ls_pattern_find(const struct ls_pattern *pattern, struct ls_matcher *matcher,
                              const char *text, size_t length, size_t from, int only_there,
                              size_t *begin, size_t *end);

#endif
