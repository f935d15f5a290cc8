/* Which mistake objects with mutants make: the one that LOCKSTEP_MUTANT names (base/mutant.h).
 * SPDX-License-Identifier: BSD-2-Clause */
#define LS_MUTANTS
#include "base/mutant.h"

#include <stdlib.h>
#include <string.h>

static const char *chosen = "";

__attribute__((constructor)) static void choose(void)
{
    if (getenv("LOCKSTEP_MUTANT") != NULL)
        chosen = getenv("LOCKSTEP_MUTANT");
}

bool ls_mutant(const char *name)
{
    return strcmp(chosen, name) == 0;
}
