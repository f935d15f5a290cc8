/* State per sample in tests, snapshots, predictions and forecasts, and mistakes with it
 * (docs/numerics.md, section 15).
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/pass.h"
#include "numerics/sizes.h"
#include "snapshot/archive.h"
#include "solver/evaluate.h"
#include "solver/weights.h"
#include "trainings/remote_device.h"
#include "trainings/state_nets.h"

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
    for (int n = 0; n < STATE_NETS; n++) {
        struct lockstep_solver *solver = solver_of(&state_nets[n]);
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
            check_same(expected, snapshot(training), "%s, resumed at %d", state_nets[n].name, cut);
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
    struct state_net net = state_nets[1];
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
    assert_int_equal(ls_trainer_load_weights(training->trainer->inner, path, NULL, false, NULL), 0);
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
        cmocka_unit_test_setup(a_test_begins_with_zeros_and_leaves_the_training_alone,
                               set_up_states),
        cmocka_unit_test_setup(a_resumed_training_has_the_state, set_up_states),
        cmocka_unit_test_setup(a_snapshot_of_a_copy_has_the_same_bytes, set_up_states),
        cmocka_unit_test_setup(a_snapshot_with_another_state_is_refused, set_up_states),
        cmocka_unit_test_setup(weights_bring_no_state, set_up_states),
        cmocka_unit_test_setup(a_prediction_reads_zeros_and_keeps_nothing, set_up_states),
        cmocka_unit_test_setup(the_forecast_counts_the_state, set_up_states),
        cmocka_unit_test_setup(mistakes_with_states_are_found, set_up_states),
        cmocka_unit_test_setup(a_state_whose_size_depends_on_the_sample_is_refused, set_up_states),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
