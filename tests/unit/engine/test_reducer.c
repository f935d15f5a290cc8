/* The reducer over transports between threads. Buckets are sent when this rank has made its last
 * contribution to them, in one order on all ranks; sums are those of a single process; sums that
 * do not fit are sent again; weights are complete after a wait for them.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/exponents.h"
#include "engine/reducer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/thread.h"
#include "engine/store.h"
#include "ops/cpu/device.h"
#include "support/comm_ranks.h"
#include "support/contribute.h"
#include "support/support.h"
#include "transport/comm_job.h"
#include "transport/local.h"

enum {
    RANKS = 3,
    PARAMETERS = 8, /* two make a bucket */
    BUCKETS = 4,
    UNITS = 5,
    EXPONENT = 20,
    PATIENCE = 60 /* seconds, before a test gives up */
};

struct rank {
    struct ls_comm *comm;
    struct ls_parameter_set *set;
    struct ls_view_set views;
    struct ls_store *store;
    struct ls_reducer *reducer;
    int failed; /* the line of the first check that failed */
};

/* What all ranks of a test do. */
struct plan {
    void (*body)(struct rank *rank);
};

/* ---- A transport that counts ----------------------------------------------------------------- */

static const struct ls_transport_calls *real;
static struct ls_transport_calls counting;
static _Atomic int left[RANKS]; /* exchanges of sums that a rank has begun */

static int count_exchange(struct ls_transport *transport, enum ls_channel channel, const void *out,
                          const struct ls_transport_blocks *out_blocks, void *in,
                          const struct ls_transport_blocks *in_blocks, struct ls_transport_op **op)
{
    left[transport->rank] += channel == LS_CHANNEL_BULK;
    return real->exchange(transport, channel, out, out_blocks, in, in_blocks, op);
}

/* ---- Stores ---------------------------------------------------------------------------------- */

static struct ls_parameter *new_parameter(int index)
{
    struct ls_parameter *parameter = ls_alloc(1, sizeof *parameter);
    if (parameter == NULL)
        abort();
    parameter->index = index;
    parameter->name = ls_copy_string("p");
    parameter->shape = (struct ls_shape){.rank = 1, .dim = {20000 + 1000 * index}};
    parameter->trained = true;
    parameter->uses = 1 + index % 2;
    return parameter;
}

static void make_store(struct rank *rank)
{
    const struct ls_store_options options = {
        .rank = rank->comm->rank, .ranks = rank->comm->size, .training = true, .workers = 1};
    rank->set = ls_parameter_set_new();
    rank->set->items = ls_alloc(PARAMETERS, sizeof(struct ls_parameter *));
    if (rank->set->items == NULL)
        abort();
    while (rank->set->count < PARAMETERS) {
        rank->set->items[rank->set->count] = new_parameter((int)rank->set->count);
        rank->set->count++;
    }
    CHECK(rank, ls_store_create(&ls_device_cpu, rank->set, &rank->views, &options, &rank->store,
                                NULL) == 0);
    CHECK(rank, ls_reducer_create(rank->store, rank->comm, &rank->reducer, NULL) == 0);
    for (int p = 0; p < PARAMETERS; p++)
        ls_sums_set_exponent(rank->store->sums, p, EXPONENT);
    CHECK(rank, rank->store->shards->bucket_count == BUCKETS);
}

static void run_rank(struct comm_rank *base)
{
    const struct plan *plan = base->job->user;
    struct rank rank = {.comm = base->comm};
    make_store(&rank);
    if (rank.failed == 0)
        plan->body(&rank);
    ls_reducer_free(rank.reducer);
    ls_store_free(rank.store);
    ls_parameter_set_free(rank.set);
    if (base->failed == 0)
        base->failed = rank.failed;
}

static void count_exchanges(struct ls_transport **transports)
{
    real = transports[0]->calls;
    counting = *real;
    counting.exchange = count_exchange;
    for (int r = 0; r < RANKS; r++) {
        left[r] = 0;
        transports[r]->calls = &counting;
    }
}

static void count_late_exchanges(struct ls_transport **transports)
{
    ls_local_delay(transports[0], 0.02, 0);
    count_exchanges(transports);
}

static void run_ranks(bool late, void (*body)(struct rank *rank))
{
    struct plan plan = {body};
    run_comm_job(&(struct comm_job){.ranks = RANKS,
                                    .body = run_rank,
                                    .prepare = late ? count_late_exchanges : count_exchanges,
                                    .user = &plan});
}

/* ---- Contributions --------------------------------------------------------------------------- */

/* Micro-batch u is rank u % RANKS's. */
static const int owner[UNITS] = {0, 1, 2, 0, 1};

/* What a micro-batch contributes; every use of a parameter is one contribution. */
static float contribution(int unit, int parameter, int use, size_t element)
{
    return (float)((unit * 7 + parameter * 31 + use * 3 + (int)element) % 1000 - 500);
}

/* As a worker does it. */
static void contribute_once(struct rank *rank, int unit, int parameter, const float *gradient)
{
    const struct ls_context context = {.micro_batch = unit};
    contribute_to_sum(&ls_device_cpu, ls_sums_accumulator(rank->store->sums), 0, unit, parameter,
                      gradient);
    CHECK(rank, ls_reducer_contributed(rank->reducer, parameter, &context, NULL) == 0);
}

/* All contributions of this rank's micro-batches to a parameter except the last `but` uses,
 * times `scale`. */
static void contribute(struct rank *rank, int parameter, int but, float scale)
{
    static _Thread_local float gradient[30000];
    size_t elements = rank->store->slots[parameter].elements;
    int uses = rank->set->items[parameter]->uses, all = 0, made = 0;
    for (int u = 0; u < UNITS; u++)
        all += owner[u] == rank->comm->rank ? uses : 0;
    for (int u = 0; u < UNITS; u++)
        for (int use = 0; use < uses && owner[u] == rank->comm->rank; use++, made++) {
            if (made >= all - but && but > 0)
                continue;
            for (size_t i = 0; i < elements; i++)
                gradient[i] = scale * contribution(u, parameter, use, i);
            contribute_once(rank, u, parameter, gradient);
        }
}

static void contribute_bucket(struct rank *rank, int bucket, float scale)
{
    for (int p = 0; p < PARAMETERS; p++)
        if (rank->store->shards->bucket[p] == bucket)
            contribute(rank, p, 0, scale);
}

/* The part of the sums that this rank owns is that of all micro-batches, with contributions of
 * rank r times scale[r]. */
static void check_sums(struct rank *rank, const float *scale)
{
    const int64_t *all = ls_sums_all(rank->store->sums);
    for (int p = 0; p < PARAMETERS; p++) {
        const struct ls_parameter_state *slot = &rank->store->slots[p];
        for (size_t i = slot->shard_begin; i < slot->shard_end; i++) {
            int64_t sum = 0;
            for (int u = 0; u < UNITS; u++)
                for (int use = 0; use < rank->set->items[p]->uses; use++)
                    sum += (int64_t)(scale[owner[u]] * contribution(u, p, use, i)) *
                           ((int64_t)1 << EXPONENT);
            CHECK(rank, all[rank->store->shards->place[p] + i] == sum);
        }
    }
}

/* Until so many exchanges have begun here, which is soon, or never. */
static void await_left(struct rank *rank, int count)
{
    double deadline = ls_clock() + PATIENCE;
    while (left[rank->comm->rank] < count && ls_clock() < deadline)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    CHECK(rank, left[rank->comm->rank] == count);
}

/* Time enough for one that should not. */
static void expect_left(struct rank *rank, int count)
{
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    CHECK(rank, left[rank->comm->rank] == count);
}

static const float ones[RANKS] = {1, 1, 1};

/* ---- Gradients ------------------------------------------------------------------------------- */

/* Buckets become complete in the order 2, 0, 1, 3: bucket 2 waits for 1, because all ranks send
 * them in one order. */
static void reduce_in_order(struct rank *rank)
{
    struct ls_reducer *reducer = rank->reducer;
    bool again = true;
    CHECK(rank, ls_comm_request(rank->comm, 1u << rank->comm->rank) == 0);
    CHECK(rank, ls_sums_begin(rank->store->sums, false, NULL) == 0);
    CHECK(rank, ls_reducer_begin(reducer, owner, UNITS, NULL) == 0);
    contribute_bucket(rank, 2, 1);
    expect_left(rank, 0);
    contribute(rank, PARAMETERS - 2, 0, 1);
    contribute(rank, PARAMETERS - 1, 1, 1);
    expect_left(rank, 0);
    const int last = rank->comm->rank == 2 ? 2 : rank->comm->rank + 3;
    float *gradient = malloc(30000 * sizeof *gradient);
    for (size_t i = 0; i < rank->store->slots[PARAMETERS - 1].elements; i++)
        gradient[i] = contribution(last, PARAMETERS - 1, 1, i);
    contribute_once(rank, last, PARAMETERS - 1, gradient);
    free(gradient);
    await_left(rank, 1);
    expect_left(rank, 1);
    contribute_bucket(rank, 1, 1);
    await_left(rank, 3);
    contribute_bucket(rank, 3, 1);
    await_left(rank, 4);
    CHECK(rank, ls_reducer_wait_gradients(reducer, owner, UNITS, NULL) == 0);
    CHECK(rank, ls_reducer_agree(reducer, &again, NULL) == 0);
    CHECK(rank, !again && ls_comm_request(rank->comm, 0) == (1u << RANKS) - 1);
    CHECK(rank, ls_comm_request(rank->comm, 0) == 0); /* they are told once */
    check_sums(rank, ones);
}

static void a_bucket_leaves_when_it_is_complete_and_those_before_it_have_left(void **state)
{
    (void)state;
    run_ranks(false, reduce_in_order);
}

/* Which micro-batches a rank runs shows on the way: nothing leaves before. */
static void reduce_as_it_shows(struct rank *rank)
{
    struct ls_reducer *reducer = rank->reducer;
    int own = 0;
    for (int u = 0; u < UNITS; u++)
        own += owner[u] == rank->comm->rank;
    CHECK(rank, ls_sums_begin(rank->store->sums, false, NULL) == 0);
    CHECK(rank, ls_reducer_begin(reducer, NULL, UNITS, NULL) == 0);
    contribute_bucket(rank, 0, 1);
    contribute_bucket(rank, 1, 1);
    expect_left(rank, 0);
    ls_reducer_expect(reducer, own);
    await_left(rank, 2);
    contribute_bucket(rank, 2, 1);
    await_left(rank, 3);
    contribute_bucket(rank, 3, 1);
    CHECK(rank, ls_reducer_wait_gradients(reducer, owner, UNITS, NULL) == 0);
    check_sums(rank, ones);
}

static void nothing_leaves_before_it_is_known_how_much_there_is(void **state)
{
    (void)state;
    run_ranks(false, reduce_as_it_shows);
}

/* Contributions of rank 1 are so large that their sums need more than 48 bits: all ranks repeat
 * the pass with 64 bits, and use 64 in the next passes. */
static void reduce_large_sums(struct rank *rank)
{
    static const float large[RANKS] = {1, (float)(1 << 20), 1};
    struct ls_reducer *reducer = rank->reducer;
    for (int pass = 0; pass < 3; pass++) {
        bool again = false;
        CHECK(rank, ls_sums_begin(rank->store->sums, false, NULL) == 0);
        CHECK(rank, ls_reducer_begin(reducer, owner, UNITS, NULL) == 0);
        for (int b = 0; b < BUCKETS; b++)
            contribute_bucket(rank, b, pass < 2 ? large[rank->comm->rank] : 1);
        CHECK(rank, ls_reducer_wait_gradients(reducer, owner, UNITS, NULL) == 0);
        CHECK(rank, ls_reducer_agree(reducer, &again, NULL) == 0);
        CHECK(rank, again == (pass == 0) && ls_comm_request(rank->comm, 0) == 0);
        if (pass > 0)
            check_sums(rank, pass == 1 ? large : ones);
    }
}

static void sums_that_do_not_fit_are_sent_again_with_more_bits(void **state)
{
    (void)state;
    run_ranks(false, reduce_large_sums);
}

/* ---- Weights --------------------------------------------------------------------------------- */

static float weight(int round, int rank, size_t place)
{
    return (float)(round * 16 + rank + 1) + (float)(place % 97) / 128;
}

/* Owners change their shards; on a slow network, a bucket has all shards after a wait for it. */
static void exchange_weights(struct rank *rank)
{
    struct ls_store *store = rank->store;
    float *flat, *weights;
    CHECK(rank, ls_store_weights(store, store->shards->order[0], &flat, NULL) == 0);
    for (int round = 0; round < 3; round++) {
        for (int b = 0; b < BUCKETS; b++) {
            const size_t *cut = store->shards->buckets[b].cut;
            for (size_t i = cut[rank->comm->rank]; i < cut[rank->comm->rank + 1]; i++)
                flat[i] = weight(round, rank->comm->rank, i);
        }
        CHECK(rank, ls_reducer_send_weights(rank->reducer, NULL) == 0);
        for (int b = BUCKETS - 1; b >= 0; b--) {
            const size_t *cut = store->shards->buckets[b].cut;
            if (round == 2) /* what asks for weights gets those that have arrived */
                CHECK(rank,
                      ls_store_weights(store, store->shards->order[store->shards->buckets[b].first],
                                       &weights, NULL) == 0);
            else
                ls_reducer_wait_buckets(rank->reducer, b, b);
            for (int r = 0; r < RANKS; r++)
                for (size_t i = cut[r]; i < cut[r + 1]; i++)
                    CHECK(rank, flat[i] == weight(round, r, i));
        }
        CHECK(rank, ls_reducer_wait_all(rank->reducer, NULL) == 0);
        CHECK(rank, ls_comm_agree(rank->comm, 0, NULL) == 0); /* all have looked */
    }
}

static void weights_are_there_when_their_bucket_was_waited_for(void **state)
{
    (void)state;
    run_ranks(true, exchange_weights);
}

/* A process by itself has no reducer, and all calls do nothing. */
static void one_process_has_nothing_to_reduce(void **state)
{
    (void)state;
    struct rank rank = {0};
    bool again = true;
    assert_int_equal(ls_comm_create_alone(&rank.comm, NULL), 0);
    make_store(&rank);
    assert_int_equal(rank.failed, 0);
    assert_null(rank.reducer);
    assert_int_equal(ls_reducer_begin(NULL, owner, UNITS, NULL), 0);
    assert_int_equal(ls_reducer_wait_gradients(NULL, owner, UNITS, NULL), 0);
    assert_int_equal(ls_reducer_agree(NULL, &again, NULL), 0);
    assert_true(!again);
    assert_int_equal(ls_reducer_send_weights(NULL, NULL), 0);
    ls_store_free(rank.store);
    ls_comm_end(rank.comm);
    ls_parameter_set_free(rank.set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bucket_leaves_when_it_is_complete_and_those_before_it_have_left),
        cmocka_unit_test(nothing_leaves_before_it_is_known_how_much_there_is),
        cmocka_unit_test(sums_that_do_not_fit_are_sent_again_with_more_bits),
        cmocka_unit_test(weights_are_there_when_their_bucket_was_waited_for),
        cmocka_unit_test(one_process_has_nothing_to_reduce),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
