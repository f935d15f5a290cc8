/* A static partition: divides a row of items among owners by weight (ranks by their workers, say).
 * Each gets a run of consecutive items, floor(count x before / all) to floor(count x (before + own)
 * / all). Some may have none.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_BASE_PARTITION_H
#define LS_BASE_PARTITION_H

#include <stdbool.h>
#include <stdint.h>

/* An owner's share: the weights of those before it, its own, that of all. All zeros: everything. */
struct ls_share {
    int before, own, all;
    bool any; /* everything, or whatever part of it the owner will take */
};

static inline bool ls_share_is_all(const struct ls_share *share)
{
    return share->own == share->all;
}
/* The run of `count` things that belongs to the share: [*begin, *end), may be empty. */
void ls_share_run(const struct ls_share *share, int64_t count, int64_t *begin, int64_t *end);
/* How long that run is at most for `count` things or fewer. */
int64_t ls_share_most(const struct ls_share *share, int64_t count);

/* The owner of item `index` of `count`; `before[i]` is the weight of all owners before owner i, and
 * before[owners] that of all. */
int ls_partition_owner(const int *before, int owners, int64_t index, int64_t count);

#endif
