/* Threads as streams: all is done when a call returns. See device/stream.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "device/stream.h"

struct ls_stream {
    char nothing;
};

struct ls_event {
    char nothing;
};

/* They have no state: one of each is enough for all. */
static struct ls_stream the_stream;
static struct ls_event the_event;

static int thread_create(struct ls_stream **stream, struct ls_error *error)
{
    (void)error;
    *stream = &the_stream;
    return 0;
}

static void thread_free(struct ls_stream *stream)
{
    (void)stream;
}

static int thread_wait(struct ls_stream *stream, struct ls_error *error)
{
    (void)stream, (void)error;
    return 0;
}

static int thread_event_create(struct ls_event **event, struct ls_error *error)
{
    (void)error;
    *event = &the_event;
    return 0;
}

static void thread_event_free(struct ls_event *event)
{
    (void)event;
}

static int thread_event_record(struct ls_event *event, struct ls_stream *stream,
                               struct ls_error *error)
{
    (void)event, (void)stream, (void)error;
    return 0;
}

static int thread_event_wait(struct ls_event *event, struct ls_error *error)
{
    (void)event, (void)error;
    return 0;
}

static int thread_follow(struct ls_stream *stream, struct ls_event *event, struct ls_error *error)
{
    (void)stream, (void)event, (void)error;
    return 0;
}

const struct ls_device_streams ls_thread_streams = {
    .create = thread_create,
    .free = thread_free,
    .wait = thread_wait,
    .event_create = thread_event_create,
    .event_free = thread_event_free,
    .event_record = thread_event_record,
    .event_wait = thread_event_wait,
    .follow = thread_follow,
};
