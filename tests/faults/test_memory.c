/* Memory runs out at every allocation: one after the other fails, in a whole small training and
 * in everything else that the library does (in calls that begin as others do, every third one).
 * Each time the call must end with LOCKSTEP_RESOURCE and a message, or succeed without that memory.
 * It must not crash, leak (sanitizers check that) or leave a file half-written, and the same call
 * must work afterwards.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faults/allocations.h"
#include "support/nets.h"
#include "trainings/masks.h"
#include "trainings/state_layers.h"

static const char solver[] =
    "net: 'net.prototxt' type: 'Adam' base_lr: 0.01 momentum: 0.9 lr_policy: 'multistep' "
    "gamma: 0.5 stepvalue: 1 max_iter: 2 test_interval: 2 display: 1 snapshot: 1 "
    "snapshot_keep: 1 snapshot_best: 'a' snapshot_format: BINARYPROTO weight_average { } "
    "clip_gradients: 5 weight_decay: 0.01 test_on_train: 4 micro_batch: 2 random_seed: 3";

/* Micro-batches that exchange batch statistics, in training and (by its batches) in a test. */
static const char norm_solver[] =
    "net: 'norm.prototxt' base_lr: 0.01 lr_policy: 'fixed' max_iter: 2 test_interval: 2 "
    "micro_batch: 2 iter_size: 2 snapshot_after_train: false";

/* State per sample. */
static const char state_net[] =
    "layer { name: 'd' type: 'Data' top: 'data' top: 'label' data_param { backend: SYNTHETIC\n"
    "  synthetic_param { count: 6 height: 8 width: 8 } batch_size: 2 } }\n"
    "layer { name: 'sum' type: 'RunningSum' bottom: 'data' top: 'sum' }\n"
    "layer { name: 'ip' type: 'InnerProduct' bottom: 'sum' top: 'ip'\n"
    "  inner_product_param { num_output: 10 } }\n"
    "layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'l' }\n";
static const char state_solver[] =
    "net: 'state.prototxt' base_lr: 0.01 lr_policy: 'fixed' max_iter: 2 test_interval: 2 "
    "micro_batch: 1 iter_size: 2 snapshot: 1";

/* ---- What is tried --------------------------------------------------------------------------- */

static int train(const char *prefix, const char *resume, const char *weights,
                 struct lockstep_error *error)
{
    return train_from("solver.prototxt", prefix, resume, weights, error);
}

static int do_train_norm(struct lockstep_error *error)
{
    return train_from("norm_solver.prototxt", "n", NULL, NULL, error);
}

/* From the beginning, and from the snapshot that this leaves. */
static int do_train_with_state(struct lockstep_error *error)
{
    int status = train_from("state_solver.prototxt", "s", NULL, NULL, error);
    return status != 0 ? status
                       : train_from("state_solver.prototxt", "s2",
                                    ls_test_path("s_iter_1.safetensors"), NULL, error);
}

static int do_train(struct lockstep_error *error)
{
    return train("t", NULL, NULL, error);
}

static int do_resume(struct lockstep_error *error)
{
    return train("r", "auto", NULL, error);
}

static int do_start_from_weights(struct lockstep_error *error)
{
    return train("w", NULL, ls_test_path("kept_iter_1.caffemodel"), error);
}

static int do_verify(struct lockstep_error *error)
{
    struct lockstep_solver *definition = NULL;
    struct lockstep_verify_options options;
    const int workers[] = {1, 2};
    lockstep_verify_options_init(&options);
    options.workers = workers;
    options.worker_count = 2;
    options.iterations = 1;
    options.callbacks.event = count_warnings;
    int status = lockstep_solver_load(ls_test_path("solver.prototxt"), NULL, 0, &definition, error);
    if (status == 0)
        status = lockstep_verify(definition, &options, error);
    lockstep_solver_free(definition);
    return status;
}

static int do_use(struct lockstep_error *error)
{
    struct lockstep_model_options options;
    struct lockstep_model *model = NULL;
    const struct lockstep_output *outputs;
    size_t count;
    int64_t samples, shape[3];
    float input[10 * 10] = {0}, output[16];
    int label;
    lockstep_model_options_init(&options);
    options.workers = 2;
    int status =
        lockstep_model_load(ls_test_path("net.prototxt"), ls_test_path("kept_iter_1.safetensors"),
                            &options, &model, error);
    if (status == 0)
        status = lockstep_model_test(model, &outputs, &count, &samples, error);
    if (status == 0)
        status = lockstep_model_predict(model, input, 1, output, error);
    if (status == 0)
        status = lockstep_model_predict_sample(model, 3, shape, NULL, &label, output, error);
    if (status == 0)
        status = lockstep_model_save(model, ls_test_path("saved.safetensors"), error);
    if (status == 0)
        status = lockstep_model_save(model, ls_test_path("saved.caffemodel"), error);
    lockstep_model_free(model);
    return status;
}

static int do_mean(struct lockstep_error *error)
{
    struct lockstep_source_options options;
    const char *source = ls_test_path("cifar");
    double means[16];
    int channels;
    lockstep_source_options_init(&options);
    options.backend = "CIFAR";
    options.source = &source;
    options.source_count = 1;
    return lockstep_mean(&options, ls_test_path("mean.binaryproto"), means, &channels, error);
}

static void training_survives_every_failed_allocation(void **state)
{
    (void)state;
    fail_each("training", do_train, 1);
}

static void training_by_batch_statistics_survives_every_failed_allocation(void **state)
{
    (void)state;
    fail_each("training by batch statistics", do_train_norm, step_of_some());
}

static void training_with_state_per_sample_survives_every_failed_allocation(void **state)
{
    (void)state;
    fail_each("training with state per sample", do_train_with_state, step_of_some());
}

static void resuming_survives_every_failed_allocation(void **state)
{
    (void)state;
    fail_each("resuming", do_resume, step_of_some());
}

static void starting_from_weights_survives_every_failed_allocation(void **state)
{
    (void)state;
    fail_each("starting from weights", do_start_from_weights, step_of_some());
}

static void verifying_survives_every_failed_allocation(void **state)
{
    (void)state;
    /* Of two trainings, each of which the others try through. */
    fail_each("verifying", do_verify, 4);
}

static void using_a_model_survives_every_failed_allocation(void **state)
{
    (void)state;
    fail_each("using a model", do_use, 1);
}

static void computing_a_mean_survives_every_failed_allocation(void **state)
{
    (void)state;
    fail_each("a mean", do_mean, 1);
}

static int prepare(void **state)
{
    (void)state;
    static uint8_t cifar[3 * 3073];
    struct lockstep_error *error = lockstep_error_new();
    ls_test_write(ls_test_path("cifar"), cifar, sizeof cifar);
    const struct ls_shape shape = {.rank = 2, .dim = {10, 27}};
    write_mask(ls_test_path("mask"), "i.weight", &shape, 4);
    ls_test_write_text(ls_test_path("net.prototxt"), ls_test_net("memory_failures", NULL));
    ls_test_write_text(ls_test_path("norm.prototxt"), ls_test_net("memory_failures_norms", NULL));
    ls_test_write_text(ls_test_path("norm_solver.prototxt"), norm_solver);
    use_state_layers();
    ls_test_write_text(ls_test_path("state.prototxt"), state_net);
    ls_test_write_text(ls_test_path("state_solver.prototxt"), state_solver);
    /* One update, to have weights and a snapshot. */
    char text[sizeof solver + 40];
    snprintf(text, sizeof text, "%.*s max_iter: 1 %s", (int)(strstr(solver, "max_iter") - solver),
             solver, strstr(solver, "test_interval"));
    ls_test_write_text(ls_test_path("solver.prototxt"), text);
    int status = train("kept", NULL, NULL, error);
    if (status == 0)
        status = train("r", NULL, NULL, error);
    if (status != 0)
        printf("%s\n", lockstep_error_text(error));
    ls_test_write_text(ls_test_path("solver.prototxt"), solver);
    lockstep_error_free(error);
    return status;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_survives_every_failed_allocation),
        cmocka_unit_test(training_by_batch_statistics_survives_every_failed_allocation),
        cmocka_unit_test(training_with_state_per_sample_survives_every_failed_allocation),
        cmocka_unit_test(resuming_survives_every_failed_allocation),
        cmocka_unit_test(starting_from_weights_survives_every_failed_allocation),
        cmocka_unit_test(verifying_survives_every_failed_allocation),
        cmocka_unit_test(using_a_model_survives_every_failed_allocation),
        cmocka_unit_test(computing_a_mean_survives_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, prepare, NULL);
}
