/* What cannot be done with pictures that differ in size. It is found before anything is trained; of
 * data with very many sizes, when the size comes up. The message names the layer, the size and a
 * record that has it, the weights stay what they were, and the same call fails again in the same
 * way.
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

/* "even": sizes 16 x 12 in front, then 13 x 10 among them. "crowd": so many even sizes that nothing
 * tries them all, and an odd one behind them. */
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

/* Refuses a net whose data have a size that it cannot take. */
static void refuse_size(const char *net, const char *const *parts)
{
    refuse(make_solver(SGD "max_iter: 9 micro_batch: 2", "even", "batch_size: 4", "", net), parts);
}

/* Its weights have the shape that pictures give them. */
static void test_inner_product(void **state)
{
    (void)state;
    refuse_size(
        CONVOLUTION(
            "c1", "data",
            "num_output: 4 kernel_size: 1") "layer { name: 'ip' type: 'InnerProduct' bottom: 'c1' "
                                            "top: 'ip'\n"
                                            "  inner_product_param { num_output: 3 weight_filler { "
                                            "type: 'msra' } } }\n"
                                            "layer { name: 'zeros' type: 'DummyData' top: 'zeros' "
                                            "dummy_data_param {\n"
                                            "  shape { dim: 4 dim: 3 } } }\n"
                                            "layer { name: 'l' type: 'EuclideanLoss' bottom: 'ip' "
                                            "bottom: 'zeros' top: 'l' }\n"
                                            "layer { name: 's' type: 'Silence' bottom: 'label' }\n",
        (const char *const[]){"solver.prototxt:", "for samples of 3 x 13 x 10: ip: ", "weight",
                              "3 768", "3 520", "record 5 (005.png)", "differ in size", NULL});
}

/* What was pooled and enlarged again is as large as it was only where sizes are even. */
#define UP                                                                                         \
    CONVOLUTION("c1", "data", "num_output: 4 kernel_size: 3 pad: 1")                               \
    POOL "layer { name: 'up' type: 'Deconvolution' bottom: 'pool' top: 'up'\n"                     \
         "  convolution_param { num_output: 4 kernel_size: 2 stride: 2 } }\n"
#define EVEN_ONLY(type)                                                                            \
    UP "layer { name: 'both' type: '" type                                                         \
       "' bottom: 'c1' bottom: 'up' top: 'both' }\n" CONVOLUTION(                                  \
           "score", "both", "num_output: 4 kernel_size: 1") LOSS("")

static void test_odd_sizes(void **state)
{
    (void)state;
    static const char *const nets[] = {EVEN_ONLY("Eltwise"), EVEN_ONLY("Concat")};
    for (int i = 0; i < 2; i++)
        refuse_size(nets[i], (const char *const[]){"for samples of 3 x 13 x 10: both: ", "13", "14",
                                                   "record 5 (005.png)", NULL});
}

/* ---- While it runs --------------------------------------------------------------------------- */

static void test_in_training(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver(SGD "max_iter: 99 micro_batch: 2", "crowd",
                                                 "batch_size: 8", "", EVEN_ONLY("Eltwise"));
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
static void test_in_a_test(void **state)
{
    (void)state;
    const struct lockstep_output *outputs;
    size_t count;
    struct lockstep_solver *solver = make_solver(
        SGD "max_iter: 9 micro_batch: 2 test_interval: 100", "p", "batch_size: 12",
        test_layer("crowd", "batch_size: 4"),
        CONVOLUTION("score", "data", "num_output: 4 kernel_size: 1")
            LOSS("") "layer { name: 'half' type: 'Pooling' bottom: 'score' top: 'half' include { "
                     "phase: TEST "
                     "}\n  pooling_param { pool: AVE kernel_size: 2 stride: 2 } }\n"
                     "layer { name: 'up' type: 'Deconvolution' bottom: 'half' top: 'up' include { "
                     "phase: TEST "
                     "}\n  convolution_param { num_output: 4 kernel_size: 2 stride: 2 } }\n"
                     "layer { name: 'both' type: 'EuclideanLoss' bottom: 'up' bottom: 'score' top: "
                     "'both'\n"
                     "  include { phase: TEST } }\n");
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

static void test_two_that_differ(void **state)
{
    (void)state;
    char second[1024];
    snprintf(second, sizeof second,
             "layer { name: 'second' type: 'Data' top: 'more' data_param { backend: IMAGE_PAIRS\n"
             "  source: '%s/even' label_source: '%s/even_maps' batch_size: 4 } }\n"
             "layer { name: 's' type: 'Silence' bottom: 'more' }\n",
             ls_test_directory(), ls_test_directory());
    char net[4096];
    snprintf(net, sizeof net, "%s%s", second,
             CONVOLUTION("score", "data", "num_output: 4 kernel_size: 1") LOSS(""));
    refuse(
        make_solver(SGD "max_iter: 9", "even", "batch_size: 4", "", net),
        (const char *const[]){"second: its samples differ in size", "'d'", "crop or resize", NULL});
}

static void test_follow_groups(void **state)
{
    (void)state;
    refuse(make_solver(SGD "max_iter: 9 follow_groups: true", "even", "batch_size: 4", "",
                       NORMALISED("group: 2", DECONVOLUTION) LOSS("")),
           (const char *const[]){"follow_groups", "'d'", "differ", "crop or resize", NULL});
}

/* ---- Models ---------------------------------------------------------------------------------- */

/* A model is tested on such pictures, on more sizes than plans are kept for, and refuses to predict
 * for them. */
static void test_model(void **state)
{
    (void)state;
    char text[4096];
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_model_options options;
    struct lockstep_model *model = NULL;
    const struct lockstep_output *outputs;
    static float sample[3 * PIXELS_MAX], output[CLASSES * PIXELS_MAX];
    size_t count;
    int64_t samples, before[3], after[3];
    snprintf(text, sizeof text, "%s%s", test_layer("many", "batch_size: 30"),
             CONVOLUTION("score", "data", "num_output: 4 kernel_size: 1") LOSS("") FIGURES);
    ls_test_write_text(ls_test_path("model.prototxt"), text);
    struct lockstep_solver *solver =
        make_solver(SGD "max_iter: 1", "even", "batch_size: 4", "",
                    CONVOLUTION("score", "data", "num_output: 4 kernel_size: 1") LOSS(""));
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
    }
    lockstep_model_free(model);
    lockstep_error_free(error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inner_product),   cmocka_unit_test(test_odd_sizes),
        cmocka_unit_test(test_in_training),     cmocka_unit_test(test_in_a_test),
        cmocka_unit_test(test_two_that_differ), cmocka_unit_test(test_follow_groups),
        cmocka_unit_test(test_model),
    };
    write_pictures();
    for (int i = 0; i < PICTURES; i++)
        write_pair("p", i, size_of(i));
    for (int i = 0; i < 100; i++)
        write_pair("many", i, (struct size){1 + i % 7, 1 + i});
    return cmocka_run_group_tests(tests, NULL, NULL);
}
