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

__device__ static struct entry merge_rows(const struct ls_cuda_merging *of, int64_t channel,
                                          int64_t padded)
{
    const double *const *rows = of->many != NULL ? of->many : of->few;
    const bool moments = of->moments;
    struct entry stack[LEVELS];
    int top = -1;
    for (int r = 0; r < of->count; r++) {
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

__global__ void merge_channels(struct ls_cuda_merging of, int64_t padded, float *merged)
{
    for (LS_EACH(i, of.end - of.begin)) {
        const int64_t c = of.begin + (int64_t)i;
        for (int part = 0; part < (of.moments ? 4 : 2); part++)
            merged[part * padded + c] = 0;
        if (c >= of.channels)
            continue;
        const struct entry all = merge_rows(&of, c, padded);
        if (of.moments) {
            const float near = (float)all.first;
            const double variance = all.second / all.count;
            merged[c] = near;
            merged[padded + c] = (float)(all.first - (double)near);
            merged[2 * padded + c] = (float)(1 / sqrt(variance + (double)of.eps));
            merged[3 * padded + c] = (float)variance;
        } else {
            merged[c] = (float)(all.first / all.count);
            merged[padded + c] = (float)(all.second / all.count);
        }
    }
}

int ls_cuda_merge(cudaStream_t stream, const struct ls_cuda_merging *of, float *merged)
{
    const struct ls_cuda_merging by = *of;
    if (by.count < 1 || by.begin >= by.end)
        return 0;
    return LS_LAUNCH(merge_channels, ls_blocks((uint64_t)(by.end - by.begin)), LS_THREADS, stream,
                     by, ls_sync_round(by.channels), merged);
}
