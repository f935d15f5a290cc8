/* The factors' part of travel; for the files of travel only. See engine/travel.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_TRAVEL_INNER_H
#define LS_ENGINE_TRAVEL_INNER_H

#include "engine/factors.h"
#include "engine/store.h"
#include "transport/courier.h"

struct ls_factor_travel;

int ls_factor_travel_create(struct ls_store *store, struct ls_peers *peers,
                            struct ls_factor_travel **travel, struct ls_error *error);
void ls_factor_travel_free(struct ls_factor_travel *travel);
/* What carries one side of a factor. */
struct ls_parcel *ls_factor_travel_parcel(struct ls_factor_travel *travel, size_t factor,
                                          enum ls_factor_side side);
/* Begins a pass of which this rank runs `own` micro-batches; see ls_travel_begin. */
int ls_factor_travel_begin(struct ls_factor_travel *travel, const int *owner, size_t units, int own,
                           struct ls_error *error);
/* Nothing of it is to come any more. */
void ls_factor_travel_ready(struct ls_factor_travel *travel);
int ls_factor_travel_end(struct ls_factor_travel *travel, const int *owner, size_t units,
                         struct ls_error *error);

#endif
