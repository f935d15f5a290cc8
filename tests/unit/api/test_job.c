/* Jobs of several ranks through the public interface; the ranks are threads of this process.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "api/job.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/support.h"
#include "transport/comm_job.h"
#include "transport/local.h"

enum { RANKS = 3 };

/* ---- Shares of cores ------------------------------------------------------------------------- */

static struct ls_card card(const char *host, uint64_t space, uint64_t cores)
{
    struct ls_card card = {.identity.process.space = space, .cores = {cores}};
    snprintf(card.identity.host, sizeof card.identity.host, "%s", host);
    return card;
}

static void cores_are_shared_by_the_ranks_of_a_machine(void **state)
{
    (void)state;
    /* Four share eight cores, and one has a machine for itself. */
    struct ls_card many[5];
    for (int r = 0; r < 4; r++)
        many[r] = card("a", 1, 0xff);
    many[4] = card("b", 2, 0xff);
    assert_int_equal(ls_job_share(many, 5, 0, 8), 2);
    assert_int_equal(ls_job_share(many, 5, 3, 8), 2);
    assert_int_equal(ls_job_share(many, 5, 4, 8), 8);
    assert_int_equal(ls_job_share(many, 3, 0, 8), 2); /* three: rounded down */
    assert_int_equal(ls_job_share(many, 5, 0, 4), 1); /* a quota of four cores */
    /* More ranks than cores. */
    for (int r = 0; r < 5; r++)
        many[r] = card("a", 1, 0x3);
    assert_int_equal(ls_job_share(many, 5, 2, 2), 1);
    /* Bound to cores of their own, or in part. */
    struct ls_card bound[] = {card("a", 1, 0x0f), card("a", 1, 0xf0)};
    assert_int_equal(ls_job_share(bound, 2, 0, 4), 4);
    struct ls_card partly[] = {card("a", 1, 0xff), card("a", 1, 0xf0)};
    assert_int_equal(ls_job_share(partly, 2, 0, 8), 6);
    assert_int_equal(ls_job_share(partly, 2, 1, 4), 2);
    /* Containers of one machine with different host names, and machines that do not identify
     * themselves. */
    struct ls_card names[] = {card("a", 1, 0xf), card("b", 1, 0xf), card("c", 0, 0xf),
                              card("d", 0, 0xf)};
    assert_int_equal(ls_job_share(names, 4, 0, 4), 2);
    assert_int_equal(ls_job_share(names, 4, 2, 4), 4);
}

/* ---- Jobs ------------------------------------------------------------------------------------ */

static const char net[] =
    "layer { name: 'd' type: 'Data' top: 'data' top: 'label'\n"
    "  data_param { backend: SYNTHETIC synthetic_param { count: %d height: 8 width: 8 }\n"
    "    batch_size: 12 } }\n"
    "layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip'\n"
    "  inner_product_param { num_output: 10 weight_filler { type: 'xavier' } } }\n"
    "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' }\n";

static struct lockstep_solver *load(const char *name, int count, const char *set)
{
    char text[2048], path[512];
    struct lockstep_solver *solver;
    struct lockstep_error *error = lockstep_error_new();
    snprintf(text, sizeof text, net, count);
    snprintf(path, sizeof path, "%s.prototxt", ls_test_path(name));
    ls_test_write_text(path, text);
    snprintf(text, sizeof text,
             "net: '%s' base_lr: 0.01 lr_policy: 'fixed' max_iter: 4 snapshot_prefix: '%s'", path,
             ls_test_path("jobs"));
    snprintf(path, sizeof path, "%s_solver.prototxt", ls_test_path(name));
    ls_test_write_text(path, text);
    if (lockstep_solver_load(path, &set, set != NULL, &solver, error) != 0)
        fail_msg("%s", lockstep_error_text(error));
    lockstep_error_free(error);
    return solver;
}

struct rank {
    pthread_t thread;
    struct ls_transport *transport;
    const struct lockstep_solver *solver;
    int64_t iterations;
    int snapshot_required;
    double audit;
    const char *resume;
    int status, closed, size, events;
    char text[1024];
};

static void count_event(void *user, const struct lockstep_event *event)
{
    struct rank *rank = user;
    rank->events += event->kind == LOCKSTEP_EVENT_SNAPSHOT;
}

static int train(struct rank *rank, struct lockstep_job *job, struct lockstep_error *error)
{
    struct lockstep_train_options options;
    struct lockstep_trainer *trainer;
    lockstep_train_options_init(&options);
    options.overwrite = 1;
    options.snapshot_required = rank->snapshot_required;
    options.audit = rank->audit;
    options.resume = rank->resume;
    options.job = job;
    options.workers = 1 + lockstep_job_rank(job);
    options.callbacks = (struct lockstep_callbacks){.user = rank, .event = count_event};
    int status = lockstep_trainer_create(rank->solver, &options, &trainer, error);
    if (status == 0)
        status = lockstep_trainer_run(trainer, rank->iterations, error);
    lockstep_trainer_free(trainer);
    return status;
}

static void *run_rank(void *argument)
{
    struct rank *rank = argument;
    struct lockstep_job_options options;
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_job *job;
    lockstep_job_options_init(&options);
    options.timeout = 60;
    rank->status = ls_job_open(rank->transport, &options, &job, NULL);
    rank->size = lockstep_job_size(job);
    if (rank->status == 0) {
        rank->status = train(rank, job, error);
        snprintf(rank->text, sizeof rank->text, "%s", lockstep_error_text(error));
        rank->closed = lockstep_job_close(job, rank->status, error);
    }
    lockstep_error_free(error);
    return NULL;
}

static void run_all(struct rank *ranks)
{
    struct ls_transport *transports[RANKS];
    assert_int_equal(ls_local_transports(RANKS, transports, NULL), 0);
    for (int r = 0; r < RANKS; r++) {
        ranks[r].transport = transports[r];
        assert_int_equal(pthread_create(&ranks[r].thread, NULL, run_rank, &ranks[r]), 0);
    }
    for (int r = 0; r < RANKS; r++)
        pthread_join(ranks[r].thread, NULL);
}

static void expect_state(const char *text)
{
    size_t size;
    char *file = ls_test_read(ls_test_path("status.json"), &size);
    if (strstr(file, text) == NULL)
        fail_msg("'%s' is not in '%s'", text, file);
    free(file);
}

static void ranks_train_through_the_public_interface(void **state)
{
    (void)state;
    struct lockstep_solver *solver = load("net", 60, NULL);
    struct rank ranks[RANKS];
    for (int r = 0; r < RANKS; r++)
        ranks[r] = (struct rank){.solver = solver, .iterations = -1};
    run_all(ranks);
    for (int r = 0; r < RANKS; r++) {
        assert_string_equal(ranks[r].text, "");
        assert_int_equal(ranks[r].closed, 0);
        assert_int_equal(ranks[r].size, RANKS);
        assert_int_equal(ranks[r].events, r == 0);
    }
    expect_state("\"status\": \"finished\", \"code\": 0, \"rank\": 0");
    expect_state("\"iteration\": 4");
    lockstep_solver_free(solver);
}

/* Every rank learns what differs, and where. */
static void expect_difference(struct rank *ranks, const char *what)
{
    run_all(ranks);
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(ranks[r].status, LOCKSTEP_DIFFERENT);
        assert_int_equal(ranks[r].closed, LOCKSTEP_DIFFERENT);
        if (strstr(ranks[r].text, what) == NULL)
            fail_msg("'%s' is not in '%s'", what, ranks[r].text);
        assert_true(r == 2 || strstr(ranks[r].text, "(rank 2, host localhost)") != NULL);
    }
    expect_state("\"status\": \"failed\", \"code\": 8");
}

static void ranks_with_other_definitions_are_found(void **state)
{
    (void)state;
    struct lockstep_solver *solver = load("net", 60, NULL);
    struct lockstep_solver *seed = load("net", 60, "random_seed=7");
    struct lockstep_solver *other = load("wider", 90, NULL);
    struct rank all[RANKS], ranks[RANKS];
    for (int r = 0; r < RANKS; r++)
        all[r] = (struct rank){.solver = solver, .iterations = -1};
    memcpy(ranks, all, sizeof ranks);
    ranks[2].solver = seed;
    expect_difference(ranks, "other definition than on rank 0 (localhost): here random_seed 7");
    memcpy(ranks, all, sizeof ranks);
    ranks[2].solver = other;
    expect_difference(ranks, "other data than on rank 0 (localhost): here 'source 1: records 90', "
                             "there 'source 1: records 60'");
    memcpy(ranks, all, sizeof ranks);
    ranks[2].iterations = 3;
    expect_difference(ranks, "trains until iteration 3, rank 0 until 4");
    lockstep_solver_free(solver);
    lockstep_solver_free(seed);
    lockstep_solver_free(other);
}

/* Every setting that decides the course of a training: rates and their parameters, the length,
 * extra computations, snapshots, tests. */
static const char *const settings[] = {
    "base_lr=0.02",
    "lr_policy=cosine",
    "gamma=0.5",
    "power=0.75",
    "stepsize=2",
    "stepvalue=3",
    "max_iter=5",
    "warmup_iter=2",
    "warmup_start=0.5",
    "momentum=0.5",
    "momentum2=0.99",
    "rms_decay=0.9",
    "delta=1e-6",
    "weight_decay=0.001",
    "regularization_type=L1",
    "clip_gradients=1",
    "iter_size=2",
    "random_seed=7",
    "type=Nesterov",
    "micro_batch=3",
    "average_loss=2",
    "display=1",
    "snapshot=2",
    "snapshot_epoch=1",
    "snapshot_keep=1",
    "snapshot_after_train=false",
    "snapshot_format=BINARYPROTO",
    "weight_average.decay=0.9",
};

/* A rank with another value of a setting is found before the first update, by the field's name. */
static void any_setting_that_differs_is_found_by_name(void **state)
{
    (void)state;
    struct lockstep_solver *solver = load("net", 60, NULL);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        struct lockstep_solver *other = load("net", 60, settings[i]);
        struct rank ranks[RANKS];
        char field[120];
        for (int r = 0; r < RANKS; r++)
            ranks[r] = (struct rank){.solver = r == 2 ? other : solver, .iterations = -1};
        snprintf(field, sizeof field, "%.*s", (int)strcspn(settings[i], "=."), settings[i]);
        expect_difference(ranks, "other definition than on rank 0 (localhost): here ");
        expect_difference(ranks, field);
        for (int r = 0; r < RANKS; r++)
            assert_int_equal(ranks[r].events, 0);
        lockstep_solver_free(other);
    }
    lockstep_solver_free(solver);
}

/* Options that decide what ranks do together. */
static void options_that_differ_are_found(void **state)
{
    (void)state;
    struct lockstep_solver *solver = load("net", 60, NULL);
    struct rank all[RANKS], ranks[RANKS];
    for (int r = 0; r < RANKS; r++)
        all[r] = (struct rank){.solver = solver, .iterations = -1};
    memcpy(ranks, all, sizeof ranks);
    ranks[2].snapshot_required = 1;
    expect_difference(ranks, "other options than on rank 0 (localhost): here 'snapshots that must "
                             "be written: all (--snapshot-required)'");
    memcpy(ranks, all, sizeof ranks);
    ranks[2].audit = 0.5;
    expect_difference(ranks, "here 'audited: 0.5 of the micro-batches', there 'audited: 0 ");
    for (int r = 0; r < RANKS; r++)
        ranks[r].audit = 0.25;
    ranks[2].audit += 1e-9; /* other micro-batches, though few */
    expect_difference(ranks, "here 'audited: 0.250000001");
    memcpy(ranks, all, sizeof ranks);
    ranks[2].resume = "auto";
    expect_difference(ranks, "here 'start: from a snapshot (--resume)', there 'start: as the ");
    lockstep_solver_free(solver);
}

/* A rank of another version says only what every version says first. */
static void *greet_from_the_future(void *argument)
{
    struct rank *rank = argument;
    struct ls_comm_options options = {.timeout = 60};
    struct ls_error error = {0};
    struct ls_comm *comm;
    const char mine[128] = "99.0";
    char all[2][128];
    rank->status = ls_comm_create(rank->transport, &options, &comm, &error);
    if (rank->status == 0)
        rank->status = ls_comm_all_gather(comm, mine, sizeof mine, all, &error);
    if (rank->status == 0)
        rank->status = ls_comm_agree(comm, LOCKSTEP_DIFFERENT, &error);
    ls_comm_end(comm);
    return NULL;
}

static void ranks_of_other_versions_are_refused(void **state)
{
    (void)state;
    struct ls_transport *transports[2];
    struct lockstep_job_options options;
    struct ls_error error = {0};
    struct lockstep_job *job;
    assert_int_equal(ls_local_transports(2, transports, NULL), 0);
    struct rank future = {.transport = transports[1]};
    assert_int_equal(pthread_create(&future.thread, NULL, greet_from_the_future, &future), 0);
    lockstep_job_options_init(&options);
    assert_int_equal(ls_job_open(transports[0], &options, &job, &error), LOCKSTEP_DIFFERENT);
    assert_null(job);
    assert_non_null(strstr(error.problems[0].message, "rank 1 () runs Lockstep 99.0, rank 0"));
    pthread_join(future.thread, NULL);
    assert_int_equal(future.status, LOCKSTEP_DIFFERENT);
}

/* ---- Without a job --------------------------------------------------------------------------- */

/* One process says how its training stands, too, also after a run that failed. */
static void a_process_alone_says_how_it_stands(void **state)
{
    (void)state;
    struct lockstep_train_options options;
    struct lockstep_trainer *trainer;
    ls_test_write_text(ls_test_path("status.json"), "{\"status\": \"failed\"}");
    lockstep_train_options_init(&options);
    options.overwrite = 1;
    options.status_file = ""; /* beside the snapshots */
    struct lockstep_solver *solver = load("alone", 60, NULL);
    assert_int_equal(lockstep_trainer_create(solver, &options, &trainer, NULL), 0);
    assert_int_equal(lockstep_trainer_run(trainer, 3, NULL), 0);
    expect_state("\"status\": \"finished\", \"code\": 0, \"rank\": 0");
    expect_state("\"iteration\": 3, ");
    expect_state("\"ranks\": 1, ");
    lockstep_trainer_free(trainer);
    lockstep_solver_free(solver);
}

static void hear(void *user, const struct lockstep_event *event)
{
    if (event->kind == LOCKSTEP_EVENT_WARNING && strstr(event->text, "status.json") != NULL)
        ++*(int *)user;
}

static void a_state_that_cannot_be_written_is_warned_of(void **state)
{
    (void)state;
    int warnings = 0;
    struct lockstep_train_options options;
    struct lockstep_trainer *trainer;
    char *path = strdup(ls_test_path("status.json"));
    remove(path);
    assert_int_equal(mkdir(path, 0777), 0);
    lockstep_train_options_init(&options);
    options.overwrite = 1;
    options.status_file = "";
    options.callbacks.event = hear;
    options.callbacks.user = &warnings;
    struct lockstep_solver *solver = load("alone", 60, NULL);
    assert_int_equal(lockstep_trainer_create(solver, &options, &trainer, NULL), 0);
    assert_int_equal(lockstep_trainer_run(trainer, 3, NULL), 0);
    assert_int_equal(warnings, 1);
    lockstep_trainer_free(trainer);
    lockstep_solver_free(solver);
    assert_int_equal(rmdir(path), 0);
    free(path);
}

static void clear_launchers(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE",
                                        "OMPI_COMM_WORLD_RANK",
                                        "PMI_SIZE",
                                        "PMI_RANK",
                                        "PMIX_RANK",
                                        "SLURM_STEP_NUM_TASKS",
                                        "SLURM_STEP_ID",
                                        "SLURM_PROCID",
                                        "SLURM_NTASKS",
                                        "MPI_LOCALNRANKS",
                                        "HOROVOD_SIZE",
                                        "HOROVOD_RANK",
                                        "WORLD_SIZE",
                                        "RANK",
                                        "LOCAL_RANK",
                                        "LOCKSTEP_MPI",
                                        "PMI_FD",
                                        "PALS_RANKID"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
}

/* Sets "NAME=value NAME=value". */
static void set_launchers(const char *variables)
{
    char text[256], *rest = NULL;
    clear_launchers();
    snprintf(text, sizeof text, "%s", variables);
    for (char *word = strtok_r(text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        char *equals = strchr(word, '=');
        *equals = '\0';
        setenv(word, equals + 1, 1);
    }
}

static int open_in(const char *variables)
{
    struct lockstep_job_options options;
    struct lockstep_job *job;
    lockstep_job_options_init(&options);
    set_launchers(variables);
    int status = lockstep_job_open(&options, &job, NULL);
    if (status != 0 || job != NULL)
        print_message("%s: %d\n", variables, status);
    assert_null(job);
    return status;
}

static void one_of_several_that_finds_no_other_is_refused(void **state)
{
    (void)state;
    static const char *const several[] = {
        "MPI_LOCALNRANKS=2",
        "PALS_RANKID=3",
        "WORLD_SIZE=4 RANK=0",
        "WORLD_SIZE=4 LOCAL_RANK=1",
        "OMPI_COMM_WORLD_SIZE=1 WORLD_SIZE=2 RANK=1",
        "PMI_SIZE=1 PMI_RANK=0 MPI_LOCALNRANKS=2",
        "SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1 WORLD_SIZE=8 RANK=7",
        "LOCKSTEP_MPI=missing SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2",
        "LOCKSTEP_MPI=missing SLURM_STEP_ID=3 SLURM_PROCID=1 SLURM_NTASKS=2",
        "HOROVOD_SIZE=2 HOROVOD_RANK=2147483647",
        "PMI_SIZE=2 PMI_RANK=1 PMI_FD=nine",
        "PMI_SIZE=2 PMI_RANK=1 PMI_FD=987654",
    };
    for (size_t i = 0; i < sizeof several / sizeof *several; i++)
        assert_int_equal(open_in(several[i]), LOCKSTEP_RESOURCE);
    clear_launchers();
}

static void one_that_was_started_alone_is_not_refused(void **state)
{
    (void)state;
    static const char *const alone[] = {
        "SLURM_NTASKS=8",
        "SLURM_NTASKS=8 SLURM_PROCID=0",
        "SLURM_NTASKS=8 SLURM_PROCID=0 SLURM_STEP_ID=4294967291",
        "SLURM_NTASKS=8 SLURM_PROCID=0 SLURM_STEP_ID=4294967290 SLURM_STEP_NUM_TASKS=1",
        "SLURM_NTASKS=1 SLURM_PROCID=0 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=1",
        "SLURM_NTASKS=4 SLURM_PROCID=1 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=4 PMI_SIZE=1",
        "WORLD_SIZE=8",
        "RANK=3",
        "LOCAL_RANK=1",
        "WORLD_SIZE=1 RANK=0 LOCAL_RANK=0",
        "OMPI_COMM_WORLD_SIZE=1 OMPI_COMM_WORLD_RANK=0",
        "PMI_SIZE=1 PMI_RANK=0 MPI_LOCALNRANKS=1",
        "LOCKSTEP_MPI=none WORLD_SIZE=4 RANK=2",
        "LOCKSTEP_MPI=none OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=2",
    };
    for (size_t i = 0; i < sizeof alone / sizeof *alone; i++) {
        assert_int_equal(open_in(alone[i]), 0);
        assert_int_equal(lockstep_job_launched(NULL), 1);
    }
    clear_launchers();
}

static void without_a_job_a_process_is_alone(void **state)
{
    (void)state;
    struct lockstep_job_options options;
    struct lockstep_job *job;
    int rank = -1;
    clear_launchers();
    lockstep_job_options_init(&options);
    assert_true(options.timeout == 300);
    assert_int_equal(lockstep_job_open(&options, &job, NULL), 0);
    assert_null(job);
    assert_int_equal(lockstep_job_rank(job), 0);
    assert_int_equal(lockstep_job_size(job), 1);
    assert_int_equal(lockstep_job_workers(job), lockstep_default_workers());
    assert_int_equal(lockstep_job_agree(job, 4, NULL), 4);
    lockstep_job_poll_soon(job);
    assert_int_equal(lockstep_job_close(job, 6, NULL), 6);
    options.timeout = -1;
    assert_int_equal(lockstep_job_open(&options, &job, NULL), LOCKSTEP_USAGE);
    options.struct_size = 3;
    assert_int_equal(lockstep_job_open(&options, &job, NULL), LOCKSTEP_USAGE);
    assert_int_equal(lockstep_job_launched(&rank), 1);
    assert_int_equal(rank, 0);
    setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
    setenv("OMPI_COMM_WORLD_RANK", "3", 1);
    assert_int_equal(lockstep_job_launched(&rank), 4);
    assert_int_equal(rank, 3);
    setenv("WORLD_SIZE", "2", 1);
    setenv("RANK", "1", 1);
    unsetenv("OMPI_COMM_WORLD_SIZE");
    unsetenv("OMPI_COMM_WORLD_RANK");
    assert_int_equal(lockstep_job_launched(&rank), 2);
    assert_int_equal(rank, 1);
    clear_launchers();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cores_are_shared_by_the_ranks_of_a_machine),
        cmocka_unit_test(ranks_train_through_the_public_interface),
        cmocka_unit_test(ranks_with_other_definitions_are_found),
        cmocka_unit_test(any_setting_that_differs_is_found_by_name),
        cmocka_unit_test(options_that_differ_are_found),
        cmocka_unit_test(ranks_of_other_versions_are_refused),
        cmocka_unit_test(a_process_alone_says_how_it_stands),
        cmocka_unit_test(a_state_that_cannot_be_written_is_warned_of),
        cmocka_unit_test(one_of_several_that_finds_no_other_is_refused),
        cmocka_unit_test(one_that_was_started_alone_is_not_refused),
        cmocka_unit_test(without_a_job_a_process_is_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
