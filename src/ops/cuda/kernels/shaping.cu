/* Numbers that are put elsewhere, plane by plane or axis by axis. See shaping.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/kernels/cuda_c.h"
#include "ops/cuda/kernels/shaping.h"

/* ---- Permute --------------------------------------------------------------------------------- */

enum { TILE = 32, TILE_ROWS = LS_THREADS / TILE };

/* What y has behind an axis. */
__device__ static int64_t size_behind(const struct ls_cuda_permutation *of, int axis)
{
    int64_t size = 1;
    for (int a = axis + 1; a < of->rank; a++)
        size *= of->dim[a];
    return size;
}

/* Places that follow each other in y do so in x. */
__global__ void permute_runs(struct ls_cuda_permutation of, int64_t n, const float *x, float *y)
{
    for (LS_EACH(i, n)) {
        uint64_t left = i;
        int64_t from = 0;
        for (int a = of.rank - 1; a >= 0; left /= (uint64_t)of.dim[a--])
            from += (int64_t)(left % (uint64_t)of.dim[a]) * of.step[a];
        y[i] = x[from];
    }
}

/* Tiles of the axis along which places of x follow each other, and of the last one, along which
 * those of y do: a warp reads the former and writes the latter. */
struct permute_tile {
    int64_t x, y;          /* where the tile's first place is */
    int64_t columns, rows; /* how many of it there are */
};

__device__ static struct permute_tile find_tile(const struct ls_cuda_permutation *of,
                                                int64_t number)
{
    const int last = of->rank - 1;
    const int64_t along = (of->dim[last] + TILE - 1) / TILE;
    const int64_t row = number % along * TILE;
    struct permute_tile tile = {row * of->step[last], row, 0, of->dim[last] - row};
    number /= along;
    for (int a = last - 1; a >= 0; a--) {
        const int64_t size = a == of->across ? (of->dim[a] + TILE - 1) / TILE : of->dim[a];
        const int64_t at = number % size * (a == of->across ? TILE : 1);
        tile.x += at * of->step[a];
        tile.y += at * size_behind(of, a);
        tile.columns = a == of->across ? of->dim[a] - at : tile.columns;
        number /= size;
    }
    return tile;
}

__global__ void permute_tiles(struct ls_cuda_permutation of, int64_t tiles, const float *x,
                              float *y)
{
    __shared__ float tile[TILE][TILE + 1];
    const int lane = (int)threadIdx.x % TILE, first = (int)threadIdx.x / TILE;
    const int64_t x_step = of.step[of.rank - 1], y_step = size_behind(&of, of.across);
    for (int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
        const struct permute_tile at = find_tile(&of, t);
        for (int row = first; row < TILE; row += TILE_ROWS)
            if (row < at.rows && lane < at.columns)
                tile[row][lane] = x[at.x + row * x_step + lane];
        __syncthreads();
        for (int column = first; column < TILE; column += TILE_ROWS)
            if (column < at.columns && lane < at.rows)
                y[at.y + column * y_step + lane] = tile[lane][column];
        __syncthreads();
    }
}

int ls_cuda_permute(cudaStream_t stream, const struct ls_cuda_permutation *of, const float *x,
                    float *y)
{
    const struct ls_cuda_permutation by = *of;
    int64_t n = 1, tiles = 1;
    for (int a = 0; a < by.rank; a++) {
        const bool tiled = a == by.across || a == by.rank - 1;
        n *= by.dim[a];
        tiles *= tiled ? (by.dim[a] + TILE - 1) / TILE : by.dim[a];
    }
    if (by.across < 0 || by.across == by.rank - 1)
        return LS_LAUNCH(permute_runs, ls_blocks((uint64_t)n), LS_THREADS, stream, by, n, x, y);
    return LS_LAUNCH(permute_tiles, ls_blocks((uint64_t)tiles * LS_THREADS), LS_THREADS, stream, by,
                     tiles, x, y);
}

/* ---- Windows to columns, and back ------------------------------------------------------------ */

__host__ __device__ static int64_t product_of(const int64_t extent[3])
{
    return extent[0] * extent[1] * extent[2];
}

/* Where a window's place k is in a plane of x, for the window at `at`; -1: in the padding. */
__device__ static int64_t place_in_plane(const struct ls_cuda_columns *of, int64_t k, int64_t at)
{
    int64_t place = 0, step = 1;
    for (int a = 2; a >= 0; a--) {
        const int64_t i =
            at % of->y[a] * of->stride[a] + k % of->kernel[a] * of->dilation[a] - of->pad[a];
        if (i < 0 || i >= of->x[a])
            return -1;
        place += i * step;
        step *= of->x[a];
        at /= of->y[a];
        k /= of->kernel[a];
    }
    return place;
}

__global__ void im2col(struct ls_cuda_columns of, const float *x, float *y)
{
    const int64_t points = product_of(of.y), places = product_of(of.kernel);
    for (LS_EACH(i, of.planes * places * points)) {
        const int64_t row = (int64_t)i / points;
        const int64_t place = place_in_plane(&of, row % places, (int64_t)i % points);
        y[i] = place < 0 ? 0 : x[row / places * product_of(of.x) + place];
    }
}

int ls_cuda_im2col(cudaStream_t stream, const struct ls_cuda_columns *of, const float *x, float *y)
{
    const struct ls_cuda_columns by = *of;
    const int64_t n = by.planes * product_of(by.kernel) * product_of(by.y);
    return LS_LAUNCH(im2col, ls_blocks((uint64_t)n), LS_THREADS, stream, by, x, y);
}

/* Which window has position i of a plane of x as its place k; -1: none. */
__device__ static int64_t window_of(const struct ls_cuda_columns *of, int64_t k, int64_t i)
{
    int64_t window = 0, step = 1;
    for (int a = 2; a >= 0; a--) {
        const int64_t apart = i % of->x[a] + of->pad[a] - k % of->kernel[a] * of->dilation[a];
        if (apart < 0 || apart % of->stride[a] != 0 || apart / of->stride[a] >= of->y[a])
            return -1;
        window += apart / of->stride[a] * step;
        step *= of->y[a];
        i /= of->x[a];
        k /= of->kernel[a];
    }
    return window;
}

/* A position is in one window at most by each of its places: these are its terms, in order. */
__global__ void col2im(struct ls_cuda_columns of, const float *dy, float *dx)
{
    const int64_t plane = product_of(of.x), points = product_of(of.y);
    const int64_t places = product_of(of.kernel);
    for (LS_EACH(i, of.planes * plane)) {
        const float *from = dy + (int64_t)i / plane * places * points;
        double sum = 0;
        for (int64_t k = 0; k < places; k++) {
            const int64_t window = window_of(&of, k, (int64_t)i % plane);
            if (window >= 0)
                sum += (double)from[k * points + window];
        }
        dx[i] = (float)sum;
    }
}

int ls_cuda_col2im(cudaStream_t stream, const struct ls_cuda_columns *of, const float *dy,
                   float *dx)
{
    const struct ls_cuda_columns by = *of;
    return LS_LAUNCH(col2im, ls_blocks((uint64_t)(by.planes * product_of(by.x))), LS_THREADS,
                     stream, by, dy, dx);
}

/* ---- Larger planes --------------------------------------------------------------------------- */

template <typename T> __global__ void upsample(struct ls_cuda_upsampling of, const T *x, T *y)
{
    const int64_t columns = of.columns * of.along;
    for (LS_EACH(i, of.planes * of.rows * of.down * columns)) {
        const int64_t row = (int64_t)i / columns / of.down; /* over all planes */
        y[i] = x[row * of.columns + (int64_t)i % columns / of.along];
    }
}

int ls_cuda_upsample(cudaStream_t stream, const struct ls_cuda_upsampling *of, const void *x,
                     void *y)
{
    const struct ls_cuda_upsampling by = *of;
    const uint64_t n = (uint64_t)(by.planes * by.rows * by.down * by.columns * by.along);
    if (by.bytes == 2)
        return LS_LAUNCH(upsample<uint16_t>, ls_blocks(n), LS_THREADS, stream, by,
                         (const uint16_t *)x, (uint16_t *)y);
    return LS_LAUNCH(upsample<uint32_t>, ls_blocks(n), LS_THREADS, stream, by, (const uint32_t *)x,
                     (uint32_t *)y);
}

__global__ void upsample_backward(struct ls_cuda_upsampling of, const float *dy, float *dx)
{
    for (LS_EACH(i, of.planes * of.rows * of.columns)) {
        const int64_t row = (int64_t)i / of.columns * of.down;
        const int64_t column = (int64_t)i % of.columns * of.along;
        double sum = 0;
        for (int64_t r = row; r < row + of.down; r++)
            for (int64_t c = column; c < column + of.along; c++)
                sum += (double)dy[r * of.columns * of.along + c];
        dx[i] = (float)sum;
    }
}

int ls_cuda_upsample_backward(cudaStream_t stream, const struct ls_cuda_upsampling *of,
                              const float *dy, float *dx)
{
    const struct ls_cuda_upsampling by = *of;
    return LS_LAUNCH(upsample_backward, ls_blocks((uint64_t)(by.planes * by.rows * by.columns)),
                     LS_THREADS, stream, by, dy, dx);
}

template <typename T>
__global__ void unpool(struct ls_cuda_unpooling of, const T *x, const int32_t *index, T *y)
{
    for (LS_EACH(i, of.planes * of.small))
        if (index[i] >= 0)
            y[(int64_t)i / of.small * of.large + index[i]] = x[i];
}

template <typename T>
__global__ void unpool_backward(struct ls_cuda_unpooling of, const T *dy, const int32_t *index,
                                T *dx)
{
    for (LS_EACH(i, of.planes * of.small))
        dx[i] = index[i] < 0 ? (T)0 : dy[(int64_t)i / of.small * of.large + index[i]];
}

int ls_cuda_unpool(cudaStream_t stream, const struct ls_cuda_unpooling *of, const void *x,
                   const int32_t *index, void *y)
{
    const struct ls_cuda_unpooling by = *of;
    const uint64_t n = (uint64_t)(by.planes * by.small);
    if (by.bytes == 2)
        return LS_LAUNCH(unpool<uint16_t>, ls_blocks(n), LS_THREADS, stream, by,
                         (const uint16_t *)x, index, (uint16_t *)y);
    return LS_LAUNCH(unpool<uint32_t>, ls_blocks(n), LS_THREADS, stream, by, (const uint32_t *)x,
                     index, (uint32_t *)y);
}

int ls_cuda_unpool_backward(cudaStream_t stream, const struct ls_cuda_unpooling *of, const void *dy,
                            const int32_t *index, void *dx)
{
    const struct ls_cuda_unpooling by = *of;
    const uint64_t n = (uint64_t)(by.planes * by.small);
    if (by.bytes == 2)
        return LS_LAUNCH(unpool_backward<uint16_t>, ls_blocks(n), LS_THREADS, stream, by,
                         (const uint16_t *)dy, index, (uint16_t *)dx);
    return LS_LAUNCH(unpool_backward<uint32_t>, ls_blocks(n), LS_THREADS, stream, by,
                     (const uint32_t *)dy, index, (uint32_t *)dx);
}

/* ---- Resizing -------------------------------------------------------------------------------- */

/* A place of y between two of x, of which it takes the shares near and far. */
struct between {
    int64_t low, high;
    float near_share, far_share;
};

__device__ static struct between find_between(const struct ls_cuda_resizing *of, int a, int64_t i)
{
    const int64_t left = of->x[a] - of->begin - of->end, steps = of->y[a] > 1 ? of->y[a] - 1 : 1;
    const int64_t rest = i * (left - 1) % steps;
    struct between at;
    at.low = of->begin + i * (left - 1) / steps;
    at.high = at.low + (rest > 0 ? 1 : 0);
    at.near_share = (float)((double)(steps - rest) / (double)steps);
    at.far_share = (float)((double)rest / (double)steps);
    return at;
}

__global__ void resize(struct ls_cuda_resizing of, const float *x, float *y)
{
    for (LS_EACH(i, of.planes * of.y[0] * of.y[1])) {
        const struct between row = find_between(&of, 0, (int64_t)i / of.y[1] % of.y[0]);
        const struct between column = find_between(&of, 1, (int64_t)i % of.y[1]);
        const float *plane = x + (int64_t)i / of.y[1] / of.y[0] * of.x[0] * of.x[1];
        const float *low = plane + row.low * of.x[1], *high = plane + row.high * of.x[1];
        const float left = row.near_share * low[column.low] + row.far_share * high[column.low];
        const float right = row.near_share * low[column.high] + row.far_share * high[column.high];
        y[i] = column.near_share * left + column.far_share * right;
    }
}

int ls_cuda_resize(cudaStream_t stream, const struct ls_cuda_resizing *of, const float *x, float *y)
{
    const struct ls_cuda_resizing by = *of;
    return LS_LAUNCH(resize, ls_blocks((uint64_t)(by.planes * by.y[0] * by.y[1])), LS_THREADS,
                     stream, by, x, y);
}

/* The first place of y that is not in front of place `at` of x. */
__device__ static int64_t first_from(const struct ls_cuda_resizing *of, int a, int64_t at)
{
    const int64_t left = of->x[a] - of->begin - of->end, steps = of->y[a] > 1 ? of->y[a] - 1 : 1;
    const int64_t behind = at - of->begin;
    if (behind <= 0)
        return 0;
    if (left <= 1)
        return of->y[a];
    const int64_t first = (behind * steps + left - 2) / (left - 1);
    return first < of->y[a] ? first : of->y[a];
}

/* Rows of dy go to columns: those of the places in front of a column first. */
__global__ void resize_backward_rows(struct ls_cuda_resizing of, const float *dy, float *row)
{
    for (LS_EACH(i, of.planes * of.y[0] * of.x[1])) {
        const int64_t c = (int64_t)i % of.x[1], end = first_from(&of, 1, c + 1);
        const float *from = dy + (int64_t)i / of.x[1] * of.y[1];
        float sum = 0;
        for (int64_t j = first_from(&of, 1, c - 1); j < end; j++) {
            const struct between at = find_between(&of, 1, j);
            sum += (at.low == c ? at.near_share : at.far_share) * from[j];
        }
        row[i] = sum;
    }
}

/* Then from the top to the bottom, each to two rows of dx. */
__global__ void resize_backward_columns(struct ls_cuda_resizing of, const float *row, float *dx)
{
    for (LS_EACH(i, of.planes * of.x[0] * of.x[1])) {
        const int64_t c = (int64_t)i % of.x[1], r = (int64_t)i / of.x[1] % of.x[0];
        const float *from = row + (int64_t)i / of.x[1] / of.x[0] * of.y[0] * of.x[1] + c;
        const int64_t end = first_from(&of, 0, r + 1);
        float sum = 0;
        for (int64_t j = first_from(&of, 0, r - 1); j < end; j++) {
            const struct between at = find_between(&of, 0, j);
            if (at.low == r)
                sum += at.near_share * from[j * of.x[1]];
            if (at.high == r)
                sum += at.far_share * from[j * of.x[1]];
        }
        dx[i] = sum;
    }
}

int ls_cuda_resize_backward(cudaStream_t stream, const struct ls_cuda_resizing *of, const float *dy,
                            float *row, float *dx)
{
    const struct ls_cuda_resizing by = *of;
    const uint64_t n = (uint64_t)(by.planes * by.x[1]);
    const int code = LS_LAUNCH(resize_backward_rows, ls_blocks(n * (uint64_t)by.y[0]), LS_THREADS,
                               stream, by, dy, row);
    return code != 0 ? code
                     : LS_LAUNCH(resize_backward_columns, ls_blocks(n * (uint64_t)by.x[0]),
                                 LS_THREADS, stream, by, row, dx);
}
