/* Streams of the remote device: threads that add contributions later. See remote_device.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ops/cpu/device.h"
#include "trainings/remote_device.h"
#include "trainings/remote_parts.h"

/* A kernel that runs later, on numbers as they were. */
struct task {
    struct task *next;
    const struct ls_prepared *prepared;
    const struct ls_kernel *kernel;
    struct ls_context context;
    float numbers[];
};

struct remote_stream {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    struct task *first, **last;
    long given, done;
    bool ends;
};

struct remote_event {
    struct remote_stream *_Atomic stream;
    _Atomic long at;
};

static void *stream_work(void *argument)
{
    struct remote_stream *stream = argument;
    ls_device_cpu.enter_thread();
    remote_enter();
    pthread_mutex_lock(&stream->lock);
    for (;;) {
        while (stream->first == NULL && !stream->ends)
            pthread_cond_wait(&stream->moved, &stream->lock);
        struct task *task = stream->first;
        if (task == NULL)
            break;
        pthread_mutex_unlock(&stream->lock);
        nanosleep(&(struct timespec){.tv_nsec = 30000}, NULL);
        void *in[1] = {task->numbers};
        struct ls_prepared prepared = *task->prepared;
        prepared.kernel = task->kernel;
        if (task->kernel->run(&prepared, NULL, in, in + 1, NULL, &task->context) != 0)
            abort();
        pthread_mutex_lock(&stream->lock);
        stream->first = task->next;
        if (stream->first == NULL)
            stream->last = &stream->first;
        stream->done++;
        free(task);
        pthread_cond_broadcast(&stream->moved);
    }
    pthread_mutex_unlock(&stream->lock);
    return NULL;
}

static int stream_create(struct ls_stream **out, struct ls_error *error)
{
    REMOTE_MAY_FAIL(REMOTE_STREAM, error);
    struct remote_stream *stream = calloc(1, sizeof *stream);
    if (stream == NULL)
        abort();
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->moved, NULL);
    stream->last = &stream->first;
    if (pthread_create(&stream->thread, NULL, stream_work, stream) != 0)
        abort();
    *out = (struct ls_stream *)(void *)stream;
    return 0;
}

static void stream_free(struct ls_stream *public)
{
    struct remote_stream *stream = (void *)public;
    pthread_mutex_lock(&stream->lock);
    stream->ends = true;
    pthread_cond_broadcast(&stream->moved);
    pthread_mutex_unlock(&stream->lock);
    pthread_join(stream->thread, NULL);
    pthread_cond_destroy(&stream->moved);
    pthread_mutex_destroy(&stream->lock);
    free(stream);
}

void remote_stream_give(const struct ls_prepared *prepared, const struct ls_kernel *kernel,
                        const float *numbers, size_t count, const struct ls_context *context)
{
    struct remote_stream *stream = (void *)context->stream;
    struct task *task = malloc(sizeof *task + count * sizeof *numbers);
    if (task == NULL)
        abort();
    *task = (struct task){.prepared = prepared, .kernel = kernel, .context = *context};
    memcpy(task->numbers, numbers, count * sizeof *numbers);
    pthread_mutex_lock(&stream->lock);
    *stream->last = task;
    stream->last = &task->next;
    stream->given++;
    pthread_cond_broadcast(&stream->moved);
    pthread_mutex_unlock(&stream->lock);
}

static void stream_await(struct remote_stream *stream, long at)
{
    pthread_mutex_lock(&stream->lock);
    while (stream->done < (at >= 0 ? at : stream->given))
        pthread_cond_wait(&stream->moved, &stream->lock);
    pthread_mutex_unlock(&stream->lock);
}

static int stream_wait(struct ls_stream *stream, struct ls_error *error)
{
    stream_await((void *)stream, -1); /* what was given ends, whatever is told of it */
    REMOTE_MAY_FAIL(REMOTE_WAIT, error);
    return 0;
}

static int event_create(struct ls_event **out, struct ls_error *error)
{
    REMOTE_MAY_FAIL(REMOTE_EVENT, error);
    struct remote_event *event = calloc(1, sizeof *event);
    if (event == NULL)
        abort();
    *out = (struct ls_event *)(void *)event;
    return 0;
}

static void event_free(struct ls_event *event)
{
    free(event);
}

static int event_record(struct ls_event *public, struct ls_stream *stream, struct ls_error *error)
{
    struct remote_event *event = (void *)public;
    struct remote_stream *from = (void *)stream;
    REMOTE_MAY_FAIL(REMOTE_RECORD, error);
    pthread_mutex_lock(&from->lock);
    atomic_store(&event->at, from->given);
    pthread_mutex_unlock(&from->lock);
    atomic_store(&event->stream, from);
    return 0;
}

static int event_wait(struct ls_event *public, struct ls_error *error)
{
    struct remote_event *event = (void *)public;
    struct remote_stream *stream = atomic_load(&event->stream);
    if (stream != NULL)
        stream_await(stream, atomic_load(&event->at));
    REMOTE_MAY_FAIL(REMOTE_EVENT_WAIT, error);
    return 0;
}

/* Work that is not late is done at once: the host waits. */
static int follow(struct ls_stream *stream, struct ls_event *event, struct ls_error *error)
{
    (void)stream;
    return event_wait(event, error);
}

const struct ls_device_streams remote_streams = {
    .create = stream_create,
    .free = stream_free,
    .wait = stream_wait,
    .event_create = event_create,
    .event_free = event_free,
    .event_record = event_record,
    .event_wait = event_wait,
    .follow = follow,
};
