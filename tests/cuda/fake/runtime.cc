/* Launches, cards, streams, events. SPDX-License-Identifier: BSD-2-Clause */
#include <cstdio>
#include <cstring>

#include "cuda/fake/handles.h"
#include "cuda/grid_run.h"

using namespace fake;

/* ---- Kernels ---- */

static void check_sizes(const ls_grid_call &call)
{
    const ls_grid_size &grid = call.grid, &block = call.block;
    const uint64_t threads = (uint64_t)block.x * block.y * block.z;
    if (grid.x < 1 || grid.y < 1 || grid.z < 1 || threads < 1)
        stop("%s: a launch of no blocks, or of no threads", call.name);
    if (grid.x > 0x7fffffff || grid.y > 65535 || grid.z > 65535 || threads > 1024 || block.z > 64)
        stop("%s: a grid of %u x %u x %u blocks of %u x %u x %u threads is too large", call.name,
             grid.x, grid.y, grid.z, block.x, block.y, block.z);
}

/* As cudaGetLastError tells it: what failed before, and was not read, too. */
int ls_grid_launch(const ls_grid_call &call, struct CUstream_st *stream, std::function<void()> body)
{
    fake::call here("a launch");
    const int card = card_of(call.name, stream);
    check_sizes(call);
    check_arguments(call.name, call.arguments, call.bytes);
    if (current_card() != card)
        stop("%s: the stream is of card %d, and the thread's card is %d", call.name, card,
             current_card());
    const std::string kernel = call.name;
    const ls_grid_size grid = call.grid, block = call.block;
    if (here.fails)
        (void)failing_with(cudaErrorLaunchOutOfResources);
    else
        (void)give(stream, call.name, [=]() {
            ls_grid_run(kernel.c_str(), grid, block, body);
            return cudaSuccess;
        });
    return cudaGetLastError();
}

/* ---- Cards ---- */

cudaError_t cudaGetDeviceCount(int *count)
{
    call here("cudaGetDeviceCount");
    const bool late = driver > 0 && driver < CUDART_VERSION;
    *count = late ? 0 : cards;
    return failing_with(here.fails || late ? cudaErrorInsufficientDriver
                        : cards == 0       ? cudaErrorNoDevice
                                           : cudaSuccess);
}

cudaError_t cudaSetDevice(int card)
{
    call here("cudaSetDevice");
    if (here.fails || card < 0 || card >= cards)
        return failing_with(cudaErrorInvalidDevice);
    chosen_card = card;
    used[(size_t)card] = true;
    return cudaSuccess;
}

/* cuDevicePrimaryCtxGetState. */
static int tell_context(int card, unsigned *flags, int *active)
{
    call here("cuDevicePrimaryCtxGetState");
    if (here.fails || card < 0 || card >= cards)
        return 1;
    *flags = 0;
    *active = used[(size_t)card];
    return 0;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned,
                                             unsigned long long,
                                             enum cudaDriverEntryPointQueryResult *found)
{
    call here("cudaGetDriverEntryPointByVersion");
    const bool known = std::strcmp(symbol, "cuDevicePrimaryCtxGetState") == 0;
    *function = known ? reinterpret_cast<void *>(tell_context) : nullptr;
    *found = known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return failing_with(here.fails ? cudaErrorUnknown : cudaSuccess);
}

cudaError_t cudaGetDevice(int *card)
{
    call here("cudaGetDevice");
    *card = chosen_card;
    return failing_with(here.fails ? cudaErrorUnknown : cudaSuccess);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int card)
{
    call here("cudaGetDeviceProperties");
    if (here.fails || card < 0 || card >= cards)
        return failing_with(cudaErrorInvalidDevice);
    std::memset(properties, 0, sizeof *properties);
    std::snprintf(properties->name, sizeof properties->name, "Fake card");
    properties->major = card == old_card ? 7 : 9;
    properties->minor = card == old_card ? 5 : 0;
    properties->totalGlobalMem = memory_of_card();
    properties->multiProcessorCount = 4;
    properties->uuid.bytes[0] = (char)(card + 1);
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    call here("cudaDriverGetVersion");
    *version = driver > 0 ? driver : cards > 0 ? CUDART_VERSION : 0;
    return failing_with(here.fails ? cudaErrorUnknown : cudaSuccess);
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    call here("cudaRuntimeGetVersion");
    *version = CUDART_VERSION;
    return failing_with(here.fails ? cudaErrorUnknown : cudaSuccess);
}

const char *cudaGetErrorString(cudaError_t error)
{
    switch (error) {
    case cudaSuccess:
        return "no error";
    case cudaErrorMemoryAllocation:
        return "out of memory";
    case cudaErrorNoDevice:
        return "no CUDA-capable device is detected";
    case cudaErrorInsufficientDriver:
        return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorIllegalAddress:
        return "an illegal memory access was encountered";
    default:
        return "a failure of the fake";
    }
}

cudaError_t cudaGetLastError(void)
{
    const cudaError_t error =
        chosen_card < cards && is_broken(chosen_card) ? cudaErrorIllegalAddress : last_error;
    last_error = cudaSuccess;
    return error;
}

/* ---- Streams ---- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    static uint64_t count;
    call here("cudaStreamCreateWithFlags");
    *stream = nullptr;
    if (flags != cudaStreamNonBlocking)
        stop("a stream that waits for the default stream");
    if (here.fails || is_broken(current_card()))
        return ending_with(current_card(), cudaErrorMemoryAllocation);
    *stream = new CUstream_st{current_card(), count++, {}, nullptr, 0};
    streams.insert(*stream);
    return cudaSuccess;
}

/* Does not wait: work goes on. */
cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    call here("cudaStreamDestroy");
    check_stream("cudaStreamDestroy", stream);
    if (stream->captures != nullptr)
        stop("cudaStreamDestroy of a stream that is captured");
    const int card = stream->card;
    part_with(stream);
    return ending_with(card, cudaSuccess);
}

/* Calls that wait fail where work has failed: the card is broken then. */
cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    call here("cudaStreamSynchronize");
    check_stream("cudaStreamSynchronize", stream);
    if (stream->captures != nullptr)
        stop("cudaStreamSynchronize of a stream that is captured");
    check_may_allocate("cudaStreamSynchronize");
    const int card = stream->card;
    if (here.fails)
        break_card(card);
    const cudaError_t status = go_until("cudaStreamSynchronize",
                                        [=]() { return is_broken(card) || stream->queue.empty(); });
    return ending_with(card, status);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    call here("cudaStreamWaitEvent");
    check_stream("cudaStreamWaitEvent", stream);
    if (events.count(event) == 0 || flags != 0)
        stop("cudaStreamWaitEvent: an event that there is not, or flags");
    if (here.fails)
        return ending_with(stream->card, cudaErrorUnknown);
    const std::shared_ptr<mark> place = event->latest;
    if (place == nullptr)
        return ending_with(stream->card, cudaSuccess);
    const uint64_t capture = stream->captures != nullptr ? stream->capture : 0;
    if (place->capture != capture)
        stop("cudaStreamWaitEvent: %s",
             capture != 0 ? "a stream that is captured waits for what is not part of its graph"
                          : "a stream joins what another one captures, or has captured");
    if (capture != 0) /* of the same stream: no other can have recorded it */
        return cudaSuccess;
    return give(
        stream, "a wait for an event", []() { return cudaSuccess; }, place);
}

/* ---- Events ---- */

static cudaEvent_t check_event(const char *who, cudaEvent_t event)
{
    if (events.count(event) == 0)
        stop("%s: an event that there is not", who);
    return event;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    call here("cudaEventCreateWithFlags");
    *event = nullptr;
    if ((flags & cudaEventDisableTiming) == 0)
        stop("an event that takes times");
    if (here.fails || is_broken(current_card()))
        return ending_with(current_card(), cudaErrorMemoryAllocation);
    *event = new CUevent_st{current_card(), nullptr};
    events.insert(*event);
    return cudaSuccess;
}

/* Streams that wait for it go on waiting for its place. */
cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    call here("cudaEventDestroy");
    const int card = check_event("cudaEventDestroy", event)->card;
    events.erase(event);
    delete event;
    return ending_with(card, cudaSuccess);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    call here("cudaEventRecord");
    check_stream("cudaEventRecord", stream);
    if (check_event("cudaEventRecord", event)->card != stream->card)
        stop("cudaEventRecord: an event of card %d in a stream of card %d", event->card,
             stream->card);
    if (here.fails)
        return ending_with(stream->card, cudaErrorUnknown);
    std::shared_ptr<mark> place = std::make_shared<mark>();
    place->capture = stream->captures != nullptr ? stream->capture : 0;
    cudaError_t status = give(stream, "an event", [=]() {
        place->over = true;
        return cudaSuccess;
    });
    if (status == cudaSuccess)
        event->latest = place;
    return status;
}

static void check_not_captured(const char *who, cudaEvent_t event)
{
    check_may_allocate(who);
    if (check_event(who, event)->latest != nullptr && event->latest->capture != 0)
        stop("%s: an event that was recorded into a graph", who);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    call here("cudaEventSynchronize");
    check_not_captured("cudaEventSynchronize", event);
    const int card = event->card;
    if (here.fails)
        break_card(card);
    const std::shared_ptr<mark> place = event->latest;
    if (place == nullptr)
        return ending_with(card, cudaSuccess);
    const cudaError_t status =
        go_until("cudaEventSynchronize", [=]() { return is_broken(card) || place->over; });
    return ending_with(card, status);
}

/* "Not ready" is an error that is remembered, as others are. */
cudaError_t cudaEventQuery(cudaEvent_t event)
{
    call here("cudaEventQuery");
    check_not_captured("cudaEventQuery", event);
    if (here.fails)
        break_card(event->card);
    if (is_broken(event->card))
        return ending_with(event->card, cudaSuccess);
    if (event->latest == nullptr || event->latest->over)
        return cudaSuccess;
    go_on_a_step();
    return failing_with(cudaErrorNotReady);
}
