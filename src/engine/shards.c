/* Flat arrays, buckets and the parts of ranks. See engine/shards.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/shards.h"

#include "base/memory.h"
#include "engine/sums.h"

enum {
    ALIGNMENT = 16,        /* elements: a cache line of weights */
    BUCKET_LEAST = 32768,  /* elements: below, a message's latency is what counts */
    BUCKET_MOST = 1 << 20, /* and above, too little of it is under way before the end */
    BUCKETS = 16           /* in between, so many of a net */
};

static size_t shards_aligned(size_t elements)
{
    return (elements + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Parameters are laid out in reverse order, the order in which gradients become ready. */
static void shards_place_all(struct ls_shards *shards, size_t parameters, const size_t *elements)
{
    for (size_t i = parameters; i-- > 0;) {
        shards->bucket[i] = -1;
        if (elements[i] == 0)
            continue;
        shards->order[shards->count++] = (int)i;
        shards->place[i] = shards->elements;
        shards->elements += shards_aligned(elements[i]);
    }
}

static size_t shards_bucket_size(const struct ls_shards *shards)
{
    size_t size = shards->elements / BUCKETS;
    return size < BUCKET_LEAST ? BUCKET_LEAST : size > BUCKET_MOST ? BUCKET_MOST : size;
}

/* Whole parameters, until a bucket is large enough. */
static void shards_fill_buckets(struct ls_shards *shards, const size_t *elements)
{
    size_t enough = shards_bucket_size(shards);
    struct ls_bucket *bucket = NULL;
    for (size_t i = 0; i < shards->count; i++) {
        int parameter = shards->order[i];
        if (bucket == NULL || bucket->end - bucket->begin >= enough) {
            bucket = &shards->buckets[shards->bucket_count++];
            bucket->begin = shards->place[parameter];
            bucket->first = i;
        }
        bucket->last = i;
        bucket->end = shards->place[parameter] + shards_aligned(elements[parameter]);
        shards->bucket[parameter] = (int)shards->bucket_count - 1;
    }
}

/* The beginning of a tile of the bucket's parameters (of a whole one: its own) that is nearest to a
 * place of the array, or the bucket's end. */
static size_t shards_nearest_tile(const struct ls_shards *shards, const struct ls_bucket *bucket,
                                  const size_t *elements, const bool *whole, double place)
{
    size_t best = bucket->begin;
    for (size_t i = bucket->first; i <= bucket->last; i++) {
        int parameter = shards->order[i];
        size_t begin = shards->place[parameter], end = begin + shards_aligned(elements[parameter]);
        if (place > (double)end) {
            best = end;
            continue;
        }
        double inside = place > (double)begin ? place - (double)begin : 0;
        size_t below = begin + (size_t)(inside / LS_SUMS_TILE) * LS_SUMS_TILE;
        size_t above = below + LS_SUMS_TILE < end ? below + LS_SUMS_TILE : end;
        if (whole != NULL && whole[parameter])
            below = begin, above = end;
        size_t nearest = place - (double)below <= (double)above - place ? below : above;
        return nearest > best ? nearest : best;
    }
    return best;
}

/* Cuts buckets evenly. What a rank has too much in one bucket it gets less in the next. */
static void shards_cut_buckets(struct ls_shards *shards, const size_t *elements, const bool *whole,
                               double *owed)
{
    for (size_t b = 0; b < shards->bucket_count; b++) {
        struct ls_bucket *bucket = &shards->buckets[b];
        double size = (double)(bucket->end - bucket->begin);
        bucket->cut = shards->cuts + b * ((size_t)shards->ranks + 1);
        bucket->cut[0] = bucket->begin;
        for (int r = 1; r < shards->ranks; r++) {
            double place = (double)bucket->begin + size * r / shards->ranks;
            size_t cut = shards_nearest_tile(shards, bucket, elements, whole, place + owed[r]);
            bucket->cut[r] = cut > bucket->cut[r - 1] ? cut : bucket->cut[r - 1];
            owed[r] += place - (double)bucket->cut[r];
        }
        bucket->cut[shards->ranks] = bucket->end;
    }
}

int ls_shards_create(size_t parameters, const size_t *elements, const bool *whole, int ranks,
                     struct ls_shards **out, struct ls_error *error)
{
    *out = NULL;
    struct ls_shards *shards = ls_alloc(1, sizeof *shards);
    if (shards == NULL)
        return ls_fail_memory(error, "parameters");
    shards->ranks = ranks;
    shards->order = ls_alloc(parameters + 1, sizeof *shards->order);
    shards->place = ls_alloc(parameters + 1, sizeof *shards->place);
    shards->bucket = ls_alloc(parameters + 1, sizeof *shards->bucket);
    shards->buckets = ls_alloc(parameters + 1, sizeof *shards->buckets);
    double *owed = ls_alloc((size_t)ranks, sizeof *owed);
    bool ready = shards->order != NULL && shards->place != NULL && shards->bucket != NULL &&
                 shards->buckets != NULL && owed != NULL;
    if (ready) {
        shards_place_all(shards, parameters, elements);
        shards_fill_buckets(shards, elements);
        shards->cuts =
            ls_alloc(shards->bucket_count * ((size_t)ranks + 1) + 1, sizeof *shards->cuts);
        ready = shards->cuts != NULL;
    }
    if (ready)
        shards_cut_buckets(shards, elements, whole, owed);
    ls_free(owed);
    if (!ready) {
        ls_shards_free(shards);
        return ls_fail_memory(error, "parameters");
    }
    *out = shards;
    return 0;
}

void ls_shards_free(struct ls_shards *shards)
{
    if (shards == NULL)
        return;
    ls_free(shards->order);
    ls_free(shards->place);
    ls_free(shards->bucket);
    ls_free(shards->buckets);
    ls_free(shards->cuts);
    ls_free(shards);
}

/* `x`, but no less than `least` and no more than `most`. */
static size_t shards_within(size_t x, size_t least, size_t most)
{
    return x < least ? least : x > most ? most : x;
}

void ls_shards_own(const struct ls_shards *shards, int parameter, size_t elements, int rank,
                   size_t *begin, size_t *end)
{
    size_t place = shards->place[parameter];
    *begin = 0;
    *end = elements;
    if (shards->bucket[parameter] < 0)
        return;
    const struct ls_bucket *bucket = &shards->buckets[shards->bucket[parameter]];
    *begin = shards_within(bucket->cut[rank], place, place + elements) - place;
    *end = shards_within(bucket->cut[rank + 1], place, place + elements) - place;
}

int ls_shards_owner(const struct ls_shards *shards, int parameter, size_t element)
{
    const struct ls_bucket *bucket = &shards->buckets[shards->bucket[parameter]];
    int rank = 0;
    while (shards->place[parameter] + element >= bucket->cut[rank + 1])
        rank++;
    return rank;
}
