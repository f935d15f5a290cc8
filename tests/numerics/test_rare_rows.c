/* Rows of exact sums that are rarely touched, or that differ much in size, under an optimizer
 * that would amplify any noise in them: a training is compared with a simulation in plain code.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "ops/devices.h"
#include "trainings/training.h"
#include "trainings/weights.h"

/* ---- Rows that are touched rarely ------------------------------------------------------------ */

enum {
    WORDS = 64,
    COMMON = 8, /* most samples are one of these words */
    CLASSES = 10,
    TEXTS = 640,
    BATCH = 64,
    UPDATES = 60
};

/* An embedding: a sample is one word, and the weights of a word move when it is seen only. Common
 * words count 200 times as much. */
struct embedding {
    uint8_t pixels[TEXTS][WORDS], labels[TEXTS];
    int word[TEXTS];
};

static void make_words(struct embedding *set)
{
    for (uint32_t i = 0; i < TEXTS; i++) {
        bool rare = i % 10 == 9; /* one rare word in each epoch: TEXTS / 10 of them */
        int word = rare ? COMMON + (int)(i / 10) % (WORDS - COMMON)
                        : (int)ls_random_below(5, 1, i, COMMON);
        set->word[i] = word;
        set->pixels[i][word] = rare ? 1 : 200;
        set->labels[i] = (uint8_t)(ls_random_below(5, 2, i, 5) == 0
                                       ? ls_random_below(5, 3, i, CLASSES)
                                       : ls_random_below(5, 4, (uint64_t)word, CLASSES));
    }
}

/* `steep` is a layer between the weights and the scores; NULL: they are the scores. */
static struct lockstep_solver *make_solver(const struct embedding *set, const char *delta,
                                           const char *steep)
{
    write_idx(ls_test_path("words"), ls_test_path("classes"), TEXTS, 1, WORDS, set->pixels[0],
              set->labels);
    return load_solver(
        "type: 'Adam' base_lr: 0.002 momentum: 0.9 momentum2: 0.99 delta: %s\n"
        "lr_policy: 'fixed' max_iter: 100\n"
        "net_param { %s }\n",
        delta,
        ls_test_net("embedding",
                    LS_TEST_VALUES({"batch", ls_test_text("%d", BATCH)},
                                   {"classes", ls_test_text("%d", CLASSES)}, {"steep", steep},
                                   {"scores", steep != NULL ? "steep" : "embed"})));
}

/* The training in plain code: sums in double, the optimizer's own rule. */
struct simulation {
    float weights[CLASSES * WORDS], history[2][CLASSES * WORDS];
    float scale[CLASSES]; /* of the scores */
    float delta;
    int updates;
};

/* Adds a sample's gradient to sums in double precision. */
static void add_sample(const struct embedding *set, int sample, const struct simulation *simulation,
                       double *sums)
{
    int word = set->word[sample];
    double x = set->pixels[sample][word], p[CLASSES], largest = -1e300, total = 0;
    for (int c = 0; c < CLASSES; c++) {
        p[c] = (double)simulation->weights[c * WORDS + word] * x * (double)simulation->scale[c];
        largest = p[c] > largest ? p[c] : largest;
    }
    for (int c = 0; c < CLASSES; c++)
        total += p[c] = exp(p[c] - largest);
    for (int c = 0; c < CLASSES; c++)
        sums[c * WORDS + word] +=
            (p[c] / total - (c == set->labels[sample])) * x / BATCH * (double)simulation->scale[c];
}

static void simulate(struct simulation *simulation, const struct embedding *set)
{
    static double sums[CLASSES * WORDS];
    static float gradient[CLASSES * WORDS];
    memset(sums, 0, sizeof sums);
    for (int i = 0; i < BATCH; i++)
        add_sample(set, (simulation->updates * BATCH + i) % TEXTS, simulation, sums);
    for (int i = 0; i < CLASSES * WORDS; i++)
        gradient[i] = (float)sums[i];
    simulation->updates++;
    const struct ls_update_rule rule = {.kind = LS_UPDATE_ADAM,
                                        .rate = 0.002F,
                                        .momentum = 0.9F,
                                        .momentum2 = 0.99F,
                                        .delta = simulation->delta,
                                        .correction =
                                            ls_adam_correction(0.9F, 0.99F, simulation->updates),
                                        .gradient_scale = 1};
    const struct ls_update_slice slice = {
        .n = CLASSES * WORDS,
        .gradient = gradient,
        .weight = simulation->weights,
        .history = {simulation->history[0], simulation->history[1]}};
    struct ls_update_seen seen;
    assert_int_equal(ls_device_default()->update(&rule, &slice, &seen, NULL), 0);
}

static void read_weights(struct training *training, float *weights)
{
    int status = lockstep_trainer_read_parameter(training->trainer, 0, weights, CLASSES * WORDS,
                                                 training->error);
    assert_int_equal(status, 0);
}

/* Words that have not been seen yet have exactly their first weights. */
static void check_unseen(const struct embedding *set, int samples, const float *first,
                         const float *now)
{
    bool seen[WORDS] = {false};
    for (int i = 0; i < samples && i < TEXTS; i++)
        seen[set->word[i]] = true;
    for (int i = 0; i < CLASSES * WORDS; i++)
        if (!seen[i % WORDS])
            assert_memory_equal(&first[i], &now[i], sizeof(float));
}

/* Each weight is within rounding of the simulation's. */
static void check_near(int update, const float *weights, const struct simulation *simulation)
{
    for (int i = 0; i < CLASSES * WORDS; i++) {
        double error = fabs((double)weights[i] - (double)simulation->weights[i]);
        if (error > 2e-6)
            fail_msg("update %d: weight %d of word %d is off by %g", update, i / WORDS, i % WORDS,
                     error);
    }
}

static void rare_rows_stay_within_rounding_of_a_simulation(void **state)
{
    (void)state;
    static struct embedding set;
    static struct simulation simulation;
    static float first[CLASSES * WORDS], weights[CLASSES * WORDS];
    make_words(&set);
    struct lockstep_solver *solver = make_solver(&set, "1e-8", NULL);
    struct training *training = start(solver, 3, NULL, NULL);
    read_weights(training, first);
    memcpy(simulation.weights, first, sizeof first);
    simulation.delta = 1e-8F;
    for (int c = 0; c < CLASSES; c++)
        simulation.scale[c] = 1;
    double moved = 0;
    for (int update = 1; update <= UPDATES; update++) {
        step(training, 1);
        simulate(&simulation, &set);
        read_weights(training, weights);
        check_unseen(&set, update * BATCH, first, weights);
        check_near(update, weights, &simulation);
        for (int i = 0; i < CLASSES * WORDS; i++)
            moved = fmax(moved, fabs((double)weights[i] - (double)first[i]));
    }
    assert_true(moved > 0.01);
    finish(training);
    lockstep_solver_free(solver);
}

/* ---- Rows of very different size ------------------------------------------------------------- */

enum { APART = 5, STEEP_UPDATES = 80 /* powers of two between neighbours */ };

/* As above, with a factor of 2^(-APART c) on the scores of class c: the gradients of the rows of
 * the weights differ by 2^45, and those of rare words are 2^-8 of that. Adam makes steps of one
 * size from all of them. Every weight stays within rounding of the simulation. */
static void rows_of_very_different_size_stay_within_rounding_of_a_simulation(void **state)
{
    (void)state;
    static struct embedding set;
    static struct simulation simulation;
    static float weights[CLASSES * WORDS];
    make_words(&set);
    static const char steep[] =
        "layer { name: 'steep' type: 'Scale' bottom: 'embed' top: 'steep' param { lr_mult: 0 } }";
    struct lockstep_solver *solver = make_solver(&set, "1e-25", steep);
    struct training *training = start(solver, 3, NULL, NULL);
    struct ls_store *store = training->trainer->inner->store;
    for (int c = 0; c < CLASSES; c++)
        simulation.scale[c] = stored_weights(store, 1)[c] = ldexpf(1, -APART * c);
    simulation.delta = 1e-25F;
    read_weights(training, simulation.weights);
    for (int update = 1; update <= STEEP_UPDATES; update++) {
        step(training, 1);
        simulate(&simulation, &set);
        read_weights(training, weights);
        check_near(update, weights, &simulation);
    }
    assert_in_range(training->repeats, 0, TEXTS / BATCH); /* words that are new in small rows */
    finish(training);
    lockstep_solver_free(solver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rare_rows_stay_within_rounding_of_a_simulation),
        cmocka_unit_test(rows_of_very_different_size_stay_within_rounding_of_a_simulation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
