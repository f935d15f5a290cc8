/* See engine/uploader.h. SPDX-License-Identifier: BSD-2-Clause */
#include "engine/uploader.h"

#include "base/memory.h"
#include "base/mutant.h"

enum { PLACES = LS_UPLOADS_HELD + 1 };

static int uploader_create(const struct ls_device *device, struct ls_uploader *uploader,
                           struct ls_error *error)
{
    uploader->device = device;
    uploader->unit = SIZE_MAX;
    for (int i = 0; i < PLACES; i++)
        LS_TRY(device->streams->event_create(&uploader->over[i], error));
    return device->streams->create(&uploader->copies, error);
}

int ls_uploaders_create(const struct ls_device *device, int workers, struct ls_uploader **uploaders,
                        struct ls_error *error)
{
    *uploaders = NULL;
    if (device->memory->host_memory)
        return 0;
    *uploaders = ls_alloc((size_t)workers, sizeof **uploaders);
    if (*uploaders == NULL)
        return ls_fail_memory(error, "workers");
    for (int w = 0; w < workers; w++)
        LS_TRY(uploader_create(device, &(*uploaders)[w], error));
    return 0;
}

void ls_uploaders_free(struct ls_uploader *uploaders, int workers)
{
    for (int w = 0; w < workers && uploaders != NULL; w++) {
        const struct ls_device *device = uploaders[w].device;
        if (device == NULL)
            continue;
        if (uploaders[w].copies != NULL)
            device->streams->free(uploaders[w].copies);
        for (int i = 0; i < PLACES; i++)
            if (uploaders[w].over[i] != NULL)
                device->streams->event_free(uploaders[w].over[i]);
    }
    ls_free(uploaders);
}

struct ls_copying ls_uploader_copying(const struct ls_uploader *uploader)
{
    return (struct ls_copying){uploader->copies,
                               uploader->over[(uploader->first + uploader->count) % PLACES]};
}

/* Gives back the oldest one. */
static void uploader_release(struct ls_uploader *uploader, struct ls_prefetcher *prefetcher)
{
    ls_prefetcher_release(prefetcher, uploader->item[uploader->first]);
    uploader->first = (uploader->first + 1) % PLACES;
    uploader->count--;
}

int ls_uploader_hold(struct ls_uploader *uploader, struct ls_prefetcher *prefetcher,
                     const struct ls_prefetch_item *item, struct ls_error *error)
{
    uploader->item[(uploader->first + uploader->count++) % PLACES] = item;
    if (LS_MUTANT(RELEASED)) {
        uploader_release(uploader, prefetcher);
        return 0;
    }
    if (uploader->count <= LS_UPLOADS_HELD)
        return 0;
    const int status =
        uploader->device->streams->event_wait(uploader->over[uploader->first], error);
    if (status != 0) /* what failed may not be the copy */
        (void)uploader->device->streams->wait(uploader->copies, NULL);
    uploader_release(uploader, prefetcher);
    return status;
}

int ls_uploader_empty(struct ls_uploader *uploader, struct ls_prefetcher *prefetcher,
                      struct ls_error *error)
{
    int status = 0;
    while (uploader->count > 0) {
        status = uploader->device->streams->event_wait(uploader->over[uploader->first], error);
        if (status != 0)
            break;
        uploader_release(uploader, prefetcher);
    }
    if (status != 0)
        (void)ls_uploader_give_up(uploader, prefetcher, NULL);
    return status;
}

int ls_uploader_give_up(struct ls_uploader *uploader, struct ls_prefetcher *prefetcher,
                        struct ls_error *error)
{
    const int status = uploader->device->streams->wait(uploader->copies, error);
    while (uploader->count > 0)
        uploader_release(uploader, prefetcher);
    return status;
}
