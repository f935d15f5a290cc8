/* The snapshots of a training, for people.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_INSPECT_LIST_H
#define LS_INSPECT_LIST_H

#include "base/error.h"
#include "lockstep/files.h"

/* See lockstep_list_snapshots. */
int ls_list_snapshots(const char *prefix,
                      void (*tell)(void *user, const struct lockstep_listed_snapshot *snapshot),
                      void *user, struct ls_error *error);

#endif
