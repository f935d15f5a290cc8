/* The reducer: exchanges gradients, factors and weights between ranks while workers compute.
 *
 * Gradients: a bucket of sums (engine/shards.h) is reduce-scattered as soon as this rank's last
 *   micro-batch has contributed to it. Each rank then has the total of the part that it owns.
 * Factors: rows of x and dy are all-gathered as soon as this rank's last micro-batch has recorded
 *   them.
 * Weights: after the update the owners' parts are all-gathered under the next forward pass; each
 *   step that reads parameters waits for their buckets.
 *
 * All ranks queue these collectives in the same order: the order in which the last micro-batch
 * completes them. Workers mark them ready, the progress thread (transport/progress_thread.h) runs
 * them, and the thread of worker 0 waits for them at the end of a pass.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_REDUCER_H
#define LS_ENGINE_REDUCER_H

#include "engine/store.h"
#include "transport/comm.h"

struct ls_reducer;

/* The bytes of a rank's note of a pass (see ls_reducer_agree). */
size_t ls_reducer_note_bytes(size_t parameters, size_t rows, size_t factors);

/* For a store that is sharded over the ranks of `comm`; the store is freed after it. *reducer:
 * NULL, and success, where there is nothing to exchange: for one rank, or without training. What is
 * called once a pass takes NULL then, and does nothing; what steps call is not called (plans are
 * bound without a reducer). */
int ls_reducer_create(struct ls_store *store, struct ls_comm *comm, struct ls_reducer **reducer,
                      struct ls_error *error);
void ls_reducer_free(struct ls_reducer *reducer);
/* All ranks call it, with the same device: where each has one of its own, sums and weights are
 * exchanged between the devices from now on. No bit depends on it. */
int ls_reducer_connect(struct ls_reducer *reducer, struct ls_error *error);

/* Begins a pass of an update. owner[u] is the rank that runs micro-batch u; NULL: not known before
 * the end of the pass. (Not called for a calibration pass.) */
int ls_reducer_begin(struct ls_reducer *reducer, const int *owner, size_t units,
                     struct ls_error *error);
/* For a pass that began with `owner` NULL: this rank runs `own` micro-batches in all, including
 * those that it has run already, so gradients can leave before the end. Any thread, once a pass. */
void ls_reducer_expect(struct ls_reducer *reducer, int own);
/* Sets the iteration that the failure detector reports. */
void ls_reducer_iteration(struct ls_reducer *reducer, int64_t iteration);
/* After all micro-batches of this rank: waits until gradients and factors have arrived. */
int ls_reducer_wait_gradients(struct ls_reducer *reducer, const int *owner, size_t units,
                              struct ls_error *error);
/* All-gathers the ranks' notes of a pass: largest contributions, values that are not finite,
 * requests of users (ls_comm_request; their bits are ORed). *again: some sums overflowed 48 bits;
 * repeat the pass. */
int ls_reducer_agree(struct ls_reducer *reducer, bool *again, struct ls_error *error);

/* After the update of this rank's parts: starts the all-gather of all weights. Views of a bucket
 * are converted when it has arrived. */
int ls_reducer_send_weights(struct ls_reducer *reducer, struct ls_error *error);
/* Notes for the failure detector which layer this rank is at (see ls_detector_note). */
void ls_reducer_note_layer(struct ls_reducer *reducer, const char *layer);
/* A micro-batch has given its contribution to a parameter, or one side of a factor, to its worker's
 * stream; called by the worker. The exchange begins when all micro-batches have, and their streams
 * have come so far. */
int ls_reducer_contributed(struct ls_reducer *reducer, int parameter,
                           const struct ls_context *context, struct ls_error *error);
int ls_reducer_recorded(struct ls_reducer *reducer, const struct ls_record_attr *record,
                        const struct ls_context *context, struct ls_error *error);

/* Waits for the weights of buckets [first, last]; called by workers during a pass. A failure is
 * reported by the next exchange. */
void ls_reducer_wait_buckets(struct ls_reducer *reducer, int first, int last);
/* Waits for all weights. (Code that reads or changes weights through the store need not call it:
 * see ls_store_weights.) */
int ls_reducer_wait_all(struct ls_reducer *reducer, struct ls_error *error);

#endif
