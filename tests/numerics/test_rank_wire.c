/* Sums that do not fit in the 48 bits that they have between ranks are sent again with 64 bits,
 * and the training has the bits of a single process.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/exponents.h"
#include "trainings/ranks.h"

enum { SAMPLES = 40, MORE = 17 /* bits; contributions still fit, sums on their way do not */ };

static struct lockstep_solver *make_solver(void)
{
    return load_solver(
        "base_lr: 0.02 momentum: 0.9 lr_policy: 'fixed' max_iter: 40 random_seed: 3\n"
        "micro_batch: 4\n"
        "net_param { %s }\n",
        ls_test_net("small_convolution", NULL));
}

static int setup(void **state)
{
    (void)state;
    write_idx_pair(ls_test_path("images"), ls_test_path("labels"), SAMPLES, 16);
    return 0;
}

/* One ordinary update, one whose exponents make sums large, one more. */
static int train_with_large_sums(struct rank *rank, struct ls_trainer *trainer)
{
    struct ls_sums *sums = trainer->store->sums;
    LS_TRY(ls_trainer_update(trainer, rank->error));
    for (int i = 0; i < (int)trainer->parameters->count; i++)
        ls_sums_set_exponent(sums, i, ls_sums_exponent(sums, i) + MORE);
    uint64_t before =
        rank->transport != NULL ? atomic_load(&trainer->comm->sent[LS_TRAFFIC_SUMS]) : 0;
    LS_TRY(ls_trainer_update(trainer, rank->error));
    uint64_t now = rank->transport != NULL ? atomic_load(&trainer->comm->sent[LS_TRAFFIC_SUMS]) : 0;
    rank->sent_again = rank->transport == NULL || now - before > 2 * before;
    LS_TRY(ls_trainer_update(trainer, rank->error));
    return put_weights(rank, trainer);
}

static void sums_that_do_not_fit_are_sent_again_with_same_bits(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver();
    struct job job = {
        .solver = solver, .ranks = 1, .workers = {1, 2, 1}, .act = train_with_large_sums};
    struct rank alone;
    run_job(&job, &alone);
    assert_int_equal(alone.status, 0);
    for (job.ranks = 2; job.ranks <= 3; job.ranks++) {
        struct rank ranks[RANKS_MAX];
        run_job(&job, ranks);
        for (int r = 0; r < job.ranks; r++) {
            if (ranks[r].status != 0)
                fail_msg("rank %d: %s", r, ranks[r].error->problems[0].message);
            assert_true(ranks[r].sent_again);
            assert_true(same_bytes(ranks[r].bytes, alone.bytes));
        }
        free_ranks(&job, ranks);
    }
    job.ranks = 1;
    free_ranks(&job, &alone);
    lockstep_solver_free(solver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_that_do_not_fit_are_sent_again_with_same_bits)};
    return cmocka_run_group_tests(tests, setup, NULL);
}
