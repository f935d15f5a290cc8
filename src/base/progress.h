/* Signs of life from work that takes long in one function, such as reading a large file: told to
 * the listener of the same thread.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_BASE_PROGRESS_H
#define LS_BASE_PROGRESS_H

/* From now on `heard` is called for each piece of work of this thread. NULL: the listener is
 * removed. */
void ls_progress_hear(void (*heard)(void *user), void *user);
/* A piece is done: some MiB, or what takes about as long. */
void ls_progress_tell(void);

#endif
