/* What a prefetcher consists of; for the files of the prefetcher only.
 *
 * Memory is a set of slots, each with room for one micro-batch:
 *
 *   EMPTY -> DECODING -> READY -> HELD -> EMPTY
 *                     -> FAILED until the next seek
 *
 * What a slot holds belongs to its decoder while it is DECODING and to its taker while it is HELD.
 * State, update and index are one atomic word: takers find a READY slot by it and make it HELD, and
 * EMPTY again, without a lock. One lock guards all the rest: claims, waiting, what is not there
 * yet.
 *
 * Decoders that found nothing to do sleep until half of the slots are EMPTY or a taker waits, so
 * that they run seldom and for long, not once for every release.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_PREFETCHER_INNER_H
#define LS_DATA_PREFETCHER_INNER_H

#include <pthread.h>
#include <stdatomic.h>

#include "data/prefetcher.h"

enum ls_prefetch_slot_state { EMPTY, DECODING, READY, HELD, FAILED, LS_PREFETCH_SLOT_STATES = 8 };

struct ls_prefetch_slot {
    struct ls_prefetch_item item; /* first: items are slots to their takers */
    _Atomic uint64_t word;        /* ls_prefetch_slot_word */
    uint64_t generation;          /* of the seek that it was claimed under */
    unsigned char *memory;
    size_t capacity;        /* bytes */
    bool in_room;           /* the memory is a part of the prefetcher's room */
    int status;             /* FAILED: why */
    struct ls_error *error; /* FAILED: more about it; NULL if there was no memory for that */
};

/* The next micro-batch to claim. */
struct ls_position {
    int64_t update;
    int index; /* over all batches of the update */
    int batch; /* which of `batches` */
    int batch_count;
    struct ls_batch *batches; /* of `update` */
    struct ls_micro *micro;   /* the cut of the current batch; room for any */
    int64_t micro_count;      /* 0: it is not cut yet */
    int64_t next;             /* which of `micro` */
    int64_t end;              /* of those that are the prefetcher's */
    int64_t wanted;           /* the last update that a taker waited for; -1: none */
    int status;               /* not 0: the current batch cannot be cut, `error` says why */
    struct ls_error *error;
};

/* What is wanted of any micro-batches, first come, first served. */
struct ls_prefetch_queue {
    struct ls_prefetch_request {
        int64_t update;
        int index;
    } * items; /* a ring */
    size_t first, count, capacity;
};

struct ls_decoder {
    struct ls_prefetcher *prefetcher;
    pthread_t thread;
    bool running;
    struct ls_reader **readers; /* one for each data set */
    struct ls_error error;
};

struct ls_prefetcher {
    struct ls_dataset **datasets;
    int dataset_count;
    int (*inputs)[2];
    int input_count;
    struct ls_batching batching;
    struct ls_share share;
    int64_t updates_end;
    struct ls_prefetch_memory *room; /* NULL: slots have memory of their own */
    struct ls_decoder *decoders;
    int decoder_count;

    struct ls_prefetch_slot **fast; /* the slots that were there from the start */
    int fast_count;
    _Atomic int hint;    /* of `fast`: where the next item will be, probably */
    _Atomic int empty;   /* slots */
    _Atomic int idle;    /* decoders that sleep */
    _Atomic int waiting; /* takers */
    int enough;          /* EMPTY slots that are worth waking a decoder for */

    pthread_mutex_t lock;
    pthread_cond_t work; /* for decoders: a slot became EMPTY, a seek, the end */
    pthread_cond_t done; /* for takers: a slot left DECODING, nothing can be claimed */
    struct ls_prefetch_slot **slots;
    int slot_count;
    size_t slot_capacity;
    struct ls_position position;
    struct ls_prefetch_queue queue;
    struct ls_batch *check; /* room for the batches of an update */
    _Atomic uint64_t generation;
    bool started, stop;
};

/* ---- prefetcher_position.c: the sequence of micro-batches. With the lock held ---- */

/* Allocates the position of a prefetcher whose batching is set, and frees it. */
int ls_position_open(struct ls_prefetcher *prefetcher, struct ls_error *error);
void ls_position_close(struct ls_prefetcher *prefetcher);
/* The next micro-batch is the first one of `update`; a failure is forgotten. */
void ls_position_go_to(struct ls_prefetcher *prefetcher, int64_t update);
/* The same, where failures and what is wanted stay: goes to the first batch of an update. */
void ls_position_enter(struct ls_prefetcher *prefetcher, int64_t update);
/* Names the next micro-batch of the prefetcher's share in `item` and goes on to the one behind it.
 * False: there is none, or the next one is so far ahead that no taker can want it yet (takers are
 * told that the position moved), or position.status says that it cannot be known. */
bool ls_position_claim(struct ls_prefetcher *prefetcher, struct ls_prefetch_item *item);
/* Fails unless a micro-batch that no slot has may still be claimed; it is claimed in time then. */
int ls_position_expect(struct ls_prefetcher *prefetcher, int64_t update, int index,
                       struct ls_error *error);

/* ---- prefetcher_queue.c: micro-batches in any order. With the lock held ---- */

/* As ls_position_claim and ls_position_expect. What is expected comes before what is wanted. The
 * position is at the batch of the last one that was looked for. */
bool ls_prefetch_queue_claim(struct ls_prefetcher *prefetcher, struct ls_prefetch_item *item);
int ls_prefetch_queue_expect(struct ls_prefetcher *prefetcher, int64_t update, int index,
                             struct ls_error *error);

/* ---- prefetcher_slot.c: memory ---- */

/* Bytes of the largest micro-batch that is known of. Fails where no memory could hold it. */
int ls_prefetch_slot_bytes(const struct ls_prefetcher *prefetcher, size_t *bytes,
                           struct ls_error *error);
/* Adds an EMPTY slot to the prefetcher, which frees it in the end. */
int ls_prefetch_slot_add(struct ls_prefetcher *prefetcher, struct ls_error *error);
void ls_prefetch_slot_free(struct ls_prefetch_slot *slot);
/* State, generation, update and index of a slot. Of the last three there are the lower bits, which
 * tell apart all that can be in slots at one time. */
uint64_t ls_prefetch_slot_word(enum ls_prefetch_slot_state state, uint64_t generation,
                               int64_t update, int index);
enum ls_prefetch_slot_state ls_prefetch_slot_state(const struct ls_prefetch_slot *slot);
/* Changes the state of a slot that the caller may change. */
void ls_prefetch_slot_set(struct ls_prefetcher *prefetcher, struct ls_prefetch_slot *slot,
                          enum ls_prefetch_slot_state state);
/* The slot that an item is in, READY and now HELD; NULL: it is not, or not yet, or not among the
 * first slots. Without the lock. */
struct ls_prefetch_slot *ls_prefetch_slot_grab(struct ls_prefetcher *prefetcher, int64_t update,
                                               int index);
/* Puts the first slots into the prefetcher's room, which is larger if need be; with no slot in use.
 */
int ls_prefetch_slot_reserve(struct ls_prefetcher *prefetcher, struct ls_error *error);
void ls_prefetch_slot_enter_room(struct ls_prefetcher *prefetcher);
/* Gives back what slots have of their own because samples differ in size. */
void ls_prefetch_slot_give_back(struct ls_prefetcher *prefetcher);
/* Any slot in this state, or NULL. */
struct ls_prefetch_slot *ls_prefetch_slot_in_state(const struct ls_prefetcher *prefetcher,
                                                   enum ls_prefetch_slot_state state);
/* The slot that an item is in, or NULL. */
struct ls_prefetch_slot *ls_prefetch_slot_of(const struct ls_prefetcher *prefetcher, int64_t update,
                                             int index);
/* Makes room for the slot's item and sets its inputs; without the lock, by its decoder. */
int ls_prefetch_slot_fit(const struct ls_prefetcher *prefetcher, struct ls_prefetch_slot *slot,
                         struct ls_error *error);
/* Bytes of a sample in an input; `shape` is that of an item. */
size_t ls_prefetch_slot_sample_bytes(const struct ls_prefetcher *prefetcher, int input,
                                     const int64_t shape[3]);

/* Stops decoding and drops what was decoded, until the next seek. NULL is nothing to stop. */
void ls_prefetcher_pause(struct ls_prefetcher *prefetcher);

/* ---- prefetcher_decode.c: the threads ---- */

/* Opens the decoder's readers and starts its thread. */
int ls_decoder_start(struct ls_prefetcher *prefetcher, struct ls_decoder *decoder,
                     struct ls_error *error);
/* Waits for the thread and closes the readers, after prefetcher->stop has been set. */
void ls_decoder_join(struct ls_prefetcher *prefetcher, struct ls_decoder *decoder);

/* Adds all problems of one collection to another. */
void ls_prefetcher_report(const struct ls_error *from, struct ls_error *to);

#endif
