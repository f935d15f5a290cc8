/* Large inner products that all workers compute for the rows of all micro-batches together. They
 * give the same bytes on any number of workers, and the bytes of separate products (where memory
 * is short), in training and in tests.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "api/model.h"
#include "trainings/training.h"

enum { SAMPLES = 61, GATHERED = 4, UPDATES = 4 };

/* Two layers of 8 MiB, which are read as fp32 by products in bf16, too, one of them with transposed
 * weights; the first layer and the last are too small. */
static struct lockstep_solver *make_solver(const char *settings, const char *data)
{
    return load_solver(
        "base_lr: 0.02 momentum: 0.9 weight_decay: 0.001 lr_policy: 'fixed' max_iter: 40\n"
        "random_seed: 3 %s\n"
        "net_param { %s }\n",
        settings, ls_test_net("gathered", LS_TEST_VALUES({"data", data})));
}

static int setup(void **state)
{
    (void)state;
    write_idx_pair(ls_test_path("images"), ls_test_path("labels"), SAMPLES, 16);
    return 0;
}

/* Steps of the train net that are gathered. */
static int gathered(const struct training *training)
{
    const struct ls_plan *plan = ls_net_first_plan(training->trainer->inner->train);
    int count = 0;
    for (size_t s = 0; s < plan->step_count; s++)
        count += plan->steps[s].gathered;
    return count;
}

/* The state after some updates; `limit` 0: no limit on memory. */
static struct bytes train(const struct lockstep_solver *solver, int workers, size_t limit, int want)
{
    struct training *training = start(solver, workers, NULL, NULL);
    if (limit > 0)
        limit_memory(training, limit);
    assert_int_equal(gathered(training), want);
    step(training, UPDATES);
    struct bytes bytes = snapshot(training);
    finish(training);
    return bytes;
}

/* The third has a batch of one sample now and then: one micro-batch, of which nothing is shared.
 * The last has micro-batches of 16 rows, with which products are gathered, and of 17, which would
 * be too many by themselves. */
static const char *const cases[][2] = {
    {"micro_batch: 3 ", "batch_size: 20 shuffle: true"},
    {"micro_batch: 5 iter_size: 2 clip_gradients: 0.5 ", "batch_size: 30"},
    {"micro_batch: 1 ", "batch_size: 20 last_batch: PARTIAL"},
    {"micro_batch: 17 ", "batch_size: 101"},
    {"precision: BF16 micro_batch: 3 ", "batch_size: 20 shuffle: true"},
    {"precision: BF16 micro_batch: 16 ", "batch_size: 150"},
};

static void gathered_products_give_the_bits_of_separate_ones(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lockstep_solver *solver = make_solver(cases[i][0], cases[i][1]);
        struct bytes apart = train(solver, 1, 1, 0);
        check_same(apart, train(solver, 1, 0, GATHERED), "case %zu, one worker", i);
        check_same(apart, train(solver, 2, 0, GATHERED), "case %zu, two workers", i);
        check_same(apart, train(solver, 5, 0, GATHERED), "case %zu, five workers", i);
        check_same(apart, train(solver, 3, 1, 0), "case %zu, three workers apart", i);
        free(apart.data);
        lockstep_solver_free(solver);
    }
}

/* With a limit that is large enough they are gathered, with half of that they are not. */
static void products_are_gathered_where_memory_allows(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver(cases[0][0], cases[0][1]);
    struct training *training = start(solver, 2, NULL, NULL);
    size_t needed = ls_net_memory_bytes(training->trainer->inner->train, 2);
    assert_int_equal(limit_memory(training, needed), needed);
    assert_int_equal(gathered(training), GATHERED);
    assert_true(limit_memory(training, needed / 2) < needed);
    assert_int_equal(gathered(training), 0);
    finish(training);
    lockstep_solver_free(solver);
}

/* A single micro-batch has no other to share the weights with; micro-batches of many rows need
 * not. */
static void products_are_gathered_where_that_saves_work(void **state)
{
    (void)state;
    static const struct {
        const char *settings, *data;
        int gathered;
    } rules[] = {{"micro_batch: 16 ", "batch_size: 32", GATHERED},
                 {"micro_batch: 17 ", "batch_size: 34", 0},
                 {"micro_batch: 8 ", "batch_size: 8", 0}};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        struct lockstep_solver *solver = make_solver(rules[i].settings, rules[i].data);
        struct training *training = start(solver, 1, NULL, NULL);
        assert_int_equal(gathered(training), rules[i].gathered);
        finish(training);
        lockstep_solver_free(solver);
    }
}

/* The loss of a test phase over all samples. */
static double test_loss(const char *weights, int workers, bool *gathers)
{
    struct lockstep_model_options options;
    struct lockstep_model *model = NULL;
    struct lockstep_error *error = lockstep_error_new();
    const struct lockstep_output *outputs = NULL;
    size_t count = 0;
    lockstep_model_options_init(&options);
    options.workers = workers;
    if (lockstep_model_load(ls_test_path("solver.prototxt"), weights, &options, &model, error) !=
            0 ||
        lockstep_model_test(model, &outputs, &count, NULL, error) != 0)
        fail_msg("%s", lockstep_error_text(error));
    assert_int_equal(count, 1);
    double loss = outputs[0].values[0];
    *gathers = model->net->gathers;
    lockstep_model_free(model);
    lockstep_error_free(error);
    return loss;
}

static void gathered_test_phases_give_the_bits_of_separate_ones(void **state)
{
    (void)state;
    char path[512];
    snprintf(path, sizeof path, "%s", ls_test_path("weights.safetensors"));
    struct lockstep_solver *solver = make_solver(cases[0][0], cases[0][1]);
    struct training *training = start(solver, 2, NULL, NULL);
    step(training, 2);
    assert_int_equal(lockstep_trainer_snapshot(training->trainer, path, training->error), 0);
    finish(training);
    bool gathers[3];
    double one = test_loss(path, 1, &gathers[0]), three = test_loss(path, 3, &gathers[1]);
    assert_true(gathers[0] && gathers[1]);
    assert_memory_equal(&one, &three, sizeof one);
    /* The same weights and samples, each a batch by itself. */
    lockstep_solver_free(solver);
    solver = make_solver("", "batch_size: 1");
    double apart = test_loss(path, 2, &gathers[2]);
    assert_false(gathers[2]);
    assert_true(apart > 0 && apart - one < 1e-6 * one && one - apart < 1e-6 * one);
    lockstep_solver_free(solver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gathered_products_give_the_bits_of_separate_ones),
        cmocka_unit_test(products_are_gathered_where_memory_allows),
        cmocka_unit_test(products_are_gathered_where_that_saves_work),
        cmocka_unit_test(gathered_test_phases_give_the_bits_of_separate_ones),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
