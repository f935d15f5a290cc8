/* Uploaders: how decoded micro-batches get to a device with memory of its own.
 *
 * A worker has one: a stream for copies, and the items of the prefetcher that this stream may still
 * read. They go back to the prefetcher in their order, each when its event is over; the worker
 * waits for the oldest one where it holds LS_UPLOADS_HELD. So the host is a few micro-batches ahead
 * of the device, and no more.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_UPLOADER_H
#define LS_ENGINE_UPLOADER_H

#include <stddef.h>

#include "data/prefetcher.h"
#include "device/device.h"
#include "engine/staging.h"

enum { LS_UPLOADS_HELD = 2 };

struct ls_uploader {
    const struct ls_device *device;
    struct ls_stream *copies;
    struct ls_event *over[LS_UPLOADS_HELD + 1]; /* one more: of the micro-batch at hand */
    const struct ls_prefetch_item *item[LS_UPLOADS_HELD + 1];
    int first, count; /* of those that are held */
    size_t unit;      /* the first that was given to the worker's stream; SIZE_MAX: none was */
};

/* One a worker, or *uploaders = NULL where the device's memory is the host's. */
int ls_uploaders_create(const struct ls_device *device, int workers, struct ls_uploader **uploaders,
                        struct ls_error *error);
void ls_uploaders_free(struct ls_uploader *uploaders, int workers);

/* How the inputs of the micro-batch at hand are copied. */
struct ls_copying ls_uploader_copying(const struct ls_uploader *uploader);
/* Holds the item that they were copied from. */
int ls_uploader_hold(struct ls_uploader *uploader, struct ls_prefetcher *prefetcher,
                     const struct ls_prefetch_item *item, struct ls_error *error);
/* Gives back all that is held; the stream that reads what was copied has been waited for. */
int ls_uploader_empty(struct ls_uploader *uploader, struct ls_prefetcher *prefetcher,
                      struct ls_error *error);
/* The same after a failure: waits until nothing is copied any more. */
int ls_uploader_give_up(struct ls_uploader *uploader, struct ls_prefetcher *prefetcher,
                        struct ls_error *error);

#endif
