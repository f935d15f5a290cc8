/* Digests of records: an epoch has one digest, in any order and any cut; a record that has
 * changed is found and named.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/digest.h"

#include "support/support.h"

static uint64_t hash_of(int64_t record)
{
    return ls_digest_hash(record, (const uint64_t[]){(uint64_t)record * 7 + 1, 3}, 2);
}

/* The digests of ordinals [begin, end) in epochs of `size`, each in an order of its own. */
static struct ls_digests read_run(int64_t begin, int64_t end, int64_t size, int64_t changed)
{
    struct ls_digests digests = {.skipped = 0};
    for (int64_t i = begin; i < end; i++) {
        int64_t epoch = i / size, record = (i + epoch * 5) % size;
        uint64_t hash = hash_of(record) + (record == changed ? 12345678 : 0);
        ls_digests_add(&digests, begin, end, size, i, record, hash);
    }
    return digests;
}

/* Reads ordinals [0, end) in runs of some length; returns -1, or the ordinal at which a
 * difference was found. */
static int64_t read_all(int64_t end, int64_t run, int64_t size, int64_t changed_from,
                        int64_t changed, struct ls_epochs *epochs, struct ls_digest *found,
                        bool *several)
{
    for (int64_t i = 0; i < end; i += run) {
        int64_t stop = i + run < end ? i + run : end;
        struct ls_digests digests = read_run(i, stop, size, i >= changed_from ? changed : -1);
        if (!ls_epochs_go_on(epochs, &digests, i, stop, size, found, several))
            return i;
    }
    return -1;
}

static void digests_do_not_depend_on_cuts(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 2, 7, 30, 31};
    for (int s = 0; s < 5; s++)
        for (int64_t run = 1; run < 100; run += 3) {
            struct ls_epochs epochs = {.known = false}, other = {.known = false};
            struct ls_digest found;
            bool several;
            assert_int_equal(read_all(95, run, sizes[s], INT64_MAX, -1, &epochs, &found, &several),
                             -1);
            assert_int_equal(read_all(95, 1, sizes[s], INT64_MAX, -1, &other, &found, &several),
                             -1);
            assert_true(ls_digest_equal(&epochs.running, &other.running));
            if (epochs.known) /* of several epochs within one run nothing is known */
                assert_true(ls_digest_equal(&epochs.whole, &other.whole));
        }
}

static void a_changed_record_is_named(void **state)
{
    (void)state;
    enum { SIZE = 30 };
    for (int64_t record = 0; record < SIZE; record++)
        for (int64_t run = 1; run < 40; run += 2) {
            struct ls_epochs epochs = {.known = false};
            struct ls_digest found = {0, 0};
            bool several = false;
            int64_t where = read_all(4 * SIZE, run, SIZE, SIZE, record, &epochs, &found, &several);
            assert_true(where >= SIZE && where < 3 * SIZE);
            assert_false(several);
            assert_int_equal(ls_digest_culprit(&epochs.whole, &found, SIZE), record);
        }
}

/* Any change of one hash names its record, also one with many zeros at the end; several changes
 * name none. */
static void any_change_of_one_hash_names_its_record(void **state)
{
    (void)state;
    struct ls_digest before = {1, 2};
    for (int shift = 0; shift < 32; shift++)
        for (uint64_t i = 0; i < 50; i++) {
            uint64_t record = i * 85899345, d = (i * 2 + 1) << shift;
            struct ls_digest after = {before.sum + d, before.weighted + d * (record + 1)};
            assert_int_equal(ls_digest_culprit(&before, &after, UINT32_MAX), record);
        }
    struct ls_digest two = {before.sum + 5 + 9, before.weighted + 5 * 3 + 9 * 7};
    assert_int_equal(ls_digest_culprit(&before, &two, 100), -1);
    assert_int_equal(ls_digest_culprit(&before, &before, 100), -1);
}

/* A resume without digests checks nothing in the epoch that it continues, and all records of the
 * next. */
static void a_part_of_an_epoch_has_no_digest(void **state)
{
    (void)state;
    struct ls_epochs epochs = {.partial = true};
    struct ls_digest found;
    bool several;
    struct ls_digests part = read_run(12, 30, 30, -1), whole = read_run(30, 60, 30, -1);
    assert_true(ls_epochs_go_on(&epochs, &part, 12, 30, 30, &found, &several));
    assert_false(epochs.known);
    assert_true(ls_epochs_go_on(&epochs, &whole, 30, 60, 30, &found, &several));
    assert_true(epochs.known);
    whole = read_run(60, 90, 30, 4);
    assert_false(ls_epochs_go_on(&epochs, &whole, 60, 90, 30, &found, &several));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digests_do_not_depend_on_cuts),
        cmocka_unit_test(a_changed_record_is_named),
        cmocka_unit_test(any_change_of_one_hash_names_its_record),
        cmocka_unit_test(a_part_of_an_epoch_has_no_digest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
