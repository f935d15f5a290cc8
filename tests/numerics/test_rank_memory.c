/* Ranks with different limits on memory: each rank decides by itself what it recomputes and
 * gathers. Every rank gives the bytes of a single process, for any numbers of workers, with a
 * static partition or a work queue, in updates of several batches and in tests.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "trainings/ranks.h"

enum { SAMPLES = 61, TEST_SAMPLES = 37, UPDATES = 2, RANKS = 2, SEVERAL = 2 };

/* ---- Nets ------------------------------------------------------------------------------------ */

static const struct net {
    const char *name, *file; /* of tests/nets */
    bool gathers;
} nets[] = {{"large products", "rank_memory_products", true},
            {"statistics", "rank_memory_statistics", false}};

static int setup(void **state)
{
    (void)state;
    write_idx_pair(ls_test_path("images"), ls_test_path("labels"), SAMPLES, 12);
    write_idx_pair(ls_test_path("test-images"), ls_test_path("test-labels"), TEST_SAMPLES, 12);
    return 0;
}

static struct lockstep_solver *make_solver(const struct net *net, int iter_size)
{
    return load_solver(
        "base_lr: 0.05 momentum: 0.9 lr_policy: 'fixed' max_iter: 40 random_seed: 3 test_iter: 0\n"
        "test_interval: 100 test_initialization: false micro_batch: 3 iter_size: %d\n"
        "net_param { %s }\n",
        iter_size, ls_test_net(net->file, NULL));
}

/* ---- Limits ---------------------------------------------------------------------------------- */

static int do_nothing(struct rank *rank, struct ls_trainer *trainer)
{
    (void)rank;
    (void)trainer;
    return 0;
}

/* The least memory of each rank's trainer, taken from the message that a user gets: found with a
 * work queue, which takes more than a static partition, so that exactly this much is always
 * enough for a plan. */
static void find_least(const struct lockstep_solver *solver, const int *workers, size_t *least)
{
    struct job job = {.solver = solver,
                      .ranks = RANKS,
                      .dynamic = true,
                      .memory = {1, 1},
                      .act = do_nothing,
                      .together = true};
    struct rank ranks[RANKS_MAX];
    memcpy(job.workers, workers, RANKS * sizeof *workers);
    run_job(&job, ranks);
    for (int r = 0; r < RANKS; r++) {
        double mebibytes = 0;
        const char *message = ranks[r].error->problems[0].message;
        if (ranks[r].status == 0 ||
            sscanf(message, "training needs at least %lf MiB", &mebibytes) != 1)
            fail_msg("rank %d: %s", r, message);
        least[r] = job.memory[r] = (size_t)(mebibytes * 1048576);
    }
    free_ranks(&job, ranks);
    run_job(&job, ranks);
    for (int r = 0; r < RANKS; r++)
        if (ranks[r].status != 0)
            fail_msg("rank %d: %s", r, ranks[r].error->problems[0].message);
    free_ranks(&job, ranks);
}

/* ---- The same bits --------------------------------------------------------------------------- */

static bool gathers[RANKS]; /* of the job at hand, by rank */

static void look(struct ls_trainer *trainer, int rank)
{
    gathers[rank] = trainer->train->gathers;
}

static void check_limits(const struct net *net, int iter_size, const int *workers)
{
    struct lockstep_solver *solver = make_solver(net, iter_size);
    struct bytes alone = run_alone(solver, UPDATES);
    size_t least[RANKS];
    find_least(solver, workers, least);
    for (int turn = 0; turn < 4;
         turn++) { /* rank 0 is limited, then rank 1, then both; rank 0 with a static partition */
        struct job job = {.solver = solver,
                          .ranks = RANKS,
                          .updates = UPDATES,
                          .dynamic = turn < 3,
                          .prepare = look};
        memcpy(job.workers, workers, RANKS * sizeof *workers);
        for (int r = 0; r < RANKS; r++)
            job.memory[r] = turn % 3 == r || turn == 2 ? least[r] : 0;
        check_job(&job, alone, net->name);
        for (int r = 0; r < RANKS; r++) /* only that makes it worth trying */
            assert_int_equal(gathers[r], net->gathers && job.memory[r] == 0);
    }
    free(alone.data);
    lockstep_solver_free(solver);
}

static void ranks_with_memory_limits_of_their_own_give_same_bits(void **state)
{
    (void)state;
    static const int workers[][RANKS] = {{1, 1}, {1, 3}, {2, 1}};
    for (size_t n = 0; n < sizeof nets / sizeof *nets; n++) {
        check_limits(&nets[n], 1, workers[1]);
        for (size_t w = 0; w < sizeof workers / sizeof *workers && (w == 0 || nets[n].gathers); w++)
            check_limits(&nets[n], SEVERAL, workers[w]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_with_memory_limits_of_their_own_give_same_bits),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
