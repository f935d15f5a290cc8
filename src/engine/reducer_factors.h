/* The exchange of factors, a part of the reducer; for the files of the reducer only. See
 * engine/reducer.h. SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_REDUCER_FACTORS_H
#define LS_ENGINE_REDUCER_FACTORS_H

#include "engine/factors.h"
#include "engine/store.h"
#include "transport/progress_thread.h"

struct ls_reducer_factors;

int ls_reducer_factors_create(struct ls_store *store, struct ls_comm *comm,
                              struct ls_reducer_factors **reducer, struct ls_error *error);
void ls_reducer_factors_free(struct ls_reducer_factors *reducer);
/* The collective of one side of a factor. */
struct ls_collective *ls_reducer_factors_collective(struct ls_reducer_factors *reducer,
                                                    size_t factor, enum ls_factor_side side);
/* Begins a pass of which this rank runs `own` micro-batches; see ls_reducer_begin. */
int ls_reducer_factors_begin(struct ls_reducer_factors *reducer, const int *owner, size_t units,
                             int own, struct ls_error *error);
/* See ls_reducer_recorded. */
int ls_reducer_factors_recorded(struct ls_reducer_factors *reducer,
                                const struct ls_record_attr *record,
                                const struct ls_context *context, struct ls_error *error);
/* What the device failed with under an exchange; 0: nothing. */
int ls_reducer_factors_status(const struct ls_reducer_factors *reducer);
/* This rank has recorded everything: marks all sides as ready. */
void ls_reducer_factors_ready(struct ls_reducer_factors *reducer);
int ls_reducer_factors_end(struct ls_reducer_factors *reducer, const int *owner, size_t units,
                           struct ls_error *error);

#endif
