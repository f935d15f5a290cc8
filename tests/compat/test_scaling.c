/* Plans for several ranks through the public interface: from updates that are timed here, from
 * given seconds, and options that are refused. Speed does not matter.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "lockstep/lockstep.h"
#include "support/nets.h"
#include "support/support.h"

static const int ranks[] = {1, 2, 3, 12, 4096};
enum { ROWS = sizeof ranks / sizeof *ranks };

static struct lockstep_solver *load(void)
{
    struct lockstep_solver *solver;
    ls_test_write_text(ls_test_path("net.prototxt"), ls_test_net("scaling", NULL));
    ls_test_write_text(ls_test_path("solver.prototxt"),
                       "net: 'net.prototxt' base_lr: 0.001 momentum: 0.9 lr_policy: 'fixed' "
                       "micro_batch: 3 max_iter: 50 snapshot_prefix: 'shot'");
    assert_int_equal(lockstep_solver_load(ls_test_path("solver.prototxt"), NULL, 0, &solver, NULL),
                     0);
    return solver;
}

static struct lockstep_scaling_options options_of(double compute)
{
    struct lockstep_scaling_options options;
    lockstep_scaling_options_init(&options);
    options.ranks = ranks;
    options.count = ROWS;
    options.workers = 1;
    options.iterations = 2;
    options.compute = compute;
    return options;
}

static void check_rows(const struct lockstep_scaling *scaling)
{
    size_t count;
    const struct lockstep_scaling_row *rows = lockstep_scaling_rows(scaling, &count);
    assert_int_equal(count, ROWS);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(rows[i].ranks, ranks[i]);
        assert_true(rows[i].pass > 0 && rows[i].seconds >= rows[i].pass);
        assert_true(rows[i].efficiency > 0 && rows[i].efficiency <= 1.0001);
        assert_true(i == 0 || rows[i].pass <= rows[i - 1].pass);
        assert_true(i == 0 || rows[i].sent.sums > rows[i - 1].sent.sums);
        assert_true(rows[i].state <= rows[0].state && rows[i].state < rows[i].memory);
    }
    assert_true(rows[0].efficiency > 0.9999 && rows[0].small == 0);
    static const int64_t micro_batches[ROWS] = {4, 2, 2, 1, 1};
    static const int64_t idle[ROWS] = {0, 0, 0, 8, 4092}, wanted[ROWS] = {0, 0, 0, 1, 0};
    for (size_t i = 0; i < ROWS; i++) {
        assert_int_equal(rows[i].micro_batches, micro_batches[i]);
        assert_int_equal(rows[i].idle, idle[i]);
        assert_int_equal(rows[i].micro_batch, wanted[i]);
    }
}

static void plans_for_several_ranks_add_up(void **state)
{
    (void)state;
    struct lockstep_solver *solver = load();
    for (int given = 0; given < 2; given++) {
        struct lockstep_scaling *scaling;
        struct lockstep_scaling_options options = options_of(given ? 0.25 : 0);
        assert_int_equal(lockstep_plan_scaling(solver, &options, &scaling, NULL), 0);
        const struct lockstep_scaling_total *total = lockstep_scaling_total(scaling);
        assert_int_equal(total->iterations, given ? 0 : 2);
        assert_int_equal(total->micro_batches, 4);
        assert_int_equal(total->useful, 4);
        assert_int_equal(total->sync_points, 2);
        assert_true(total->fastest >= 1 && total->fastest <= 4 && total->fastest_seconds > 0);
        check_rows(scaling);
        size_t count;
        if (given)
            assert_float_equal(lockstep_scaling_rows(scaling, &count)[0].seconds, 0.25, 1e-9);
        lockstep_scaling_free(scaling);
    }
    lockstep_solver_free(solver);
}

static void options_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    struct lockstep_solver *solver = load();
    static const int wrong_ranks[] = {0};
    for (int i = 0; i < 7; i++) {
        struct lockstep_scaling_options options = options_of(0.25);
        struct lockstep_scaling *scaling = (void *)&options;
        if (i == 0)
            options.struct_size--;
        if (i == 1)
            options.ranks = wrong_ranks;
        if (i == 2)
            options.workers = 5000;
        if (i == 3)
            options.bandwidth = 0;
        if (i == 4)
            options.latency = -1;
        if (i == 5)
            options.compute = -1;
        if (i == 6)
            options.isa = "z80";
        assert_int_equal(lockstep_plan_scaling(solver, &options, &scaling, NULL), LOCKSTEP_USAGE);
        assert_null(scaling);
    }
    lockstep_scaling_free(NULL);
    lockstep_solver_free(solver);
}

/* Without a job nothing is sent. */
static void without_a_job_nothing_is_sent(void **state)
{
    (void)state;
    struct lockstep_job_figures figures;
    memset(&figures, 1, sizeof figures);
    lockstep_job_figures(NULL, &figures);
    assert_int_equal(figures.sent.sums + figures.sent.small, 0);
    assert_true(figures.transfer == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(plans_for_several_ranks_add_up),
                                       cmocka_unit_test(options_that_make_no_sense_are_refused),
                                       cmocka_unit_test(without_a_job_nothing_is_sent)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
