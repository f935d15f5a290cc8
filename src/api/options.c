/* The options of public functions. See api/options.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "api/options.h"

#include <stdio.h>
#include <string.h>

#include "lockstep/lockstep.h"

int ls_api_options(void *mine, size_t size, const void *given, const char *init,
                   struct ls_error *error)
{
    size_t theirs;
    char hint[128];
    if (given == NULL)
        return ls_fail(error, LOCKSTEP_USAGE, NULL, NULL,
                       "the options are NULL: %s sets those to begin with", init);
    memcpy(&theirs, given, sizeof theirs);
    snprintf(hint, sizeof hint, "call %s first", init);
    if (theirs > size)
        return ls_fail(error, LOCKSTEP_USAGE, NULL, hint,
                       "the options have a size of %zu bytes, and those of this version, %s, have "
                       "%zu: they are a newer version's, or their size was not set",
                       theirs, lockstep_version(), size);
    if (theirs <= sizeof theirs || theirs % sizeof(void *) != 0)
        return ls_fail(error, LOCKSTEP_USAGE, NULL, hint,
                       "the options have a size of %zu bytes, not %zu", theirs, size);
    memset(mine, 0, size);
    memcpy(mine, given, theirs);
    memcpy(mine, &size, sizeof size);
    return 0;
}
