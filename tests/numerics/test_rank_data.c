/* Ranks with different data. Any record that differs is found before an update with it is in a
 * snapshot. Data that one rank cannot read end the job on all ranks, with a snapshot.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <unistd.h>

#include "numerics/rank_nets.h"
#include "solver/loop.h"

enum { RECORDS = 900, SIDE = 12 };

/* A copy of the pictures in which one pixel of a record is another; -1: none. */
static const char *write_copy(int record)
{
    const char *path = ls_test_path("copy");
    char command[1200];
    snprintf(command, sizeof command, "cp '%s' '%s'", ls_test_path("images"), path);
    assert_int_equal(system(command), 0);
    if (record < 0)
        return path;
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, 16 + record * SIDE * SIDE + 5, SEEK_SET), 0);
    int pixel = fgetc(file);
    assert_int_equal(fseek(file, 16 + record * SIDE * SIDE + 5, SEEK_SET), 0);
    fputc(pixel ^ 1, file);
    fclose(file);
    return path;
}

static int setup(void **state)
{
    (void)state;
    write_data();
    write_idx_pair(ls_test_path("images"), ls_test_path("labels"), RECORDS, SIDE);
    return 0;
}

/* Trains to the end, with a snapshot there. */
static int run_to_end(struct rank *rank, struct ls_trainer *trainer)
{
    const char *cut = rank->job->user;
    if (cut != NULL && rank->rank == 1)
        assert_int_equal(truncate(cut, 2000), 0);
    rank->status = ls_trainer_run(trainer, -1, rank->error);
    put(rank, &trainer->snapshot_at, sizeof trainer->snapshot_at);
    return rank->status;
}

static void a_record_that_differs_between_ranks_is_found(void **state)
{
    (void)state;
    static const int records[] = {0, 7, 41, 500};
    int at_start = 0, in_training = 0;
    for (int k = 0; k < 4; k++) {
        struct lockstep_solver *solver = make_solver(MOMENTUM);
        struct lockstep_solver *other = make_solver_of(write_copy(records[k]), MOMENTUM);
        char *prefix = own_path("mixed%d", k);
        struct job job = {.solver = solver,
                          .ranks = 2,
                          .workers = {1, 2},
                          .dynamic = k % 2 == 1,
                          .act = run_to_end,
                          .prefix = {prefix, prefix},
                          .other = {NULL, other}};
        struct rank ranks[RANKS_MAX];
        run_job(&job, ranks);
        bool found = false;
        for (int r = 0; r < 2; r++) {
            const char *message = ranks[r].error->problems[0].message;
            found = found || ranks[r].status == LOCKSTEP_DIFFERENT;
            at_start += strstr(message, "other data than on rank 0") != NULL;
            if (strstr(message, "has trained on it") == NULL)
                continue;
            char name[32];
            snprintf(name, sizeof name, "record %d:", records[k]);
            assert_non_null(strstr(message, name));
            in_training++;
        }
        /* 72 samples are trained on: a record behind them is found only if it is sampled */
        assert_true(found || records[k] >= 72);
        free_ranks(&job, ranks);
        free(prefix);
        lockstep_solver_free(solver);
        lockstep_solver_free(other);
    }
    assert_true(at_start > 0);
    assert_true(in_training > 0);
}

/* Data at another place are the same data. */
static void data_at_another_path_are_the_same_data(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver(MOMENTUM);
    struct lockstep_solver *other = make_solver_of(write_copy(-1), MOMENTUM);
    struct bytes expected = run_alone(solver, 3);
    struct job job = {
        .solver = solver, .ranks = 2, .workers = {2, 1}, .updates = 3, .other = {NULL, other}};
    check_job(&job, expected, "other paths");
    free(expected.data);
    lockstep_solver_free(solver);
    lockstep_solver_free(other);
}

static void a_file_cut_off_on_one_rank_ends_the_job_with_a_snapshot(void **state)
{
    (void)state;
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        struct lockstep_solver *solver = make_solver(MOMENTUM);
        struct lockstep_solver *other = make_solver_of(write_copy(-1), MOMENTUM);
        char *prefix = own_path("cut%d", dynamic);
        struct job job = {.solver = solver,
                          .ranks = 3,
                          .workers = {1, 1, 2},
                          .dynamic = dynamic == 1,
                          .act = run_to_end,
                          .user = ls_test_path("copy"),
                          .together = true,
                          .prefix = {prefix, prefix, prefix},
                          .other = {NULL, other}};
        struct rank ranks[RANKS_MAX];
        run_job(&job, ranks);
        for (int r = 0; r < 3; r++) {
            int64_t at;
            assert_int_equal(ranks[r].status, LOCKSTEP_DATA);
            assert_non_null(strstr(ranks[r].error->problems[0].message, "has become shorter"));
            memcpy(&at, ranks[r].bytes.data, sizeof at);
            assert_int_equal(at, 1); /* the first update has records that are still there */
        }
        free_ranks(&job, ranks);
        free(prefix);
        lockstep_solver_free(solver);
        lockstep_solver_free(other);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_that_differs_between_ranks_is_found),
        cmocka_unit_test(data_at_another_path_are_the_same_data),
        cmocka_unit_test(a_file_cut_off_on_one_rank_ends_the_job_with_a_snapshot),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
