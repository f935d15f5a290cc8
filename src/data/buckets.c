/* Buckets; see the header. The samples are listed by their lengths once; everything else is
 * computed where it is asked for.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/buckets.h"

#include <stdlib.h>

#include "base/memory.h"
#include "data/order.h"

enum { LENGTHS_MOST = 65536 };

struct bucket {
    int64_t length;
    int64_t begin, count; /* of its samples in the list */
    int64_t batches;      /* whole batches of this one and all before it */
    int64_t rest;         /* samples beyond those, of this one and all before it */
};

struct ls_buckets {
    struct ls_buckets_options options;
    struct bucket *bucket;
    size_t count, capacity;
    uint32_t *list; /* places, by length and then in their order */
};

/* The bucket of a length, of those that are sorted; where it would be, if it is not there. */
static size_t find_length(const struct ls_buckets *b, int64_t length)
{
    size_t begin = 0, end = b->count;
    while (begin < end) {
        const size_t middle = begin + (end - begin) / 2;
        if (b->bucket[middle].length < length)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

/* Counts the samples of each length. */
static int count_lengths(struct ls_buckets *b, struct ls_error *error)
{
    for (int64_t i = 0; i < b->options.size; i++) {
        const int64_t length = b->options.length(b->options.user, i);
        const size_t at = find_length(b, length);
        if (at < b->count && b->bucket[at].length == length) {
            b->bucket[at].count++;
            continue;
        }
        if (b->count == LENGTHS_MOST)
            return ls_fail(error, LOCKSTEP_DATA, NULL, "use a larger bucket",
                           "samples have more than %d lengths", LENGTHS_MOST);
        if (!LS_GROW(b->bucket, b->count, b->capacity))
            return ls_fail_memory(error, "the lengths of samples");
        for (size_t k = b->count++; k > at; k--)
            b->bucket[k] = b->bucket[k - 1];
        b->bucket[at] = (struct bucket){.length = length, .count = 1};
    }
    return 0;
}

static void list_samples(struct ls_buckets *b)
{
    int64_t begin = 0, batches = 0, rest = 0;
    for (size_t i = 0; i < b->count; i++) {
        struct bucket *bucket = &b->bucket[i];
        batches += bucket->count / b->options.batch;
        rest += bucket->count % b->options.batch;
        bucket->batches = batches;
        bucket->rest = rest;
        bucket->begin = begin;
        begin += bucket->count;
        bucket->count = 0; /* it is counted again */
    }
    for (int64_t i = 0; i < b->options.size; i++) {
        struct bucket *bucket = &b->bucket[find_length(b, b->options.length(b->options.user, i))];
        b->list[bucket->begin + bucket->count++] = (uint32_t)i;
    }
}

int ls_buckets_make(const struct ls_buckets_options *options, struct ls_buckets **buckets,
                    struct ls_error *error)
{
    struct ls_buckets *b = *buckets = ls_alloc(1, sizeof *b);
    if (b == NULL)
        return ls_fail_memory(error, "the lengths of samples");
    b->options = *options;
    b->list = ls_alloc((size_t)options->size, sizeof *b->list);
    int status =
        b->list != NULL ? count_lengths(b, error) : ls_fail_memory(error, "the lengths of samples");
    if (status == 0)
        list_samples(b);
    if (status != 0) {
        ls_buckets_free(b);
        *buckets = NULL;
    }
    return status;
}

void ls_buckets_free(struct ls_buckets *buckets)
{
    if (buckets == NULL)
        return;
    ls_free(buckets->bucket);
    ls_free(buckets->list);
    ls_free(buckets);
}

/* Sample `i` of a bucket in an epoch. */
static int64_t sample_of(const struct ls_buckets *b, size_t bucket, int64_t epoch, int64_t i)
{
    const struct bucket *own = &b->bucket[bucket];
    struct ls_order order;
    if (b->options.shuffle) {
        ls_order_init(&order, b->options.key + 1 + bucket, (uint64_t)epoch, (uint64_t)own->count);
        i = (int64_t)ls_order_at(&order, (uint64_t)i);
    }
    return b->list[own->begin + i];
}

/* The first bucket with more than `number` batches, or samples of the rest, up to its end. */
static size_t find_bucket(const struct ls_buckets *b, int64_t number, bool rest)
{
    size_t begin = 0, end = b->count;
    while (begin < end) {
        const size_t middle = begin + (end - begin) / 2;
        if ((rest ? b->bucket[middle].rest : b->bucket[middle].batches) <= number)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

int64_t ls_buckets_at(const struct ls_buckets *b, int64_t epoch, int64_t position)
{
    const int64_t size = b->options.size, batch = b->options.batch, whole = size / batch;
    const int64_t own = b->bucket[b->count - 1].batches; /* of one length */
    struct ls_order order;
    if (b->options.wraps && size >= batch) {
        const int64_t inside =
            (int64_t)((unsigned __int128)epoch * (uint64_t)size % (uint64_t)batch);
        const int64_t before = inside > 0 ? batch - inside : 0; /* that end the batch */
        position = position >= before ? position - before : size - before + position;
    }
    int64_t number = position / batch;
    const int64_t inside = position % batch;
    if (number < whole && b->options.shuffle) {
        ls_order_init(&order, b->options.key, (uint64_t)epoch, (uint64_t)whole);
        number = (int64_t)ls_order_at(&order, (uint64_t)number);
    }
    if (number < own) {
        const size_t bucket = find_bucket(b, number, false);
        const int64_t before = bucket > 0 ? b->bucket[bucket - 1].batches : 0;
        return sample_of(b, bucket, epoch, (number - before) * batch + inside);
    }
    const int64_t left = (number - own) * batch + inside;
    const size_t bucket = find_bucket(b, left, true);
    const int64_t before = bucket > 0 ? b->bucket[bucket - 1].rest : 0;
    const int64_t rest = b->bucket[bucket].count % batch;
    return sample_of(b, bucket, epoch, b->bucket[bucket].count - rest + left - before);
}
