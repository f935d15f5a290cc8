/* State per sample (docs/numerics.md, section 15): a row goes on where the row of the same number
 * has ended in the update before, whatever computes it, and snapshots, repeated passes, audits,
 * limits on memory and other devices change no bit of it.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <unistd.h>

#include "engine/exponents.h"
#include "engine/pass.h"
#include "engine/sample_states.h"
#include "numerics/sizes.h"
#include "solver/checkpoint.h"
#include "snapshot/archive.h"
#include "solver/evaluate.h"
#include "solver/verify.h"
#include "solver/weights.h"
#include "support/npy_files.h"
#include "trainings/ranks.h"
#include "trainings/remote_device.h"
#include "trainings/state_layers.h"

enum { RECORDS = 23, STEPS = 3, FEATURES = 2, SAMPLE = STEPS * FEATURES };
enum { IDX_PICTURES = 61, UPDATES = 4 };

/* Whole numbers, so that sums of them are exact. */
static float number_of(int64_t record, int i)
{
    return (float)((record * 37 + i * 11) % 101 - 50);
}

static int setup(void **state)
{
    (void)state;
    float x[RECORDS * SAMPLE];
    int32_t label[RECORDS];
    use_state_layers();
    for (int r = 0; r < RECORDS; r++) {
        label[r] = r * 7 % 4;
        for (int i = 0; i < SAMPLE; i++)
            x[r * SAMPLE + i] = number_of(r, i);
    }
    write_npy(ls_test_path("x.npy"), "<f4", ls_test_text("(%d, %d, %d)", RECORDS, STEPS, FEATURES),
              x, sizeof x);
    write_npy(ls_test_path("label.npy"), "<i4", ls_test_text("(%d,)", RECORDS), label,
              sizeof label);
    write_idx_pair(ls_test_path("images"), ls_test_path("labels"), IDX_PICTURES, 12);
    write_idx_pair(ls_test_path("test-images"), ls_test_path("test-labels"), 37, 12);
    return setenv("TMPDIR", ls_test_directory(), 1);
}

/* ---- Nets ------------------------------------------------------------------------------------ */

/* The state is the sum over windows of what the data set has: known without the net. */
static struct lockstep_solver *make_counting(int axis, const char *batch, const char *settings)
{
    return load_solver(
        "base_lr: 0.0001 lr_policy: 'fixed' max_iter: 90 random_seed: 3 test_iter: 0\n"
        "test_interval: 100 test_initialization: false %s\n"
        "net_param {\n"
        "  layer { name: 'd' type: 'Data' top: 'x' top: 'label' data_param { backend: NPY %s\n"
        "    source: '%s' source: '%s' tensor { sample_axis: %d } tensor { } } }\n"
        "  layer { name: 'sum' type: 'RunningSum' bottom: 'x' top: 'sum' }\n"
        "  layer { name: 'figure' type: 'Power' bottom: 'sum' top: 'figure'\n"
        "    power_param { scale: 2 } loss_weight: 0.5 }\n"
        "  layer { name: 'ip' type: 'InnerProduct' bottom: 'sum' top: 'ip'\n"
        "    inner_product_param { axis: 2 num_output: 2 weight_filler { type: 'xavier' } } }\n"
        "  layer { name: 'part' type: 'Slice' bottom: 'ip' top: 'a' top: 'b'\n"
        "    slice_param { axis: 2 } }\n"
        "  layer { name: 'loss' type: 'EuclideanLoss' bottom: 'a' bottom: 'b' top: 'loss' }\n"
        "}\n",
        settings, batch, ls_test_path("x.npy"), ls_test_path("label.npy"), axis);
}

static const struct net {
    const char *name, *settings, *data, *between;
} nets[] = {
    {"plain", "micro_batch: 4", "batch_size: 24",
     "layer { name: 'm' type: 'ReLU' bottom: 'pool' top: 'middle' }"},
    {"iter_size, data that end", "micro_batch: 4 iter_size: 2",
     "batch_size: 17 last_batch: PARTIAL",
     "layer { name: 'm' type: 'Dropout' bottom: 'pool' top: 'middle' }"},
    {"statistics of the batch", "micro_batch: 4 iter_size: 2", "batch_size: 23",
     "layer { name: 'n' type: 'BatchNorm' bottom: 'pool' top: 'n' }\n"
     "layer { name: 'm' type: 'ReLU' bottom: 'n' top: 'middle' }"},
    {"gathered products", "micro_batch: 3 iter_size: 2", "batch_size: 20",
     "layer { name: 'g' type: 'InnerProduct' bottom: 'pool' top: 'g'\n"
     "  inner_product_param { num_output: 16384 weight_filler { type: 'xavier' } } }\n"
     "layer { name: 'm' type: 'TanH' bottom: 'g' top: 'middle' }"},
};
enum { NETS = sizeof nets / sizeof *nets, GATHERED = NETS - 1 };

static const char *data_of(const char *phase, const char *prefix, const char *fields)
{
    return ls_test_text(
        "layer { name: '%s' type: 'Data' top: 'data' top: 'label' include { phase: %s }\n"
        "  transform_param { scale: 0.0078 } data_param { backend: IDX source: '%s/%simages'\n"
        "    label_source: '%s/%slabels' %s } }\n",
        phase, phase, ls_test_directory(), prefix, ls_test_directory(), prefix, fields);
}

static struct lockstep_solver *solver_of(const struct net *net)
{
    const char *data = ls_test_text("%s%s", data_of("TRAIN", "", net->data),
                                    data_of("TEST", "test-", "batch_size: 10"));
    return load_solver(
        "base_lr: 0.01 momentum: 0.9 lr_policy: 'fixed' max_iter: 40 random_seed: 3 test_iter: 0\n"
        "test_interval: 2 test_initialization: false %s\n"
        "net_param { %s }\n",
        net->settings,
        ls_test_net("sample_states", LS_TEST_VALUES({"data", data}, {"first", net->between})));
}

/* ---- Which row goes on where ----------------------------------------------------------------- */

static const struct ls_sample_states *states_of(const struct training *training)
{
    return training->trainer->inner->train_pass->states;
}

/* Adds what the update's rows have of the data; rows beyond a batch's samples have nothing. */
static void add_update(const struct ls_batching *batching, int64_t update, float *sums)
{
    struct ls_batch batches[4];
    int count = ls_batching_update(batching, update, batches);
    for (int b = 0; b < count; b++)
        for (int64_t s = 0; s < batches[b].count; s++)
            for (int i = 0; i < SAMPLE; i++)
                sums[(b * batching->batch + s) * SAMPLE + i] +=
                    number_of((batches[b].ordinal + s) % RECORDS, i);
}

/* The state is `sums`, [row][step][feature]. */
static void check_sums(const struct training *training, int axis, const float *sums,
                       const char *what)
{
    const struct ls_sample_states *states = states_of(training);
    const void *data;
    assert_int_equal(states->count, 1);
    assert_string_equal(states->tensors[0].name, "sum.sum");
    assert_int_equal(states->tensors[0].shape.dim[axis], states->rows);
    assert_int_equal(ls_sample_states_read(states, 0, &data, NULL), 0);
    const float *found = data;
    for (int64_t row = 0; row < states->rows; row++)
        for (int i = 0; i < SAMPLE; i++) {
            int64_t step = i / FEATURES, feature = i % FEATURES;
            int64_t at =
                axis == 0 ? row * SAMPLE + i : (step * states->rows + row) * FEATURES + feature;
            if (found[at] != sums[row * SAMPLE + i])
                fail_msg("%s: row %lld has %g, not %g", what, (long long)row, (double)found[at],
                         (double)sums[row * SAMPLE + i]);
        }
}

static void check_counting(int axis, const char *batch, const char *settings, int workers)
{
    float sums[64 * SAMPLE] = {0};
    struct lockstep_solver *solver = make_counting(axis, batch, settings);
    struct training *training = start(solver, workers, NULL, NULL);
    const struct ls_batching *batching = &training->trainer->inner->train->batching;
    assert_in_range(states_of(training)->rows, 1, 64);
    check_sums(training, axis, sums, "at the start");
    for (int64_t update = 0; update < 9; update++) {
        step(training, 1);
        add_update(batching, update, sums);
        check_sums(training, axis, sums, ls_test_text("%s %s", batch, settings));
    }
    finish(training);
    lockstep_solver_free(solver);
}

static void a_row_goes_on_where_the_row_of_its_number_ended(void **state)
{
    (void)state;
    static const char *const batches[] = {"batch_size: 10", "batch_size: 10 last_batch: PARTIAL",
                                          "batch_size: 10 last_batch: DROP", "batch_size: 30"};
    static const char *const settings[] = {"micro_batch: 3", "micro_batch: 4 iter_size: 2",
                                           "micro_batch: 10 iter_size: 2"};
    for (int axis = 0; axis < 2; axis++)
        for (int b = 0; b < 4; b++)
            for (int s = 0; s < 3; s++)
                check_counting(axis, batches[b], settings[s], b == 3 ? 2 : 1);
}

/* ---- The same bits --------------------------------------------------------------------------- */

static void any_workers_give_same_bits(void **state)
{
    (void)state;
    for (int n = 0; n < NETS; n++) {
        struct lockstep_solver *solver = solver_of(&nets[n]);
        struct training *training = start(solver, 1, NULL, NULL);
        assert_int_equal(training->trainer->inner->train->gathers, n == GATHERED);
        finish(training);
        check_workers(solver, NULL, UPDATES);
        lockstep_solver_free(solver);
    }
}

static const struct job jobs[] = {
    {.ranks = 1, .workers = {3}, .audit = 1},
    {.ranks = 2, .workers = {1, 1}},
    {.ranks = 3, .workers = {1, 2, 1}, .audit = 0.5},
    {.ranks = 2, .workers = {2, 1}, .dynamic = true, .delays = 1},
    {.ranks = 3, .workers = {1, 1, 2}, .dynamic = true, .delays = 2, .audit = 1},
};
enum { JOBS = sizeof jobs / sizeof *jobs };

/* Everything that a rank knows of its states: each rank has all rows. */
static int put_states(struct rank *rank, const struct ls_trainer *trainer)
{
    const struct ls_sample_states *states = trainer->train_pass->states;
    for (size_t i = 0; i < states->count; i++) {
        const void *data;
        LS_TRY(ls_sample_states_read(states, i, &data, rank->error));
        put(rank, data, states->tensors[i].bytes);
    }
    return 0;
}

static int train_with_tests(struct rank *rank, struct ls_trainer *trainer)
{
    for (int i = 0; i < UPDATES; i++) {
        LS_TRY(ls_trainer_update(trainer, rank->error));
        put(rank, trainer->figures.totals.record,
            (size_t)ls_net_graph(trainer->train)->record_size * sizeof(double));
        LS_TRY(put_states(rank, trainer));
        for (size_t t = 0; t < trainer->test_count && i % 2 == 0; t++) {
            int64_t samples;
            LS_TRY(ls_trainer_evaluate(trainer, t, &samples, rank->error));
            for (size_t k = 0; k < trainer->figures.outputs.count; k++)
                put(rank, trainer->figures.outputs.items[k].values,
                    trainer->figures.outputs.items[k].count * sizeof(double));
        }
    }
    return put_weights(rank, trainer);
}

/* The bytes of a process by itself on one worker; the caller frees them. */
static struct bytes train_alone(const struct lockstep_solver *solver)
{
    struct job job = {.solver = solver, .ranks = 1, .workers = {1}, .act = train_with_tests};
    struct rank rank;
    run_job(&job, &rank);
    if (rank.status != 0)
        fail_msg("%s", rank.error->problems[0].message);
    free(rank.error);
    return rank.bytes;
}

static void check_jobs(const struct net *net)
{
    struct lockstep_solver *solver = solver_of(net);
    remote_use(false);
    struct bytes expected = train_alone(solver);
    for (int remote = 0; remote < 2; remote++)
        for (int j = 0; j < JOBS; j += 1 + remote) {
            struct job job = jobs[j];
            job.solver = solver;
            job.act = train_with_tests;
            remote_use(remote == 1);
            check_job(
                &job, expected,
                ls_test_text("%s, job %d%s", net->name, j, remote == 1 ? ", remote device" : ""));
            assert_int_equal(remote_bytes(), 0);
        }
    remote_use(false);
    free(expected.data);
    lockstep_solver_free(solver);
}

static void any_ranks_give_same_bits_on_each_device(void **state)
{
    (void)state;
    for (int n = 0; n < NETS; n++)
        check_jobs(&nets[n]);
}

static void all_forms_of_training_agree(void **state)
{
    (void)state;
    static const char *const devices[] = {NULL, "reference"};
    for (int n = 0; n < GATHERED; n++) {
        struct lockstep_solver *solver = solver_of(&nets[n]);
        struct lockstep_error *error = lockstep_error_new();
        struct lockstep_verify_options options;
        for (int d = 0; d < (n == 1 ? 2 : 1); d++) {
            lockstep_verify_options_init(&options);
            options.workers = (int[]){1, 3};
            options.ranks = (int[]){1, 2};
            options.dynamic = (int[]){0, 1};
            options.memory = (uint64_t[]){0, LOCKSTEP_MEMORY_LEAST};
            options.worker_count = options.rank_count = options.dynamic_count =
                options.memory_count = 2;
            options.stops = 2;
            options.iterations = 5;
            options.device = devices[d];
            if (lockstep_verify(solver, &options, error) != 0)
                fail_msg("%s: %s", nets[n].name, lockstep_error_text(error));
        }
        lockstep_error_free(error);
        lockstep_solver_free(solver);
    }
}

/* How often the plans of a training recall a state in the backward pass, once more. */
static int count_recalled_again(const struct training *training)
{
    const struct ls_net *net = training->trainer->inner->train;
    int count = 0;
    for (size_t p = 0; p < net->plan_count; p++)
        for (size_t s = 0; s < net->plans[p]->plan->step_count; s++) {
            const struct ls_step *step = &net->plans[p]->plan->steps[s];
            count += step->recomputed && step->prepared.op->kind == LS_OP_RECALL;
        }
    return count;
}

/* One after the other, a convolution and the sum of what it gives over windows. */
static struct lockstep_solver *make_deep(void)
{
    const char *layers = "";
    for (int i = 0; i < 4; i++) {
        const char *before = i == 0 ? "data" : ls_test_text("s%d", i - 1);
        layers = ls_test_text(
            "%slayer { name: 'c%d' type: 'Convolution' bottom: '%s' top: 'c%d' convolution_param "
            "{\n"
            "  num_output: 8 kernel_size: 3 pad: 1 weight_filler { type: 'msra' } } }\n"
            "layer { name: 't%d' type: 'TanH' bottom: 'c%d' top: 't%d' }\n"
            "layer { name: 's%d' type: 'RunningSum' bottom: 't%d' top: 's%d' }\n",
            layers, i, before, i, i, i, i, i, i, i);
    }
    return load_solver(
        "base_lr: 0.001 lr_policy: 'fixed' max_iter: 40 random_seed: 3 micro_batch: 4\n"
        "net_param { %s %s\n"
        "  layer { name: 'ip' type: 'InnerProduct' bottom: 's3' top: 'ip'\n"
        "    inner_product_param { num_output: 10 weight_filler { type: 'xavier' } } }\n"
        "  layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'l' } }\n",
        data_of("TRAIN", "", "batch_size: 24"), layers);
}

/* What convolutions have read is not kept but computed again, from what was recalled. */
static void what_is_computed_again_reads_the_same_state(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_deep();
    struct training *training = start(solver, 2, NULL, NULL);
    step(training, UPDATES);
    struct bytes expected = snapshot(training);
    finish(training);
    for (int workers = 1; workers < 4; workers++) {
        training = start(solver, workers, NULL, NULL);
        limit_memory(training, 1);
        assert_true(count_recalled_again(training) > 0);
        step(training, UPDATES);
        check_same(expected, snapshot(training), "computed again, %d workers", workers);
        finish(training);
    }
    free(expected.data);
    lockstep_solver_free(solver);
}

/* When update 2 of the second training is done a byte of its state is another one. */
static struct {
    struct ls_trainer *trainer;
    int (*after)(void *user, struct ls_error *error);
    void *user;
} spoiler;

static int spoil_state(void *user, struct ls_error *error)
{
    (void)user;
    struct ls_sample_states *states = spoiler.trainer->train_pass->states;
    for (size_t i = 0; i < states->count && spoiler.trainer->iteration == 3; i++) {
        const void *data;
        if (strcmp(states->tensors[i].name, "idle.bytes") != 0)
            continue;
        LS_TRY(ls_sample_states_read(states, i, &data, error));
        unsigned char *bytes = malloc(states->tensors[i].bytes);
        memcpy(bytes, data, states->tensors[i].bytes);
        bytes[7]++;
        int status = ls_sample_states_write(states, i, bytes, error);
        free(bytes);
        LS_TRY(status);
    }
    return spoiler.after(spoiler.user, error);
}

static void prepare_to_spoil(struct ls_trainer *trainer, size_t training, int rank)
{
    if (training != 1 || rank != 0)
        return;
    spoiler.trainer = trainer;
    spoiler.after = trainer->after_update;
    spoiler.user = trainer->after_update_user;
    trainer->after_update = spoil_state;
}

static void verify_names_a_state_that_differs(void **state)
{
    (void)state;
    struct lockstep_solver *solver = solver_of(&nets[0]);
    struct ls_error *error = calloc(1, sizeof *error);
    static const struct ls_verify_case cases[] = {{.ranks = 1, .workers = 1},
                                                  {.ranks = 1, .workers = 2}};
    const struct ls_verify_options options = {
        .cases = cases, .count = 2, .iterations = 4, .prepare = prepare_to_spoil};
    assert_int_equal(ls_verify(solver->definition, &options, error), LOCKSTEP_DIFFERENT);
    assert_string_equal(error->problems[0].place, "idle.bytes");
    assert_string_equal(error->problems[0].message,
                        "update 2: what this state per sample keeps differs between 1 worker and "
                        "2 workers");
    free(error);
    lockstep_solver_free(solver);
}

/* Exponents that fit nothing: the pass runs again, and reads what it has read before. */
static void a_repeated_pass_reads_the_same_state(void **state)
{
    (void)state;
    float sums[64 * SAMPLE] = {0};
    struct lockstep_solver *solver = make_counting(0, "batch_size: 10", "micro_batch: 3");
    struct training *training = start(solver, 2, NULL, NULL);
    const struct ls_trainer *trainer = training->trainer->inner;
    for (int64_t update = 0; update < 6; update++) {
        for (int i = 0; update == 3 && i < (int)trainer->parameters->count; i++)
            ls_sums_set_exponent(trainer->store->sums, i,
                                 ls_sums_exponent(trainer->store->sums, i) + 25);
        step(training, 1);
        add_update(&trainer->train->batching, update, sums);
        check_sums(training, 0, sums, "a repeated pass");
    }
    assert_int_equal(training->repeats, 1);
    finish(training);
    lockstep_solver_free(solver);
}

/* Rank 1 has a byte of its own, which no sample of the next update of rank 0 reads. */
static int write_with_other_byte(struct rank *rank, struct ls_trainer *trainer)
{
    struct ls_sample_states *states = trainer->train_pass->states;
    LS_TRY(ls_trainer_update(trainer, rank->error));
    size_t last = states->count - 1;
    const void *data;
    LS_TRY(ls_sample_states_read(states, last, &data, rank->error));
    unsigned char *bytes = malloc(states->tensors[last].bytes);
    memcpy(bytes, data, states->tensors[last].bytes);
    bytes[states->tensors[last].bytes - 1] ^= rank->rank == 1;
    int status = ls_sample_states_write(states, last, bytes, rank->error);
    free(bytes);
    LS_TRY(status);
    return ls_trainer_write(trainer, rank->rank == 0 ? rank->job->user : "/nowhere/at/all",
                            rank->error);
}

static void ranks_compare_their_states_before_a_snapshot(void **state)
{
    (void)state;
    struct lockstep_solver *solver = solver_of(&nets[0]);
    char *path = strdup(ls_test_path("not_written.safetensors"));
    for (int remote = 0; remote < 2; remote++) {
        struct job job = {.solver = solver,
                          .ranks = 3,
                          .workers = {1, 1, 1},
                          .act = write_with_other_byte,
                          .together = true,
                          .user = path};
        struct rank ranks[RANKS_MAX];
        remote_use(remote == 1);
        run_job(&job, ranks);
        for (int r = 0; r < job.ranks; r++) {
            assert_int_equal(ranks[r].status, LOCKSTEP_DIFFERENT);
            const struct ls_problem *problem = &ranks[r].error->problems[0];
            if (strcmp(problem->place, "small.sum") != 0 ||
                strstr(problem->message, "iteration 1: the state per sample differs between ranks; "
                                         "most ranks disagree with rank 1 (") == NULL)
                fail_msg("%s: %s", problem->place, problem->message);
        }
        assert_int_equal(access(path, F_OK), -1);
        free_ranks(&job, ranks);
    }
    remote_use(false);
    free(path);
    lockstep_solver_free(solver);
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static double test_figure(struct training *training)
{
    struct ls_trainer *trainer = training->trainer->inner;
    int64_t samples;
    assert_int_equal(ls_trainer_evaluate(trainer, 0, &samples, NULL), 0);
    assert_int_equal(samples, RECORDS);
    for (size_t k = 0; k < trainer->figures.outputs.count; k++)
        if (strcmp(trainer->figures.outputs.items[k].name, "figure") == 0)
            return trainer->figures.outputs.items[k].values[0];
    fail_msg("the test has no figure");
    return 0;
}

/* Of each batch of 10, the sum of 2 y. */
static double expected_figure(void)
{
    double sums[10 * SAMPLE] = {0}, all = 0;
    for (int record = 0; record < RECORDS; record++)
        for (int i = 0; i < SAMPLE; i++) {
            double *sum = &sums[record % 10 * SAMPLE + i];
            *sum += (double)number_of(record, i);
            all += *sum;
        }
    return 2 * all;
}

static void a_test_begins_with_zeros_and_leaves_the_training_alone(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_counting(0, "batch_size: 10", "micro_batch: 3");
    float sums[64 * SAMPLE] = {0};
    for (int workers = 1; workers < 4; workers++) {
        struct training *training = start(solver, workers, NULL, NULL);
        memset(sums, 0, sizeof sums);
        for (int64_t update = 0; update < 3; update++) {
            for (int again = 0; again < 2; again++)
                if (test_figure(training) != expected_figure())
                    fail_msg("%g, not %g", test_figure(training), expected_figure());
            check_sums(training, 0, sums, "between updates");
            step(training, 1);
            add_update(&training->trainer->inner->train->batching, update, sums);
        }
        finish(training);
    }
    lockstep_solver_free(solver);
}

/* ---- Snapshots ------------------------------------------------------------------------------- */

static void a_resumed_training_has_the_state(void **state)
{
    (void)state;
    for (int n = 0; n < NETS; n++) {
        struct lockstep_solver *solver = solver_of(&nets[n]);
        struct training *straight = start(solver, 2, NULL, NULL);
        step(straight, 4);
        struct bytes expected = snapshot(straight);
        finish(straight);
        for (int cut = 1; cut < 4; cut++) {
            const char *path = ls_test_path("cut.safetensors");
            struct training *training = start(solver, cut, NULL, NULL);
            step(training, cut);
            assert_int_equal(lockstep_trainer_snapshot(training->trainer, path, training->error),
                             0);
            finish(training);
            training = start(solver, 4 - cut, NULL, path);
            step(training, 4 - cut);
            check_same(expected, snapshot(training), "%s, resumed at %d", nets[n].name, cut);
            finish(training);
        }
        free(expected.data);
        lockstep_solver_free(solver);
    }
}

/* A snapshot between two updates is written from a copy, while the training goes on. */
static void a_snapshot_of_a_copy_has_the_same_bytes(void **state)
{
    (void)state;
    struct net net = nets[1];
    net.settings = "micro_batch: 4 iter_size: 2 snapshot: 2";
    struct lockstep_solver *solver = solver_of(&net);
    struct training *training = start(solver, 2, "at_once", NULL);
    step(training, 2);
    struct bytes at_once = snapshot(training);
    finish(training);
    training = start(solver, 3, "copied", NULL);
    assert_true(training->trainer->inner->forecast.copies);
    if (lockstep_trainer_run(training->trainer, 5, training->error) != 0)
        fail_msg("%s", lockstep_error_text(training->error));
    finish(training);
    check_same(at_once, read_bytes(ls_test_path("copied_iter_2.safetensors")), "a copy");
    free(at_once.data);
    lockstep_solver_free(solver);
}

/* Writes a snapshot again, with another form of the state `name`: without it (type LS_DTYPES), or
 * with as many bytes in another type and shape. */
static void write_otherwise(const char *from, const char *to, const char *name, bool without,
                            enum ls_dtype type, struct ls_shape shape)
{
    struct ls_archive archive, other = {0};
    struct ls_error *error = calloc(1, sizeof *error);
    bool found = false;
    assert_int_equal(ls_archive_read(from, LS_ARCHIVE_CHECK, &archive, error), 0);
    for (size_t i = 0; i < archive.tensor_count; i++) {
        const struct ls_tensor *tensor = &archive.tensors[i];
        bool this = strcmp(tensor->name, name) == 0;
        found |= this;
        if (!this)
            assert_int_equal(ls_archive_add(&other, tensor->name, tensor->type, &tensor->shape,
                                            tensor->data, error),
                             0);
        else if (!without)
            assert_int_equal(ls_archive_add(&other, name, type, &shape, tensor->data, error), 0);
    }
    for (size_t i = 0; i < archive.note_count; i++)
        assert_int_equal(
            ls_archive_add_note(&other, archive.notes[i].key, archive.notes[i].value, error), 0);
    assert_true(found);
    assert_int_equal(ls_archive_write(&other, to, error), 0);
    ls_archive_free(&other);
    ls_archive_free(&archive);
    free(error);
}

static void check_refused(const struct lockstep_solver *solver, const char *path, const char *says)
{
    struct lockstep_train_options options;
    struct lockstep_trainer *trainer = NULL;
    struct lockstep_error *error = lockstep_error_new();
    lockstep_train_options_init(&options);
    options.workers = 2;
    options.resume = path;
    options.snapshot_prefix = ls_test_path("refused");
    assert_int_equal(lockstep_trainer_create(solver, &options, &trainer, error), LOCKSTEP_WEIGHTS);
    const char *text = lockstep_error_text(error);
    if (strstr(text, path) == NULL || strstr(text, "state.sample.sum.sum") == NULL ||
        strstr(text, says) == NULL)
        fail_msg("%s", text);
    lockstep_error_free(error);
}

static void a_snapshot_with_another_state_is_refused(void **state)
{
    (void)state;
    const char *path = ls_test_path("right.safetensors"),
               *wrong = ls_test_path("wrong.safetensors");
    const char *name = "state.sample.sum.sum";
    struct lockstep_solver *solver = make_counting(0, "batch_size: 10", "micro_batch: 3");
    struct training *training = start(solver, 1, NULL, NULL);
    step(training, 2);
    assert_int_equal(lockstep_trainer_snapshot(training->trainer, path, training->error), 0);
    finish(training);
    write_otherwise(path, wrong, name, false, LS_F32, (struct ls_shape){3, {STEPS, 10, FEATURES}});
    check_refused(solver, wrong,
                  "is 3 10 2 (60); the state of all samples of an update is 10 3 2 (60)");
    write_otherwise(path, wrong, name, false, LS_I32, (struct ls_shape){3, {10, STEPS, FEATURES}});
    check_refused(solver, wrong, "I32");
    write_otherwise(path, wrong, name, true, LS_F32, (struct ls_shape){0});
    check_refused(solver, wrong, "");
    lockstep_solver_free(solver);
}

/* A training that begins from weights begins with zeros. */
static void weights_bring_no_state(void **state)
{
    (void)state;
    const char *path = ls_test_path("weights.safetensors");
    const float sums[64 * SAMPLE] = {0};
    struct lockstep_solver *solver = make_counting(0, "batch_size: 10", "micro_batch: 3");
    struct training *training = start(solver, 1, NULL, NULL);
    step(training, 2);
    assert_int_equal(lockstep_trainer_snapshot(training->trainer, path, training->error), 0);
    finish(training);
    training = start(solver, 1, NULL, NULL);
    assert_int_equal(ls_trainer_load_weights(training->trainer->inner, path, NULL), 0);
    check_sums(training, 0, sums, "from weights");
    finish(training);
    lockstep_solver_free(solver);
}

/* ---- Predictions ----------------------------------------------------------------------------- */

/* What a net that ends in "ip" predicts for two samples, twice; the caller frees it. */
static struct bytes predict(const char *middle, const char *weights)
{
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_model_options options;
    struct lockstep_model *model = NULL;
    float x[2 * SAMPLE];
    for (int i = 0; i < 2 * SAMPLE; i++)
        x[i] = number_of(i / SAMPLE, i % SAMPLE);
    ls_test_write_text(
        ls_test_path("deploy.prototxt"),
        ls_test_text("layer { name: 'd' type: 'Input' top: 'x'\n"
                     "  input_param { shape { dim: [1, %d, %d] } } }\n"
                     "layer { name: 'sum' %s bottom: 'x' top: 'sum' }\n"
                     "layer { name: 'ip' type: 'InnerProduct' bottom: 'sum' top: 'ip'\n"
                     "  inner_product_param { axis: 2 num_output: 2 } }\n",
                     STEPS, FEATURES, middle));
    lockstep_model_options_init(&options);
    options.workers = 2;
    if (lockstep_model_load(ls_test_path("deploy.prototxt"), weights, &options, &model, error) != 0)
        fail_msg("%s", lockstep_error_text(error));
    size_t floats = 2 * lockstep_model_output_size(model);
    struct bytes bytes = {.size = 2 * floats * sizeof(float)};
    float *out = malloc(bytes.size);
    bytes.data = (char *)out;
    for (int again = 0; again < 2; again++)
        if (lockstep_model_predict(model, x, 2, out + (size_t)again * floats, error) != 0)
            fail_msg("%s", lockstep_error_text(error));
    lockstep_model_free(model);
    lockstep_error_free(error);
    return bytes;
}

static void a_prediction_reads_zeros_and_keeps_nothing(void **state)
{
    (void)state;
    char *path = strdup(ls_test_path("predicts.safetensors"));
    struct lockstep_solver *solver = make_counting(0, "batch_size: 10", "micro_batch: 3");
    struct training *training = start(solver, 1, NULL, NULL);
    step(training, 2);
    assert_int_equal(lockstep_trainer_snapshot(training->trainer, path, training->error), 0);
    finish(training);
    struct bytes without = predict("type: 'Power'", path);
    for (int remote = 0; remote < 2; remote++) {
        remote_use(remote == 1);
        check_same(without, predict("type: 'RunningSum'", path), "a prediction");
    }
    remote_use(false);
    free(path);
    free(without.data);
    lockstep_solver_free(solver);
}

/* ---- Forecast -------------------------------------------------------------------------------- */

static void the_forecast_counts_the_state(void **state)
{
    (void)state;
    struct lockstep_solver *solver =
        make_counting(0, "batch_size: 10", "micro_batch: 3 iter_size: 2");
    struct training *training = start(solver, 2, NULL, NULL);
    const struct ls_forecast *forecast = &training->trainer->inner->forecast;
    /* 20 rows in training and 10 in a test; a copy is a multiple of 64 bytes. */
    size_t row = SAMPLE * sizeof(float);
    size_t train = 2 * ((20 * row + 63) / 64 * 64) + 20 * sizeof(int);
    size_t test = 2 * ((10 * row + 63) / 64 * 64) + 10 * sizeof(int);
    assert_int_equal(forecast->sample_states, train + test);
    assert_int_equal(states_of(training)->bytes, (20 * row + 63) / 64 * 64);
    assert_int_equal(ls_sample_states_bytes(training->trainer->inner->train, 2),
                     train + 20 * (2 * row + sizeof(int)));
    finish(training);
    lockstep_solver_free(solver);
}

/* ---- Mistakes -------------------------------------------------------------------------------- */

static void check_definition(int status, const char *says, const char *layers)
{
    struct lockstep_train_options options;
    struct lockstep_trainer *trainer = NULL;
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_solver *solver = load_solver(
        "base_lr: 0.1 lr_policy: 'fixed' max_iter: 9 net_param {\n"
        "  layer { name: 'd' type: 'Data' top: 'x' top: 'label' data_param { backend: NPY\n"
        "    source: '%s' source: '%s' batch_size: 10 } }\n"
        "  %s\n"
        "  layer { name: 'ip' type: 'InnerProduct' bottom: 'y' top: 'ip'\n"
        "    inner_product_param { num_output: 4 weight_filler { type: 'xavier' } } }\n"
        "  layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' "
        "}\n"
        "}\n",
        ls_test_path("x.npy"), ls_test_path("label.npy"), layers);
    lockstep_train_options_init(&options);
    options.workers = 1;
    options.snapshot_prefix = ls_test_path("mistakes");
    assert_int_equal(lockstep_trainer_create(solver, &options, &trainer, error), status);
    if (strstr(lockstep_error_text(error), says) == NULL)
        fail_msg("%s", lockstep_error_text(error));
    lockstep_error_free(error);
    lockstep_solver_free(solver);
}

static void mistakes_with_states_are_found(void **state)
{
    (void)state;
    static const struct {
        const char *type, *says;
    } wrong[] = {{"KeptNever", "s.sum: this state is not kept exactly once"},
                 {"KeptTwice", "s.sum: this state is not kept exactly once"},
                 {"KeptOtherwise", "s.sum: what is kept in this state is not like it"},
                 {"KeptUnknown", "s: keeps a state that it has not declared"},
                 {"NoSamples", "s.sum: a state per sample has no samples"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        check_definition(
            LOCKSTEP_INTERNAL, wrong[i].says,
            ls_test_text("layer { name: 's' type: '%s' bottom: 'x' top: 'y' }", wrong[i].type));
    check_definition(LOCKSTEP_DEFINITION, "another layer of this phase has the same name",
                     "layer { name: 's' type: 'RunningSum' bottom: 'x' top: 'z' }\n"
                     "layer { name: 's' type: 'RunningSum' bottom: 'z' top: 'y' }");
}

/* Pictures differ in size, and so would what goes on from one window to the next. */
static void a_state_whose_size_depends_on_the_sample_is_refused(void **state)
{
    (void)state;
    mkdir(ls_test_path("p"), 0755);
    mkdir(ls_test_path("p_maps"), 0755);
    for (int i = 0; i < PICTURES; i++)
        write_pair("p", i, size_of(i));
    struct lockstep_train_options options;
    struct lockstep_trainer *trainer = NULL;
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_solver *solver = make_solver(
        "base_lr: 0.01 lr_policy: 'fixed' micro_batch: 3 max_iter: 9", "p", "batch_size: 12", "",
        (struct size_net){.file = "sizes_per_pixel",
                          .more =
                              "layer { name: 's' type: 'RunningSum' bottom: 'score' top: 's' }"});
    lockstep_train_options_init(&options);
    options.workers = 1;
    options.snapshot_prefix = ls_test_path("sizes");
    assert_int_equal(lockstep_trainer_create(solver, &options, &trainer, error),
                     LOCKSTEP_DEFINITION);
    if (strstr(lockstep_error_text(error), "the state 's.sum', which goes on from one window to "
                                           "the next, would be ") == NULL)
        fail_msg("%s", lockstep_error_text(error));
    lockstep_error_free(error);
    lockstep_solver_free(solver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_row_goes_on_where_the_row_of_its_number_ended, setup),
        cmocka_unit_test_setup(any_workers_give_same_bits, setup),
        cmocka_unit_test_setup(any_ranks_give_same_bits_on_each_device, setup),
        cmocka_unit_test_setup(all_forms_of_training_agree, setup),
        cmocka_unit_test_setup(what_is_computed_again_reads_the_same_state, setup),
        cmocka_unit_test_setup(verify_names_a_state_that_differs, setup),
        cmocka_unit_test_setup(a_repeated_pass_reads_the_same_state, setup),
        cmocka_unit_test_setup(ranks_compare_their_states_before_a_snapshot, setup),
        cmocka_unit_test_setup(a_test_begins_with_zeros_and_leaves_the_training_alone, setup),
        cmocka_unit_test_setup(a_resumed_training_has_the_state, setup),
        cmocka_unit_test_setup(a_snapshot_of_a_copy_has_the_same_bytes, setup),
        cmocka_unit_test_setup(a_snapshot_with_another_state_is_refused, setup),
        cmocka_unit_test_setup(weights_bring_no_state, setup),
        cmocka_unit_test_setup(a_prediction_reads_zeros_and_keeps_nothing, setup),
        cmocka_unit_test_setup(the_forecast_counts_the_state, setup),
        cmocka_unit_test_setup(mistakes_with_states_are_found, setup),
        cmocka_unit_test_setup(a_state_whose_size_depends_on_the_sample_is_refused, setup)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
