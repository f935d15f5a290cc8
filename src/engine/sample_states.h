/* State per sample: what the windows of a training, or of a test, leave for the next ones
 * (docs/numerics.md, section 15).
 *
 * A state is a tensor like the value that it is in the graph, but with all rows of an update along
 * the axis of samples, batch by batch. Every rank has all rows. There are two copies: a pass reads
 * the old one and writes the new one, so that it can be repeated; publishing completes the new one
 * and makes it the old one.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_SAMPLE_STATES_H
#define LS_ENGINE_SAMPLE_STATES_H

#include "engine/net.h"

struct ls_comm;
struct ls_pass;

/* One state, with all rows. */
struct ls_state_tensor {
    const char *name;
    const struct ls_layer *layer;
    enum ls_dtype type;
    struct ls_shape shape;
    size_t offset, bytes; /* in a copy */
    size_t runs;          /* in how many parts a sample lies: places of the axes in front */
    size_t run;           /* bytes of one part */
    bool whole; /* of the batch, which is its one sample (ls_layer_is_mixed): it lies in the first
                   row of the batch */
};

struct ls_sample_states {
    const struct ls_device_memory *memory;
    struct ls_comm *comm;
    struct ls_state_tensor *tensors; /* by number in the graph */
    size_t count;
    int64_t rows;     /* samples of an update */
    size_t bytes;     /* of a copy */
    size_t row_bytes; /* of all states of a row, as ranks exchange them */
    void *copy[2];    /* in the device's memory */
    int old;          /* the copy that passes read */
    void *staging;    /* a copy in the host's memory; NULL where that is the device's */
    int *owner;       /* by row: the rank that has computed it, -1: none has */
    /* With several ranks: rows that were computed, one after the other, and whose they are. */
    unsigned char *exchanged;
    int *exchanged_owner;
};

/* Makes the states of a pass, which are zeros; pass->states stays NULL where its net has none. */
int ls_sample_states_create(struct ls_pass *pass, struct ls_error *error);
/* The same for so many rows of a graph that is run without a pass; *states is NULL where the graph
 * has none, and else to be freed, also on failure. `comm` outlives them. */
int ls_sample_states_open(const struct ls_graph *graph, const struct ls_device_memory *memory,
                          struct ls_comm *comm, int64_t rows, struct ls_sample_states **states,
                          struct ls_error *error);
void ls_sample_states_free(struct ls_sample_states *states);
/* What that takes for a net of one of so many ranks. */
size_t ls_sample_states_bytes(const struct ls_net *net, int ranks);
/* Bytes of its states in a snapshot, each rounded up to 64. */
size_t ls_sample_states_snapshot_bytes(const struct ls_net *net);

/* All rows begin anew, with zeros. Nothing to do where `states` is NULL. */
int ls_sample_states_clear(struct ls_sample_states *states, struct ls_error *error);

/* Copies the rows [row, row + samples) of a state to `value`, a value of the graph for so many
 * samples, or takes over what it holds. Any thread, for other rows. */
int ls_sample_states_recall(const struct ls_sample_states *states, int state, int64_t row,
                            int64_t samples, struct ls_stream *stream, void *value,
                            struct ls_error *error);
int ls_sample_states_keep(const struct ls_sample_states *states, int state, int64_t row,
                          int64_t samples, struct ls_stream *stream, const void *value,
                          struct ls_error *error);

/* When the pass has run and is good: rows that other ranks have computed come here, rows that no
 * micro-batch had stay as they were, and the next pass reads what this one has kept. All ranks call
 * it. */
int ls_sample_states_publish(const struct ls_pass *pass, struct ls_error *error);

/* Without a pass, when rows have been computed that count: what they have kept is read from now on.
 * Rows that were not computed are undefined then. Nothing to do where `states` is NULL. */
void ls_sample_states_turn(struct ls_sample_states *states);
/* All rows become what the first one is. */
int ls_sample_states_spread(struct ls_sample_states *states, struct ls_error *error);

/* What the next pass will read of a state, in the host's memory: all rows, in Caffe's order. It
 * stays there until a pass is published. */
int ls_sample_states_read(const struct ls_sample_states *states, size_t state, const void **data,
                          struct ls_error *error);
int ls_sample_states_write(struct ls_sample_states *states, size_t state, const void *data,
                           struct ls_error *error);

#endif
