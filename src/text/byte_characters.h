/* Characters that stand for bytes, as GPT-2 has them: printable characters of Latin-1 for
 * themselves, and for all other bytes, in order, those from U+0100 on.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TEXT_BYTE_CHARACTERS_H
#define LS_TEXT_BYTE_CHARACTERS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

void ls_bytes_to_characters(const char *bytes, size_t length, struct ls_text *out);
/* False, with nothing appended, where a character stands for no byte. `text` is UTF-8. */
bool ls_characters_to_bytes(const char *text, size_t length, struct ls_text *out);

#endif
