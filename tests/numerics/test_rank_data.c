/* Ranks with different data. Any record that differs is found before an update with it is in a
 * snapshot. Data that one rank cannot read end the job on all ranks, with a snapshot. What any rank
 * finds odd in its part of the data is said.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <unistd.h>

#include "numerics/rank_nets.h"
#include "solver/loop.h"
#include "support/npy_files.h"

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

static void collect_warning(void *user, const struct lockstep_event *event)
{
    char *said = user;
    if (event->kind == LOCKSTEP_EVENT_WARNING && strstr(event->text, "outside of 0 to 1") != NULL)
        strncat(said, event->text, 1023 - strlen(said));
}

static int run_warned(struct rank *rank, struct ls_trainer *trainer)
{
    char said[1024] = "";
    trainer->callbacks = (struct lockstep_callbacks){.user = said, .event = collect_warning};
    rank->status = ls_trainer_run(trainer, -1, rank->error);
    put(rank, said, sizeof said);
    return rank->status;
}

/* Record 6 of each batch of 7 is the last rank's. */
static void odd_numbers_are_named_whichever_rank_reads_them(void **state)
{
    (void)state;
    static const char data[] = "layer { name: 'd' type: 'Data' top: 't' top: 'x' include { phase: "
                               "%s } data_param { backend: NPY source: '%s' source: '%s' "
                               "batch_size: 7 } }";
    float x[14 * 4], t[14 * 4];
    for (int i = 0; i < 14 * 4; i++)
        t[i] = x[i] = 0.01F * (float)i;
    t[6 * 4 + 1] = 1.5F;
    write_npy(ls_test_path("t.npy"), "<f4", "(14, 4)", t, sizeof t);
    write_npy(ls_test_path("x.npy"), "<f4", "(14, 4)", x, sizeof x);
    char train[800], test[800];
    snprintf(train, sizeof train, data, "TRAIN", ls_test_path("t.npy"), ls_test_path("x.npy"));
    snprintf(test, sizeof test, data, "TEST", ls_test_path("t.npy"), ls_test_path("x.npy"));
    struct lockstep_solver *solver = load_solver(
        "base_lr: 0.01 lr_policy: 'fixed' max_iter: 2 test_interval: 2\n"
        "net_param { %s %s layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'y' "
        "inner_product_param { num_output: 4 } } layer { name: 'loss' "
        "type: 'SigmoidCrossEntropyLoss' bottom: 'y' bottom: 't' top: 'loss' } }",
        train, test);
    char *prefix = own_path("odd");
    for (int count = 1; count < 4; count++) {
        struct job job = {.solver = solver,
                          .ranks = count,
                          .workers = {1, 1, 1},
                          .act = run_warned,
                          .prefix = {prefix, prefix, prefix}};
        struct rank ranks[RANKS_MAX];
        run_job(&job, ranks);
        const char *said = (const char *)ranks[0].bytes.data;
        assert_int_equal(ranks[0].status, 0);
        assert_non_null(strstr(said, "train net, "));
        assert_non_null(strstr(said, "test net, "));
        assert_non_null(strstr(strstr(said, "record 6: ") + 1, "record 6: its target 1.5"));
        free_ranks(&job, ranks);
    }
    free(prefix);
    lockstep_solver_free(solver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_that_differs_between_ranks_is_found),
        cmocka_unit_test(data_at_another_path_are_the_same_data),
        cmocka_unit_test(a_file_cut_off_on_one_rank_ends_the_job_with_a_snapshot),
        cmocka_unit_test(odd_numbers_are_named_whichever_rank_reads_them),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
