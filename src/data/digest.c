/* Sums over records; see the header. SPDX-License-Identifier: BSD-2-Clause */
#include "data/digest.h"

#include "base/hash.h"

uint64_t ls_digest_hash(int64_t record, const uint64_t *tensor, int count)
{
    const uint64_t odd = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t hash = ls_mix(odd * ((uint64_t)record + 1));
    hash = ls_mix(hash ^ tensor[0]);
    for (int k = 1; k < count; k++)
        hash = ls_mix(hash + odd * (uint64_t)k + tensor[k]);
    return hash;
}

void ls_digests_add(struct ls_digests *digests, int64_t begin, int64_t end, int64_t size,
                    int64_t ordinal, int64_t record, uint64_t hash)
{
    int64_t epoch = ordinal / size;
    struct ls_digest *digest = epoch == begin / size       ? &digests->first
                               : epoch == (end - 1) / size ? &digests->last
                                                           : &digests->middle;
    digest->sum += hash;
    digest->weighted += hash * ((uint64_t)record + 1);
}

bool ls_digest_equal(const struct ls_digest *a, const struct ls_digest *b)
{
    return a->sum == b->sum && a->weighted == b->weighted;
}

void ls_digest_add(struct ls_digest *to, const struct ls_digest *more)
{
    to->sum += more->sum;
    to->weighted += more->weighted;
}

/* One record's hash has changed by d: the sums differ by d and by (number + 1) d. With d = 2^k u, u
 * odd, the number follows modulo 2^(64 - k), and whether it is right shows in the product. */
int64_t ls_digest_culprit(const struct ls_digest *a, const struct ls_digest *b, int64_t count)
{
    uint64_t d = b->sum - a->sum, product = b->weighted - a->weighted;
    if (d == 0)
        return -1;
    int zeros = __builtin_ctzll(d);
    uint64_t odd = d >> zeros, inverse = odd; /* right in three bits, twice as many each time */
    for (int i = 0; i < 5; i++)
        inverse *= 2 - odd * inverse;
    uint64_t number = (product >> zeros) * inverse;
    if (zeros > 0)
        number &= UINT64_MAX >> zeros;
    bool found = number >= 1 && number <= (uint64_t)count && number * d == product;
    return found ? (int64_t)number - 1 : -1;
}

/* The running epoch has ended. */
static bool end_epoch(struct ls_epochs *epochs, struct ls_digest *found)
{
    struct ls_digest ended = epochs->running;
    bool whole = !epochs->partial;
    epochs->running = (struct ls_digest){0};
    epochs->partial = false;
    if (whole && !epochs->known) {
        epochs->whole = ended;
        epochs->known = true;
    }
    *found = ended;
    return !whole || ls_digest_equal(&ended, &epochs->whole);
}

bool ls_epochs_go_on(struct ls_epochs *epochs, const struct ls_digests *digests, int64_t begin,
                     int64_t end, int64_t size, struct ls_digest *found, bool *several)
{
    int64_t first = begin / size, last = (end - 1) / size, between = last - first - 1;
    *several = false;
    ls_digest_add(&epochs->running, &digests->first);
    if (end >= (first + 1) * size && !end_epoch(epochs, found))
        return false;
    if (last == first)
        return true;
    if (between > 0) {
        uint64_t count = (uint64_t)between;
        if (!epochs->known && between == 1)
            epochs->whole = digests->middle;
        epochs->known = epochs->known || between == 1;
        struct ls_digest wanted = {epochs->whole.sum * count, epochs->whole.weighted * count};
        *found = digests->middle;
        *several = between > 1;
        if (epochs->known && !ls_digest_equal(&digests->middle, &wanted))
            return false;
    }
    *several = false;
    ls_digest_add(&epochs->running, &digests->last);
    return end % size != 0 || end_epoch(epochs, found);
}
