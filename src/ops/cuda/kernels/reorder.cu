/* See reorder.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/kernels/reorder.h"

#include "ops/cuda/kernels/numbers.h"

/* ---- Conversions of one element -------------------------------------------------------------- */

/* Elements as unsigned integers of their size. */
template <typename T> struct keep {
    typedef T from, to;
    __device__ T operator()(T element) const
    {
        return element;
    }
};

struct widen {
    typedef uint16_t from;
    typedef uint32_t to;
    __device__ uint32_t operator()(uint16_t element) const
    {
        return ls_bf16_widen(element);
    }
};

struct narrow {
    typedef uint32_t from;
    typedef uint16_t to;
    __device__ uint16_t operator()(uint32_t element) const
    {
        return ls_bf16_narrow(element);
    }
};

/* Any other. */
template <typename From, typename To> struct convert {
    typedef From from;
    typedef To to;
    enum ls_dtype from_type, to_type;
    __device__ To operator()(From element) const
    {
        return (To)ls_float_narrow(ls_dtype_widen(from_type, element), ls_dtype_format(to_type));
    }
};

/* ---- Orders ---------------------------------------------------------------------------------- */

/* Elements as they lie, 4 at a time where the arrays are aligned for that. */
template <typename C, int W>
__global__ void convert_each(C by, uint64_t packs, const ls_packed<typename C::from, W> *in,
                             ls_packed<typename C::to, W> *out)
{
    for (LS_EACH(i, packs)) {
        const ls_packed<typename C::from, W> from = in[i];
        ls_packed<typename C::to, W> to;
        for (int k = 0; k < W; k++)
            to.number[k] = by(from.number[k]);
        out[i] = to;
    }
}

/* Few rows or columns: a thread an element of `out`. The caches hold what is read around it. */
template <typename C>
__global__ void transpose_each(C by, struct ls_cuda_reorder of, const typename C::from *in,
                               typename C::to *out)
{
    const uint64_t rows = (uint64_t)of.rows, columns = (uint64_t)of.columns;
    for (LS_EACH(i, (uint64_t)of.outer * rows * columns)) {
        const uint64_t row = i % rows, column = i / rows % columns, o = i / rows / columns;
        out[i] = by(in[(o * rows + row) * columns + column]);
    }
}

/* Squares of TILE x TILE elements go through shared memory, so that both sides are read and written
 * along their rows. A row there is longer by one: those of a column lie in different banks. */
enum { TILE = 32, TILE_ROWS = 8, TILED_LEAST = 12 };

template <typename C>
__global__ void transpose_tiles(C by, struct ls_cuda_reorder of, const typename C::from *in,
                                typename C::to *out)
{
    __shared__ typename C::to tile[TILE][TILE + 1];
    const int64_t down = (of.rows + TILE - 1) / TILE, across = (of.columns + TILE - 1) / TILE;
    const int64_t lane = threadIdx.x % TILE, first = threadIdx.x / TILE;
    for (int64_t t = blockIdx.x; t < of.outer * down * across; t += gridDim.x) {
        const int64_t o = t / across / down * of.rows * of.columns;
        const int64_t row = t / across % down * TILE, column = t % across * TILE;
        for (int64_t r = first; r < TILE; r += TILE_ROWS)
            if (row + r < of.rows && column + lane < of.columns)
                tile[r][lane] = by(in[o + (row + r) * of.columns + column + lane]);
        __syncthreads();
        for (int64_t c = first; c < TILE; c += TILE_ROWS)
            if (column + c < of.columns && row + lane < of.rows)
                out[o + (column + c) * of.rows + row + lane] = tile[lane][c];
        __syncthreads();
    }
}

template <typename C>
static int give(cudaStream_t stream, C by, const struct ls_cuda_reorder *order, const void *in,
                void *out)
{
    typedef typename C::from from;
    typedef typename C::to to;
    const struct ls_cuda_reorder of = *order;
    const uint64_t n = (uint64_t)(of.outer * of.rows * of.columns);
    if (of.rows > 1 && of.columns > 1 && (of.rows < TILED_LEAST || of.columns < TILED_LEAST))
        return LS_LAUNCH(transpose_each<C>, ls_blocks(n), LS_THREADS, stream, by, of,
                         (const from *)in, (to *)out);
    if (of.rows > 1 && of.columns > 1) {
        const uint64_t tiles =
            (uint64_t)(of.outer * ((of.rows + TILE - 1) / TILE) * ((of.columns + TILE - 1) / TILE));
        return LS_LAUNCH(transpose_tiles<C>, ls_blocks(tiles * LS_THREADS),
                         (unsigned)(TILE * TILE_ROWS), stream, by, of, (const from *)in, (to *)out);
    }
    if (n % 4 == 0 && (uintptr_t)in % (4 * sizeof(from)) == 0 &&
        (uintptr_t)out % (4 * sizeof(to)) == 0)
        return LS_LAUNCH((convert_each<C, 4>), ls_blocks(n / 4), LS_THREADS, stream, by, n / 4,
                         (const ls_packed<from, 4> *)in, (ls_packed<to, 4> *)out);
    return LS_LAUNCH((convert_each<C, 1>), ls_blocks(n), LS_THREADS, stream, by, n,
                     (const ls_packed<from, 1> *)in, (ls_packed<to, 1> *)out);
}

/* ---- Types ----------------------------------------------------------------------------------- */

template <typename From>
static int give_from(cudaStream_t stream, const struct ls_cuda_reorder *of, const void *in,
                     void *out)
{
    if (of->from == of->to)
        return give(stream, keep<From>(), of, in, out);
    switch (of->to) {
    case LS_F64:
        return give(stream, convert<From, uint64_t>{of->from, of->to}, of, in, out);
    case LS_F32:
        return give(stream, convert<From, uint32_t>{of->from, of->to}, of, in, out);
    default:
        return give(stream, convert<From, uint16_t>{of->from, of->to}, of, in, out);
    }
}

int ls_cuda_lay_out(cudaStream_t stream, const struct ls_cuda_reorder *of, const void *in,
                    void *out)
{
    if (of->outer * of->rows * of->columns == 0)
        return 0;
    if (of->from == LS_F32 && of->to == LS_BF16)
        return give(stream, narrow(), of, in, out);
    if (of->from == LS_BF16 && of->to == LS_F32)
        return give(stream, widen(), of, in, out);
    switch (of->from) {
    case LS_F64:
    case LS_I64:
    case LS_U64:
        return give_from<uint64_t>(stream, of, in, out);
    case LS_F32:
    case LS_I32:
    case LS_U32:
        return give_from<uint32_t>(stream, of, in, out);
    case LS_F16:
    case LS_BF16:
    case LS_I16:
    case LS_U16:
        return give_from<uint16_t>(stream, of, in, out);
    default:
        return give_from<uint8_t>(stream, of, in, out);
    }
}
