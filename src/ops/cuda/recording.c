/* Recordings of work are CUDA graphs. See device/stream.h. SPDX-License-Identifier: BSD-2-Clause */
#include <pthread.h>

#include "ops/cuda/card.h"

/* Threads that record hold it for reading. */
static pthread_rwlock_t recording_lock = PTHREAD_RWLOCK_INITIALIZER;

int ls_card_hold_recordings(int card)
{
    (void)pthread_rwlock_wrlock(&recording_lock);
    const int before = ls_card_take_thread();
    ls_card_give_thread_back(card);
    return before;
}

void ls_card_permit_recordings(int card_before)
{
    ls_card_give_thread_back(card_before);
    (void)pthread_rwlock_unlock(&recording_lock);
}

static int begin(struct ls_stream *stream, struct ls_error *error)
{
    cudaStream_t in = ls_card_stream(stream, error);
    if (in == NULL)
        return LOCKSTEP_RESOURCE;
    (void)pthread_rwlock_rdlock(&recording_lock);
    /* Other threads may allocate memory meanwhile. */
    const int code = cudaStreamBeginCapture(in, cudaStreamCaptureModeThreadLocal);
    if (code != cudaSuccess)
        (void)pthread_rwlock_unlock(&recording_lock);
    return ls_card_check(code, "begin a recording", error);
}

static int end(struct ls_stream *stream, struct ls_recording **recording, struct ls_error *error)
{
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    if (recording != NULL)
        *recording = NULL;
    int code = cudaStreamEndCapture((cudaStream_t)(void *)stream, &graph);
    (void)pthread_rwlock_unlock(&recording_lock);
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
    cudaStream_t in = ls_card_stream(stream, error);
    return in == NULL ? LOCKSTEP_RESOURCE
                      : ls_card_check(cudaGraphLaunch((cudaGraphExec_t)(void *)recording, in),
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
