/* Timing and tuning through the public interface: every layer is listed, all parts add up to the
 * iteration, operations are those of the definition, nothing is written, and mistakes are
 * reported. Speed does not matter.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lockstep/lockstep.h"
#include "support/nets.h"
#include "support/support.h"

enum { BATCH = 12, SIDE = 10, LAYERS = 7 };

static const char *const names[LAYERS] = {"d", "conv", "norm", "relu", "pool", "ip", "loss"};

static struct lockstep_solver *load(const char *rest)
{
    char text[512];
    struct lockstep_solver *solver;
    struct lockstep_error *error = lockstep_error_new();
    snprintf(text, sizeof text,
             "net: 'net.prototxt' base_lr: 0.001 momentum: 0.9 lr_policy: 'fixed' "
             "micro_batch: 4 snapshot_prefix: 'shot' snapshot: 1 %s",
             rest);
    ls_test_write_text(ls_test_path("net.prototxt"), ls_test_net("timing", NULL));
    ls_test_write_text(ls_test_path("solver.prototxt"), text);
    int status = lockstep_solver_load(ls_test_path("solver.prototxt"), NULL, 0, &solver, error);
    if (status != 0)
        fail_msg("%s", lockstep_error_text(error));
    lockstep_error_free(error);
    return solver;
}

static int count_files(void)
{
    char path[512];
    snprintf(path, sizeof path, "%s", ls_test_path("net.prototxt"));
    *strrchr(path, '/') = '\0';
    DIR *folder = opendir(path);
    int count = 0;
    assert_non_null(folder);
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

/* All parts and all that is no layer's, in seconds. */
static double add_up(const struct lockstep_timing *timing)
{
    const struct lockstep_time_total *total = lockstep_timing_total(timing);
    size_t count;
    const struct lockstep_time_layer *layers = lockstep_timing_layers(timing, &count);
    double sum = total->data + total->barriers + total->merging + total->serial + total->overhead;
    for (size_t i = 0; i < count; i++)
        for (int k = 0; k < LOCKSTEP_TIME_KINDS; k++) {
            assert_true(layers[i].part[k].seconds >= 0);
            sum += layers[i].part[k].seconds;
        }
    return sum;
}

static void check_layers(const struct lockstep_timing *timing)
{
    size_t count;
    const struct lockstep_time_layer *layers = lockstep_timing_layers(timing, &count);
    assert_int_equal(count, LAYERS);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(layers[i].name, names[i]);
    const struct lockstep_time_part *conv = layers[1].part, *ip = layers[5].part;
    double products = 2.0 * BATCH * SIDE * SIDE * 16 * 27;
    assert_true(conv[LOCKSTEP_TIME_FORWARD].flops == products);
    assert_true(conv[LOCKSTEP_TIME_BACKWARD_WEIGHTS].flops == products);
    assert_true(conv[LOCKSTEP_TIME_BACKWARD_DATA].flops == 0); /* no layer needs it */
    assert_true(conv[LOCKSTEP_TIME_BACKWARD_DATA].seconds == 0);
    assert_true(ip[LOCKSTEP_TIME_BACKWARD_DATA].flops == 2.0 * BATCH * 400 * 10);
    for (int i = 1; i < 6; i += 4) { /* both of them learn */
        const struct lockstep_time_part *part = layers[i].part;
        assert_true(part[LOCKSTEP_TIME_FORWARD].seconds > 0);
        assert_true(part[LOCKSTEP_TIME_BACKWARD_WEIGHTS].seconds > 0);
        assert_true(part[LOCKSTEP_TIME_REDUCTION].seconds > 0);
        assert_true(part[LOCKSTEP_TIME_UPDATE].seconds > 0);
        assert_true(part[LOCKSTEP_TIME_FORWARD].bytes > 0);
    }
    /* weights and bias with a history: sums of 8 bytes read, 2 x 8 bytes read and written */
    assert_true(conv[LOCKSTEP_TIME_UPDATE].bytes >= 24.0 * (16 * 27 + 16));
}

static void time_with(int workers, const char *rest, int64_t iterations, int64_t measured)
{
    struct lockstep_solver *solver = load(rest);
    struct lockstep_time_options options;
    struct lockstep_timing *timing;
    struct lockstep_error *error = lockstep_error_new();
    int files = count_files();
    lockstep_time_options_init(&options);
    options.workers = workers;
    options.iterations = iterations;
    if (lockstep_time(solver, &options, &timing, error) != 0)
        fail_msg("%s", lockstep_error_text(error));
    lockstep_solver_free(solver); /* a timing keeps what it needs */
    const struct lockstep_time_total *total = lockstep_timing_total(timing);
    assert_int_equal(total->workers, workers);
    assert_int_equal(total->iterations, measured);
    assert_int_equal(total->samples, measured * BATCH);
    assert_int_equal(total->batch, BATCH);
    assert_int_equal(total->micro_batch, 4);
    assert_true(total->fastest <= total->median && total->median <= total->slowest);
    assert_true(total->fastest <= total->seconds && total->seconds <= total->slowest);
    assert_true(total->before.flops > 0 && total->after.bytes > 0);
    assert_true(fabs(add_up(timing) - total->seconds) < 1e-6 + 1e-3 * total->seconds);
    check_layers(timing);
    assert_int_equal(count_files(), files);
    lockstep_timing_free(timing);
    lockstep_error_free(error);
}

static void parts_of_a_timing_add_up_to_the_iteration(void **state)
{
    (void)state;
    time_with(2, "max_iter: 1000", 5, 5);
    time_with(3, "max_iter: 1000 clip_gradients: 1 weight_decay: 0.001", 3, 3);
    time_with(2, "max_iter: 4", 5, 2); /* no further than the rate is known */
    time_with(2, "max_iter: 1", 5, 1);
}

/* Large inner products are computed for all micro-batches of a batch together: their weights are
 * read, and counted, once for each batch; an update has two batches. */
static void gathered_weights_are_read_once_a_batch(void **state)
{
    (void)state;
    static const char large[] =
        "layer { name: 'd' type: 'Data' top: 'data' top: 'label' data_param { backend: SYNTHETIC "
        "batch_size: 12 synthetic_param { count: 60 channels: 3 height: 10 width: 10 } } }"
        "layer { name: 'ip1' type: 'InnerProduct' bottom: 'data' top: 'ip1' inner_product_param { "
        "num_output: 1024 weight_filler { type: 'xavier' } } }"
        "layer { name: 'ip2' type: 'InnerProduct' bottom: 'ip1' top: 'ip2' inner_product_param { "
        "num_output: 2112 weight_filler { type: 'xavier' } } }"
        "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip2' bottom: 'label' top: 'loss' }";
    const double weights = 1024 * 2112 * 4, rest = 24 * (1024 + 2112) * 4 + 6 * 2112 * 4;
    struct lockstep_solver *solver;
    struct lockstep_time_options options;
    struct lockstep_timing *timing;
    ls_test_write_text(ls_test_path("net.prototxt"), large);
    ls_test_write_text(ls_test_path("solver.prototxt"),
                       "net: 'net.prototxt' base_lr: 0.001 lr_policy: 'fixed' micro_batch: 4 "
                       "iter_size: 2 max_iter: 100");
    assert_int_equal(lockstep_solver_load(ls_test_path("solver.prototxt"), NULL, 0, &solver, NULL),
                     0);
    lockstep_time_options_init(&options);
    options.workers = 2;
    options.iterations = 2;
    assert_int_equal(lockstep_time(solver, &options, &timing, NULL), 0);
    size_t count;
    const struct lockstep_time_part *part = lockstep_timing_layers(timing, &count)[2].part;
    assert_int_equal(count, 4);
    double forward = part[LOCKSTEP_TIME_FORWARD].bytes,
           backward = part[LOCKSTEP_TIME_BACKWARD_DATA].bytes;
    assert_true(forward >= 2 * weights && forward <= 2 * weights + rest);
    assert_true(backward >= 2 * weights && backward <= 2 * weights + rest);
    lockstep_timing_free(timing);
    lockstep_solver_free(solver);
}

/* The reported micro-batches are the actual ones where they follow the groups of batch norm. */
static void timed_micro_batches_follow_groups(void **state)
{
    (void)state;
    static const char grouped[] =
        "layer { name: 'd' type: 'Data' top: 'data' top: 'label' data_param { backend: SYNTHETIC "
        "batch_size: 16 synthetic_param { count: 64 height: 8 width: 8 } } }"
        "layer { name: 'bn' type: 'BatchNorm' bottom: 'data' top: 'bn' batch_norm_param { "
        "group: 4 } }"
        "layer { name: 'ip' type: 'InnerProduct' bottom: 'bn' top: 'ip' inner_product_param { "
        "num_output: 10 weight_filler { type: 'xavier' } } }"
        "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' }";
    struct lockstep_solver *solver;
    struct lockstep_time_options options;
    struct lockstep_timing *timing;
    ls_test_write_text(ls_test_path("net.prototxt"), grouped);
    ls_test_write_text(ls_test_path("solver.prototxt"),
                       "net: 'net.prototxt' base_lr: 0.001 lr_policy: 'fixed' max_iter: 100 "
                       "follow_groups: true");
    assert_int_equal(lockstep_solver_load(ls_test_path("solver.prototxt"), NULL, 0, &solver, NULL),
                     0);
    lockstep_time_options_init(&options);
    options.iterations = 2;
    assert_int_equal(lockstep_time(solver, &options, &timing, NULL), 0);
    assert_int_equal(lockstep_timing_total(timing)->micro_batch, 4);
    lockstep_timing_free(timing);
    lockstep_solver_free(solver);
}

static void options_of_timing_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    struct lockstep_solver *solver = load("max_iter: 10");
    struct lockstep_time_options options;
    struct lockstep_timing *timing;
    struct lockstep_probe probe;
    lockstep_time_options_init(&options);
    options.workers = 5000;
    assert_int_equal(lockstep_time(solver, &options, &timing, NULL), LOCKSTEP_USAGE);
    assert_null(timing);
    lockstep_time_options_init(&options);
    options.iterations = -1;
    assert_int_equal(lockstep_time(solver, &options, &timing, NULL), LOCKSTEP_USAGE);
    lockstep_time_options_init(&options);
    options.struct_size = 1;
    assert_int_equal(lockstep_time(solver, &options, &timing, NULL), LOCKSTEP_USAGE);
    lockstep_solver_free(solver);
    assert_int_equal(lockstep_probe(-1, &probe, NULL), LOCKSTEP_USAGE);
    assert_int_equal(lockstep_probe(1, &probe, NULL), 0);
    assert_int_equal(probe.cores, 1);
}

static enum lockstep_request stop(void *user)
{
    (void)user;
    return LOCKSTEP_SNAPSHOT_AND_STOP;
}

static void tuning_times_each_point_and_writes_nothing(void **state)
{
    (void)state;
    struct lockstep_solver *solver = load("max_iter: 1000");
    struct lockstep_tune_options options;
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_tune_point points[] = {
        {.workers = 2},
        {.workers = 1, .batch = 24, .micro_batch = 3},
        {.workers = 2, .batch = 200000000, .micro_batch = 100000000}};
    int files = count_files();
    lockstep_tune_options_init(&options);
    options.seconds = 0.05;
    if (lockstep_tune(solver, &options, points, 3, error) != 0)
        fail_msg("%s", lockstep_error_text(error));
    assert_int_equal(points[0].batch, BATCH);
    assert_int_equal(points[0].micro_batch, 4);
    assert_int_equal(points[1].batch, 24);
    assert_int_equal(points[1].micro_batch, 3);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(points[i].status, 0);
        assert_true(points[i].slowest > 0 && points[i].slowest <= points[i].median &&
                    points[i].median <= points[i].fastest);
        assert_true(points[i].memory > 0);
    }
    assert_int_not_equal(points[2].status, 0); /* it would fill any machine */
    assert_true(points[2].reason[0] != '\0');
    assert_true(points[2].median == 0);
    points[0].batch = -1;
    assert_int_equal(lockstep_tune(solver, &options, points, 1, error), LOCKSTEP_USAGE);
    assert_int_equal(lockstep_tune(solver, &options, points, 0, error), LOCKSTEP_USAGE);
    points[0].batch = 0;
    options.callbacks.poll = stop;
    assert_int_equal(lockstep_tune(solver, &options, points, 1, error), LOCKSTEP_STOPPED);
    assert_int_equal(count_files(), files);
    lockstep_solver_free(solver);
    lockstep_error_free(error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_of_a_timing_add_up_to_the_iteration),
        cmocka_unit_test(gathered_weights_are_read_once_a_batch),
        cmocka_unit_test(timed_micro_batches_follow_groups),
        cmocka_unit_test(options_of_timing_that_make_no_sense_are_refused),
        cmocka_unit_test(tuning_times_each_point_and_writes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
