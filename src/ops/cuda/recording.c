/* Recordings of work are CUDA graphs. See device/stream.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/card.h"

static int begin(struct ls_stream *stream, struct ls_error *error)
{
    /* Other threads may allocate memory meanwhile. */
    return ls_card_check(
        cudaStreamBeginCapture(ls_card_stream(stream, error), cudaStreamCaptureModeThreadLocal),
        "begin a recording", error);
}

static int end(struct ls_stream *stream, struct ls_recording **recording, struct ls_error *error)
{
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    if (recording != NULL)
        *recording = NULL;
    int code = cudaStreamEndCapture(ls_card_stream(stream, error), &graph);
    if (code == cudaSuccess && recording != NULL)
        code = cudaGraphInstantiate(&exec, graph, 0);
    else if (recording == NULL) /* what failed has been told already */
        (void)cudaGetLastError();
    if (graph != NULL)
        (void)cudaGraphDestroy(graph);
    if (recording == NULL)
        return 0;
    *recording = (struct ls_recording *)(void *)exec;
    return ls_card_check(code, "record a pass", error);
}

static int play(struct ls_recording *recording, struct ls_stream *stream, struct ls_error *error)
{
    return ls_card_check(
        cudaGraphLaunch((cudaGraphExec_t)(void *)recording, ls_card_stream(stream, error)),
        "run a recorded pass", error);
}

static void free_recording(struct ls_recording *recording)
{
    if (recording != NULL)
        (void)cudaGraphExecDestroy((cudaGraphExec_t)(void *)recording);
}

const struct ls_device_recordings ls_card_recordings = {
    .begin = begin,
    .end = end,
    .play = play,
    .free = free_recording,
};
