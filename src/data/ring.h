/* A ring of buffers for micro-batches: their memory, and who may touch it.
 *
 *   EMPTY -> DECODING -> READY -> HELD -> EMPTY
 *                     -> FAILED until it is dropped
 *
 * What a buffer holds belongs to its decoder while it is DECODING and to its taker while it is
 * HELD. State, generation, update and index are one atomic word: takers find a READY buffer by it
 * and make it HELD, and EMPTY again, without a lock. All else is for one thread at a time.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_RING_H
#define LS_DATA_RING_H

#include <stdatomic.h>

#include "base/pinning.h"
#include "data/prefetcher.h"

enum ls_ring_state {
    LS_RING_EMPTY,
    LS_RING_DECODING,
    LS_RING_READY,
    LS_RING_HELD,
    LS_RING_FAILED,
    LS_RING_STATES = 8
};

struct ls_ring_buffer {
    struct ls_prefetch_item item; /* item.buffer is this buffer */
    _Atomic uint64_t word;        /* ls_ring_word */
    uint64_t generation;          /* of the ring, when it was claimed */
    unsigned char *memory;
    size_t capacity;        /* bytes */
    bool shared;            /* the memory is not the buffer's own */
    struct ls_pinned own;   /* it is */
    int status;             /* FAILED: why */
    struct ls_error *error; /* FAILED: more about it; NULL if there was no memory for that */
};

struct ls_ring {
    int inputs, datasets;             /* of an item */
    const struct ls_pinning *pinning; /* for memory of buffers; NULL: it is not pinned */
    struct ls_ring_buffer **first;    /* the buffers that were there from the start, which takers */
    int first_count;                  /* look through without a lock */
    struct ls_ring_buffer **buffers;  /* all */
    int count;
    size_t capacity;
    _Atomic int hint;            /* of `first`: where the next item will be, probably */
    _Atomic int empty;           /* buffers */
    _Atomic uint64_t generation; /* items of an earlier one are handed out no more */
};

/* Adds an EMPTY buffer, with `bytes` of memory of its own (0: it gets some when it is used). */
int ls_ring_add(struct ls_ring *ring, size_t bytes, struct ls_error *error);
/* The buffers that there are now are those that takers look through. */
int ls_ring_fix_first(struct ls_ring *ring, struct ls_error *error);
void ls_ring_free(struct ls_ring *ring);

/* Puts the first buffers into `memory`, `bytes` each; none is in use. */
void ls_ring_share(struct ls_ring *ring, unsigned char *memory, size_t bytes);
/* Frees all memory that buffers have of their own; none is in use. */
void ls_ring_give_back(struct ls_ring *ring);
/* Makes room in a buffer for inputs of so many bytes each, 64-byte aligned, and sets its item's
 * inputs; by its decoder. */
int ls_ring_fit(const struct ls_ring *ring, struct ls_ring_buffer *buffer, const size_t *bytes,
                int inputs, struct ls_error *error);

enum ls_ring_state ls_ring_state(const struct ls_ring_buffer *buffer);
/* Changes the state of a buffer that the caller may change. */
void ls_ring_set(struct ls_ring *ring, struct ls_ring_buffer *buffer, enum ls_ring_state state);
/* Nothing that is READY or FAILED, or will be of what is DECODING, is handed out any more. */
void ls_ring_drop(struct ls_ring *ring);
/* Any buffer in this state, or NULL. */
struct ls_ring_buffer *ls_ring_find(const struct ls_ring *ring, enum ls_ring_state state);
/* The buffer that an item is in, or NULL. */
struct ls_ring_buffer *ls_ring_of(const struct ls_ring *ring, int64_t update, int index);
/* The buffer that an item is in, READY and now HELD; NULL: it is not, or not yet, or not among the
 * first buffers. Any thread, at any time. */
struct ls_ring_buffer *ls_ring_grab(struct ls_ring *ring, int64_t update, int index);

#endif
