/* The bytes that ranks send in an update, counted, against a plan's forecast, and against the
 * limit: at most 3 (R - 1) / R of the bytes of the parameters that are reduced as sums, besides
 * factors.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "trainings/ranks.h"

enum { FIRST = 2, LAST = 4 }; /* updates that are counted */

#define NORM(fields)                                                                               \
    "layer { name: 'n' type: 'BatchNorm' bottom: 'c' top: 'c'\n"                                   \
    "  batch_norm_param { scale_bias: true " fields " } }\n"

static const struct net {
    const char *name;
    const char *norm; /* a layer */
    const char *loss; /* fields of the loss */
    const char *settings;
} nets[] = {{"factors", "", "", "micro_batch: 2"},
            {"one micro-batch a rank at most", "", "", "micro_batch: 4"},
            {"sync points", NORM(""), "", "micro_batch: 2"},
            {"groups within micro-batches", NORM("group: 2"), "", "micro_batch: 2"},
            {"several batches", NORM(""), "", "micro_batch: 3 iter_size: 2"},
            {"labels that are counted", "", "ignore_label: 3", "micro_batch: 2"},
            {"sums only", "", "", "micro_batch: 2 iter_size: 80"}};

static int setup(void **state)
{
    (void)state;
    /* An epoch ends before update FIRST: data are compared only in the first epoch. */
    write_idx_pair(ls_test_path("images"), ls_test_path("labels"), 24, 12);
    return 0;
}

/* Bytes that all ranks together have sent in so many updates, including those before the first. */
static void count(const struct lockstep_solver *solver, int ranks, int updates,
                  uint64_t sent[LS_TRAFFICS])
{
    struct job job = {.solver = solver, .ranks = ranks, .updates = updates};
    struct rank rank[RANKS_MAX];
    for (int r = 0; r < ranks; r++)
        job.workers[r] = 1;
    run_job(&job, rank);
    memset(sent, 0, LS_TRAFFICS * sizeof *sent);
    for (int r = 0; r < ranks; r++) {
        if (rank[r].status != 0)
            fail_msg("%d ranks: %s", ranks, rank[r].error->problems[0].message);
        for (int t = 0; t < LS_TRAFFICS; t++)
            sent[t] += rank[r].sent[t];
    }
    free_ranks(&job, rank);
}

/* A plan says the mean of ranks, rounded up. */
static void check(const char *what, const char *kind, int ranks, uint64_t counted, uint64_t planned)
{
    uint64_t mean = (counted + (uint64_t)ranks - 1) / (uint64_t)ranks;
    if (mean != planned)
        fail_msg("%s, %d ranks: %s of %llu bytes were planned, %llu were sent", what, ranks, kind,
                 (unsigned long long)planned, (unsigned long long)mean);
}

static void check_ranks(const struct net *net, const struct lockstep_solver *solver,
                        const struct lockstep_scaling_total *total,
                        const struct lockstep_scaling_row *row)
{
    uint64_t first[LS_TRAFFICS], last[LS_TRAFFICS];
    count(solver, row->ranks, FIRST, first);
    count(solver, row->ranks, LAST, last);
    for (int t = 0; t < LS_TRAFFICS; t++) {
        assert_int_equal((last[t] - first[t]) % (LAST - FIRST), 0);
        last[t] = (last[t] - first[t]) / (LAST - FIRST);
    }
    check(net->name, "sums", row->ranks, last[LS_TRAFFIC_SUMS], row->sent.sums);
    check(net->name, "weights", row->ranks, last[LS_TRAFFIC_WEIGHTS], row->sent.weights);
    check(net->name, "factors", row->ranks, last[LS_TRAFFIC_FACTORS], row->sent.factors);
    check(net->name, "small exchanges", row->ranks, last[LS_TRAFFIC_SMALL], row->sent.small);
    assert_true(last[LS_TRAFFIC_SUMS] + last[LS_TRAFFIC_WEIGHTS] <=
                3 * (uint64_t)(row->ranks - 1) * total->summed);
}

static void bytes_sent_between_ranks_are_those_planned(void **state)
{
    (void)state;
    static const int ranks[] = {2, 3, 4, 6};
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        struct lockstep_scaling_options options;
        struct lockstep_scaling *scaling = NULL;
        struct lockstep_error *error = lockstep_error_new();
        struct lockstep_solver *solver = load_solver(
            "base_lr: 0.01 momentum: 0.9 lr_policy: 'fixed' max_iter: 40 random_seed: 3 %s\n"
            "net_param { %s }\n",
            nets[i].settings,
            ls_test_net("rank_traffic",
                        LS_TEST_VALUES({"norm", nets[i].norm}, {"loss", nets[i].loss})));
        lockstep_scaling_options_init(&options);
        options.ranks = ranks;
        options.count = sizeof ranks / sizeof *ranks;
        options.workers = 1;
        options.compute = 0.1;
        if (lockstep_plan_scaling(solver, &options, &scaling, error) != 0)
            fail_msg("%s", lockstep_error_text(error));
        size_t count;
        const struct lockstep_scaling_row *rows = lockstep_scaling_rows(scaling, &count);
        for (size_t r = 0; r < count; r++)
            check_ranks(&nets[i], solver, lockstep_scaling_total(scaling), &rows[r]);
        assert_true((rows[0].sent.factors > 0) == (strcmp(nets[i].name, "sums only") != 0));
        lockstep_scaling_free(scaling);
        lockstep_solver_free(solver);
        lockstep_error_free(error);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_sent_between_ranks_are_those_planned)};
    return cmocka_run_group_tests(tests, setup, NULL);
}
