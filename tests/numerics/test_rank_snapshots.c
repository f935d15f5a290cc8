/* Snapshots of jobs: the same bytes for any number of ranks, and a resume on another number of
 * ranks continues with the same bits. Rank 0 alone reads and writes files; its failures are
 * failures of all ranks. Each rank holds a part of the optimizer's state.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "engine/copies.h"
#include "numerics/rank_nets.h"
#include "solver/checkpoint.h"
#include "solver/loop.h"
#include "solver/resume.h"
#include "solver/snapshots.h"
#include "solver/weights.h"

static const char *const solvers[] = {MOMENTUM, ADAM, MOMENTUM AVERAGE CAFFE, ADAM AVERAGE CAFFE};
enum { SOLVERS = sizeof solvers / sizeof *solvers };

static int setup(void **state)
{
    (void)state;
    write_data();
    return 0;
}

static struct bytes read_named(const char *prefix, const char *rest)
{
    char path[512];
    snprintf(path, sizeof path, "%s%s", prefix, rest);
    return read_bytes(path);
}

/* The files <prefix><rest> of two trainings are the same. */
static void check_file(const char *one, const char *other, const char *rest)
{
    struct bytes first = read_named(one, rest);
    check_same(first, read_named(other, rest), "%s%s against %s%s", other, rest, one, rest);
    free(first.data);
}

/* ---- A whole training ------------------------------------------------------------------------ */

static int run_all(struct rank *rank, struct ls_trainer *trainer)
{
    return ls_trainer_run(trainer, -1, rank->error);
}

/* Where only rank 0 can write; the caller frees both. */
static void set_prefixes(struct job *job, char *prefix, char *nowhere)
{
    job->prefix[0] = prefix;
    for (int r = 1; r < job->ranks; r++)
        job->prefix[r] = nowhere;
}

static void train_in(const struct lockstep_solver *solver, int ranks, const char *folder)
{
    struct job job = {.solver = solver,
                      .ranks = ranks,
                      .workers = {2, 1, 1},
                      .dynamic = ranks > 2,
                      .act = run_all};
    assert_int_equal(mkdir(ls_test_path(folder), 0755), 0);
    char *prefix = own_path("%s/net", folder), *nowhere = own_path("%s/none/net", folder);
    set_prefixes(&job, prefix, nowhere);
    run_well(&job);
    free(prefix);
    free(nowhere);
}

/* Snapshots now and then, of which two are kept, tests, and the best. */
static void whole_trainings_write_same_bytes_on_any_ranks(void **state)
{
    (void)state;
    for (int s = 0; s < SOLVERS; s++) {
        char fields[400], alone[40], folder[40];
        snprintf(fields, sizeof fields,
                 "%s snapshot: 1 snapshot_keep: 3 test_interval: 2 test_initialization: false "
                 "snapshot_best: 'accuracy'",
                 solvers[s]);
        struct lockstep_solver *solver = make_solver(fields);
        snprintf(alone, sizeof alone, "whole-%d-1", s);
        train_in(solver, 1, alone);
        for (int ranks = 2; ranks <= 3; ranks++) {
            snprintf(folder, sizeof folder, "whole-%d-%d", s, ranks);
            train_in(solver, ranks, folder);
            assert_int_equal(ls_test_count_files(ls_test_path(folder)),
                             ls_test_count_files(ls_test_path(alone)));
            char *one = own_path("%s/net", alone), *other = own_path("%s/net", folder);
            check_file(one, other, "_iter_4.safetensors");
            check_file(one, other, "_iter_5.safetensors");
            check_file(one, other, "_iter_6.safetensors");
            check_file(one, other, "_best.safetensors");
            if (strstr(fields, "BINARYPROTO") != NULL)
                check_file(one, other, "_iter_6.caffemodel");
            free(one);
            free(other);
        }
        lockstep_solver_free(solver);
    }
}

/* ---- Resuming -------------------------------------------------------------------------------- */

/* From where a leg of a training begins to where it ends. */
struct leg {
    const char *resume;  /* NULL: a fresh start; others than rank 0 see nothing of it */
    const char *weights; /* the same */
    int until;           /* iteration; a snapshot is written then */
};

static int run_leg(struct rank *rank, struct ls_trainer *trainer)
{
    const struct leg *leg = rank->job->user;
    const char *nothing = "/nowhere/at/all";
    if (leg->resume != NULL)
        LS_TRY(ls_trainer_resume(trainer, rank->rank == 0 ? leg->resume : nothing, rank->error));
    if (leg->weights != NULL)
        LS_TRY(ls_trainer_load_weights(trainer, rank->rank == 0 ? leg->weights : nothing, NULL,
                                       false, rank->error));
    while (trainer->iteration < leg->until)
        LS_TRY(ls_trainer_update(trainer, rank->error));
    return ls_snapshots_take(trainer, true, rank->error);
}

/* Runs a leg on so many ranks, with snapshots in the file <prefix>_iter_<N>. */
static void run_leg_on(const struct lockstep_solver *solver, int ranks, const struct leg *leg,
                       char *prefix)
{
    struct job job = {
        .solver = solver, .ranks = ranks, .workers = {1, 2, 1}, .act = run_leg, .user = leg};
    set_prefixes(&job, prefix, prefix);
    run_well(&job);
}

/* 3 ranks, then 1, then 2; "auto" finds what is there. */
static void resume_on_fewer_or_more_ranks_gives_same_bits(void **state)
{
    (void)state;
    for (int s = 0; s < SOLVERS; s++) {
        struct lockstep_solver *solver = make_solver(solvers[s]);
        char *straight = own_path("straight-%d", s), *legs = own_path("legs-%d", s);
        char *second = own_path("legs-%d_iter_2.safetensors", s);
        run_leg_on(solver, 1, &(struct leg){.until = 6}, straight);
        run_leg_on(solver, 3, &(struct leg){.until = 2}, legs);
        run_leg_on(solver, 1, &(struct leg){.resume = second, .until = 4}, legs);
        run_leg_on(solver, 2, &(struct leg){.resume = "auto", .until = 5}, legs);
        run_leg_on(solver, 3, &(struct leg){.resume = "auto", .until = 6}, legs);
        check_file(straight, legs, "_iter_6.safetensors");
        free(straight);
        free(legs);
        free(second);
        lockstep_solver_free(solver);
    }
}

/* "auto" without a snapshot is a fresh start on all ranks. */
static void auto_without_a_snapshot_is_a_fresh_start_on_all_ranks(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver(MOMENTUM);
    char *fresh = own_path("fresh"), *automatic = own_path("automatic");
    run_leg_on(solver, 1, &(struct leg){.until = 2}, fresh);
    run_leg_on(solver, 2, &(struct leg){.resume = "auto", .until = 2}, automatic);
    check_file(fresh, automatic, "_iter_2.safetensors");
    free(fresh);
    free(automatic);
    lockstep_solver_free(solver);
}

static void weights_to_start_from_give_same_bits_on_any_ranks(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver(ADAM AVERAGE CAFFE);
    char *first = own_path("first"), *one = own_path("from-one"), *three = own_path("from-three");
    run_leg_on(solver, 1, &(struct leg){.until = 3}, first);
    char *model = own_path("first_iter_3.caffemodel");
    run_leg_on(solver, 1, &(struct leg){.weights = model, .until = 3}, one);
    run_leg_on(solver, 3, &(struct leg){.weights = model, .until = 3}, three);
    check_file(one, three, "_iter_3.safetensors");
    free(first);
    free(one);
    free(three);
    free(model);
    lockstep_solver_free(solver);
}

/* ---- Failures -------------------------------------------------------------------------------- */

/* Runs a job that must fail on all ranks with one status and one message. */
static void check_failure(const struct job *job, int status, const char *message)
{
    struct rank ranks[RANKS_MAX];
    assert_true(job->together);
    run_job(job, ranks);
    for (int r = 0; r < job->ranks; r++) {
        assert_int_equal(ranks[r].status, status);
        assert_non_null(strstr(ranks[r].error->problems[0].message, message));
    }
    for (int r = 1; r < job->ranks; r++)
        assert_non_null(strstr(ranks[r].error->problems[0].message, "rank 0, host "));
    free_ranks(job, ranks);
}

static void snapshots_of_another_solver_are_refused_on_all_ranks(void **state)
{
    (void)state;
    char *first = own_path("adam"), *snapshot = own_path("adam_iter_1.safetensors");
    struct lockstep_solver *adam = make_solver(ADAM), *momentum = make_solver(MOMENTUM);
    run_leg_on(adam, 2, &(struct leg){.until = 1}, first);
    struct leg other = {.resume = snapshot, .until = 2}, none = {.resume = first, .until = 2};
    struct job job = {.solver = momentum,
                      .ranks = 3,
                      .workers = {1, 1, 1},
                      .act = run_leg,
                      .user = &other,
                      .together = true};
    check_failure(&job, LOCKSTEP_WEIGHTS, "the snapshot was made with another");
    job.user = &none;
    check_failure(&job, LOCKSTEP_WEIGHTS, "cannot open");
    struct leg foreign = {.weights = first, .until = 2};
    job.user = &foreign;
    check_failure(&job, LOCKSTEP_WEIGHTS, "cannot open");
    free(first);
    free(snapshot);
    lockstep_solver_free(adam);
    lockstep_solver_free(momentum);
}

static void limit_files(rlim_t bytes)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static int write_without_room(struct rank *rank, struct ls_trainer *trainer)
{
    LS_TRY(ls_trainer_update(trainer, rank->error));
    return ls_snapshots_take(trainer, true, rank->error);
}

/* Rank 0's disk is full: at once, while the other ranks send their parts, or at the end. */
static void a_full_disk_of_rank_0_fails_the_snapshot_on_all_ranks(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver(ADAM AVERAGE);
    char *prefix = own_path("full"), *good = own_path("good"), *there = own_path("there");
    struct leg leg = {.until = 1};
    run_leg_on(solver, 3, &leg, good);
    size_t size = read_named(good, "_iter_1.safetensors").size;
    struct job job = {.solver = solver,
                      .ranks = 3,
                      .workers = {1, 1, 1},
                      .prefix = {prefix, prefix, prefix},
                      .act = write_without_room,
                      .together = true};
    void (*before)(int) = signal(SIGXFSZ, SIG_IGN);
    const size_t limits[] = {1, size / 5, size / 2, size - size / 5, size - 1};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        limit_files((rlim_t)limits[i]);
        check_failure(&job, LOCKSTEP_RESOURCE, "cannot write");
    }
    limit_files(RLIM_INFINITY);
    signal(SIGXFSZ, before);
    run_leg_on(solver, 3, &leg, there);
    check_file(good, there, "_iter_1.safetensors");
    free(prefix);
    free(good);
    free(there);
    lockstep_solver_free(solver);
}

static int fail_and_go_on(struct rank *rank, struct ls_trainer *trainer)
{
    const char *path = rank->job->user;
    LS_TRY(ls_trainer_update(trainer, rank->error));
    if (ls_trainer_write(trainer, "/nowhere/at/all", rank->error) != LOCKSTEP_RESOURCE)
        return LOCKSTEP_INTERNAL;
    ls_error_clear(rank->error);
    LS_TRY(ls_trainer_update(trainer, rank->error));
    return ls_trainer_write(trainer, path, rank->error);
}

/* A snapshot that could not be written changes nothing. */
static void a_snapshot_that_could_not_be_written_changes_nothing(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver(MOMENTUM AVERAGE);
    char *alone = own_path("alone"), *path = own_path("went-on_iter_2.safetensors");
    char *prefix = own_path("went-on");
    struct job job = {
        .solver = solver, .ranks = 3, .workers = {1, 1, 1}, .act = fail_and_go_on, .user = path};
    run_well(&job);
    run_leg_on(solver, 1, &(struct leg){.until = 2}, alone);
    check_file(alone, prefix, "_iter_2.safetensors");
    free(alone);
    free(path);
    free(prefix);
    lockstep_solver_free(solver);
}

/* ---- Gradients ------------------------------------------------------------------------------- */

static int read_gradients(struct rank *rank, struct ls_trainer *trainer)
{
    for (int u = 0; u < 2; u++)
        LS_TRY(ls_trainer_update(trainer, rank->error));
    for (size_t i = 0; i < trainer->parameters->count; i++) {
        const struct ls_parameter *parameter = trainer->parameters->items[i];
        size_t bytes = (size_t)ls_shape_size(&parameter->shape) * sizeof(float);
        float *plain = malloc(bytes);
        if (plain == NULL)
            abort();
        int status = ls_copies_read_gradient(trainer->engine, (int)i, plain, rank->error);
        if (status == 0)
            put(rank, plain, bytes);
        free(plain);
        LS_TRY(status);
    }
    return 0;
}

/* Each rank gets the whole gradient, of which it has a part. */
static void every_rank_reads_the_whole_gradient(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver(MOMENTUM);
    struct job job = {.solver = solver, .ranks = 1, .workers = {2, 1, 1}, .act = read_gradients};
    struct rank alone;
    run_job(&job, &alone);
    assert_int_equal(alone.status, 0);
    for (job.ranks = 2; job.ranks <= 3; job.ranks++)
        check_job(&job, alone.bytes, "gradients");
    free(alone.bytes.data);
    free(alone.error);
    lockstep_solver_free(solver);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

/* Notes how many elements of history and averages this rank has, and how many one rank alone
 * would have; for parameters whose gradients are exact sums. */
static int count_state(struct rank *rank, struct ls_trainer *trainer)
{
    size_t here = 0, all = 0;
    for (size_t i = 0; i < trainer->parameters->count; i++) {
        const struct ls_parameter_state *slot = &trainer->store->slots[i];
        bool shared = slot->history[0] != NULL && !ls_store_has_factors(trainer->store, (int)i);
        here += shared ? slot->shard_end - slot->shard_begin : 0;
        all += shared ? slot->elements : 0;
    }
    put(rank, &here, sizeof here);
    put(rank, &all, sizeof all);
    return 0;
}

static void every_rank_holds_its_part_of_the_state(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver(ADAM AVERAGE);
    for (int ranks = 1; ranks <= 4; ranks++) {
        struct job job = {
            .solver = solver, .ranks = ranks, .workers = {1, 1, 1, 1}, .act = count_state};
        struct rank every[RANKS_MAX];
        size_t sum = 0, counts[2] = {0};
        run_job(&job, every);
        for (int r = 0; r < ranks; r++) {
            assert_int_equal(every[r].status, 0);
            memcpy(counts, every[r].bytes.data, sizeof counts);
            sum += counts[0];
            /* Parts begin with tiles. */
            assert_in_range(counts[0], 0, counts[1] / (size_t)ranks + LS_SUMS_TILE);
        }
        assert_true(counts[1] > 4 * LS_SUMS_TILE);
        assert_int_equal(sum, counts[1]);
        free_ranks(&job, every);
    }
    lockstep_solver_free(solver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_trainings_write_same_bytes_on_any_ranks),
        cmocka_unit_test(resume_on_fewer_or_more_ranks_gives_same_bits),
        cmocka_unit_test(auto_without_a_snapshot_is_a_fresh_start_on_all_ranks),
        cmocka_unit_test(weights_to_start_from_give_same_bits_on_any_ranks),
        cmocka_unit_test(snapshots_of_another_solver_are_refused_on_all_ranks),
        cmocka_unit_test(a_full_disk_of_rank_0_fails_the_snapshot_on_all_ranks),
        cmocka_unit_test(a_snapshot_that_could_not_be_written_changes_nothing),
        cmocka_unit_test(every_rank_reads_the_whole_gradient),
        cmocka_unit_test(every_rank_holds_its_part_of_the_state),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
