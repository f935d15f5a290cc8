/* Sequences: both strategies name what they should, and nothing else, without a thread.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/sequence.h"

#include <stdlib.h>

#include "base/memory.h"
#include "support/support.h"

static struct ls_sequence *must_open(const struct ls_batching *batching, struct ls_share share,
                                     int64_t end)
{
    struct ls_sequence *sequence;
    const struct ls_sequence_options options = {
        .batching = batching, .share = share, .updates_end = end};
    assert_int_equal(ls_sequence_open(&options, &sequence, NULL), 0);
    return sequence;
}

static void nothing_is_named_before_a_seek(void **state)
{
    (void)state;
    const struct ls_batching batching = {20, 4, 2, 1, LS_LAST_WRAP, 0, NULL, NULL, NULL};
    for (int any = 0; any < 2; any++) {
        struct ls_sequence_item item;
        struct ls_sequence *sequence =
            must_open(&batching, (struct ls_share){0, 1, 1, any == 1}, INT64_MAX);
        assert_false(ls_sequence_request(sequence, 0, 0));
        assert_false(ls_sequence_next(sequence, &item));
        assert_int_equal(ls_sequence_expect(sequence, 0, 0, NULL), LOCKSTEP_INTERNAL);
        ls_sequence_seek(sequence, 0);
        assert_int_equal(ls_sequence_expect(sequence, 0, 0, NULL), 0);
        assert_true(ls_sequence_next(sequence, &item));
        ls_sequence_stop(sequence);
        assert_false(ls_sequence_next(sequence, &item));
        ls_sequence_close(sequence);
    }
}

/* All samples of each update, one micro-batch behind the other, whatever share they belong to. */
static void shares_in_order_have_each_micro_batch_once(void **state)
{
    (void)state;
    enum { UPDATES = 9, OWNERS = 3 };
    static const int last[] = {LS_LAST_WRAP, LS_LAST_PARTIAL, LS_LAST_DROP};
    for (int l = 0; l < 3; l++) {
        const struct ls_batching batching = {53, 10,   3,    2,   (enum ls_last_batch)last[l],
                                             0,  NULL, NULL, NULL};
        int seen[UPDATES][16] = {{0}}, count[UPDATES];
        for (int owner = 0; owner < OWNERS; owner++) {
            struct ls_sequence *sequence =
                must_open(&batching, (struct ls_share){owner, 1, OWNERS, false}, UPDATES);
            struct ls_sequence_item item;
            int64_t update = 0;
            int index = -1;
            ls_sequence_seek(sequence, 0);
            while (ls_sequence_next(sequence, &item)) {
                assert_true(item.update > update || (item.update == update && item.index > index));
                update = item.update;
                index = item.index;
                seen[update][index]++;
            }
            assert_int_equal(ls_sequence_expect(sequence, UPDATES, 0, NULL), LOCKSTEP_INTERNAL);
            ls_sequence_close(sequence);
        }
        for (int64_t u = 0; u < UPDATES; u++) {
            struct ls_batch batches[2];
            struct ls_micro micro[8];
            int n = ls_batching_update(&batching, u, batches);
            count[u] = 0;
            for (int b = 0; b < n; b++) {
                int64_t parts;
                assert_int_equal(ls_batching_cut(&batching, &batches[b], micro, &parts, NULL), 0);
                count[u] += (int)parts;
            }
            for (int i = 0; i < 16; i++)
                assert_int_equal(seen[u][i], i < count[u]);
        }
    }
}

/* Requests come out in their order; what is expected comes first; what does not exist is skipped.
 */
static void requests_are_named_first_come_first_served(void **state)
{
    (void)state;
    const struct ls_batching batching = {20, 8, 2, 1, LS_LAST_WRAP, 0, NULL, NULL, NULL};
    struct ls_sequence *sequence = must_open(&batching, (struct ls_share){.any = true}, INT64_MAX);
    struct ls_sequence_item item;
    ls_sequence_seek(sequence, 3);
    assert_false(ls_sequence_next(sequence, &item));
    assert_true(ls_sequence_request(sequence, 5, 2));
    assert_false(ls_sequence_request(sequence, 5, 2));
    assert_true(ls_sequence_request(sequence, 4, 4)); /* there are four */
    assert_true(ls_sequence_request(sequence, 3, 0));
    assert_int_equal(ls_sequence_expect(sequence, 7, 1, NULL), 0);
    assert_int_equal(ls_sequence_expect(sequence, 7, 4, NULL), LOCKSTEP_INTERNAL);
    static const int64_t wanted[][3] = {{7, 1, 58}, {5, 2, 44}, {3, 0, 24}};
    for (int i = 0; i < 3; i++) {
        assert_true(ls_sequence_next(sequence, &item));
        assert_true(item.update == wanted[i][0] && item.index == wanted[i][1]);
        assert_true(item.ordinal == wanted[i][2] && item.samples == 2);
    }
    assert_false(ls_sequence_next(sequence, &item));
    assert_true(ls_sequence_request(sequence, 9, 0));
    ls_sequence_seek(sequence, 0); /* forgets it */
    assert_false(ls_sequence_next(sequence, &item));
    for (int i = 0; i < 100; i++) /* the queue grows while it has gone around */
        assert_true(ls_sequence_request(sequence, i, 0) &&
                    (i % 3 != 0 || ls_sequence_next(sequence, &item)));
    for (int64_t u = 34; u < 100; u++)
        assert_true(ls_sequence_next(sequence, &item) && item.update == u);
    ls_sequence_close(sequence);
}

/* The next micro-batch of a share may be far away: in batches of two and three, shares of the last
 * only. */
static int sizes_that_change(void *user, int64_t ordinal, int64_t shape[3], struct ls_error *error)
{
    const int64_t *rare = user;
    (void)error;
    shape[0] = 1;
    shape[1] = 10;
    shape[2] = ordinal / 4 == *rare && ordinal % 4 == 2 ? 11 : 10;
    return 0;
}

static void seeking_far_ahead_finds_rare_updates(void **state)
{
    enum { FAR = 50000 };
    (void)state;
    /* Batches of four samples are one micro-batch; that of update FAR is three, for its sizes. */
    int64_t rare = FAR, n = 0, begin, end;
    struct ls_batching batching = {INT64_MAX,         4,     4,   1, LS_LAST_WRAP, 0,
                                   sizes_that_change, &rare, NULL};
    struct ls_micro micro[4];
    const struct ls_share share = {1, 1, 4, false};
    struct ls_sequence_item item;
    assert_int_equal(ls_batching_cut(&batching, &(struct ls_batch){.ordinal = 4 * FAR, .count = 4},
                                     micro, &n, NULL),
                     0);
    ls_share_run(&share, n, &begin, &end);
    assert_true(n == 3 && begin == 0 && end == 1);
    struct ls_sequence *sequence = must_open(&batching, share, INT64_MAX);
    ls_sequence_seek(sequence, 0);
    assert_false(ls_sequence_next(sequence, &item)); /* it ends without being stopped */
    assert_int_equal(ls_sequence_expect(sequence, FAR, 0, NULL), 0);
    assert_true(ls_sequence_next(sequence, &item));
    assert_true(item.update == FAR && item.index == 0 && item.ordinal == 4 * FAR);
    assert_int_equal(item.samples, 2);
    assert_false(ls_sequence_next(sequence, &item));
    assert_int_equal(ls_sequence_expect(sequence, FAR, 0, NULL), LOCKSTEP_INTERNAL);
    ls_sequence_close(sequence);
}

/* A size that cannot be read ends the sequence, for takers of its batch and of later ones, until a
 * seek. */
static int sizes_that_fail(void *user, int64_t ordinal, int64_t shape[3], struct ls_error *error)
{
    const int64_t *bad = user;
    shape[0] = shape[1] = shape[2] = 1;
    return ordinal == *bad ? ls_fail(error, LOCKSTEP_DATA, "file", NULL, "is gone") : 0;
}

static void sizes_that_cannot_be_read_end_it(void **state)
{
    (void)state;
    int64_t bad = 9;
    struct ls_batching batching = {40, 4, 2, 1, LS_LAST_WRAP, 0, sizes_that_fail, &bad, NULL};
    struct ls_error *error = calloc(1, sizeof *error);
    for (int any = 0; any < 2; any++) {
        struct ls_sequence_item item;
        struct ls_sequence *sequence =
            must_open(&batching, (struct ls_share){.any = any == 1}, INT64_MAX);
        ls_sequence_seek(sequence, 0);
        int named = 0;
        for (int64_t u = 0; u < 3; u++)
            for (int i = 0; i < 2; i++) {
                ls_sequence_request(sequence, u, i);
                named += ls_sequence_next(sequence, &item);
            }
        assert_int_equal(named, 4); /* of updates 0 and 1 */
        ls_error_clear(error);
        assert_int_equal(ls_sequence_expect(sequence, 3, 0, error), LOCKSTEP_DATA);
        assert_int_equal(error->count, 1);
        assert_string_equal(error->problems[0].message, "is gone");
        bad = -1;
        ls_sequence_seek(sequence, 2);
        assert_int_equal(ls_sequence_expect(sequence, 3, 0, NULL), 0);
        assert_true(ls_sequence_next(sequence, &item));
        bad = 9;
        ls_sequence_close(sequence);
    }
    free(error);
}

static void out_of_memory_is_an_error(void **state)
{
    (void)state;
    const struct ls_batching batching = {20, 4, 2, 1, LS_LAST_WRAP, 0, NULL, NULL, NULL};
    const struct ls_sequence_options options = {.batching = &batching, .updates_end = 5};
    int status = LOCKSTEP_RESOURCE, failures = -1;
    for (long n = 0; status != 0; n++, failures++) {
        struct ls_sequence *sequence;
        ls_fail_allocation_after(n);
        status = ls_sequence_open(&options, &sequence, NULL);
        ls_fail_allocation_after(-1);
        assert_true(status == 0 || (status == LOCKSTEP_RESOURCE && sequence == NULL));
        ls_sequence_close(sequence);
    }
    assert_int_equal(failures, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_named_before_a_seek),
        cmocka_unit_test(shares_in_order_have_each_micro_batch_once),
        cmocka_unit_test(requests_are_named_first_come_first_served),
        cmocka_unit_test(seeking_far_ahead_finds_rare_updates),
        cmocka_unit_test(sizes_that_cannot_be_read_end_it),
        cmocka_unit_test(out_of_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
