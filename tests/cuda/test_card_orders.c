/* Whole trainings in a hundred orders of work: several nets, one to four cards, two and three ranks
 * on one card, one to three workers, data that are made on the card or copied. Same snapshots in
 * all. $LOCKSTEP_ALL: a hundred orders of each net.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cuda/card_trainings.h"
#include "cuda/fake/fake.h"

enum { ORDERS = 100, END = 2 };

static const struct card_run runs[] = {
    {.ranks = 2, .cards = {0, 1}, .workers = 1},
    {.ranks = 1, .cards = {3}, .workers = 3},
    {.ranks = 2, .cards = {0, 0}, .workers = 1},
    {.ranks = 1, .cards = {0}, .workers = 1},
    {.ranks = 3, .cards = {3, 1, 2}, .workers = 1},
    {.ranks = 1, .cards = {1}, .workers = 2},
    {.ranks = 4, .cards = {0, 1, 2, 3}, .workers = 1},
    {.ranks = 3, .cards = {2, 2, 2}, .workers = 1},
    {.ranks = 2, .cards = {2, 0}, .workers = 2},
};
enum { RUNS = sizeof runs / sizeof *runs };

static long overtaken, pieces;

static void train_well(const struct lockstep_solver *solver, const struct card_run *run,
                       uint64_t seed, const char *name)
{
    struct lockstep_error *error = lockstep_error_new();
    fake_begin(4, CARD_BYTES, seed);
    if (card_train(solver, run, error) != 0)
        fail_msg("%s, seed %d: %s", name, (int)seed, lockstep_error_text(error));
    overtaken += fake_overtaken();
    pieces += fake_calls("work");
    fake_end();
    lockstep_error_free(error);
}

static void any_order_gives_same_bits(void **state)
{
    const bool all = getenv("LOCKSTEP_ALL") != NULL;
    int tried = 0;
    (void)state;
    for (int n = 0; n < card_net_count; n++) {
        const struct card_net *net = &card_nets[n];
        struct lockstep_solver *solver = card_solver(net, "max_iter: 2");
        struct card_run run = {.ranks = 1, .cards = {0}, .workers = 1, .prefix = "first"};
        train_well(solver, &run, 0, net->name);
        struct bytes first = read_bytes(card_snapshot("first", END));
        for (int seed = all ? 1 : 1 + n; seed <= ORDERS; seed += all ? 1 : card_net_count) {
            run = runs[(seed / card_net_count + n) % RUNS];
            run.data = (enum card_data)(seed / 2 % CARD_DATA_WAYS);
            run.prefix = "other";
            train_well(solver, &run, (uint64_t)seed, net->name);
            check_same(first, read_bytes(card_snapshot("other", END)),
                       "%s, %d ranks from card %d on, %d workers, data %d, seed %d", net->name,
                       run.ranks, run.cards[0], run.workers, (int)run.data, seed);
            tried++;
        }
        free(first.data);
        lockstep_solver_free(solver);
    }
    print_message("%d orders of trainings were tried: %ld pieces of work, of which %ld overtook "
                  "earlier ones\n",
                  tried, pieces, overtaken);
    assert_true(tried >= ORDERS);
    assert_true(overtaken > ORDERS);
}

/* What is computed in the declared order has the CPU's bits: all that the nets compute is. */
static void portable_nets_have_the_bits_of_the_cpu(void **state)
{
    (void)state;
    for (int n = 0; n < card_net_count; n++) {
        struct lockstep_solver *solver =
            card_solver(&card_nets[n], "max_iter: 2 algorithm: PORTABLE");
        struct card_run run = runs[n];
        uint64_t hash[2];
        struct training *cpu = start(solver, 1, NULL, NULL);
        step(cpu, END);
        assert_int_equal(lockstep_trainer_hash(cpu->trainer, &hash[0], cpu->error), 0);
        finish(cpu);
        run.prefix = "portable";
        run.hash = &hash[1];
        train_well(solver, &run, (uint64_t)n, card_nets[n].name);
        if (hash[0] != hash[1])
            fail_msg("%s: the CPU has other bits", card_nets[n].name);
        lockstep_solver_free(solver);
    }
}

static int setup(void **state)
{
    (void)state;
    card_write_data();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_order_gives_same_bits),
        cmocka_unit_test(portable_nets_have_the_bits_of_the_cpu),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
