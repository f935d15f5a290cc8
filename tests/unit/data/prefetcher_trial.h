/* A prefetcher of drawn digits, and what its micro-batches must hold.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_PREFETCHER_TRIAL_H
#define LS_TESTS_PREFETCHER_TRIAL_H

#include "data/prefetcher.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/random.h"
#include "data/prefetcher_inner.h"
#include "data/reader.h"
#include "data_trial.h"
#include "support/npy_files.h"

enum { RECORDS = 103 };

/* Synthetic digits, shuffled and cropped: every sample costs some work. */
static inline struct ls_definition *digits_layer(void)
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
    const size_t *runs; /* (optional) of the inputs; whether they are rounded */
    const bool *rounded;
};

static const int both[2][2] = {{0, 0}, {0, 1}};

static inline void open_prefetcher(struct fixture *f, int threads, size_t memory, int64_t end,
                                   struct ls_prefetch_memory *room)
{
    struct ls_prefetcher_options options = {.datasets = &f->set,
                                            .dataset_count = 1,
                                            .inputs = both,
                                            .input_count = 2,
                                            .runs = f->runs,
                                            .rounded = f->rounded,
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

static inline void open_fixture(struct fixture *f, struct ls_batching batching, int threads,
                                size_t memory, int64_t end)
{
    *f = (struct fixture){.layer = digits_layer(), .batching = batching};
    f->set = trial_dataset(f->layer, LOCKSTEP__PHASE__TRAIN, 6);
    open_prefetcher(f, threads, memory, end, NULL);
}

static inline void close_fixture(struct fixture *f)
{
    ls_prefetcher_close(f->prefetcher);
    ls_dataset_close(f->set);
    ls_definition_free(f->layer);
}

static inline uint64_t hash_item(const struct ls_prefetch_item *item)
{
    uint64_t hash = ls_hash(item->input[0], (size_t)item->samples * 100 * sizeof(float),
                            (uint64_t)item->ordinal);
    return ls_hash(item->input[1], (size_t)item->samples * sizeof(float), hash);
}

/* What the sequence should be, straight from a reader. */
static inline int expect(const struct fixture *f, int64_t update, uint64_t *hashes)
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

static inline void pause_randomly(uint64_t a, uint64_t b)
{
    uint32_t wait = ls_random_below(77, a, b, 8);
    struct timespec time = {0, (long)wait * 20000};
    if (wait >= 4)
        nanosleep(&time, NULL);
}

#endif
