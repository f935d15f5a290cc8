/* What differs between two files of weights, or two definitions.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_INSPECT_DIFF_H
#define LS_INSPECT_DIFF_H

#include "base/error.h"

/* See lockstep_diff. */
int ls_diff(const char *first, const char *second, void (*tell)(void *user, const char *line),
            void *user, struct ls_error *error);

#endif
