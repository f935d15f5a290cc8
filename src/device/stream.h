/* Streams and events of a device.
 *
 * A stream is an order of work: kernels and copies that are given to it are carried out one after
 * the other, perhaps after the call that gave them has returned. One thread at a time uses a
 * stream. An event marks a place in one; recording it again moves it. Where a stream is a thread,
 * all is done when a call returns, and an event is over when it is recorded.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_STREAM_H
#define LS_DEVICE_STREAM_H

#include "base/error.h"

struct ls_stream;
struct ls_event;

struct ls_device_streams {
    int (*create)(struct ls_stream **stream, struct ls_error *error);
    /* What was given to it is done or given up first. */
    void (*free)(struct ls_stream *stream);
    /* Returns when all that was given to the stream is done, with the status of what failed of it
     * since the last call. */
    int (*wait)(struct ls_stream *stream, struct ls_error *error);

    int (*event_create)(struct ls_event **event, struct ls_error *error);
    void (*event_free)(struct ls_event *event);
    /* By the thread that uses the stream. */
    int (*event_record)(struct ls_event *event, struct ls_stream *stream, struct ls_error *error);
    /* Any thread: returns when the stream has come so far, with the status of what failed before
     * it; at once where the event was never recorded. */
    int (*event_wait)(struct ls_event *event, struct ls_error *error);
    /* What is given to the stream from now on begins when the event's place, as it is now, is
     * reached; the host does not wait. By the thread that uses the stream, which the event may not
     * be of. */
    int (*follow)(struct ls_stream *stream, struct ls_event *event, struct ls_error *error);
};

/* Recordings: work that a host names once and gives to streams many times, with less of its own
 * time. What is recorded has the same addresses and numbers each time; what changes lies in the
 * device's memory. */
struct ls_recording;

struct ls_device_recordings {
    /* What the calling thread gives to the stream from now on is recorded, and not carried out.
     * Nothing may wait for the stream until `end`. */
    int (*begin)(struct ls_stream *stream, struct ls_error *error);
    /* Ends it, also after a failure in between. NULL for `recording`: what was recorded is thrown
     * away. */
    int (*end)(struct ls_stream *stream, struct ls_recording **recording, struct ls_error *error);
    /* Gives all of it to a stream, in its order there. */
    int (*play)(struct ls_recording *recording, struct ls_stream *stream, struct ls_error *error);
    void (*free)(struct ls_recording *recording); /* NULL: nothing to free */
};

/* Of devices whose kernels run on the thread that calls them. */
extern const struct ls_device_streams ls_thread_streams;

#endif
