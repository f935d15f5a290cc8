/* What a prefetcher consists of; for the prefetcher and its tests only.
 *
 * One lock guards the sequence and all of the ring but its words: claims, waiting, what is not
 * there yet. Decoders that found nothing to do sleep until half of the buffers are EMPTY or a taker
 * waits, so that they run seldom and for long, not once for every release.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_PREFETCHER_INNER_H
#define LS_DATA_PREFETCHER_INNER_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/timeline.h"
#include "data/item.h"
#include "data/ring.h"
#include "data/sequence.h"

struct ls_decoder {
    struct ls_prefetcher *prefetcher;
    pthread_t thread;
    bool running;
    struct ls_reader **readers; /* one for each data set */
    size_t *bytes;              /* by input: of those of an item */
    struct ls_error error;
    struct ls_timeline_track *track; /* NULL: nothing is recorded */
};

struct ls_prefetcher {
    struct ls_item_layout layout;
    struct ls_share share;
    struct ls_prefetch_memory *room; /* NULL: buffers have memory of their own */
    struct ls_decoder *decoders;
    int decoder_count;
    int held;   /* by takers that go on, at most */
    int enough; /* EMPTY buffers that are worth waking a decoder for */

    _Atomic int idle;    /* decoders that sleep */
    _Atomic int waiting; /* takers */
    pthread_mutex_t lock;
    pthread_cond_t work; /* for decoders: a buffer became EMPTY, a seek, the end */
    pthread_cond_t done; /* for takers: a buffer left DECODING, nothing can be claimed */
    struct ls_ring ring;
    struct ls_sequence *sequence;
    bool stop;
};

#endif
