/* Tokens are chosen as often as their probabilities say, and the same ones every time.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "engine/token.h"

enum { MOST = 1000, DRAWS = 20000 };

static uint32_t choose(const struct ls_token_options *options, const float *logits, size_t count,
                       uint64_t sample, uint64_t position)
{
    struct ls_token_candidate room[MOST];
    uint32_t token = UINT32_MAX;
    assert_int_equal(ls_token_choose(options, logits, count, sample, position, room, &token, NULL),
                     0);
    assert_true(token < count);
    return token;
}

/* Draws often and compares counts with probabilities: five standard deviations at most. */
static void compare(const struct ls_token_options *options, const float *logits, size_t count,
                    const double *probability)
{
    int found[MOST] = {0};
    for (uint64_t i = 0; i < DRAWS; i++)
        found[choose(options, logits, count, i % 7, i / 7)]++;
    for (size_t i = 0; i < count; i++) {
        const double mean = DRAWS * probability[i];
        const double deviation = sqrt(mean * (1 - probability[i]));
        assert_true(probability[i] > 0 || found[i] == 0);
        assert_true(fabs(found[i] - mean) <= 5 * deviation);
    }
}

static const float logits[] = {0.5F, 2, -1, 2, 0, -3};
enum { COUNT = sizeof logits / sizeof *logits };

/* exp(logit / temperature) of the tokens in `mask`, as parts of their sum. */
static void expect(double temperature, unsigned mask, double probability[COUNT])
{
    double all = 0;
    for (int i = 0; i < COUNT; i++)
        all += mask >> i & 1 ? exp(logits[i] / temperature) : 0;
    for (int i = 0; i < COUNT; i++)
        probability[i] = mask >> i & 1 ? exp(logits[i] / temperature) / all : 0;
}

static void tokens_come_as_often_as_they_are_probable(void **state)
{
    (void)state;
    double probability[COUNT];
    const struct {
        struct ls_token_options options;
        unsigned mask;
    } cases[] = {
        {{.temperature = 1, .top_p = 1, .seed = 1}, 0x3f},
        {{.temperature = 0.5, .top_p = 1, .seed = 2}, 0x3f},
        {{.temperature = 3, .top_p = 1, .seed = 3}, 0x3f},
        {{.temperature = 1, .top_k = 3, .top_p = 1, .seed = 4}, 0x0b},
        {{.temperature = 2, .top_k = 6, .top_p = 1, .seed = 5}, 0x3f},
        {{.temperature = 2, .top_k = 100, .top_p = 1, .seed = 5}, 0x3f},
        /* Probabilities are 0.405 twice, 0.090, 0.055, 0.020 ...: two of them make 0.81. */
        {{.temperature = 1, .top_p = 0.8, .seed = 6}, 0x0a},
        {{.temperature = 1, .top_p = 0.85, .seed = 7}, 0x0b},
        /* Of the three largest 0.45 twice and 0.1. */
        {{.temperature = 1, .top_k = 3, .top_p = 0.89, .seed = 8}, 0x0a},
        {{.temperature = 1, .top_k = 3, .top_p = 0.91, .seed = 9}, 0x0b}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect(cases[i].options.temperature, cases[i].mask, probability);
        compare(&cases[i].options, logits, COUNT, probability);
    }
}

/* Tokens 1 and 3 are equal: where one is taken it is the lower one. */
static void of_equal_tokens_the_lower_one_counts_as_larger(void **state)
{
    (void)state;
    const struct ls_token_options alone[] = {
        {.temperature = 0, .top_p = 1},
        {.temperature = 0, .top_k = 4, .top_p = 0.5, .seed = 3},
        {.temperature = 1, .top_k = 1, .top_p = 1},
        {.temperature = 100, .top_k = 5, .top_p = 1e-9},
        {.temperature = 1e-300, .top_k = 1, .top_p = 1}};
    for (size_t i = 0; i < sizeof alone / sizeof *alone; i++)
        for (uint64_t position = 0; position < 20; position++)
            assert_int_equal(choose(&alone[i], logits, COUNT, 0, position), 1);
    float equal[50] = {0};
    const struct ls_token_options some = {.temperature = 1, .top_k = 7, .top_p = 1};
    for (uint64_t position = 0; position < 200; position++)
        assert_true(choose(&some, equal, 50, 0, position) < 7);
}

/* The k largest of many, whatever order they come in. */
static void top_k_takes_the_largest(void **state)
{
    (void)state;
    float many[MOST];
    for (int i = 0; i < MOST; i++)
        many[i] = (float)((i * 389) % MOST); /* a permutation */
    for (int k = 1; k < MOST; k = 2 * k + 1) {
        const struct ls_token_options options = {
            .temperature = 1e6, .top_k = k, .top_p = 1, .seed = 11};
        for (uint64_t position = 0; position < 50; position++)
            assert_true(many[choose(&options, many, MOST, 0, position)] >= (float)(MOST - k));
    }
}

static void tokens_that_are_impossible_are_not_chosen(void **state)
{
    (void)state;
    float few[20];
    for (int i = 0; i < 20; i++)
        few[i] = -INFINITY;
    few[13] = -1e30F;
    for (int k = 0; k < 3; k++) {
        const struct ls_token_options options = {
            .temperature = 1 + k, .top_k = k * 5, .top_p = 1 - 0.3 * k};
        for (uint64_t position = 0; position < 100; position++)
            assert_int_equal(choose(&options, few, 20, 1, position), 13);
    }
    const struct ls_token_options options = {.temperature = 1, .top_p = 1};
    assert_int_equal(choose(&options, few + 13, 1, 0, 0), 0);
}

static void logits_that_are_no_numbers_are_refused(void **state)
{
    (void)state;
    const float bad[][3] = {
        {0, NAN, 1}, {NAN, 0, 0}, {0, 1, INFINITY}, {-INFINITY, -INFINITY, -INFINITY}};
    struct ls_token_candidate room[3];
    uint32_t token;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        for (int temperature = 0; temperature < 2; temperature++) {
            const struct ls_token_options options = {.temperature = temperature, .top_p = 1};
            struct ls_error error = {0};
            assert_int_equal(ls_token_choose(&options, bad[i], 3, 0, 0, room, &token, &error),
                             LOCKSTEP_DIVERGED);
            assert_int_equal(error.count, 1);
        }
}

/* Numbers that were written down once: another machine chooses the same tokens. */
static void seeds_choose_the_tokens_that_they_always_chose(void **state)
{
    (void)state;
    float many[MOST];
    uint32_t hash = 0;
    for (int i = 0; i < MOST; i++)
        many[i] = (float)((i * 389) % MOST) * 0.01F;
    for (uint64_t seed = 0; seed < 50; seed++) {
        const struct ls_token_options options = {.temperature = 0.5 + 0.1 * (double)(seed % 9),
                                                 .top_k = seed % 2 == 0 ? 0 : 40,
                                                 .top_p = seed % 3 == 0 ? 1 : 0.9,
                                                 .seed = seed};
        for (uint64_t position = 0; position < 4; position++)
            hash = hash * 31 + choose(&options, many, MOST, seed % 5, position);
    }
    assert_int_equal(hash, UINT32_C(0x1f65b776));
}

/* Each of seed, sample and position gives other numbers. */
static void numbers_depend_on_seed_sample_and_position(void **state)
{
    (void)state;
    float equal[MOST] = {0};
    struct ls_token_options options = {.temperature = 1, .top_p = 1, .seed = 5};
    const uint32_t first = choose(&options, equal, MOST, 2, 3);
    assert_int_equal(choose(&options, equal, MOST, 2, 3), first);
    assert_int_not_equal(choose(&options, equal, MOST, 3, 3), first);
    assert_int_not_equal(choose(&options, equal, MOST, 2, 4), first);
    options.seed = 6;
    assert_int_not_equal(choose(&options, equal, MOST, 2, 3), first);
}

static void options_without_sense_are_refused(void **state)
{
    (void)state;
    const struct ls_token_options bad[] = {
        {.temperature = -1, .top_p = 1},       {.temperature = NAN, .top_p = 1},
        {.temperature = INFINITY, .top_p = 1}, {.temperature = 1, .top_p = 0},
        {.temperature = 1, .top_p = 1.5},      {.temperature = 1, .top_p = NAN},
        {.temperature = 1, .top_p = -0.5},     {.temperature = 1, .top_k = -1, .top_p = 1}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct ls_error error = {0};
        assert_int_equal(ls_token_options_check(&bad[i], &error), LOCKSTEP_USAGE);
        assert_int_equal(error.count, 1);
    }
    const struct ls_token_options good = {.temperature = 0, .top_p = 1};
    assert_int_equal(ls_token_options_check(&good, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_come_as_often_as_they_are_probable),
        cmocka_unit_test(of_equal_tokens_the_lower_one_counts_as_larger),
        cmocka_unit_test(top_k_takes_the_largest),
        cmocka_unit_test(tokens_that_are_impossible_are_not_chosen),
        cmocka_unit_test(logits_that_are_no_numbers_are_refused),
        cmocka_unit_test(seeds_choose_the_tokens_that_they_always_chose),
        cmocka_unit_test(numbers_depend_on_seed_sample_and_position),
        cmocka_unit_test(options_without_sense_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
