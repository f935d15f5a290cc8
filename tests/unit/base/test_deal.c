/* Partitions: every item has one owner, runs are in order, and as even as whole numbers allow.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/partition.h"

#include "support/support.h"

enum { OWNERS_MAX = 6 };

/* All that the functions say of `count` things for these weights. */
static void check(const int *before, int owners, int64_t count)
{
    int64_t at = 0;
    for (int i = 0; i < owners; i++) {
        struct ls_share share = {before[i], before[i + 1] - before[i], before[owners], false};
        int64_t begin, end;
        ls_share_run(&share, count, &begin, &end);
        assert_int_equal(begin, at);
        assert_true(end >= begin);
        for (int64_t k = begin; k < end && k < begin + 100; k++)
            assert_int_equal(ls_partition_owner(before, owners, k, count), i);
        /* Less than one from what the weights say, on either side. */
        int64_t exact = count * share.own;
        assert_true((end - begin) * share.all < exact + share.all);
        assert_true((end - begin) * share.all > exact - share.all);
        assert_true(end - begin <= ls_share_most(&share, count));
        at = end;
    }
    assert_int_equal(at, count);
}

static void shares_follow_each_other_and_are_even(void **state)
{
    static const int before[][OWNERS_MAX + 1] = {
        {0, 1}, {0, 1, 2}, {0, 3, 4}, {0, 1, 3, 6}, {0, 2, 4, 6, 8}, {0, 1, 2, 10, 11, 12, 13}};
    static const int owners[] = {1, 2, 2, 3, 4, 6};
    (void)state;
    for (size_t i = 0; i < sizeof owners / sizeof *owners; i++)
        for (int64_t count = 0; count < 70; count++)
            check(before[i], owners[i], count);
    check(before[5], 6, INT64_C(1) << 40);
}

/* The longest run of all counts up to one. */
static void the_longest_share_is_known_beforehand(void **state)
{
    (void)state;
    const struct ls_share share = {3, 2, 7, false};
    int64_t most = 0;
    for (int64_t count = 0; count < 50; count++) {
        int64_t begin, end;
        ls_share_run(&share, count, &begin, &end);
        most = end - begin > most ? end - begin : most;
        assert_in_range(ls_share_most(&share, count), most, most + 1);
    }
    assert_int_equal(ls_share_most(&share, 14), 4);
    assert_int_equal(ls_share_most(&share, 15), 5);
}

static void a_share_of_everything_is_everything(void **state)
{
    (void)state;
    const struct ls_share all = {0};
    int64_t begin, end;
    ls_share_run(&all, 9, &begin, &end);
    assert_true(ls_share_is_all(&all) && begin == 0 && end == 9);
    assert_int_equal(ls_share_most(&all, 9), 9);
    const struct ls_share alone = {0, 4, 4, false};
    assert_true(ls_share_is_all(&alone));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_follow_each_other_and_are_even),
        cmocka_unit_test(the_longest_share_is_known_beforehand),
        cmocka_unit_test(a_share_of_everything_is_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
