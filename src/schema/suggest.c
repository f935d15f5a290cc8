/* SPDX-License-Identifier: BSD-2-Clause */
#include "schema/suggest.h"

#include <stdio.h>

#include "base/text.h"

const char *ls_did_you_mean(const char *word, const char *const *known, size_t count,
                            char buffer[LS_MEANT_MAX])
{
    const char *meant = ls_suggest(word, known, count);
    if (meant != NULL)
        snprintf(buffer, LS_MEANT_MAX, "; did you mean '%.100s'?", meant);
    else
        buffer[0] = '\0';
    return buffer;
}
