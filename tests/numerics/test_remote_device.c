/* A device with memory and streams of its own (trainings/remote_device.h): trainings give the bits
 * of the CPU on any number of workers and ranks, host code touches nothing that is not the host's,
 * a call that fails ends the job with a message, on all ranks, and what a failed update leaves is
 * the iteration before, or nothing.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <unistd.h>

#include "engine/pass.h"
#include "trainings/data_files.h"
#include "trainings/masks.h"
#include "trainings/ranks.h"
#include "trainings/remote_device.h"
#include "trainings/state_layers.h"

enum { SAMPLES = 61, UPDATES = 3 };

static int setup(void **state)
{
    (void)state;
    use_state_layers();
    write_idx_pair(ls_test_path("images"), ls_test_path("labels"), SAMPLES, 12);
    write_mask(ls_test_path("mask.safetensors"), "c1.weight",
               &(const struct ls_shape){.rank = 4, .dim = {6, 1, 3, 3}}, 4);
    return 0;
}

struct net {
    const char *name, *settings, *data;
    const char *file;           /* of tests/nets */
    const char *first, *second; /* fields of its norms; NULL: it has none */
    bool masked;                /* by the file "mask.safetensors" */
};

static const struct net nets[] = {
    {"convolutions", "micro_batch: 5 clip_gradients: 0.5 weight_average { decay: 0.9 }",
     "batch_size: 24", "ranks_plain", NULL, NULL, false},
    {"statistics of the batch", "micro_batch: 5", "batch_size: 22", "ranks_normed", "", "", false},
    {"statistics of groups", "micro_batch: 5 type: 'Adam'", "batch_size: 20", "ranks_normed",
     "group: 5", "group: 1", false},
    {"labels counted before", "micro_batch: 3", "batch_size: 20 last_batch: PARTIAL",
     "ranks_counted", NULL, NULL, false},
    {"labels counted on the way", "micro_batch: 3 iter_size: 2", "batch_size: 20", "ranks_taught",
     NULL, NULL, false},
    {"gathered products",
     "micro_batch: 3 iter_size: 2 clip_gradients: 0.5 display: 1 weight_decay: 0.001 "
     "regularization_type: 'L1'",
     "batch_size: 20", "ranks_gathered", NULL, NULL, false},
    {"state per sample", "micro_batch: 3", "batch_size: 20 last_batch: PARTIAL", "sample_states",
     "layer { name: 'm' type: 'ReLU' bottom: 'pool' top: 'middle' }", NULL, false},
    {"masks", "micro_batch: 5 clip_gradients: 0.5 weight_average { decay: 0.9 }", "batch_size: 24",
     "ranks_plain", NULL, NULL, true},
    {"whole matrices",
     "micro_batch: 5 type: 'Muon' weight_average { decay: 0.9 } param_group { max_axes: 1 type: "
     "'SGD' }",
     "batch_size: 24", "ranks_gathered", NULL, NULL, false},
    {"moments of rows", "micro_batch: 5 type: 'Adafactor' weight_average { decay: 0.9 }",
     "batch_size: 24", "ranks_gathered", NULL, NULL, false},
    {"masked matrices", "micro_batch: 5 type: 'Muon' param_group { max_axes: 1 type: 'SGD' }",
     "batch_size: 24", "ranks_plain", NULL, NULL, true},
};
enum { NETS = sizeof nets / sizeof *nets };

static struct lockstep_solver *make_solver(const struct net *net)
{
    const char *data =
        ls_test_text("layer { name: 'd' type: 'Data' top: 'data' top: 'label'\n"
                     "  transform_param { scale: 0.0078 mirror: true }\n"
                     "  data_param { backend: IDX source: '%s' label_source: '%s' %s } }\n",
                     ls_test_path("images"), ls_test_path("labels"), net->data);
    const char *definition = ls_test_net(
        net->file, LS_TEST_VALUES({"data", data}, {"first", net->first}, {"second", net->second}));
    return load_solver(
        "base_lr: 0.05 momentum: 0.9 lr_policy: 'fixed' max_iter: 40 random_seed: 3 test_iter: 2\n"
        "test_interval: 100 test_initialization: false %s %s\n"
        "net_param { %s }\n",
        net->settings,
        net->masked ? ls_test_text("mask: '%s'", ls_test_path("mask.safetensors")) : "",
        definition);
}

/* ---- The same bits --------------------------------------------------------------------------- */

static const struct shape {
    int ranks, workers[RANKS_MAX];
    bool dynamic;
    double audit;
} shapes[] = {
    {.ranks = 1, .workers = {1}},
    {.ranks = 1, .workers = {3}, .audit = 1},
    {.ranks = 2, .workers = {2, 1}},
    {.ranks = 3, .workers = {1, 1, 2}, .dynamic = true},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static struct job job_of(const struct lockstep_solver *solver, const struct shape *shape)
{
    struct job job = {.solver = solver,
                      .ranks = shape->ranks,
                      .updates = UPDATES,
                      .dynamic = shape->dynamic,
                      .audit = shape->audit};
    memcpy(job.workers, shape->workers, sizeof job.workers);
    return job;
}

static void trainings_on_it_give_the_bits_of_the_cpu(void **state)
{
    (void)state;
    remote_fail_nothing();
    for (int n = 0; n < NETS; n++) {
        struct lockstep_solver *solver = make_solver(&nets[n]);
        remote_use(false);
        struct bytes expected = run_alone(solver, UPDATES);
        remote_use(true);
        for (int s = 0; s < SHAPES; s++) {
            struct job job = job_of(solver, &shapes[s]);
            check_job(&job, expected, nets[n].name);
            if (remote_bytes() != 0)
                fail_msg("%s: %zu bytes are not freed", nets[n].name, remote_bytes());
        }
        remote_use(false);
        free(expected.data);
        lockstep_solver_free(solver);
    }
}

/* Snapshots are written and read through copies. */
static void snapshots_of_it_are_those_of_the_cpu(void **state)
{
    (void)state;
    remote_fail_nothing();
    for (int n = 0; n < NETS; n++) {
        struct lockstep_solver *solver = make_solver(&nets[n]);
        struct bytes bytes[2];
        const char *cut = ls_test_path("cut.safetensors");
        for (int remote = 0; remote < 2; remote++) {
            remote_use(remote == 1);
            struct training *training = start(solver, 2, NULL, NULL);
            step(training, 1);
            assert_int_equal(lockstep_trainer_snapshot(training->trainer, cut, training->error), 0);
            finish(training);
            training = start(solver, 1, NULL, cut);
            step(training, 1);
            bytes[remote] = snapshot(training);
            finish(training);
        }
        remote_use(false);
        check_same(bytes[0], bytes[1], "%s", nets[n].name);
        free(bytes[0].data);
        lockstep_solver_free(solver);
    }
}

/* What a model predicts for a picture. */
static struct bytes predict(const char *weights)
{
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_model_options options;
    struct lockstep_model *model = NULL;
    float picture[2 * 144];
    for (int i = 0; i < 2 * 144; i++)
        picture[i] = (float)(i % 19) / 19;
    lockstep_model_options_init(&options);
    options.workers = 2;
    if (lockstep_model_load(ls_test_path("deploy.prototxt"), weights, &options, &model, error) != 0)
        fail_msg("%s", lockstep_error_text(error));
    struct bytes bytes = {.size = 2 * lockstep_model_output_size(model) * sizeof(float)};
    bytes.data = malloc(bytes.size);
    if (lockstep_model_predict(model, picture, 2, (float *)(void *)bytes.data, error) != 0)
        fail_msg("%s", lockstep_error_text(error));
    lockstep_model_free(model);
    lockstep_error_free(error);
    return bytes;
}

static void predictions_on_it_are_those_of_the_cpu(void **state)
{
    (void)state;
    const char *weights = ls_test_path("predict.safetensors");
    const char *input = "layer { name: 'd' type: 'Input' top: 'data' "
                        "input_param { shape { dim: [1, 1, 12, 12] } } }\n";
    const char *rest = "layer { name: 'c' type: 'Convolution' bottom: 'data' top: 'c'\n"
                       "  convolution_param { num_output: 5 kernel_size: 3\n"
                       "    weight_filler { type: 'msra' } } }\n"
                       "layer { name: 'n' type: 'BatchNorm' bottom: 'c' top: 'n' }\n"
                       "layer { name: 'ip' type: 'InnerProduct' bottom: 'n' top: 'ip'\n"
                       "  inner_product_param { num_output: 10\n"
                       "    weight_filler { type: 'xavier' } } }\n";
    remote_fail_nothing();
    ls_test_write_text(ls_test_path("deploy.prototxt"), ls_test_text("%s%s", input, rest));
    struct lockstep_solver *solver = load_solver(
        "base_lr: 0.05 lr_policy: 'fixed' max_iter: 4 net_param { %s %s }",
        ls_test_text("layer { name: 'd' type: 'Data' top: 'data' top: 'label'\n"
                     "  data_param { backend: IDX source: '%s' label_source: '%s'\n"
                     "    batch_size: 20 } }\n",
                     ls_test_path("images"), ls_test_path("labels")),
        ls_test_text("%slayer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' "
                     "top: 'l' }",
                     rest));
    remote_use(false);
    struct training *training = start(solver, 2, NULL, NULL);
    step(training, 2);
    assert_int_equal(lockstep_trainer_snapshot(training->trainer, weights, training->error), 0);
    finish(training);
    struct bytes cpu = predict(weights);
    remote_use(true);
    struct bytes remote = predict(weights);
    remote_use(false);
    assert_true(same_bytes(cpu, remote));
    free(cpu.data);
    free(remote.data);
    lockstep_solver_free(solver);
}

/* ---- Failures -------------------------------------------------------------------------------- */

/* The call fails once, after so many others: the job ends, and a rank says what it was. (Another
 * rank may have done its part before.) */
static void check_failure(const struct job *job, enum remote_call call, long after,
                          const char *what)
{
    struct rank ranks[RANKS_MAX];
    bool said = false;
    remote_fail(call, after);
    run_job(job, ranks);
    if (!remote_has_failed())
        fail_msg("%s: call %ld of %s was not made", what, after, remote_call_names[call]);
    for (int r = 0; r < job->ranks; r++)
        said |= (ranks[r].status == LOCKSTEP_INTERNAL || ranks[r].status == LOCKSTEP_RESOURCE) &&
                ranks[r].error->problems[0].message[0] != '\0';
    if (!said)
        fail_msg("%s: call %ld of %s ends in status %d: %s", what, after, remote_call_names[call],
                 ranks[0].status, ranks[0].error->problems[0].message);
    free_ranks(job, ranks);
    remote_fail_nothing();
    if (remote_bytes() != 0)
        fail_msg("%s: %zu bytes are not freed when call %ld of %s fails", what, remote_bytes(),
                 after, remote_call_names[call]);
}

/* How often each call is made by a job that does not fail. */
static void count_calls(const struct job *job, long calls[REMOTE_CALL_COUNT])
{
    struct rank ranks[RANKS_MAX];
    remote_fail(REMOTE_CREATE, 1 << 30);
    run_job(job, ranks);
    for (int r = 0; r < job->ranks; r++)
        if (ranks[r].status != 0)
            fail_msg("%s", ranks[r].error->problems[0].message);
    free_ranks(job, ranks);
    for (int c = 0; c < REMOTE_CALL_COUNT; c++)
        calls[c] = remote_calls((enum remote_call)c);
}

static const int chosen[] = {7, 1, 5, 6, 9, 10}; /* of the nets: together they make all calls */
enum { CHOSEN = sizeof chosen / sizeof *chosen };

/* Each call fails at the beginning and in the middle. Which thread makes call number n is not
 * determined; that there are so many before the middle is. */
static void every_call_that_fails_ends_a_process_with_a_message(void **state)
{
    (void)state;
    long made[REMOTE_CALL_COUNT] = {0};
    for (int n = 0; n < CHOSEN; n++) {
        const char *name = nets[chosen[n]].name;
        struct lockstep_solver *solver = make_solver(&nets[chosen[n]]);
        struct job job = {.solver = solver, .ranks = 1, .workers = {2}, .updates = 2, .audit = 1};
        long calls[REMOTE_CALL_COUNT];
        remote_use(true);
        count_calls(&job, calls);
        for (int c = 0; c < REMOTE_CALL_COUNT; c++) {
            made[c] += calls[c];
            if (calls[c] > 0)
                check_failure(&job, (enum remote_call)c, 0, name);
            if (calls[c] > 3)
                check_failure(&job, (enum remote_call)c, calls[c] / 2, name);
        }
        remote_use(false);
        lockstep_solver_free(solver);
    }
    /* Views of weights depend on the processor; gradients are searched for what is not finite only
     * where their factors are huge (tests/unit/engine/test_factors.c); the last four are for
     * several ranks. */
    static const enum remote_call others[] = {REMOTE_CONVERTER, REMOTE_CONVERT, REMOTE_LARGEST,
                                              REMOTE_EVENT,     REMOTE_RECORD,  REMOTE_EVENT_WAIT,
                                              REMOTE_CLEAR_REST};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        made[others[i]]++;
    for (int c = 0; c < REMOTE_CALL_COUNT; c++)
        if (made[c] == 0)
            fail_msg("no training makes call %s", remote_call_names[c]);
}

/* The same on one of two ranks, for calls that a net makes, in the middle of the job. */
static void check_failures_of_ranks(const struct net *net, const enum remote_call *which,
                                    size_t count)
{
    struct lockstep_solver *solver = make_solver(net);
    struct job job = {.solver = solver, .ranks = 2, .workers = {2, 1}, .updates = 2};
    long calls[REMOTE_CALL_COUNT];
    remote_use(true);
    count_calls(&job, calls);
    for (size_t i = 0; i < count; i++) {
        if (calls[which[i]] == 0)
            fail_msg("%s: no training makes call %s", net->name, remote_call_names[which[i]]);
        check_failure(&job, which[i], calls[which[i]] / 2, net->name);
    }
    remote_use(false);
    lockstep_solver_free(solver);
}

static void a_call_that_fails_on_one_rank_ends_the_job(void **state)
{
    (void)state;
    static const enum remote_call summed[] = {REMOTE_READ,  REMOTE_WRITE,      REMOTE_RUN,
                                              REMOTE_EVENT, REMOTE_EVENT_WAIT, REMOTE_RECORD,
                                              REMOTE_BEGIN, REMOTE_CLEAR_REST, REMOTE_SWAP,
                                              REMOTE_HASH,  REMOTE_CREATE,     REMOTE_UPDATE};
    static const enum remote_call merged[] = {REMOTE_MERGE, REMOTE_RUN_CHANNELS};
    static const enum remote_call factored[] = {REMOTE_WEIGHT_GRADIENT, REMOTE_BIAS_GRADIENT,
                                                REMOTE_SUM_SQUARES, REMOTE_SUM_MAGNITUDES,
                                                REMOTE_UPDATE};
    check_failures_of_ranks(&nets[0], summed, sizeof summed / sizeof *summed);
    check_failures_of_ranks(&nets[1], merged, sizeof merged / sizeof *merged);
    static const enum remote_call carried[] = {REMOTE_COPY, REMOTE_READ, REMOTE_WRITE, REMOTE_ZERO,
                                               REMOTE_CREATE};
    check_failures_of_ranks(&nets[5], factored, sizeof factored / sizeof *factored);
    check_failures_of_ranks(&nets[6], carried, sizeof carried / sizeof *carried);
}

/* ---- What a failed update leaves ------------------------------------------------------------- */

/* A training after one update, the next of which fails where `call` does. */
static struct training *start_and_fail(const struct lockstep_solver *solver, enum remote_call call,
                                       long after)
{
    struct training *training = start(solver, 2, NULL, NULL);
    step(training, 1);
    remote_fail(call, after);
    int status = lockstep_trainer_step(training->trainer, 1, training->error);
    if (status != LOCKSTEP_INTERNAL || !remote_has_failed())
        fail_msg("%s: the update ends in status %d", remote_call_names[call], status);
    if (strstr(lockstep_error_text(training->error), remote_call_names[call]) == NULL)
        fail_msg("%s: %s", remote_call_names[call], lockstep_error_text(training->error));
    remote_fail_nothing();
    assert_int_equal(lockstep_trainer_iteration(training->trainer), 1);
    return training;
}

/* Before weights change nothing is lost: the snapshot is that of the iteration before, and the
 * training can go on. */
static void a_failure_before_weights_change_leaves_the_iteration_before(void **state)
{
    (void)state;
    static const struct {
        int net;
        enum remote_call call;
        long after;
    } failures[] = {
        {1, REMOTE_MERGE, 0}, {1, REMOTE_MERGE, 5},       {0, REMOTE_SQUARES, 1},
        {0, REMOTE_BEGIN, 0}, {5, REMOTE_SUM_SQUARES, 1}, {5, REMOTE_SUM_MAGNITUDES, 2},
    };
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        struct lockstep_solver *solver = make_solver(&nets[failures[i].net]);
        const char *name = remote_call_names[failures[i].call];
        struct bytes expected[2];
        struct training *training = start(solver, 1, NULL, NULL);
        for (int u = 0; u < 2; u++) {
            step(training, 1);
            expected[u] = snapshot(training);
        }
        finish(training);
        remote_use(true);
        training = start_and_fail(solver, failures[i].call, failures[i].after);
        check_same(expected[0], snapshot(training), "%s: the iteration before", name);
        step(training, 1);
        check_same(expected[1], snapshot(training), "%s: the iteration after", name);
        finish(training);
        remote_use(false);
        free(expected[0].data);
        free(expected[1].data);
        lockstep_solver_free(solver);
    }
}

static void a_failure_while_weights_change_is_committed_nowhere(void **state)
{
    (void)state;
    static const enum remote_call calls[] = {REMOTE_UPDATE, REMOTE_READ_SUM};
    const char *path = ls_test_path("torn.safetensors");
    const struct lockstep_output *outputs;
    size_t count;
    struct lockstep_solver *solver = make_solver(&nets[0]);
    remote_use(true);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        struct training *training = start_and_fail(solver, calls[i], 1);
        struct lockstep_trainer *trainer = training->trainer;
        assert_int_equal(lockstep_trainer_step(trainer, 1, training->error), LOCKSTEP_USAGE);
        assert_int_equal(lockstep_trainer_evaluate(trainer, 0, &outputs, &count, training->error),
                         LOCKSTEP_USAGE);
        assert_int_equal(lockstep_trainer_snapshot(trainer, path, training->error), LOCKSTEP_USAGE);
        assert_int_equal(access(path, F_OK), -1);
        finish(training);
    }
    remote_use(false);
    lockstep_solver_free(solver);
}

/* A test exchanges weights and averages, and brings them back. Where that fails, in
 * the exchange or in the conversion behind it, no update may go on with the averages. */
static void averages_that_stay_end_the_training(void **state)
{
    (void)state;
    static const enum remote_call calls[] = {REMOTE_CONVERT, REMOTE_SWAP};
    struct net net = nets[0];
    net.settings = "micro_batch: 5 precision: BF16 weight_average { decay: 0.9 }";
    const struct lockstep_output *outputs;
    size_t count;
    struct lockstep_solver *solver = make_solver(&net);
    remote_use(true);
    for (int i = 0; i < 2; i++) {
        struct training *training = start(solver, 2, NULL, NULL);
        struct lockstep_trainer *trainer = training->trainer;
        struct ls_store *store = trainer->inner->store;
        step(training, 1);
        const size_t first = calls[i] == REMOTE_SWAP ? store->set->count : store->view_count;
        assert_true(first > 0);
        remote_fail(calls[i], (long)first);
        assert_int_equal(lockstep_trainer_evaluate(trainer, 0, &outputs, &count, training->error),
                         LOCKSTEP_INTERNAL);
        assert_true(remote_has_failed());
        remote_fail_nothing();
        assert_int_equal(lockstep_trainer_step(trainer, 1, training->error), LOCKSTEP_USAGE);
        finish(training);
    }
    remote_use(false);
    lockstep_solver_free(solver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trainings_on_it_give_the_bits_of_the_cpu),
        cmocka_unit_test(snapshots_of_it_are_those_of_the_cpu),
        cmocka_unit_test(predictions_on_it_are_those_of_the_cpu),
        cmocka_unit_test(every_call_that_fails_ends_a_process_with_a_message),
        cmocka_unit_test(a_call_that_fails_on_one_rank_ends_the_job),
        cmocka_unit_test(a_failure_before_weights_change_leaves_the_iteration_before),
        cmocka_unit_test(a_failure_while_weights_change_is_committed_nowhere),
        cmocka_unit_test(averages_that_stay_end_the_training),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
