/* Cards, streams, events, graphs: when work is carried out. SPDX-License-Identifier: BSD-2-Clause
 */
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <unistd.h>

#include "cuda/fake/fake.h"
#include "cuda/fake/inner.h"
#include "cuda/grid_run.h"

/* What CUDA's handles point to. */
struct CUstream_st {
    int card;
    std::deque<fake::work> queue;
    fake::graph *captures; /* NULL: it carries work out */
    std::shared_ptr<fake::mark> after;
};

struct CUevent_st {
    int card;
    std::shared_ptr<fake::mark> latest; /* NULL: it was never recorded */
};

struct CUgraph_st {
    fake::graph steps;
};

struct CUgraphExec_st {
    fake::graph steps;
};

namespace fake
{

std::recursive_mutex lock;

namespace
{

int cards;
thread_local int chosen_card;
thread_local cudaError_t last_error;
thread_local int recording; /* streams that this thread captures */
thread_local cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;
uint64_t order, numbers;
long overtaken;
std::vector<bool> broken;
std::vector<bool> used;  /* the process has a context there */
std::vector<long> lives; /* pieces of work until a card breaks; negative: it does not */
int driver;              /* 0: as new as the runtime */
int old_card = -1;
std::set<cudaStream_t> streams;
std::set<cudaEvent_t> events;
long graphs;
std::map<std::string, long> calls;
std::string failing;
long failing_after;
bool failed;

} // namespace

void stop(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    std::fputs("the fake of CUDA: ", stderr);
    std::vfprintf(stderr, format, arguments);
    std::fputc('\n', stderr);
    std::abort();
}

/* SplitMix64 (Steele, Lea, Flood; 2014). */
uint64_t draw()
{
    uint64_t z = (order += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

call::call(const char *name) : hold(lock), fails(false)
{
    long before = calls[name]++;
    if (failing == name && before == failing_after) {
        failing.clear();
        fails = failed = true;
    }
}

int current_card()
{
    if (chosen_card >= cards)
        stop("there is no card %d", chosen_card);
    used[(size_t)chosen_card] = true;
    return chosen_card;
}

bool is_broken(int card)
{
    return broken[(size_t)card];
}

static cudaStream_t check(const char *who, cudaStream_t stream)
{
    if (stream == nullptr || streams.count(stream) == 0)
        stop("%s: %s", who,
             stream == nullptr ? "in the default stream, which waits for all others"
                               : "in a stream that there is not");
    return stream;
}

int card_of(const char *who, cudaStream_t stream)
{
    return check(who, stream)->card;
}

bool may_allocate()
{
    return recording == 0 || capture_mode == cudaStreamCaptureModeRelaxed;
}

cudaError_t give(cudaStream_t stream, const char *name, std::function<cudaError_t()> run,
                 std::shared_ptr<mark> after)
{
    check(name, stream);
    if (lives[(size_t)stream->card] >= 0 && lives[(size_t)stream->card]-- == 0)
        broken[(size_t)stream->card] = true;
    if (is_broken(stream->card))
        return cudaErrorIllegalAddress;
    work piece = {name, std::move(run), std::move(after), numbers++};
    if (stream->captures != nullptr)
        stream->captures->steps.push_back(std::move(piece));
    else
        stream->queue.push_back(std::move(piece));
    return cudaSuccess;
}

bool is_captured(cudaStream_t stream)
{
    return check("a copy", stream)->captures != nullptr;
}

static bool may_go_on(cudaStream_t stream)
{
    return !stream->queue.empty() &&
           (stream->queue.front().after == nullptr || stream->queue.front().after->over ||
            is_broken(stream->card)); /* what a card that has stopped waits for never comes */
}

static cudaError_t carry_out(cudaStream_t stream)
{
    work piece = std::move(stream->queue.front());
    stream->queue.pop_front();
    for (cudaStream_t other : streams)
        overtaken += !other->queue.empty() && other->queue.front().number < piece.number;
    if (is_broken(stream->card))
        return cudaErrorIllegalAddress;
    reach now;
    cudaError_t status = piece.run();
    check_borders(piece.name.c_str());
    return status;
}

void wait_for_card(const char *who)
{
    for (cudaStream_t stream : streams)
        if (stream->card == current_card() && stream->captures != nullptr)
            stop("%s waits for a card while a stream of it is captured", who);
}

bool is_idle(int card)
{
    for (cudaStream_t stream : streams)
        if (stream->card == card && !stream->queue.empty())
            return false;
    return true;
}

/* Carries out one piece of work, if any may go on: work that is asked for goes on meanwhile. */
static void go_a_step()
{
    std::vector<cudaStream_t> ready;
    for (cudaStream_t stream : streams)
        if (may_go_on(stream))
            ready.push_back(stream);
    if (!ready.empty())
        (void)carry_out(ready[draw() % ready.size()]);
}

/* Nothing may go on: the calls of other threads may change that, if ranks exchange. */
static void wait_for_ranks(const char *who, int turn)
{
    constexpr int TURNS = 20000; /* of a millisecond */
    const std::string missing = missing_ranks();
    if (missing.empty() || turn > TURNS)
        stop("%s waits for work that waits for itself, or was never given%s%s", who,
             missing.empty() ? "" : ": ", missing.c_str());
    lock.unlock();
    usleep(1000);
    lock.lock();
}

/* Without a condition: until nothing is left. */
cudaError_t go_until(const char *who, const std::function<bool()> &enough)
{
    cudaError_t status = cudaSuccess;
    for (int turn = 0;;) {
        std::vector<cudaStream_t> ready;
        bool waiting = false;
        if (enough && enough())
            return status;
        for (cudaStream_t stream : streams) {
            waiting = waiting || !stream->queue.empty();
            if (may_go_on(stream))
                ready.push_back(stream);
        }
        if (!waiting && !enough)
            return status;
        if (ready.empty()) {
            wait_for_ranks(who, turn++);
            continue;
        }
        const cudaError_t done = carry_out(ready[draw() % ready.size()]);
        status = status != cudaSuccess ? status : done;
    }
}

} // namespace fake

using namespace fake;

/* ---- For tests ---- */

void fake_begin(int count, size_t bytes, uint64_t seed)
{
    std::lock_guard<std::recursive_mutex> hold(fake::lock);
    cards = count;
    broken.assign((size_t)count, false);
    used.assign((size_t)count, false);
    lives.assign((size_t)count, -1);
    old_card = -1;
    begin_memory(count, bytes);
    order = seed;
    numbers = 0;
    overtaken = 0;
    calls.clear();
    failing.clear();
    failed = false;
    chosen_card = 0;
    begin_cudnn();
    ls_grid_seed(seed);
}

void fake_end(void)
{
    std::lock_guard<std::recursive_mutex> hold(fake::lock);
    end_nccl();
    end_cublaslt();
    end_cudnn();
    if (!streams.empty() || !events.empty() || graphs != 0)
        stop("%zu streams, %zu events and %ld graphs are left", streams.size(), events.size(),
             graphs);
    begin_memory(0, 0);
}

void fake_fail(const char *name, long after)
{
    std::lock_guard<std::recursive_mutex> hold(fake::lock);
    failing = name != nullptr ? name : "";
    failing_after = calls[failing] + after;
    failed = false;
}

bool fake_has_failed(void)
{
    return failed;
}

long fake_calls(const char *name)
{
    std::lock_guard<std::recursive_mutex> hold(fake::lock);
    return calls[name];
}

long fake_overtaken(void)
{
    return overtaken;
}

void fake_break_card(int card)
{
    std::lock_guard<std::recursive_mutex> hold(fake::lock);
    broken[(size_t)card] = true;
}

void fake_break_card_after(int card, long pieces)
{
    std::lock_guard<std::recursive_mutex> hold(fake::lock);
    if (card < 0 || card >= cards)
        stop("there is no card %d to be broken", card);
    lives[(size_t)card] = pieces;
}

bool fake_uses_card(int card)
{
    std::lock_guard<std::recursive_mutex> hold(fake::lock);
    return used[(size_t)card];
}

void fake_set_driver(int version)
{
    std::lock_guard<std::recursive_mutex> hold(fake::lock);
    driver = version;
}

void fake_set_old(int card)
{
    std::lock_guard<std::recursive_mutex> hold(fake::lock);
    old_card = card;
}

/* ---- Kernels ---- */

int ls_grid_launch(const char *name, ls_grid_size grid, ls_grid_size block, cudaStream_t stream,
                   std::function<void()> body)
{
    call here("a launch");
    if (here.fails)
        return last_error = cudaErrorLaunchFailure;
    std::string kernel = name;
    return give(stream, name, [=]() {
        ls_grid_run(kernel.c_str(), grid, block, body);
        return cudaSuccess;
    });
}

/* ---- Cards ---- */

cudaError_t cudaGetDeviceCount(int *count)
{
    call here("cudaGetDeviceCount");
    const bool late = driver > 0 && driver < CUDART_VERSION;
    *count = late ? 0 : cards;
    return here.fails || late ? cudaErrorInsufficientDriver
           : cards == 0       ? cudaErrorNoDevice
                              : cudaSuccess;
}

cudaError_t cudaSetDevice(int card)
{
    call here("cudaSetDevice");
    if (here.fails || card < 0 || card >= cards)
        return cudaErrorInvalidDevice;
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
    return here.fails ? cudaErrorUnknown : cudaSuccess;
}

cudaError_t cudaGetDevice(int *card)
{
    call here("cudaGetDevice");
    *card = chosen_card;
    return here.fails ? cudaErrorUnknown : cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int card)
{
    call here("cudaGetDeviceProperties");
    if (here.fails || card < 0 || card >= cards)
        return cudaErrorInvalidDevice;
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
    return here.fails ? cudaErrorUnknown : cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    call here("cudaRuntimeGetVersion");
    *version = CUDART_VERSION;
    return here.fails ? cudaErrorUnknown : cudaSuccess;
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
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

/* ---- Streams ---- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    call here("cudaStreamCreateWithFlags");
    *stream = nullptr;
    if (here.fails)
        return cudaErrorMemoryAllocation;
    if (flags != cudaStreamNonBlocking)
        stop("a stream that waits for the default stream");
    *stream = new CUstream_st{current_card(), {}, nullptr, nullptr};
    streams.insert(*stream);
    return cudaSuccess;
}

/* Work goes on after CUDA's returns: here all of it is carried out at some time before the end. */
cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    call here("cudaStreamDestroy");
    check("cudaStreamDestroy", stream);
    cudaError_t status = go_until("cudaStreamDestroy", [=]() { return stream->queue.empty(); });
    streams.erase(stream);
    delete stream;
    return status;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    call here("cudaStreamSynchronize");
    check("cudaStreamSynchronize", stream);
    if (stream->captures != nullptr)
        stop("cudaStreamSynchronize of a stream that is captured");
    if (here.fails)
        return cudaErrorLaunchFailure;
    if (is_broken(stream->card))
        return cudaErrorIllegalAddress;
    return go_until("cudaStreamSynchronize", [=]() { return stream->queue.empty(); });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    call here("cudaStreamWaitEvent");
    check("cudaStreamWaitEvent", stream);
    if (here.fails)
        return cudaErrorUnknown;
    if (events.count(event) == 0 || flags != 0)
        stop("cudaStreamWaitEvent: an event that there is not, or flags");
    if (event->latest == nullptr)
        return cudaSuccess;
    return give(
        stream, "a wait for an event", []() { return cudaSuccess; }, event->latest);
}

/* ---- Events ---- */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    call here("cudaEventCreateWithFlags");
    *event = nullptr;
    if (here.fails)
        return cudaErrorMemoryAllocation;
    if ((flags & cudaEventDisableTiming) == 0)
        stop("an event that takes times");
    *event = new CUevent_st{current_card(), nullptr};
    events.insert(*event);
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    call here("cudaEventDestroy");
    if (events.erase(event) == 0)
        stop("cudaEventDestroy: an event that there is not");
    delete event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    call here("cudaEventRecord");
    check("cudaEventRecord", stream);
    if (events.count(event) == 0 || event->card != stream->card)
        stop("cudaEventRecord: an event that there is not, or another card's");
    if (here.fails)
        return cudaErrorUnknown;
    std::shared_ptr<mark> place = std::make_shared<mark>();
    cudaError_t status = give(stream, "an event", [=]() {
        place->over = true;
        return cudaSuccess;
    });
    if (status == cudaSuccess)
        event->latest = place;
    return status;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    call here("cudaEventSynchronize");
    if (events.count(event) == 0)
        stop("cudaEventSynchronize: an event that there is not");
    if (here.fails)
        return cudaErrorLaunchFailure;
    if (is_broken(event->card))
        return cudaErrorIllegalAddress;
    std::shared_ptr<mark> place = event->latest;
    if (place == nullptr)
        return cudaSuccess;
    return go_until("cudaEventSynchronize", [=]() { return place->over; });
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    call here("cudaEventQuery");
    if (events.count(event) == 0)
        stop("cudaEventQuery: an event that there is not");
    if (here.fails)
        return cudaErrorLaunchFailure;
    if (is_broken(event->card))
        return cudaErrorIllegalAddress;
    if (event->latest == nullptr || event->latest->over)
        return cudaSuccess;
    go_a_step();
    return cudaErrorNotReady;
}

/* ---- Graphs ---- */

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    call here("cudaStreamBeginCapture");
    check("cudaStreamBeginCapture", stream);
    if (here.fails)
        return cudaErrorUnknown;
    if (stream->captures != nullptr || mode != cudaStreamCaptureModeThreadLocal)
        stop("cudaStreamBeginCapture: it captures already, or the calls of all threads");
    stream->captures = new graph;
    recording++;
    return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    call here("cudaThreadExchangeStreamCaptureMode");
    if (here.fails)
        return cudaErrorUnknown;
    std::swap(*mode, capture_mode);
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out)
{
    call here("cudaStreamEndCapture");
    check("cudaStreamEndCapture", stream);
    if (stream->captures == nullptr)
        stop("cudaStreamEndCapture of a stream that captures nothing");
    *out = nullptr;
    if (!here.fails) {
        *out = new CUgraph_st{*stream->captures};
        graphs++;
    }
    delete stream->captures;
    stream->captures = nullptr;
    recording--;
    return here.fails ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t from, unsigned long long flags)
{
    call here("cudaGraphInstantiate");
    *out = nullptr;
    if (here.fails || flags != 0)
        return cudaErrorMemoryAllocation;
    *out = new CUgraphExec_st{from->steps};
    graphs++;
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t of)
{
    call here("cudaGraphDestroy");
    delete of;
    graphs--;
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t of)
{
    call here("cudaGraphExecDestroy");
    delete of;
    graphs--;
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t from, cudaStream_t stream)
{
    call here("cudaGraphLaunch");
    if (here.fails)
        return cudaErrorLaunchFailure;
    for (const work &step : from->steps.steps) {
        const cudaError_t status = give(stream, step.name.c_str(), step.run, step.after);
        if (status != cudaSuccess)
            return status;
    }
    return cudaSuccess;
}
