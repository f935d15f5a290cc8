/* Memory that the first update will need, made ready while the computing threads do something else:
 * the kernel clears its pages, which takes a large net as long as an update.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_PAGES_H
#define LS_ENGINE_PAGES_H

#include "engine/store.h"

struct ls_pages;

/* Starts a thread that walks through the optimizer's arrays of a store in the host's memory, which
 * the update is the first to touch. NULL where there are none, or no thread is to be had: nothing
 * depends on it. */
struct ls_pages *ls_pages_start(const struct ls_store *store);
/* Waits for it; before the store goes. NULL is allowed. */
void ls_pages_end(struct ls_pages *pages);

#endif
