/* Sweeps: combinations, lists with brackets and quotes, what is drawn, and what is refused.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "sweep/sweep.h"

enum { FIELDS_MAX = 4 };

static int make(const char *const *set, int64_t random, uint64_t seed, struct lockstep_sweep **out,
                struct ls_error *error)
{
    struct lockstep_sweep_options options = {
        .struct_size = sizeof options, .set = set, .random = random, .seed = seed};
    while (set[options.set_count] != NULL)
        options.set_count++;
    ls_error_clear(error);
    return ls_sweep_new(&options, out, error);
}

static struct lockstep_sweep *made(const char *const *set, int64_t random, uint64_t seed)
{
    static struct ls_error error;
    struct lockstep_sweep *sweep;
    assert_int_equal(make(set, random, seed, &sweep, &error), 0);
    return sweep;
}

/* The value of an axis in a run, behind "field=". */
static const char *value(const struct lockstep_sweep *sweep, size_t run, size_t axis)
{
    return strchr(sweep->sets[run * sweep->axis_count + axis], '=') + 1;
}

static void combinations(void **state)
{
    (void)state;
    const char *const set[] = {"base_lr=0.1,0.05", "type=SGD", "stepvalue=[1,2],[3],\"a,b\"", NULL};
    static const char *const last[] = {"[1,2]", "[3]", "\"a,b\""};
    struct lockstep_sweep *sweep = made(set, 0, 1);
    assert_int_equal(sweep->run_count, 6);
    assert_int_equal(sweep->varied_count, 2);
    for (size_t run = 0; run < 6; run++) {
        assert_string_equal(value(sweep, run, 0), run < 3 ? "0.1" : "0.05");
        assert_string_equal(value(sweep, run, 1), "SGD");
        assert_string_equal(value(sweep, run, 2), last[run % 3]);
    }
    assert_string_equal(sweep->sets[0], "base_lr=0.1");
    ls_sweep_free(sweep);
}

/* Numbers within their ranges, in at most four digits, none twice; fewer runs are the first ones of
 * more; another seed draws others. The values themselves are those of every machine. */
static void draws(void **state)
{
    (void)state;
    const char *const set[] = {"base_lr=log:1e-4..1e-1", "decay=lin:-1..0.5", "batch=int:3..5",
                               "type=SGD,Adam", NULL};
    struct lockstep_sweep *all = made(set, 200, 7), *some = made(set, 20, 7);
    struct lockstep_sweep *other = made(set, 20, 8);
    size_t low = 0, same = 0, batches[6] = {0};
    for (size_t run = 0; run < 200; run++) {
        const double rate = strtod(value(all, run, 0), NULL);
        const double decay = strtod(value(all, run, 1), NULL);
        char digits[40];
        assert_true(rate >= 1e-4 && rate <= 1e-1);
        assert_true(decay >= -1 && decay <= 0.5);
        snprintf(digits, sizeof digits, "%.3e", rate);
        assert_true(strtod(digits, NULL) == rate);
        low += rate < 3.1622777e-3; /* the middle of the logarithms */
        const int batch = atoi(value(all, run, 2));
        assert_in_range(batch, 3, 5);
        batches[batch]++;
        for (size_t axis = 0; axis < 4 && run < 20; axis++) {
            assert_string_equal(value(all, run, axis), value(some, run, axis));
            same += strcmp(value(all, run, axis), value(other, run, axis)) == 0;
        }
    }
    assert_in_range(low, 75, 125);
    for (int batch = 3; batch <= 5; batch++)
        assert_in_range(batches[batch], 40, 95);
    assert_true(same < 40);
    ls_sweep_free(all);
    ls_sweep_free(some);
    ls_sweep_free(other);
}

/* Of few combinations all can be drawn, each once, and no more. */
static void few(void **state)
{
    (void)state;
    const char *const set[] = {"a=1,2,3", "b=x,y", NULL};
    const char *const range[] = {"a=int:1..4", NULL};
    static struct ls_error error;
    struct lockstep_sweep *sweep = made(set, 6, 1);
    for (size_t i = 0; i < 6; i++)
        for (size_t k = 0; k < i; k++)
            assert_false(strcmp(value(sweep, i, 0), value(sweep, k, 0)) == 0 &&
                         strcmp(value(sweep, i, 1), value(sweep, k, 1)) == 0);
    ls_sweep_free(sweep);
    assert_int_equal(make(set, 7, 1, &sweep, &error), LOCKSTEP_USAGE);
    assert_non_null(strstr(error.problems[0].message, "only 6 combinations"));
    assert_null(sweep);
    ls_sweep_free(made(range, 4, 1));
    assert_int_equal(make(range, 5, 1, &sweep, &error), LOCKSTEP_USAGE);
    assert_non_null(strstr(error.problems[0].message, "after 4 runs"));
}

static void refused(void **state)
{
    (void)state;
    static const struct {
        const char *set;
        int64_t random;
        const char *message;
    } cases[] = {
        {"", 0, "a field, '='"},
        {"=1", 0, "a field, '='"},
        {"?=1", 0, "a field, '='"},
        {"base_lr", 0, "a field, '='"},
        {"base_lr=", 0, "a value is missing"},
        {"base_lr=1,,2", 0, "a value is missing"},
        {"base_lr=1,", 0, "a value is missing"},
        {"base_lr=1,2,1", 0, "comes twice"},
        {"base_lr=log:1..2", 0, "must be drawn"},
        {"base_lr=log:0..2", 4, "have a logarithm"},
        {"base_lr=log:-1..2", 4, "have a logarithm"},
        {"base_lr=lin:2..1", 4, "is the smaller one"},
        {"base_lr=lin:1..1", 4, "is the smaller one"},
        {"base_lr=lin:1", 4, "two numbers"},
        {"base_lr=lin:", 4, "two numbers"},
        {"base_lr=lin:nan..1", 4, "two numbers"},
        {"base_lr=lin:0..inf", 4, "two numbers"},
        {"base_lr=lin:0..1e999", 4, "two numbers"},
        {"base_lr=lin:0..0x10", 4, "two numbers"},
        {"base_lr=lin:0...5..1", 4, "two numbers"},
        {"base_lr=int:0.5..3", 4, "whole numbers"},
        {"base_lr=int:0..3e9", 4, "whole numbers"},
        {"base_lr=1,2", 5, "only 2 combinations"},
        {"base_lr=1,2", 1001, "only 2 combinations"},
        {"base_lr=lin:0..1", 1001, "at most 1000 runs"},
        {"base_lr=lin:0..1", -1, "is not negative"},
    };
    static struct ls_error error;
    struct lockstep_sweep *sweep;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const set[] = {cases[i].set, NULL};
        assert_int_equal(make(set, cases[i].random, 1, &sweep, &error), LOCKSTEP_USAGE);
        if (strstr(error.problems[0].message, cases[i].message) == NULL)
            fail_msg("%s: %s", cases[i].set, error.problems[0].message);
        assert_null(sweep);
    }
    const char *const twice[] = {"a=1", "b=1", "a?=2", NULL};
    assert_int_equal(make(twice, 0, 1, &sweep, &error), LOCKSTEP_USAGE);
    assert_non_null(strstr(error.problems[0].message, "'a' is set twice"));
}

/* A product that no 64 bits hold. */
static void too_many(void **state)
{
    (void)state;
    enum { AXES = 80 };
    static char sets[AXES][24];
    const char *set[AXES + 1];
    static struct ls_error error;
    struct lockstep_sweep *sweep;
    for (int i = 0; i < AXES; i++) {
        snprintf(sets[i], sizeof sets[i], "f%d=1,2,3", i);
        set[i] = sets[i];
    }
    set[AXES] = NULL;
    assert_int_equal(make(set, 0, 1, &sweep, &error), LOCKSTEP_USAGE);
    assert_non_null(strstr(error.problems[0].message, "at most 1000 runs"));
    set[6] = NULL; /* 729 */
    ls_sweep_free(made(set, 0, 1));
    set[6] = "f6=1,2";
    set[7] = NULL;
    assert_int_equal(make(set, 0, 1, &sweep, &error), LOCKSTEP_USAGE);
    assert_non_null(strstr(error.problems[0].message, "1458 combinations"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(combinations), cmocka_unit_test(draws),    cmocka_unit_test(few),
        cmocka_unit_test(refused),      cmocka_unit_test(too_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
