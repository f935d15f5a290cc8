/* Elementary functions of kernels have the bits of SLEEF's: all floats with LOCKSTEP_ALL, else
 * every 997th and all that are special.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <sleef.h>
#include <stdlib.h>

#include "base/random.h"
#include "base/thread.h"
#include "device/elementary.h"
#include "device/elementary_double.h"
#include "device/trigonometry.h"
#include "support/support.h"

struct function {
    const char *name;
    float (*ours)(float x), (*theirs)(float x);
};

/* SLEEF's headers give these functions results of the type `const float`. */
#define THEIRS(name)                                                                               \
    static float sleef_##name(float x)                                                             \
    {                                                                                              \
        return Sleef_cinz_##name##f1_u10purec(x);                                                  \
    }
THEIRS(exp)
THEIRS(log)
THEIRS(tanh)
THEIRS(expm1)
THEIRS(log1p)
#undef THEIRS

static bool same(float a, float b)
{
    return (a != a && b != b) || ls_float_bits(a) == ls_float_bits(b);
}

static void check(const struct function *function, uint32_t bits)
{
    const float x = ls_float_of_bits((int32_t)bits);
    const float ours = function->ours(x), theirs = function->theirs(x);
    if (!same(ours, theirs))
        fail_msg("%s(%a) is %a, not %a", function->name, (double)x, (double)ours, (double)theirs);
}

static void functions_have_the_bits_of_the_host(void **state)
{
    static const struct function functions[] = {
        {"exp", ls_float_exp, sleef_exp},       {"log", ls_float_log, sleef_log},
        {"tanh", ls_float_tanh, sleef_tanh},    {"expm1", ls_float_expm1, sleef_expm1},
        {"log1p", ls_float_log1p, sleef_log1p},
    };
    static const uint32_t special[] = {0x00000000, 0x80000000, 0x3f800000, 0xbf800000, 0x7f800000,
                                       0xff800000, 0x7fc00000, 0x00800000, 0x007fffff, 0x00000001,
                                       0x7f7fffff, 0xff7fffff, 0x42d00000, 0xc2d00000, 0x42c80000,
                                       0x42b17218, 0xc2aeac50, 0x410aa123, 0xc1851592, 0x7e967699};
    const uint64_t step = getenv("LOCKSTEP_ALL") != NULL ? 1 : 997;
    (void)state;
    ls_set_float_mode();
    for (size_t f = 0; f < sizeof functions / sizeof *functions; f++) {
        for (uint64_t bits = 0; bits < UINT64_C(1) << 32; bits += step)
            check(&functions[f], (uint32_t)bits);
        for (size_t i = 0; i < sizeof special / sizeof *special; i++)
            for (int d = -3; d <= 3; d++)
                check(&functions[f], special[i] + (uint32_t)d);
    }
}

static void powers_have_the_bits_of_the_host(void **state)
{
    static const float exponents[] = {0,    1,     -1,       2,        3,         -3,
                                      0.5F, 0.75F, -0.75F,   -5,       0.1F,      1e9F,
                                      25,   1e8F,  16777215, INFINITY, -INFINITY, NAN};
    const uint32_t count = getenv("LOCKSTEP_ALL") != NULL ? 400000000 : 4000000;
    const uint32_t edges = sizeof exponents / sizeof *exponents;
    (void)state;
    ls_set_float_mode();
    for (uint32_t i = 0; i < count; i++) {
        uint32_t a = ls_random_u32(3, 1, i), b = ls_random_u32(3, 2, i);
        if (i % 4 != 0) /* numbers that do not overflow mostly */
            a = 0x3e000000 + a % 0x03000000;
        const float x = ls_float_of_bits((int32_t)a);
        const float y = i % 3 == 0   ? exponents[i / 3 % edges]
                        : i % 3 == 1 ? ls_float_of_bits((int32_t)b)
                                     : (float)((int32_t)b >> 8) / 65536.0F;
        const float ours = ls_float_pow(x, y), theirs = Sleef_cinz_powf1_u10purec(x, y);
        if (!same(ours, theirs))
            fail_msg("%a to the power %a is %a, not %a", (double)x, (double)y, (double)ours,
                     (double)theirs);
    }
}

/* A double from a stream: of any bits, around 1, or between -720 and 720. */
static double draw_double(uint64_t i)
{
    const uint64_t high = ls_random_u32(4, 1, i), bits = high << 32 | ls_random_u32(4, 2, i);
    const double share = (double)(bits >> 11) * 0x1p-53;
    if (i % 3 == 0)
        return ls_double_of_bits((int64_t)bits);
    return i % 3 == 1 ? 0.5 + share : (share - 0.5) * 1440;
}

static void compare_doubles(const char *name, double x, double ours, double theirs)
{
    if (ls_double_bits(ours) != ls_double_bits(theirs) && (ours == ours || theirs == theirs))
        fail_msg("%s(%a) is %a, not %a", name, x, ours, theirs);
}

static void functions_of_doubles_have_the_bits_of_the_host(void **state)
{
    static const double special[] = {0,         -0.0,    1,       -1,        INFINITY, -INFINITY,
                                     NAN,       DBL_MIN, DBL_MAX, -DBL_MAX,  709.8,    -708.3,
                                     -708.4,    -745.2,  1000,    -1000,     0.5,      1.5,
                                     0x1p-1050, 0x1p-53, -0.25,   0x1p-1000, 1e-20,    709.75};
    const uint64_t count = getenv("LOCKSTEP_ALL") != NULL ? 400000000 : 4000000;
    const uint64_t specials = sizeof special / sizeof *special;
    (void)state;
    ls_set_float_mode();
    for (uint64_t i = 0; i < specials + count; i++) {
        const double x = i < specials ? special[i] : draw_double(i);
        compare_doubles("exp", x, ls_double_exp(x), Sleef_cinz_expd1_u10purec(x));
        compare_doubles("log", x, ls_double_log(x), Sleef_cinz_logd1_u10purec(x));
        compare_doubles("log1p", x, ls_double_log1p(x), Sleef_cinz_log1pd1_u10purec(x));
    }
}

/* Angles, near 0 and far from it, whole numbers among them; and half turns from 0 to 2. */
static void angles_have_the_bits_of_the_host(void **state)
{
    const uint64_t count = getenv("LOCKSTEP_ALL") != NULL ? 400000000 : 2000000;
    (void)state;
    ls_set_float_mode();
    for (uint64_t i = 0; i < count; i++) {
        const double word = (double)ls_random_u32(5, 1, i);
        const double far = i % 4 == 0 ? 1e13 : i % 4 == 1 ? 1e6 : i % 4 == 2 ? 3e3 : 15;
        double x = (word * 0x1p-32 - 0.5) * 2 * far;
        x = i % 3 == 0 ? trunc(x) : x;
        compare_doubles("sin", x, ls_double_sin(x), Sleef_cinz_sind1_u10purec(x));
        compare_doubles("cos", x, ls_double_cos(x), Sleef_cinz_cosd1_u10purec(x));
        const double turns = i < 16 ? (double)i / 8 : word * 0x1p-31;
        const Sleef_double_2 both = Sleef_cinz_sincospid1_u05purec(turns);
        compare_doubles("sin of half turns", turns, ls_double_of_half_turns(turns, false), both.x);
        compare_doubles("cos of half turns", turns, ls_double_of_half_turns(turns, true), both.y);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_have_the_bits_of_the_host),
        cmocka_unit_test(powers_have_the_bits_of_the_host),
        cmocka_unit_test(functions_of_doubles_have_the_bits_of_the_host),
        cmocka_unit_test(angles_have_the_bits_of_the_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
