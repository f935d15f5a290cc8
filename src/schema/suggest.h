/* What may have been meant by a word that is not known.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SCHEMA_SUGGEST_H
#define LS_SCHEMA_SUGGEST_H

#include <stddef.h>

enum { LS_MEANT_MAX = 128 };

/* The end of a message about an unknown word: "; did you mean 'kernel_size'?", or "" if no known
 * word is near. Writes to `buffer` and returns it. */
const char *ls_did_you_mean(const char *word, const char *const *known, size_t count,
                            char buffer[LS_MEANT_MAX]);

#endif
