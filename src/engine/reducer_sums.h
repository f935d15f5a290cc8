/* The reduce-scatter of gradient sums, bucket by bucket: a part of the reducer (engine/reducer.h).
 * Other files call the first two functions only, for forecasts.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_REDUCER_SUMS_H
#define LS_ENGINE_REDUCER_SUMS_H

#include "engine/device_exchange.h"
#include "engine/store.h"
#include "transport/progress_thread.h"

struct ls_reducer_sums;

/* The number of chunks that the sums of a bucket are cut into. */
size_t ls_reducer_sums_chunks(const struct ls_shards *shards, size_t bucket);
/* Bytes for sums that are being exchanged; 0 for one rank. */
size_t ls_reducer_sums_bytes(const struct ls_shards *shards);

int ls_reducer_sums_create(struct ls_store *store, struct ls_comm *comm,
                           struct ls_reducer_sums **sums, struct ls_error *error);
void ls_reducer_sums_free(struct ls_reducer_sums *sums);
/* From now on sums are exchanged between devices, a bucket at a time. Nothing may be under way. */
void ls_reducer_sums_connect(struct ls_reducer_sums *sums, struct ls_device_exchange *exchange);
/* Into how many chunks it cuts a bucket now. */
size_t ls_reducer_sums_count(const struct ls_reducer_sums *sums, size_t bucket);
/* The collective of a chunk of a bucket. */
struct ls_collective *ls_reducer_sums_collective(struct ls_reducer_sums *sums, size_t bucket,
                                                 size_t chunk);

/* Begins a pass, whose collectives are queued, of which this rank runs `own` micro-batches; -1: not
 * known before ls_reducer_sums_expect. */
void ls_reducer_sums_begin(struct ls_reducer_sums *sums, int own);
/* See ls_reducer_expect. */
void ls_reducer_sums_expect(struct ls_reducer_sums *sums, int own);
/* See ls_reducer_contributed. */
int ls_reducer_sums_contributed(struct ls_reducer_sums *sums, int parameter,
                                const struct ls_context *context, struct ls_error *error);
/* This rank has contributed everything: marks all buckets as ready. */
void ls_reducer_sums_ready(struct ls_reducer_sums *sums);
/* After all collectives of a pass are done: fails where a contribution came after its bucket was
 * sent. */
int ls_reducer_sums_check(const struct ls_reducer_sums *sums, struct ls_error *error);
/* What the device failed with under an exchange; 0: nothing. */
int ls_reducer_sums_status(const struct ls_reducer_sums *sums);

/* Whether a sum of this rank did not fit 48 bits since this was asked last. */
bool ls_reducer_sums_overflowed(struct ls_reducer_sums *sums);
/* After a pass: sums are sent with 64 bits for a while if those of any rank have overflowed. */
void ls_reducer_sums_widen(struct ls_reducer_sums *sums, bool overflowed);

#endif
