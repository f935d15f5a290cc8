/* Batches and micro-batches: every sample once an epoch, in order, with each last_batch.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/batching.h"

#include <stdlib.h>
#include <string.h>

#include "support/support.h"

static void wrap_makes_a_stream_of_samples(void **state)
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
    struct ls_batching b = {samples, size, 5, iter_size, last, 0, NULL, NULL, NULL};
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

static void partial_and_drop_end_batches_with_the_epoch(void **state)
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

static void updates_per_epoch_follow_last_batch(void **state)
{
    (void)state;
    struct ls_batching b = {1000, 300, 16, 1, LS_LAST_WRAP, 0, NULL, NULL, NULL};
    assert_true(ls_batching_updates_per_epoch(&b) == 1000.0 / 300.0);
    b.last = LS_LAST_PARTIAL;
    assert_true(ls_batching_updates_per_epoch(&b) == 4);
    b.last = LS_LAST_DROP;
    assert_true(ls_batching_updates_per_epoch(&b) == 3);
    b.iter_size = 2;
    assert_true(ls_batching_updates_per_epoch(&b) == 2);
}

static void endless_data_have_no_last_batch(void **state)
{
    (void)state;
    struct ls_batching b = {INT64_MAX, 64, 8, 2, LS_LAST_PARTIAL, 0, NULL, NULL, NULL};
    struct ls_batch batch[2];
    assert_int_equal(ls_batching_update(&b, 1000000, batch), 2);
    assert_int_equal(batch[1].ordinal, 2000001 * INT64_C(64));
    assert_int_equal(batch[1].count, 64);
}

/* Cuts `batch`, which must work. */
static int64_t cut(const struct ls_batching *b, struct ls_batch batch, struct ls_micro *micro)
{
    int64_t n = -1;
    assert_int_equal(ls_batching_cut(b, &batch, micro, &n, NULL), 0);
    assert_in_range(n, 1, ls_batching_most(b, batch.count));
    int64_t next = batch.ordinal;
    for (int64_t i = 0; i < n; i++) {
        assert_int_equal(micro[i].ordinal, next);
        assert_in_range(micro[i].count, 1, ls_batching_largest(b));
        next += micro[i].count;
    }
    assert_int_equal(next, batch.ordinal + batch.count);
    return n;
}

static void micro_batches_cover_the_batch_evenly(void **state)
{
    (void)state;
    struct ls_micro part[130];
    for (int64_t count = 1; count <= 130; count++)
        for (int64_t micro = 1; micro <= 40; micro++) {
            struct ls_batching b = {.samples = 1000, .batch = count, .micro_batch = micro};
            int64_t n = cut(&b, (struct ls_batch){.ordinal = 1000, .count = count}, part);
            assert_int_equal(n, (count + micro - 1) / micro);
            assert_int_equal(n, ls_batching_most(&b, count));
            for (int64_t i = 0; i < n; i++) {
                assert_int_equal(part[i].ordinal, 1000 + i * count / n);
                assert_in_range(part[i].count, count / n, (count + n - 1) / n);
                assert_true(part[i].shape[0] == 0 && part[i].shape[1] == 0);
            }
        }
}

/* Where i x count, or i x (count mod n), would overflow. */
static void even_cuts_of_large_numbers_do_not_overflow(void **state)
{
    (void)state;
    int64_t huge = INT64_C(1) << 62;
    assert_int_equal(ls_even_cut(huge, 1000003, 1000003), huge);
    assert_int_equal(ls_even_cut(huge, huge, huge - 1), huge - 1);
    /* n = 3 x 2^40, count = 2 n - 1: floor(i count / n) = 2 i - 1 for 0 < i <= n. */
    int64_t n = INT64_C(3) << 40;
    assert_int_equal(ls_even_cut(2 * n - 1, n, n - 1), 2 * (n - 1) - 1);
    assert_int_equal(ls_even_cut(2 * n - 1, n, n), 2 * n - 1);
    assert_int_equal(ls_batching_groups(INT64_MAX, 2), INT64_MAX / 2 + 1);
    assert_int_equal(ls_batching_groups(7, INT64_MAX), 1);
    struct ls_batching b = {
        .samples = 10, .batch = 7, .micro_batch = 3, .group = INT64_MAX, .iter_size = 1};
    struct ls_micro micro[1];
    assert_int_equal(cut(&b, (struct ls_batch){.count = 7}, micro), 1);
}

/* Whether `ordinal` begins one of the groups of a batch. */
static bool begins_group(const struct ls_batch *batch, int64_t group, int64_t ordinal)
{
    int64_t n = ls_batching_groups(batch->count, group);
    for (int64_t j = 0; j < n; j++)
        if (batch->ordinal + j * batch->count / n == ordinal)
            return true;
    return false;
}

static void micro_batches_are_made_of_whole_groups(void **state)
{
    (void)state;
    struct ls_micro part[60];
    for (int64_t count = 1; count <= 60; count++)
        for (int64_t group = 1; group <= 20; group++)
            for (int64_t micro = 1; micro <= 40; micro++) {
                struct ls_batching b = {
                    .samples = 1000, .batch = count, .micro_batch = micro, .group = group};
                struct ls_batch batch = {.ordinal = 70, .count = count};
                int64_t n = cut(&b, batch, part);
                int64_t groups = (count + group - 1) / group;
                int64_t together = micro / group > 1 ? micro / group : 1;
                assert_int_equal(n, (groups + together - 1) / together);
                for (int64_t i = 0; i < n; i++)
                    assert_true(begins_group(&batch, group, part[i].ordinal));
            }
    /* 10 samples in groups of 4 are groups of 3, 3 and 4; two of them fit 8 samples. */
    struct ls_batching b = {.samples = 100, .batch = 10, .micro_batch = 8, .group = 4};
    assert_int_equal(cut(&b, (struct ls_batch){.count = 10}, part), 2);
    assert_int_equal(part[0].count, 3);
    assert_int_equal(part[1].count, 7);
}

/* ---- Sizes that vary ---- */

/* The height of sample k is the k-th letter of a string; '!' cannot be read. */
static int height_of(void *user, int64_t ordinal, int64_t shape[3], struct ls_error *error)
{
    const char *heights = user;
    if (heights[ordinal] == '!')
        return ls_fail(error, LOCKSTEP_DATA, "file.png", NULL, "cannot be read");
    shape[0] = 3;
    shape[1] = heights[ordinal] - 'a' + 1;
    shape[2] = 5;
    return 0;
}

/* Cuts a batch of samples of these heights; gives the parts as text, such as "aa|b". */
static const char *cut_heights(const char *heights, int64_t micro_batch)
{
    static char text[100];
    struct ls_micro micro[50];
    int64_t count = (int64_t)strlen(heights) - 1;
    struct ls_batching b = {.samples = 1000,
                            .batch = count,
                            .micro_batch = micro_batch,
                            .size_of = height_of,
                            .user = (void *)(uintptr_t)heights};
    assert_int_equal(ls_batching_most(&b, count), count);
    int64_t n = cut(&b, (struct ls_batch){.ordinal = 1, .count = count}, micro);
    char *at = text;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = 0; k < micro[i].count; k++) {
            assert_int_equal(micro[i].shape[1], heights[micro[i].ordinal + k] - 'a' + 1);
            *at++ = heights[micro[i].ordinal + k];
        }
        assert_true(micro[i].shape[0] == 3 && micro[i].shape[2] == 5);
        *at++ = i + 1 < n ? '|' : '\0';
    }
    return text;
}

static void micro_batches_hold_samples_of_one_size(void **state)
{
    (void)state;
    assert_string_equal(cut_heights(".abab", 4), "a|b|a|b");
    assert_string_equal(cut_heights(".aaab", 4), "aaa|b");
    assert_string_equal(cut_heights(".baaa", 4), "b|aaa");
    assert_string_equal(cut_heights(".aaaaabbbbcc", 4), "aa|aaa|bbbb|cc");
    assert_string_equal(cut_heights(".aaaa", 1), "a|a|a|a");
    assert_string_equal(cut_heights(".a", 16), "a");
}

static void a_size_that_cannot_be_read_is_an_error(void **state)
{
    (void)state;
    struct ls_batching b = {
        .batch = 4, .micro_batch = 4, .size_of = height_of, .user = (void *)(uintptr_t) "aab!"};
    struct ls_micro micro[4];
    int64_t count;
    struct ls_error *error = calloc(1, sizeof *error);
    struct ls_batch batch = {.ordinal = 0, .count = 4};
    assert_int_equal(ls_batching_cut(&b, &batch, micro, &count, error), LOCKSTEP_DATA);
    assert_int_equal(error->count, 1);
    assert_string_equal(error->problems[0].place, "file.png");
    free(error);
}

static void the_default_micro_batch_suits_eight_workers(void **state)
{
    (void)state;
    assert_int_equal(ls_micro_batch_default(1), 1);
    assert_int_equal(ls_micro_batch_default(8), 1);
    assert_int_equal(ls_micro_batch_default(15), 2);
    assert_int_equal(ls_micro_batch_default(64), 8);
    assert_int_equal(ls_micro_batch_default(100), 13);
    assert_int_equal(ls_micro_batch_default(128), 16);
    assert_int_equal(ls_micro_batch_default(129), 9);
    assert_int_equal(ls_micro_batch_default(256), 16);
    assert_int_equal(ls_micro_batch_default(100000), 16);
    /* Eight workers share the micro-batches evenly: in batches that are large enough, the number
     * of micro-batches is a multiple of eight, or within an eighth of one. */
    for (int64_t batch = 57; batch < 5000; batch++) {
        int64_t micro_batch = ls_micro_batch_default(batch);
        int64_t n = (batch + micro_batch - 1) / micro_batch;
        assert_in_range(micro_batch, 8, 16);
        assert_true((n + 7) / 8 * 8 * 7 <= n * 8);
    }
}

static void batchings_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    struct ls_batching good = {10, 4, 2, 1, LS_LAST_DROP, 0, NULL, NULL, NULL};
    assert_int_equal(ls_batching_check(&good, "here", NULL), 0);
    struct ls_batching bad[] = {{10, 0, 2, 1, LS_LAST_WRAP, 0, NULL, NULL, NULL},
                                {10, 4, 0, 1, LS_LAST_WRAP, 0, NULL, NULL, NULL},
                                {10, 4, 2, 0, LS_LAST_WRAP, 0, NULL, NULL, NULL},
                                {10, 11, 2, 1, LS_LAST_DROP, 0, NULL, NULL, NULL},
                                {10, INT64_MAX / 2, 2, 4, LS_LAST_WRAP, 0, NULL, NULL, NULL}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(ls_batching_check(&bad[i], "here", NULL), LOCKSTEP_DEFINITION);
    struct ls_batching empty = {0, 4, 2, 1, LS_LAST_WRAP, 0, NULL, NULL, NULL};
    assert_int_equal(ls_batching_check(&empty, "here", NULL), LOCKSTEP_DATA);
    struct ls_batching many = {10, (1 << 20) + 1, 1, 1, LS_LAST_WRAP, 0, NULL, NULL, NULL};
    assert_int_equal(ls_batching_check(&many, "here", NULL), LOCKSTEP_DEFINITION);
    many.batch--;
    assert_int_equal(ls_batching_check(&many, "here", NULL), 0);
    struct ls_batching mixed = {10, 4, 2, 1, LS_LAST_WRAP, 2, height_of, NULL, NULL};
    assert_int_equal(ls_batching_check(&mixed, "here", NULL), LOCKSTEP_DEFINITION);
    mixed.group = 0;
    assert_int_equal(ls_batching_check(&mixed, "here", NULL), 0);
}

/* Batch n of each data set, at its own ordinals; those of another epoch begin with it. */
static void a_data_set_has_batches_of_its_own(void **state)
{
    (void)state;
    static const struct ls_own_batch own[] = {{12, 60}, {4, 22}};
    struct ls_batching b = {.samples = 60, .batch = 12, .micro_batch = 12, .iter_size = 1};
    struct ls_batch its;
    b.own = own;
    for (int64_t n = 0; n < 20; n++) {
        const struct ls_batch of = {12 * n, 12};
        assert_int_equal(ls_batching_of(&b, 0, &of, &its), 0);
        assert_int_equal(its.ordinal, 12 * n);
        assert_int_equal(its.count, 12);
        assert_int_equal(ls_batching_of(&b, 1, &of, &its), 0);
        assert_int_equal(its.ordinal, 4 * n);
        assert_int_equal(its.count, 4);
    }
    b.last = LS_LAST_DROP;
    for (int64_t n = 0; n < 20; n++) { /* 5 batches an epoch, and 2 samples behind them */
        const struct ls_batch of = {12 * n, 12};
        assert_int_equal(ls_batching_of(&b, 1, &of, &its), n % 5 == 4 ? 2 : 0);
        assert_int_equal(its.ordinal, n / 5 * 22 + n % 5 * 4);
        assert_int_equal(its.count, 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_data_set_has_batches_of_its_own),
        cmocka_unit_test(wrap_makes_a_stream_of_samples),
        cmocka_unit_test(partial_and_drop_end_batches_with_the_epoch),
        cmocka_unit_test(updates_per_epoch_follow_last_batch),
        cmocka_unit_test(endless_data_have_no_last_batch),
        cmocka_unit_test(micro_batches_cover_the_batch_evenly),
        cmocka_unit_test(even_cuts_of_large_numbers_do_not_overflow),
        cmocka_unit_test(micro_batches_are_made_of_whole_groups),
        cmocka_unit_test(micro_batches_hold_samples_of_one_size),
        cmocka_unit_test(a_size_that_cannot_be_read_is_an_error),
        cmocka_unit_test(the_default_micro_batch_suits_eight_workers),
        cmocka_unit_test(batchings_that_make_no_sense_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
