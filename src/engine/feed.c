/* See engine/feed.h. SPDX-License-Identifier: BSD-2-Clause */
#include "engine/feed.h"

#include "base/memory.h"
#include "base/mutant.h"

enum { PLACES = LS_FEED_HELD + 1 };

static int feed_create(const struct ls_device *device, struct ls_feed *feed, struct ls_error *error)
{
    feed->device = device;
    feed->unit = SIZE_MAX;
    for (int i = 0; i < PLACES; i++)
        LS_TRY(device->streams->event_create(&feed->over[i], error));
    return device->streams->create(&feed->copies, error);
}

int ls_feeds_create(const struct ls_device *device, int workers, struct ls_feed **feeds,
                    struct ls_error *error)
{
    *feeds = NULL;
    if (device->memory->host_memory)
        return 0;
    *feeds = ls_alloc((size_t)workers, sizeof **feeds);
    if (*feeds == NULL)
        return ls_fail_memory(error, "workers");
    for (int w = 0; w < workers; w++)
        LS_TRY(feed_create(device, &(*feeds)[w], error));
    return 0;
}

void ls_feeds_free(struct ls_feed *feeds, int workers)
{
    for (int w = 0; w < workers && feeds != NULL; w++) {
        const struct ls_device *device = feeds[w].device;
        if (device == NULL)
            continue;
        if (feeds[w].copies != NULL)
            device->streams->free(feeds[w].copies);
        for (int i = 0; i < PLACES; i++)
            if (feeds[w].over[i] != NULL)
                device->streams->event_free(feeds[w].over[i]);
    }
    ls_free(feeds);
}

struct ls_copying ls_feed_copying(const struct ls_feed *feed)
{
    return (struct ls_copying){feed->copies, feed->over[(feed->first + feed->count) % PLACES]};
}

/* Gives back the oldest one. */
static void feed_release(struct ls_feed *feed, struct ls_prefetcher *prefetcher)
{
    ls_prefetcher_release(prefetcher, feed->item[feed->first]);
    feed->first = (feed->first + 1) % PLACES;
    feed->count--;
}

int ls_feed_hold(struct ls_feed *feed, struct ls_prefetcher *prefetcher,
                 const struct ls_prefetch_item *item, struct ls_error *error)
{
    feed->item[(feed->first + feed->count++) % PLACES] = item;
    if (LS_MUTANT(RELEASED)) {
        feed_release(feed, prefetcher);
        return 0;
    }
    if (feed->count <= LS_FEED_HELD)
        return 0;
    const int status = feed->device->streams->event_wait(feed->over[feed->first], error);
    if (status != 0) /* what failed may not be the copy */
        (void)feed->device->streams->wait(feed->copies, NULL);
    feed_release(feed, prefetcher);
    return status;
}

int ls_feed_empty(struct ls_feed *feed, struct ls_prefetcher *prefetcher, struct ls_error *error)
{
    int status = 0;
    while (feed->count > 0) {
        status = feed->device->streams->event_wait(feed->over[feed->first], error);
        if (status != 0)
            break;
        feed_release(feed, prefetcher);
    }
    if (status != 0)
        (void)ls_feed_give_up(feed, prefetcher, NULL);
    return status;
}

int ls_feed_give_up(struct ls_feed *feed, struct ls_prefetcher *prefetcher, struct ls_error *error)
{
    const int status = feed->device->streams->wait(feed->copies, error);
    while (feed->count > 0)
        feed_release(feed, prefetcher);
    return status;
}
