/* Which owner has which item. See base/partition.h. SPDX-License-Identifier: BSD-2-Clause */
#include "base/partition.h"

/* floor(count x weight / all); the product is one of two 64-bit numbers. */
static int64_t cut(int64_t count, int weight, int all)
{
    return (int64_t)((unsigned __int128)(uint64_t)count * (unsigned)weight / (unsigned)all);
}

void ls_share_run(const struct ls_share *share, int64_t count, int64_t *begin, int64_t *end)
{
    bool all = ls_share_is_all(share);
    *begin = all ? 0 : cut(count, share->before, share->all);
    *end = all ? count : cut(count, share->before + share->own, share->all);
}

int64_t ls_share_most(const struct ls_share *share, int64_t count)
{
    if (ls_share_is_all(share))
        return count;
    return count - cut(count, share->all - share->own, share->all); /* rounded up */
}

int ls_partition_owner(const int *before, int owners, int64_t index, int64_t count)
{
    int owner = 0;
    while (owner + 1 < owners && index >= cut(count, before[owner + 1], before[owners]))
        owner++;
    return owner;
}
