/* See ops/cuda/card.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/card.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "ops/cuda/kernels/kernels.h"

/* ---- Errors ---------------------------------------------------------------------------------- */

int ls_card_check(int code, const char *what, struct ls_error *error)
{
    if (code == cudaSuccess)
        return 0;
    int card = -1;
    (void)cudaGetDevice(&card);
    (void)cudaGetLastError(); /* else the next launch would be blamed */
    if (code == cudaErrorMemoryAllocation)
        return ls_fail(error, LOCKSTEP_RESOURCE, NULL,
                       "a smaller micro_batch, or --memory, needs less",
                       "card %d has no memory to %s", card, what);
    return ls_fail(error, LOCKSTEP_INTERNAL, NULL, NULL, "card %d could not %s: %s", card, what,
                   cudaGetErrorString((cudaError_t)code));
}

/* ---- Streams --------------------------------------------------------------------------------- */

static pthread_key_t own_key;
static pthread_once_t own_once = PTHREAD_ONCE_INIT;

static void end_own(void *stream)
{
    (void)cudaStreamDestroy((cudaStream_t)stream);
}

static void make_key(void)
{
    (void)pthread_key_create(&own_key, end_own);
}

cudaStream_t ls_card_own_stream(struct ls_error *error)
{
    (void)pthread_once(&own_once, make_key);
    cudaStream_t stream = pthread_getspecific(own_key);
    if (stream != NULL)
        return stream;
    int code = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (ls_card_check(code, "make a stream", error) != 0)
        return NULL;
    if (pthread_setspecific(own_key, stream) != 0) {
        (void)cudaStreamDestroy(stream);
        ls_fail_memory(error, "a stream");
        return NULL;
    }
    return stream;
}

void ls_card_end_thread(void)
{
    (void)pthread_once(&own_once, make_key);
    cudaStream_t stream = pthread_getspecific(own_key);
    if (stream != NULL && pthread_setspecific(own_key, NULL) == 0)
        end_own(stream);
}

int ls_card_finish(int code, const char *what, struct ls_error *error)
{
    cudaStream_t stream = pthread_getspecific(own_key);
    LS_TRY(ls_card_check(code, what, error));
    return ls_card_check(cudaStreamSynchronize(stream), what, error);
}

cudaStream_t ls_card_stream(struct ls_stream *stream, struct ls_error *error)
{
    return stream != NULL ? (cudaStream_t)(void *)stream : ls_card_own_stream(error);
}

static int stream_create(struct ls_stream **out, struct ls_error *error)
{
    cudaStream_t stream = NULL;
    *out = NULL;
    LS_TRY(ls_card_check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "make a stream",
                         error));
    *out = (struct ls_stream *)(void *)stream;
    return 0;
}

static void stream_free(struct ls_stream *stream)
{
    if (stream == NULL)
        return;
    (void)cudaStreamSynchronize((cudaStream_t)(void *)stream);
    (void)cudaStreamDestroy((cudaStream_t)(void *)stream);
}

static int stream_wait(struct ls_stream *stream, struct ls_error *error)
{
    return ls_card_check(cudaStreamSynchronize((cudaStream_t)(void *)stream), "do its work", error);
}

static int event_create(struct ls_event **out, struct ls_error *error)
{
    cudaEvent_t event = NULL;
    *out = NULL;
    LS_TRY(ls_card_check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "make an event",
                         error));
    *out = (struct ls_event *)(void *)event;
    return 0;
}

static void event_free(struct ls_event *event)
{
    if (event != NULL)
        (void)cudaEventDestroy((cudaEvent_t)(void *)event);
}

static int event_record(struct ls_event *event, struct ls_stream *stream, struct ls_error *error)
{
    return ls_card_check(cudaEventRecord((cudaEvent_t)(void *)event, (cudaStream_t)(void *)stream),
                         "record an event", error);
}

static int event_wait(struct ls_event *event, struct ls_error *error)
{
    return ls_card_check(cudaEventSynchronize((cudaEvent_t)(void *)event), "do its work", error);
}

const struct ls_device_streams ls_card_streams = {
    .create = stream_create,
    .free = stream_free,
    .wait = stream_wait,
    .event_create = event_create,
    .event_free = event_free,
    .event_record = event_record,
    .event_wait = event_wait,
};

/* ---- Memory ---------------------------------------------------------------------------------- */

static void *memory_create(size_t bytes)
{
    void *memory = NULL;
    cudaStream_t stream = ls_card_own_stream(NULL);
    if (stream == NULL || cudaMalloc(&memory, bytes > 0 ? bytes : 1) != cudaSuccess) {
        (void)cudaGetLastError();
        return NULL;
    }
    if (ls_card_finish(cudaMemsetAsync(memory, 0, bytes > 0 ? bytes : 1, stream), "clear memory",
                       NULL) != 0) {
        (void)cudaFree(memory);
        return NULL;
    }
    return memory;
}

/* The driver allocates in blocks, and libraries below allocate, too. */
enum { RESERVED_PARTS = 32, RESERVED_LEAST = 256 << 20 };

static int memory_left(size_t *bytes, struct ls_error *error)
{
    size_t left = 0, total = 0;
    *bytes = 0;
    if (ls_card_own_stream(error) == NULL) /* the card is in use from now on */
        return LOCKSTEP_RESOURCE;
    LS_TRY(ls_card_check(cudaMemGetInfo(&left, &total), "say how much memory it has left", error));
    size_t reserved = total / RESERVED_PARTS;
    reserved = reserved < RESERVED_LEAST ? RESERVED_LEAST : reserved;
    reserved = reserved > total / 2 ? total / 2 : reserved;
    *bytes = left > reserved ? left - reserved : 0;
    return 0;
}

static void memory_free(void *memory)
{
    if (memory != NULL)
        (void)cudaFree(memory);
}

/* What has no stream is over when the function returns. */
static int move(struct ls_stream *stream, void *target, const void *source, size_t bytes,
                enum cudaMemcpyKind kind, const char *what, struct ls_error *error)
{
    if (bytes == 0)
        return 0;
    cudaStream_t in = ls_card_stream(stream, error);
    if (in == NULL)
        return LOCKSTEP_RESOURCE;
    const int code = cudaMemcpyAsync(target, source, bytes, kind, in);
    return stream != NULL ? ls_card_check(code, what, error) : ls_card_finish(code, what, error);
}

static int memory_write(struct ls_stream *stream, void *target, const void *host, size_t bytes,
                        struct ls_error *error)
{
    return move(stream, target, host, bytes, cudaMemcpyHostToDevice, "take numbers of the host",
                error);
}

static int memory_read(struct ls_stream *stream, void *host, const void *source, size_t bytes,
                       struct ls_error *error)
{
    return move(stream, host, source, bytes, cudaMemcpyDeviceToHost, "give numbers to the host",
                error);
}

static int memory_copy(struct ls_stream *stream, void *target, const void *source, size_t bytes,
                       struct ls_error *error)
{
    return move(stream, target, source, bytes, cudaMemcpyDeviceToDevice, "copy numbers", error);
}

static int memory_zero(struct ls_stream *stream, void *target, size_t bytes, struct ls_error *error)
{
    if (bytes == 0)
        return 0;
    cudaStream_t in = ls_card_stream(stream, error);
    if (in == NULL)
        return LOCKSTEP_RESOURCE;
    const int code = cudaMemsetAsync(target, 0, bytes, in);
    return stream != NULL ? ls_card_check(code, "clear memory", error)
                          : ls_card_finish(code, "clear memory", error);
}

static int memory_swap(void *a, void *b, size_t bytes, struct ls_error *error)
{
    cudaStream_t stream = ls_card_own_stream(error);
    if (stream == NULL)
        return LOCKSTEP_RESOURCE;
    return bytes == 0 ? 0
                      : ls_card_finish(ls_cuda_swap(stream, a, b, bytes), "exchange arrays", error);
}

/* The host hashes: its order is that of the bytes, one after the other. */
static int memory_hash(const void *memory, size_t bytes, uint64_t seed, uint64_t *hash,
                       struct ls_error *error)
{
    void *here = ls_alloc(bytes + 1, 1);
    if (here == NULL)
        return ls_fail_memory(error, "a hash of what a card holds");
    int status = memory_read(NULL, here, memory, bytes, error);
    if (status == 0)
        *hash = ls_hash_wide(here, bytes, seed);
    ls_free(here);
    return status;
}

const struct ls_device_memory ls_card_memory = {
    .create = memory_create,
    .free = memory_free,
    .left = memory_left,
    .write = memory_write,
    .read = memory_read,
    .copy = memory_copy,
    .zero = memory_zero,
    .swap = memory_swap,
    .hash = memory_hash,
};
