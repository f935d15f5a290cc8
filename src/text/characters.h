/* What characters are.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TEXT_CHARACTERS_H
#define LS_TEXT_CHARACTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

/* Unicode's White_Space. */
bool ls_is_space(uint32_t character);
/* Of general category P, or a character of ASCII that is neither letter, digit, space nor control:
 * what BERT calls punctuation. */
bool ls_is_punctuation(uint32_t character);
/* Of general category N. */
bool ls_is_number(uint32_t character);
/* Of general category M, or of Mn alone. */
bool ls_is_mark(uint32_t character);
bool ls_is_nonspacing_mark(uint32_t character);
/* A control or format character, or one of private use, but no tab and no end of a line: what BERT
 * takes out of texts. */
bool ls_is_control(uint32_t character);
/* The ideographs that BERT makes words of their own. */
bool ls_is_ideograph(uint32_t character);

/* Appends what texts are understood with: versions of libraries, and of Unicode. */
void ls_text_describe(struct ls_text *out);

#endif
