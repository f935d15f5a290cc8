/* The same training gives the same snapshot, byte for byte, on any number of workers: with slow
 * workers, after a resume, and with tests in between.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "trainings/training.h"

enum { SAMPLES = 1003 };

static const int counts[] = {1, 2, 3, 4, 5, 8};
enum { COUNTS = sizeof counts / sizeof *counts };

/* ---- Definitions ----------------------------------------------------------------------------- */

/* Random crops out of a padded picture, mirrored or not, in a new order every epoch. */
#define AUGMENTED "transform_param { scale: 0.0078 mirror: true pad: 2 crop_size: %d } "

#define LOSS                                                                                       \
    "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip2' bottom: 'label' top: 'loss' }\n"

/* The net that the tests train, on some data. */
static const char *net_on(const char *data, const char *losses)
{
    return ls_test_net("random_numbers", LS_TEST_VALUES({"data", data}, {"losses", losses}));
}

#define SGD "base_lr: 0.02 momentum: 0.9 weight_decay: 0.0005\n"

static const char *const optimizers[] = {
    SGD,
    "type: 'Nesterov' base_lr: 0.01 momentum: 0.9 weight_decay: 0.001 regularization_type: 'L1'\n",
    "type: 'Adam' base_lr: 0.002 momentum: 0.9 momentum2: 0.99 weight_decay: 0.0005\n",
    "type: 'AdamW' base_lr: 0.002 momentum: 0.9 weight_decay: 0.05 weight_average { decay: 0.9 }\n",
    (SGD "clip_gradients: 0.7 average_loss: 7\n"),
    (SGD "weight_average { decay: 0.97 } clip_gradients: 2 warmup_iter: 5\n"),
    "type: 'AdaGrad' base_lr: 0.01\n",
    "type: 'RMSProp' base_lr: 0.001 rms_decay: 0.95 delta: 1e-4\n",
    "type: 'AdaDelta' base_lr: 1 momentum: 0.95 delta: 1e-5\n",
    "type: 'Lion' base_lr: 0.0005 momentum: 0.9 momentum2: 0.98 weight_decay: 0.1\n",
    "type: 'LAMB' base_lr: 0.005 momentum: 0.9 momentum2: 0.99 weight_decay: 0.1\n",
    ("type: 'Muon' base_lr: 0.01 momentum: 0.9 weight_decay: 0.1\n"
     "param_group { max_axes: 1 type: 'AdamW' momentum: 0.9 }\n"),
    "type: 'Adafactor' base_lr: 0.5 weight_decay: 0.01\n",
};
enum { OPTIMIZERS = sizeof optimizers / sizeof *optimizers };

/* A solver for the pictures of 16 x 16; the data layer's further fields are given. */
static struct lockstep_solver *idx_solver(const char *settings, const char *fields)
{
    const char *data =
        ls_test_text("layer { name: 'digits' type: 'Data' top: 'data' top: 'label' " AUGMENTED
                     "data_param { backend: IDX source: '%s' label_source: '%s' %s } }",
                     17, ls_test_path("images"), ls_test_path("labels"), fields);
    return load_solver(
        "%s lr_policy: 'inv' gamma: 0.01 power: 0.75 max_iter: 40 random_seed: 5 micro_batch: 12\n"
        "net_param { %s }\n",
        settings, net_on(data, LOSS));
}

static struct lockstep_solver *plain_idx_solver(const char *optimizer)
{
    char settings[512];
    snprintf(settings, sizeof settings, "%s", optimizer);
    return idx_solver(settings, "batch_size: 100 shuffle: true");
}

static struct lockstep_solver *cifar_solver(const char *settings)
{
    const char *data =
        ls_test_text("layer { name: 'cifar' type: 'Data' top: 'data' top: 'label' " AUGMENTED
                     "data_param { backend: CIFAR source: '%s' batch_size: 100 shuffle: true } }",
                     28, ls_test_path("cifar.bin"));
    return load_solver("%s lr_policy: 'step' gamma: 0.5 stepsize: 20 max_iter: 50 micro_batch: 12\n"
                       "net_param { %s }\n",
                       settings, net_on(data, LOSS));
}

/* ---- Comparisons ----------------------------------------------------------------------------- */

/* Trains with each number of workers; snapshots and numbers of micro-batches must be the same. */
static void check_counts(const struct lockstep_solver *solver, int64_t updates, const char *what)
{
    struct bytes first = {0};
    int64_t micro_batches = 0;
    for (int i = 0; i < COUNTS; i++) {
        struct training *training = start(solver, counts[i], NULL, NULL);
        step(training, updates);
        int64_t total = count_micro_batches(training);
        struct bytes bytes = snapshot(training);
        finish(training);
        if (i == 0) {
            first = bytes;
            micro_batches = total;
            continue;
        }
        check_same(first, bytes, "%s, %d workers", what, counts[i]);
        assert_int_equal(total, micro_batches);
    }
    free(first.data);
}

static void any_workers_give_same_bits_over_fifty_iterations(void **state)
{
    (void)state;
    struct lockstep_solver *solver = cifar_solver(SGD);
    check_counts(solver, 50, "50 iterations");
    lockstep_solver_free(solver);
}

/* What `lockstep verify` does. */
static void verify_passes_and_refuses_useless_options(void **state)
{
    (void)state;
    struct lockstep_solver *solver = cifar_solver(SGD "iter_size: 2");
    struct lockstep_error *error = lockstep_error_new();
    if (verify_workers(solver, counts, COUNTS, 6, error) != 0)
        fail_msg("%s", lockstep_error_text(error));
    assert_int_equal(verify_workers(solver, counts, 1, 6, error), LOCKSTEP_USAGE);
    assert_int_equal(verify_workers(solver, (int[]){1, 0}, 2, 6, error), LOCKSTEP_USAGE);
    lockstep_error_free(error);
    lockstep_solver_free(solver);
}

/* Batches that divide the data or not, that end with the epoch, wrap, or drop the rest. */
static void any_workers_give_same_bits_with_any_batch_and_last_batch(void **state)
{
    (void)state;
    static const char *const lasts[] = {"WRAP", "PARTIAL", "DROP"};
    int optimizer = 0;
    for (int batch = 97; batch <= 100; batch += 3)
        for (int iter_size = 1; iter_size <= 3; iter_size += 2)
            for (int last = 0; last < 3; last++) {
                char settings[256], data[96], what[400];
                snprintf(settings, sizeof settings, "%s iter_size: %d",
                         optimizers[optimizer++ % OPTIMIZERS], iter_size);
                snprintf(data, sizeof data, "batch_size: %d shuffle: true last_batch: %s", batch,
                         lasts[last]);
                snprintf(what, sizeof what, "%s, %s", settings, data);
                struct lockstep_solver *solver = idx_solver(settings, data);
                check_counts(solver, iter_size == 1 ? 34 : 12, what); /* three epochs */
                lockstep_solver_free(solver);
            }
}

static void any_workers_give_same_bits_with_every_optimizer(void **state)
{
    (void)state;
    for (int i = 0; i < OPTIMIZERS; i++) {
        struct lockstep_solver *solver = plain_idx_solver(optimizers[i]);
        check_counts(solver, 12, optimizers[i]);
        lockstep_solver_free(solver);
    }
}

/* Samples without a valid label count nowhere; the labels of an update are counted before it. */
static void any_workers_give_same_bits_with_ignored_labels(void **state)
{
    (void)state;
    static const char data[] =
        "layer { name: 'drawn' type: 'Data' top: 'data' top: 'label'\n"
        "  transform_param { scale: 0.004 }\n"
        "  data_param { backend: SYNTHETIC batch_size: 90\n"
        "    synthetic_param { count: 400 height: 20 width: 20 channels: 2 } } }\n";
    static const char losses[] =
        "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip2' bottom: 'label'\n"
        "  top: 'loss' loss_param { ignore_label: 3 normalization: VALID } }\n"
        "layer { name: 'second' type: 'SoftmaxWithLoss' bottom: 'ip2' bottom: 'label'\n"
        "  top: 'second' loss_weight: 0.3 loss_param { ignore_label: 4 } }\n";
    struct lockstep_solver *solver =
        load_solver(SGD "lr_policy: 'fixed' max_iter: 20 iter_size: 2 micro_batch: 11\n"
                        "net_param { %s }\n",
                    net_on(data, losses));
    check_counts(solver, 15, "ignored labels");
    lockstep_solver_free(solver);
}

/* ---- Time ------------------------------------------------------------------------------------ */

/* One worker is slow: others run the micro-batches that it would have run. */
static void a_slow_worker_changes_no_bit(void **state)
{
    (void)state;
    struct lockstep_solver *solver = plain_idx_solver(SGD);
    struct training *alone = start(solver, 1, NULL, NULL);
    step(alone, 10);
    struct bytes first = snapshot(alone);
    finish(alone);
    for (int workers = 2; workers <= 4; workers++)
        for (int slow_worker = 0; slow_worker < workers; slow_worker++) {
            struct training *training = start(solver, workers, NULL, NULL);
            training->schedule.slow_worker = slow_worker;
            step(training, 10);
            count_micro_batches(training);
            check_same(first, snapshot(training), "worker %d of %d is slow", slow_worker, workers);
            finish(training);
        }
    free(first.data);
    lockstep_solver_free(solver);
}

/* In each update one micro-batch is held back until the last one has begun: the order certainly
 * differs from that on one worker. (The mutants run this test, too.) */
static void a_micro_batch_held_back_changes_no_bit(void **state)
{
    (void)state;
    struct lockstep_solver *solver = plain_idx_solver(SGD);
    struct training *alone = start(solver, 1, NULL, NULL);
    step(alone, 8);
    struct bytes first = snapshot(alone);
    finish(alone);
    for (int i = 1; i < COUNTS; i++) {
        struct training *training = start(solver, counts[i], NULL, NULL);
        training->schedule.last = 8; /* 100 samples make 9 micro-batches */
        step(training, 8);
        count_micro_batches(training);
        check_same(first, snapshot(training), "held back, %d workers", counts[i]);
        assert_int_equal(training->schedule.held, 8);
        finish(training);
    }
    free(first.data);
    lockstep_solver_free(solver);
}

/* ---- Interruptions --------------------------------------------------------------------------- */

static void run_until(struct training *training, int64_t iterations)
{
    if (lockstep_trainer_run(training->trainer, iterations, training->error) != 0)
        fail_msg("%s", lockstep_error_text(training->error));
    count_micro_batches(training);
}

/* Stopped after plan[2] of 40 iterations on plan[0] workers, continued on plan[1]. */
static void check_resume(const struct lockstep_solver *solver, struct bytes whole, const char *name,
                         const int plan[3])
{
    int before = plan[0], after = plan[1], half = plan[2];
    char prefix[64], file[96];
    snprintf(prefix, sizeof prefix, "%s_%d_%d", name, before, after);
    snprintf(file, sizeof file, "%s_iter_%d.safetensors", prefix, half);
    struct training *training = start(solver, before, prefix, NULL);
    run_until(training, half);
    finish(training);
    training = start(solver, after, prefix, after % 2 ? "auto" : ls_test_path(file));
    assert_int_equal(lockstep_trainer_iteration(training->trainer), half);
    run_until(training, -1);
    finish(training);
    snprintf(file, sizeof file, "%s_iter_40.safetensors", prefix);
    check_same(whole, read_bytes(ls_test_path(file)),
               "stopped at %d on %d workers, continued on %d", half, before, after);
}

/* Denormal intermediate results are flushed to zero on every worker. */
static void any_workers_give_same_bits_with_denormal_numbers(void **state)
{
    (void)state;
    struct lockstep_solver *solver =
        load_solver(SGD "lr_policy: 'fixed' max_iter: 20 micro_batch: 12\n"
                        "net_param { %s }\n",
                    ls_test_net("denormals", NULL));
    check_counts(solver, 6, "denormal numbers");
    lockstep_solver_free(solver);
}

static void resume_on_other_workers_gives_same_bits(void **state)
{
    (void)state;
    static const int plans[][3] = {{1, 3, 20}, {5, 2, 20}, {2, 8, 13}, {8, 1, 37}, {3, 4, 1}};
    for (int i = 0; i < 3; i++) {
        struct lockstep_solver *solver = plain_idx_solver(optimizers[2 * i + 1]);
        char name[16], file[64];
        snprintf(name, sizeof name, "solver%d", i);
        snprintf(file, sizeof file, "%s_iter_40.safetensors", name);
        struct training *training = start(solver, 2, name, NULL);
        run_until(training, -1);
        finish(training);
        struct bytes whole = read_bytes(ls_test_path(file));
        for (size_t p = 0; p < sizeof plans / sizeof *plans; p++)
            if (p < 2 || (int)p == i + 2)
                check_resume(solver, whole, name, plans[p]);
        free(whole.data);
        lockstep_solver_free(solver);
    }
}

/* ---- Tests between updates ------------------------------------------------------------------- */

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

/* A test phase runs in the trainer's memory, with averaged weights in place of its weights, and
 * leaves no trace; its figures are the same on any number of workers. */
static void test_phases_leave_no_trace_and_have_same_figures_on_any_workers(void **state)
{
    (void)state;
    const char *data = ls_test_text(
        "layer { name: 'digits' type: 'Data' top: 'data' top: 'label' include { phase: TRAIN "
        "} " AUGMENTED
        "data_param { backend: IDX source: '%s' label_source: '%s' batch_size: 100 } }\n"
        "layer { name: 'held' type: 'Data' top: 'data' top: 'label' include { phase: TEST }\n"
        "  transform_param { scale: 0.0078 crop_size: 17 pad: 2 }\n"
        "  data_param { backend: IDX source: '%s' label_source: '%s' batch_size: 60 } }\n",
        17, ls_test_path("images"), ls_test_path("labels"), ls_test_path("images"),
        ls_test_path("labels"));
    /* (Sums of plain logarithms would be exact in any order.) */
    static const char losses[] =
        "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip2' bottom: 'label'\n"
        "  top: 'loss' loss_param { label_smoothing: 0.1 } }\n"
        "layer { name: 'accuracy' type: 'Accuracy' bottom: 'ip2' bottom: 'label'\n"
        "  top: 'accuracy' include { phase: TEST } }\n";
    struct lockstep_solver *solver = load_solver(
        SGD "weight_average { decay: 0.9 } lr_policy: 'fixed' max_iter: 20 test_interval: 100\n"
            "micro_batch: 12\n"
            "net_param { %s }\n",
        net_on(data, losses));
    struct training *untested = start(solver, 1, NULL, NULL);
    step(untested, 9);
    struct bytes first = snapshot(untested), figures = {0};
    finish(untested);
    for (int i = 0; i < COUNTS; i++) {
        struct training *training = start(solver, counts[i], NULL, NULL);
        struct bytes mine = {0};
        for (int round = 0; round < 3; round++) {
            step(training, 3);
            /* In each batch of the test micro-batch 1 is begun after micro-batch 3, so that they
             * end in another order. */
            training->schedule.last = counts[i] > 1 ? 3 : 0;
            add_figures(training, &mine);
            training->schedule.last = 0;
        }
        check_same(first, snapshot(training), "tested in between, %d workers", counts[i]);
        if (i == 0)
            figures = mine;
        else
            check_same(figures, mine, "figures of a test, %d workers", counts[i]);
        finish(training);
    }
    free(first.data);
    free(figures.data);
    lockstep_solver_free(solver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_workers_give_same_bits_over_fifty_iterations),
        cmocka_unit_test(verify_passes_and_refuses_useless_options),
        cmocka_unit_test(any_workers_give_same_bits_with_any_batch_and_last_batch),
        cmocka_unit_test(any_workers_give_same_bits_with_every_optimizer),
        cmocka_unit_test(any_workers_give_same_bits_with_ignored_labels),
        cmocka_unit_test(a_slow_worker_changes_no_bit),
        cmocka_unit_test(a_micro_batch_held_back_changes_no_bit),
        cmocka_unit_test(resume_on_other_workers_gives_same_bits),
        cmocka_unit_test(any_workers_give_same_bits_with_denormal_numbers),
        cmocka_unit_test(test_phases_leave_no_trace_and_have_same_figures_on_any_workers),
    };
    write_idx_pair(ls_test_path("images"), ls_test_path("labels"), SAMPLES, 16);
    write_cifar(ls_test_path("cifar.bin"), SAMPLES);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
