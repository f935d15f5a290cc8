/* Feeds: how decoded micro-batches get to a device with memory of its own.
 *
 * A worker has one: a stream for copies, and the items of the prefetcher that this stream may still
 * read. They go back to the prefetcher in their order, each when its event is over; the worker
 * waits for the oldest one where it holds LS_FEED_HELD. So the host is a few micro-batches ahead of
 * the device, and no more.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_FEED_H
#define LS_ENGINE_FEED_H

#include <stddef.h>

#include "data/prefetcher.h"
#include "device/device.h"
#include "engine/staging.h"

enum { LS_FEED_HELD = 2 };

struct ls_feed {
    const struct ls_device *device;
    struct ls_stream *copies;
    struct ls_event *over[LS_FEED_HELD + 1]; /* one more: of the micro-batch at hand */
    const struct ls_prefetch_item *item[LS_FEED_HELD + 1];
    int first, count; /* of those that are held */
    size_t unit;      /* the first that was given to the worker's stream; SIZE_MAX: none was */
};

/* One a worker, or *feeds = NULL where the device's memory is the host's. */
int ls_feeds_create(const struct ls_device *device, int workers, struct ls_feed **feeds,
                    struct ls_error *error);
void ls_feeds_free(struct ls_feed *feeds, int workers);

/* How the inputs of the micro-batch at hand are copied. */
struct ls_copying ls_feed_copying(const struct ls_feed *feed);
/* Holds the item that they were copied from. */
int ls_feed_hold(struct ls_feed *feed, struct ls_prefetcher *prefetcher,
                 const struct ls_prefetch_item *item, struct ls_error *error);
/* Gives back all that is held; the stream that reads what was copied has been waited for. */
int ls_feed_empty(struct ls_feed *feed, struct ls_prefetcher *prefetcher, struct ls_error *error);
/* The same after a failure: waits until nothing is copied any more. */
int ls_feed_give_up(struct ls_feed *feed, struct ls_prefetcher *prefetcher, struct ls_error *error);

#endif
