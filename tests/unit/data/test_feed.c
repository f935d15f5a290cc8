/* Prefetchers: the same micro-batches whatever the threads do, each fetched once, no way to lock
 * up. SPDX-License-Identifier: BSD-2-Clause */
#include "data/prefetcher.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/random.h"
#include "data/prefetcher_inner.h"
#include "data_trial.h"
#include "support/npy_files.h"

enum { RECORDS = 103 };

/* Synthetic digits, shuffled and cropped: every sample costs some work. */
static struct ls_definition *digits_layer(void)
{
    return trial_layer(
        "name: 'd' type: 'Data' top: 'data' top: 'label' data_param { backend: SYNTHETIC shuffle: "
        "true batch_size: 20 synthetic_param { count: %d height: 12 width: 12 } } transform_param "
        "{ crop_size: 10 pad: 1 mirror: true scale: 0.01 }",
        RECORDS);
}

struct fixture {
    struct ls_definition *layer;
    struct ls_dataset *set;
    struct ls_prefetcher *prefetcher;
    struct ls_batching batching;
};

static const int both[2][2] = {{0, 0}, {0, 1}};

static void open_prefetcher(struct fixture *f, int threads, size_t memory, int64_t end,
                            struct ls_prefetch_memory *room)
{
    struct ls_prefetcher_options options = {.datasets = &f->set,
                                            .dataset_count = 1,
                                            .inputs = both,
                                            .input_count = 2,
                                            .batching = f->batching,
                                            .updates_end = end,
                                            .threads = threads,
                                            .memory = memory,
                                            .room = room};
    struct ls_error *error = calloc(1, sizeof *error);
    if (ls_prefetcher_open(&options, &f->prefetcher, error) != 0)
        fail_msg("%s", trial_text(error));
    free(error);
}

static void open_fixture(struct fixture *f, struct ls_batching batching, int threads, size_t memory,
                         int64_t end)
{
    f->layer = digits_layer();
    f->set = trial_dataset(f->layer, LOCKSTEP__PHASE__TRAIN, 6);
    f->batching = batching;
    open_prefetcher(f, threads, memory, end, NULL);
}

static void close_fixture(struct fixture *f)
{
    ls_prefetcher_close(f->prefetcher);
    ls_dataset_close(f->set);
    ls_definition_free(f->layer);
}

static uint64_t hash_item(const struct ls_prefetch_item *item)
{
    uint64_t hash = ls_hash(item->input[0], (size_t)item->samples * 100 * sizeof(float),
                            (uint64_t)item->ordinal);
    return ls_hash(item->input[1], (size_t)item->samples * sizeof(float), hash);
}

/* What the sequence should be, straight from a reader. */
static int expect(const struct fixture *f, int64_t update, uint64_t *hashes)
{
    struct ls_batch batch[8];
    struct ls_reader *reader;
    int count = 0;
    assert_int_equal(ls_reader_open(f->set, &reader, NULL), 0);
    int batches = ls_batching_update(&f->batching, update, batch);
    for (int b = 0; b < batches; b++) {
        struct ls_micro micro[32];
        int64_t n;
        assert_int_equal(ls_batching_cut(&f->batching, &batch[b], micro, &n, NULL), 0);
        for (int64_t i = 0; i < n; i++) {
            float data[32 * 100], label[32];
            for (int64_t s = 0; s < micro[i].count; s++)
                assert_int_equal(
                    trial_fetch(reader, micro[i].ordinal + s, data + 100 * s, label + s, NULL), 0);
            void *input[2] = {data, label};
            struct ls_prefetch_item item = {
                .ordinal = micro[i].ordinal, .samples = micro[i].count, .input = input};
            hashes[count++] = hash_item(&item);
        }
    }
    ls_reader_close(reader);
    return count;
}

static void pause_randomly(uint64_t a, uint64_t b)
{
    uint32_t wait = ls_random_below(77, a, b, 8);
    struct timespec time = {0, (long)wait * 20000};
    if (wait >= 4)
        nanosleep(&time, NULL);
}

/* ---- Many threads ---- */

struct worker {
    struct fixture *f;
    pthread_t thread;
    int index;
    _Atomic int *next; /* micro-batch to take next, over all updates; NULL: a fixed run */
    const int *begin;  /* of each update's micro-batches in the order of all */
    int updates;
    uint64_t *hashes;
    bool hold; /* keep the micro-batches of an update until it is done */
    pthread_barrier_t *barrier;
    int failed;
};

static void take_one(struct worker *w, int64_t update, int index, int at,
                     const struct ls_prefetch_item **held)
{
    const struct ls_prefetch_item *item;
    if (ls_prefetcher_take(w->f->prefetcher, update, index, &item, NULL) != 0) {
        w->failed++;
        return;
    }
    pause_randomly((uint64_t)w->index, (uint64_t)at);
    w->failed += item->update != update || item->index != index || w->hashes[at] != hash_item(item);
    w->failed += ((uintptr_t)item->input[0] | (uintptr_t)item->input[1]) % 64 != 0;
    if (held != NULL)
        *held = item;
    else
        ls_prefetcher_release(w->f->prefetcher, item);
}

/* Takes micro-batches as it gets free. */
static void *work_freely(void *argument)
{
    struct worker *w = argument;
    for (;;) {
        int at = atomic_fetch_add(w->next, 1);
        if (at >= w->begin[w->updates])
            return NULL;
        int64_t update = 0;
        while (at >= w->begin[update + 1])
            update++;
        take_one(w, update, at - w->begin[update], at, NULL);
    }
}

/* Takes a fixed run of each update's micro-batches and holds them until all workers have theirs. */
static void *work_in_step(void *argument)
{
    struct worker *w = argument;
    const struct ls_prefetch_item *held[64];
    for (int64_t update = 0; update < w->updates; update++) {
        int n = w->begin[update + 1] - w->begin[update], count = 0;
        for (int i = n * w->index / 3; i < n * (w->index + 1) / 3; i++) {
            held[count] = NULL;
            take_one(w, update, i, w->begin[update] + i, &held[count++]);
        }
        pthread_barrier_wait(w->barrier);
        for (int i = 0; i < count; i++)
            if (held[i] != NULL)
                ls_prefetcher_release(w->f->prefetcher, held[i]);
    }
    return NULL;
}

static void run_workers(struct ls_batching batching, int threads, size_t memory, int workers,
                        bool in_step)
{
    enum { UPDATES = 14 };
    struct fixture f;
    open_fixture(&f, batching, threads, memory, UPDATES);
    static uint64_t hashes[UPDATES * 128];
    int begin[UPDATES + 1] = {0};
    int64_t samples = 0;
    for (int64_t u = 0; u < UPDATES; u++) {
        struct ls_batch batch[8];
        begin[u + 1] = begin[u] + expect(&f, u, hashes + begin[u]);
        int batches = ls_batching_update(&batching, u, batch);
        for (int i = 0; i < batches; i++)
            samples += batch[i].count;
    }
    uint64_t before = ls_dataset_reads(f.set);
    assert_int_equal(before, samples);
    _Atomic int next = 0;
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, (unsigned)workers);
    struct worker w[8];
    ls_prefetcher_seek(f.prefetcher, 0);
    for (int i = 0; i < workers; i++) {
        w[i] = (struct worker){.f = &f,
                               .index = i,
                               .next = &next,
                               .begin = begin,
                               .updates = UPDATES,
                               .hashes = hashes,
                               .barrier = &barrier};
        assert_int_equal(
            pthread_create(&w[i].thread, NULL, in_step ? work_in_step : work_freely, &w[i]), 0);
    }
    for (int i = 0; i < workers; i++) {
        pthread_join(w[i].thread, NULL);
        assert_int_equal(w[i].failed, 0);
    }
    assert_int_equal(ls_dataset_reads(f.set) - before, samples); /* each sample once */
    pthread_barrier_destroy(&barrier);
    close_fixture(&f);
}

static void any_threads_give_the_same_micro_batches(void **state)
{
    (void)state;
    const enum ls_last_batch last[3] = {LS_LAST_WRAP, LS_LAST_PARTIAL, LS_LAST_DROP};
    for (int k = 0; k < 3; k++)
        for (int threads = 1; threads <= 4; threads += 3)
            for (int workers = 1; workers <= 5; workers += 2) {
                struct ls_batching batching = {RECORDS, 20, 3, 1 + k, last[k], 0, NULL, NULL};
                run_workers(batching, threads, (size_t)threads * 2000, workers, false);
            }
}

/* With room for two items, three workers hold seven each: the prefetcher must grow. */
static void workers_may_hold_a_whole_update(void **state)
{
    (void)state;
    struct ls_batching batching = {RECORDS, 20, 1, 1, LS_LAST_WRAP, 0, NULL, NULL};
    run_workers(batching, 1, 1, 3, true);
    run_workers(batching, 3, 1, 3, true);
}

/* ---- The budget ---- */

/* Where workers take one item at a time, no more is decoded ahead than the budget has room for, but
 * for one item more than threads; and it takes what ls_prefetcher_bytes says. */
static void no_more_is_decoded_ahead_than_the_budget_allows(void **state)
{
    enum { SLOT = (3 * 100 + 4 + 3 + 13) * 4 }; /* three samples and labels, in lines of 16 */
    static const struct {
        int threads, slots, room;
    } table[] = {{1, 2, 0}, {1, 2, 2}, {1, 9, 9}, {3, 4, 2}, {3, 4, 4}, {3, 17, 17}};
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct ls_batching batching = {RECORDS, 20, 3, 1, LS_LAST_WRAP, 0, NULL, NULL};
        struct fixture f;
        size_t slot = 0, samples = 0, threads = 0, held = 0;
        size_t memory = table[i].room == 0 ? 1 : (size_t)table[i].room * (SLOT + 1);
        open_fixture(&f, batching, table[i].threads, memory, INT64_MAX);
        assert_int_equal(ls_item_largest(&f.prefetcher->layout, &slot, NULL), 0);
        assert_int_equal(slot, SLOT);
        struct ls_prefetcher_options options = {.datasets = &f.set,
                                                .dataset_count = 1,
                                                .inputs = both,
                                                .input_count = 2,
                                                .batching = batching,
                                                .threads = table[i].threads,
                                                .memory = memory};
        assert_int_equal(ls_prefetcher_bytes(&options, &samples, &threads, NULL), 0);
        ls_prefetcher_seek(f.prefetcher, 0);
        for (int64_t u = 0; u < 6; u++)
            for (int k = 0; k < 7; k++) {
                const struct ls_prefetch_item *item;
                assert_int_equal(ls_prefetcher_take(f.prefetcher, u, k, &item, NULL), 0);
                pause_randomly((uint64_t)u, (uint64_t)k);
                ls_prefetcher_release(f.prefetcher, item);
            }
        const struct ls_ring *ring = &f.prefetcher->ring;
        assert_int_equal(ring->count, table[i].slots);
        for (int k = 0; k < ring->count; k++)
            held += ring->buffers[k]->capacity;
        assert_int_equal(held, (size_t)table[i].slots * slot);
        assert_int_equal(samples, held);
        assert_in_range(threads, table[i].threads, table[i].threads * (1 << 20));
        close_fixture(&f);
    }
}

/* ---- Seeking ---- */

static void seeking_gives_the_micro_batches_of_that_update(void **state)
{
    (void)state;
    struct fixture f;
    struct ls_batching batching = {RECORDS, 20, 4, 2, LS_LAST_PARTIAL, 0, NULL, NULL};
    open_fixture(&f, batching, 3, 0, INT64_MAX);
    const int64_t places[] = {0, 5, 5, 2, 1000, 999, 0};
    for (size_t k = 0; k < sizeof places / sizeof places[0]; k++) {
        ls_prefetcher_seek(f.prefetcher, places[k]);
        /* From nothing to two updates and a half, out of order within an update. */
        for (int64_t u = places[k]; u < places[k] + (int64_t)k % 3; u++) {
            uint64_t hashes[64];
            int count = expect(&f, u, hashes);
            for (int i = 0; i < count; i += 2)
                for (int j = i + 1 < count ? i + 1 : i; j >= i; j--) {
                    const struct ls_prefetch_item *item;
                    assert_int_equal(ls_prefetcher_take(f.prefetcher, u, j, &item, NULL), 0);
                    assert_true(hash_item(item) == hashes[j]);
                    ls_prefetcher_release(f.prefetcher, item);
                }
        }
    }
    close_fixture(&f);
}

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
            struct fixture f = {.layer = digits_layer(),
                                .batching = {RECORDS, 20, 4, 2, LS_LAST_PARTIAL, 0, NULL, NULL}};
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
                        .batching = {RECORDS, 20, 5, 1, LS_LAST_WRAP, 0, NULL, NULL}};
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
                            .batching = {RECORDS, 20, 4, 2, LS_LAST_PARTIAL, 0, NULL, NULL}};
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
        {RECORDS, 20, 3, 1, LS_LAST_WRAP, 0, NULL, NULL},
        {RECORDS, 7, 7, 2, LS_LAST_PARTIAL, 0, NULL, NULL},
        {RECORDS, 40, 10, 1, LS_LAST_DROP, 0, NULL, NULL},
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
        struct ls_batching batching = {RECORDS, 20, 2, 1, LS_LAST_WRAP, 0, NULL, NULL};
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

/* ---- Failures ---- */

static void wrong_calls_are_refused(void **state)
{
    (void)state;
    struct fixture f;
    struct ls_batching batching = {RECORDS, 20, 10, 1, LS_LAST_WRAP, 0, NULL, NULL};
    open_fixture(&f, batching, 1, 0, 3);
    const struct ls_prefetch_item *item, *again;
    assert_int_equal(ls_prefetcher_take(f.prefetcher, 0, 0, &item, NULL),
                     LOCKSTEP_INTERNAL); /* no seek */
    ls_prefetcher_seek(f.prefetcher, 0);
    assert_int_equal(ls_prefetcher_take(f.prefetcher, 0, 2, &item, NULL), LOCKSTEP_INTERNAL);
    assert_int_equal(ls_prefetcher_take(f.prefetcher, 3, 0, &item, NULL), LOCKSTEP_INTERNAL);
    assert_int_equal(ls_prefetcher_take(f.prefetcher, 0, 0, &item, NULL), 0);
    assert_int_equal(ls_prefetcher_take(f.prefetcher, 0, 0, &again, NULL), LOCKSTEP_INTERNAL);
    ls_prefetcher_release(f.prefetcher, item);
    assert_int_equal(ls_prefetcher_take(f.prefetcher, 0, 0, &again, NULL), LOCKSTEP_INTERNAL);
    assert_null(again);
    close_fixture(&f);
}

/* Earlier micro-batches were not taken: slots are added until the requested one is there. */
static void late_takers_get_more_slots(void **state)
{
    enum { UPDATES = 6 };
    (void)state;
    struct fixture f;
    struct ls_batching batching = {RECORDS, 20, 10, 1, LS_LAST_WRAP, 0, NULL, NULL};
    open_fixture(&f, batching, 2, 1, INT64_MAX);
    ls_prefetcher_seek(f.prefetcher, 0);
    for (int index = 1; index >= 0; index--)
        for (int64_t update = 0; update < UPDATES; update++) {
            const struct ls_prefetch_item *item;
            assert_int_equal(ls_prefetcher_take(f.prefetcher, update, index, &item, NULL), 0);
            assert_true(item->update == update && item->index == index);
            ls_prefetcher_release(f.prefetcher, item);
        }
    close_fixture(&f);
}

/* A damaged record reaches the taker of its micro-batch, and no other. */
static void a_bad_record_reaches_its_micro_batch_only(void **state)
{
    (void)state;
    const char *list = ls_test_path("list");
    char text[4096] = "", file[600];
    for (int i = 0; i < 12; i++) {
        snprintf(file, sizeof file, "%s/%d.txt", ls_test_directory(), i);
        ls_test_write(file, "\x89PNG\r\n\x1a\n", 8);
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s %d\n", file, i);
    }
    ls_test_write_text(list, text);
    struct ls_definition *layer = trial_layer(
        "name: 'd' type: 'Data' top: 'data' data_param { source: '%s' backend: IMAGES }", list);
    struct ls_dataset *set;
    assert_int_equal(trial_open(layer, LOCKSTEP__PHASE__TRAIN, 1, &set, NULL), LOCKSTEP_DATA);
    ls_definition_free(layer);
    /* A number that fp32 does not have. */
    const int32_t numbers[10] = {0, 1, (1 << 24) + 1, 3};
    const float pixels[10] = {0};
    snprintf(file, sizeof file, "%s", ls_test_path("pixels.npy"));
    write_npy(file, "<f4", "(10,)", pixels, sizeof pixels);
    write_npy(ls_test_path("numbers.npy"), "<i4", "(10, 1)", numbers, sizeof numbers);
    layer = trial_layer("name: 'd' top: 'x' top: 'y' data_param { source: '%s' source: '%s' "
                        "backend: NPY }",
                        file, ls_test_path("numbers.npy"));
    set = trial_dataset(layer, LOCKSTEP__PHASE__TRAIN, 1);
    struct ls_prefetcher_options options = {.datasets = &set,
                                            .dataset_count = 1,
                                            .inputs = both,
                                            .input_count = 2,
                                            .batching = {10, 4, 2, 1, LS_LAST_WRAP, 0, NULL, NULL},
                                            .updates_end = INT64_MAX,
                                            .threads = 2};
    struct ls_prefetcher *prefetcher;
    assert_int_equal(ls_prefetcher_open(&options, &prefetcher, NULL), 0);
    ls_prefetcher_seek(prefetcher, 0);
    struct ls_error *error = calloc(1, sizeof *error);
    const struct ls_prefetch_item *item;
    for (int k = 0; k < 2; k++) { /* asking again gives the same answer */
        ls_error_clear(error);
        assert_int_equal(ls_prefetcher_take(prefetcher, 0, 1, &item, error), LOCKSTEP_DATA);
        assert_says(error, "pixels.npy: record 2: its numbers has the number 16777217");
        assert_null(item);
    }
    free(error);
    ls_prefetcher_close(prefetcher);
    ls_dataset_close(set);
    ls_definition_free(layer);
}

/* Out of memory at any allocation of opening is an error, and nothing is lost. */
static void out_of_memory_is_an_error_and_loses_nothing(void **state)
{
    (void)state;
    struct fixture f = {.layer = digits_layer()};
    f.set = trial_dataset(f.layer, LOCKSTEP__PHASE__TRAIN, 6);
    struct ls_prefetcher_options options = {
        .datasets = &f.set,
        .dataset_count = 1,
        .inputs = both,
        .input_count = 2,
        .batching = {RECORDS, 20, 5, 1, LS_LAST_WRAP, 0, NULL, NULL},
        .updates_end = INT64_MAX,
        .threads = 2};
    int failures = 0;
    for (long n = 0;; n++) {
        ls_fail_allocation_after(n);
        int status = ls_prefetcher_open(&options, &f.prefetcher, NULL);
        ls_fail_allocation_after(-1);
        if (status == 0)
            break;
        assert_int_equal(status, LOCKSTEP_RESOURCE);
        assert_null(f.prefetcher);
        failures++;
    }
    assert_true(failures > 10);
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_threads_give_the_same_micro_batches),
        cmocka_unit_test(workers_may_hold_a_whole_update),
        cmocka_unit_test(no_more_is_decoded_ahead_than_the_budget_allows),
        cmocka_unit_test(seeking_gives_the_micro_batches_of_that_update),
        cmocka_unit_test(each_share_reads_its_own_micro_batches_only),
        cmocka_unit_test(micro_batches_of_other_shares_are_refused),
        cmocka_unit_test(micro_batches_can_be_taken_in_any_order),
        cmocka_unit_test(prefetchers_share_one_room),
        cmocka_unit_test(closing_at_any_time_ends_cleanly),
        cmocka_unit_test(wrong_calls_are_refused),
        cmocka_unit_test(late_takers_get_more_slots),
        cmocka_unit_test(a_bad_record_reaches_its_micro_batch_only),
        cmocka_unit_test(out_of_memory_is_an_error_and_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
