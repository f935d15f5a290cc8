/* Batch statistics are those of the whole batch. Losses, gradients and moving averages of whole
 * updates are compared with plain loops in double precision over all samples, for micro-batches
 * of any size and for data far from zero. Averages advance once for each group, in order, and
 * only in updates.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "numerics/batch_statistics.h"
#include "engine/exponents.h"

/* ---- Comparing ------------------------------------------------------------------------------- */

/* `least`: where all expected numbers are smaller, the tolerance is a part of this. */
static void check_closer(const float *values, const double *expected, int n, double tolerance,
                         double least, const char *what, const char *name)
{
    double largest = least;
    for (int i = 0; i < n; i++)
        largest = fmax(largest, fabs(expected[i]));
    for (int i = 0; i < n; i++)
        if (!(fabs((double)values[i] - expected[i]) <= tolerance * largest))
            fail_msg("%s: %s[%d] is %.9g, not %.9g (the largest is %g)", what, name, i,
                     (double)values[i], expected[i], largest);
}

static void check_close(const float *values, const double *expected, int n, double tolerance,
                        const char *what, const char *name)
{
    check_closer(values, expected, n, tolerance, 0, what, name);
}

/* The next norm removes most of what the first one scales and adds, so that these gradients are
 * sums that almost cancel; this is the size of their terms. */
static double size_of_terms(const struct update *u, enum parameter which)
{
    double squares = 0;
    for (int i = 0; i < u->n * PIXELS && (which == SCALE_0 || which == BIAS_0); i++)
        squares += u->y0[i] > 0 ? u->dy0[i] * u->dy0[i] : 0;
    return sqrt(squares);
}

static const enum parameter trained[] = {SCALE_0, BIAS_0,   WEIGHT_1, SCALE_1,
                                         BIAS_1,  WEIGHT_2, OFFSET_2};
static const enum parameter averages[] = {MEAN_0, VARIANCE_0, FACTOR_0,
                                          MEAN_1, VARIANCE_1, FACTOR_1};

/* One update of a training against the reference. (The bias before a norm has no gradient.) */
static void check_update(const struct settings *s, struct training *training, int number,
                         const char *what)
{
    static struct update u;
    float values[ELEMENTS];
    set_up(&u, s, training, number);
    compute(&u, number);
    step(training, 1);
    double loss = lockstep_trainer_loss(training->trainer);
    if (fabs(loss - u.loss) > 1e-5 * u.loss)
        fail_msg("%s: the loss is %.9g, not %.9g", what, loss, u.loss);
    for (size_t i = 0; i < sizeof trained / sizeof *trained; i++) {
        enum parameter p = trained[i];
        read_gradient(training, p, values);
        check_closer(values, u.dw[p], parameters[p].size, 1e-5, size_of_terms(&u, p), what,
                     parameters[p].name);
    }
    advance(&u, &u.first, u.x, MEAN_0, VARIANCE_0, FACTOR_0);
    advance(&u, &u.second, u.z1, MEAN_1, VARIANCE_1, FACTOR_1);
    for (size_t i = 0; i < sizeof averages / sizeof *averages; i++) {
        enum parameter p = averages[i];
        read_parameter(training, p, values);
        check_close(values, u.w[p], parameters[p].size, 1e-5, what, parameters[p].name);
        if (p == FACTOR_0 || p == FACTOR_1)
            assert_true((double)values[0] == u.w[p][0]);
    }
}

static void check_updates(const struct settings *s, int workers)
{
    char what[200];
    struct lockstep_solver *solver = make_solver(s);
    struct training *training = start(solver, workers, NULL, NULL);
    for (int number = 0; number < 3; number++) {
        snprintf(what, sizeof what,
                 "update %d, batch %d in micro-batches of %d, groups of %d, iter_size %d, "
                 "pixels + %g, %d workers",
                 number, s->batch, s->micro_batch, s->group, s->iter_size, s->offset, workers);
        check_update(s, training, number, what);
    }
    finish(training);
    lockstep_solver_free(solver);
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static const int micro_batches[] = {20, 7, 3, 1};
enum { MICRO_BATCHES = sizeof micro_batches / sizeof *micro_batches };

static void updates_are_those_of_a_reference_in_double(void **state)
{
    (void)state;
    static const int groups[] = {0, 6, 3, 32, 7};
    for (int m = 0; m < MICRO_BATCHES; m++)
        for (int g = 0; g < 5; g++)
            for (int iter_size = 1; iter_size <= 2; iter_size++) {
                struct settings s = {.batch = BATCH,
                                     .micro_batch = micro_batches[m],
                                     .group = groups[g],
                                     .iter_size = iter_size};
                check_updates(&s, m > 1 ? 1 + g % 3 : m > 0 ? 1 + g % 2 : 1);
            }
}

/* Pixels far from zero: a float that holds their squares has no bits left for their differences. */
static void means_far_from_zero_lose_no_variance(void **state)
{
    (void)state;
    static const double offsets[] = {1000, -1000, 100000};
    for (int i = 0; i < 3; i++)
        for (int m = 0; m < MICRO_BATCHES; m++) {
            struct settings s = {.batch = BATCH,
                                 .micro_batch = micro_batches[m],
                                 .iter_size = 1,
                                 .offset = offsets[i]};
            check_updates(&s, m > 0 ? 2 : 1);
        }
}

/* Shares of unequal size change the gradient by roundings alone. */
static void unequal_shares_change_gradients_by_rounding_only(void **state)
{
    (void)state;
    float whole[PARAMETERS][ELEMENTS], cut[ELEMENTS];
    double expected[ELEMENTS];
    for (int m = 0; m < MICRO_BATCHES; m++) {
        struct settings s = {.batch = BATCH, .micro_batch = micro_batches[m], .iter_size = 1};
        struct lockstep_solver *solver = make_solver(&s);
        struct training *training = start(solver, 1, NULL, NULL);
        step(training, 1);
        for (size_t i = 2; i < sizeof trained / sizeof *trained; i++) {
            enum parameter p = trained[i];
            read_gradient(training, p, m == 0 ? whole[p] : cut);
            for (int e = 0; m > 0 && e < parameters[p].size; e++)
                expected[e] = (double)whole[p][e];
            if (m > 0)
                check_close(cut, expected, parameters[p].size, 2e-6, "cut", parameters[p].name);
        }
        finish(training);
        lockstep_solver_free(solver);
    }
}

/* ---- When averages advance ------------------------------------------------------------------- */

/* The averages of the norm on the data, which weights do not touch. */
static void read_averages(const struct training *training, float values[3])
{
    for (int i = 0; i < 3; i++)
        read_parameter(training, averages[i], values + i);
}

static void spoil_exponents(struct training *training)
{
    struct ls_sums *sums = training->trainer->inner->store->sums;
    size_t count = lockstep_trainer_parameter_count(training->trainer);
    for (size_t i = 0; i < count; i++)
        ls_sums_set_exponent(sums, (int)i, ls_sums_exponent(sums, (int)i) + 25);
}

/* An update that is repeated advances them once. */
static void a_repeated_update_advances_the_averages_once(void **state)
{
    (void)state;
    for (int group = 0; group <= 3; group += 3)
        for (int workers = 1; workers <= 3; workers++) {
            struct settings s = {
                .batch = BATCH, .micro_batch = 3, .group = group, .iter_size = 2, .offset = 0};
            float expected[3], values[3];
            struct lockstep_solver *solver = make_solver(&s);
            struct training *training = start(solver, workers, NULL, NULL);
            step(training, 3);
            read_averages(training, expected);
            finish(training);
            training = start(solver, workers, NULL, NULL);
            step(training, 1);
            for (int i = 1; i < 3; i++) {
                int repeats = training->repeats;
                spoil_exponents(training);
                step(training, 1);
                assert_true(training->repeats > repeats);
            }
            read_averages(training, values);
            assert_memory_equal(values, expected, sizeof values);
            finish(training);
            lockstep_solver_free(solver);
        }
}

/* ---- Saved averages in training -------------------------------------------------------------- */

/* Frozen norms keep the averages that training left; gradients treat these as constants. */
static void frozen_norms_keep_their_averages(void **state)
{
    (void)state;
    struct settings s = {.batch = BATCH, .micro_batch = 3, .iter_size = 1};
    struct lockstep_solver *solver = make_solver(&s);
    struct training *training = start(solver, 2, NULL, NULL);
    step(training, 4);
    char weights[200];
    snprintf(weights, sizeof weights, "%s", ls_test_path("weights.safetensors"));
    assert_int_equal(lockstep_trainer_snapshot(training->trainer, weights, NULL), 0);
    finish(training);
    lockstep_solver_free(solver);
    s.fields = "use_global_stats: true";
    char more[300];
    snprintf(more, sizeof more, "weights: '%s'", weights);
    s.more = more;
    solver = make_solver(&s);
    for (int workers = 1; workers <= 3; workers++) {
        static struct update u;
        double mean[2][HIDDEN], variance[2][HIDDEN];
        float values[ELEMENTS];
        training = start(solver, workers, NULL, NULL);
        assert_int_equal(ls_net_first_plan(training->trainer->inner->train)->segments, 1);
        for (int number = 0; number < 3; number++) {
            set_up(&u, &s, training, number);
            for (int c = 0; c < HIDDEN; c++) {
                mean[0][c] = u.w[MEAN_0][0] / u.w[FACTOR_0][0];
                variance[0][c] = u.w[VARIANCE_0][0] / u.w[FACTOR_0][0];
                mean[1][c] = u.w[MEAN_1][c] / u.w[FACTOR_1][0];
                variance[1][c] = u.w[VARIANCE_1][c] / u.w[FACTOR_1][0];
            }
            u.first.saved_mean = mean[0];
            u.first.saved_variance = variance[0];
            u.second.saved_mean = mean[1];
            u.second.saved_variance = variance[1];
            compute(&u, number);
            step(training, 1);
            for (size_t i = 0; i < sizeof trained / sizeof *trained; i++) {
                enum parameter p = trained[i];
                read_gradient(training, p, values);
                check_close(values, u.dw[p], parameters[p].size, 1e-5, "frozen",
                            parameters[p].name);
            }
            read_gradient(training, OFFSET_1, values);
            check_close(values, u.dw[OFFSET_1], HIDDEN, 1e-5, "frozen", "i1.bias");
            for (size_t i = 0; i < sizeof averages / sizeof *averages; i++) {
                enum parameter p = averages[i];
                read_parameter(training, p, values);
                for (int c = 0; c < parameters[p].size; c++)
                    assert_true((double)values[c] == u.w[p][c]);
            }
        }
        finish(training);
    }
    struct lockstep_error *error = lockstep_error_new();
    if (verify_workers(solver, (int[]){1, 3}, 2, 3, error) != 0)
        fail_msg("%s", lockstep_error_text(error));
    lockstep_error_free(error);
    lockstep_solver_free(solver);
}

/* ---- Nothing to spread ----------------------------------------------------------------------- */

/* A group of one sample has one value for each channel behind the first norm. Its variance is 0,
 * so that the output is the bias and the gradient is 0. */
static void a_group_of_one_sample_gives_the_bias_and_no_gradient(void **state)
{
    (void)state;
    for (int batch = 1; batch <= 6; batch += 5)
        for (int workers = 1; workers <= 2 && workers <= batch; workers++) {
            struct settings s = {.batch = batch, .micro_batch = 1, .group = 1, .iter_size = 2};
            static struct update u;
            float values[ELEMENTS];
            struct lockstep_solver *solver = make_solver(&s);
            struct training *training = start(solver, workers, NULL, NULL);
            for (int number = 0; number < 3; number++) {
                set_up(&u, &s, training, number);
                compute(&u, number);
                step(training, 1);
                assert_true(fabs(lockstep_trainer_loss(training->trainer) - u.loss) <
                            1e-5 * u.loss);
                read_gradient(training, WEIGHT_1, values);
                for (int i = 0; i < ELEMENTS; i++)
                    assert_true(values[i] == 0);
                read_gradient(training, BIAS_1, values);
                check_close(values, u.dw[BIAS_1], HIDDEN, 1e-5, "one value", "n1.bias");
                read_parameter(training, VARIANCE_1, values);
                for (int c = 0; c < HIDDEN; c++)
                    assert_true(values[c] == 0);
            }
            free(snapshot(training).data);
            finish(training);
            lockstep_solver_free(solver);
        }
}

/* The loss of the second update, with `group` in both norms or, `of_net`, once for the net. */
static double second_loss(int group, const char *of_net)
{
    char *text = strdup(ls_test_net(
        "batch_statistics", LS_TEST_VALUES({"offset", "0"}, {"batch", "20"},
                                           {"group", ls_test_text("%d", group)}, {"fields", ""})));
    assert_non_null(text);
    for (char *at; group == 0 && (at = strstr(text, "group: 0")) != NULL;)
        memset(at, ' ', strlen("group: 0"));
    struct lockstep_solver *solver =
        load_solver("base_lr: 0.01 lr_policy: 'fixed' max_iter: 100 random_seed: 3\n"
                    "net_param { %s %s }\n",
                    of_net, text);
    free(text);
    struct training *training = start(solver, 2, NULL, NULL);
    step(training, 2);
    const double loss = lockstep_trainer_loss(training->trainer);
    finish(training);
    lockstep_solver_free(solver);
    return loss;
}

static void the_net_gives_a_group_to_norms_that_have_none(void **state)
{
    (void)state;
    const double of_layers = second_loss(4, "");
    assert_true(of_layers == second_loss(0, "bn_stats_batch_size: 4"));
    assert_true(of_layers == second_loss(4, "bn_stats_batch_size: 5"));
    assert_true(of_layers != second_loss(0, ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(updates_are_those_of_a_reference_in_double),
        cmocka_unit_test(means_far_from_zero_lose_no_variance),
        cmocka_unit_test(unequal_shares_change_gradients_by_rounding_only),
        cmocka_unit_test(a_repeated_update_advances_the_averages_once),
        cmocka_unit_test(frozen_norms_keep_their_averages),
        cmocka_unit_test(a_group_of_one_sample_gives_the_bias_and_no_gradient),
        cmocka_unit_test(the_net_gives_a_group_to_norms_that_have_none),
    };
    write_idx_pair(ls_test_path("images"), ls_test_path("labels"), SAMPLES, SIDE);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
