/* Normalizers: a text becomes another, before it is cut.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TEXT_NORMAL_H
#define LS_TEXT_NORMAL_H

#include "text/tokenizer.h"

/* Two texts in turn, and what NFD and the like need besides. */
struct ls_normal_room {
    struct ls_text texts[2];
    int32_t *characters;
    size_t capacity;
};
void ls_normal_room_free(struct ls_normal_room *room);

/* How many times as long a text may become, and a MiB longer, but not more than 2 GiB: normal forms
 * make a character at most 11 times as long, but a Replace may put anything into its place, and the
 * next one more. */
enum { LS_NORMAL_GROWTH = 256 };

/* Carries all normalizers of a tokenizer out. *out and *out_length are the text itself where
 * nothing changes it, else they belong to `room`. */
enum ls_found ls_normalize(const struct ls_tokenizer *tokenizer, struct ls_matcher *matcher,
                           struct ls_normal_room *room, const char *text, size_t length,
                           const char **out, size_t *out_length);

#endif
