/* The loops behind kernels: functions, random words, normal numbers; the same bits everywhere.
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
#include "ops/cpu/isa.h"
#include "ops/cpu/vector/math.h"
#include "ops/cpu/vector/normal.h"
#include "ops/cpu/vector/philox.h"

enum { COUNT = 1003 };

/* Selects the next instruction set that this processor has; false after the last. */
static bool next_isa(int *isa)
{
    for (++*isa; *isa < LS_ISAS; ++*isa)
        if (ls_cpu_isa_supported((enum ls_isa) * isa))
            return ls_cpu_isa_select(ls_cpu_isa_name((enum ls_isa) * isa), NULL) == 0;
    return false;
}

/* Random bits: every magnitude, denormals, infinities and NaNs among them. */
static float any_float(uint32_t i)
{
    uint32_t bits = ls_random_u32(5, 6, i);
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void apply(int function, const float *x, float *y, size_t n)
{
    const struct ls_vector_math *math = ls_vector_math();
    switch (function) {
    case 0:
        math->exp(x, y, n);
        break;
    case 1:
        math->log(x, y, n);
        break;
    case 2:
        math->tanh(x, y, n);
        break;
    case 3:
        math->pow(x, -0.75F, y, n);
        break;
    default:
        math->pow(x, -1.75F, y, n);
        break;
    }
}

static double exact(int function, double x)
{
    switch (function) {
    case 0:
        return exp(x);
    case 1:
        return log(x);
    case 2:
        return tanh(x);
    default:
        return pow(x, function == 3 ? -0.75 : -1.75);
    }
}

/* NaNs may differ in their sign and payload; everything else in nothing. */
static void assert_same(const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(isnan(a[i]) && isnan(b[i])))
            assert_memory_equal(&a[i], &b[i], sizeof *a);
}

static void test_functions(void **state)
{
    (void)state;
    static float x[COUNT], y[COUNT], first[COUNT];
    for (int function = 0; function < 5; function++) {
        for (uint32_t i = 0; i < COUNT; i++) {
            x[i] = i % 2 ? any_float(i) : 20 * ls_random_uniform(1, 2, i) - 10;
            if (function != 0 && function != 2)
                x[i] = fabsf(x[i]);
        }
        for (int isa = -1; next_isa(&isa);) {
            apply(function, x, y, COUNT);
            if (isa == 0)
                memcpy(first, y, sizeof first);
            assert_same(first, y, COUNT);
            /* Position and length do not matter, nor that source and target are one. */
            for (size_t n = 0; n < 40; n++) {
                float part[64];
                memcpy(part, x + n, n * sizeof *x);
                apply(function, part, part, n);
                assert_same(first + n, part, n);
            }
        }
        for (int i = 0; i < COUNT; i++) {
            double expected = exact(function, x[i]);
            if (fabs(expected) < FLT_MIN * 4 || fabs(expected) > FLT_MAX / 4 || isnan(expected) ||
                fabsf(x[i]) < FLT_MIN)
                continue;
            assert_true(fabs(first[i] - expected) <= 2e-7 * fabs(expected));
        }
    }
}

static void test_words(void **state)
{
    (void)state;
    static uint32_t word[COUNT];
    const uint64_t ordinals[] = {0, 7, UINT64_C(0x123456789abcdef0)};
    const uint64_t firsts[] = {0, 1, 2, 3, 62, 65, (UINT64_C(1) << 34) - 37};
    for (int isa = -1; next_isa(&isa);)
        for (size_t o = 0; o < sizeof ordinals / sizeof *ordinals; o++)
            for (size_t f = 0; f < sizeof firsts / sizeof *firsts; f++)
                for (size_t n = 0; n < COUNT; n += 1 + n) {
                    memset(word, 0, sizeof word);
                    ls_vector_philox()->words(UINT64_C(0xfedcba9876543210), ordinals[o], firsts[f],
                                              word, n);
                    for (size_t i = 0; i < n; i++)
                        assert_int_equal(word[i], ls_random_u32(UINT64_C(0xfedcba9876543210),
                                                                ordinals[o], firsts[f] + i));
                    assert_int_equal(word[n], 0);
                }
}

static void test_normals(void **state)
{
    (void)state;
    enum { NUMBERS = 1002 };
    static uint32_t word[NUMBERS];
    static double normal[NUMBERS + 1];
    for (int isa = -1; next_isa(&isa);) {
        ls_vector_philox()->words(3, 4, 0, word, NUMBERS);
        for (size_t n = 0; n <= NUMBERS; n += 2 + n) {
            normal[n] = 5;
            ls_vector_normal()->normals(word, normal, n);
            for (size_t i = 0; i < n; i++) {
                double expected = ls_random_normal(3, 4, i);
                assert_memory_equal(&normal[i], &expected, sizeof expected);
            }
            assert_true(normal[n] == 5);
        }
    }
}

static void test_select(void **state)
{
    (void)state;
    struct ls_error error = {0};
    assert_int_equal(ls_cpu_isa_select("avx3", &error), LOCKSTEP_USAGE);
    assert_non_null(strstr(error.problems[0].message, "avx3"));
    assert_non_null(strstr(error.problems[0].hint, "sse41"));
    assert_int_equal(ls_cpu_isa_select("generic", &error), 0);
    assert_int_equal(ls_cpu_isa(), LS_ISA_GENERIC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_normals),
        cmocka_unit_test(test_select),
    };
    ls_set_float_mode();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
