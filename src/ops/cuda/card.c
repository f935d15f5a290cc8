/* See ops/cuda/card.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/card.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "base/thread.h"
#include "ops/cuda/kernels/kernels.h"

static _Thread_local int entered; /* CUDA begins every thread on card 0 */

/* ---- Errors ---------------------------------------------------------------------------------- */

int ls_card_check(int code, const char *what, struct ls_error *error)
{
    if (code == cudaSuccess)
        return 0;
    int card = entered; /* a card that has stopped may fail here, too */
    (void)cudaGetDevice(&card);
    (void)cudaGetLastError(); /* else the next launch would be blamed */
    if (code == cudaErrorMemoryAllocation)
        return ls_fail(error, LOCKSTEP_RESOURCE, NULL,
                       "a smaller micro_batch, or --memory, needs less",
                       "card %d has no memory to %s", card, what);
    return ls_fail(error, LOCKSTEP_INTERNAL, NULL, NULL, "card %d could not %s: %s", card, what,
                   cudaGetErrorString((cudaError_t)code));
}

/* ---- The card of a thread -------------------------------------------------------------------- */

int (*ls_card_of_thread)(void) = ls_thread_card;

int ls_card_enter(struct ls_error *error)
{
    const int card = ls_card_of_thread();
    if (card < 0 || card == entered)
        return 0;
    if (card >= LS_CARDS_MAX)
        return ls_fail(error, LOCKSTEP_USAGE, NULL, NULL, "there is no card %d", card);
    LS_TRY(ls_card_check(cudaSetDevice(card), "be used", error));
    entered = card;
    return 0;
}

int ls_card_take_thread(void)
{
    int card = -1;
    if (cudaGetDevice(&card) != cudaSuccess) {
        (void)cudaGetLastError();
        return -1;
    }
    entered = card;
    return card;
}

/* Whether this process uses a card; true where the toolkit cannot say. */
static bool is_in_use(int card)
{
#if CUDART_VERSION >= 12050
    int (*get_state)(int card, unsigned *flags, int *active) = NULL;
    enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    unsigned flags = 0;
    int active = 0;
    if (cudaGetDriverEntryPointByVersion("cuDevicePrimaryCtxGetState", (void **)&get_state, 7000,
                                         cudaEnableDefault, &found) != cudaSuccess)
        (void)cudaGetLastError();
    else if (found == cudaDriverEntryPointSuccess && get_state != NULL &&
             get_state(card, &flags, &active) == 0)
        return active != 0;
#else
    (void)card;
#endif
    return true;
}

/* cudaSetDevice makes a context on a card that this process does not use yet, which takes hundreds
 * of megabytes there, and fails where another process has the card for itself. */
void ls_card_give_thread_back(int card)
{
    if (card >= 0 && card != entered && is_in_use(card) && cudaSetDevice(card) == cudaSuccess)
        entered = card;
}

/* ---- Streams --------------------------------------------------------------------------------- */

/* What a thread has of its own on each card. */
struct own {
    cudaStream_t stream[LS_CARDS_MAX];
    void *library[LS_CARDS_MAX];
};

static pthread_key_t own_key;
static pthread_once_t own_once = PTHREAD_ONCE_INIT;

static void end_libraries(const struct own *own)
{
#if LS_CUDA_HAS_CUDNN
    for (int card = 0; card < LS_CARDS_MAX; card++) {
        if (own->library[card] == NULL)
            continue;
        const int before = ls_card_hold_recordings(card);
        ls_card_end_library(own->library[card], own->stream[card]);
        ls_card_permit_recordings(before);
    }
#else
    (void)own;
#endif
}

static void end_own(void *data)
{
    struct own *own = data;
    end_libraries(own);
    for (int card = 0; card < LS_CARDS_MAX; card++)
        if (own->stream[card] != NULL)
            (void)cudaStreamDestroy(own->stream[card]);
    ls_free(own);
}

static void make_key(void)
{
    (void)pthread_key_create(&own_key, end_own);
}

static struct own *own_of_thread(struct ls_error *error)
{
    (void)pthread_once(&own_once, make_key);
    struct own *own = pthread_getspecific(own_key);
    if (own != NULL)
        return own;
    own = ls_alloc(1, sizeof *own);
    if (own == NULL || pthread_setspecific(own_key, own) != 0) {
        ls_free(own);
        ls_fail_memory(error, "a stream");
        return NULL;
    }
    return own;
}

cudaStream_t ls_card_own_stream(struct ls_error *error)
{
    struct own *own = own_of_thread(error);
    if (own == NULL || ls_card_enter(error) != 0)
        return NULL;
    cudaStream_t *stream = &own->stream[entered];
    if (*stream == NULL) {
        int code = cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking);
        if (ls_card_check(code, "make a stream", error) != 0)
            *stream = NULL;
    }
    return *stream;
}

void **ls_card_own_library(struct ls_error *error)
{
    return ls_card_own_stream(error) != NULL ? &own_of_thread(error)->library[entered] : NULL;
}

void ls_card_end_thread(void)
{
    (void)pthread_once(&own_once, make_key);
    struct own *own = pthread_getspecific(own_key);
    if (own != NULL && pthread_setspecific(own_key, NULL) == 0)
        end_own(own);
}

int ls_card_finish(int code, const char *what, struct ls_error *error)
{
    LS_TRY(ls_card_check(code, what, error));
    cudaStream_t stream = ls_card_own_stream(error);
    if (stream == NULL)
        return LOCKSTEP_RESOURCE;
    return ls_card_check(cudaStreamSynchronize(stream), what, error);
}

cudaStream_t ls_card_stream(struct ls_stream *stream, struct ls_error *error)
{
    if (stream == NULL)
        return ls_card_own_stream(error);
    return ls_card_enter(error) == 0 ? (cudaStream_t)(void *)stream : NULL;
}

static int stream_create(struct ls_stream **out, struct ls_error *error)
{
    cudaStream_t stream = NULL;
    *out = NULL;
    LS_TRY(ls_card_enter(error));
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
    LS_TRY(ls_card_enter(error));
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
    if (LS_MUTANT(SILENT))
        return 0;
    return ls_card_check(cudaEventRecord((cudaEvent_t)(void *)event, (cudaStream_t)(void *)stream),
                         "record an event", error);
}

static int event_wait(struct ls_event *event, struct ls_error *error)
{
    return ls_card_check(cudaEventSynchronize((cudaEvent_t)(void *)event), "do its work", error);
}

static int follow(struct ls_stream *stream, struct ls_event *event, struct ls_error *error)
{
    return ls_card_check(
        cudaStreamWaitEvent((cudaStream_t)(void *)stream, (cudaEvent_t)(void *)event, 0),
        "have a stream follow another", error);
}

const struct ls_device_streams ls_card_streams = {
    .create = stream_create,
    .free = stream_free,
    .wait = stream_wait,
    .event_create = event_create,
    .event_free = event_free,
    .event_record = event_record,
    .event_wait = event_wait,
    .follow = follow,
};

/* ---- Memory ---------------------------------------------------------------------------------- */

/* Says why there is no memory: a caller's message goes on with it. Returns NULL. */
static void *refuse_memory(size_t bytes, cudaError_t code)
{
    char why[160];
    int card = entered;
    (void)cudaGetDevice(&card);
    (void)cudaGetLastError();
    snprintf(why, sizeof why, "card %d gives no %zu bytes: %s", card, bytes,
             cudaGetErrorString(code));
    ls_note_memory(why);
    return NULL;
}

static void *memory_create(size_t bytes)
{
    void *memory = NULL;
    const size_t room = bytes > 0 ? bytes : 1;
    cudaStream_t stream = ls_card_own_stream(NULL);
    if (stream == NULL)
        return NULL;
    cudaError_t code = cudaMalloc(&memory, room);
    if (code != cudaSuccess)
        return refuse_memory(bytes, code);
    code = cudaMemsetAsync(memory, 0, room, stream);
    if (code == cudaSuccess)
        code = cudaStreamSynchronize(stream);
    if (code != cudaSuccess) {
        (void)cudaFree(memory);
        return refuse_memory(bytes, code);
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
    if (memory == NULL)
        return;
    (void)ls_card_enter(NULL); /* else a thread that has used no card begins to use the first */
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

static void *pinned_create(size_t bytes)
{
    void *memory = NULL;
    if (ls_card_enter(NULL) != 0 || cudaMallocHost(&memory, bytes) != cudaSuccess) {
        (void)cudaGetLastError();
        return NULL;
    }
    return memory;
}

static void pinned_free(void *memory)
{
    (void)ls_card_enter(NULL);
    (void)cudaFreeHost(memory);
}

static const struct ls_pinning pinning = {.create = pinned_create, .free = pinned_free};

const struct ls_device_memory ls_card_memory = {
    .create = memory_create,
    .free = memory_free,
    .left = memory_left,
    .write = memory_write,
    .read = memory_read,
    .copy = memory_copy,
    .zero = memory_zero,
    .pinning = &pinning,
    .swap = memory_swap,
    .hash = memory_hash,
};
