/* Sizes, operations and times in units.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <string.h>

#include "base/units.h"
#include "support/support.h"

static void sizes_have_units(void **state)
{
    (void)state;
    static const struct {
        double bytes;
        const char *text;
    } cases[] = {{0, "0 B"},          {640, "640 B"},           {1023, "1023 B"},
                 {1024, "1.0 KiB"},   {1048575, "1.0 MiB"},     {1048576.0 * 106.25, "106.2 MiB"},
                 {0x1p40, "1.0 TiB"}, {0x1p70, "1048576.0 PiB"}};
    char text[LS_UNITS_ROOM];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(ls_format_size(text, cases[i].bytes), cases[i].text);
}

static void operations_have_units(void **state)
{
    (void)state;
    static const struct {
        double flops;
        const char *text;
    } cases[] = {{0, "0 FLOP"},
                 {68.5, "68.5 FLOP"},
                 {162684742, "162.7 MFLOP"},
                 {999999, "1 MFLOP"},
                 {3.1e12, "3.1 TFLOP"}};
    char text[LS_UNITS_ROOM];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(ls_format_flops(text, cases[i].flops), cases[i].text);
}

static void times_have_units(void **state)
{
    (void)state;
    static const struct {
        double seconds;
        const char *text;
    } cases[] = {{0.04, "0.0 s"},        {59.94, "59.9 s"},       {59.96, "1 min 00 s"},
                 {725, "12 min 05 s"},   {3599.4, "59 min 59 s"}, {3600, "1 h 00 min"},
                 {90000, "25 h 00 min"}, {1e300, "1e+300 s"},     {(double)INFINITY, "inf s"}};
    char text[LS_UNITS_ROOM];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(ls_format_seconds(text, cases[i].seconds), cases[i].text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_have_units),
        cmocka_unit_test(operations_have_units),
        cmocka_unit_test(times_have_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
