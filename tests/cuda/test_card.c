/* The device's functions on the fake of CUDA's runtime, in many orders of work: the bits of
 * device/plain.h, and each call of the runtime failing once, with nothing left behind.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/thread.h"
#include "cuda/fake/fake.h"
#include "device/exact.h"
#include "device/plain.h"
#include "ops/cuda/accumulator.h"
#include "ops/cuda/card.h"
#include "ops/cuda/contract.h"
#include "support/support.h"

enum { MOST = 9000, SEEDS = 20, WORKERS = 3 };

static uint64_t drawn;

static void draw_all(float *numbers, int n)
{
    for (int i = 0; i < n; i++) {
        const uint32_t bits = ls_random_u32(11, 5, drawn++);
        numbers[i] = ldexpf((float)((int32_t)bits >> 8) / 8388608.0F, (int)(bits % 16) - 12);
    }
}

/* A copy of numbers in the card's memory. */
static void *on_card(const void *numbers, size_t bytes)
{
    void *there = ls_card_memory.create(bytes);
    assert_non_null(there);
    assert_int_equal(ls_card_memory.write(NULL, there, numbers, bytes, NULL), 0);
    return there;
}

static void expect_on_card(const void *there, const void *numbers, size_t bytes)
{
    static unsigned char here[MOST * 8];
    assert_int_equal(ls_card_memory.read(NULL, here, there, bytes, NULL), 0);
    assert_memory_equal(here, numbers, bytes);
}

/* ---- Exact sums of several streams ----------------------------------------------------------- */

/* Gradients of some micro-batches, each added in the stream of a worker as soon as it is copied to
 * the card; then all sums are read. 0, or the status of what failed. */
static int add_gradients(float (*gradient)[MOST], int micro_batches, int n, float *sums)
{
    struct ls_stream *stream[WORKERS] = {NULL};
    float *arena[WORKERS] = {NULL}, *out = NULL;
    static const int64_t numbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    int64_t *number = ls_card_memory.create(WORKERS * sizeof *number); /* of the micro-batch */
    struct ls_accumulator *accumulator = NULL;
    const size_t elements = (size_t)n, bytes = elements * sizeof(float);
    int status = number == NULL
                     ? LOCKSTEP_RESOURCE
                     : ls_card_accumulator.create(&elements, NULL, 1, WORKERS, &accumulator, NULL);
    int32_t exponent = 20;
    struct ls_accumulated part;
    if (status == 0) {
        ls_card_accumulator.part(accumulator, 0, &part);
        status = ls_card_memory.write(NULL, part.exponent, &exponent, sizeof exponent, NULL);
    }
    if (status == 0)
        status = ls_card_accumulator.begin(accumulator, false, NULL);
    for (int w = 0; w < WORKERS && status == 0; w++) {
        status = ls_card_streams.create(&stream[w], NULL);
        arena[w] = status == 0 ? ls_card_memory.create(bytes) : NULL;
        status = status == 0 && arena[w] == NULL ? LOCKSTEP_RESOURCE : status;
    }
    for (int m = 0; m < micro_batches && status == 0; m++) {
        const int w = m % WORKERS;
        status = ls_card_memory.write(stream[w], arena[w], gradient[m], bytes, NULL);
        if (status == 0)
            status = ls_card_memory.write(stream[w], number + w, &numbers[m], sizeof *number, NULL);
        if (status == 0)
            status = ls_card_check(ls_card_accumulate((cudaStream_t)(void *)stream[w], accumulator,
                                                      number + w, 0, arena[w]),
                                   "add gradients", NULL);
    }
    for (int w = 0; w < WORKERS && status == 0; w++)
        status = ls_card_streams.wait(stream[w], NULL);
    out = ls_card_memory.create(bytes);
    status = status == 0 && out == NULL ? LOCKSTEP_RESOURCE : status;
    if (status == 0)
        status = ls_card_accumulator.read(accumulator, 0, 0, elements, out, NULL);
    if (status == 0)
        status = ls_card_memory.read(NULL, sums, out, bytes, NULL);
    for (int w = 0; w < WORKERS; w++) /* what they still do reads memory */
        ls_card_streams.free(stream[w]);
    for (int w = 0; w < WORKERS; w++)
        ls_card_memory.free(arena[w]);
    ls_card_memory.free(out);
    ls_card_memory.free(number);
    ls_card_accumulator.free(accumulator);
    return status;
}

static float gradients[8][MOST], expected[MOST], found[MOST];

static void expect_sums(int micro_batches, int n)
{
    const size_t elements = (size_t)n;
    struct ls_accumulator *plain;
    struct ls_accumulated part;
    assert_int_equal(ls_plain_accumulator.create(&elements, NULL, 1, 1, &plain, NULL), 0);
    ls_plain_accumulator.part(plain, 0, &part);
    part.exponent[0] = 20;
    assert_int_equal(ls_plain_accumulator.begin(plain, false, NULL), 0);
    for (int m = 0; m < micro_batches; m++) {
        draw_all(gradients[m], n);
        ls_plain_accumulate(plain, m, 0, gradients[m]);
    }
    assert_int_equal(ls_plain_accumulator.read(plain, 0, 0, elements, expected, NULL), 0);
    ls_plain_accumulator.free(plain);
}

static void sums_do_not_depend_on_the_order_of_streams(void **state)
{
    (void)state;
    long overtaken = 0;
    for (int seed = 0; seed < SEEDS; seed++) {
        const int n = 300 + seed * 17;
        expect_sums(8, n);
        fake_begin(1, 1 << 24, (uint64_t)seed);
        assert_int_equal(add_gradients(gradients, 8, n, found), 0);
        assert_memory_equal(found, expected, (size_t)n * sizeof *found);
        overtaken += fake_overtaken();
        ls_card_end_thread();
        fake_end();
    }
    assert_true(overtaken > SEEDS); /* else the orders were all the same */
}

/* Calls that a training makes; each fails at every place where it is made. */
static const char *const calls[] = {
    "cudaMalloc",      "cudaStreamCreateWithFlags", "cudaMemcpyAsync",
    "cudaMemsetAsync", "cudaStreamSynchronize",     "a launch"};

static void every_failing_call_is_told(void **state)
{
    (void)state;
    expect_sums(4, 500);
    for (size_t c = 0; c < sizeof calls / sizeof *calls; c++)
        for (long after = 0;; after++) {
            fake_begin(1, 1 << 24, (uint64_t)after);
            memset(found, 0, sizeof found);
            fake_fail(calls[c], after);
            int status = add_gradients(gradients, 4, 500, found);
            const bool failed = fake_has_failed();
            /* What ends a stream may fail untold: by then all is done. */
            if (failed && status == 0 && memcmp(found, expected, 500 * sizeof *found) != 0)
                fail_msg("%s, after %ld: it failed, and nothing tells it", calls[c], after);
            ls_card_end_thread();
            fake_end();
            if (!failed) {
                assert_true(after > 0);
                break;
            }
        }
}

/* ---- Everything else ------------------------------------------------------------------------- */

static void updates_have_plain_bits(void **state)
{
    (void)state;
    static float g[MOST], w[MOST], h[MOST], k[MOST];
    const int n = 5000;
    const size_t bytes = (size_t)n * sizeof(float);
    const struct ls_update_rule rule = {.kind = LS_UPDATE_ADAMW,
                                        .rate = 0.01F,
                                        .momentum = 0.9F,
                                        .momentum2 = 0.99F,
                                        .delta = 1e-8F,
                                        .correction = 0.5F,
                                        .decay = 0.1F,
                                        .gradient_scale = 1};
    fake_begin(1, 1 << 24, 1);
    draw_all(g, n);
    draw_all(w, n);
    struct ls_update_slice slice = {(size_t)n, g, w, {h, k}, NULL, NULL};
    struct ls_update_slice there = {(size_t)n,
                                    on_card(g, bytes),
                                    on_card(w, bytes),
                                    {on_card(h, bytes), on_card(k, bytes)},
                                    NULL,
                                    NULL};
    struct ls_update_seen seen, seen_there;
    assert_int_equal(ls_plain_update(&rule, &slice, &seen, NULL), 0);
    assert_int_equal(ls_card_update(&rule, &there, &seen_there, NULL), 0);
    assert_memory_equal(&seen, &seen_there, sizeof seen);
    expect_on_card(there.weight, w, bytes);
    expect_on_card(there.history[0], h, bytes);
    expect_on_card(there.history[1], k, bytes);
    double norm, norm_there;
    assert_int_equal(ls_plain_sums.squares(w, (size_t)n, &norm, NULL), 0);
    assert_int_equal(ls_card_sums.squares(there.weight, (size_t)n, &norm_there, NULL), 0);
    assert_memory_equal(&norm, &norm_there, sizeof norm);
    assert_int_equal(ls_card_memory.swap(there.weight, there.history[0], bytes, NULL), 0);
    expect_on_card(there.weight, h, bytes);
    uint64_t hash, hash_there;
    assert_int_equal(ls_host_memory.hash(w, bytes, 3, &hash, NULL), 0);
    assert_int_equal(ls_card_memory.hash(there.history[0], bytes, 3, &hash_there, NULL), 0);
    assert_int_equal(hash, hash_there);
    ls_card_memory.free((void *)there.gradient);
    ls_card_memory.free(there.weight);
    ls_card_memory.free(there.history[0]);
    ls_card_memory.free(there.history[1]);
    ls_card_end_thread();
    fake_end();
}

static void memory_that_runs_out_is_told(void **state)
{
    (void)state;
    struct ls_error error = {0};
    char text[400];
    fake_begin(1, 1 << 20, 1);
    assert_null(ls_card_memory.create(2 << 20));
    assert_int_equal(ls_fail_memory(&error, "a worker"), LOCKSTEP_RESOURCE);
    ls_error_format(&error, text, sizeof text);
    assert_non_null(strstr(text, "out of memory for a worker: card 0 gives no 2097152 bytes: "));
    ls_error_clear(&error);
    ls_fail_memory(&error, "another worker"); /* of the host's memory */
    ls_error_format(&error, text, sizeof text);
    assert_null(strstr(text, "card"));
    ls_error_clear(&error);
    assert_int_equal(ls_card_check(cudaErrorMemoryAllocation, "hold the weights", &error),
                     LOCKSTEP_RESOURCE);
    ls_error_format(&error, text, sizeof text);
    assert_non_null(strstr(text, "card 0 has no memory to hold the weights"));
    ls_card_end_thread();
    fake_end();
}

/* ---- A caller's thread ----------------------------------------------------------------------- */

/* What Lockstep does for a caller whose thread is with card 0: it works on card 1. */
static void work_elsewhere(void)
{
    const int card = ls_card_take_thread();
    ls_thread_set_card(1);
    ls_card_memory.free(on_card("1", 1));
    ls_thread_set_card(-1);
    ls_card_give_thread_back(card);
}

static void a_thread_gets_its_card_back(void **state)
{
    int card = -1;
    (void)state;
    fake_begin(2, 1 << 20, 1);
    assert_int_equal(cudaSetDevice(0), cudaSuccess);
    work_elsewhere();
    assert_int_equal(cudaGetDevice(&card), cudaSuccess);
    assert_int_equal(card, 0);
    ls_card_end_thread();
    fake_end();
}

/* It would take memory of a card that a job does not use. */
static void no_context_is_made_on_another_card(void **state)
{
    int card = -1;
    (void)state;
    fake_begin(2, 1 << 20, 1);
    work_elsewhere();
    assert_true(fake_uses_card(1));
    assert_false(fake_uses_card(0));
    assert_int_equal(cudaGetDevice(&card), cudaSuccess);
    assert_int_equal(card, 1);
    assert_int_equal(cudaSetDevice(0), cudaSuccess); /* as the next test finds it */
    assert_int_equal(ls_card_take_thread(), 0);
    ls_card_end_thread();
    fake_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_do_not_depend_on_the_order_of_streams),
        cmocka_unit_test(every_failing_call_is_told),
        cmocka_unit_test(updates_have_plain_bits),
        cmocka_unit_test(memory_that_runs_out_is_told),
        cmocka_unit_test(a_thread_gets_its_card_back),
        cmocka_unit_test(no_context_is_made_on_another_card),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
