/* Flat arrays, buckets and the parts of ranks. See engine/slices.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/slices.h"

#include "base/memory.h"
#include "transport/sums.h"

enum {
    ALIGNMENT = 16,        /* elements: a cache line of weights */
    BUCKET_LEAST = 32768,  /* elements: below, a message's latency is what counts */
    BUCKET_MOST = 1 << 20, /* and above, too little of it is under way before the end */
    BUCKETS = 16           /* in between, so many of a net */
};

static size_t aligned(size_t elements)
{
    return (elements + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Where everybody lies: backwards. */
static void place_all(struct ls_slices *slices, size_t parameters, const size_t *elements)
{
    for (size_t i = parameters; i-- > 0;) {
        slices->bucket[i] = -1;
        if (elements[i] == 0)
            continue;
        slices->order[slices->count++] = (int)i;
        slices->place[i] = slices->elements;
        slices->elements += aligned(elements[i]);
    }
}

static size_t bucket_size(const struct ls_slices *slices)
{
    size_t size = slices->elements / BUCKETS;
    return size < BUCKET_LEAST ? BUCKET_LEAST : size > BUCKET_MOST ? BUCKET_MOST : size;
}

/* Whole parameters, until a bucket is large enough. */
static void fill_buckets(struct ls_slices *slices, const size_t *elements)
{
    size_t enough = bucket_size(slices);
    struct ls_bucket *bucket = NULL;
    for (size_t i = 0; i < slices->count; i++) {
        int parameter = slices->order[i];
        if (bucket == NULL || bucket->end - bucket->begin >= enough) {
            bucket = &slices->buckets[slices->bucket_count++];
            bucket->begin = slices->place[parameter];
            bucket->first = i;
        }
        bucket->last = i;
        bucket->end = slices->place[parameter] + aligned(elements[parameter]);
        slices->bucket[parameter] = (int)slices->bucket_count - 1;
    }
}

/* The beginning of a tile of the bucket's parameters that is nearest to a place of the array, or
 * the bucket's end. */
static size_t nearest_tile(const struct ls_slices *slices, const struct ls_bucket *bucket,
                           const size_t *elements, double place)
{
    size_t best = bucket->begin;
    for (size_t i = bucket->first; i <= bucket->last; i++) {
        int parameter = slices->order[i];
        size_t begin = slices->place[parameter], end = begin + aligned(elements[parameter]);
        if (place > (double)end) {
            best = end;
            continue;
        }
        double inside = place > (double)begin ? place - (double)begin : 0;
        size_t below = begin + (size_t)(inside / LS_SUMS_TILE) * LS_SUMS_TILE;
        size_t above = below + LS_SUMS_TILE < end ? below + LS_SUMS_TILE : end;
        size_t nearest = place - (double)below <= (double)above - place ? below : above;
        return nearest > best ? nearest : best;
    }
    return best;
}

/* Cuts buckets evenly. What a rank has too much in one bucket it gets less in the next. */
static void cut_buckets(struct ls_slices *slices, const size_t *elements, double *owed)
{
    for (size_t b = 0; b < slices->bucket_count; b++) {
        struct ls_bucket *bucket = &slices->buckets[b];
        double size = (double)(bucket->end - bucket->begin);
        bucket->cut = slices->cuts + b * ((size_t)slices->ranks + 1);
        bucket->cut[0] = bucket->begin;
        for (int r = 1; r < slices->ranks; r++) {
            double place = (double)bucket->begin + size * r / slices->ranks;
            size_t cut = nearest_tile(slices, bucket, elements, place + owed[r]);
            bucket->cut[r] = cut > bucket->cut[r - 1] ? cut : bucket->cut[r - 1];
            owed[r] += place - (double)bucket->cut[r];
        }
        bucket->cut[slices->ranks] = bucket->end;
    }
}

int ls_slices_create(size_t parameters, const size_t *elements, int ranks, struct ls_slices **out,
                     struct ls_error *error)
{
    *out = NULL;
    struct ls_slices *slices = ls_alloc(1, sizeof *slices);
    if (slices == NULL)
        return ls_fail_memory(error, "parameters");
    slices->ranks = ranks;
    slices->order = ls_alloc(parameters + 1, sizeof *slices->order);
    slices->place = ls_alloc(parameters + 1, sizeof *slices->place);
    slices->bucket = ls_alloc(parameters + 1, sizeof *slices->bucket);
    slices->buckets = ls_alloc(parameters + 1, sizeof *slices->buckets);
    double *owed = ls_alloc((size_t)ranks, sizeof *owed);
    bool ready = slices->order != NULL && slices->place != NULL && slices->bucket != NULL &&
                 slices->buckets != NULL && owed != NULL;
    if (ready) {
        place_all(slices, parameters, elements);
        fill_buckets(slices, elements);
        slices->cuts =
            ls_alloc(slices->bucket_count * ((size_t)ranks + 1) + 1, sizeof *slices->cuts);
        ready = slices->cuts != NULL;
    }
    if (ready)
        cut_buckets(slices, elements, owed);
    ls_free(owed);
    if (!ready) {
        ls_slices_free(slices);
        return ls_fail_memory(error, "parameters");
    }
    *out = slices;
    return 0;
}

void ls_slices_free(struct ls_slices *slices)
{
    if (slices == NULL)
        return;
    ls_free(slices->order);
    ls_free(slices->place);
    ls_free(slices->bucket);
    ls_free(slices->buckets);
    ls_free(slices->cuts);
    ls_free(slices);
}

/* `x`, but no less than `least` and no more than `most`. */
static size_t within(size_t x, size_t least, size_t most)
{
    return x < least ? least : x > most ? most : x;
}

void ls_slices_own(const struct ls_slices *slices, int parameter, size_t elements, int rank,
                   size_t *begin, size_t *end)
{
    size_t place = slices->place[parameter];
    *begin = 0;
    *end = elements;
    if (slices->bucket[parameter] < 0)
        return;
    const struct ls_bucket *bucket = &slices->buckets[slices->bucket[parameter]];
    *begin = within(bucket->cut[rank], place, place + elements) - place;
    *end = within(bucket->cut[rank + 1], place, place + elements) - place;
}

int ls_slices_owner(const struct ls_slices *slices, int parameter, size_t element)
{
    const struct ls_bucket *bucket = &slices->buckets[slices->bucket[parameter]];
    int rank = 0;
    while (slices->place[parameter] + element >= bucket->cut[rank + 1])
        rank++;
    return rank;
}
