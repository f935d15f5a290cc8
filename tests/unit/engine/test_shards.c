/* Flat arrays and the shards of ranks: every element belongs to exactly one rank, shards begin
 * at tiles, and have about the same size.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/shards.h"

#include "support/support.h"
#include "engine/sums.h"

enum { PARAMETERS = 9 };

/* A net: weights and biases, a weight that is exchanged as factors, a parameter that is not
 * trained. */
static const size_t elements[PARAMETERS] = {2400, 32, 25600, 32, 0, 2359296, 512, 5130, 10};

/* Every element of every parameter belongs to the one rank whose own range it is in. */
static void check_ranks(int ranks)
{
    struct ls_shards *shards = NULL;
    struct ls_error error = {0};
    assert_int_equal(ls_shards_create(PARAMETERS, elements, NULL, ranks, &shards, &error), 0);
    size_t largest = 0;
    for (int p = 0; p < PARAMETERS; p++) {
        size_t at = 0;
        assert_int_equal(shards->bucket[p] < 0, elements[p] == 0);
        for (int r = 0; r < ranks && elements[p] > 0; r++) {
            size_t begin, end;
            ls_shards_own(shards, p, elements[p], r, &begin, &end);
            if (begin == end)
                continue;
            assert_int_equal(begin, at);
            assert_int_equal(begin % LS_SUMS_TILE, 0);
            assert_int_equal(ls_shards_owner(shards, p, begin), r);
            assert_int_equal(ls_shards_owner(shards, p, end - 1), r);
            at = end;
        }
        assert_int_equal(at, elements[p]);
    }
    for (int r = 0; r < ranks; r++) {
        size_t own = 0;
        for (size_t b = 0; b < shards->bucket_count; b++)
            own += shards->buckets[b].cut[r + 1] - shards->buckets[b].cut[r];
        largest = own > largest ? own : largest;
    }
    assert_true(largest <= shards->elements / (size_t)ranks + 2 * LS_SUMS_TILE);
    ls_shards_free(shards);
}

static void every_element_has_one_owner(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 9; ranks++)
        check_ranks(ranks);
    check_ranks(1000); /* more than there are tiles */
}

/* The last parameter lies first, and buckets follow each other without gaps. */
static void the_last_parameter_lies_first_and_buckets_have_no_gaps(void **state)
{
    (void)state;
    struct ls_shards *shards = NULL;
    struct ls_error error = {0};
    assert_int_equal(ls_shards_create(PARAMETERS, elements, NULL, 3, &shards, &error), 0);
    assert_int_equal(shards->count, PARAMETERS - 1);
    assert_int_equal(shards->order[0], PARAMETERS - 1);
    assert_int_equal(shards->buckets[0].begin, 0);
    for (size_t b = 1; b < shards->bucket_count; b++) {
        assert_int_equal(shards->buckets[b].begin, shards->buckets[b - 1].end);
        assert_int_equal(shards->buckets[b].first, shards->buckets[b - 1].last + 1);
    }
    assert_int_equal(shards->buckets[shards->bucket_count - 1].end, shards->elements);
    for (size_t i = 0; i < shards->count; i++)
        assert_int_equal(shards->place[shards->order[i]] % 16, 0);
    ls_shards_free(shards);
}

/* One rank owns all of a parameter that is whole; the others are cut as ever, and what belongs to
 * one rank is as balanced as such parameters let it be. */
static void whole_parameters_have_one_owner(void **state)
{
    (void)state;
    bool whole[PARAMETERS] = {[0] = true, [2] = true, [4] = true, [7] = true};
    struct ls_error error = {0};
    for (int large = 0; large < 2; large++, whole[5] = true) /* most of all elements */
        for (int ranks = 1; ranks <= 9; ranks++) {
            struct ls_shards *shards = NULL;
            assert_int_equal(ls_shards_create(PARAMETERS, elements, whole, ranks, &shards, &error),
                             0);
            for (int p = 0; p < PARAMETERS; p++) {
                size_t at = 0;
                int owners = 0;
                for (int r = 0; r < ranks && elements[p] > 0; r++) {
                    size_t begin, end;
                    ls_shards_own(shards, p, elements[p], r, &begin, &end);
                    if (begin == end)
                        continue;
                    assert_int_equal(begin, at);
                    assert_int_equal(ls_shards_owner(shards, p, begin), r);
                    owners++;
                    at = end;
                }
                assert_int_equal(at, elements[p]);
                assert_true(!whole[p] || owners == (elements[p] > 0));
                assert_true(whole[5] || p != 5 || owners == ranks);
            }
            ls_shards_free(shards);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_element_has_one_owner),
        cmocka_unit_test(the_last_parameter_lies_first_and_buckets_have_no_gaps),
        cmocka_unit_test(whole_parameters_have_one_owner)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
