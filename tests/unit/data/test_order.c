/* Shuffling is a permutation for every number of samples; splits are complementary.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/order.h"
#include "data_trial.h"

static void check_bijection(uint64_t key, uint64_t epoch, uint64_t count, uint8_t *seen)
{
    struct ls_order order;
    ls_order_init(&order, key, epoch, count);
    memset(seen, 0, count);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t to = ls_order_at(&order, i);
        if (to >= count || seen[to]++ != 0)
            fail_msg("not a permutation: %llu of %llu", (unsigned long long)i,
                     (unsigned long long)count);
    }
}

static void orders_are_permutations(void **state)
{
    (void)state;
    uint8_t *seen = malloc(1 << 21);
    for (uint64_t count = 1; count <= 1100; count++)
        for (uint64_t epoch = 0; epoch < 2; epoch++)
            check_bijection(count * 31, epoch, count, seen);
    const uint64_t large[] = {4095, 4096, 4097, 50000, 60000, 65536, 65537, 1000003, 1048576};
    for (size_t i = 0; i < sizeof large / sizeof large[0]; i++)
        check_bijection(7, i, large[i], seen);
    free(seen);
    struct ls_order order;
    ls_order_init(&order, 1, 2, UINT64_C(1) << 62); /* the largest domain */
    assert_true(ls_order_at(&order, (UINT64_C(1) << 62) - 1) < UINT64_C(1) << 62);
}

/* Each position takes each value about equally often over the epochs: a chi-square statistic per
 * number of samples, far from what a fixed point or a cyclic shift would give. */
static void positions_take_all_values_equally_often(void **state)
{
    (void)state;
    const int counts[] = {2, 3, 5, 10, 16, 33};
    for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++) {
        int n = counts[k];
        int epochs = 400 * n;
        int *table = calloc((size_t)(n * n), sizeof *table);
        for (int e = 0; e < epochs; e++) {
            struct ls_order order;
            ls_order_init(&order, 99, (uint64_t)e, (uint64_t)n);
            for (int i = 0; i < n; i++)
                table[i * n + (int)ls_order_at(&order, (uint64_t)i)]++;
        }
        double chi = 0;
        for (int i = 0; i < n * n; i++)
            chi += (table[i] - 400.0) * (table[i] - 400.0) / 400.0;
        double freedom = (n - 1.0) * (n - 1.0);
        assert_true(chi < freedom + 6 * sqrt(2 * freedom) + 10);
        free(table);
    }
}

static void orders_depend_on_key_and_epoch(void **state)
{
    (void)state;
    struct ls_order a, b, c;
    ls_order_init(&a, 1, 0, 1000);
    ls_order_init(&b, 1, 1, 1000);
    ls_order_init(&c, 2, 0, 1000);
    int same_b = 0, same_c = 0, fixed = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        same_b += ls_order_at(&a, i) == ls_order_at(&b, i);
        same_c += ls_order_at(&a, i) == ls_order_at(&c, i);
        fixed += ls_order_at(&a, i) == i;
    }
    assert_in_range(same_b, 0, 10);
    assert_in_range(same_c, 0, 10);
    assert_in_range(fixed, 0, 10);
}

/* The order is part of what a snapshot promises: it must not change between versions. */
static void orders_stay_those_of_earlier_versions(void **state)
{
    (void)state;
    struct ls_order order;
    ls_order_init(&order, UINT64_C(0x0123456789abcdef), 3, 10);
    const uint64_t expected[10] = {4, 1, 8, 9, 0, 5, 2, 3, 7, 6};
    for (uint64_t i = 0; i < 10; i++)
        assert_int_equal(ls_order_at(&order, i), expected[i]);
}

static void splits_are_complementary(void **state)
{
    (void)state;
    struct ls_split train, test;
    assert_int_equal(ls_split_parse("train:0.9", "p", &train, NULL), 0);
    assert_int_equal(ls_split_parse("test:0.9", "p", &test, NULL), 0);
    int in_train = 0;
    for (uint64_t i = 0; i < 60000; i++) {
        in_train += ls_split_has(&train, i);
        assert_int_equal(ls_split_has(&train, i), !ls_split_has(&test, i));
    }
    assert_in_range(in_train, 53700, 54300);
    uint32_t kept, others;
    uint32_t *a = ls_split_records(&train, 60000, &kept);
    uint32_t *b = ls_split_records(&test, 60000, &others);
    assert_int_equal(kept, in_train);
    assert_int_equal(kept + others, 60000);
    for (uint32_t i = 1; i < kept; i++)
        assert_true(a[i - 1] < a[i]);
    for (uint32_t i = 0; i < others; i++)
        assert_true(ls_split_has(&test, b[i]));
    ls_free(a);
    ls_free(b);
}

static void split_notation_is_checked(void **state)
{
    (void)state;
    struct ls_split split;
    assert_int_equal(ls_split_parse(NULL, "p", &split, NULL), 0);
    assert_true(split.all);
    assert_int_equal(ls_split_parse("test:.5", "p", &split, NULL), 0);
    assert_true(!split.all && !split.train && split.threshold == UINT64_C(1) << 31);
    const char *bad[] = {"train",
                         "train:",
                         "train:0",
                         "train:1",
                         "train:1.0",
                         "train:0.0",
                         "train:-0.5",
                         "train:nan",
                         "train:0x1p-1",
                         "train: 0.5",
                         "train:0.5 ",
                         "rest:0.5",
                         "Train:0.5",
                         ":0.5",
                         "train:0,5",
                         "train:0.5.5",
                         "train:00.5",
                         "train:9e-1",
                         "train:0.1234567890123456"};
    struct ls_error *error = calloc(1, sizeof *error);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ls_error_clear(error);
        if (ls_split_parse(bad[i], "net:3:4", &split, error) != LOCKSTEP_DEFINITION)
            fail_msg("accepted: %s", bad[i]);
        assert_says(error, "net:3:4");
        assert_says(error, "split: \"train:0.9\"");
    }
    free(error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orders_are_permutations),
        cmocka_unit_test(positions_take_all_values_equally_often),
        cmocka_unit_test(orders_depend_on_key_and_epoch),
        cmocka_unit_test(orders_stay_those_of_earlier_versions),
        cmocka_unit_test(splits_are_complementary),
        cmocka_unit_test(split_notation_is_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
