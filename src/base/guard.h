/* Views of files whose pages may be missing when they are touched: the file was cut off, or the
 * disk has failed. Without a guard that ends the process with SIGBUS.
 *
 * The first guard installs a handler of SIGBUS for the process. For an address in a guarded view it
 * puts pages of zeros from there to the view's end and notes that the view is lost. Any other
 * SIGBUS goes on to the handler that was there before, or does what it would have done without this
 * one. A program that installs a handler of its own afterwards has to hand SIGBUS on in the same
 * way.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_BASE_GUARD_H
#define LS_BASE_GUARD_H

#include <stdbool.h>
#include <stddef.h>

struct ls_guard;

/* Guards a view of `size` bytes until ls_guard_leave; NULL: no memory. Any thread may call. */
struct ls_guard *ls_guard_enter(void *view, size_t size);
/* The view must be there still. NULL does nothing. */
void ls_guard_leave(struct ls_guard *guard);
/* Whether something of the view could not be read. NULL: no. */
bool ls_guard_lost(const struct ls_guard *guard);

#endif
