/* Batch statistics: small residual nets with batch norm give the same snapshot, byte for byte,
 * on any number of workers: with any groups, batches and micro-batches, with slow workers, and
 * after a resume. The figures of tests that use the statistics of batches are the same, too.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "trainings/training.h"

static const int counts[] = {1, 2, 3, 5};
enum { COUNTS = sizeof counts / sizeof *counts };

/* ---- Definitions ----------------------------------------------------------------------------- */

/* What a test varies of the net; NULL: nothing stands there. */
struct variant {
    const char *data;           /* further fields of the data */
    const char *first, *others; /* of the first norm, and of all others */
    const char *dropout;        /* a layer before the scores */
    const char *test_data;      /* a data layer for tests */
    const char *more;           /* layers behind the loss */
};

static const char *residual_net(struct variant variant)
{
    return ls_test_net("residual",
                       LS_TEST_VALUES({"data", variant.data}, {"first", variant.first},
                                      {"others", variant.others}, {"dropout", variant.dropout},
                                      {"test_data", variant.test_data}, {"more", variant.more}));
}

#define SGD "base_lr: 0.05 momentum: 0.9 weight_decay: 0.0005 lr_policy: 'fixed'\n"

/* All norms with groups of `group`; `batch` samples in micro-batches of 4. */
static struct lockstep_solver *residual_solver(const char *settings, const char *data, int batch,
                                               int group)
{
    const char *groups_of = ls_test_text("group: %d", group);
    const struct variant variant = {.data = ls_test_text("batch_size: %d %s", batch, data),
                                    .first = groups_of,
                                    .others = groups_of};
    return load_solver("%s max_iter: 12 random_seed: 7 micro_batch: 4 net_param { %s }\n", settings,
                       residual_net(variant));
}

/* ---- Any number of workers ------------------------------------------------------------------- */

static void train_a_while(struct training *training, int64_t updates)
{
    step(training, updates);
    count_micro_batches(training);
}

/* Trains on one worker and on several, one of which is slow: on each number of workers, or
 * (`all` is false) on another number in each call. Frees the solver. */
static void check(struct lockstep_solver *solver, int64_t updates, bool all, const char *what)
{
    static int turn;
    turn++;
    struct training *alone = start(solver, 1, NULL, NULL);
    train_a_while(alone, updates);
    struct bytes first = snapshot(alone);
    finish(alone);
    for (int i = 1; i < COUNTS; i++) {
        if (!all && i != 1 + turn % (COUNTS - 1))
            continue;
        struct training *training = start(solver, counts[i], NULL, NULL);
        training->schedule.slow_worker = (i + turn) % counts[i];
        train_a_while(training, updates);
        check_same(first, snapshot(training), "%s, %d workers", what, counts[i]);
        finish(training);
    }
    free(first.data);
    lockstep_solver_free(solver);
}

static void check_counts(struct lockstep_solver *solver, int64_t updates, bool all,
                         const char *format, ...) __attribute__((format(printf, 4, 5)));
static void check_counts(struct lockstep_solver *solver, int64_t updates, bool all,
                         const char *format, ...)
{
    char what[300];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    check(solver, updates, all, what);
}

static const int batches[] = {32, 25};
static const int groups[] = {0, 32, 8, 5, 4, 1};
enum { BATCHES = 2, GROUPS = sizeof groups / sizeof *groups };

static void any_workers_give_same_bits_with_any_groups(void **state)
{
    (void)state;
    for (int b = 0; b < BATCHES; b++)
        for (int g = 0; g < GROUPS; g++)
            check_counts(residual_solver(SGD, "", batches[b], groups[g]), 6, true,
                         "batches of %d, groups of %d", batches[b], groups[g]);
}

static void any_workers_give_same_bits_with_several_batches_an_update(void **state)
{
    (void)state;
    for (int b = 0; b < BATCHES; b++)
        for (int g = 0; g < GROUPS; g += 2)
            check_counts(residual_solver(SGD "iter_size: 2", "", batches[b], groups[g]), 4, false,
                         "two batches of %d, groups of %d", batches[b], groups[g]);
}

/* Micro-batches are made of whole groups: one of 8, one of 5, one of 4, two of 2, four of 1. */
static void any_workers_give_same_bits_where_micro_batches_follow_groups(void **state)
{
    (void)state;
    static const int followed[] = {8, 5, 4, 2, 1};
    for (int b = 0; b < BATCHES; b++)
        for (int g = 0; g < 5; g++)
            check_counts(residual_solver(SGD "iter_size: 2 follow_groups: true", "", batches[b],
                                         followed[g]),
                         4, false, "batches of %d that follow groups of %d", batches[b],
                         followed[g]);
}

/* An epoch is 110 samples: its last batch has 14 or 10. */
static void any_workers_give_same_bits_with_short_last_batches(void **state)
{
    (void)state;
    static const char *const lasts[] = {"last_batch: PARTIAL", "last_batch: DROP"};
    for (int i = 0; i < 2; i++)
        for (int b = 0; b < BATCHES; b++)
            for (int g = 0; g < GROUPS; g += 3)
                check_counts(residual_solver(g > 0 ? SGD "iter_size: 3" : SGD, lasts[i], batches[b],
                                             groups[g]),
                             9, false, "%s, batches of %d, groups of %d", lasts[i], batches[b],
                             groups[g]);
}

/* Everything else that an update may have. */
static void any_workers_give_same_bits_with_clipping_adam_and_averages(void **state)
{
    (void)state;
    static const char dropout[] =
        "layer { name: 'drop' type: 'Dropout' bottom: 'pool' top: 'pool'\n"
        "  dropout_param { dropout_ratio: 0.3 } }\n";
    static const char *const settings[] = {
        SGD "clip_gradients: 0.5\n",
        "type: 'Adam' base_lr: 0.002 momentum: 0.9 momentum2: 0.99 lr_policy: 'fixed'\n",
        SGD "weight_average { decay: 0.9 } warmup_iter: 3 clip_gradients: 2 iter_size: 2\n"};
    for (int i = 0; i < 3; i++)
        check_counts(load_solver("%s max_iter: 12 micro_batch: 4 net_param { %s }\n", settings[i],
                                 residual_net((struct variant){.data = "batch_size: 28",
                                                               .dropout = dropout})),
                     6, false, "%s", settings[i]);
}

/* One layer has groups within micro-batches, others exchange statistics: the merged statistics
 * of a micro-batch stay its own until its backward pass. */
static void any_workers_give_same_bits_with_different_groups_in_one_net(void **state)
{
    (void)state;
    static const int firsts[] = {1, 4, 2, 0};
    static const int others[] = {0, 7, 5, 4};
    for (int i = 0; i < 4; i++) {
        const struct variant variant = {.data = "batch_size: 28",
                                        .first = ls_test_text("group: %d", firsts[i]),
                                        .others = ls_test_text("group: %d", others[i])};
        check_counts(load_solver(SGD "max_iter: 12 micro_batch: 4 net_param { %s }\n",
                                 residual_net(variant)),
                     6, false, "groups of %d and of %d", firsts[i], others[i]);
    }
}

/* Labels that the net makes are counted over all batches of an update, which then go through the
 * net together; groups are still those of each batch. */
static void any_workers_give_same_bits_where_the_net_makes_labels(void **state)
{
    (void)state;
    for (int g = 0; g < GROUPS; g++) {
        const char *group = ls_test_text("group: %d", groups[g]);
        const struct variant variant = {
            .data = "batch_size: 25 last_batch: PARTIAL",
            .first = group,
            .others = group,
            .more = "layer { name: 'taught' type: 'ArgMax' bottom: 'ip' top: 'taught' }\n"
                    "layer { name: 'own' type: 'SoftmaxWithLoss' bottom: 'ip'\n"
                    "  bottom: 'taught' top: 'own' loss_weight: 0.3 propagate_down: true\n"
                    "  propagate_down: false loss_param { ignore_label: 4 } }\n"};
        check_counts(load_solver(SGD "max_iter: 12 micro_batch: 4 iter_size: 2 net_param { %s }\n",
                                 residual_net(variant)),
                     8, false, "counted labels, groups of %d", groups[g]);
    }
}

/* What `lockstep verify` does. */
static void verify_passes_nets_with_batch_norm(void **state)
{
    (void)state;
    for (int g = 0; g < GROUPS; g += 3) {
        struct lockstep_solver *solver = residual_solver(SGD "iter_size: 2", "", 25, groups[g]);
        struct lockstep_error *error = lockstep_error_new();
        if (verify_workers(solver, counts, COUNTS, 5, error) != 0)
            fail_msg("%s", lockstep_error_text(error));
        lockstep_error_free(error);
        lockstep_solver_free(solver);
    }
}

/* ---- Interruptions --------------------------------------------------------------------------- */

static void run_until(struct training *training, int64_t iterations)
{
    if (lockstep_trainer_run(training->trainer, iterations, training->error) != 0)
        fail_msg("%s", lockstep_error_text(training->error));
}

/* Stopped after plan[2] of 12 iterations on plan[0] workers, continued on plan[1]. */
static void check_resume(const struct lockstep_solver *solver, struct bytes whole,
                         const int plan[3])
{
    struct training *training = start(solver, plan[0], "cut", NULL);
    char file[64];
    run_until(training, plan[2]);
    finish(training);
    snprintf(file, sizeof file, "cut_iter_%d.safetensors", plan[2]);
    training = start(solver, plan[1], "cut", ls_test_path(file));
    assert_int_equal(lockstep_trainer_iteration(training->trainer), plan[2]);
    run_until(training, -1);
    check_same(whole, snapshot(training), "stopped at %d on %d workers, continued on %d", plan[2],
               plan[0], plan[1]);
    finish(training);
}

static void resume_on_other_workers_gives_same_bits(void **state)
{
    (void)state;
    static const int plans[][3] = {{1, 3, 6}, {5, 2, 1}, {2, 5, 11}, {3, 1, 4}};
    for (int g = 0; g < GROUPS; g += 3) {
        struct lockstep_solver *solver =
            residual_solver(SGD "iter_size: 2 weight_average { decay: 0.9 }", "", 25, groups[g]);
        struct training *training = start(solver, 2, "whole", NULL);
        run_until(training, -1);
        struct bytes whole = snapshot(training);
        finish(training);
        for (size_t p = 0; p < sizeof plans / sizeof *plans; p++)
            check_resume(solver, whole, plans[p]);
        free(whole.data);
        lockstep_solver_free(solver);
    }
}

/* ---- Tests between updates ------------------------------------------------------------------- */

/* A test by the statistics of each batch, of 45 samples in batches of 25 and 20. */
static struct lockstep_solver *tested_solver(const char *fields)
{
    const struct variant variant = {
        .data = "batch_size: 28",
        .first = fields,
        .others = fields,
        .test_data =
            "layer { name: 't' type: 'Data' top: 'data' top: 'label' include { phase: TEST }\n"
            "  transform_param { scale: 0.02 }\n"
            "  data_param { backend: SYNTHETIC batch_size: 25 synthetic_param {\n"
            "    count: 45 first: 110 channels: 3 height: 8 width: 8 } } }\n",
        .more = "layer { name: 'accuracy' type: 'Accuracy' bottom: 'ip' bottom: 'label'\n"
                "  top: 'accuracy' include { phase: TEST } }\n"};
    return load_solver(
        SGD "max_iter: 12 micro_batch: 4 test_interval: 100 weight_average { decay: 0.9 }\n"
            "net_param { %s }\n",
        residual_net(variant));
}

/* The figures of a test phase, as bytes, after those of the tests before. */
static void add_figures(struct training *training, struct bytes *figures)
{
    const struct lockstep_output *outputs;
    size_t count;
    if (lockstep_trainer_evaluate(training->trainer, 0, &outputs, &count, training->error) != 0)
        fail_msg("%s", lockstep_error_text(training->error));
    assert_int_equal(count, 2);
    for (size_t i = 0; i < count; i++) {
        size_t more = outputs[i].count * sizeof(double);
        figures->data = realloc(figures->data, figures->size + more);
        memcpy(figures->data + figures->size, outputs[i].values, more);
        figures->size += more;
    }
}

static struct bytes train_and_test(struct lockstep_solver *solver, int workers,
                                   struct bytes *figures)
{
    struct training *training = start(solver, workers, NULL, NULL);
    for (int round = 0; round < 3; round++) {
        step(training, 2);
        if (figures != NULL)
            add_figures(training, figures);
    }
    struct bytes bytes = snapshot(training);
    finish(training);
    return bytes;
}

static void check_tests(const char *fields, struct bytes *figures)
{
    struct lockstep_solver *solver = tested_solver(fields);
    struct bytes first = train_and_test(solver, 1, NULL);
    *figures = (struct bytes){0};
    for (int i = 0; i < COUNTS; i++) {
        struct bytes mine = {0};
        check_same(first, train_and_test(solver, counts[i], &mine), "tested in between, %d workers",
                   counts[i]);
        if (i == 0)
            *figures = mine;
        else
            check_same(*figures, mine, "figures of a test (%s), %d workers", fields, counts[i]);
    }
    free(first.data);
    lockstep_solver_free(solver);
}

static void test_figures_by_batch_statistics_are_the_same_on_any_workers(void **state)
{
    (void)state;
    struct bytes saved, by_batch, by_group;
    check_tests("", &saved);
    check_tests("use_global_stats: false", &by_batch);
    check_tests("use_global_stats: false group: 6", &by_group);
    assert_false(same_bytes(saved, by_batch));
    assert_false(same_bytes(by_batch, by_group));
    free(saved.data);
    free(by_batch.data);
    free(by_group.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_workers_give_same_bits_with_any_groups),
        cmocka_unit_test(any_workers_give_same_bits_with_several_batches_an_update),
        cmocka_unit_test(any_workers_give_same_bits_where_micro_batches_follow_groups),
        cmocka_unit_test(any_workers_give_same_bits_with_short_last_batches),
        cmocka_unit_test(any_workers_give_same_bits_with_clipping_adam_and_averages),
        cmocka_unit_test(any_workers_give_same_bits_with_different_groups_in_one_net),
        cmocka_unit_test(any_workers_give_same_bits_where_the_net_makes_labels),
        cmocka_unit_test(verify_passes_nets_with_batch_norm),
        cmocka_unit_test(resume_on_other_workers_gives_same_bits),
        cmocka_unit_test(test_figures_by_batch_statistics_are_the_same_on_any_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
