/* Sync points: one forward and one backward for each batch norm whose groups span micro-batches,
 * none where groups fit micro-batches. Impossible settings are refused by name, a record that
 * cannot be read ends the training without a deadlock, and a net that was trained with batch
 * statistics predicts each sample by itself.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "trainings/training.h"
#include "unit/data/picture_files.h"

/* ---- Definitions ----------------------------------------------------------------------------- */

#define SOURCE                                                                                     \
    "layer { name: 'd' type: 'Data' top: 'data' top: 'label'\n"                                    \
    "  transform_param { scale: 0.02 }\n"                                                          \
    "  data_param { backend: SYNTHETIC batch_size: 24\n"                                           \
    "    synthetic_param { count: 100 channels: 3 height: 8 width: 8 } } }\n"
#define NORM(name, bottom, fields)                                                                 \
    "layer { name: '" name "' type: 'BatchNorm' bottom: '" bottom "' top: '" bottom "'\n"          \
    "  batch_norm_param { moving_average_fraction: 0.8 " fields " } }\n"
#define HEAD(bottom)                                                                               \
    "layer { name: 'ip' type: 'InnerProduct' bottom: '" bottom "' top: 'ip'\n"                     \
    "  inner_product_param { num_output: 10 weight_filler { type: 'msra' } } }\n"                  \
    "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' }\n"
#define SOLVER "base_lr: 0.05 momentum: 0.9 lr_policy: 'fixed' max_iter: 20 random_seed: 2 "

/* Three norms on some data; each has fields. */
static const char *three_norms(const char *data, const char *first, const char *second,
                               const char *third)
{
    return ls_test_net("sync_points", LS_TEST_VALUES({"data", data}, {"first", first},
                                                     {"second", second}, {"third", third}));
}

static struct lockstep_solver *three(const char *settings, const char *first, const char *others)
{
    return load_solver(SOLVER "%s net_param { %s }\n", settings,
                       three_norms(SOURCE, first, others, others));
}

/* ---- Counting -------------------------------------------------------------------------------- */

static int count_points(struct lockstep_solver *solver, int *ops)
{
    struct training *training = start(solver, 1, NULL, NULL);
    const struct ls_net *net = training->trainer->inner->train;
    int points = (int)ls_net_first_plan(net)->segments - 1;
    *ops = (int)ls_net_graph(net)->sync_count;
    for (size_t i = 0; i < net->plan_count; i++)
        assert_int_equal(net->plans[i]->plan->segments - 1, points);
    finish(training);
    lockstep_solver_free(solver);
    return points;
}

static void check_points(const char *settings, const char *first, const char *others, int expected)
{
    int ops, points = count_points(three(settings, first, others), &ops);
    if (points != expected || ops != 6)
        fail_msg("%s, %s, %s: %d points, of %d", settings, first, others, points, ops);
}

static void sync_points_stand_where_groups_span_micro_batches(void **state)
{
    (void)state;
    check_points("", "", "", 6);
    check_points("micro_batch: 5", "", "", 6);
    check_points("micro_batch: 4", "group: 7", "group: 7", 6);
    check_points("micro_batch: 6", "group: 9", "group: 9", 6); /* 8, 8, 8 and 6, 6, 6, 6 */
    check_points("micro_batch: 6", "group: 6", "", 4);
    check_points("micro_batch: 4", "group: 1", "group: 4", 0);
    check_points("micro_batch: 6", "group: 3", "group: 2", 0);
    check_points("micro_batch: 5", "group: 5", "group: 5", 0); /* 24 is cut as it is grouped */
    check_points("micro_batch: 24", "", "group: 5", 0);
    check_points("micro_batch: 24", "group: 100", "group: 24", 0);
    check_points("micro_batch: 4 follow_groups: true", "group: 7", "group: 7", 0);
    check_points("micro_batch: 4 follow_groups: true", "group: 2", "group: 2", 0);
    check_points("micro_batch: 4 iter_size: 3", "group: 4", "group: 4", 0);
}

static struct bytes train(struct lockstep_solver *solver, int workers)
{
    struct training *training = start(solver, workers, NULL, NULL);
    step(training, 5);
    size_t elements = 0;
    size_t count = lockstep_trainer_parameter_count(training->trainer);
    for (size_t i = 0; i < count; i++)
        elements += lockstep_trainer_parameter_size(training->trainer, i);
    struct bytes bytes = {.data = malloc(elements * sizeof(float))};
    for (size_t i = 0; i < count; i++) {
        size_t size = lockstep_trainer_parameter_size(training->trainer, i);
        assert_int_equal(lockstep_trainer_read_parameter(training->trainer, i,
                                                         (float *)(void *)(bytes.data + bytes.size),
                                                         size, training->error),
                         0);
        bytes.size += size * sizeof(float);
    }
    finish(training);
    lockstep_solver_free(solver);
    return bytes;
}

/* The same numbers are merged with and without an exchange. Groups that are micro-batches give
 * the bits of micro-batches that are groups; a group larger than the batch is the batch; and a
 * layer whose groups need no exchange has the same bits beside layers that exchange. */
static void exchanged_statistics_have_the_bits_of_local_ones(void **state)
{
    (void)state;
    struct bytes first = train(three("micro_batch: 5", "group: 5", "group: 5"), 1);
    check_same(first, train(three("micro_batch: 5 follow_groups: true", "group: 5", "group: 5"), 3),
               "micro-batches follow groups");
    free(first.data);
    first = train(three("micro_batch: 6", "", ""), 1);
    check_same(first, train(three("micro_batch: 6", "group: 24", "group: 24"), 2), "groups of 24");
    check_same(first, train(three("micro_batch: 6", "group: 900", "group: 4000000"), 3),
               "groups larger than the batch");
    free(first.data);
}

/* ---- What cannot be -------------------------------------------------------------------------- */

static void check_refused(struct lockstep_solver *solver, const char *text)
{
    struct lockstep_train_options options;
    struct lockstep_trainer *trainer = NULL;
    struct lockstep_error *error = lockstep_error_new();
    lockstep_train_options_init(&options);
    options.overwrite = 1;
    options.workers = 2;
    options.snapshot_prefix = ls_test_path("refused");
    int status = lockstep_trainer_create(solver, &options, &trainer, error);
    if (status != LOCKSTEP_DEFINITION || strstr(lockstep_error_text(error), text) == NULL)
        fail_msg("status %d, not '%s': %s", status, text, lockstep_error_text(error));
    assert_null(trainer);
    lockstep_error_free(error);
    lockstep_solver_free(solver);
}

static void groups_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    check_refused(three("follow_groups: true", "group: 4", "group: 5"),
                  "groups of different sizes");
    check_refused(three("follow_groups: true", "", "group: 5"), "groups of different sizes");
    check_refused(three("follow_groups: true", "", ""), "the whole batch");
    check_refused(load_solver(SOLVER "follow_groups: true net_param {\n" SOURCE HEAD("data") "}\n"),
                  "no layer of the train net normalises by the batch");
    check_refused(three("", "group: 3000000000", ""), "group 3000000000");
    check_refused(load_solver(SOLVER "net_param {\n"
                                     "layer { name: 'd' type: 'Data' top: 'data' top: 'label'\n"
                                     "  data_param { backend: SYNTHETIC batch_size: 0 } }\n" NORM(
                                         "n", "data", "") HEAD("data") "}\n"),
                  "a batch of 0 samples");
}

/* Averages that were never made: found when weights are loaded, and reported before anything is
 * computed. */
static void check_no_averages(struct lockstep_solver *solver, const char *text)
{
    struct training *training = start(solver, 2, "none", NULL);
    for (int way = 0; way < 3; way++) {
        int status = way == 0   ? lockstep_trainer_step(training->trainer, 1, training->error)
                     : way == 1 ? lockstep_trainer_run(training->trainer, -1, training->error)
                                : verify_workers(solver, (int[]){1, 2}, 2, 2, training->error);
        if (status != LOCKSTEP_DEFINITION ||
            strstr(lockstep_error_text(training->error), text) == NULL)
            fail_msg("way %d, status %d, not '%s': %s", way, status, text,
                     lockstep_error_text(training->error));
        assert_int_equal(lockstep_trainer_iteration(training->trainer), 0);
    }
    finish(training);
    lockstep_solver_free(solver);
}

static void averages_that_were_never_made_are_told_at_once(void **state)
{
    (void)state;
    check_no_averages(three("", "", "use_global_stats: true"), "n2: normalises by saved averages");
    check_no_averages(three("", "use_global_stats: true", ""), "n1: normalises by saved averages");
}

/* ---- Records that cannot be read ------------------------------------------------------------- */

enum { PICTURES = 30, BROKEN = 17 };

static void write_pictures(void)
{
    char text[PICTURES * 64] = "", name[32];
    for (int i = 0; i < PICTURES; i++) {
        snprintf(name, sizeof name, "%d.png", i);
        write_picture(ls_test_path(name), 8, 8, 3, i * 5);
        if (i == BROKEN) { /* the size can be read, the pixels cannot */
            size_t size;
            char *file = ls_test_read(ls_test_path(name), &size);
            ls_test_write(ls_test_path(name), file, size - 30);
            free(file);
        }
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s %d\n", name, i % 10);
    }
    ls_test_write_text(ls_test_path("list"), text);
}

/* Micro-batch 8 of the first batch (or 2 of the second) has the record: all others wait for it. */
static void check_broken(const char *settings, const char *fields, int batch, int good)
{
    for (int workers = 1; workers <= 3; workers++) {
        const char *data = ls_test_text(
            "layer { name: 'd' type: 'Data' top: 'data' top: 'label'\n"
            "  data_param { backend: IMAGES source: '%s' root_folder: '%s/' batch_size: %d } }\n",
            ls_test_path("list"), ls_test_directory(), batch);
        struct lockstep_solver *solver = load_solver(SOLVER "%s net_param { %s }\n", settings,
                                                     three_norms(data, fields, "", ""));
        struct training *training = start(solver, workers, NULL, NULL);
        if (good > 0)
            step(training, good);
        for (int again = 0; again < 2; again++) {
            int status = lockstep_trainer_step(training->trainer, 1, training->error);
            if (status != LOCKSTEP_DATA ||
                strstr(lockstep_error_text(training->error), "17.png") == NULL)
                fail_msg("%d workers: status %d: %s", workers, status,
                         lockstep_error_text(training->error));
            assert_int_equal(lockstep_trainer_iteration(training->trainer), good);
        }
        finish(training);
        lockstep_solver_free(solver);
    }
}

static void a_broken_record_does_not_hold_workers_at_a_sync_point(void **state)
{
    (void)state;
    write_pictures();
    check_broken("micro_batch: 2", "", 24, 0);
    check_broken("micro_batch: 2", "", 10, 1);
    check_broken("micro_batch: 2 iter_size: 2", "", 10, 0);
    check_broken("micro_batch: 2", "group: 1", 10, 1);
}

/* ---- Prediction ------------------------------------------------------------------------------ */

enum { SAMPLES = 7, INPUT = 3 * 8 * 8, CLASSES = 10 };

static struct lockstep_model *load_model(const char *fields, const char *weights, int workers)
{
    struct lockstep_model_options options;
    struct lockstep_model *model = NULL;
    struct lockstep_error *error = lockstep_error_new();
    const char *path = ls_test_path("net.prototxt");
    char text[8000];
    snprintf(text, sizeof text, "%s", three_norms(SOURCE, fields, fields, fields));
    ls_test_write_text(path, text);
    lockstep_model_options_init(&options);
    options.workers = workers;
    if (lockstep_model_load(path, weights, &options, &model, error) != 0)
        fail_msg("%s", lockstep_error_text(error));
    assert_int_equal(lockstep_model_output_size(model), CLASSES);
    lockstep_error_free(error);
    return model;
}

static void predict(struct lockstep_model *model, const float *input, size_t count, float *output)
{
    struct lockstep_error *error = lockstep_error_new();
    if (lockstep_model_predict(model, input, count, output, error) != 0)
        fail_msg("%s", lockstep_error_text(error));
    lockstep_error_free(error);
}

/* The prediction for a sample does not depend on other samples, on a test of the net by batches
 * before it, or on the number of workers. */
static void check_predictions(const char *fields, const char *weights, float *first)
{
    float input[SAMPLES * INPUT], output[SAMPLES * CLASSES], alone[CLASSES];
    for (uint32_t i = 0; i < SAMPLES * INPUT; i++)
        input[i] = (float)ls_random_below(9, 0, i, 1000) * 0.005F;
    for (int workers = 1; workers <= 5; workers += 2) {
        struct lockstep_model *model = load_model(fields, weights, workers);
        const struct lockstep_output *outputs;
        size_t count;
        predict(model, input, SAMPLES, workers == 1 ? first : output);
        if (workers > 1)
            assert_memory_equal(output, first, sizeof output);
        for (int i = 0; i < SAMPLES; i++) {
            predict(model, input + i * INPUT, 1, alone);
            assert_memory_equal(alone, first + i * CLASSES, sizeof alone);
        }
        assert_int_equal(lockstep_model_test(model, &outputs, &count, NULL, NULL), 0);
        predict(model, input, SAMPLES, output);
        assert_memory_equal(output, first, sizeof output);
        for (int i = 0; i < SAMPLES; i++) {
            float sum = 0;
            for (int c = 0; c < CLASSES; c++)
                sum += first[i * CLASSES + c];
            assert_true(fabsf(sum - 1) < 1e-5F);
        }
        lockstep_model_free(model);
    }
}

static void predictions_use_saved_or_batch_statistics(void **state)
{
    (void)state;
    static float saved[SAMPLES * CLASSES], by_batch[SAMPLES * CLASSES], by_one[SAMPLES * CLASSES];
    struct lockstep_solver *solver = three("micro_batch: 3", "", "");
    struct training *training = start(solver, 2, NULL, NULL);
    step(training, 10);
    char weights[200];
    snprintf(weights, sizeof weights, "%s", ls_test_path("weights.safetensors"));
    assert_int_equal(lockstep_trainer_snapshot(training->trainer, weights, NULL), 0);
    finish(training);
    lockstep_solver_free(solver);
    check_predictions("", weights, saved);
    check_predictions("use_global_stats: false", weights, by_batch);
    check_predictions("use_global_stats: false group: 1", weights, by_one);
    assert_memory_equal(by_batch, by_one, sizeof by_one);
    assert_memory_not_equal(saved, by_batch, sizeof saved);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sync_points_stand_where_groups_span_micro_batches),
        cmocka_unit_test(exchanged_statistics_have_the_bits_of_local_ones),
        cmocka_unit_test(groups_that_make_no_sense_are_refused),
        cmocka_unit_test(averages_that_were_never_made_are_told_at_once),
        cmocka_unit_test(a_broken_record_does_not_hold_workers_at_a_sync_point),
        cmocka_unit_test(predictions_use_saved_or_batch_statistics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
