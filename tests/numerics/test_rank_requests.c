/* Requests and failures in a job. A request to any rank is carried out by all ranks in the same
 * iteration; a failure of one rank is known to all; rank 0 alone reports events; weights that
 * differ between ranks are found.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/memory.h"
#include "engine/copies.h"
#include "numerics/rank_nets.h"
#include "solver/evaluate.h"
#include "solver/loop.h"
#include "trainings/weights.h"
#include "solver/snapshots.h"

static int setup(void **state)
{
    (void)state;
    write_data();
    return 0;
}

/* ---- Requests -------------------------------------------------------------------------------- */

/* One rank is asked for something when it has been polled so many times. */
struct request {
    int rank, polls;
    enum lockstep_request what;
    bool test; /* in a test, else in a training */
};

struct asked {
    const struct request *request;
    int rank, polls, events;
};

static enum lockstep_request answer(void *user)
{
    struct asked *asked = user;
    const struct request *request = asked->request;
    bool now = asked->rank == request->rank && asked->polls++ == request->polls;
    return now ? request->what : LOCKSTEP_GO_ON;
}

static void count_event(void *user, const struct lockstep_event *event)
{
    struct asked *asked = user;
    asked->events += event->kind != LOCKSTEP_EVENT_START;
}

/* What a rank saw: status, iteration, that of its last snapshot, events. */
struct seen {
    int status, events;
    int64_t iteration, snapshot_at;
};

static int run_asked(struct rank *rank, struct ls_trainer *trainer)
{
    struct asked asked = {.request = rank->job->user, .rank = rank->rank};
    int64_t samples = 0;
    trainer->callbacks =
        (struct lockstep_callbacks){.user = &asked, .event = count_event, .poll = answer};
    struct seen seen = {.status = asked.request->test
                                      ? ls_trainer_evaluate(trainer, 0, &samples, rank->error)
                                      : ls_trainer_run(trainer, -1, rank->error)};
    seen.events = asked.events;
    seen.iteration = trainer->iteration;
    seen.snapshot_at = trainer->snapshot_at;
    put(rank, &seen, sizeof seen);
    return 0;
}

/* Runs a job in which some ranks make requests; *seen is what all ranks saw. */
static void ask(const struct lockstep_solver *solver, const struct request *request,
                const char *prefix, struct seen *seen)
{
    struct job job = {.solver = solver,
                      .ranks = 3,
                      .workers = {1, 1, 1},
                      .act = run_asked,
                      .user = request,
                      .prefix = {prefix, prefix, prefix}};
    struct rank ranks[RANKS_MAX];
    run_job(&job, ranks);
    for (int r = 0; r < job.ranks; r++) {
        struct seen other;
        assert_int_equal(ranks[r].status, 0);
        memcpy(&other, ranks[r].bytes.data, sizeof other);
        if (r == 0) {
            *seen = other;
            continue;
        }
        assert_int_equal(other.status, seen->status);
        assert_int_equal(other.iteration, seen->iteration);
        assert_int_equal(other.snapshot_at, seen->snapshot_at);
        assert_int_equal(other.events, 0);
    }
    free_ranks(&job, ranks);
}

static void a_stop_asked_of_one_rank_stops_all_in_one_iteration(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver(MOMENTUM "snapshot_after_train: false");
    char *prefix = own_path("stopped");
    for (int rank = 0; rank < 3; rank++) {
        struct request request = {rank, 2, LOCKSTEP_SNAPSHOT_AND_STOP, false};
        struct seen seen;
        ask(solver, &request, prefix, &seen);
        assert_int_equal(seen.status, LOCKSTEP_STOPPED);
        assert_int_equal(seen.iteration, 3); /* asked before update 2, known after it */
        assert_int_equal(seen.snapshot_at, 3);
        assert_true(seen.events > 0);
    }
    free(prefix);
    lockstep_solver_free(solver);
}

static void a_snapshot_asked_of_one_rank_is_written_once(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver(MOMENTUM "snapshot_after_train: false");
    char *prefix = own_path("asked");
    struct request request = {2, 1, LOCKSTEP_SNAPSHOT_AND_GO_ON, false};
    struct seen seen;
    ask(solver, &request, prefix, &seen);
    assert_int_equal(seen.status, 0);
    assert_int_equal(seen.iteration, 6);
    assert_int_equal(seen.snapshot_at, 2);
    free(prefix);
    lockstep_solver_free(solver);
}

static void a_stop_in_a_test_phase_stops_all_ranks(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver(MOMENTUM "test_interval: 100");
    char *prefix = own_path("tested");
    struct seen seen;
    ask(solver, &(struct request){1, 0, LOCKSTEP_SNAPSHOT_AND_STOP, true}, prefix, &seen);
    assert_int_equal(seen.status, LOCKSTEP_STOPPED);
    ask(solver, &(struct request){1, 99, LOCKSTEP_SNAPSHOT_AND_STOP, true}, prefix, &seen);
    assert_int_equal(seen.status, 0);
    lockstep_solver_free(solver);
    /* The first thing that this training does. */
    solver = make_solver(MOMENTUM "test_interval: 3");
    ask(solver, &(struct request){1, 0, LOCKSTEP_SNAPSHOT_AND_STOP, false}, prefix, &seen);
    assert_int_equal(seen.status, LOCKSTEP_STOPPED);
    assert_int_equal(seen.iteration, 0);
    assert_int_equal(seen.snapshot_at, 0);
    free(prefix);
    lockstep_solver_free(solver);
}

/* ---- Failures of one rank -------------------------------------------------------------------- */

static void data_missing_on_one_rank_end_the_job_on_all(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver(MOMENTUM);
    struct lockstep_solver *lacking = make_solver_of("/nowhere/images", MOMENTUM);
    struct job job = {.solver = solver,
                      .ranks = 3,
                      .workers = {1, 1, 1},
                      .other = {NULL, NULL, lacking},
                      .together = true};
    struct rank ranks[RANKS_MAX];
    run_job(&job, ranks);
    for (int r = 0; r < job.ranks; r++) {
        const struct ls_problem *problem = &ranks[r].error->problems[0];
        assert_int_equal(ranks[r].status, LOCKSTEP_DATA);
        if (strstr(problem->message, "/nowhere/images") == NULL)
            fail_msg("%s: %s", problem->place, problem->message);
        assert_true(r == 2 || strstr(problem->message, "(rank 2, host ") != NULL);
    }
    free_ranks(&job, ranks);
    lockstep_solver_free(solver);
    lockstep_solver_free(lacking);
}

/* ---- Weights --------------------------------------------------------------------------------- */

/* A bit of a weight. */
struct flip {
    int rank;
    const char *parameter;
    size_t element;
    int bit;
};

static int flip_and_write(struct rank *rank, struct ls_trainer *trainer)
{
    const struct flip *flip = rank->job->user;
    LS_TRY(ls_trainer_update(trainer, rank->error));
    LS_TRY(ls_copies_gather_weights(trainer->engine, rank->error));
    for (size_t i = 0; i < trainer->parameters->count; i++)
        if (rank->rank == flip->rank &&
            strcmp(trainer->parameters->items[i]->name, flip->parameter) == 0) {
            uint32_t bits;
            float *weight = stored_weights(trainer->store, i) + flip->element;
            memcpy(&bits, weight, sizeof bits);
            bits ^= UINT32_C(1) << flip->bit;
            memcpy(weight, &bits, sizeof bits);
        }
    return ls_snapshots_take(trainer, true, rank->error);
}

static void weights_that_differ_between_ranks_are_found_with_parameter_and_rank(void **state)
{
    (void)state;
    static const struct flip flips[] = {{2, "c2.weight", 38399, 0},
                                        {0, "c2.weight", 20000, 31},
                                        {1, "wide.weight", 7, 30},
                                        {1, "n1.mean", 23, 12},
                                        {2, "ip2.bias", 9, 22}};
    struct lockstep_solver *solver = make_solver(MOMENTUM);
    char *prefix = own_path("flipped");
    for (size_t i = 0; i < sizeof flips / sizeof *flips; i++) {
        struct job job = {.solver = solver,
                          .ranks = 3,
                          .workers = {2, 1, 1},
                          .act = flip_and_write,
                          .user = &flips[i],
                          .prefix = {prefix, prefix, prefix},
                          .together = true};
        struct rank ranks[RANKS_MAX];
        char who[32];
        snprintf(who, sizeof who, "disagree with rank %d (", flips[i].rank);
        run_job(&job, ranks);
        for (int r = 0; r < job.ranks; r++) {
            const struct ls_problem *problem = &ranks[r].error->problems[0];
            assert_int_equal(ranks[r].status, LOCKSTEP_DIFFERENT);
            assert_string_equal(problem->place, flips[i].parameter);
            assert_non_null(strstr(problem->message, "iteration 1: "));
            assert_non_null(strstr(problem->message, who));
        }
        free_ranks(&job, ranks);
    }
    char *path = own_path("flipped_iter_1.safetensors");
    assert_null(fopen(path, "r")); /* nothing was written */
    free(path);
    free(prefix);
    lockstep_solver_free(solver);
}

/* A weight that differs on one rank is reported before the first update. */
static void fill_otherwise(struct ls_trainer *trainer, int rank)
{
    for (size_t i = 0; i < trainer->parameters->count; i++)
        if (rank == 2 && strcmp(trainer->parameters->items[i]->name, "c2.weight") == 0)
            stored_weights(trainer->store, i)[38399] += 0x1p-20F;
}

/* What goes wrong in the first update is told after it. */
static struct ls_trainer *third;

static void remember_third(struct ls_trainer *trainer, int rank)
{
    if (rank == 2)
        third = trainer;
}

static void disturb(const struct rank *rank)
{
    static bool done;
    if (rank->rank != 2 || done)
        return;
    done = true;
    for (size_t i = 0; i < third->parameters->count; i++)
        if (strcmp(third->parameters->items[i]->name, "n1.mean") == 0)
            stored_weights(third->store, i)[1] = 1;
}

static void check_first(const struct job *job, const char *parameter, const char *when)
{
    struct rank ranks[RANKS_MAX];
    run_job(job, ranks);
    for (int r = 0; r < job->ranks; r++) {
        const struct ls_problem *problem = &ranks[r].error->problems[0];
        assert_int_equal(ranks[r].status, LOCKSTEP_DIFFERENT);
        assert_string_equal(problem->place, parameter);
        if (strstr(problem->message, when) == NULL ||
            strstr(problem->message, "disagree with rank 2 (") == NULL)
            fail_msg("%s", problem->message);
    }
    free_ranks(job, ranks);
}

static void ranks_compare_weights_before_the_first_update(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver(MOMENTUM);
    struct job job = {.solver = solver,
                      .ranks = 3,
                      .workers = {1, 1, 1},
                      .updates = 2,
                      .prepare = fill_otherwise,
                      .together = true};
    check_first(&job, "c2.weight", "before the first update: ");
    job.prepare = remember_third;
    job.before = disturb;
    check_first(&job, "n1.mean", "iteration 1: ");
    lockstep_solver_free(solver);
}

/* Without snapshots they are compared now and then. */
static int flip_and_train(struct rank *rank, struct ls_trainer *trainer)
{
    while (trainer->iteration + 1 < LS_COMPARE_EVERY)
        LS_TRY(ls_trainer_update(trainer, rank->error));
    LS_TRY(ls_copies_gather_weights(trainer->engine, rank->error));
    for (size_t i = 0; i < trainer->parameters->count; i++)
        if (rank->rank == 1 && !trainer->parameters->items[i]->trained)
            stored_weights(trainer->store, i)[0] += 1; /* averages: not sent between ranks */
    return ls_trainer_update(trainer, rank->error);
}

static void ranks_compare_weights_now_and_then(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver(MOMENTUM);
    struct job job = {
        .solver = solver, .ranks = 2, .workers = {1, 1}, .act = flip_and_train, .together = true};
    struct rank ranks[RANKS_MAX];
    run_job(&job, ranks);
    for (int r = 0; r < job.ranks; r++) {
        assert_int_equal(ranks[r].status, LOCKSTEP_DIFFERENT);
        assert_non_null(strstr(ranks[r].error->problems[0].message, "iteration 100: "));
    }
    free_ranks(&job, ranks);
    lockstep_solver_free(solver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stop_asked_of_one_rank_stops_all_in_one_iteration),
        cmocka_unit_test(a_snapshot_asked_of_one_rank_is_written_once),
        cmocka_unit_test(a_stop_in_a_test_phase_stops_all_ranks),
        cmocka_unit_test(data_missing_on_one_rank_end_the_job_on_all),
        cmocka_unit_test(weights_that_differ_between_ranks_are_found_with_parameter_and_rank),
        cmocka_unit_test(ranks_compare_weights_before_the_first_update),
        cmocka_unit_test(ranks_compare_weights_now_and_then),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
