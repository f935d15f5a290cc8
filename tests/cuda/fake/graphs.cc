/* Graphs: what may be captured, and how it is launched. A graph is of one stream here: another that
 * joins a capture ends the test program. SPDX-License-Identifier: BSD-2-Clause */
#include <algorithm>
#include <thread>

#include "cuda/fake/handles.h"

struct CUgraph_st {
    fake::graph steps;
};

struct CUgraphExec_st {
    fake::graph steps;
    int card;
    std::shared_ptr<fake::mark> last; /* of its last launch; NULL: there was none */
};

namespace fake
{

namespace
{

std::set<cudaGraph_t> graphs;
std::set<cudaGraphExec_t> launchable;
uint64_t captures;
thread_local int recording; /* streams that this thread captures */
thread_local cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;
thread_local cudaStream_t captured; /* by this thread */

} // namespace

bool may_allocate()
{
    return recording == 0 || capture_mode == cudaStreamCaptureModeRelaxed;
}

void check_may_allocate(const char *who)
{
    if (!may_allocate())
        stop("%s while this thread captures a stream", who);
}

void end_graphs()
{
    if (!graphs.empty() || !launchable.empty())
        stop("%zu graphs are left, and %zu that can be launched", graphs.size(), launchable.size());
}

} // namespace fake

using namespace fake;

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    call here("cudaThreadExchangeStreamCaptureMode");
    if (here.fails)
        return failing_with(cudaErrorUnknown);
    std::swap(*mode, capture_mode);
    return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    call here("cudaStreamBeginCapture");
    check_stream("cudaStreamBeginCapture", stream);
    if (stream->captures != nullptr || mode != cudaStreamCaptureModeThreadLocal || recording > 0)
        stop("cudaStreamBeginCapture: it captures already, or the calls of all threads");
    if (here.fails || is_broken(stream->card))
        return ending_with(stream->card, cudaErrorUnknown);
    stream->captures = new graph;
    stream->capture = ++captures;
    captured = stream;
    recording++;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out)
{
    call here("cudaStreamEndCapture");
    check_stream("cudaStreamEndCapture", stream);
    if (stream->captures == nullptr)
        stop("cudaStreamEndCapture of a stream that captures nothing");
    if (captured != stream)
        stop("cudaStreamEndCapture: another thread has begun it");
    const bool fails = here.fails || is_broken(stream->card);
    *out = nullptr;
    if (!fails)
        graphs.insert(*out = new CUgraph_st{*stream->captures});
    delete stream->captures;
    stream->captures = nullptr;
    captured = nullptr;
    recording--;
    return ending_with(stream->card, fails ? cudaErrorStreamCaptureInvalidated : cudaSuccess);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t from, unsigned long long flags)
{
    call here("cudaGraphInstantiate");
    *out = nullptr;
    if (graphs.count(from) == 0 || flags != 0)
        stop("cudaGraphInstantiate: a graph that there is not, or flags");
    if (here.fails || is_broken(current_card()))
        return ending_with(current_card(), cudaErrorMemoryAllocation);
    launchable.insert(*out = new CUgraphExec_st{from->steps, current_card(), nullptr});
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t of)
{
    call here("cudaGraphDestroy");
    if (graphs.erase(of) == 0)
        stop("cudaGraphDestroy: a graph that there is not");
    delete of;
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t of)
{
    call here("cudaGraphExecDestroy");
    if (launchable.erase(of) == 0)
        stop("cudaGraphExecDestroy: a graph that there is not");
    if (of->last != nullptr && !of->last->over && !is_broken(of->card))
        stop("cudaGraphExecDestroy: the graph is under way");
    delete of;
    return cudaSuccess;
}

/* Behind its last launch, in whatever stream that was. */
cudaError_t cudaGraphLaunch(cudaGraphExec_t from, cudaStream_t stream)
{
    call here("cudaGraphLaunch");
    check_stream("cudaGraphLaunch", stream);
    if (launchable.count(from) == 0)
        stop("cudaGraphLaunch: a graph that there is not");
    if (stream->captures != nullptr || stream->card != from->card || current_card() != from->card)
        stop("cudaGraphLaunch: in a stream that is captured, or on another card");
    if (here.fails)
        return ending_with(stream->card, cudaErrorUnknown);
    cudaError_t status = cudaSuccess;
    if (from->last != nullptr && !from->last->over)
        status = give(
            stream, "a wait for the graph's last launch", []() { return cudaSuccess; }, from->last);
    for (size_t i = 0; status == cudaSuccess && i < from->steps.steps.size(); i++) {
        const work &step = from->steps.steps[i];
        status = give(stream, step.name.c_str(), step.run, step.after, step.everywhere, step.given);
    }
    std::shared_ptr<mark> last = std::make_shared<mark>();
    if (status == cudaSuccess)
        status = give(stream, "an event", [=]() {
            last->over = true;
            return cudaSuccess;
        });
    if (status == cudaSuccess)
        from->last = last;
    return status;
}
