/* Parameters of a store as views of other layouts and types.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_STORE_VIEWS_H
#define LS_ENGINE_STORE_VIEWS_H

#include "engine/store.h"

/* Memory for views that plans have asked for since, brought up to date: for all, or for none where
 * it fails. */
int ls_store_add_views(struct ls_store *store, struct ls_error *error);

/* Brings all views up to date with the weights. */
int ls_store_refresh_views(struct ls_store *store, struct ls_thread_pool *pool,
                           struct ls_error *error);
/* After an update: only those of weights that are not exchanged. */
int ls_store_refresh_own_views(struct ls_store *store, struct ls_thread_pool *pool,
                               struct ls_error *error);
/* Those of the weights in a bucket of the flat array, when they have arrived. */
int ls_store_convert_bucket(struct ls_store *store, int bucket, struct ls_error *error);

/* For the store itself: memory for views that have none, and the end of all behind the first
 * `count`. */
int ls_store_open_views(struct ls_store *store, struct ls_error *error);
void ls_store_close_views(struct ls_store *store, size_t count);

#endif
