/* Rows by number, rows that are left out, and the largest of lists. See shaping.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "ops/cuda/kernels/cuda_c.h"
#include "ops/cuda/kernels/shaping.h"

/* ---- Picks ----------------------------------------------------------------------------------- */

/* The row that an index names, a fraction cut off; -1: none. */
__device__ static int64_t row_named(float index, int64_t rows)
{
    const bool near = index > -1 && index < (float)rows;
    return near && (int64_t)index < rows ? (int64_t)index : -1;
}

__global__ void pick(struct ls_cuda_picks of, const float *x, const float *index, float *y)
{
    for (LS_EACH(i, of.picks * of.run)) {
        const int64_t row = row_named(index[(int64_t)i / of.run], of.rows);
        y[i] = row < 0 ? NAN : x[row * of.run + (int64_t)i % of.run];
    }
}

int ls_cuda_pick(cudaStream_t stream, const struct ls_cuda_picks *of, const float *x,
                 const float *index, float *y)
{
    const struct ls_cuda_picks by = *of;
    return LS_LAUNCH(pick, ls_blocks((uint64_t)(by.picks * by.run)), LS_THREADS, stream, by, x,
                     index, y);
}

enum { WARPS = LS_THREADS / 32 };

/* A block has a part of a row of dx. It goes through all picks, LS_THREADS at a time: each thread
 * looks at one index, and then adds up, in their order, the picks that were found. */
__global__ void pick_backward(struct ls_cuda_picks of, const float *dy, const float *index,
                              float *dx)
{
    __shared__ unsigned found[WARPS];
    const int64_t parts = (of.run + LS_THREADS - 1) / LS_THREADS;
    const int64_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int64_t part = blockIdx.x; part < of.rows * parts; part += gridDim.x) {
        const int64_t row = part / parts, i = part % parts * LS_THREADS + threadIdx.x;
        double sum = 0;
        for (int64_t first = 0; first < of.picks; first += LS_THREADS) {
            const int64_t mine = first + threadIdx.x;
            const bool named = mine < of.picks && row_named(index[mine], of.rows) == row;
            const unsigned votes = __ballot_sync(0xffffffffu, named);
            if (lane == 0)
                found[warp] = votes;
            __syncthreads();
            for (int w = 0; w < WARPS; w++) {
                int64_t pick = first + w * 32;
                for (unsigned left = found[w]; left != 0 && i < of.run; left >>= 1, pick++)
                    sum += (left & 1) != 0 ? (double)dy[pick * of.run + i] : 0;
            }
            __syncthreads();
        }
        if (i < of.run)
            dx[row * of.run + i] = (float)sum;
    }
}

int ls_cuda_pick_backward(cudaStream_t stream, const struct ls_cuda_picks *of, const float *dy,
                          const float *index, float *dx)
{
    const struct ls_cuda_picks by = *of;
    const uint64_t parts = ((uint64_t)by.run + LS_THREADS - 1) / LS_THREADS;
    return LS_LAUNCH(pick_backward, ls_blocks((uint64_t)by.rows * parts * LS_THREADS), LS_THREADS,
                     stream, by, dy, index, dx);
}

/* ---- Rows that are left out ------------------------------------------------------------------ */

__global__ void select_rows(int64_t n, const float *x, const float *selected, float *y)
{
    for (LS_EACH(i, n))
        y[i] = x[i] != 0 && (selected == NULL || selected[i] != 0) ? 1 : 0;
}

int ls_cuda_select(cudaStream_t stream, int64_t n, const float *x, const float *selected, float *y)
{
    return LS_LAUNCH(select_rows, ls_blocks((uint64_t)n), LS_THREADS, stream, n, x, selected, y);
}

__global__ void filter_rows(int64_t rows, int64_t run, float left_out, const float *x,
                            const float *selected, float *y)
{
    for (LS_EACH(i, rows * run))
        y[i] = selected == NULL || selected[(int64_t)i / run] != 0 ? x[i] : left_out;
}

int ls_cuda_filter(cudaStream_t stream, int64_t rows, int64_t run, float left_out, const float *x,
                   const float *selected, float *y)
{
    return LS_LAUNCH(filter_rows, ls_blocks((uint64_t)(rows * run)), LS_THREADS, stream, rows, run,
                     left_out, x, selected, y);
}

/* ---- The largest of lists -------------------------------------------------------------------- */

/* A number of a list and where it is; place -1: none. */
struct ranked {
    float number;
    int64_t place;
};

/* Of equal numbers the later one comes first, and a NaN before any number. */
__device__ static bool comes_before(struct ranked a, struct ranked b)
{
    const bool a_none = a.number != a.number, b_none = b.number != b.number;
    if (a_none || b_none)
        return a_none == b_none ? a.place > b.place : a_none;
    return a.number != b.number ? a.number > b.number : a.place > b.place;
}

/* The first of places lane, lane + lanes, ... of those that come behind `last`. */
__device__ static struct ranked find_next(const float *x, int64_t n, int64_t step, int64_t lane,
                                          int64_t lanes, struct ranked last)
{
    struct ranked best = {0, -1};
    for (int64_t c = lane; c < n; c += lanes) {
        const struct ranked here = {x[c * step], c};
        if ((last.place < 0 || comes_before(last, here)) &&
            (best.place < 0 || comes_before(here, best)))
            best = here;
    }
    return best;
}

__device__ static void write_rank(const struct ls_cuda_ranking *of, int64_t list, int64_t rank,
                                  struct ranked found, float *y)
{
    const int64_t run = of->top_k * of->inner, both = of->places && of->values ? 2 : 1;
    float *at = y + list / of->inner * run * both + rank * of->inner + list % of->inner;
    if (of->places)
        *at = (float)found.place;
    if (of->values)
        at[both == 2 ? run : 0] = found.number;
}

/* Lists whose numbers follow each other: a warp each. */
__global__ void rank_runs(struct ls_cuda_ranking of, const float *x, float *y)
{
    const int64_t lane = threadIdx.x % 32, step = (int64_t)gridDim.x * blockDim.x / 32;
    int64_t list = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    for (; list < of.outer; list += step) {
        struct ranked last = {0, -1};
        for (int64_t rank = 0; rank < of.top_k; rank++) {
            struct ranked best = find_next(x + list * of.dim, of.dim, 1, lane, 32, last);
            for (int apart = 16; apart > 0; apart /= 2) {
                const struct ranked other = {__shfl_xor_sync(0xffffffffu, best.number, apart),
                                             __shfl_xor_sync(0xffffffffu, best.place, apart)};
                if (other.place >= 0 && (best.place < 0 || comes_before(other, best)))
                    best = other;
            }
            if (lane == 0)
                write_rank(&of, list, rank, best, y);
            last = best;
        }
    }
}

/* Others: a thread each, so that threads that follow each other read numbers that do. */
__global__ void rank_columns(struct ls_cuda_ranking of, const float *x, float *y)
{
    for (LS_EACH(list, of.outer * of.inner)) {
        const int64_t o = (int64_t)list / of.inner, i = (int64_t)list % of.inner;
        struct ranked last = {0, -1};
        for (int64_t rank = 0; rank < of.top_k; rank++) {
            last = find_next(x + o * of.dim * of.inner + i, of.dim, of.inner, 0, 1, last);
            write_rank(&of, (int64_t)list, rank, last, y);
        }
    }
}

int ls_cuda_argmax(cudaStream_t stream, const struct ls_cuda_ranking *of, const float *x, float *y)
{
    const struct ls_cuda_ranking by = *of;
    if (by.inner == 1)
        return LS_LAUNCH(rank_runs, ls_blocks((uint64_t)by.outer * 32), LS_THREADS, stream, by, x,
                         y);
    return LS_LAUNCH(rank_columns, ls_blocks((uint64_t)(by.outer * by.inner)), LS_THREADS, stream,
                     by, x, y);
}
