/* Batches and micro-batches: every sample once an epoch, in order, with each last_batch.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/batching.h"
#include "support/support.h"

static void test_wrap_is_a_stream(void **state)
{
    (void)state;
    struct ls_batching b = {.samples = 1003, .batch = 97, .micro_batch = 12, .iter_size = 3};
    int64_t next = 0;
    for (int64_t u = 0; u < 50; u++) {
        struct ls_batch batch[3];
        assert_int_equal(ls_batching_update(&b, u, batch), 3);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(batch[i].ordinal, next);
            assert_int_equal(batch[i].count, 97);
            next += 97;
        }
    }
}

/* Walks `epochs` epochs; each must begin at its first sample and hold `expected` samples. */
static void check_epochs(enum ls_last_batch last, int64_t samples, int64_t size, int iter_size,
                         int64_t expected)
{
    struct ls_batching b = {samples, size, 5, iter_size, last};
    int64_t update = 0;
    for (int64_t epoch = 0; epoch < 4; epoch++) {
        int64_t seen = 0;
        double updates = ls_batching_updates_per_epoch(&b);
        assert_true(updates == (double)(int64_t)updates);
        for (int64_t u = 0; u < (int64_t)updates; u++) {
            struct ls_batch batch[8];
            int count = ls_batching_update(&b, update++, batch);
            assert_in_range(count, 1, iter_size);
            for (int i = 0; i < count; i++) {
                assert_int_equal(batch[i].ordinal, epoch * samples + seen);
                assert_in_range(batch[i].count, 1, size);
                if (last == LS_LAST_DROP)
                    assert_int_equal(batch[i].count, size);
                seen += batch[i].count;
            }
        }
        assert_int_equal(seen, expected);
    }
}

static void test_partial_and_drop(void **state)
{
    (void)state;
    for (int64_t samples = 1; samples <= 40; samples++)
        for (int64_t size = 1; size <= 12; size++)
            for (int iter_size = 1; iter_size <= 3; iter_size++) {
                check_epochs(LS_LAST_PARTIAL, samples, size, iter_size, samples);
                if (samples >= size)
                    check_epochs(LS_LAST_DROP, samples, size, iter_size, samples / size * size);
            }
}

static void test_updates_per_epoch(void **state)
{
    (void)state;
    struct ls_batching b = {1000, 300, 16, 1, LS_LAST_WRAP};
    assert_true(ls_batching_updates_per_epoch(&b) == 1000.0 / 300.0);
    b.last = LS_LAST_PARTIAL;
    assert_true(ls_batching_updates_per_epoch(&b) == 4);
    b.last = LS_LAST_DROP;
    assert_true(ls_batching_updates_per_epoch(&b) == 3);
    b.iter_size = 2;
    assert_true(ls_batching_updates_per_epoch(&b) == 2);
}

static void test_endless_data(void **state)
{
    (void)state;
    struct ls_batching b = {INT64_MAX, 64, 8, 2, LS_LAST_PARTIAL};
    struct ls_batch batch[2];
    assert_int_equal(ls_batching_update(&b, 1000000, batch), 2);
    assert_int_equal(batch[1].ordinal, 2000001 * INT64_C(64));
    assert_int_equal(batch[1].count, 64);
}

static void test_micro_batches_cover_the_batch_evenly(void **state)
{
    (void)state;
    for (int64_t count = 1; count <= 130; count++)
        for (int64_t micro = 1; micro <= 40; micro++) {
            struct ls_batch batch = {.ordinal = 1000, .count = count};
            int64_t n = ls_micro_batch_count(count, micro);
            assert_int_equal(n, (count + micro - 1) / micro);
            int64_t next = 1000;
            for (int64_t i = 0; i < n; i++) {
                struct ls_batch m = ls_micro_batch(&batch, n, i);
                assert_int_equal(m.ordinal, 1000 + i * count / n);
                assert_int_equal(m.ordinal, next);
                assert_in_range(m.count, count / n, (count + n - 1) / n);
                assert_true(m.count <= micro);
                next += m.count;
            }
            assert_int_equal(next, 1000 + count);
        }
    /* Where i x count would overflow. */
    struct ls_batch huge = {.ordinal = 0, .count = INT64_C(1) << 62};
    struct ls_batch m = ls_micro_batch(&huge, 1000003, 1000002);
    assert_int_equal(m.ordinal + m.count, INT64_C(1) << 62);
}

static void test_default_micro_batch(void **state)
{
    (void)state;
    assert_int_equal(ls_micro_batch_default(1), 1);
    assert_int_equal(ls_micro_batch_default(15), 1);
    assert_int_equal(ls_micro_batch_default(64), 8);
    assert_int_equal(ls_micro_batch_default(100), 12);
    assert_int_equal(ls_micro_batch_default(100000), 16);
}

static void test_check(void **state)
{
    (void)state;
    struct ls_batching good = {10, 4, 2, 1, LS_LAST_DROP};
    assert_int_equal(ls_batching_check(&good, "here", NULL), 0);
    struct ls_batching bad[] = {{10, 0, 2, 1, LS_LAST_WRAP},
                                {10, 4, 0, 1, LS_LAST_WRAP},
                                {10, 4, 2, 0, LS_LAST_WRAP},
                                {10, 11, 2, 1, LS_LAST_DROP},
                                {10, INT64_MAX / 2, 2, 4, LS_LAST_WRAP}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(ls_batching_check(&bad[i], "here", NULL), LOCKSTEP_DEFINITION);
    struct ls_batching empty = {0, 4, 2, 1, LS_LAST_WRAP};
    assert_int_equal(ls_batching_check(&empty, "here", NULL), LOCKSTEP_DATA);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrap_is_a_stream),
        cmocka_unit_test(test_partial_and_drop),
        cmocka_unit_test(test_updates_per_epoch),
        cmocka_unit_test(test_endless_data),
        cmocka_unit_test(test_micro_batches_cover_the_batch_evenly),
        cmocka_unit_test(test_default_micro_batch),
        cmocka_unit_test(test_check),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
