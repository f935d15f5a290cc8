/* The reducer: what goes between the ranks of a job in an update, besides what all wait for at
 * once.
 *
 * Gradients: when the last micro-batch of this rank has contributed to a bucket of sums
 * (engine/shards.h), its parts go to the ranks that own them, and theirs come here and are added.
 * Factors: rows of x and dy go to all ranks when this rank's last micro-batch has recorded them.
 * Weights: after the update the owners' parts go to all, under the next forward pass; each step
 * that reads parameters waits for those.
 *
 * All of it is queued in one order on all ranks: that in which the last micro-batch finishes it.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_REDUCER_H
#define LS_ENGINE_REDUCER_H

#include "engine/store.h"
#include "transport/comm.h"

struct ls_reducer;

/* Into how many chunks the sums of a bucket are cut, and the bytes of what a rank notes of a pass.
 */
size_t ls_reducer_chunks(const struct ls_shards *shards, size_t bucket);
size_t ls_reducer_note_bytes(size_t parameters, size_t rows, size_t factors);
/* Memory for sums that are being exchanged. */
size_t ls_reducer_bytes(const struct ls_shards *shards);

/* For a store of which other ranks have their parts; NULL and 0 for a process by itself. */
int ls_reducer_create(struct ls_store *store, struct ls_reducer **reducer, struct ls_error *error);
void ls_reducer_free(struct ls_reducer *reducer);

/* Begins a pass of an update. owner[u] is the rank that runs micro-batch u; NULL: that shows only
 * at the end. (Not for a pass that only measures.) */
int ls_reducer_begin(struct ls_reducer *reducer, const int *owner, size_t units,
                     struct ls_error *error);
/* This rank runs so many micro-batches of the pass, those that it has run among them: where that
 * did not show at the beginning, gradients can leave before the end. Any thread, once a pass. */
void ls_reducer_expect(struct ls_reducer *reducer, int own);
/* The iteration at hand, for the failure detector. */
void ls_reducer_iteration(struct ls_reducer *reducer, int64_t iteration);
/* After all micro-batches of this rank: waits until gradients and factors are there. */
int ls_reducer_wait_gradients(struct ls_reducer *reducer, const int *owner, size_t units,
                              struct ls_error *error);
/* Brings together what ranks noted of a pass: largest contributions, what is not finite, requests
 * (their bits are ORed). *again: sums did not fit on their way; the pass must be repeated. */
int ls_reducer_agree(struct ls_reducer *reducer, uint32_t *requests, bool *again,
                     struct ls_error *error);

/* After the update of the own parts: sends the weights on their way, with the views of them. */
int ls_reducer_send_weights(struct ls_reducer *reducer, struct ls_error *error);
/* Notes for the failure detector which layer this rank is at (see ls_detector_note). */
void ls_reducer_note_layer(struct ls_reducer *reducer, const char *layer);
/* Waits for the weights of buckets [first, last]; by workers, in the middle of a pass: what fails
 * is reported by the next exchange. */
void ls_reducer_wait_buckets(struct ls_reducer *reducer, int first, int last);
/* Waits for all weights: before anything else reads or changes them. */
int ls_reducer_wait_all(struct ls_reducer *reducer, struct ls_error *error);

#endif
