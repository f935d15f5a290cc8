/* Exact sums as an update uses them: how large their error is, that the order of contributions
 * cannot matter, and when an update is repeated with another exponent.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "ops/cpu/exact.h"
#include "support/support.h"
#include "transport/sums.h"

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static struct ls_sums *make(const size_t *elements, size_t count, int workers)
{
    struct ls_sums *sums = NULL;
    assert_int_equal(ls_sums_create(elements, NULL, count, workers, &sums, NULL), 0);
    return sums;
}

static void add(struct ls_sums *sums, int parameter, int micro_batch, const float *x, size_t n)
{
    struct ls_contributor from = {.sums = sums, .worker = 0, .micro_batch = micro_batch};
    ls_sums_contribute(&from, parameter, x, n);
}

/* ---- Error ----------------------------------------------------------------------------------- */

enum { ELEMENTS = 700, CONTRIBUTIONS = 300 };

static float contribution[CONTRIBUTIONS][ELEMENTS];

/* Elements of very different magnitudes (over 2^24), whose contributions differ, too. */
static void draw_contributions(uint64_t trial, int count, int scale)
{
    for (uint64_t i = 0; i < ELEMENTS; i++) {
        int magnitude = scale - (int)ls_random_below(trial, 1, i, 24);
        for (int c = 0; c < count; c++) {
            uint64_t at = (uint64_t)c * ELEMENTS + i;
            float x = 2 * ls_random_uniform(trial, 2, at) - 1;
            contribution[c][i] = ldexpf(x, magnitude - (int)ls_random_below(trial, 3, at, 6));
        }
    }
}

/* The update as the engine does it: measured by the first contribution, repeated where needed. */
static void sum_exactly(struct ls_sums *sums, int count, float *out)
{
    int parameter, micro_batch;
    ls_sums_begin(sums, true);
    add(sums, 0, 0, contribution[0], ELEMENTS);
    assert_int_equal(ls_sums_end(sums, &parameter, &micro_batch), LS_SUMS_GOOD);
    for (int attempt = 0;; attempt++) {
        ls_sums_begin(sums, false);
        for (int c = 0; c < count; c++)
            add(sums, 0, c, contribution[c], ELEMENTS);
        if (ls_sums_end(sums, &parameter, &micro_batch) == LS_SUMS_GOOD)
            break;
        assert_true(attempt < 3);
    }
    ls_exact_to_float(ls_sums_total(sums, 0), ls_sums_total_exponent(sums, 0), out, ELEMENTS);
}

/* Each element is the double-precision sum, but for the rounding of each contribution to a unit
 * and of the total to fp32; over a parameter that is no worse than adding in fp32. */
static void check_error(uint64_t trial, int count, int scale)
{
    static float exact[ELEMENTS];
    const size_t elements = ELEMENTS;
    struct ls_sums *sums = make(&elements, 1, 1);
    draw_contributions(trial, count, scale);
    sum_exactly(sums, count, exact);
    double unit = ldexp(1, -ls_sums_total_exponent(sums, 0));
    double exact_error = 0, float_error = 0;
    for (size_t i = 0; i < elements; i++) {
        double reference = 0;
        float plain = 0;
        for (int c = 0; c < count; c++) {
            reference += (double)contribution[c][i];
            plain += contribution[c][i];
        }
        double error = fabs((double)exact[i] - reference);
        assert_true(error <= 0.5 * unit * count + fabs(reference) * 0x1p-24 + 0x1p-150);
        exact_error += error * error;
        float_error += ((double)plain - reference) * ((double)plain - reference);
    }
    /* Two numbers are added by fp32 as exactly as its format allows. */
    assert_true(exact_error <= float_error * (count < 4 ? 1.001 : 1));
    ls_sums_free(sums);
}

static void test_error(void **state)
{
    (void)state;
    static const int scales[] = {0, -20, 13, -90, 60, -120, 100};
    for (uint64_t trial = 0; trial < 70; trial++) {
        int count = 2 + (int)ls_random_below(trial, 4, 0, trial % 2 ? 10 : CONTRIBUTIONS - 2);
        check_error(trial, count, scales[trial % 7]);
    }
}

/* ---- Order ----------------------------------------------------------------------------------- */

enum { LONG = 2 * LS_SUMS_TILE + 777, SHARE = 16, THREADS = 4 };

struct contributing {
    struct ls_sums *sums;
    float (*gradient)[LONG];
    int worker;
};

static void *contribute_share(void *argument)
{
    const struct contributing *what = argument;
    for (int c = what->worker; c < SHARE; c += THREADS) {
        struct ls_contributor from = {.sums = what->sums, .worker = what->worker, .micro_batch = c};
        ls_sums_contribute(&from, 0, what->gradient[c], LONG);
    }
    return NULL;
}

static void test_order(void **state)
{
    (void)state;
    const size_t elements = LONG;
    float(*gradient)[LONG] = malloc(SHARE * sizeof *gradient);
    for (uint64_t c = 0; c < SHARE; c++)
        for (uint64_t i = 0; i < LONG; i++)
            gradient[c][i] = ldexpf(2 * ls_random_uniform(8, c, i) - 1, (int)(i % 11) - 9);
    struct ls_sums *alone = make(&elements, 1, 1), *together = make(&elements, 1, THREADS);
    int parameter, micro_batch;
    ls_sums_set_exponent(alone, 0, 38);
    ls_sums_set_exponent(together, 0, 38);
    ls_sums_begin(alone, false);
    for (int c = SHARE - 1; c >= 0; c--)
        add(alone, 0, c, gradient[c], LONG);
    assert_int_equal(ls_sums_end(alone, &parameter, &micro_batch), LS_SUMS_GOOD);
    for (int round = 0; round < 20; round++) {
        pthread_t threads[THREADS];
        struct contributing share[THREADS];
        ls_sums_begin(together, false);
        for (int t = 0; t < THREADS; t++) {
            share[t] = (struct contributing){together, gradient, t};
            assert_int_equal(pthread_create(&threads[t], NULL, contribute_share, &share[t]), 0);
        }
        for (int t = 0; t < THREADS; t++)
            pthread_join(threads[t], NULL);
        assert_int_equal(ls_sums_end(together, &parameter, &micro_batch), LS_SUMS_GOOD);
        assert_memory_equal(ls_sums_total(alone, 0), ls_sums_total(together, 0),
                            LONG * sizeof(int64_t));
    }
    ls_sums_free(alone);
    ls_sums_free(together);
    free(gradient);
}

/* ---- Exponents ------------------------------------------------------------------------------- */

/* One update with one contribution of one number; the result of its end. */
static enum ls_sums_result try_number(struct ls_sums *sums, bool gauge, float x)
{
    int parameter = -1, micro_batch = -1;
    ls_sums_begin(sums, gauge);
    add(sums, 0, 0, &x, 1);
    return ls_sums_end(sums, &parameter, &micro_batch);
}

/* The first contribution measures: its magnitude becomes 2^38. */
static void test_gauge(void **state)
{
    (void)state;
    const struct {
        float x;
        int exponent;
    } cases[] = {{1, 38},         {1.99F, 38},        {-2, 37},         {0x1p-30F, 68},
                 {0x1p100F, -62}, {0x1.8p-126F, 164}, {0x1p-149F, 187}, {0x1.fffffep127F, -89}};
    const size_t one = 1;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ls_sums *sums = make(&one, 1, 1);
        assert_false(ls_sums_measured(sums));
        assert_int_equal(try_number(sums, true, 0), LS_SUMS_GOOD);
        assert_int_equal(ls_sums_exponent(sums, 0), LS_SUMS_EXPONENT_UNSET);
        assert_int_equal(try_number(sums, true, cases[i].x), LS_SUMS_GOOD);
        assert_int_equal(ls_sums_exponent(sums, 0), cases[i].exponent);
        assert_int_equal(try_number(sums, false, cases[i].x), LS_SUMS_GOOD);
        double total = (double)ls_sums_total(sums, 0)[0];
        assert_true(ldexp(total, -ls_sums_total_exponent(sums, 0)) == (double)cases[i].x);
        ls_sums_free(sums);
    }
}

/* What an exponent of 38 takes: less than 2^12, and 2^-12 or more. */
static void test_limits(void **state)
{
    (void)state;
    const struct {
        float x;
        enum ls_sums_result result;
        int exponent; /* afterwards */
    } cases[] = {
        {0x1.fffffep11F, LS_SUMS_GOOD, 38}, {0x1p12F, LS_SUMS_REPEAT, 26},
        {-0x1p12F, LS_SUMS_REPEAT, 26},     {0x1.8p40F, LS_SUMS_REPEAT, -2},
        {0x1p-12F, LS_SUMS_GOOD, 38},       {0x1.fffffep-13F, LS_SUMS_REPEAT, 51},
        {-0x1p-60F, LS_SUMS_REPEAT, 98},    {0, LS_SUMS_GOOD, 38},
        {INFINITY, LS_SUMS_NOT_FINITE, 38}, {-NAN, LS_SUMS_NOT_FINITE, 38},
    };
    const size_t one = 1;
    struct ls_sums *sums = make(&one, 1, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ls_sums_set_exponent(sums, 0, 38);
        assert_int_equal(try_number(sums, false, cases[i].x), cases[i].result);
        assert_int_equal(ls_sums_exponent(sums, 0), cases[i].exponent);
        if (cases[i].result == LS_SUMS_NOT_FINITE)
            continue;
        assert_int_equal(try_number(sums, false, cases[i].x), LS_SUMS_GOOD);
        assert_true(ldexp((double)ls_sums_total(sums, 0)[0], -ls_sums_total_exponent(sums, 0)) ==
                    (double)cases[i].x);
    }
    ls_sums_set_exponent(sums, 0, 1000);
    assert_int_equal(ls_sums_exponent(sums, 0), LS_SUMS_EXPONENT_UNSET);
    ls_sums_set_exponent(sums, 0, -1000);
    assert_int_equal(try_number(sums, false, 0x1.fffffep127F), LS_SUMS_REPEAT);
    ls_sums_free(sums);
}

/* As many contributions as an update may have, as large as they may be, do not overflow. */
static void test_most_contributions(void **state)
{
    (void)state;
    const size_t one = 1;
    struct ls_sums *sums = make(&one, 1, 1);
    const float x = -0x1.fffffep11F;
    int parameter, micro_batch;
    ls_sums_set_exponent(sums, 0, 38);
    ls_sums_begin(sums, false);
    for (int c = 0; c < LS_SUMS_CONTRIBUTIONS_MAX; c++)
        add(sums, 0, c, &x, 1);
    assert_int_equal(ls_sums_end(sums, &parameter, &micro_batch), LS_SUMS_GOOD);
    int64_t unit = INT64_C(1) << 26; /* of the 24 bits of x, at this exponent */
    assert_true(ls_sums_total(sums, 0)[0] == -LS_SUMS_CONTRIBUTIONS_MAX * INT64_C(0xffffff) * unit);
    ls_sums_free(sums);
}

/* The next exponent follows from the largest element of the total or of a contribution. */
static void test_next(void **state)
{
    (void)state;
    const size_t one = 1;
    struct ls_sums *sums = make(&one, 1, 1);
    ls_sums_set_exponent(sums, 0, 38);
    assert_int_equal(try_number(sums, false, 3), LS_SUMS_GOOD);
    ls_sums_next(sums, 0, bits_of(100));
    assert_int_equal(ls_sums_exponent(sums, 0), 38 - 6);
    assert_int_equal(ls_sums_total_exponent(sums, 0), 38); /* of what is there */
    ls_sums_next(sums, 0, bits_of(0.001F));                /* contributions that cancelled */
    assert_int_equal(ls_sums_exponent(sums, 0), 38 - 1);
    assert_int_equal(try_number(sums, false, 0), LS_SUMS_GOOD);
    ls_sums_next(sums, 0, 0); /* nothing was contributed: nothing is known */
    assert_int_equal(ls_sums_exponent(sums, 0), 38 - 1);
    ls_sums_free(sums);
}

/* Parameters have exponents of their own; failures name the first in order. */
static void test_several_parameters(void **state)
{
    (void)state;
    const size_t elements[3] = {2, 1, 3};
    const float small[3] = {1, 0.5F, -0.25F}, large[3] = {1, 0x1p20F, 0}, bad[3] = {1, NAN, 1};
    struct ls_sums *sums = make(elements, 3, 1);
    int parameter = -1, micro_batch = -1;
    for (int p = 0; p < 3; p++)
        ls_sums_set_exponent(sums, p, 38);
    ls_sums_begin(sums, false);
    add(sums, 0, 0, small, 2);
    add(sums, 1, 0, &large[1], 1);
    add(sums, 2, 0, large, 3);
    assert_int_equal(ls_sums_end(sums, &parameter, &micro_batch), LS_SUMS_REPEAT);
    assert_int_equal(parameter, 1);
    assert_int_equal(ls_sums_exponent(sums, 0), 38);
    assert_int_equal(ls_sums_exponent(sums, 1), 18);
    assert_int_equal(ls_sums_exponent(sums, 2), 18);
    ls_sums_begin(sums, false);
    add(sums, 0, 4, bad, 2);
    add(sums, 2, 7, bad, 3);
    add(sums, 2, 3, bad, 3);
    add(sums, 1, 5, &bad[1], 1);
    assert_int_equal(ls_sums_end(sums, &parameter, &micro_batch), LS_SUMS_NOT_FINITE);
    assert_int_equal(parameter, 2);
    assert_int_equal(micro_batch, 3);
    ls_sums_free(sums);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_error),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_gauge),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_most_contributions),
        cmocka_unit_test(test_next),
        cmocka_unit_test(test_several_parameters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
