/* Prefetchers: the same micro-batches for any threads, each fetched once, within a budget; seeking,
 * and failures. They never lock up. SPDX-License-Identifier: BSD-2-Clause */
#include "prefetcher_trial.h"

#include "ir/convert.h"

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
                struct ls_batching batching = {RECORDS, 20, 3, 1 + k, last[k], 0, NULL, NULL, NULL};
                run_workers(batching, threads, (size_t)threads * 2000, workers, false);
            }
}

/* With room for two items, three workers hold seven each: the prefetcher must grow. */
static void workers_may_hold_a_whole_update(void **state)
{
    (void)state;
    struct ls_batching batching = {RECORDS, 20, 1, 1, LS_LAST_WRAP, 0, NULL, NULL, NULL};
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
        struct ls_batching batching = {RECORDS, 20, 3, 1, LS_LAST_WRAP, 0, NULL, NULL, NULL};
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
    struct ls_batching batching = {RECORDS, 20, 4, 2, LS_LAST_PARTIAL, 0, NULL, NULL, NULL};
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

/* ---- Failures ---- */

static void wrong_calls_are_refused(void **state)
{
    (void)state;
    struct fixture f;
    struct ls_batching batching = {RECORDS, 20, 10, 1, LS_LAST_WRAP, 0, NULL, NULL, NULL};
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
    struct ls_batching batching = {RECORDS, 20, 10, 1, LS_LAST_WRAP, 0, NULL, NULL, NULL};
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
    struct ls_prefetcher_options options = {
        .datasets = &set,
        .dataset_count = 1,
        .inputs = both,
        .input_count = 2,
        .batching = {10, 4, 2, 1, LS_LAST_WRAP, 0, NULL, NULL, NULL},
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
        .batching = {RECORDS, 20, 5, 1, LS_LAST_WRAP, 0, NULL, NULL, NULL},
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

/* Samples as a reader has them, rounded, and in parts where they lie so. */
static void check_rounded(const struct fixture *f, const struct ls_prefetch_item *item)
{
    const size_t runs = f->runs != NULL ? f->runs[0] : 1, part = 100 / runs;
    const size_t samples = (size_t)item->samples;
    struct ls_reader *reader;
    assert_int_equal(ls_reader_open(f->set, &reader, NULL), 0);
    for (size_t s = 0; s < samples; s++) {
        float data[100], label;
        uint16_t rounded[100];
        assert_int_equal(trial_fetch(reader, item->ordinal + (int64_t)s, data, &label, NULL), 0);
        ls_dtype_convert(LS_F32, data, LS_BF16, rounded, 100);
        for (size_t r = 0; r < runs; r++)
            assert_memory_equal((const uint16_t *)item->input[0] + (r * samples + s) * part,
                                rounded + r * part, part * sizeof *rounded);
        assert_memory_equal((const float *)item->input[1] + s, &label, sizeof label);
    }
    ls_reader_close(reader);
}

static void rounded_inputs_are_bf16_in_half_the_bytes(void **state)
{
    (void)state;
    static const size_t runs[] = {10, 1};
    static const bool rounded[] = {true, false};
    const struct ls_batching batching = {
        .samples = RECORDS, .batch = 20, .micro_batch = 6, .iter_size = 1};
    size_t bytes[2], threads[2];
    struct fixture f = {.layer = digits_layer(), .batching = batching, .rounded = rounded};
    f.set = trial_dataset(f.layer, LOCKSTEP__PHASE__TRAIN, 6);
    for (int i = 0; i < 2; i++) {
        const struct ls_prefetch_item *item;
        f.runs = i == 0 ? NULL : runs;
        open_prefetcher(&f, 2, 0, INT64_MAX, NULL);
        ls_prefetcher_seek(f.prefetcher, 1);
        for (int micro = 0; micro < 4; micro++) {
            assert_int_equal(ls_prefetcher_take(f.prefetcher, 1, micro, &item, NULL), 0);
            check_rounded(&f, item);
            ls_prefetcher_release(f.prefetcher, item);
        }
        ls_prefetcher_close(f.prefetcher);
        const struct ls_prefetcher_options options = {.datasets = &f.set,
                                                      .dataset_count = 1,
                                                      .inputs = both,
                                                      .input_count = 2,
                                                      .rounded = i == 0 ? NULL : rounded,
                                                      .batching = batching,
                                                      .threads = 1};
        assert_int_equal(ls_prefetcher_bytes(&options, &bytes[i], &threads[i], NULL), 0);
    }
    /* An item: 5 or 6 samples of 100 numbers, and labels; of each thread the sample before it is
     * rounded. */
    assert_true(bytes[1] < bytes[0] * 0.55);
    assert_int_equal(threads[1] - threads[0], 100 * sizeof(float));
    ls_dataset_close(f.set);
    ls_definition_free(f.layer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_threads_give_the_same_micro_batches),
        cmocka_unit_test(workers_may_hold_a_whole_update),
        cmocka_unit_test(no_more_is_decoded_ahead_than_the_budget_allows),
        cmocka_unit_test(seeking_gives_the_micro_batches_of_that_update),
        cmocka_unit_test(rounded_inputs_are_bf16_in_half_the_bytes),
        cmocka_unit_test(wrong_calls_are_refused),
        cmocka_unit_test(late_takers_get_more_slots),
        cmocka_unit_test(a_bad_record_reaches_its_micro_batch_only),
        cmocka_unit_test(out_of_memory_is_an_error_and_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
