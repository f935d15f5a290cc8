/* The note of the numeric environment. It is the same for any number of workers and any limit on
 * memory, differs for other caches and other shapes, and names oneDNN only where oneDNN computes
 * something. Ranks and resumes with another environment are refused. Running out of memory while
 * the note is made is an error.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/memory.h"
#include "data/decoders.h"
#include "numerics/rank_nets.h"
#include "ops/cpu/environment.h"
#include "ops/cpu/isa.h"
#include "solver/environment.h"
#include "solver/history.h"
#include "solver/ranks.h"
#include "unit/data/picture_files.h"

static const char other_caches[] = "49152,2097152";

static int setup(void **state)
{
    (void)state;
    write_data();
    return 0;
}

/* ---- Contents -------------------------------------------------------------------------------- */

/* The environment of a trainer; the caller frees it. `memory` 0: no limit. */
static char *environment_of(const struct lockstep_solver *solver, int workers, uint64_t memory)
{
    struct lockstep_train_options options;
    struct ls_error *error = calloc(1, sizeof *error);
    struct ls_trainer *trainer = NULL;
    lockstep_train_options_init(&options);
    options.workers = workers;
    options.memory = memory;
    if (ls_trainer_create(solver->definition, &options, &trainer, error) != 0)
        fail_msg("%s", error->problems[0].message);
    char *text = strdup(trainer->numerics.environment);
    ls_trainer_free(trainer);
    free(error);
    return text;
}

static void workers_and_memory_leave_no_trace_in_the_environment(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver("");
    char *first = environment_of(solver, 1, 0);
    static const int workers[] = {2, 5};
    for (size_t i = 0; i < 2; i++) {
        char *other = environment_of(solver, workers[i], 0);
        assert_string_equal(other, first);
        free(other);
    }
    char *limited = environment_of(solver, 1, (uint64_t)64 << 20);
    assert_string_equal(limited, first);
    free(limited);
    char number[32];
    snprintf(number, sizeof number, "numerics=%d\nisa=", LOCKSTEP_NUMERICS);
    assert_non_null(strstr(first, number));
    assert_null(strstr(first, "decoders="));
    free(first);
    lockstep_solver_free(solver);
}

/* What the layouts of parameters are for the norm of the gradient, with tests or without: moving
 * averages, which only tests read, and a parameter that only the test net has. */
static struct lockstep_solver *clipped_solver(const char *tests)
{
    return load_solver(
        "base_lr: 0.01 lr_policy: 'fixed' max_iter: 6 clip_gradients: 1 %s net_param { %s }\n",
        tests, ls_test_net("environment", NULL));
}

static void tests_leave_no_trace_in_the_environment(void **state)
{
    (void)state;
    struct lockstep_solver *solvers[] = {clipped_solver(""), clipped_solver("test_interval: 2")};
    char *without = environment_of(solvers[0], 1, 0), *with = environment_of(solvers[1], 1, 0);
    assert_string_equal(with, without);
    free(with);
    free(without);
    for (size_t i = 0; i < 2; i++)
        lockstep_solver_free(solvers[i]);
}

/* A line "key=..." of an environment. */
static void line_of(const char *text, const char *key, char line[128])
{
    const char *place = strstr(text, key);
    assert_non_null(place);
    snprintf(line, 128, "%.*s", (int)strcspn(place, "\n"), place);
}

static struct lockstep_solver *product_solver(int outputs)
{
    return load_solver(
        "base_lr: 0.01 lr_policy: 'fixed' max_iter: 6 random_seed: 5 net_param {\n"
        "layer { name: 'd' type: 'Data' top: 'data' top: 'label' data_param { backend: IDX\n"
        "  source: '%s' label_source: '%s' batch_size: 12 } }\n"
        "layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip' inner_product_param {\n"
        "  num_output: %d weight_filler { type: 'xavier' } } }\n"
        "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' } }\n",
        ls_test_path("images"), ls_test_path("labels"), outputs);
}

/* Probes use the shapes of the net; probes that do not depend on shapes give the same for all
 * nets. */
static void the_environment_follows_the_shapes_of_the_net(void **state)
{
    (void)state;
    struct lockstep_solver *small = product_solver(20), *larger = product_solver(21);
    char *one = environment_of(small, 1, 0), *other = environment_of(larger, 1, 0);
    char a[128], b[128];
    line_of(one, "net=", a);
    line_of(other, "net=", b);
    assert_string_not_equal(a, b);
    line_of(one, "own=", a);
    line_of(other, "own=", b);
    assert_string_equal(a, b);
    assert_non_null(strstr(one, "onednn="));
    free(one);
    free(other);
    lockstep_solver_free(small);
    lockstep_solver_free(larger);
}

/* 144 x 300 weights need no library where the CPU has fused operations. */
static void libraries_that_compute_nothing_are_not_named(void **state)
{
    (void)state;
    if (ls_cpu_isa() < LS_ISA_AVX2)
        skip();
    struct lockstep_solver *solver = product_solver(300);
    char *text = environment_of(solver, 1, 0);
    assert_null(strstr(text, "isa="));
    assert_null(strstr(text, "onednn="));
    assert_null(strstr(text, "cache="));
    ls_cpu_pretend_caches(other_caches);
    char *elsewhere = environment_of(solver, 1, 0);
    ls_cpu_pretend_caches(NULL);
    assert_string_equal(text, elsewhere);
    free(text);
    free(elsewhere);
    lockstep_solver_free(solver);
}

/* Decoders matter where pictures are decoded. */
static void decoders_are_named_where_pictures_are_decoded(void **state)
{
    (void)state;
    char list[600] = "";
    for (int i = 0; i < 4; i++) {
        const char *path = ls_test_path("picture");
        char name[400];
        snprintf(name, sizeof name, "%s%d.png", path, i);
        write_picture(name, 12, 12, 3, i);
        snprintf(list + strlen(list), sizeof list - strlen(list), "picture%d.png %d\n", i, i % 2);
    }
    ls_test_write_text(ls_test_path("list.txt"), list);
    struct lockstep_solver *solver = load_solver(
        "base_lr: 0.01 lr_policy: 'fixed' max_iter: 6 random_seed: 5 net_param {\n"
        "layer { name: 'd' type: 'Data' top: 'data' top: 'label' data_param { backend: IMAGES\n"
        "  source: '%s' root_folder: '%s' batch_size: 4 } }\n"
        "layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip' inner_product_param {\n"
        "  num_output: 2 weight_filler { type: 'xavier' } } }\n"
        "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' } }\n",
        ls_test_path("list.txt"), ls_test_path(""));
    char *text = environment_of(solver, 1, 0);
    assert_non_null(strstr(text, "\ndecoders="));
    free(text);
    lockstep_solver_free(solver);
}

/* ---- What is refused ------------------------------------------------------------------------- */

static void a_resume_with_other_caches_is_refused(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver("snapshot_prefix: 'x'");
    struct training *training = start(solver, 1, "caches", NULL);
    struct lockstep_train_options options;
    struct lockstep_trainer *trainer = NULL;
    struct lockstep_error *error = lockstep_error_new();
    step(training, 2);
    assert_int_equal(lockstep_trainer_snapshot(training->trainer, NULL, training->error), 0);
    finish(training);
    lockstep_train_options_init(&options);
    options.workers = 1;
    options.snapshot_prefix = ls_test_path("caches");
    options.resume = "auto";
    ls_cpu_pretend_caches(other_caches);
    assert_int_equal(lockstep_trainer_create(solver, &options, &trainer, error),
                     LOCKSTEP_DIFFERENT);
    assert_null(trainer);
    assert_non_null(strstr(lockstep_error_text(error), "cache "));
    assert_non_null(strstr(lockstep_error_text(error), other_caches));
    options.allow_other_numerics = 1;
    assert_int_equal(lockstep_trainer_create(solver, &options, &trainer, error), 0);
    ls_cpu_pretend_caches(NULL);
    assert_non_null(strstr(trainer->inner->numerics.history, "\n2 numerics="));
    lockstep_trainer_free(trainer);
    lockstep_error_free(error);
    lockstep_solver_free(solver);
}

/* Rank 1 finds itself on a processor with other caches. */
static int compare_ranks(struct rank *rank, struct ls_trainer *trainer)
{
    struct lockstep_train_options options;
    lockstep_train_options_init(&options);
    if (rank->rank == 1) {
        ls_free(trainer->numerics.environment);
        ls_free(trainer->numerics.history);
        trainer->numerics.environment = trainer->numerics.history = NULL;
        ls_cpu_pretend_caches(other_caches);
        int status = ls_environment_make(trainer, rank->error);
        ls_cpu_pretend_caches(NULL);
        LS_TRY(status);
    }
    return ls_ranks_compare(trainer, &options, rank->error);
}

static void ranks_with_other_caches_do_not_train(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver("");
    struct job job = {
        .solver = solver, .ranks = 2, .workers = {1, 1}, .act = compare_ranks, .together = true};
    struct rank ranks[RANKS_MAX];
    run_job(&job, ranks);
    for (int r = 0; r < 2; r++)
        assert_int_equal(ranks[r].status, LOCKSTEP_DIFFERENT);
    assert_non_null(strstr(ranks[1].error->problems[0].message, other_caches));
    free_ranks(&job, ranks);
    lockstep_solver_free(solver);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

/* Each allocation fails in turn: the status is LOCKSTEP_RESOURCE, or the allocation was not
 * needed. */
static void no_memory_is_no_environment(void **state)
{
    (void)state;
    struct lockstep_solver *solver = product_solver(22);
    struct training *training = start(solver, 1, NULL, NULL);
    struct ls_trainer *trainer = training->trainer->inner;
    char *whole = strdup(trainer->numerics.environment);
    struct ls_error *error = calloc(1, sizeof *error);
    int failures = 0;
    for (long n = 0; n < 30; n++) {
        ls_free(trainer->numerics.environment);
        ls_free(trainer->numerics.history);
        trainer->numerics.environment = trainer->numerics.history = NULL;
        ls_error_clear(error);
        ls_fail_allocation_after(n);
        int status = ls_environment_make(trainer, error);
        ls_fail_allocation_after(-1);
        failures += status != 0;
        if (status != 0)
            assert_int_equal(status, LOCKSTEP_RESOURCE);
        else
            assert_string_equal(trainer->numerics.environment, whole);
    }
    assert_true(failures > 2);
    free(whole);
    free(error);
    finish(training);
    lockstep_solver_free(solver);
}

static void decoders_repeat_or_say_why_not(void **state)
{
    (void)state;
    uint64_t first = 0, other = 0;
    assert_int_equal(ls_decoders_fingerprint(&first, NULL), 0);
    assert_int_equal(ls_decoders_fingerprint(&other, NULL), 0);
    assert_true(first == other && first != 0);
    ls_fail_allocation_after(0);
    int status = ls_decoders_fingerprint(&other, NULL);
    ls_fail_allocation_after(-1);
    assert_int_equal(status, LOCKSTEP_RESOURCE);
}

/* ---- Histories ------------------------------------------------------------------------------- */

static void histories_of_environments_read_as_sentences(void **state)
{
    (void)state;
    static const struct {
        const char *history, *words;
    } cases[] = {
        {"0 numerics=1, isa=avx2, net=1\n", ""},
        {"0 numerics=1, isa=avx2, net=1\n20 numerics=1, isa=sse41, net=2\n",
         "isa=avx2 until 20; isa=sse41"},
        {"0 numerics=1, net=1\n20 numerics=1, isa=sse41, net=1\n30 numerics=1, net=1\n",
         "any instruction set until 20; isa=sse41 until 30; any instruction set"},
        {"0 numerics=1, net=1\n7 numerics=1, net=2\n", "net=1 until 7; net=2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ls_text text = {0};
        ls_environment_say_history(cases[i].history, &text);
        assert_string_equal(text.data != NULL ? text.data : "", cases[i].words);
        ls_text_free(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_and_memory_leave_no_trace_in_the_environment),
        cmocka_unit_test(tests_leave_no_trace_in_the_environment),
        cmocka_unit_test(the_environment_follows_the_shapes_of_the_net),
        cmocka_unit_test(libraries_that_compute_nothing_are_not_named),
        cmocka_unit_test(decoders_are_named_where_pictures_are_decoded),
        cmocka_unit_test(a_resume_with_other_caches_is_refused),
        cmocka_unit_test(ranks_with_other_caches_do_not_train),
        cmocka_unit_test(no_memory_is_no_environment),
        cmocka_unit_test(decoders_repeat_or_say_why_not),
        cmocka_unit_test(histories_of_environments_read_as_sentences),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
