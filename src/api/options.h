/* The options of public functions, which may be those of an older version.
 *
 * Every struct of options begins with its size as the caller's compiler saw it. Later versions add
 * fields at the end, whose zeros mean what was done before there was a field.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_API_OPTIONS_H
#define LS_API_OPTIONS_H

#include <stddef.h>

#include "base/error.h"

/* Copies a caller's options to `mine`, of `size` bytes: what a smaller struct lacks is zero there.
 * A size that is no such struct's, or a larger one, fails; `init` names what sets it. */
int ls_api_options(void *mine, size_t size, const void *given, const char *init,
                   struct ls_error *error);

/* The same for a variable of the type that `given` points to. */
#define LS_API_OPTIONS(mine, given, init, error)                                                   \
    ls_api_options(&(mine), sizeof(mine), 1 ? (given) : &(mine), init, error)

#endif
