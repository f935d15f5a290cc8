/* "Did you mean": the nearest of several words.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/suggest.h"

#include <string.h>

#include "cli/options.h"

enum { LENGTH_MAX = 40 };

/* Edits that make one word of the other (Levenshtein), a row of the table at a time. */
static int edit_distance(const char *a, const char *b)
{
    int row[LENGTH_MAX + 1];
    size_t columns = strlen(b);
    for (size_t j = 0; j <= columns; j++)
        row[j] = (int)j;
    for (size_t i = 0; a[i] != '\0'; i++) {
        int diagonal = row[0];
        row[0] = (int)i + 1;
        for (size_t j = 0; j < columns; j++) {
            int best = diagonal + (a[i] != b[j]);
            diagonal = row[j + 1];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (diagonal + 1 < best)
                best = diagonal + 1;
            row[j + 1] = best;
        }
    }
    return row[columns];
}

const char *ls_cli_suggest(const char *word, const char *const *candidates)
{
    size_t length = strlen(word);
    if (length == 0 || length > LENGTH_MAX)
        return NULL;
    /* One slip in three letters is a typing error; more is another word. */
    int nearest = length <= 3 ? 2 : length <= 6 ? 3 : 4;
    const char *found = NULL;
    for (; *candidates != NULL; candidates++) {
        if (strlen(*candidates) > LENGTH_MAX)
            continue;
        int distance = edit_distance(word, *candidates);
        if (distance < nearest) {
            nearest = distance;
            found = *candidates;
        }
    }
    return found;
}
