/* The model of a training on several ranks, against figures worked out by hand.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/scaling.h"

#include "engine/shards.h"
#include "support/support.h"

/* Two layers, each with a million elements in a bucket of its own; eight micro-batches. */
enum { LAYERS = 2, ELEMENTS = 1 << 20 };

struct example {
    struct ls_scaling_layer layers[LAYERS];
    size_t elements[LAYERS], layer[LAYERS];
    struct ls_scaling_load load;
};

static const struct ls_scaling_link link = {.bandwidth = 1e9, .latency = 0.001, .message = 0};

static void make(struct example *example)
{
    *example = (struct example){.layers = {{.forward = 0.001, .backward = 0.002, .update = 0.004},
                                           {.forward = 0.003, .backward = 0.005, .update = 0.004}},
                                .elements = {ELEMENTS, ELEMENTS},
                                .layer = {0, 1},
                                .load = {.workers = 1,
                                         .units = 8,
                                         .batches = 1,
                                         .layer_count = LAYERS,
                                         .parameters = LAYERS,
                                         .record = 16,
                                         .books = 100,
                                         .exchanges = 3,
                                         .rest = 0.0005,
                                         .forecast = {.history = 8 * ELEMENTS, .slots = 1},
                                         .shared_state = 8 * ELEMENTS}};
    example->load.layers = example->layers;
    example->load.elements = example->elements;
    example->load.layer = example->layer;
}

static struct lockstep_scaling_row predict(const struct example *example,
                                           const struct ls_scaling_link *by, int ranks)
{
    struct lockstep_scaling_row row;
    assert_int_equal(ls_scaling_predict(&example->load, by, ranks, &row, NULL), 0);
    assert_float_equal(
        row.seconds,
        row.pass + row.update + row.rest + row.small + row.wait_sums + row.wait_weights, 1e-12);
    return row;
}

static void one_rank_pays_for_computation_only(void **state)
{
    (void)state;
    struct example example;
    make(&example);
    struct lockstep_scaling_row row = predict(&example, &link, 1);
    assert_float_equal(row.pass, 8 * 0.011, 1e-9);
    assert_float_equal(row.update, 0.008, 1e-9);
    assert_float_equal(row.seconds, 8 * 0.011 + 0.008 + 0.0005, 1e-9);
    assert_int_equal(row.micro_batches, 8);
    assert_int_equal(row.sent.sums + row.sent.weights + row.sent.factors + row.sent.small, 0);
    assert_int_equal(row.state, 8 * ELEMENTS);
    example.load.workers = 3; /* 3, 3 and 2 */
    assert_float_equal(predict(&example, &link, 1).pass, 3 * 0.011, 1e-9);
}

/* Half of each bucket is sent and received: 3 MiB of sums at 1 GB/s take 3.1 ms. The second
 * layer's are sent 2 ms before the pass ends, the first layer's at its end. */
static void two_ranks_pay_for_what_the_pass_does_not_hide(void **state)
{
    (void)state;
    struct example example;
    make(&example);
    struct lockstep_scaling_row row = predict(&example, &link, 2);
    double half = ELEMENTS / 2, sums = half * 6e-9, weights = half * 4e-9;
    assert_float_equal(row.pass, 4 * 0.011, 1e-9);
    assert_float_equal(row.update, 0.004, 1e-6);
    assert_float_equal(row.wait_sums, 2 * sums + 0.001 - 0.002, 1e-6);
    /* The weights of the first layer, and of the second one behind its forward millisecond. */
    assert_float_equal(row.wait_weights, 2 * weights + 0.001 - 0.001, 1e-6);
    assert_float_equal(row.transfer, 2 * sums + 2 * weights, 1e-6);
    assert_float_equal(row.small, 3 * 0.001 + (100 + 4 * 16) * 1e-9, 1e-9);
    assert_int_equal(row.sent.sums, 6 * ELEMENTS);
    assert_int_equal(row.sent.weights, 4 * ELEMENTS);
    assert_int_equal(row.sent.small, 100 + 4 * 16);
    assert_int_equal(row.state, 4 * ELEMENTS);
}

/* With a fast link only the latency of the last bucket and of the first weights remains. */
static void a_fast_link_leaves_only_latencies(void **state)
{
    (void)state;
    struct example example;
    make(&example);
    const struct ls_scaling_link fast = {.bandwidth = 1e15, .latency = 1e-5, .message = 0};
    struct lockstep_scaling_row row = predict(&example, &fast, 2);
    assert_float_equal(row.wait_sums, 1e-5, 1e-7);
    assert_float_equal(row.wait_weights, 1e-5, 1e-7);
}

/* A message to each of the others costs its time, too. */
static void messages_to_each_rank_cost_time(void **state)
{
    (void)state;
    struct example example;
    make(&example);
    const struct ls_scaling_link slow = {.bandwidth = 1e15, .latency = 0, .message = 1e-6};
    struct lockstep_scaling_row row = predict(&example, &slow, 5);
    assert_float_equal(row.small, 3 * 4e-6, 1e-9);
    assert_true(row.transfer >= 4 * 4e-6);
}

/* Nets with sync points: all micro-batches of a rank pass a layer before its gradients are sent,
 * so that more is hidden; each sync point costs a small exchange. */
static void sync_points_cost_small_exchanges_and_hide_more(void **state)
{
    (void)state;
    struct example example;
    make(&example);
    double free_wait = predict(&example, &link, 2).wait_sums;
    example.load.waves = 1;
    struct lockstep_scaling_row row = predict(&example, &link, 2);
    assert_float_equal(row.pass, 4 * 0.011, 1e-9);
    double left = free_wait + 0.002 - 4 * 0.002; /* the first layer's pass hides more */
    double last = ELEMENTS / 2 * 6e-9 + 0.001;   /* its own sums are ready at the end */
    assert_float_equal(row.wait_sums, left > last ? left : last, 1e-6);
    double before = row.small;
    example.layers[1].syncs[0] = 2;
    example.layers[1].rows[0] = 1000;
    row = predict(&example, &link, 2);
    assert_float_equal(row.small - before, 2 * 0.001 + 4 * 1000 * 1e-9, 1e-9);
    assert_int_equal(row.sent.small, 100 + 4 * (16 + 1000));
}

/* Gathered steps take the same time, however few micro-batches a rank has. */
static void gathered_steps_cost_the_same_on_any_ranks(void **state)
{
    (void)state;
    struct example example;
    make(&example);
    example.load.waves = 1;
    example.layers[1].gathered[0] = 0.007;
    assert_float_equal(predict(&example, &link, 1).pass, 8 * 0.011 + 0.007, 1e-9);
    assert_float_equal(predict(&example, &link, 8).pass, 0.011 + 0.007, 1e-9);
}

/* Factors are exchanged as rows, and every rank updates these weights in full. */
static void factors_are_exchanged_as_rows(void **state)
{
    (void)state;
    struct example example;
    make(&example);
    example.elements[1] = 0;
    example.layers[1].update = 0;
    example.layers[1].full = 0.02;
    example.layers[1].factors[LS_FACTOR_INPUT] = 6e6;
    example.layers[1].factors[LS_FACTOR_OUTPUT] = 2e6;
    struct lockstep_scaling_row row = predict(&example, &link, 4);
    assert_int_equal(row.sent.factors, 6000000);
    assert_int_equal(row.sent.sums, ELEMENTS * 6 * 3 / 4);
    assert_float_equal(row.update, 0.001 + 0.02, 1e-6);
    assert_true(row.wait_sums >= 6e-3 + ELEMENTS * 6e-9 * 3 / 4 - 0.002);
}

/* Ranks beyond the number of micro-batches idle; a rank owns a whole number of tiles. */
static void more_ranks_than_micro_batches_idle(void **state)
{
    (void)state;
    struct example example;
    make(&example);
    struct lockstep_scaling_row row = predict(&example, &link, 12);
    assert_int_equal(row.idle, 4);
    assert_int_equal(row.micro_batches, 1);
    assert_float_equal(row.pass, 0.011, 1e-9);
    row = predict(&example, &link, 4096);
    assert_int_equal(row.idle, 4088);
    assert_true(row.state >= 8 * ELEMENTS / 4096 && row.state < 8 * ELEMENTS / 100);
    assert_true(row.seconds > predict(&example, &link, 8).seconds);
}

/* Ranks never exchange more than three times the bytes of the parameters that they do not own. */
static void traffic_stays_within_three_times_the_parameters(void **state)
{
    (void)state;
    struct example example;
    make(&example);
    for (int ranks = 1; ranks <= 1024; ranks *= 2) {
        struct lockstep_scaling_row row = predict(&example, &link, ranks);
        double most = 3.0 * (ranks - 1) / ranks * 2 * ELEMENTS * sizeof(float);
        assert_true((double)(row.sent.sums + row.sent.weights) <= most);
        assert_true(ranks == 1 || (double)(row.sent.sums + row.sent.weights) > 0.8 * most);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_rank_pays_for_computation_only),
        cmocka_unit_test(two_ranks_pay_for_what_the_pass_does_not_hide),
        cmocka_unit_test(a_fast_link_leaves_only_latencies),
        cmocka_unit_test(messages_to_each_rank_cost_time),
        cmocka_unit_test(sync_points_cost_small_exchanges_and_hide_more),
        cmocka_unit_test(gathered_steps_cost_the_same_on_any_ranks),
        cmocka_unit_test(factors_are_exchanged_as_rows),
        cmocka_unit_test(more_ranks_than_micro_batches_idle),
        cmocka_unit_test(traffic_stays_within_three_times_the_parameters)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
