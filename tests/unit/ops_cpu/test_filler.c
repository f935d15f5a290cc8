/* The fillers: distributions, counters, errors; and the op that fills samples.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/own_kernel.h"

#include "device/plain.h"
#include "ops/cpu/filler.h"
#include "lockstep.pb-c.h"

enum { COUNT_MAX = 60000 };

static float filled[COUNT_MAX], again[COUNT_MAX];

static Lockstep__FillerParameter filler_of(const char *type)
{
    Lockstep__FillerParameter filler = LOCKSTEP__FILLER_PARAMETER__INIT;
    filler.type = (char *)type;
    return filler;
}

static int fill_blob(float *plain, const struct ls_shape *shape,
                     const Lockstep__FillerParameter *parameter, struct ls_error *error)
{
    struct ls_filler resolved;
    LS_TRY(ls_filler_resolve(&resolved, parameter, shape, error));
    ls_filler_run(&resolved, 42, 0, plain, (size_t)ls_shape_size(shape));
    return 0;
}

/* Fills on every instruction set, which must not matter. */
static void fill(const struct ls_shape *shape, const Lockstep__FillerParameter *filler)
{
    struct ls_error error = {0};
    int64_t count = ls_shape_size(shape);
    bool first = true;
    assert_true(count <= COUNT_MAX);
    for (int isa = LS_ISAS - 1; isa >= 0; isa--) {
        if (!ls_cpu_isa_supported((enum ls_isa)isa))
            continue;
        assert_int_equal(ls_cpu_isa_select(ls_cpu_isa_name((enum ls_isa)isa), NULL), 0);
        memset(again, 0xff, sizeof again);
        check_status(fill_blob(again, shape, filler, &error), &error);
        if (first)
            memcpy(filled, again, sizeof again);
        assert_memory_equal(filled, again, (size_t)count * sizeof *filled);
        first = false;
    }
}

struct statistics {
    double mean, deviation, smallest, largest;
};

static struct statistics measure(int64_t count)
{
    struct statistics s = {.smallest = filled[0], .largest = filled[0]};
    for (int64_t i = 0; i < count; i++) {
        s.mean += filled[i] / (double)count;
        s.smallest = fmin(s.smallest, filled[i]);
        s.largest = fmax(s.largest, filled[i]);
    }
    for (int64_t i = 0; i < count; i++)
        s.deviation += (filled[i] - s.mean) * (filled[i] - s.mean) / (double)count;
    s.deviation = sqrt(s.deviation);
    return s;
}

static const struct ls_shape weights = {4, {50, 20, 5, 7}}; /* 35,000; fan in 700, out 1750 */

static void test_constant(void **state)
{
    (void)state;
    Lockstep__FillerParameter filler = filler_of("constant");
    filler.value = 0.25F;
    fill(&weights, &filler);
    for (int i = 0; i < 35000; i++)
        assert_true(filled[i] == 0.25F);
    fill(&weights, NULL);
    for (int i = 0; i < 35000; i++)
        assert_true(filled[i] == 0);
}

static void test_uniform(void **state)
{
    (void)state;
    Lockstep__FillerParameter filler = filler_of("uniform");
    filler.min = -3;
    filler.max = 1;
    fill(&weights, &filler);
    struct statistics s = measure(35000);
    assert_true(s.smallest >= -3 && s.smallest < -2.99 && s.largest <= 1 && s.largest > 0.99);
    assert_true(fabs(s.mean + 1) < 0.03 && fabs(s.deviation - 4 / sqrt(12)) < 0.02);
    for (uint64_t i = 0; i < 35000; i++)
        assert_true(filled[i] == (float)(-3 + 4.0 * ls_random_uniform(42, 0, i)));
}

/* Rows that are true boxes of classes in the range, and those of plain C. */
static void test_boxes(void **state)
{
    (void)state;
    Lockstep__FillerParameter filler = filler_of("boxes");
    const struct ls_shape rows = {.rank = 2, .dim = {4375, 8}}, other = {.rank = 2, .dim = {8, 7}};
    struct ls_filler resolved;
    struct ls_error error = {0};
    static float plain[35000];
    filler.min = 1;
    filler.max = 3;
    fill(&rows, &filler);
    int counts[4] = {0};
    for (int i = 0; i < 35000; i += 8) {
        const float *row = filled + i;
        assert_true(row[0] == 0 && row[2] == 0 && row[7] == 0);
        assert_true(row[1] == 1 || row[1] == 2 || row[1] == 3);
        counts[(int)row[1]]++;
        for (int k = 3; k < 5; k++)
            assert_true(row[k] >= 0 && row[k] < 0.5F && row[k + 2] >= 0.5F && row[k + 2] < 1);
    }
    for (int k = 1; k < 4; k++)
        assert_true(counts[k] > 1350 && counts[k] < 1570);
    assert_int_equal(ls_filler_resolve(&resolved, &filler, &rows, NULL), 0);
    ls_plain_fill(&resolved, 42, 0, plain, 35000);
    assert_memory_equal(plain, filled, sizeof plain);
    assert_int_equal(ls_filler_resolve(&resolved, &filler, &other, &error), LOCKSTEP_DEFINITION);
    filler.max = 1.5F;
    assert_int_equal(ls_filler_resolve(&resolved, &filler, &rows, &error), LOCKSTEP_DEFINITION);
}

/* Every number of the range, as often as the others, and those of plain C. */
static void test_integer(void **state)
{
    (void)state;
    Lockstep__FillerParameter filler = filler_of("integer");
    struct ls_filler resolved;
    static float plain[35000];
    int counts[7] = {0};
    filler.min = -2;
    filler.max = 4;
    fill(&weights, &filler);
    for (int i = 0; i < 35000; i++) {
        assert_true(filled[i] >= -2 && filled[i] <= 4 && filled[i] == truncf(filled[i]));
        counts[(int)filled[i] + 2]++;
    }
    for (int k = 0; k < 7; k++)
        assert_true(counts[k] > 4700 && counts[k] < 5300);
    assert_int_equal(ls_filler_resolve(&resolved, &filler, &weights, NULL), 0);
    ls_plain_fill(&resolved, 42, 0, plain, 35000);
    assert_memory_equal(plain, filled, sizeof plain);
    filler.min = filler.max = 3;
    fill(&weights, &filler);
    for (int i = 0; i < 35000; i++)
        assert_true(filled[i] == 3);
    const float wrong[][2] = {{0, 1.5F}, {-0.5F, 1}, {1, 0}, {0, 0x1p24F}, {0, INFINITY}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct ls_error error = {0};
        filler.min = wrong[i][0];
        filler.max = wrong[i][1];
        assert_int_equal(ls_filler_resolve(&resolved, &filler, &weights, &error),
                         LOCKSTEP_DEFINITION);
        assert_non_null(strstr(error.problems[0].message, "whole numbers"));
    }
}

static void test_gaussian(void **state)
{
    (void)state;
    Lockstep__FillerParameter filler = filler_of("gaussian");
    filler.mean = 2;
    filler.std = 0.5F;
    fill(&weights, &filler);
    struct statistics s = measure(35000);
    assert_true(fabs(s.mean - 2) < 0.01 && fabs(s.deviation - 0.5) < 0.01);
    assert_true(s.smallest > -1 && s.largest < 5 && s.largest > 3.5);
    static float dense[35000];
    for (uint64_t i = 0; i < 35000; i++) {
        assert_true(filled[i] == (float)(2 + 0.5 * ls_random_normal(42, 0, i)));
        dense[i] = filled[i];
    }
    const struct ls_shape odd = {1, {1029}}; /* a last pair that is cut */
    fill(&odd, &filler);
    assert_memory_equal(dense, filled, 1029 * sizeof *dense);

    filler.sparse = 10; /* of 50 */
    fill(&weights, &filler);
    int kept = 0;
    for (int i = 0; i < 35000; i++) {
        assert_true(filled[i] == 0 || filled[i] == dense[i]);
        kept += filled[i] != 0;
    }
    assert_true(abs(kept - 7000) < 300);
    filler.sparse = 50;
    fill(&weights, &filler);
    assert_memory_equal(dense, filled, sizeof dense);
    filler.sparse = 0;
    fill(&weights, &filler);
    for (int i = 0; i < 35000; i++)
        assert_true(filled[i] == 0);
}

static void test_fans(void **state)
{
    (void)state;
    const double n[] = {700, 1750, 1225};
    for (int norm = 0; norm < 3; norm++) {
        Lockstep__FillerParameter filler = filler_of("xavier");
        filler.variance_norm = (Lockstep__FillerParameter__VarianceNorm)norm;
        fill(&weights, &filler);
        struct statistics s = measure(35000);
        double bound = sqrt(3 / n[norm]);
        assert_true(s.largest <= bound * 1.000001 && s.largest > 0.99 * bound);
        assert_true(s.smallest >= -bound * 1.000001 && s.smallest < -0.99 * bound);
        filler.type = (char *)"msra";
        fill(&weights, &filler);
        s = measure(35000);
        double deviation = sqrt(2 / n[norm]);
        assert_true(fabs(s.deviation - deviation) < 0.02 * deviation);
        assert_true(fabs(s.mean) < 0.02 * deviation);
    }
    /* A blob of one axis: fan out is its length, fan in 1. */
    const struct ls_shape bias = {1, {1000}};
    Lockstep__FillerParameter filler = filler_of("xavier");
    fill(&bias, &filler);
    assert_true(measure(1000).largest > 1.7);
    filler.variance_norm = LOCKSTEP__FILLER_PARAMETER__VARIANCE_NORM__FAN_OUT;
    fill(&bias, &filler);
    assert_true(measure(1000).largest < 0.06);
}

static void test_unitball(void **state)
{
    (void)state;
    const Lockstep__FillerParameter filler = filler_of("positive_unitball");
    fill(&weights, &filler);
    for (int row = 0; row < 50; row++) {
        double sum = 0;
        for (int i = 0; i < 700; i++) {
            assert_true(filled[row * 700 + i] >= 0);
            sum += filled[row * 700 + i];
        }
        assert_true(fabs(sum - 1) < 1e-6);
    }
}

static void test_bilinear(void **state)
{
    (void)state;
    const Lockstep__FillerParameter filler = filler_of("bilinear");
    const struct ls_shape four = {4, {2, 1, 4, 4}}, three = {4, {1, 1, 3, 3}};
    const double side4[] = {0.25, 0.75, 0.75, 0.25}, side3[] = {0.5, 1, 0.5};
    fill(&four, &filler);
    for (int i = 0; i < 32; i++)
        assert_true(fabs(filled[i] - side4[i % 4] * side4[i / 4 % 4]) < 1e-7);
    fill(&three, &filler);
    for (int i = 0; i < 9; i++)
        assert_true(fabs(filled[i] - side3[i % 3] * side3[i / 3]) < 1e-7);
}

static void refused(const Lockstep__FillerParameter *filler, const struct ls_shape *shape,
                    const char *word)
{
    struct ls_error error = {0};
    assert_int_equal(fill_blob(filled, shape, filler, &error), LOCKSTEP_DEFINITION);
    assert_non_null(strstr(error.problems[0].message, word));
}

static void test_errors(void **state)
{
    (void)state;
    const struct ls_shape oblong = {4, {1, 1, 3, 4}}, volume = {5, {1, 1, 2, 2, 2}},
                          matrix = {2, {3, 3}}, scalar = {0, {0}};
    Lockstep__FillerParameter filler = filler_of("gausian");
    refused(&filler, &weights, "'gausian'");
    filler = filler_of("bilinear");
    refused(&filler, &oblong, "bilinear");
    refused(&filler, &matrix, "bilinear");
    refused(&filler, &volume, "this one is 1 1 2 2 2");
    filler = filler_of("xavier");
    refused(&filler, &scalar, "xavier");
    filler = filler_of("positive_unitball");
    refused(&filler, &scalar, "positive_unitball");
    filler = filler_of("uniform");
    filler.min = 2;
    refused(&filler, &weights, "min");
    filler.min = NAN;
    refused(&filler, &weights, "min");
    filler = filler_of("constant");
    filler.sparse = 3;
    refused(&filler, &weights, "sparse");
    filler = filler_of("gaussian");
    filler.sparse = 51;
    refused(&filler, &weights, "sparse");
    filler.sparse = -2;
    refused(&filler, &weights, "sparse");
    filler.sparse = -1;
    filler.std = -1;
    refused(&filler, &weights, "std");
    filler.std = INFINITY;
    refused(&filler, &weights, "std");
}

/* Samples are filled by their ordinals, in whichever micro-batch they are. */
static void test_fill_op(void **state)
{
    (void)state;
    const char *const types[] = {"constant", "uniform", "gaussian", "xavier", "positive_unitball"};
    const struct ls_shape all = {3, {5, 4, 33}}, one = {3, {1, 4, 33}};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        Lockstep__FillerParameter filler = filler_of(types[t]);
        struct own *whole = own_new(&ls_kernel_fill);
        whole->op.attr.fill.filler = &filler;
        whole->op.attr.fill.key = 99;
        whole->context.first_ordinal = 10;
        struct ls_value *y = own_out(whole, &all);
        own_run(whole, &ls_layout_plain);
        for (int s = 0; s < 5; s++) {
            struct own *part = own_new(&ls_kernel_fill);
            part->op.attr.fill = whole->op.attr.fill;
            part->context.first_ordinal = 10 + s;
            struct ls_value *p = own_out(part, &one);
            own_run(part, &ls_layout_plain);
            assert_memory_equal(own_plain(part, p), own_plain(whole, y) + s * 132,
                                132 * sizeof(float));
            own_free(part);
        }
        if (t > 0)
            assert_true(own_plain(whole, y)[0] != own_plain(whole, y)[132]);
        own_free(whole);
    }
}

static void test_fill_constant(void **state)
{
    (void)state;
    const struct ls_shape shape = {2, {3, 50}};
    struct own *own = own_new(&ls_kernel_fill);
    own->op.attr.fill.value = -2.5F;
    struct ls_value *y = own_out(own, &shape);
    y->sample_axis = 1;
    own_run(own, &ls_layout_plain);
    for (int i = 0; i < 150; i++)
        assert_true(own_plain(own, y)[i] == -2.5F);
    Lockstep__FillerParameter filler = filler_of("uniform");
    own->op.attr.fill.filler = &filler;
    assert_false(ls_kernel_fill.accepts(&own->op)); /* samples along axis 1 */
    y->sample_axis = 0;
    assert_true(ls_kernel_fill.accepts(&own->op));
    filler.type = (char *)"nonsense";
    struct ls_prepared prepared = {.kernel = &ls_kernel_fill, .op = &own->op};
    struct ls_error error = {0};
    assert_int_equal(ls_kernel_fill.prepare(&prepared, &error), LOCKSTEP_DEFINITION);
    assert_null(prepared.state);
    own_free(own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constant),      cmocka_unit_test(test_uniform),
        cmocka_unit_test(test_boxes),         cmocka_unit_test(test_integer),
        cmocka_unit_test(test_gaussian),      cmocka_unit_test(test_fans),
        cmocka_unit_test(test_unitball),      cmocka_unit_test(test_bilinear),
        cmocka_unit_test(test_errors),        cmocka_unit_test(test_fill_op),
        cmocka_unit_test(test_fill_constant),
    };
    ls_set_float_mode();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
