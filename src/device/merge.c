/* Merging the partial results of batch normalisation.
 *
 * Rows are merged along the binary tree over their numbers: 0 with 1, 2 with 3, then pairs of
 * these, and so on; at the end what is left, the latest first. A stack of one entry a level does it
 * in one pass. Means and sums of squares merge as
 *
 *   n = na + nb, d = mean_b - mean_a: mean = mean_a + d nb / n, M2 = M2_a + M2_b + d^2 na nb / n
 *
 * (Chan, Golub, LeVeque: Updating formulae and a pairwise algorithm for computing sample variances;
 * 1979.) Channels do not depend on each other, so it does not matter how they are split.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <string.h>

#include "device/plain.h"

enum { LEVELS = 32 }; /* an int counts the rows */

/* A row or several merged ones, for LS_SYNC_BLOCK channels: mean and M2, or two sums. */
struct entry {
    double first[LS_SYNC_BLOCK], second[LS_SYNC_BLOCK];
    double count;
    unsigned rows;
};

static void merge_moments(struct entry *into, const struct entry *from)
{
    const double count = into->count + from->count;
    const double share = from->count / count, weight = into->count * share;
    for (int i = 0; i < LS_SYNC_BLOCK; i++) {
        double apart = from->first[i] - into->first[i];
        into->first[i] = into->first[i] + apart * share;
        into->second[i] = (into->second[i] + from->second[i]) + (apart * apart) * weight;
    }
    into->count = count;
    into->rows += from->rows;
}

static void merge_sums(struct entry *into, const struct entry *from)
{
    for (int i = 0; i < LS_SYNC_BLOCK; i++) {
        into->first[i] += from->first[i];
        into->second[i] += from->second[i];
    }
    into->count += from->count;
    into->rows += from->rows;
}

/* Merges the channels from c on; the result is in stack[0]. */
static void merge_rows(const struct ls_sync *sync, const double *const *rows, int count, int64_t c,
                       struct entry stack[LEVELS])
{
    void (*merge)(struct entry *, const struct entry *) =
        sync->kind == LS_SYNC_MOMENTS ? merge_moments : merge_sums;
    const int64_t padded = ls_sync_padded(sync);
    int top = -1;
    for (int r = 0; r < count; r++) {
        struct entry *entry = &stack[++top];
        memcpy(entry->first, rows[r] + c, sizeof entry->first);
        memcpy(entry->second, rows[r] + padded + c, sizeof entry->second);
        entry->count = rows[r][2 * padded];
        entry->rows = 1;
        for (; top > 0 && stack[top - 1].rows == stack[top].rows; top--)
            merge(&stack[top - 1], &stack[top]);
    }
    for (; top > 0; top--)
        merge(&stack[top - 1], &stack[top]);
}

/* What ops read of one channel. */
static void write_moments(const struct ls_sync *sync, double mean, double variance, float *merged)
{
    const int64_t padded = ls_sync_padded(sync);
    const float near = (float)mean;
    merged[0] = near;
    merged[padded] = (float)(mean - (double)near);
    merged[2 * padded] = (float)(1 / sqrt(variance + (double)sync->eps));
    merged[3 * padded] = (float)variance;
}

static void write_block(const struct ls_sync *sync, const struct entry *entry, int64_t c,
                        float *merged)
{
    const int64_t padded = ls_sync_padded(sync), left = sync->channels - c;
    const bool moments = sync->kind == LS_SYNC_MOMENTS;
    for (int part = 0; part < (moments ? 4 : 2); part++)
        memset(merged + part * padded + c, 0, LS_SYNC_BLOCK * sizeof *merged);
    for (int64_t i = 0; i < LS_SYNC_BLOCK && i < left; i++) {
        if (moments) {
            write_moments(sync, entry->first[i], entry->second[i] / entry->count, merged + c + i);
        } else {
            merged[c + i] = (float)(entry->first[i] / entry->count);
            merged[padded + c + i] = (float)(entry->second[i] / entry->count);
        }
    }
}

int ls_plain_merge(struct ls_stream *stream, const struct ls_sync *sync, const double *const *rows,
                   int count, int64_t begin, int64_t end, float *merged, struct ls_error *error)
{
    struct entry stack[LEVELS];
    (void)stream;
    (void)error;
    if (sync->kind == LS_SYNC_COUNT || count < 1)
        return 0;
    for (int64_t c = begin; c < end; c += LS_SYNC_BLOCK) {
        merge_rows(sync, rows, count, c, stack);
        write_block(sync, &stack[0], c, merged);
    }
    return 0;
}
