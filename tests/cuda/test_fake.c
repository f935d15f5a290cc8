/* The fake of CUDA finds what it is there to find: each wrong use of the runtime ends a child
 * process with what it says, and the right use beside it does not.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <cuda_runtime_api.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda/fake/fake.h"
#include "ops/cuda/kernels/kernels.h"
#include "support/support.h"

enum { SEEDS = 16, WORDS = 1000, BYTES = WORDS * 4 };

/* ---- What the cases are made of -------------------------------------------------------------- */

static void good(cudaError_t status)
{
    if (status != cudaSuccess) {
        fprintf(stderr, "a call of the test failed: %s\n", cudaGetErrorString(status));
        _exit(2);
    }
}

static cudaStream_t stream_on(int card)
{
    cudaStream_t stream;
    good(cudaSetDevice(card));
    good(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
}

static void *memory_on(int card)
{
    void *memory;
    good(cudaSetDevice(card));
    good(cudaMalloc(&memory, BYTES));
    return memory;
}

static cudaEvent_t event_on(int card)
{
    cudaEvent_t event;
    good(cudaSetDevice(card));
    good(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    return event;
}

static void *pinned(void)
{
    void *memory;
    good(cudaMallocHost(&memory, BYTES));
    memset(memory, 1, BYTES);
    return memory;
}

static void fill(cudaStream_t stream, void *words, size_t count)
{
    good((cudaError_t)ls_cuda_fill_words(stream, words, 7, count));
}

static void begin_capture(cudaStream_t stream)
{
    good(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
}

static cudaGraphExec_t end_capture(cudaStream_t stream)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    good(cudaStreamEndCapture(stream, &graph));
    good(cudaGraphInstantiate(&exec, graph, 0));
    good(cudaGraphDestroy(graph));
    return exec;
}

static unsigned char host[BYTES];

/* ---- Memory ---------------------------------------------------------------------------------- */

static void the_host_reads_card_memory(void)
{
    const volatile unsigned char *there = memory_on(0);
    host[0] = there[0];
}

static void the_host_changes_what_is_copied(void)
{
    cudaStream_t stream = stream_on(0);
    good(cudaMemcpyAsync(memory_on(0), host, BYTES, cudaMemcpyHostToDevice, stream));
    host[BYTES - 1] ^= 1;
    good(cudaStreamSynchronize(stream));
}

static void pinned_memory_is_freed_early(void)
{
    cudaStream_t stream = stream_on(0);
    void *there = memory_on(0), *here = pinned();
    good(cudaMemcpyAsync(there, here, BYTES, cudaMemcpyHostToDevice, stream));
    good(cudaFreeHost(here));
    good(cudaStreamSynchronize(stream));
}

static void card_memory_is_freed_under_a_kernel(void)
{
    cudaStream_t stream = stream_on(0);
    void *there = memory_on(0);
    fill(stream, there, WORDS);
    good(cudaFree(there));
    good(cudaStreamSynchronize(stream));
}

static void card_memory_is_freed_under_a_copy(void)
{
    cudaStream_t stream = stream_on(0);
    void *there = memory_on(0);
    good(cudaMemsetAsync(there, 0, BYTES, stream));
    good(cudaFree(there));
    good(cudaStreamSynchronize(stream));
}

static void a_kernel_writes_beyond_the_end(void)
{
    cudaStream_t stream = stream_on(0);
    fill(stream, memory_on(0), WORDS + 1);
    good(cudaStreamSynchronize(stream));
}

static void a_kernel_takes_memory_of_another_card(void)
{
    void *there = memory_on(0);
    cudaStream_t stream = stream_on(1);
    fill(stream, there, WORDS);
    good(cudaStreamSynchronize(stream));
}

static void a_copy_takes_memory_of_another_card(void)
{
    void *there = memory_on(0);
    good(cudaMemsetAsync(there, 0, BYTES, stream_on(1)));
}

static void a_kernel_takes_memory_of_the_host(void)
{
    fill(stream_on(0), host + sizeof(uint64_t), 1);
}

static void a_kernel_takes_what_is_not_aligned(void)
{
    cudaStream_t stream = stream_on(0);
    fill(stream, (char *)memory_on(0) + 2, 1);
    good(cudaStreamSynchronize(stream));
}

static void a_copy_overlaps(void)
{
    char *there = memory_on(0);
    good(cudaMemcpyAsync(there + 8, there, 64, cudaMemcpyDeviceToDevice, stream_on(0)));
}

static void a_copy_ends_behind_its_memory(void)
{
    char *there = memory_on(0);
    good(cudaMemcpyAsync(there + 4, host, BYTES, cudaMemcpyHostToDevice, stream_on(0)));
}

static void memory_is_freed_twice(void)
{
    void *there = memory_on(0);
    good(cudaFree(there));
    good(cudaFree(there));
}

/* ---- Streams and events ---------------------------------------------------------------------- */

static void a_launch_is_of_another_card(void)
{
    cudaStream_t stream = stream_on(1);
    fill(stream, memory_on(0), WORDS);
}

static void work_is_given_to_no_stream(void)
{
    good(cudaMemsetAsync(memory_on(0), 0, BYTES, NULL));
}

static void a_stream_is_used_behind_its_end(void)
{
    cudaStream_t stream = stream_on(0);
    void *there = memory_on(0);
    good(cudaStreamDestroy(stream));
    good(cudaMemsetAsync(there, 0, BYTES, stream));
}

static void an_event_is_used_behind_its_end(void)
{
    cudaStream_t stream = stream_on(0);
    cudaEvent_t event = event_on(0);
    good(cudaEventDestroy(event));
    good(cudaStreamWaitEvent(stream, event, 0));
}

static void an_event_is_of_another_card(void)
{
    cudaStream_t stream = stream_on(0);
    good(cudaEventRecord(event_on(1), stream));
}

static void a_stream_is_left(void)
{
    (void)stream_on(0);
    fake_end();
}

static void memory_is_left(void)
{
    (void)memory_on(0);
    fake_end();
}

/* ---- Graphs ---------------------------------------------------------------------------------- */

static void a_graph_outlives_its_memory(void)
{
    cudaStream_t stream = stream_on(0);
    void *there = memory_on(0);
    begin_capture(stream);
    fill(stream, there, WORDS);
    cudaGraphExec_t exec = end_capture(stream);
    good(cudaGraphLaunch(exec, stream));
    good(cudaStreamSynchronize(stream));
    good(cudaFree(there));
    good(cudaGraphLaunch(exec, stream));
    good(cudaStreamSynchronize(stream));
}

static void a_graph_copies_pageable_memory(void)
{
    cudaStream_t stream = stream_on(0);
    void *there = memory_on(0);
    begin_capture(stream);
    (void)cudaMemcpyAsync(there, host, BYTES, cudaMemcpyHostToDevice, stream);
}

static void a_graph_copies_what_changes_under_way(void)
{
    cudaStream_t stream = stream_on(0);
    unsigned char *there = memory_on(0), *here = pinned();
    begin_capture(stream);
    good(cudaMemcpyAsync(there, here, BYTES, cudaMemcpyHostToDevice, stream));
    cudaGraphExec_t exec = end_capture(stream);
    here[0] = 9; /* before a launch it may change */
    good(cudaGraphLaunch(exec, stream));
    good(cudaStreamSynchronize(stream));
    good(cudaGraphLaunch(exec, stream));
    here[0] = 10;
    good(cudaStreamSynchronize(stream));
}

static void a_capture_allocates(void)
{
    cudaStream_t stream = stream_on(0);
    begin_capture(stream);
    (void)memory_on(0);
}

static void a_capture_frees(void)
{
    cudaStream_t stream = stream_on(0);
    void *there = memory_on(0);
    begin_capture(stream);
    (void)cudaFree(there);
}

static void a_capture_is_waited_for(void)
{
    cudaStream_t stream = stream_on(0);
    begin_capture(stream);
    (void)cudaStreamSynchronize(stream);
}

static void an_event_is_asked_within_a_capture(void)
{
    cudaStream_t stream = stream_on(0);
    cudaEvent_t event = event_on(0);
    begin_capture(stream);
    (void)cudaEventQuery(event);
}

static void an_event_of_a_graph_is_waited_for(void)
{
    cudaStream_t stream = stream_on(0);
    cudaEvent_t event = event_on(0);
    begin_capture(stream);
    good(cudaEventRecord(event, stream));
    cudaGraphExec_t exec = end_capture(stream);
    good(cudaGraphLaunch(exec, stream));
    (void)cudaEventSynchronize(event);
}

static void a_capture_waits_for_the_outside(void)
{
    cudaStream_t stream = stream_on(0), other = stream_on(0);
    cudaEvent_t event = event_on(0);
    good(cudaEventRecord(event, other));
    begin_capture(stream);
    (void)cudaStreamWaitEvent(stream, event, 0);
}

static void a_stream_joins_a_capture(void)
{
    cudaStream_t stream = stream_on(0), other = stream_on(0);
    cudaEvent_t event = event_on(0);
    begin_capture(stream);
    good(cudaEventRecord(event, stream));
    (void)cudaStreamWaitEvent(other, event, 0);
}

static void a_graph_is_destroyed_under_way(void)
{
    cudaStream_t stream = stream_on(0);
    void *there = memory_on(0);
    begin_capture(stream);
    fill(stream, there, WORDS);
    cudaGraphExec_t exec = end_capture(stream);
    good(cudaGraphLaunch(exec, stream));
    good(cudaGraphExecDestroy(exec));
    good(cudaStreamSynchronize(stream));
}

/* ---- All of them ----------------------------------------------------------------------------- */

struct wrong {
    const char *name;
    void (*run)(void);
    const char *said;
    bool now_and_then; /* with some orders of work, as on a card */
};

/* clang-format off */
#define ALWAYS(name, said)       {#name, name, said, false}
#define NOW_AND_THEN(name, said) {#name, name, said, true}
/* clang-format on */
static const struct wrong wrongs[] = {
    ALWAYS(the_host_reads_card_memory, "the host touches"),
    NOW_AND_THEN(the_host_changes_what_is_copied, "which changed before it was made"),
    NOW_AND_THEN(pinned_memory_is_freed_early, "its pinned memory was freed before it was made"),
    NOW_AND_THEN(card_memory_is_freed_under_a_kernel, "memory of card 0, freed"),
    NOW_AND_THEN(card_memory_is_freed_under_a_copy, "was freed, or never handed out"),
    ALWAYS(a_kernel_writes_beyond_the_end, "wrote outside of an allocation"),
    ALWAYS(a_kernel_takes_memory_of_another_card, "of card 1 touches"),
    ALWAYS(a_copy_takes_memory_of_another_card, "is memory of card 0, and the stream is of card 1"),
    ALWAYS(a_kernel_takes_memory_of_the_host, "is an address of the host"),
    ALWAYS(a_kernel_takes_what_is_not_aligned, "fill_words"),
    ALWAYS(a_copy_overlaps, "overlap"),
    ALWAYS(a_copy_ends_behind_its_memory, "end behind their allocation"),
    ALWAYS(memory_is_freed_twice, "is no allocation"),
    ALWAYS(a_launch_is_of_another_card, "the stream is of card 1, and the thread's card is 0"),
    ALWAYS(work_is_given_to_no_stream, "in the default stream"),
    ALWAYS(a_stream_is_used_behind_its_end, "in a stream that there is not"),
    ALWAYS(an_event_is_used_behind_its_end, "an event that there is not"),
    ALWAYS(an_event_is_of_another_card, "an event of card 1 in a stream of card 0"),
    ALWAYS(a_stream_is_left, "1 streams and 0 events are left"),
    ALWAYS(memory_is_left, "1 allocations of card memory"),
    ALWAYS(a_graph_outlives_its_memory, "memory of card 0, freed"),
    ALWAYS(a_graph_copies_pageable_memory, "pageable memory of the host in a graph"),
    NOW_AND_THEN(a_graph_copies_what_changes_under_way, "which changed before it was made"),
    ALWAYS(a_capture_allocates, "cudaMalloc while this thread captures"),
    ALWAYS(a_capture_frees, "cudaFree while this thread captures"),
    ALWAYS(a_capture_is_waited_for, "cudaStreamSynchronize of a stream that is captured"),
    ALWAYS(an_event_is_asked_within_a_capture, "cudaEventQuery while this thread captures"),
    ALWAYS(an_event_of_a_graph_is_waited_for, "an event that was recorded into a graph"),
    ALWAYS(a_capture_waits_for_the_outside, "waits for what is not part of its graph"),
    ALWAYS(a_stream_joins_a_capture, "a stream joins what another one captures"),
    NOW_AND_THEN(a_graph_is_destroyed_under_way, "the graph is under way"),
};
enum { WRONGS = sizeof wrongs / sizeof *wrongs };

/* Runs a case in a process of its own; whether the fake has ended it, with these words. */
static bool is_stopped(const struct wrong *wrong, uint64_t seed)
{
    static char said[4096];
    int ends[2], status = 0;
    size_t length = 0;
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        (void)signal(SIGABRT, SIG_DFL);
        (void)signal(SIGILL, SIG_DFL);
        (void)dup2(ends[1], STDERR_FILENO);
        fake_begin(2, 1 << 20, seed);
        wrong->run();
        _exit(0);
    }
    close(ends[1]);
    for (ssize_t n; length < sizeof said - 1 &&
                    (n = read(ends[0], said + length, sizeof said - 1 - length)) > 0;)
        length += (size_t)n;
    said[length] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return false;
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT || strstr(said, wrong->said) == NULL)
        fail_msg("%s, seed %d: status %d, \"%s\"", wrong->name, (int)seed, status, said);
    return true;
}

static void what_is_wrong_ends_the_program(void **state)
{
    (void)state;
    for (int i = 0; i < WRONGS; i++) {
        int stopped = 0;
        for (uint64_t seed = 0; seed < SEEDS; seed++)
            stopped += is_stopped(&wrongs[i], seed);
        if (stopped == 0 || (!wrongs[i].now_and_then && stopped < SEEDS))
            fail_msg("%s: found with %d of %d seeds", wrongs[i].name, stopped, SEEDS);
    }
}

/* ---- What is right --------------------------------------------------------------------------- */

/* What one stream leaves for another, with an event in between; without one the order is free. */
static bool second_sees_first(uint64_t seed, bool waits)
{
    fake_begin(1, 1 << 20, seed);
    cudaStream_t first = stream_on(0), second = stream_on(0);
    cudaEvent_t event = event_on(0);
    unsigned char *there = memory_on(0);
    good(cudaMemsetAsync(there, 0, BYTES, first));
    good(cudaStreamSynchronize(first));
    good(cudaMemsetAsync(there, 5, BYTES, first));
    good(cudaEventRecord(event, first));
    if (waits)
        good(cudaStreamWaitEvent(second, event, 0));
    good(cudaMemcpyAsync(host, there, BYTES, cudaMemcpyDeviceToHost, second));
    good(cudaStreamSynchronize(second));
    const bool sees = host[BYTES - 1] == 5;
    good(cudaStreamSynchronize(first));
    good(cudaFree(there));
    good(cudaEventDestroy(event));
    good(cudaStreamDestroy(first));
    good(cudaStreamDestroy(second));
    fake_end();
    return sees;
}

static void streams_are_ordered_by_events_alone(void **state)
{
    int free_orders = 0;
    (void)state;
    for (uint64_t seed = 0; seed < 4 * SEEDS; seed++) {
        assert_true(second_sees_first(seed, true));
        free_orders += second_sees_first(seed, false);
    }
    assert_in_range(free_orders, 1, 4 * SEEDS - 1);
}

static void what_arrives_is_not_there_before(void **state)
{
    (void)state;
    fake_begin(1, 1 << 20, 0);
    cudaStream_t stream = stream_on(0);
    cudaEvent_t event = event_on(0);
    void *there = memory_on(0);
    good(cudaMemsetAsync(there, 5, BYTES, stream));
    good(cudaStreamSynchronize(stream));
    memset(host, 5, BYTES);
    good(cudaMemcpyAsync(host, there, BYTES, cudaMemcpyDeviceToHost, stream));
    good(cudaEventRecord(event, stream));
    int polls = 0;
    for (; cudaEventQuery(event) == cudaErrorNotReady; polls++)
        assert_true(polls < 10);
    assert_int_equal(host[0], 5);
    good(cudaFree(there));
    good(cudaEventDestroy(event));
    good(cudaStreamDestroy(stream));
    fake_end();
}

static void an_error_that_is_not_read_is_the_next_launchs(void **state)
{
    (void)state;
    void *none;
    fake_begin(1, 1 << 20, 0);
    cudaStream_t stream = stream_on(0);
    void *there = memory_on(0);
    assert_int_equal(cudaMalloc(&none, 1 << 21), cudaErrorMemoryAllocation);
    assert_int_equal(ls_cuda_fill_words(stream, there, 7, WORDS), cudaErrorMemoryAllocation);
    assert_int_equal(ls_cuda_fill_words(stream, there, 7, WORDS), cudaSuccess);
    good(cudaStreamSynchronize(stream));
    good(cudaFree(there));
    good(cudaStreamDestroy(stream));
    fake_end();
}

/* Work breaks its card long after the call that gave it, and that card fails for good; others go
 * on. */
static void a_card_that_is_broken_stays_so(void **state)
{
    (void)state;
    void *none, *there;
    fake_begin(2, 1 << 20, 0);
    cudaStream_t stream = stream_on(0), other = stream_on(1);
    there = memory_on(1);
    good(cudaSetDevice(0));
    void *here = memory_on(0);
    fake_fail("work", 0);
    fill(stream, here, WORDS);
    assert_int_equal(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
    assert_true(fake_has_failed());
    for (int i = 0; i < 2; i++) {
        assert_int_equal(cudaMalloc(&none, 16), cudaErrorIllegalAddress);
        assert_int_equal(cudaMallocHost(&none, 16), cudaErrorIllegalAddress);
        assert_int_equal(ls_cuda_fill_words(stream, here, 7, WORDS), cudaErrorIllegalAddress);
        assert_int_equal(cudaMemsetAsync(here, 0, BYTES, stream), cudaErrorIllegalAddress);
        assert_int_equal(cudaGetLastError(), cudaErrorIllegalAddress);
    }
    good(cudaSetDevice(1));
    fill(other, there, WORDS);
    good(cudaStreamSynchronize(other));
    good(cudaFree(there));
    good(cudaStreamDestroy(other));
    assert_int_equal(cudaFree(here), cudaErrorIllegalAddress);
    assert_int_equal(cudaStreamDestroy(stream), cudaErrorIllegalAddress);
    fake_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_wrong_ends_the_program),
        cmocka_unit_test(streams_are_ordered_by_events_alone),
        cmocka_unit_test(what_arrives_is_not_there_before),
        cmocka_unit_test(an_error_that_is_not_read_is_the_next_launchs),
        cmocka_unit_test(a_card_that_is_broken_stays_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
