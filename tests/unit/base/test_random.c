/* Philox is compared with its authors' known answers; and the numbers that are derived from it.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/random.h"

#include <math.h>
#include <string.h>

#include "base/thread.h"
#include "support/support.h"

/* The three vectors for "philox4x32 10" in the file kat_vectors of the Random123 distribution. */
static void philox_gives_the_published_vectors(void **state)
{
    (void)state;
    static const struct {
        uint64_t key, high, low;
        uint32_t out[4];
    } answers[] = {
        {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {UINT64_MAX, UINT64_MAX, UINT64_MAX, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {UINT64_C(0x299f31d0a4093822),
         UINT64_C(0x0370734413198a2e),
         UINT64_C(0x85a308d3243f6a88),
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        uint32_t out[4];
        ls_philox(answers[i].key, answers[i].high, answers[i].low, out);
        assert_memory_equal(out, answers[i].out, sizeof out);
        for (uint64_t e = 0; e < 4 && answers[i].low < UINT64_MAX / 4; e++)
            assert_int_equal(ls_random_u32(answers[i].key, answers[i].high, answers[i].low * 4 + e),
                             out[e]);
    }
}

static void keys_differ_by_seed_purpose_and_name(void **state)
{
    (void)state;
    uint64_t key = ls_random_key(1, LS_RANDOM_FILLER, "conv1");
    assert_int_equal(key, ls_random_key(1, LS_RANDOM_FILLER, "conv1"));
    assert_int_not_equal(key, ls_random_key(2, LS_RANDOM_FILLER, "conv1"));
    assert_int_not_equal(key, ls_random_key(0, LS_RANDOM_DROPOUT, "conv1"));
    assert_int_not_equal(key, ls_random_key(1, LS_RANDOM_DROPOUT, "conv1"));
    assert_int_not_equal(key, ls_random_key(1, LS_RANDOM_FILLER, "conv2"));
    assert_int_equal(ls_random_key(1, LS_RANDOM_SPLIT, NULL),
                     ls_random_key(1, LS_RANDOM_SPLIT, ""));
}

static void uniform_numbers_have_their_moments(void **state)
{
    (void)state;
    enum { COUNT = 40000 };
    double sum = 0, squares = 0;
    for (uint64_t i = 0; i < COUNT; i++) {
        float u = ls_random_uniform(9, 3, i);
        assert_true(u >= 0.0F && u < 1.0F);
        sum += u;
        squares += (double)u * u;
    }
    /* Mean 1/2 with a standard error of 0.0014, second moment 1/3 with 0.0015. */
    assert_true(fabs(sum / COUNT - 0.5) < 0.007);
    assert_true(fabs(squares / COUNT - 1.0 / 3.0) < 0.008);
}

static void integers_below_a_bound_are_even(void **state)
{
    (void)state;
    int counts[7] = {0};
    for (uint64_t i = 0; i < 70000; i++) {
        uint32_t value = ls_random_below(5, i, 2, 7);
        assert_in_range(value, 0, 6);
        counts[value]++;
    }
    for (int i = 0; i < 7; i++)
        assert_in_range(counts[i], 9500, 10500);
    assert_int_equal(ls_random_below(5, 1, 1, 1), 0);
}

/* Moments, neighbours and tails of the normal numbers. */
static void normal_numbers_have_their_moments_and_tails(void **state)
{
    (void)state;
    enum { COUNT = 100000 };
    double sum = 0, squares = 0, fourth = 0, neighbours = 0, last = 0;
    int beyond_two = 0;
    for (uint64_t i = 0; i < COUNT; i++) {
        double x = ls_random_normal(11, 4, i);
        assert_true(isfinite(x) && fabs(x) < 6.8);
        sum += x;
        squares += x * x;
        fourth += x * x * x * x;
        neighbours += x * last;
        last = x;
        beyond_two += fabs(x) > 2.0;
    }
    assert_true(fabs(sum / COUNT) < 0.016);
    assert_true(fabs(squares / COUNT - 1.0) < 0.023);
    assert_true(fabs(fourth / COUNT - 3.0) < 0.16);
    assert_true(fabs(neighbours / COUNT) < 0.016);
    assert_in_range(beyond_two, 4550 - 330, 4550 + 330);
}

/* The bits are part of the contract: models of one seed are the same on every machine. The values
 * agree with Box-Muller in arbitrary precision (normal_reference.py) to the last bits. */
static void normal_bits_never_change(void **state)
{
    (void)state;
    static const double expected[6] = {0x1.26d76ff852d78p+0,  0x1.837802fc3a11cp-2,
                                       -0x1.6c8024ab12753p-2, -0x1.929e6382af0d5p+0,
                                       0x1.4437051170d94p-1,  0x1.746b505166121p-3};
    for (uint64_t i = 0; i < 6; i++) {
        double x = ls_random_normal(UINT64_C(0x299f31d0a4093822), 17, i);
        assert_memory_equal(&x, &expected[i], sizeof x);
    }
}

static void *flushing_thread(void *result)
{
    ls_set_float_mode();
    for (uint64_t i = 0; i < 1000; i++)
        ((double *)result)[i] = ls_random_normal(1, 2, i);
    return NULL;
}

static void float_mode_does_not_matter(void **state)
{
    (void)state;
    static double flushed[1000];
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, flushing_thread, flushed), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    for (uint64_t i = 0; i < 1000; i++) {
        double x = ls_random_normal(1, 2, i);
        assert_memory_equal(&x, &flushed[i], sizeof x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_gives_the_published_vectors),
        cmocka_unit_test(keys_differ_by_seed_purpose_and_name),
        cmocka_unit_test(uniform_numbers_have_their_moments),
        cmocka_unit_test(integers_below_a_bound_are_even),
        cmocka_unit_test(normal_numbers_have_their_moments_and_tails),
        cmocka_unit_test(normal_bits_never_change),
        cmocka_unit_test(float_mode_does_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
