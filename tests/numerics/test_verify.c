/* lockstep_verify. It passes a training with tests, averages and a best snapshot in all forms;
 * where a test changes something on purpose, it names the update, the parameter, the element,
 * both values and both trainings.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/exponents.h"
#include "trainings/weights.h"
#include "solver/verify.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>

#include "trainings/training.h"

enum { UPDATES = 6, ROWS_MAX = 40 };

static int setup(void **state)
{
    (void)state;
    write_idx_pair(ls_test_path("images"), ls_test_path("labels"), 61, 12);
    return setenv("TMPDIR", ls_test_directory(), 1);
}

static struct lockstep_solver *make_solver(const char *fields)
{
    return load_solver(
        "type: 'Adam' lr_policy: 'fixed' max_iter: 40 random_seed: 5 micro_batch: 4\n"
        "iter_size: 2 test_interval: 3 test_iter: 0 snapshot: 2 snapshot_best: 'accuracy'\n"
        "weight_average { decay: 0.9 } %s\n"
        "net_param { %s }\n",
        fields, ls_test_net("verified", NULL));
}

/* ---- What must not matter -------------------------------------------------------------------- */

struct rows {
    size_t count;
    char hash[ROWS_MAX][65], training[ROWS_MAX][300];
};

static void take_row(void *user, const struct lockstep_verified *training)
{
    struct rows *rows = user;
    assert_true(rows->count < ROWS_MAX && training->same);
    assert_int_equal(training->iterations, UPDATES);
    snprintf(rows->hash[rows->count], 65, "%s", training->hash);
    snprintf(rows->training[rows->count++], 300, "%s", training->training);
}

/* Nothing is left of a verification. */
static void check_clean(void)
{
    DIR *folder = opendir(ls_test_directory());
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        if (strstr(entry->d_name, "lockstep-verify") != NULL)
            fail_msg("%s is left", entry->d_name);
    closedir(folder);
}

static void all_forms_of_training_agree(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver("base_lr: 0.01");
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_verify_options options;
    struct rows rows = {0};
    lockstep_verify_options_init(&options);
    options.workers = (int[]){1, 3};
    options.ranks = (int[]){1, 2};
    options.dynamic = (int[]){0, 1};
    options.memory = (uint64_t[]){0, LOCKSTEP_MEMORY_LEAST};
    options.worker_count = options.rank_count = options.dynamic_count = options.memory_count = 2;
    options.stops = 2;
    options.iterations = UPDATES;
    options.trained = take_row;
    options.user = &rows;
    if (lockstep_verify(solver, &options, error) != 0)
        fail_msg("%s", lockstep_error_text(error));
    assert_int_equal(rows.count, 1 + 12); /* balance is nothing where there is one rank */
    assert_string_equal(rows.training[0], "1 worker");
    bool others = false;
    for (size_t i = 1; i < rows.count; i++) {
        assert_string_equal(rows.hash[i], rows.hash[0]);
        assert_non_null(strstr(rows.training[i], " until update "));
        others |= strstr(rows.training[i], "2 ranks of 3 workers, dynamic, least memory") != NULL;
    }
    assert_true(others);
    check_clean();
    lockstep_error_free(error);
    lockstep_solver_free(solver);
}

/* ---- What matters is found ------------------------------------------------------------------- */

/* What is changed in the second training, when update `update` is done. */
enum change { WEIGHT, AVERAGE, HISTORY, EXPONENT, LOSS, TESTED_WEIGHT, BEST };

static struct {
    enum change change;
    int64_t update;
    int times; /* that it may happen yet */
    struct ls_trainer *trainer;
    int (*after)(void *user, struct ls_error *error);
    void *user;
} fault;

static int index_of(const struct ls_trainer *trainer, const char *name)
{
    for (size_t i = 0; i < trainer->parameters->count; i++)
        if (strcmp(trainer->parameters->items[i]->name, name) == 0)
            return (int)i;
    abort();
}

static void flip(float *number)
{
    uint32_t bits;
    memcpy(&bits, number, sizeof bits);
    bits ^= 1;
    memcpy(number, &bits, sizeof bits);
}

static void make_fault(void)
{
    int which = index_of(fault.trainer, "ip.bias");
    struct ls_store *store = fault.trainer->store;
    struct ls_parameter_state *slot = &store->slots[which];
    fault.times--;
    switch (fault.change) {
    case WEIGHT:
        flip(&stored_weights(store, (size_t)which)[7]);
        return;
    case AVERAGE:
        flip(&slot->average[7]);
        return;
    case HISTORY:
        flip(&slot->history[1][7]);
        return;
    case EXPONENT:
        ls_sums_set_exponent(store->sums, which, ls_sums_exponent(store->sums, which) + 1);
        return;
    case LOSS:
        for (int i = 0; i < ls_net_graph(fault.trainer->train)->record_size; i++)
            fault.trainer->figures.totals.record[i] += 1;
        return;
    case TESTED_WEIGHT:
        slot->average[7] += 50;
        return;
    case BEST:
        fault.trainer->best.before.value += 1;
        fault.trainer->best.now.value += 1;
        return;
    }
}

static int after_update(void *user, struct ls_error *error)
{
    (void)user;
    bool now = fault.trainer->iteration == fault.update + 1 && fault.times > 0;
    bool behind = fault.change == TESTED_WEIGHT || fault.change == BEST; /* no hash sees it */
    if (now && !behind)
        make_fault();
    int status = fault.after(fault.user, error);
    if (now && behind)
        make_fault();
    return status;
}

static void prepare(struct ls_trainer *trainer, size_t training, int rank)
{
    if (training != 1 || rank != 0)
        return;
    fault.trainer = trainer;
    fault.after = trainer->after_update;
    fault.user = trainer->after_update_user;
    trainer->after_update = after_update;
}

/* Second runs make the fault again, unless `times` is 1. */
static void check_found(const struct ls_verify_case *cases, enum change change, int64_t update,
                        int times, const char *place, const char *const *texts)
{
    struct lockstep_solver *solver = make_solver("base_lr: 0.01");
    struct ls_error *error = calloc(1, sizeof *error);
    struct ls_verify_options options = {
        .cases = cases, .count = 2, .iterations = UPDATES, .prepare = prepare};
    fault.change = change;
    fault.update = update;
    fault.times = times;
    int status = ls_verify(solver->definition, &options, error);
    const struct ls_problem *problem = &error->problems[0];
    if (status != LOCKSTEP_DIFFERENT || strcmp(problem->place, place) != 0)
        fail_msg("change %d: status %d: %s: %s", change, status, problem->place, problem->message);
    for (; *texts != NULL; texts++)
        if (strstr(problem->message, *texts) == NULL)
            fail_msg("change %d: not '%s': %s", change, *texts, problem->message);
    check_clean();
    free(error);
    lockstep_solver_free(solver);
}

static const struct ls_verify_case alone[] = {{.ranks = 1, .workers = 1},
                                              {.ranks = 1, .workers = 2}};
static const struct ls_verify_case ranked[] = {{.ranks = 1, .workers = 1},
                                               {.ranks = 2, .workers = 1}};

static void verify_names_update_parameter_and_element(void **state)
{
    (void)state;
    check_found(alone, WEIGHT, 2, 9, "ip.bias",
                (const char *const[]){"update 2: element 7 [7] is ", " (0x", ") with 1 worker, ",
                                      ") with 2 workers", NULL});
    check_found(alone, AVERAGE, 0, 9, "ip.bias",
                (const char *const[]){"update 0: the average's element 7 [7] is ", NULL});
    check_found(alone, HISTORY, 5, 9, "ip.bias",
                (const char *const[]){"update 5: the optimizer's history 1, element 7 [7]", NULL});
    check_found(alone, EXPONENT, 1, 9, "ip.bias",
                (const char *const[]){"update 1: the exponent of row 0 of its sum is ", NULL});
}

static void verify_names_the_ranks_that_differ(void **state)
{
    (void)state;
    check_found(ranked, WEIGHT, 3, 9, "ip.bias",
                (const char *const[]){"update 3: element 7 [7] is ", " with 1 worker, ",
                                      " with 2 ranks of 1 worker", NULL});
}

static void verify_finds_losses_and_test_figures_that_differ(void **state)
{
    (void)state;
    check_found(alone, LOSS, 4, 9, "loss",
                (const char *const[]){"update 4: value 0 is ", " with 2 workers", NULL});
    check_found(alone, TESTED_WEIGHT, 2, 9, "accuracy",
                (const char *const[]){"test net 0 at iteration 3: value 0 is ", NULL});
}

static void verify_finds_notes_of_snapshots_that_differ(void **state)
{
    (void)state;
    check_found(alone, BEST, 4, 9, "",
                (const char *const[]){"the last snapshots differ between 1 worker and 2 workers, "
                                      "in their notes",
                                      NULL});
}

/* As a processor that is faulty now and then would do it. */
static void verify_finds_a_difference_that_occurs_once(void **state)
{
    (void)state;
    check_found(alone, WEIGHT, 2, 1, "",
                (const char *const[]){"update 2: a parameter differs between 1 worker and 2 "
                                      "workers; in a second run of both it did not",
                                      NULL});
}

/* ---- What cannot be verified ----------------------------------------------------------------- */

static int verify(const char *fields, struct lockstep_verify_options *options,
                  struct lockstep_error *error)
{
    struct lockstep_solver *solver = make_solver(fields);
    options->iterations = UPDATES;
    int status = lockstep_verify(solver, options, error);
    lockstep_solver_free(solver);
    check_clean();
    return status;
}

static void options_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_verify_options options;
    int many[20];
    for (int i = 0; i < 20; i++)
        many[i] = i + 1;
    lockstep_verify_options_init(&options);
    options.workers = options.ranks = many;
    options.worker_count = 1;
    assert_int_equal(verify("base_lr: 0.01", &options, error), LOCKSTEP_USAGE);
    assert_non_null(strstr(lockstep_error_text(error), "at least two trainings"));
    options.worker_count = options.rank_count = 20;
    assert_int_equal(verify("base_lr: 0.01", &options, error), LOCKSTEP_USAGE);
    assert_non_null(
        strstr(lockstep_error_text(error), "400 trainings or more; it runs at most 256"));
    options.rank_count = 0;
    options.stops = -1;
    assert_int_equal(verify("base_lr: 0.01", &options, error), LOCKSTEP_USAGE);
    options.struct_size = 1;
    assert_int_equal(verify("base_lr: 0.01", &options, error), LOCKSTEP_USAGE);
    lockstep_error_free(error);
}

/* What goes wrong in a training is told as by the training. */
static void failures_in_a_training_are_told_as_by_training(void **state)
{
    (void)state;
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_verify_options options;
    lockstep_verify_options_init(&options);
    options.ranks = (int[]){2, 1};
    options.rank_count = 2;
    assert_int_equal(verify("base_lr: 1e38", &options, error), LOCKSTEP_DIVERGED);
    assert_non_null(strstr(lockstep_error_text(error), "not finite"));
    options.weights = "/nowhere/weights";
    assert_int_equal(verify("base_lr: 0.01", &options, error), LOCKSTEP_WEIGHTS);
    assert_non_null(strstr(lockstep_error_text(error), "/nowhere/weights"));
    lockstep_error_free(error);
}

/* A request for a snapshot is not a stop: verification has nothing worth keeping. */
struct requests {
    enum lockstep_request request;
    int trained;
};

static enum lockstep_request answer_with(void *user)
{
    return ((const struct requests *)user)->request;
}

static void count_trained(void *user, const struct lockstep_verified *training)
{
    (void)training;
    ((struct requests *)user)->trained++;
}

static void a_stop_ends_verify_and_a_snapshot_request_does_not(void **state)
{
    (void)state;
    struct lockstep_verify_options options;
    struct requests requests = {LOCKSTEP_SNAPSHOT_AND_GO_ON, 0};
    lockstep_verify_options_init(&options);
    options.workers = (int[]){1, 2};
    options.worker_count = 2;
    options.callbacks = (struct lockstep_callbacks){&requests, NULL, answer_with};
    options.trained = count_trained;
    options.user = &requests;
    assert_int_equal(verify("base_lr: 0.01", &options, NULL), 0);
    assert_int_equal(requests.trained, 2);
    requests = (struct requests){LOCKSTEP_SNAPSHOT_AND_STOP, 0};
    assert_int_equal(verify("base_lr: 0.01", &options, NULL), LOCKSTEP_STOPPED);
    assert_int_equal(requests.trained, 1);
}

#ifndef __SANITIZE_THREAD__ /* which has its own in this place */

static _Atomic bool no_threads;

/* In the place of the C library's own. */
int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attributes,
                   void *(*run)(void *), void *restrict argument)
{
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    *(void **)&create = dlsym(RTLD_NEXT, "pthread_create");
    return no_threads ? EAGAIN : create(thread, attributes, run, argument);
}

/* No rank can be started: nothing is left of their transports (a sanitizer checks this). */
static void ranks_that_cannot_start_leave_nothing_behind(void **state)
{
    (void)state;
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_verify_options options;
    lockstep_verify_options_init(&options);
    options.ranks = (int[]){3, 1};
    options.rank_count = 2;
    no_threads = true;
    assert_int_equal(verify("base_lr: 0.01", &options, error), LOCKSTEP_RESOURCE);
    no_threads = false;
    assert_non_null(strstr(lockstep_error_text(error), "no more threads"));
    lockstep_error_free(error);
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_forms_of_training_agree),
        cmocka_unit_test(verify_names_update_parameter_and_element),
        cmocka_unit_test(verify_names_the_ranks_that_differ),
        cmocka_unit_test(verify_finds_losses_and_test_figures_that_differ),
        cmocka_unit_test(verify_finds_notes_of_snapshots_that_differ),
        cmocka_unit_test(verify_finds_a_difference_that_occurs_once),
        cmocka_unit_test(options_that_make_no_sense_are_refused),
        cmocka_unit_test(failures_in_a_training_are_told_as_by_training),
        cmocka_unit_test(a_stop_ends_verify_and_a_snapshot_request_does_not),
#ifndef __SANITIZE_THREAD__
        cmocka_unit_test(ranks_that_cannot_start_leave_nothing_behind),
#endif
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
