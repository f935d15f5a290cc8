/* Exact sums: rounding, order, range, and sums of squares; the same bits everywhere.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/thread.h"
#include "ops/cpu/exact.h"
#include "ops/cpu/isa.h"

enum { COUNT = 10007 };

static float gradient[COUNT], out[COUNT];
static int64_t sum[COUNT + 1], first_sum[COUNT];

static bool next_isa(int *isa)
{
    for (++*isa; *isa < LS_ISAS; ++*isa)
        if (ls_cpu_isa_supported((enum ls_isa) * isa))
            return ls_cpu_isa_select(ls_cpu_isa_name((enum ls_isa) * isa), NULL) == 0;
    return false;
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Whether contributions of at most this magnitude are within what ls_exact_add rounds. */
static bool fits(uint32_t largest, int exponent)
{
    return largest < LS_NOT_FINITE &&
           ldexp((double)float_of(largest), exponent) < ldexp(1, LS_EXACT_LIMIT);
}

/* Finite numbers below 2^`top` with exponents over a range of 2^60. */
static void random_gradients(uint64_t salt, int top)
{
    for (uint32_t i = 0; i < COUNT; i++) {
        int exponent = top - (int)ls_random_below(salt, 1, i, 60);
        gradient[i] = ldexpf(2 * ls_random_uniform(salt, 2, i) - 1, exponent);
    }
}

/* Ties to even, by the C library in its default rounding mode. */
static int64_t rounded(float x, int exponent)
{
    return llrint(ldexp((double)x, exponent));
}

static void test_rounding(void **state)
{
    (void)state;
    const float special[] = {
        0,       -0.0F,           0.5F,           1.5F, 2.5F,  -0.5F, -1.5F,        0.25F, 1.0F,
        0x1p50F, -0x1.fffffep50F, 0x1.fffffep50F, 3.5F, -2.5F, 7.0F,  0x1.00003p16F};
    const int exponents[] = {0, 1, -1, 38, -40, 90, -200, 187};
    for (size_t e = 0; e < sizeof exponents / sizeof *exponents; e++) {
        random_gradients(e, 51 - exponents[e] > 128 ? 128 : 51 - exponents[e]);
        for (size_t i = 0; e == 0 && i < sizeof special / sizeof *special; i++)
            gradient[i] = special[i];
        uint32_t largest = 0;
        for (int i = 0; i < COUNT; i++) {
            if (fabsf(gradient[i]) < FLT_MIN)
                gradient[i] = 0; /* flushed anyway */
            largest = bits_of(fabsf(gradient[i])) > largest ? bits_of(fabsf(gradient[i])) : largest;
        }
        assert_true(fits(largest, exponents[e]));
        for (int isa = -1; next_isa(&isa);) {
            memset(sum, 0x5a, sizeof sum);
            assert_int_equal(ls_exact_add(sum, gradient, COUNT, exponents[e], true), largest);
            for (int i = 0; i < COUNT; i++)
                assert_true(sum[i] == rounded(gradient[i], exponents[e]));
            assert_int_equal(ls_exact_add(sum, gradient, COUNT, exponents[e], false), largest);
            for (int i = 0; i < COUNT; i++)
                assert_true(sum[i] == 2 * rounded(gradient[i], exponents[e]));
            assert_true(sum[COUNT] == INT64_C(0x5a5a5a5a5a5a5a5a));
        }
    }
}

/* What is measured without adding is what adding finds: for each element, and for each lane. */
static void test_measuring(void **state)
{
    (void)state;
    static uint32_t added[COUNT], measured[COUNT];
    static int32_t exponent[COUNT];
    for (uint64_t round = 0; round < 3; round++) {
        size_t n = round == 0 ? 5 : COUNT - (size_t)round;
        random_gradients(round + 300, 10);
        for (int isa = -1; next_isa(&isa);) {
            for (size_t i = 0; i < COUNT; i++)
                added[i] = measured[i] = bits_of(1e-3F);
            uint32_t all = ls_exact_add_each(sum, gradient, n, exponent, added, true);
            assert_int_equal(ls_largest_each(gradient, n, measured), all);
            assert_memory_equal(measured, added, sizeof added);
            assert_int_equal(ls_largest(gradient, n), all);
            for (size_t i = 0; i < LS_EXACT_LANES; i++)
                added[i] = measured[i] = 0;
            assert_int_equal(ls_exact_add_lanes(sum, gradient, n, exponent, added, true), all);
            assert_int_equal(ls_largest_lanes(gradient, n, measured), all);
            assert_memory_equal(measured, added, sizeof added);
        }
    }
}

/* The total is that of exact arithmetic, whatever the order and however slices are cut. */
static void test_order(void **state)
{
    (void)state;
    enum { PARTS = 9 };
    static float part[PARTS][COUNT];
    for (int p = 0; p < PARTS; p++) {
        random_gradients((uint64_t)p + 100, 10);
        memcpy(part[p], gradient, sizeof gradient);
    }
    for (int isa = -1; next_isa(&isa);) {
        for (int p = 0; p < PARTS; p++)
            ls_exact_add(sum, part[p], COUNT, 38, p == 0);
        if (isa == 0)
            memcpy(first_sum, sum, sizeof first_sum);
        assert_memory_equal(first_sum, sum, sizeof first_sum);
        memset(sum, 0, sizeof sum);
        for (int p = PARTS - 1; p >= 0; p--)
            for (size_t from = 0, n; from < COUNT; from += n) {
                n = 1 + ls_random_below(9, (uint64_t)p, from, 999);
                n = n < COUNT - from ? n : COUNT - from;
                ls_exact_add(sum + from, part[p] + from, n, 38, false);
            }
        assert_memory_equal(first_sum, sum, sizeof first_sum);
    }
    for (int i = 0; i < COUNT; i++) {
        int64_t total = 0;
        for (int p = 0; p < PARTS; p++)
            total += rounded(part[p][i], 38);
        assert_true(total == first_sum[i]);
    }
}

/* What does not fit is seen by its magnitude, and changes no other element. */
static void test_limits(void **state)
{
    (void)state;
    assert_true(fits(bits_of(0x1.fffffep50F), 0));
    assert_false(fits(bits_of(0x1p51F), 0));
    assert_true(fits(bits_of(0x1.fffffep12F), 38));
    assert_false(fits(bits_of(0x1p13F), 38));
    assert_true(fits(bits_of(FLT_MAX), -77));
    assert_false(fits(bits_of(FLT_MAX), -76));
    assert_false(fits(bits_of(INFINITY), -200));
    assert_false(fits(LS_NOT_FINITE + 1, -200));
    assert_true(fits(0, 400));
    const float bad[] = {INFINITY, -INFINITY, NAN, FLT_MAX, -FLT_MAX, 1};
    for (int isa = -1; next_isa(&isa);)
        for (size_t b = 0; b < sizeof bad / sizeof *bad; b++)
            for (size_t at = 0; at < 40; at++) {
                memset(gradient, 0, 40 * sizeof *gradient);
                gradient[at] = bad[b];
                uint32_t largest = ls_exact_add(sum, gradient, 40, 400, false);
                assert_int_equal(largest, bits_of(fabsf(bad[b])));
                assert_int_equal(ls_largest(gradient, 40), largest);
                assert_int_equal(largest >= LS_NOT_FINITE, !isfinite(bad[b]));
                assert_false(fits(largest, 400));
            }
}

/* The total of many contributions is nearer to the true one than sums in fp32 are, added one by
 * one or along a tree, as a vector (elements are up to 2^20 smaller than the largest; the smallest
 * of them for themselves would fare better in fp32). */
static void test_quality(void **state)
{
    (void)state;
    enum { PARTS = 64 };
    static float part[PARTS][COUNT];
    static double truth[COUNT];
    static float serial[COUNT];
    memset(truth, 0, sizeof truth);
    memset(serial, 0, sizeof serial);
    for (uint32_t i = 0; i < COUNT; i++)
        for (int p = 0; p < PARTS; p++) {
            float size = ldexpf(1, -(int)ls_random_below(1, 2, i, 21));
            part[p][i] = size * (float)ls_random_normal(20, (uint64_t)p, i);
            truth[i] += part[p][i];
            serial[i] += part[p][i];
        }
    /* The exponent follows from a total, as in training. */
    int exponent = 37 - ilogbf(float_of(ls_largest(serial, COUNT)));
    for (int p = 0; p < PARTS; p++)
        assert_true(fits(ls_exact_add(sum, part[p], COUNT, exponent, p == 0), exponent));
    ls_exact_to_float(sum, exponent, out, COUNT);
    for (int width = PARTS / 2; width >= 1; width /= 2)
        for (int p = 0; p < width; p++)
            for (int i = 0; i < COUNT; i++)
                part[p][i] += part[p + width][i];
    double exact_error = 0, serial_error = 0, tree_error = 0;
    for (int i = 0; i < COUNT; i++) {
        exact_error += (out[i] - truth[i]) * (out[i] - truth[i]);
        serial_error += (serial[i] - truth[i]) * (serial[i] - truth[i]);
        tree_error += (part[0][i] - truth[i]) * (part[0][i] - truth[i]);
    }
    assert_true(exact_error < tree_error && exact_error < serial_error);
}

static void random_sums(void)
{
    const int64_t special[] = {0,
                               1,
                               -1,
                               INT64_MAX,
                               INT64_MIN,
                               1LL << 53,
                               -(1LL << 53),
                               (1LL << 53) + 1,
                               0x20000000000003,
                               0xffffffff,
                               0x100000000,
                               -0x100000000,
                               -0xffffffff,
                               0x7fffffffffffff40,
                               0x3fffffc000000001};
    for (uint32_t i = 0; i < COUNT; i++) {
        uint64_t word = (uint64_t)ls_random_u32(8, 1, i) << 32 | ls_random_u32(8, 2, i);
        sum[i] = (int64_t)word >> ls_random_below(8, 3, i, 64);
    }
    memcpy(sum, special, sizeof special);
}

static void test_to_float(void **state)
{
    (void)state;
    random_sums();
    const int exponents[] = {38, 0, -60, 100, 187};
    for (size_t e = 0; e < sizeof exponents / sizeof *exponents; e++)
        for (int isa = -1; next_isa(&isa);) {
            uint32_t largest = ls_exact_to_float(sum, exponents[e], out, COUNT);
            uint32_t expected_largest = 0;
            for (int i = 0; i < COUNT; i++) {
                float expected = (float)ldexp((double)sum[i], -exponents[e]);
                assert_memory_equal(&expected, &out[i], sizeof expected);
                if (bits_of(fabsf(expected)) > expected_largest)
                    expected_largest = bits_of(fabsf(expected));
            }
            assert_int_equal(largest, expected_largest);
        }
}

/* Elements with exponents of their own: each as ls_exact_add gives it with that exponent. */
static void test_own_exponents(void **state)
{
    (void)state;
    static int32_t exponent[COUNT];
    static uint32_t largest[COUNT];
    static int64_t expected[COUNT];
    static float expected_out[COUNT];
    for (uint32_t salt = 0; salt < 2; salt++)
        for (int isa = -1; next_isa(&isa);) {
            bool lanes = salt == 1;
            random_gradients(30 + salt, 9);
            memset(largest, 0, sizeof largest);
            for (uint32_t i = 0; i < COUNT; i++) {
                uint32_t draw = lanes ? i % LS_EXACT_LANES : i;
                exponent[i] = (int32_t)ls_random_below(40, salt, draw, 330) - 150;
                gradient[i] = fabsf(gradient[i]) < FLT_MIN ? 0 : gradient[i];
                if (!fits(bits_of(fabsf(gradient[i])), exponent[i]))
                    gradient[i] = 0;
                expected[i] = 3 * rounded(gradient[i], exponent[i]);
                expected_out[i] = (float)ldexp((double)expected[i], -exponent[i]);
            }
            memset(sum, 0x5a, sizeof sum);
            for (int k = 0; k < 3; k++)
                assert_int_equal((lanes ? ls_exact_add_lanes : ls_exact_add_each)(
                                     sum, gradient, COUNT, exponent, largest, k == 0),
                                 ls_largest(gradient, COUNT));
            assert_memory_equal(sum, expected, sizeof expected);
            assert_true(sum[COUNT] == INT64_C(0x5a5a5a5a5a5a5a5a));
            for (int i = 0; i < COUNT; i++) {
                uint32_t bits = bits_of(fabsf(gradient[i]));
                assert_true(lanes ? largest[i % LS_EXACT_LANES] >= bits : largest[i] == bits);
            }
            (lanes ? ls_exact_to_float_lanes : ls_exact_to_float_each)(sum, exponent, out, COUNT);
            for (int i = 0; i < COUNT; i++) /* denormals may be flushed */
                if (fabsf(expected_out[i]) >= FLT_MIN)
                    assert_true(out[i] == expected_out[i]);
        }
}

static void test_squares(void **state)
{
    (void)state;
    double first[3] = {0};
    random_gradients(7, 3);
    memcpy(out, gradient, sizeof out);
    for (int isa = -1; next_isa(&isa);) {
        double now[3] = {ls_sum_squares(out, COUNT), ls_sum_magnitudes(out, COUNT),
                         ls_sum_floats(out, COUNT)};
        if (isa == 0)
            memcpy(first, now, sizeof now);
        assert_memory_equal(first, now, sizeof now);
    }
    double squares = 0, magnitudes = 0, values = 0;
    for (int i = 0; i < COUNT; i++) {
        squares += (double)out[i] * out[i];
        magnitudes += fabs((double)out[i]);
        values += out[i];
    }
    assert_true(fabs(first[0] - squares) < 1e-12 * squares);
    assert_true(fabs(first[1] - magnitudes) < 1e-12 * magnitudes);
    assert_true(fabs(first[2] - values) < 1e-12 * magnitudes);
    /* A slice that begins at a chunk is summed as in the whole. */
    double chunks[3];
    for (size_t c = 0; c < 3; c++)
        chunks[c] = ls_sum_squares(out + c * LS_EXACT_CHUNK,
                                   c < 2 ? LS_EXACT_CHUNK : COUNT - 2 * LS_EXACT_CHUNK);
    double from_chunks = ls_sum_doubles(chunks, 3);
    assert_memory_equal(&from_chunks, &first[0], sizeof from_chunks);
    assert_true(ls_sum_doubles(NULL, 0) == 0 && ls_sum_floats(NULL, 0) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_measuring),     cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_order),         cmocka_unit_test(test_limits),
        cmocka_unit_test(test_quality),       cmocka_unit_test(test_to_float),
        cmocka_unit_test(test_own_exponents), cmocka_unit_test(test_squares),
    };
    ls_set_float_mode();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
