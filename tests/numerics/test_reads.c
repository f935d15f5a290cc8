/* Every sample is read once in each epoch, on any number of workers, and belongs to one micro-
 * batch, which follows from the definition alone.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "trainings/training.h"

static const int counts[] = {1, 2, 3, 5, 8};
enum { COUNTS = sizeof counts / sizeof *counts, SAMPLES = 103, SIDE = 10 };

static const char *const lasts[] = {"WRAP", "PARTIAL", "DROP"};

/* A solver with a test net; `loss` goes into the loss layer. */
static struct lockstep_solver *solver_for(int batch, int iter_size, const char *last,
                                          const char *loss)
{
    static char data[1024];
    snprintf(data, sizeof data,
             "data_param { backend: IDX source: '%s' label_source: '%s' shuffle: true",
             ls_test_path("images"), ls_test_path("labels"));
    return load_solver(
        "base_lr: 0.01 momentum: 0.9 lr_policy: 'fixed' max_iter: 1000 iter_size: %d\n"
        "micro_batch: 3 test_interval: 100\n"
        "net_param {\n"
        "layer { name: 'data' type: 'Data' top: 'data' top: 'label' include { phase: TRAIN }\n"
        "  transform_param { scale: 0.004 } %s batch_size: %d last_batch: %s } }\n"
        "layer { name: 'data' type: 'Data' top: 'data' top: 'label' include { phase: TEST }\n"
        "  transform_param { scale: 0.004 } %s batch_size: 29 } }\n"
        "layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip'\n"
        "  inner_product_param { num_output: 10 weight_filler { type: 'xavier' } } }\n"
        "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' "
        "%s }\n}\n",
        iter_size, data, batch, last, data, loss);
}

static int64_t reads_of(const struct ls_net *net)
{
    return (int64_t)ls_dataset_reads(net->datasets[0]);
}

/* Replaces the prefetcher, which decodes ahead without end, by one that ends with update `end`,
 * so that it is known how much has been decoded ahead. */
static void end_prefetcher_at(struct training *training, int64_t end)
{
    struct ls_trainer *trainer = training->trainer->inner;
    ls_prefetcher_close(trainer->prefetcher);
    trainer->prefetcher_ready = false;
    assert_int_equal(ls_net_prefetcher(trainer->train, end, NULL, &trainer->prefetcher, NULL), 0);
}

/* Samples and micro-batches of updates [begin, end), by the rule of the contract. */
struct work {
    int64_t samples, micro_batches;
};
static struct work expected_work(int batch, int iter_size, int last, int64_t begin, int64_t end)
{
    int64_t per_epoch = last == 1 ? (SAMPLES + batch - 1) / batch : SAMPLES / batch;
    int64_t updates = (per_epoch + iter_size - 1) / iter_size;
    struct work work = {0};
    for (int64_t update = begin; update < end; update++)
        for (int i = 0; i < iter_size; i++) {
            int64_t count = batch, index = update % updates * iter_size + i;
            if (last != 0 && index >= per_epoch)
                break; /* the update ends with the epoch */
            if (last == 1 && (index + 1) * batch > SAMPLES)
                count = SAMPLES - index * batch;
            work.samples += count;
            work.micro_batches += (count + 2) / 3;
        }
    return work;
}

static int64_t all_micro_batches(const struct training *training)
{
    int64_t each[WORKERS_MAX], total = 0;
    lockstep_trainer_micro_batches(training->trainer, each, training->workers);
    for (int w = 0; w < training->workers; w++)
        total += each[w];
    return total;
}

static void check_reads(int batch, int iter_size, int last, int workers)
{
    enum { FIRST = 1, LAST = 15 };
    struct lockstep_solver *solver = solver_for(batch, iter_size, lasts[last], "");
    struct training *training = start(solver, workers, NULL, NULL);
    const struct ls_net *net = training->trainer->inner->train;
    step(training, FIRST); /* the first update runs a micro-batch twice, to measure it */
    end_prefetcher_at(training, LAST);
    int64_t reads = reads_of(net), micro_batches = all_micro_batches(training);
    step(training, LAST - FIRST);
    assert_int_equal(training->repeats, 0);
    struct work work = expected_work(batch, iter_size, last, FIRST, LAST);
    assert_int_equal(reads_of(net) - reads, work.samples);
    assert_int_equal(all_micro_batches(training) - micro_batches, work.micro_batches);
    assert_int_equal(training->trainer->inner->samples,
                     expected_work(batch, iter_size, last, 0, LAST).samples);
    finish(training);
    lockstep_solver_free(solver);
}

static void updates_read_every_sample_once_a_visit(void **state)
{
    (void)state;
    for (int i = 0; i < COUNTS; i++)
        for (int last = 0; last < 3; last++) {
            check_reads(30, 1, last, counts[i]);
            check_reads(25, 3, last, counts[i]);
        }
}

/* What decoding ahead may add, with a prefetcher that never ends: at most its `prefetch` batches
 * (four), and the same once more for what was discarded after the measurement. */
static void decoding_ahead_reads_no_more_than_its_batches(void **state)
{
    (void)state;
    for (int i = 0; i < COUNTS; i++) {
        struct lockstep_solver *solver = solver_for(30, 1, "WRAP", "");
        struct training *training = start(solver, counts[i], NULL, NULL);
        step(training, 40);
        int64_t reads = reads_of(training->trainer->inner->train);
        assert_in_range(reads, 40 * 30, 40 * 30 + 2 * (4 * 30 + 2 * 3));
        finish(training);
        lockstep_solver_free(solver);
    }
}

/* Where valid labels are counted first, labels are read once more, and pictures are not. */
static void counting_labels_reads_labels_again_but_no_pictures(void **state)
{
    (void)state;
    enum { FIRST = 1, LAST = 11 };
    for (int i = 0; i < COUNTS; i++) {
        struct lockstep_solver *solver =
            solver_for(30, 1, "WRAP", "loss_param { ignore_label: 3 }");
        struct training *training = start(solver, counts[i], NULL, NULL);
        const struct ls_net *net = training->trainer->inner->train;
        step(training, FIRST);
        end_prefetcher_at(training, LAST);
        int64_t reads = reads_of(net);
        step(training, LAST - FIRST);
        assert_int_equal(reads_of(net) - reads, 2 * (LAST - FIRST) * 30);
        finish(training);
        lockstep_solver_free(solver);
    }
}

/* A test phase reads every sample once, from the first, each time. */
static void a_test_phase_reads_every_sample_once(void **state)
{
    (void)state;
    for (int i = 0; i < COUNTS; i++) {
        struct lockstep_solver *solver = solver_for(30, 1, "WRAP", "");
        struct training *training = start(solver, counts[i], NULL, NULL);
        const struct ls_net *net = training->trainer->inner->tests[0].net;
        step(training, 2);
        for (int round = 1; round <= 3; round++) {
            const struct lockstep_output *outputs;
            size_t count;
            int64_t before = all_micro_batches(training);
            assert_int_equal(
                lockstep_trainer_evaluate(training->trainer, 0, &outputs, &count, training->error),
                0);
            assert_int_equal(reads_of(net), round * SAMPLES);
            /* batches of 29, 29, 29 and 16 in micro-batches of 3 at most */
            assert_int_equal(all_micro_batches(training) - before, 3 * 10 + 6);
        }
        finish(training);
        lockstep_solver_free(solver);
    }
}

/* A test on the train data reads as many samples as test_on_train says, of all data layers. */
static void a_test_on_some_train_data_takes_them_from_each_data_layer(void **state)
{
    (void)state;
    static const char layer[] =
        "layer { name: '%s' type: 'Data' top: '%s' %s data_param { backend: SYNTHETIC\n"
        "  batch_size: 4 synthetic_param { count: %d channels: 1 height: 8 width: 8 } } }\n";
    char first[400], second[400];
    snprintf(first, sizeof first, layer, "a", "a", "top: 'label'", SAMPLES);
    snprintf(second, sizeof second, layer, "b", "b", "", SAMPLES);
    struct lockstep_solver *solver = load_solver(
        "base_lr: 0.01 lr_policy: 'fixed' max_iter: 10 test_interval: 5 test_on_train: 9\n"
        "net_param {\n%s%s"
        "layer { name: 'sum' type: 'Eltwise' bottom: 'a' bottom: 'b' top: 'sum' }\n"
        "layer { name: 'ip' type: 'InnerProduct' bottom: 'sum' top: 'ip'\n"
        "  inner_product_param { num_output: 10 weight_filler { type: 'xavier' } } }\n"
        "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' "
        "}\n}\n",
        first, second);
    struct training *training = start(solver, 1, NULL, NULL);
    const struct ls_trainer *trainer = training->trainer->inner;
    const size_t last = trainer->test_count - 1; /* behind the definition's own test net */
    const struct lockstep_output *outputs;
    size_t count;
    int64_t before = all_micro_batches(training);
    assert_true(trainer->train_test.there);
    assert_int_equal(trainer->tests[last].net->batching.samples, 9);
    assert_int_equal(trainer->tests[last].batches, 3); /* of 4, 4 and 1 */
    assert_int_equal(
        lockstep_trainer_evaluate(training->trainer, (int)last, &outputs, &count, training->error),
        0);
    assert_int_equal(count, 1);
    assert_true(all_micro_batches(training) > before);
    finish(training);
    lockstep_solver_free(solver);
}

/* The micro-batches that the workers begin: each one of an update once, on any number of
 * workers, in any order. */
struct tally {
    pthread_mutex_t lock;
    int begun[64];
    int most;
};

static void note_micro_batch(void *user, int worker, int micro_batch)
{
    struct tally *tally = user;
    (void)worker;
    pthread_mutex_lock(&tally->lock);
    tally->begun[micro_batch]++;
    tally->most = micro_batch > tally->most ? micro_batch : tally->most;
    pthread_mutex_unlock(&tally->lock);
}

static void each_micro_batch_is_run_once(void **state)
{
    (void)state;
    for (int i = 0; i < COUNTS; i++) {
        struct lockstep_solver *solver = solver_for(31, 2, "WRAP", "");
        struct training *training = start(solver, counts[i], NULL, NULL);
        struct ls_engine *engine = training->trainer->inner->engine;
        struct tally tally = {.lock = PTHREAD_MUTEX_INITIALIZER};
        step(training, 1);
        engine->before_micro_batch = note_micro_batch;
        engine->user = &tally;
        step(training, 7);
        assert_int_equal(training->repeats, 0);
        assert_int_equal(tally.most, 2 * 11 - 1);
        for (int m = 0; m <= tally.most; m++)
            assert_int_equal(tally.begun[m], 7);
        finish(training);
        lockstep_solver_free(solver);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(updates_read_every_sample_once_a_visit),
        cmocka_unit_test(decoding_ahead_reads_no_more_than_its_batches),
        cmocka_unit_test(counting_labels_reads_labels_again_but_no_pictures),
        cmocka_unit_test(a_test_phase_reads_every_sample_once),
        cmocka_unit_test(a_test_on_some_train_data_takes_them_from_each_data_layer),
        cmocka_unit_test(each_micro_batch_is_run_once),
    };
    write_idx_pair(ls_test_path("images"), ls_test_path("labels"), SAMPLES, SIDE);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
