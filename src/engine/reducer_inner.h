/* The exchange of factors, a part of the reducer; for the files of the reducer only. See
 * engine/reducer.h. SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_REDUCER_INNER_H
#define LS_ENGINE_REDUCER_INNER_H

#include "engine/factors.h"
#include "engine/store.h"
#include "transport/progress_thread.h"

struct ls_factor_reducer;

int ls_factor_reducer_create(struct ls_store *store, struct ls_comm *comm,
                             struct ls_factor_reducer **reducer, struct ls_error *error);
void ls_factor_reducer_free(struct ls_factor_reducer *reducer);
/* The collective of one side of a factor. */
struct ls_collective *ls_factor_reducer_collective(struct ls_factor_reducer *reducer, size_t factor,
                                                   enum ls_factor_side side);
/* Begins a pass of which this rank runs `own` micro-batches; see ls_reducer_begin. */
int ls_factor_reducer_begin(struct ls_factor_reducer *reducer, const int *owner, size_t units,
                            int own, struct ls_error *error);
/* See ls_reducer_recorded. */
int ls_factor_reducer_recorded(struct ls_factor_reducer *reducer,
                               const struct ls_record_attr *record,
                               const struct ls_context *context, struct ls_error *error);
/* What the device failed with under an exchange; 0: nothing. */
int ls_factor_reducer_status(const struct ls_factor_reducer *reducer);
/* This rank has recorded everything: marks all sides as ready. */
void ls_factor_reducer_ready(struct ls_factor_reducer *reducer);
int ls_factor_reducer_end(struct ls_factor_reducer *reducer, const int *owner, size_t units,
                          struct ls_error *error);

#endif
