/* The sequence of micro-batches that a prefetcher decodes. Two strategies name the next one:
 *
 *   in order    all micro-batches of a share of each batch, update by update
 *   on request  any micro-batches, those that were requested (--balance dynamic), in that order;
 *               what a taker waits for comes first
 *
 * A batch is cut when its first micro-batch is named. Where sizes vary this reads headers and may
 * fail; then no later micro-batch can be named, and takers of these get the error, until a seek.
 *
 * A sequence has no lock: one thread at a time may use it.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_SEQUENCE_H
#define LS_DATA_SEQUENCE_H

#include "base/partition.h"
#include "data/batching.h"

struct ls_sequence;

/* A micro-batch of the sequence. */
struct ls_sequence_item {
    int64_t update;  /* of which update */
    int index;       /* which micro-batch of the update, over all its batches */
    int64_t ordinal; /* of the first sample */
    int64_t samples;
    int64_t shape[3]; /* of each image of the data set whose sizes vary; zeros if none does */
};

struct ls_sequence_options {
    const struct ls_batching *batching; /* outlives the sequence */
    struct ls_share share;              /* share.any: on request; else in order */
    int64_t updates_end;                /* where the sequence ends */
};

/* Nothing is named before the first seek. */
int ls_sequence_open(const struct ls_sequence_options *options, struct ls_sequence **sequence,
                     struct ls_error *error);
void ls_sequence_close(struct ls_sequence *sequence);

/* Goes to an update; failures and requests are forgotten. */
void ls_sequence_seek(struct ls_sequence *sequence, int64_t update);
/* Names nothing more until the next seek. */
void ls_sequence_stop(struct ls_sequence *sequence);

/* Names the next micro-batch and goes on to the one behind it. False: there is none, or the next
 * one is so far ahead that no taker can want it yet, or the sequence has failed. */
bool ls_sequence_next(struct ls_sequence *sequence, struct ls_sequence_item *item);
/* A taker waits for a micro-batch that has not been named: fails unless it still can be, and sees
 * to it that it is. */
int ls_sequence_expect(struct ls_sequence *sequence, int64_t update, int index,
                       struct ls_error *error);
/* On request: this micro-batch will be taken. Whether it was not requested yet. */
bool ls_sequence_request(struct ls_sequence *sequence, int64_t update, int index);

#endif
