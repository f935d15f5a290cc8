/* A lock that goes with its process: two trainings must not write the same snapshots.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_BASE_LOCK_FILE_H
#define LS_BASE_LOCK_FILE_H

#include "base/error.h"

/* A file that is locked (flock) while it is held. It names the process and its host, and is removed
 * at the end; one that a killed process has left is not locked and is taken over. On NFS other
 * machines see the lock where the file system has locks of its own at all; where there are none,
 * nothing is locked and nothing fails. */
struct ls_lock;

/* LOCKSTEP_USAGE, with the other one's process and host, where another process holds it (after
 * waiting a little for one that is ending), or this one. LOCKSTEP_RESOURCE where there can be no
 * such file: a folder, a link, or something that is no lock, is in its place and stays there. */
int ls_lock_take(const char *path, struct ls_lock **lock, struct ls_error *error);
void ls_lock_release(struct ls_lock *lock); /* NULL: nothing */

#endif
