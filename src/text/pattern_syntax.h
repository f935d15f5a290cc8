/* Oniguruma's regular expressions in PCRE2's words.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TEXT_PATTERN_SYNTAX_H
#define LS_TEXT_PATTERN_SYNTAX_H

#include <stdbool.h>

#include "base/error.h"
#include "base/text.h"

/* Writes `pattern`, which is UTF-8, as PCRE2 understands it to *out. */
int ls_pattern_translate(const char *pattern, struct ls_text *out, struct ls_problem *problem);

/* Whether a property's name is that of a script: PCRE2 would take \p{Han} for all characters that
 * are used with it, Oniguruma takes those that are of it. (text/pattern.c asks PCRE2.) */
bool ls_pattern_is_script(const char *name);

#endif
