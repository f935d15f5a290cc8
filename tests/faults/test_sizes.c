/* Nets and settings that cannot work with pictures of different sizes. They are refused before
 * training begins; with very many sizes, when the size is met. The message names the layer, the
 * size and a record that has it, the weights stay as they were, and the same call fails again in
 * the same way.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "numerics/sizes.h"

/* Fails unless all parts are in the error's text. */
static void check_says(struct lockstep_error *error, const char *const *parts)
{
    for (; *parts != NULL; parts++)
        if (strstr(lockstep_error_text(error), *parts) == NULL)
            fail_msg("'%s' is not in: %s", *parts, lockstep_error_text(error));
}

#define SAYS(error, ...) check_says(error, (const char *const[]){__VA_ARGS__, NULL})

enum { SIZES_TRIED = 256 /* before a training begins */ };

/* "even": pictures of 16 x 12, with one of 13 x 10 among them. "crowd": so many even sizes that
 * not all of them are tried before a training, and an odd size behind them. */
static void write_pictures(void)
{
    for (int i = 0; i < 8; i++)
        write_pair("even", i, i == 5 ? (struct size){13, 10} : (struct size){16, 12});
    for (int i = 0; i < SIZES_TRIED; i++)
        write_pair("crowd", i, (struct size){2 + 2 * (i % 16), 2 + 2 * (i / 16)});
    for (int i = SIZES_TRIED; i < SIZES_TRIED + 4; i++)
        write_pair("crowd", i, (struct size){13, 10});
}

/* ---- Before it runs -------------------------------------------------------------------------- */

static void refuse(struct lockstep_solver *solver, const char *const *parts)
{
    struct lockstep_train_options options;
    struct lockstep_trainer *trainer;
    struct lockstep_error *error = lockstep_error_new();
    lockstep_train_options_init(&options);
    int status = lockstep_trainer_create(solver, &options, &trainer, error);
    if (status == 0)
        lockstep_trainer_free(trainer);
    assert_int_equal(status, LOCKSTEP_DEFINITION);
    check_says(error, parts);
    lockstep_error_free(error);
    lockstep_solver_free(solver);
}

/* Refuses a net on data with a size that it cannot take. `type` is that of a layer that the file
 * leaves open. */
static void refuse_size(const char *file, const char *type, const char *const *parts)
{
    refuse(make_solver(SGD "max_iter: 9 micro_batch: 2", "even", "batch_size: 4", "",
                       (struct size_net){.file = file, .type = type}),
           parts);
}

/* The weights of an inner product depend on the size of the pictures. */
static void sizes_that_an_inner_product_cannot_take_are_refused(void **state)
{
    (void)state;
    refuse_size(
        "sizes_product", NULL,
        (const char *const[]){"solver.prototxt:", "for samples of 3 x 13 x 10: ip: ", "weight",
                              "3 768", "3 520", "record 5 (005.png)", "differ in size", NULL});
}

/* What was pooled and enlarged again is as large as it was only where sizes are even. */
static void odd_sizes_that_do_not_join_again_are_refused(void **state)
{
    (void)state;
    static const char *const types[] = {"Eltwise", "Concat"};
    for (int i = 0; i < 2; i++)
        refuse_size("sizes_even", types[i],
                    (const char *const[]){"for samples of 3 x 13 x 10: both: ", "13", "14",
                                          "record 5 (005.png)", NULL});
}

/* ---- While it runs --------------------------------------------------------------------------- */

static void a_size_found_in_training_ends_it_before_the_update(void **state)
{
    (void)state;
    struct lockstep_solver *solver =
        make_solver(SGD "max_iter: 99 micro_batch: 2", "crowd", "batch_size: 8", "",
                    (struct size_net){.file = "sizes_even", .type = "Eltwise"});
    struct training *training = start(solver, 2, NULL, NULL);
    training->schedule.workers = 1;
    step(training, SIZES_TRIED / 8);
    struct bytes before = snapshot(training);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(lockstep_trainer_step(training->trainer, 1, training->error),
                         LOCKSTEP_DEFINITION);
        SAYS(training->error, "for samples of 3 x 13 x 10: both: ", "record 256 (256.png)");
        assert_int_equal(lockstep_trainer_iteration(training->trainer), SIZES_TRIED / 8);
    }
    check_same(before, snapshot(training), "after the failure");
    free(before.data);
    finish(training);
    lockstep_solver_free(solver);
}

/* A test fails, training goes on. */
static void a_size_found_in_a_test_leaves_training_alone(void **state)
{
    (void)state;
    const struct lockstep_output *outputs;
    size_t count;
    struct lockstep_solver *solver = make_solver(
        SGD "max_iter: 9 micro_batch: 2 test_interval: 100", "p", "batch_size: 12",
        test_layer("crowd", "batch_size: 4"), (struct size_net){.file = "sizes_halved"});
    struct training *untested = start(solver, 1, NULL, NULL), *training;
    step(untested, 4);
    struct bytes first = snapshot(untested);
    finish(untested);
    training = start(solver, 2, NULL, NULL);
    step(training, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(
            lockstep_trainer_evaluate(training->trainer, 0, &outputs, &count, training->error),
            LOCKSTEP_DEFINITION);
        SAYS(training->error, "for samples of 3 x 13 x 10: both: ", "record 256 (256.png)");
    }
    step(training, 2);
    check_same(first, snapshot(training), "after a test that failed");
    finish(training);
    free(first.data);
    lockstep_solver_free(solver);
}

/* ---- What samples of different sizes cannot be used for -------------------------------------- */

static void two_sources_of_different_sizes_are_refused(void **state)
{
    (void)state;
    const char *second = ls_test_text(
        "layer { name: 'second' type: 'Data' top: 'more' data_param { backend: IMAGE_PAIRS\n"
        "  source: '%s/even' label_source: '%s/even_maps' batch_size: 4 } }\n"
        "layer { name: 's' type: 'Silence' bottom: 'more' }\n",
        ls_test_directory(), ls_test_directory());
    refuse(
        make_solver(SGD "max_iter: 9", "even", "batch_size: 4", "",
                    (struct size_net){.file = "sizes_scores", .more = second}),
        (const char *const[]){"second: its samples differ in size", "'d'", "crop or resize", NULL});
}

static void groups_of_different_sizes_are_refused(void **state)
{
    (void)state;
    refuse(make_solver(SGD "max_iter: 9 follow_groups: true", "even", "batch_size: 4", "",
                       (struct size_net){.file = "sizes_deconvolved", .norm = "group: 2"}),
           (const char *const[]){"follow_groups", "'d'", "differ", "crop or resize", NULL});
}

/* ---- Models ---------------------------------------------------------------------------------- */

/* A model is tested on pictures of more sizes than plans are kept for, and refuses to predict
 * for them. */
static void a_model_is_tested_on_sizes_and_refuses_to_predict(void **state)
{
    (void)state;
    const struct size_net scores = {.file = "sizes_scores"},
                          tested = {.file = "sizes_scores", .more = FIGURES};
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_model_options options;
    struct lockstep_model *model = NULL;
    const struct lockstep_output *outputs;
    static float sample[3 * PIXELS_MAX], output[CLASSES * PIXELS_MAX];
    size_t count;
    int64_t samples, before[3], after[3];
    ls_test_write_text(ls_test_path("model.prototxt"),
                       net_on(test_layer("many", "batch_size: 30"), &tested));
    struct lockstep_solver *solver =
        make_solver(SGD "max_iter: 1", "even", "batch_size: 4", "", scores);
    struct training *training = start(solver, 1, NULL, NULL);
    free(snapshot(training).data);
    finish(training);
    lockstep_solver_free(solver);
    lockstep_model_options_init(&options);
    options.workers = 2;
    if (lockstep_model_load(ls_test_path("model.prototxt"), ls_test_path("snapshot.safetensors"),
                            &options, &model, error) != 0)
        fail_msg("%s", lockstep_error_text(error));
    lockstep_model_input_shape(model, before);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(lockstep_model_test(model, &outputs, &count, &samples, error), 0);
        assert_int_equal(samples, 100);
        lockstep_model_input_shape(model, after);
        assert_memory_equal(before, after, sizeof before);
        assert_int_equal(lockstep_model_predict(model, sample, 1, output, error),
                         LOCKSTEP_DEFINITION);
        SAYS(error, "model.prototxt", "predictions need samples of one size", "crop_size");
        /* Before the picture is looked at: what it becomes may be larger than the room for it. */
        assert_int_equal(lockstep_model_predict_picture(model, "none.png", output, error),
                         LOCKSTEP_DEFINITION);
        SAYS(error, "model.prototxt", "predictions need samples of one size", "crop_size");
    }
    lockstep_model_free(model);
    lockstep_error_free(error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_that_an_inner_product_cannot_take_are_refused),
        cmocka_unit_test(odd_sizes_that_do_not_join_again_are_refused),
        cmocka_unit_test(a_size_found_in_training_ends_it_before_the_update),
        cmocka_unit_test(a_size_found_in_a_test_leaves_training_alone),
        cmocka_unit_test(two_sources_of_different_sizes_are_refused),
        cmocka_unit_test(groups_of_different_sizes_are_refused),
        cmocka_unit_test(a_model_is_tested_on_sizes_and_refuses_to_predict),
    };
    write_pictures();
    for (int i = 0; i < PICTURES; i++)
        write_pair("p", i, size_of(i));
    for (int i = 0; i < 100; i++)
        write_pair("many", i, (struct size){1 + i % 7, 1 + i});
    return cmocka_run_group_tests(tests, NULL, NULL);
}
