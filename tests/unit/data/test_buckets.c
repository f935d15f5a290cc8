/* Buckets and first fit: epochs have each sample once, batches one length where that is possible,
 * and windows hold what fits.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/random.h"
#include "data/buckets.h"
#include "data/first_fit.h"
#include "support/support.h"

enum { MOST = 300 };

static int64_t lengths[MOST];

static int64_t length_at(const void *user, int64_t place)
{
    return ((const int64_t *)user)[place];
}

static int64_t length_of(const void *user, size_t index)
{
    return ((const int64_t *)user)[index];
}

/* How many batches that lie in an epoch as a whole have one length. */
static int64_t count_even(const struct ls_buckets_options *options, int64_t epoch,
                          const int64_t *order)
{
    const int64_t size = options->size, batch = options->batch;
    int64_t even = 0;
    for (int64_t i = 0; i < size; i++) {
        const int64_t ordinal = options->wraps ? epoch * size + i : i;
        if (ordinal % batch != 0 || i + batch > size)
            continue;
        bool same = true;
        for (int64_t k = 1; k < batch; k++)
            same = same && lengths[order[i + k]] == lengths[order[i]];
        even += same;
    }
    return even;
}

static void epochs_have_each_sample_once_and_even_batches(void **state)
{
    (void)state;
    for (uint64_t number = 0; number < 300; number++) {
        const uint64_t key = ls_random_key(number, LS_RANDOM_TEST, "buckets");
        const uint32_t kinds = 1 + ls_random_below(key, 0, 0, 9);
        struct ls_buckets_options options = {.size = 1 + ls_random_below(key, 0, 1, MOST),
                                             .batch = 1 + ls_random_below(key, 0, 2, 40),
                                             .wraps = number % 2 == 0,
                                             .shuffle = number % 3 > 0,
                                             .key = key,
                                             .length = length_at,
                                             .user = lengths};
        int64_t whole = 0, of_length[16] = {0};
        for (int64_t i = 0; i < options.size; i++) {
            lengths[i] = ls_random_below(key, 1, (uint64_t)i, kinds);
            of_length[lengths[i]]++;
        }
        for (int k = 0; k < 16; k++)
            whole += of_length[k] / options.batch;
        struct ls_buckets *buckets;
        assert_int_equal(ls_buckets_make(&options, &buckets, NULL), 0);
        for (int64_t epoch = 0; epoch < 4; epoch++) {
            bool seen[MOST] = {false};
            int64_t order[MOST];
            for (int64_t i = 0; i < options.size; i++) {
                order[i] = ls_buckets_at(buckets, epoch, i);
                assert_in_range(order[i], 0, options.size - 1);
                assert_false(seen[order[i]]);
                seen[order[i]] = true;
            }
            /* Where an epoch begins inside a batch, one of its own goes over its end. */
            const int64_t even = count_even(&options, epoch, order);
            const bool inside = options.wraps && epoch * options.size % options.batch != 0;
            assert_true(even >= whole - inside);
        }
        ls_buckets_free(buckets);
    }
}

static void windows_hold_what_fits(void **state)
{
    (void)state;
    for (uint64_t number = 0; number < 200; number++) {
        const uint64_t key = ls_random_key(number, LS_RANDOM_TEST, "first fit");
        const int64_t window = 1 + ls_random_below(key, 0, 0, 50);
        const size_t count = 1 + ls_random_below(key, 0, 1, MOST);
        int64_t all = 0;
        for (size_t i = 0; i < count; i++)
            all += lengths[i] = ls_random_below(key, 1, i, (uint32_t)window + 1);
        struct ls_first_fit fit;
        assert_int_equal(ls_first_fit_make(length_of, lengths, count, window, &fit, NULL), 0);
        bool seen[MOST] = {false};
        assert_int_equal(fit.first[0], 0);
        assert_int_equal(fit.first[fit.windows], count);
        assert_true(fit.windows * window >= all);
        uint32_t begins = 0;
        for (int64_t w = 0; w < fit.windows; w++) {
            int64_t used = 0;
            assert_true(w == 0 || fit.order[fit.first[w]] > begins);
            begins = fit.order[fit.first[w]];
            for (uint32_t i = fit.first[w]; i < fit.first[w + 1]; i++) {
                assert_false(seen[fit.order[i]]);
                seen[fit.order[i]] = true;
                assert_true(i == fit.first[w] || fit.order[i] > fit.order[i - 1]);
                used += lengths[fit.order[i]];
            }
            assert_in_range(used, 0, window);
        }
        ls_first_fit_free(&fit);
    }
}

/* Pieces of 6 in windows of 10 open a window each; then one of 4 goes into the oldest of 64. */
static void the_oldest_window_is_closed_first(void **state)
{
    (void)state;
    struct ls_first_fit fit;
    for (size_t i = 0; i < 70; i++)
        lengths[i] = 6;
    lengths[70] = 4;
    assert_int_equal(ls_first_fit_make(length_of, lengths, 71, 10, &fit, NULL), 0);
    assert_int_equal(fit.windows, 70);
    assert_int_equal(fit.first[70 - LS_OPEN_WINDOWS + 1] - fit.first[70 - LS_OPEN_WINDOWS], 2);
    ls_first_fit_free(&fit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(epochs_have_each_sample_once_and_even_batches),
        cmocka_unit_test(windows_hold_what_fits),
        cmocka_unit_test(the_oldest_window_is_closed_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
