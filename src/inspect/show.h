/* What is in a file, for people.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_INSPECT_SHOW_H
#define LS_INSPECT_SHOW_H

#include "base/error.h"
#include "lockstep/files.h"

/* See lockstep_show. */
int ls_show(const char *path, const struct lockstep_show_options *options, struct ls_error *error);

#endif
