/* Exact sums as an update uses them: the size of their error, their independence of the order of
 * contributions, and when an update is repeated with another exponent.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "engine/exponents.h"
#include "ops/cpu/exact.h"
#include "support/support.h"
#include "ops/devices.h"
#include "engine/sums.h"
#include "support/contribute.h"

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static struct ls_sums *make(const size_t *elements, size_t count, int workers)
{
    struct ls_sums *sums = NULL;
    assert_int_equal(
        ls_sums_create(ls_device_default(), elements, NULL, count, workers, &sums, NULL), 0);
    return sums;
}

static void begin(struct ls_sums *sums, bool calibrate)
{
    assert_int_equal(ls_sums_begin(sums, calibrate, NULL), 0);
}

static enum ls_sums_result end(struct ls_sums *sums, int *parameter, int *micro_batch)
{
    assert_int_equal(ls_sums_collect(sums, NULL), 0);
    return ls_sums_end(sums, parameter, micro_batch);
}

static void add(struct ls_sums *sums, int parameter, int micro_batch, const float *x)
{
    contribute_to_sum(ls_device_default(), ls_sums_accumulator(sums), 0, micro_batch, parameter, x);
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
    begin(sums, true);
    add(sums, 0, 0, contribution[0]);
    assert_int_equal(end(sums, &parameter, &micro_batch), LS_SUMS_GOOD);
    for (int attempt = 0;; attempt++) {
        begin(sums, false);
        for (int c = 0; c < count; c++)
            add(sums, 0, c, contribution[c]);
        if (end(sums, &parameter, &micro_batch) == LS_SUMS_GOOD)
            break;
        assert_true(attempt < 3);
    }
    assert_int_equal(ls_sums_read(sums, 0, 0, ELEMENTS, out, NULL), 0);
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

static void errors_stay_within_the_bound(void **state)
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
        contribute_to_sum(ls_device_default(), ls_sums_accumulator(what->sums), what->worker, c, 0,
                          what->gradient[c]);
    }
    return NULL;
}

static void sums_do_not_depend_on_order_or_threads(void **state)
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
    begin(alone, false);
    for (int c = SHARE - 1; c >= 0; c--)
        add(alone, 0, c, gradient[c]);
    assert_int_equal(end(alone, &parameter, &micro_batch), LS_SUMS_GOOD);
    for (int round = 0; round < 20; round++) {
        pthread_t threads[THREADS];
        struct contributing share[THREADS];
        begin(together, false);
        for (int t = 0; t < THREADS; t++) {
            share[t] = (struct contributing){together, gradient, t};
            assert_int_equal(pthread_create(&threads[t], NULL, contribute_share, &share[t]), 0);
        }
        for (int t = 0; t < THREADS; t++)
            pthread_join(threads[t], NULL);
        assert_int_equal(end(together, &parameter, &micro_batch), LS_SUMS_GOOD);
        assert_memory_equal(ls_sums_all(alone), ls_sums_all(together), LONG * sizeof(int64_t));
    }
    ls_sums_free(alone);
    ls_sums_free(together);
    free(gradient);
}

/* ---- Exponents ------------------------------------------------------------------------------- */

/* One update with one contribution of one number; the result of its end. */
static enum ls_sums_result try_number(struct ls_sums *sums, bool calibrate, float x)
{
    int parameter = -1, micro_batch = -1;
    begin(sums, calibrate);
    add(sums, 0, 0, &x);
    return end(sums, &parameter, &micro_batch);
}

/* The first contribution measures: its magnitude becomes 2^32. */
static void the_first_contribution_sets_the_exponent(void **state)
{
    (void)state;
    const struct {
        float x;
        int exponent;
    } cases[] = {{1, 32},         {1.99F, 32},        {-2, 31},         {0x1p-30F, 62},
                 {0x1p100F, -68}, {0x1.8p-126F, 158}, {0x1p-149F, 187}, {0x1.fffffep127F, -95}};
    const size_t one = 1;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ls_sums *sums = make(&one, 1, 1);
        assert_false(ls_sums_measured(sums));
        assert_int_equal(try_number(sums, true, 0), LS_SUMS_GOOD);
        assert_int_equal(ls_sums_exponent(sums, 0), LS_SUMS_EXPONENT_UNSET);
        assert_int_equal(try_number(sums, true, cases[i].x), LS_SUMS_GOOD);
        assert_int_equal(ls_sums_exponent(sums, 0), cases[i].exponent);
        assert_int_equal(try_number(sums, false, cases[i].x), LS_SUMS_GOOD);
        double total = (double)ls_sums_all(sums)[0];
        assert_true(ldexp(total, -ls_sums_total_exponent(sums, 0)) == (double)cases[i].x);
        ls_sums_free(sums);
    }
}

/* An exponent of 38 holds contributions below 2^12. Small ones are no reason to repeat an
 * update. */
static void what_an_exponent_cannot_hold_asks_for_a_repeat(void **state)
{
    (void)state;
    const struct {
        float x;
        enum ls_sums_result result;
        int exponent; /* afterwards */
    } cases[] = {
        {0x1.fffffep11F, LS_SUMS_GOOD, 38}, {0x1p12F, LS_SUMS_REPEAT, 20},
        {-0x1p12F, LS_SUMS_REPEAT, 20},     {0x1.8p40F, LS_SUMS_REPEAT, -8},
        {0x1p-12F, LS_SUMS_GOOD, 38},       {0x1.8p-37F, LS_SUMS_GOOD, 38},
        {-0x1p-38F, LS_SUMS_GOOD, 38},      {0, LS_SUMS_GOOD, 38},
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
        assert_true(ldexp((double)ls_sums_all(sums)[0], -ls_sums_total_exponent(sums, 0)) ==
                    (double)cases[i].x);
    }
    ls_sums_set_exponent(sums, 0, 1000);
    assert_int_equal(ls_sums_exponent(sums, 0), LS_SUMS_EXPONENT_UNSET);
    ls_sums_set_exponent(sums, 0, -1000);
    assert_int_equal(ls_sums_exponent(sums, 0), -150);
    ls_sums_free(sums);
}

/* As many contributions as an update may have, as large as they may be, do not overflow. */
static void the_largest_number_of_contributions_does_not_overflow(void **state)
{
    (void)state;
    const size_t one = 1;
    struct ls_sums *sums = make(&one, 1, 1);
    const float x = -0x1.fffffep11F;
    int parameter, micro_batch;
    ls_sums_set_exponent(sums, 0, 38);
    begin(sums, false);
    for (int c = 0; c < LS_SUMS_CONTRIBUTIONS_MAX; c++)
        add(sums, 0, c, &x);
    assert_int_equal(end(sums, &parameter, &micro_batch), LS_SUMS_GOOD);
    int64_t unit = INT64_C(1) << 26; /* of the 24 bits of x, at this exponent */
    assert_true(ls_sums_all(sums)[0] == -LS_SUMS_CONTRIBUTIONS_MAX * INT64_C(0xffffff) * unit);
    ls_sums_free(sums);
}

/* The next exponent follows from the largest element of the total or of a contribution: downwards
 * at once, upwards by sixteenths, and by 1 where it is far off. */
static void the_next_exponent_follows_the_largest_element(void **state)
{
    (void)state;
    const size_t one = 1;
    struct ls_sums *sums = make(&one, 1, 1);
    ls_sums_set_exponent(sums, 0, 38);
    assert_int_equal(try_number(sums, false, 3), LS_SUMS_GOOD);
    ls_sums_next(sums, 0, bits_of(100)); /* contributions that agree: 2^5 in all */
    assert_int_equal(ls_sums_exponent(sums, 0), 40 - 6);
    assert_int_equal(ls_sums_total_exponent(sums, 0), 38); /* of what is there */
    for (int update = 0; update < 6 * LS_SUMS_STEPS; update++) {
        assert_int_equal(ls_sums_exponent(sums, 0), 34 + update / LS_SUMS_STEPS);
        assert_int_equal(try_number(sums, false, 1), LS_SUMS_GOOD);
        ls_sums_next(sums, 0, bits_of(0.001F)); /* contributions that cancelled */
    }
    assert_int_equal(try_number(sums, false, 1), LS_SUMS_GOOD);
    ls_sums_next(sums, 0, bits_of(1));
    assert_int_equal(ls_sums_exponent(sums, 0), 40);
    assert_int_equal(try_number(sums, false, 0), LS_SUMS_GOOD);
    ls_sums_next(sums, 0, 0); /* nothing was contributed: nothing is known */
    assert_int_equal(ls_sums_exponent(sums, 0), 40);
    for (int update = 0; update < 20; update++) {
        assert_int_equal(ls_sums_exponent(sums, 0), 40 + (update < 14 ? update : 14));
        assert_int_equal(try_number(sums, false, 0x1p-30F), LS_SUMS_GOOD);
        ls_sums_next(sums, 0, bits_of(0x1p-30F));
    }
    ls_sums_free(sums);
}

/* Parameters have exponents of their own; failures name the first in order. */
static void failures_name_the_first_parameter_in_order(void **state)
{
    (void)state;
    const size_t elements[3] = {2, 1, 3};
    const float small[3] = {1, 0.5F, -0.25F}, large[3] = {1, 0x1p20F, 0}, bad[3] = {1, NAN, 1};
    struct ls_sums *sums = make(elements, 3, 1);
    int parameter = -1, micro_batch = -1;
    for (int p = 0; p < 3; p++)
        ls_sums_set_exponent(sums, p, 38);
    begin(sums, false);
    add(sums, 0, 0, small);
    add(sums, 1, 0, &large[1]);
    add(sums, 2, 0, large);
    assert_int_equal(end(sums, &parameter, &micro_batch), LS_SUMS_REPEAT);
    assert_int_equal(parameter, 1);
    assert_int_equal(ls_sums_exponent(sums, 0), 38);
    assert_int_equal(ls_sums_exponent(sums, 1), 12);
    assert_int_equal(ls_sums_exponent(sums, 2), 12);
    begin(sums, false);
    add(sums, 0, 4, bad);
    add(sums, 2, 7, bad);
    add(sums, 2, 3, bad);
    add(sums, 1, 5, &bad[1]);
    assert_int_equal(end(sums, &parameter, &micro_batch), LS_SUMS_NOT_FINITE);
    assert_int_equal(parameter, 2);
    assert_int_equal(micro_batch, 3);
    ls_sums_free(sums);
}

/* ---- Rows ------------------------------------------------------------------------------------ */

enum { ROWS = 46, LENGTH = 37, PARTS = 12, SPANS = 10, EACH = 512 };

/* Element i of the layout: its row. Plain, or in blocks of 16 rows as convolutions have them, with
 * padding. */
static size_t lay_out(bool blocked, float *row)
{
    size_t count = 0;
    for (size_t block = 0; block < ROWS; block += blocked ? 16 : ROWS)
        for (size_t i = 0; i < (size_t)(blocked ? LENGTH * 16 : LENGTH * ROWS); i++) {
            size_t r = block + (blocked ? i % 16 : i / LENGTH);
            row[count++] = r < ROWS ? (float)(r + 1) : 0;
        }
    return count;
}

static void draw_rows(const float *row, size_t count, uint64_t part, float *gradient)
{
    for (size_t i = 0; i < count; i++)
        gradient[i] =
            row[i] > 0 ? ldexpf(2 * ls_random_uniform(50, part, i) - 1, 1 - (int)row[i]) : 0;
}

/* Rows that are 2^-r as large as the first: each element is summed as in double, but for
 * 2^-24 of its row's largest contribution, or less. */
static void check_rows(bool blocked, bool elements)
{
    static float row[64 * LENGTH], gradient[PARTS][64 * LENGTH], out[64 * LENGTH];
    const size_t count = lay_out(blocked, row);
    struct ls_sums *sums = make(&count, 1, 1);
    int parameter, micro_batch, repeats = 0;
    if (elements)
        assert_int_equal(ls_sums_cut_elements(sums, 0, NULL), 0);
    else
        assert_int_equal(ls_sums_cut_rows(sums, 0, ROWS, row, NULL), 0);
    for (uint64_t p = 0; p < PARTS; p++)
        draw_rows(row, count, p, gradient[p]);
    begin(sums, true);
    add(sums, 0, 0, gradient[0]);
    assert_int_equal(end(sums, &parameter, &micro_batch), LS_SUMS_GOOD);
    for (int update = 0; update < 200; update++) {
        for (bool again = true; again; repeats += again) {
            begin(sums, false);
            for (int p = 0; p < PARTS; p++)
                add(sums, 0, p, gradient[p]);
            again = end(sums, &parameter, &micro_batch) != LS_SUMS_GOOD;
        }
        /* Read in pieces, from anywhere. */
        for (size_t at = 0, n; at < count; at += n) {
            n = 1 + ls_random_below(51, (uint64_t)update, at, 300);
            n = n < count - at ? n : count - at;
            assert_int_equal(ls_sums_read(sums, 0, at, n, out + at, NULL), 0);
        }
        uint32_t largest = ls_largest(out, count);
        for (size_t i = 0; i < count; i++) {
            double reference = 0,
                   bound = ldexp(1, -(int)row[i] - (update < 150 || row[i] > 15 ? 21 : 30));
            for (int p = 0; p < PARTS; p++)
                reference += (double)gradient[p][i];
            if (fabs((double)out[i] - reference) > bound + fabs(reference) * 0x1p-24)
                fail_msg("update %d, element %zu of row %g: %g instead of %g", update, i,
                         (double)row[i], (double)out[i], reference);
        }
        ls_sums_next(sums, 0, largest);
    }
    assert_in_range(repeats, 0, 1);
    ls_sums_free(sums);
}

static void rows_have_exponents_of_their_own(void **state)
{
    (void)state;
    for (int way = 0; way < 4; way++)
        check_rows(way & 1, way & 2);
}

/* The error of elements [begin, end) beside their totals. */
static double error_of(const float *out, float (*gradient)[SPANS * EACH], size_t begin, size_t end)
{
    double error = 0, size = 0;
    for (size_t i = begin; i < end; i++) {
        double total = 0;
        for (int p = 0; p < PARTS; p++)
            total += (double)gradient[p][i];
        error += ((double)out[i] - total) * ((double)out[i] - total);
        size += total * total;
    }
    return sqrt(error / size);
}

/* Within a row there is one exponent. Numbers of a row that are 2^-k as large as its largest have
 * an error of 2^(k - 34) beside their totals in the first updates, and of 2^(k - 39) when the
 * exponent has followed; rounding to fp32 makes 2^-25. (docs/numerics.md, section 3) */
static void small_parts_of_a_row_have_fewer_digits(void **state)
{
    (void)state;
    static float gradient[PARTS][SPANS * EACH], out[SPANS * EACH];
    const size_t count = (size_t)SPANS * EACH;
    struct ls_sums *sums = make(&count, 1, 1);
    int parameter, micro_batch;
    for (uint64_t p = 0; p < PARTS; p++)
        for (size_t i = 0; i < count; i++)
            gradient[p][i] = ldexpf(2 * ls_random_uniform(60, p, i) - 1, -5 * (int)(i / EACH));
    begin(sums, true);
    add(sums, 0, 0, gradient[0]);
    assert_int_equal(end(sums, &parameter, &micro_batch), LS_SUMS_GOOD);
    for (int update = 1; update <= 200; update++) {
        begin(sums, false);
        for (int p = 0; p < PARTS; p++)
            add(sums, 0, p, gradient[p]);
        assert_int_equal(end(sums, &parameter, &micro_batch), LS_SUMS_GOOD);
        assert_int_equal(ls_sums_read(sums, 0, 0, count, out, NULL), 0);
        const int digits = update < 200 ? 33 : 38;
        for (size_t span = 0; span < SPANS && (update < 3 || update == 200); span++) {
            const double error = error_of(out, gradient, span * EACH, (span + 1) * EACH),
                         bound = ldexp(1, 5 * (int)span - digits);
            assert_true(error <= fmax(fmin(bound, 1), 0x1p-25));
            assert_true(error >= fmin(bound / 4, 1) || error <= 0x1p-25); /* and no better */
        }
        ls_sums_next(sums, 0, ls_largest(out, count));
    }
    ls_sums_free(sums);
}

/* A row is seen for the first time, then seldom: at most one repeat, if the row is very small. */
static void a_new_row_asks_for_one_repeat_at_most(void **state)
{
    (void)state;
    const size_t three = 3;
    struct ls_sums *sums = make(&three, 1, 1);
    const struct {
        float x[3];
        enum ls_sums_result result;
    } updates[] = {
        {{1, 0, 0}, LS_SUMS_GOOD},          {{1, 0x1p-7F, 0}, LS_SUMS_GOOD},
        {{1, 0, 0x1p-40F}, LS_SUMS_REPEAT}, {{1, 0, 0x1p-40F}, LS_SUMS_GOOD},
        {{1, 0x1p-7F, 0}, LS_SUMS_GOOD},    {{0, 0x1p9F, 0x1.8p-50F}, LS_SUMS_GOOD},
        {{1, 1, 1}, LS_SUMS_REPEAT},        {{1, 1, 1}, LS_SUMS_GOOD},
        {{1, 1, 0x1p-19F}, LS_SUMS_GOOD},   {{1, 1, 1}, LS_SUMS_GOOD},
    };
    assert_int_equal(ls_sums_cut_elements(sums, 0, NULL), 0);
    for (size_t u = 0; u < sizeof updates / sizeof *updates; u++) {
        int parameter, micro_batch;
        float out[3];
        begin(sums, u == 0);
        add(sums, 0, 0, updates[u].x);
        assert_int_equal(end(sums, &parameter, &micro_batch), updates[u].result);
        if (u == 0 || updates[u].result != LS_SUMS_GOOD)
            continue;
        assert_int_equal(ls_sums_read(sums, 0, 0, 3, out, NULL), 0);
        assert_memory_equal(out, updates[u].x, sizeof out);
        ls_sums_next(sums, 0, ls_largest(out, 3));
    }
    ls_sums_free(sums);
}

/* Gradients that alternate in size settle at the larger exponent: repeats in 200 updates. */
static void alternating_gradients_settle_at_the_larger_exponent(void **state)
{
    (void)state;
    const size_t one = 1;
    const int periods[] = {2, 3, 7, 20};
    for (int by = 4; by <= 30; by += 2)
        for (size_t p = 0; p < sizeof periods / sizeof *periods; p++) {
            struct ls_sums *sums = make(&one, 1, 1);
            int repeats = 0;
            assert_int_equal(try_number(sums, true, ldexpf(1, -by)), LS_SUMS_GOOD);
            for (int update = 1; update <= 200; update++) {
                float x = update % periods[p] == 0 ? 1 : ldexpf(1, -by);
                while (try_number(sums, false, x) != LS_SUMS_GOOD)
                    repeats++;
                ls_sums_next(sums, 0, bits_of(x));
            }
            int most = by < 18 ? 0 : by <= 24 || periods[p] < 10 ? 1 : 200 / periods[p];
            if (repeats > most)
                fail_msg("by 2^%d every %d updates: %d repeats", by, periods[p], repeats);
            ls_sums_free(sums);
        }
}

/* A gradient that outgrows its recent past is reported, whether or not the update is repeated. */
static void a_gradient_that_outgrows_its_past_is_told(void **state)
{
    (void)state;
    const size_t elements[2] = {1, 1};
    const float x[2] = {1, 0x1p-20F}, grown[2] = {8, 0x1p-8F};
    struct ls_sums *sums = make(elements, 2, 1);
    int parameter = -1, micro_batch;
    ls_sums_set_exponent(sums, 0, 40);
    ls_sums_set_exponent(sums, 1, 60);
    for (int update = 0; update < 2; update++) {
        begin(sums, false);
        for (int p = 0; p < 2; p++)
            add(sums, p, 0, update == 0 ? &x[p] : &grown[p]);
        assert_int_equal(end(sums, &parameter, &micro_batch),
                         update == 0 ? LS_SUMS_GOOD : LS_SUMS_REPEAT);
        assert_int_equal(ls_sums_growth(sums, &parameter), update == 0 ? 0 : 12);
    }
    assert_int_equal(parameter, 1);
    for (int p = 0; p < 2; p++)
        ls_sums_next(sums, p, bits_of(grown[p]));
    assert_int_equal(ls_sums_growth(sums, &parameter), 0);
    ls_sums_free(sums);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_stay_within_the_bound),
        cmocka_unit_test(sums_do_not_depend_on_order_or_threads),
        cmocka_unit_test(the_first_contribution_sets_the_exponent),
        cmocka_unit_test(what_an_exponent_cannot_hold_asks_for_a_repeat),
        cmocka_unit_test(the_largest_number_of_contributions_does_not_overflow),
        cmocka_unit_test(the_next_exponent_follows_the_largest_element),
        cmocka_unit_test(failures_name_the_first_parameter_in_order),
        cmocka_unit_test(rows_have_exponents_of_their_own),
        cmocka_unit_test(small_parts_of_a_row_have_fewer_digits),
        cmocka_unit_test(a_new_row_asks_for_one_repeat_at_most),
        cmocka_unit_test(alternating_gradients_settle_at_the_larger_exponent),
        cmocka_unit_test(a_gradient_that_outgrows_its_past_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
