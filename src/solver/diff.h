/* What differs between two snapshots.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_DIFF_H
#define LS_SOLVER_DIFF_H

#include "base/error.h"

/* See lockstep_diff. */
int ls_diff(const char *first, const char *second, void (*tell)(void *user, const char *line),
            void *user, struct ls_error *error);

#endif
