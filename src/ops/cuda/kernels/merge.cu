/* Merging the partial results of batch normalisation, a thread a channel, along the tree of
 * device/merge.c. See kernels.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/kernels/cuda_c.h"

#include "ir/sync.h"
#include "ops/cuda/kernels/kernels.h"

enum { LEVELS = 32 }; /* an int counts the rows */

struct entry {
    double first, second, count;
    unsigned rows;
};

__device__ static void merge_entries(bool moments, struct entry *into, const struct entry *from)
{
    const double count = into->count + from->count;
    if (moments) {
        const double share = from->count / count, weight = into->count * share;
        const double apart = from->first - into->first;
        into->first = into->first + apart * share;
        into->second = (into->second + from->second) + (apart * apart) * weight;
    } else {
        into->first += from->first;
        into->second += from->second;
    }
    into->count = count;
    into->rows += from->rows;
}

__device__ static struct entry merge_rows(bool moments, const double *const *rows, int count,
                                          int64_t channel, int64_t padded)
{
    struct entry stack[LEVELS];
    int top = -1;
    for (int r = 0; r < count; r++) {
        struct entry *entry = &stack[++top];
        entry->first = rows[r][channel];
        entry->second = rows[r][padded + channel];
        entry->count = rows[r][2 * padded];
        entry->rows = 1;
        for (; top > 0 && stack[top - 1].rows == stack[top].rows; top--)
            merge_entries(moments, &stack[top - 1], &stack[top]);
    }
    for (; top > 0; top--)
        merge_entries(moments, &stack[top - 1], &stack[top]);
    return stack[0];
}

__global__ void merge_channels(bool moments, int64_t channels, int64_t padded, float eps,
                               const double *const *rows, int count, int64_t begin, int64_t end,
                               float *merged)
{
    for (LS_EACH(i, end - begin)) {
        const int64_t c = begin + (int64_t)i;
        for (int part = 0; part < (moments ? 4 : 2); part++)
            merged[part * padded + c] = 0;
        if (c >= channels)
            continue;
        const struct entry all = merge_rows(moments, rows, count, c, padded);
        if (moments) {
            const float near = (float)all.first;
            const double variance = all.second / all.count;
            merged[c] = near;
            merged[padded + c] = (float)(all.first - (double)near);
            merged[2 * padded + c] = (float)(1 / sqrt(variance + (double)eps));
            merged[3 * padded + c] = (float)variance;
        } else {
            merged[c] = (float)(all.first / all.count);
            merged[padded + c] = (float)(all.second / all.count);
        }
    }
}

int ls_cuda_merge(cudaStream_t stream, bool moments, int64_t channels, float eps,
                  const double *const *rows, int count, int64_t begin, int64_t end, float *merged)
{
    if (count < 1 || begin >= end)
        return 0;
    return LS_LAUNCH(merge_channels, ls_blocks((uint64_t)(end - begin)), LS_THREADS, stream,
                     moments, channels, ls_sync_round(channels), eps, rows, count, begin, end,
                     merged);
}
