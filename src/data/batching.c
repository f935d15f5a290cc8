/* Which samples an update sees; see the header. Batches are runs of ordinals, and everything here
 * is arithmetic on the update's number, so that any update can be found without those before it.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/batching.h"

#include <string.h>

enum {
    MICRO_MAX = 1 << 20,  /* micro-batches of a batch */
    PARTS_DEFAULT = 8,    /* of a batch: as many for 1, 2, 4 and 8 workers */
    LARGEST_DEFAULT = 16, /* samples of a part; more parts where they would be larger */
};

/* Batches that an epoch has where updates end with it (PARTIAL, DROP). */
static int64_t batches_per_epoch(const struct ls_batching *b)
{
    int64_t full = b->samples / b->batch;
    if (b->last == LS_LAST_PARTIAL && b->samples % b->batch != 0)
        return full + 1;
    return full;
}

/* Without an end of the data an epoch never ends, and the three ways are one. */
static bool wraps(const struct ls_batching *b)
{
    return b->last == LS_LAST_WRAP || b->samples == INT64_MAX;
}

static int64_t divide_up(int64_t count, int64_t size)
{
    return count / size + (count % size != 0);
}

/* That batches can be cut, into so few parts that a list of them has room in memory. */
static int check_cut(const struct ls_batching *b, const char *place, struct ls_error *error)
{
    if (b->batch > (INT64_C(1) << 40) / b->iter_size)
        return ls_fail(error, LOCKSTEP_DEFINITION, place, NULL,
                       "%d batches of %lld samples are too many for one update", b->iter_size,
                       (long long)b->batch);
    if (b->group > 0 && b->size_of != NULL)
        return ls_fail(error, LOCKSTEP_DEFINITION, place,
                       "crop or resize the samples, or leave the groups out",
                       "micro-batches of whole groups of %lld samples need samples of one size",
                       (long long)b->group);
    if (ls_batching_most(b, b->batch) > MICRO_MAX)
        return ls_fail(error, LOCKSTEP_DEFINITION, place, "use a larger micro_batch",
                       "a batch of %lld samples has more than %d micro-batches",
                       (long long)b->batch, MICRO_MAX);
    return 0;
}

int ls_batching_check(const struct ls_batching *b, const char *place, struct ls_error *error)
{
    if (b->batch < 1)
        return ls_fail(error, LOCKSTEP_DEFINITION, place, "give batch_size: 64, for example",
                       "batch_size is %lld; a batch needs at least one sample",
                       (long long)b->batch);
    if (b->iter_size < 1)
        return ls_fail(error, LOCKSTEP_DEFINITION, place, NULL,
                       "iter_size is %d; an update needs at least one batch", b->iter_size);
    if (b->micro_batch < 1)
        return ls_fail(error, LOCKSTEP_DEFINITION, place, NULL,
                       "micro_batch is %lld; it must be at least 1", (long long)b->micro_batch);
    if (b->samples < 1)
        return ls_fail(error, LOCKSTEP_DATA, place, NULL, "there are no samples");
    if (b->last == LS_LAST_DROP && b->samples < b->batch)
        return ls_fail(error, LOCKSTEP_DEFINITION, place, "use a smaller batch_size, or WRAP",
                       "last_batch: DROP leaves nothing of %lld samples in batches of %lld",
                       (long long)b->samples, (long long)b->batch);
    return check_cut(b, place, error);
}

int ls_batching_update(const struct ls_batching *b, int64_t update, struct ls_batch *batches)
{
    if (wraps(b)) {
        for (int i = 0; i < b->iter_size; i++) {
            batches[i].ordinal = (update * b->iter_size + i) * b->batch;
            batches[i].count = b->batch;
        }
        return b->iter_size;
    }
    int64_t per_epoch = batches_per_epoch(b);
    if (per_epoch == 0)
        return 0; /* DROP, and a batch is larger than the data */
    int64_t updates = (per_epoch + b->iter_size - 1) / b->iter_size;
    int64_t start = update / updates * b->samples; /* ordinal of the epoch's first sample */
    int64_t first = update % updates * b->iter_size;
    int count = 0;
    for (; count < b->iter_size && first + count < per_epoch; count++) {
        int64_t position = (first + count) * b->batch;
        int64_t left = b->samples - position;
        batches[count].ordinal = start + position;
        batches[count].count = left < b->batch ? left : b->batch;
    }
    return count;
}

int64_t ls_batching_left_out(const struct ls_batching *b, int64_t end)
{
    if (b->last != LS_LAST_DROP || wraps(b))
        return 0;
    int64_t used = b->samples / b->batch * b->batch;
    return end % b->samples == used % b->samples ? b->samples - used : 0;
}

int64_t ls_batching_of(const struct ls_batching *b, int dataset, const struct ls_batch *of,
                       struct ls_batch *its)
{
    *its = *of;
    if (b->own == NULL || b->own[dataset].batch == b->batch)
        return ls_batching_left_out(b, of->ordinal + of->count);
    const struct ls_own_batch *own = &b->own[dataset];
    int64_t epoch = wraps(b) ? 0 : of->ordinal / b->samples;
    int64_t number = (wraps(b) ? of->ordinal : of->ordinal % b->samples) / b->batch;
    *its = (struct ls_batch){epoch * own->samples + number * own->batch, own->batch};
    const struct ls_batching alone = {
        .samples = own->samples, .batch = own->batch, .last = b->last};
    return ls_batching_left_out(&alone, its->ordinal + its->count);
}

double ls_batching_updates_per_epoch(const struct ls_batching *b)
{
    if (wraps(b))
        return (double)b->samples / ((double)b->batch * b->iter_size);
    int64_t per_epoch = batches_per_epoch(b);
    return (double)((per_epoch + b->iter_size - 1) / b->iter_size);
}

int64_t ls_even_cut(int64_t count, int64_t n, int64_t i)
{
    /* The product of two 64-bit numbers. */
    return (int64_t)((unsigned __int128)i * (uint64_t)count / (uint64_t)n);
}

int64_t ls_batching_groups(int64_t count, int64_t group)
{
    return group > 0 ? divide_up(count, group) : 1;
}

int64_t ls_batching_most(const struct ls_batching *b, int64_t count)
{
    if (b->size_of != NULL)
        return count;
    return divide_up(count, b->group > 0 ? b->group : b->micro_batch);
}

int64_t ls_batching_largest(const struct ls_batching *b)
{
    if (b->group <= 0 || b->size_of != NULL)
        return b->micro_batch;
    int64_t together = b->micro_batch / b->group;
    return b->group * (together > 1 ? together : 1);
}

/* Cuts samples [from, to) of a batch, which have one size. */
static int64_t cut_run(const struct ls_batching *b, const struct ls_batch *batch, int64_t from,
                       int64_t to, const int64_t shape[3], struct ls_micro *micro)
{
    int64_t n = divide_up(to - from, b->micro_batch);
    for (int64_t i = 0; i < n; i++) {
        int64_t begin = ls_even_cut(to - from, n, i), end = ls_even_cut(to - from, n, i + 1);
        micro[i] = (struct ls_micro){.ordinal = batch->ordinal + from + begin,
                                     .count = end - begin,
                                     .shape = {shape[0], shape[1], shape[2]}};
    }
    return n;
}

static int64_t cut_groups(const struct ls_batching *b, const struct ls_batch *batch,
                          struct ls_micro *micro)
{
    int64_t groups = ls_batching_groups(batch->count, b->group);
    int64_t n = divide_up(groups, ls_batching_largest(b) / b->group);
    for (int64_t i = 0; i < n; i++) {
        int64_t begin = ls_even_cut(batch->count, groups, ls_even_cut(groups, n, i));
        int64_t end = ls_even_cut(batch->count, groups, ls_even_cut(groups, n, i + 1));
        micro[i] = (struct ls_micro){.ordinal = batch->ordinal + begin, .count = end - begin};
    }
    return n;
}

int ls_batching_cut(const struct ls_batching *b, const struct ls_batch *batch,
                    struct ls_micro *micro, int64_t *count, struct ls_error *error)
{
    static const int64_t alike[3];
    int64_t from = 0, shape[3], next[3];
    *count = 0;
    if (b->size_of == NULL) {
        *count = b->group > 0 ? cut_groups(b, batch, micro)
                              : cut_run(b, batch, 0, batch->count, alike, micro);
        return 0;
    }
    for (int64_t i = 0; i < batch->count; i++) {
        LS_TRY(b->size_of(b->user, batch->ordinal + i, next, error));
        if (i > 0 && memcmp(shape, next, sizeof shape) != 0) {
            *count += cut_run(b, batch, from, i, shape, micro + *count);
            from = i;
        }
        memcpy(shape, next, sizeof shape);
    }
    *count += cut_run(b, batch, from, batch->count, shape, micro + *count);
    return 0;
}

int64_t ls_micro_batch_default(int64_t batch)
{
    int64_t parts = PARTS_DEFAULT * divide_up(batch, LARGEST_DEFAULT * PARTS_DEFAULT);
    return divide_up(batch, parts);
}
