/* Texts that end other texts. See cli/stops.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/stops.h"

#include <stdlib.h>
#include <string.h>

/* How many bytes from `at` on are like the beginning of `stop`, if all there are; else 0. */
static size_t alike(const struct ls_cli_held *held, size_t at, const char *stop)
{
    const size_t length = strlen(stop), left = held->length - at;
    const size_t compared = length < left ? length : left;
    return memcmp(held->bytes + at, stop, compared) == 0 ? compared : 0;
}

bool ls_cli_held_add(struct ls_cli_held *held, const char *bytes, size_t length,
                     const char *const *stops, size_t count, size_t *ready, bool *stopped)
{
    *ready = 0;
    *stopped = false;
    if (length == 0)
        return true;
    if (held->room - held->length < length) {
        const size_t room = 2 * held->room + length + 64;
        char *more = realloc(held->bytes, room);
        if (more == NULL)
            return false;
        held->bytes = more;
        held->room = room;
    }
    memcpy(held->bytes + held->length, bytes, length);
    held->length += length;
    for (; *ready < held->length; ++*ready) {
        bool begun = false;
        for (size_t i = 0; i < count && !*stopped; i++) {
            const size_t found = alike(held, *ready, stops[i]);
            begun = begun || found > 0;
            *stopped = found == strlen(stops[i]);
        }
        if (begun)
            break;
    }
    return true;
}

void ls_cli_held_drop(struct ls_cli_held *held, size_t bytes)
{
    held->length -= bytes;
    memmove(held->bytes, held->bytes + bytes, held->length);
}
