/* Conversion of elements: all numbers of 16 bits, hard ones of 32 and 64, against double
 * arithmetic. SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/random.h"
#include "base/thread.h"
#include "ir/convert.h"

/* What a narrow format has, as its standard says it. */
struct format {
    enum ls_dtype type;
    int fraction, least; /* bits; exponent of the least normal number */
    double largest;
    unsigned infinite;
};
static const struct format formats[] = {{LS_F16, 10, -14, 65504.0, 0x7c00},
                                        {LS_BF16, 7, -126, 0x1.fep127, 0x7f80}};

/* The value of a number of 16 bits. */
static double value_of(const struct format *format, unsigned bits)
{
    double sign = bits >> 15 ? -1 : 1, fraction = bits & ((1U << format->fraction) - 1);
    int exponent = (int)((bits & 0x7fff) >> format->fraction);
    if ((bits & 0x7fff) == format->infinite)
        return sign * HUGE_VAL;
    if ((bits & 0x7fff) > format->infinite)
        return nan("");
    if (exponent == 0)
        return sign * ldexp(fraction, format->least - format->fraction);
    return sign * ldexp(1 + ldexp(fraction, -format->fraction), format->least + exponent - 1);
}

/* The value of a format that is nearest to x: scaled so that units are integers, rounded, scaled
 * back. All steps but the rounding are exact. */
static double rounded(const struct format *format, double x)
{
    int exponent;
    if (x == 0 || isinf(x))
        return x;
    frexp(x, &exponent);
    exponent = exponent - 1 < format->least ? format->least : exponent - 1;
    double result =
        ldexp(nearbyint(ldexp(x, format->fraction - exponent)), exponent - format->fraction);
    return fabs(result) > format->largest ? copysign(HUGE_VAL, x) : result;
}

static uint16_t narrow_float(enum ls_dtype type, float x)
{
    uint16_t result;
    ls_dtype_convert(LS_F32, &x, type, &result, 1);
    return result;
}

static uint16_t narrow_double(enum ls_dtype type, double x)
{
    uint16_t result;
    ls_dtype_convert(LS_F64, &x, type, &result, 1);
    return result;
}

static void every_narrow_number_is_widened_exactly_and_back(void **state)
{
    (void)state;
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++)
        for (unsigned i = 0; i < 0x10000; i++) {
            const struct format *format = &formats[f];
            uint16_t bits = (uint16_t)i;
            double expected = value_of(format, i), wide;
            float single;
            ls_dtype_convert(format->type, &bits, LS_F32, &single, 1);
            ls_dtype_convert(format->type, &bits, LS_F64, &wide, 1);
            unsigned quiet = i | 1U << (format->fraction - 1);
            if (isnan(expected)) {
                assert_true(isnan(single) && isnan(wide));
                assert_true(!signbit(single) == !(i >> 15) && !signbit(wide) == !(i >> 15));
                assert_int_equal(narrow_float(format->type, single), quiet);
                assert_int_equal(narrow_double(format->type, wide), quiet);
                continue;
            }
            assert_memory_equal(&wide, &expected, sizeof wide); /* the sign of zero, too */
            assert_true((double)single == expected && !signbit(single) == !signbit(wide));
            assert_int_equal(narrow_float(format->type, single), i);
            assert_int_equal(narrow_double(format->type, wide), i);
        }
}

static void check_rounding(const struct format *format, double x)
{
    double expected = rounded(format, x);
    uint16_t result = narrow_double(format->type, x);
    if (value_of(format, result) != expected || !signbit(x) != !(result >> 15))
        fail_msg("%a becomes %a in %s, not %a", x, value_of(format, result),
                 ls_dtype_name(format->type), expected);
    if ((double)(float)x == x)
        assert_int_equal(narrow_float(format->type, (float)x), result);
}

/* Between each two neighbours: what lies half way, and the doubles and floats next to that. */
static void ties_go_to_even(void **state)
{
    (void)state;
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++)
        for (unsigned i = 0; i < formats[f].infinite; i++) {
            double a = value_of(&formats[f], i), b = value_of(&formats[f], i + 1);
            double half = isinf(b) ? a + (a - value_of(&formats[f], i - 1)) / 2 : a + (b - a) / 2;
            float near = (float)half;
            for (int sign = -1; sign <= 1; sign += 2) {
                check_rounding(&formats[f], sign * half);
                check_rounding(&formats[f], sign * nextafter(half, 0));
                check_rounding(&formats[f], sign * nextafter(half, HUGE_VAL));
                check_rounding(&formats[f], (double)(sign * nextafterf(near, 0)));
                check_rounding(&formats[f], (double)(sign * nextafterf(near, HUGE_VALF)));
                check_rounding(&formats[f], (double)(sign * near));
            }
        }
    assert_int_equal(narrow_float(LS_F16, 65519.996f), 0x7bff);
    assert_int_equal(narrow_float(LS_F16, 65520), 0x7c00);
    assert_int_equal(narrow_float(LS_F16, 0x1p-25f), 0);
    assert_int_equal(narrow_float(LS_F16, 0x1.000002p-25f), 1);
    assert_int_equal(narrow_float(LS_BF16, 0x1.fffffep127f), 0x7f80);
    assert_int_equal(narrow_float(LS_BF16, 0x1p-149f), 0);
    assert_int_equal(narrow_float(LS_BF16, 0x1.8p-134f), 1);
}

static void doubles_become_floats_as_the_processor_rounds(void **state)
{
    (void)state;
    static const double hard[] = {0,
                                  0x1p-149,
                                  0x1p-150,
                                  0x1.0000000000001p-150,
                                  0x1.8p-149,
                                  0x1p-126,
                                  0x1.ffffffffffffp-127,
                                  0x1.fffffe8p127,
                                  0x1.ffffffp127,
                                  0x1.fffffefffffffp127,
                                  0x1p-1074,
                                  0x1p-1022,
                                  0x1.fffffffffffffp1023,
                                  HUGE_VAL};
    for (size_t i = 0; i < sizeof hard / sizeof *hard + 2000000; i++) {
        uint64_t random = (uint64_t)ls_random_u32(1, i, 0) << 32 | ls_random_u32(1, i, 1);
        double x;
        if (i < sizeof hard / sizeof *hard)
            x = hard[i];
        else /* exponents about those of floats */
            random = (random & UINT64_C(0x801fffffffffffff)) | (uint64_t)(1023 - 160 + random % 320)
                                                                   << 52;
        if (i >= sizeof hard / sizeof *hard)
            memcpy(&x, &random, sizeof x);
        for (int sign = 0; sign < 2; sign++, x = -x) {
            float expected = (float)x, result;
            ls_dtype_convert(LS_F64, &x, LS_F32, &result, 1);
            assert_memory_equal(&result, &expected, sizeof result);
            double back;
            ls_dtype_convert(LS_F32, &expected, LS_F64, &back, 1);
            assert_true(back == (double)expected);
        }
    }
}

static void integers_become_the_nearest_numbers(void **state)
{
    (void)state;
    static const int32_t integers[] = {0,        1,        -1,        16777216,
                                       16777217, 16777219, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
        float single;
        double wide;
        ls_dtype_convert(LS_I32, &integers[i], LS_F32, &single, 1);
        ls_dtype_convert(LS_I32, &integers[i], LS_F64, &wide, 1);
        assert_true(single == (float)integers[i] && wide == integers[i]);
    }
    for (int i = 0; i < 256; i++) {
        unsigned char byte = (unsigned char)i;
        uint16_t narrow;
        float single;
        ls_dtype_convert(LS_U8, &byte, LS_F32, &single, 1);
        assert_true(single == (float)i);
        ls_dtype_convert(LS_I8, &byte, LS_BF16, &narrow, 1);
        assert_true(value_of(&formats[1], narrow) == (i < 128 ? i : i - 256));
    }
}

static void there_is_no_way_to_integers(void **state)
{
    (void)state;
    for (int from = 0; from < LS_DTYPES; from++)
        for (int to = 0; to < LS_DTYPES; to++) {
            bool number = ls_dtype_is_float((enum ls_dtype)from) || from == LS_I8 ||
                          from == LS_U8 || from == LS_I32;
            assert_int_equal(ls_dtype_converts((enum ls_dtype)from, (enum ls_dtype)to),
                             from == to || (number && ls_dtype_is_float((enum ls_dtype)to)));
        }
}

/* Workers flush denormals; a conversion must not. */
static void float_mode_changes_nothing(void **state)
{
    (void)state;
    const float tiny = 0x1p-130f;
    const double wide = 0x1p-130;
    uint16_t before = narrow_float(LS_BF16, tiny), after;
    float single, flushed;
    ls_dtype_convert(LS_F64, &wide, LS_F32, &single, 1);
    uint64_t kept = ls_float_mode();
    ls_set_float_mode();
    after = narrow_float(LS_BF16, tiny);
    ls_dtype_convert(LS_F64, &wide, LS_F32, &flushed, 1);
    ls_restore_float_mode(kept);
    assert_int_equal(before, after);
    assert_memory_equal(&single, &tiny, sizeof single);
    assert_memory_equal(&flushed, &tiny, sizeof single);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_narrow_number_is_widened_exactly_and_back),
        cmocka_unit_test(ties_go_to_even),
        cmocka_unit_test(doubles_become_floats_as_the_processor_rounds),
        cmocka_unit_test(integers_become_the_nearest_numbers),
        cmocka_unit_test(there_is_no_way_to_integers),
        cmocka_unit_test(float_mode_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
