/* Prefetchers of shares: each reads its own micro-batches; several of them share one room.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "prefetcher_trial.h"

/* ---- Shares ---- */

static void open_share(struct fixture *f, struct ls_share share, int threads, size_t memory)
{
    struct ls_prefetcher_options options = {.datasets = &f->set,
                                            .dataset_count = 1,
                                            .inputs = both,
                                            .input_count = 2,
                                            .batching = f->batching,
                                            .share = share,
                                            .updates_end = INT64_MAX,
                                            .threads = threads,
                                            .memory = memory};
    assert_int_equal(ls_prefetcher_open(&options, &f->prefetcher, NULL), 0);
}

/* Takes what of an update is the share's; how many that are. */
static int take_share(struct fixture *f, const struct ls_share *share, int64_t update)
{
    struct ls_batch batch[8];
    uint64_t hashes[128];
    int first = 0, taken = 0;
    int batches = ls_batching_update(&f->batching, update, batch);
    expect(f, update, hashes);
    for (int b = 0; b < batches; b++) {
        struct ls_micro micro[32];
        int64_t n = 0, begin = 0, end = 0;
        assert_int_equal(ls_batching_cut(&f->batching, &batch[b], micro, &n, NULL), 0);
        ls_share_run(share, n, &begin, &end);
        for (int i = first + (int)begin; i < first + (int)end; i++, taken++) {
            const struct ls_prefetch_item *item;
            assert_int_equal(ls_prefetcher_take(f->prefetcher, update, i, &item, NULL), 0);
            assert_true(item->update == update && item->index == i && hash_item(item) == hashes[i]);
            ls_prefetcher_release(f->prefetcher, item);
        }
        first += (int)n;
    }
    return taken;
}

/* Each share gets its own and nothing else is read. Batches of five and a last one of one, so that
 * some shares have nothing of some updates. */
static void each_share_reads_its_own_micro_batches_only(void **state)
{
    enum { UPDATES = 12, ALL = 7 };
    static const struct ls_share shares[] = {
        {0, 1, ALL, false}, {1, 4, ALL, false}, {5, 1, ALL, false}, {6, 1, ALL, false}};
    (void)state;
    int total = 0, nothing = 0;
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        for (int threads = 1; threads <= 3; threads += 2) {
            struct fixture f = {
                .layer = digits_layer(),
                .batching = {RECORDS, 20, 4, 2, LS_LAST_PARTIAL, 0, NULL, NULL, NULL}};
            f.set = trial_dataset(f.layer, LOCKSTEP__PHASE__TRAIN, 6);
            open_share(&f, shares[i], threads, 1);
            ls_prefetcher_seek(f.prefetcher, 0);
            for (int64_t u = 0; u < UPDATES; u++) {
                int taken = take_share(&f, &shares[i], u);
                total += threads == 1 ? taken : 0;
                nothing += taken == 0;
            }
            close_fixture(&f);
        }
    /* An epoch has three updates: ten micro-batches twice, 5 + 1. */
    assert_int_equal(total, UPDATES / 3 * (10 + 10 + 6));
    assert_true(nothing > 0);
}

/* What is another's is refused, and so is anything where the share has nothing for ever. */
static void micro_batches_of_other_shares_are_refused(void **state)
{
    (void)state;
    const struct ls_share last = {3, 1, 4, false}, none = {0, 1, 8, false};
    struct fixture f = {.layer = digits_layer(),
                        .batching = {RECORDS, 20, 5, 1, LS_LAST_WRAP, 0, NULL, NULL, NULL}};
    const struct ls_prefetch_item *item;
    f.set = trial_dataset(f.layer, LOCKSTEP__PHASE__TRAIN, 6);
    open_share(&f, last, 2, 0);
    ls_prefetcher_seek(f.prefetcher, 0);
    assert_int_equal(ls_prefetcher_take(f.prefetcher, 0, 3, &item, NULL), 0);
    ls_prefetcher_release(f.prefetcher, item);
    assert_int_equal(ls_prefetcher_take(f.prefetcher, 1, 2, &item, NULL), LOCKSTEP_INTERNAL);
    assert_int_equal(ls_prefetcher_take(f.prefetcher, 1, 3, &item, NULL), 0);
    ls_prefetcher_release(f.prefetcher, item);
    ls_prefetcher_close(f.prefetcher);
    open_share(&f, none, 2, 0);
    ls_prefetcher_seek(f.prefetcher, 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(ls_prefetcher_take(f.prefetcher, 5000, i, &item, NULL), LOCKSTEP_INTERNAL);
    close_fixture(&f);
}

/* Any micro-batches, wanted or not before they are taken, in any order and again; what does not
 * exist is no harm when it is wanted, and refused when it is asked for. */
static void micro_batches_can_be_taken_in_any_order(void **state)
{
    enum { TAKEN = 300 };
    (void)state;
    for (int threads = 1; threads <= 3; threads++) {
        struct fixture f = {.layer = digits_layer(),
                            .batching = {RECORDS, 20, 4, 2, LS_LAST_PARTIAL, 0, NULL, NULL, NULL}};
        const struct ls_prefetch_item *item;
        f.set = trial_dataset(f.layer, LOCKSTEP__PHASE__TRAIN, 6);
        open_share(&f, (struct ls_share){.any = true}, threads, 1);
        ls_prefetcher_request(f.prefetcher, 0, 0); /* nothing waits for it yet */
        ls_prefetcher_seek(f.prefetcher, 0);
        for (int i = 0; i < TAKEN; i++) {
            uint64_t hashes[128], key = (uint64_t)i;
            int64_t update = i < 40 ? 0 : ls_random_below(79, key, 0, 7);
            int count = expect(&f, update, hashes);
            int index = (int)ls_random_below(79, key, 1, (uint32_t)count);
            if (ls_random_below(79, key, 2, 3) > 0)
                ls_prefetcher_request(f.prefetcher, update, index);
            if (i % 10 == 0)
                ls_prefetcher_request(f.prefetcher, update, count);
            pause_randomly(79, key);
            assert_int_equal(ls_prefetcher_take(f.prefetcher, update, index, &item, NULL), 0);
            assert_true(item->update == update && item->index == index &&
                        hash_item(item) == hashes[index]);
            ls_prefetcher_release(f.prefetcher, item);
            assert_int_equal(ls_prefetcher_take(f.prefetcher, update, count, &item, NULL),
                             LOCKSTEP_INTERNAL);
            if (i % 50 == 0)
                ls_prefetcher_seek(f.prefetcher, 1);
        }
        close_fixture(&f);
    }
}

/* ---- A room for several ---- */

/* Seeks a prefetcher and takes the first micro-batches of an update, as many as chance has it. */
static void read_some(struct fixture *f, uint64_t turn)
{
    uint64_t hashes[64];
    int64_t update = ls_random_below(78, turn, 0, 9);
    int count = expect(f, update, hashes);
    int wanted = (int)ls_random_below(78, turn, 1, (uint32_t)count + 1);
    ls_prefetcher_seek(f->prefetcher, update);
    for (int i = 0; i < wanted; i++) {
        const struct ls_prefetch_item *item;
        assert_int_equal(ls_prefetcher_take(f->prefetcher, update, i, &item, NULL), 0);
        pause_randomly(turn, (uint64_t)i);
        assert_true(hash_item(item) == hashes[i]);
        ls_prefetcher_release(f->prefetcher, item);
    }
    pause_randomly(turn, 100);
}

/* Prefetchers of different sizes take the room from each other at any time, in the middle of what
 * they decode; they come and go, and the room grows under its owner. */
static void prefetchers_share_one_room(void **state)
{
    enum { PREFETCHERS = 3, TURNS = 120 };
    (void)state;
    const struct ls_batching batching[PREFETCHERS] = {
        {RECORDS, 20, 3, 1, LS_LAST_WRAP, 0, NULL, NULL, NULL},
        {RECORDS, 7, 7, 2, LS_LAST_PARTIAL, 0, NULL, NULL, NULL},
        {RECORDS, 40, 10, 1, LS_LAST_DROP, 0, NULL, NULL, NULL},
    };
    struct ls_prefetch_memory room = {0};
    struct fixture f[PREFETCHERS] = {{0}};
    for (uint64_t turn = 0; turn < TURNS; turn++) {
        int i = (int)ls_random_below(78, turn, 2, PREFETCHERS);
        bool closed = f[i].prefetcher == NULL;
        if (closed && f[i].layer == NULL) {
            f[i] = (struct fixture){.layer = digits_layer(), .batching = batching[i]};
            f[i].set = trial_dataset(f[i].layer, LOCKSTEP__PHASE__TRAIN, 6);
        }
        if (closed) /* later ones are larger */
            open_prefetcher(&f[i], 1 + i, (size_t)(2 + turn / 10) * 4500, INT64_MAX, &room);
        read_some(&f[i], turn);
        assert_ptr_equal(room.user, f[i].prefetcher);
        if (ls_random_below(78, turn, 3, 4) > 0)
            continue;
        ls_prefetcher_close(f[i].prefetcher);
        f[i].prefetcher = NULL;
        assert_null(room.user);
    }
    for (int i = 0; i < PREFETCHERS; i++)
        close_fixture(&f[i]);
    assert_true(room.bytes > 0);
    ls_prefetch_memory_free(&room);
}

static void closing_at_any_time_ends_cleanly(void **state)
{
    (void)state;
    for (int k = 0; k < 30; k++) {
        struct fixture f;
        struct ls_batching batching = {RECORDS, 20, 2, 1, LS_LAST_WRAP, 0, NULL, NULL, NULL};
        open_fixture(&f, batching, 1 + k % 4, 0, INT64_MAX);
        if (k % 3 > 0)
            ls_prefetcher_seek(f.prefetcher, k);
        if (k % 3 > 1) {
            const struct ls_prefetch_item *item; /* held while closing */
            assert_int_equal(ls_prefetcher_take(f.prefetcher, k, 0, &item, NULL), 0);
        }
        pause_randomly(1000, (uint64_t)k);
        close_fixture(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_share_reads_its_own_micro_batches_only),
        cmocka_unit_test(micro_batches_of_other_shares_are_refused),
        cmocka_unit_test(micro_batches_can_be_taken_in_any_order),
        cmocka_unit_test(prefetchers_share_one_room),
        cmocka_unit_test(closing_at_any_time_ends_cleanly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
