/* Places along axes that are taken, added or numbered. See sequences.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/kernels/sequences.h"

#include "ops/cuda/kernels/sort.h"

/* ---- Gather ---------------------------------------------------------------------------------- */

/* The place that a number names, what is behind its point cut off; -1: none. */
__device__ static int64_t place_named(float number, int64_t places)
{
    return number > -1 && number < (float)places ? (int64_t)number : -1;
}

/* `none`: the bits of a NaN. */
template <typename T>
__global__ void gather(struct ls_cuda_gather of, const T *x, const float *index, T none, T *y)
{
    for (LS_EACH(i, of.outer * of.picks * of.inner)) {
        const int64_t at = (int64_t)i, inner = at % of.inner, k = at / of.inner % of.picks;
        const int64_t outer = at / of.inner / of.picks;
        const int64_t place = place_named(index[outer / of.each * of.picks + k], of.places);
        y[i] = place < 0 ? none : x[(outer * of.places + place) * of.inner + inner];
    }
}

int ls_cuda_take_places(cudaStream_t stream, const struct ls_cuda_gather *of, const void *x,
                        const float *index, void *y)
{
    const struct ls_cuda_gather by = *of;
    const unsigned blocks = ls_blocks((uint64_t)(by.outer * by.picks * by.inner));
    const uint16_t half = 0x7fc0;
    const uint32_t word = 0x7fc00000;
    if (by.bytes == 2)
        return LS_LAUNCH(gather<uint16_t>, blocks, LS_THREADS, stream, by, (const uint16_t *)x,
                         index, half, (uint16_t *)y);
    return LS_LAUNCH(gather<uint32_t>, blocks, LS_THREADS, stream, by, (const uint32_t *)x, index,
                     word, (uint32_t *)y);
}

/* Numbers of all lists are sorted by place, so that a place finds those that took from it. */
static struct ls_cuda_sort sort_of(const struct ls_cuda_gather *of)
{
    const int64_t lists = of->outer / of->each;
    struct ls_cuda_sort sort = {(uint64_t)(lists * of->picks), (uint64_t)(lists * of->places)};
    return sort;
}

size_t ls_cuda_take_places_scratch(const struct ls_cuda_gather *of)
{
    const struct ls_cuda_sort sort = sort_of(of);
    return ls_cuda_sort_scratch(&sort);
}

__global__ void name_places(struct ls_cuda_gather of, uint32_t none, const float *index,
                            uint32_t *key, uint32_t *item, uint64_t n)
{
    for (LS_EACH(i, n)) {
        const int64_t place = place_named(index[i], of.places);
        key[i] = place < 0 ? none : (uint32_t)((int64_t)i / of.picks * of.places + place);
        item[i] = (uint32_t)i;
    }
}

__global__ void gather_backward(struct ls_cuda_gather of, const float *dy, const uint32_t *key,
                                const uint32_t *item, uint64_t n, float *dx)
{
    for (LS_EACH(i, of.outer * of.places * of.inner)) {
        const int64_t at = (int64_t)i, inner = at % of.inner, place = at / of.inner % of.places;
        const int64_t outer = at / of.inner / of.places;
        const uint32_t wanted = (uint32_t)(outer / of.each * of.places + place);
        double sum = 0;
        for (uint64_t s = ls_first_of_key(key, n, wanted); s < n && key[s] == wanted; s++)
            sum += (double)dy[(outer * of.picks + item[s] % of.picks) * of.inner + inner];
        dx[i] = (float)sum;
    }
}

int ls_cuda_take_places_backward(cudaStream_t stream, const struct ls_cuda_gather *of,
                                 const float *dy, const float *index, void *scratch, float *dx)
{
    const struct ls_cuda_gather by = *of;
    const struct ls_cuda_sort sort = sort_of(of);
    const struct ls_cuda_sorted sorted = ls_cuda_sorted_in(&sort, scratch);
    const uint32_t none = (uint32_t)sort.keys;
    const uint64_t n = sort.n;
    uint32_t *const key = sorted.key, *const item = sorted.item;
    int code =
        LS_LAUNCH(name_places, ls_blocks(n), LS_THREADS, stream, by, none, index, key, item, n);
    if (code == 0)
        code = ls_cuda_sort_items(stream, &sort, scratch);
    if (code != 0)
        return code;
    return LS_LAUNCH(gather_backward, ls_blocks((uint64_t)(by.outer * by.places * by.inner)),
                     LS_THREADS, stream, by, dy, (const uint32_t *)key, (const uint32_t *)item, n,
                     dx);
}

/* ---- Pad ------------------------------------------------------------------------------------- */

/* The place of x that is at place i of y along an axis; -1: none. */
__device__ static int64_t place_padded(const struct ls_cuda_pad *of, int axis, int64_t i)
{
    const int64_t extent = of->x[axis], place = i - of->before[axis];
    if (place >= 0 && place < extent)
        return place;
    if (of->reflect)
        return place < 0 ? -place : 2 * (extent - 1) - place;
    return !of->edge ? -1 : place < 0 ? 0 : extent - 1;
}

__device__ static int64_t size_along(const int64_t *extent, int rank)
{
    int64_t n = 1;
    for (int a = 0; a < rank; a++)
        n *= extent[a];
    return n;
}

template <typename T> __global__ void pad(struct ls_cuda_pad of, const T *x, T *y)
{
    for (LS_EACH(i, size_along(of.y, of.rank))) {
        int64_t left = (int64_t)i, place = 0, step = 1;
        for (int a = of.rank - 1; a >= 0; left /= of.y[a], step *= of.x[a--]) {
            const int64_t along = place_padded(&of, a, left % of.y[a]);
            place = along < 0 || place < 0 ? -1 : place + along * step;
        }
        y[i] = place < 0 ? (T)of.value : x[place];
    }
}

static uint64_t size_of(const int64_t *extent, int rank)
{
    uint64_t n = 1;
    for (int a = 0; a < rank; a++)
        n *= (uint64_t)extent[a];
    return n;
}

int ls_cuda_pad_places(cudaStream_t stream, const struct ls_cuda_pad *of, const void *x, void *y)
{
    const struct ls_cuda_pad by = *of;
    const unsigned blocks = ls_blocks(size_of(by.y, by.rank));
    if (by.bytes == 2)
        return LS_LAUNCH(pad<uint16_t>, blocks, LS_THREADS, stream, by, (const uint16_t *)x,
                         (uint16_t *)y);
    return LS_LAUNCH(pad<uint32_t>, blocks, LS_THREADS, stream, by, (const uint32_t *)x,
                     (uint32_t *)y);
}

/* The first place of y, from `from` on, along an axis that place p of x was put to; the axis's
 * extent if there is none. */
__device__ static int64_t next_copy(const struct ls_cuda_pad *of, int axis, int64_t p, int64_t from)
{
    const int64_t before = of->before[axis], last = of->x[axis] - 1, own = before + p;
    if (of->edge) {
        const int64_t first = p == 0 ? 0 : own, end = p == last ? of->y[axis] : own + 1;
        const int64_t at = from > first ? from : first;
        return at < end ? at : of->y[axis];
    }
    if (of->reflect && p > 0 && before - p >= from)
        return before - p;
    if (own >= from)
        return own;
    const int64_t mirrored = before + 2 * last - p;
    return of->reflect && p < last && mirrored >= from && mirrored < of->y[axis] ? mirrored
                                                                                 : of->y[axis];
}

/* Places of y that an element of x was put to, in their order: the last axis goes fastest. */
__global__ void pad_backward(struct ls_cuda_pad of, const float *dy, float *dx)
{
    for (LS_EACH(i, size_along(of.x, of.rank))) {
        int64_t p[LS_RANK_MAX], at[LS_RANK_MAX], left = (int64_t)i;
        double sum = 0;
        for (int a = of.rank - 1; a >= 0; left /= of.x[a--]) {
            p[a] = left % of.x[a];
            at[a] = next_copy(&of, a, p[a], 0);
        }
        for (int axis = 0; axis >= 0;) {
            int64_t place = 0;
            for (int a = 0; a < of.rank; a++)
                place = place * of.y[a] + at[a];
            sum += (double)dy[place];
            for (axis = of.rank - 1; axis >= 0; axis--) {
                at[axis] = next_copy(&of, axis, p[axis], at[axis] + 1);
                if (at[axis] < of.y[axis])
                    break;
                at[axis] = next_copy(&of, axis, p[axis], 0);
            }
        }
        dx[i] = (float)sum;
    }
}

int ls_cuda_pad_places_backward(cudaStream_t stream, const struct ls_cuda_pad *of, const float *dy,
                                float *dx)
{
    const struct ls_cuda_pad by = *of;
    return LS_LAUNCH(pad_backward, ls_blocks(size_of(by.x, by.rank)), LS_THREADS, stream, by, dy,
                     dx);
}

/* ---- Positions ------------------------------------------------------------------------------- */

__global__ void number_places(int64_t rows, int64_t places, int offset,
                              const struct ls_batch_numbers *numbers, const float *segment,
                              float *y)
{
    for (LS_EACH(i, rows * places)) {
        const int64_t at = (int64_t)i % places;
        const float *row = segment != NULL ? segment + (int64_t)i / places * places : NULL;
        int64_t begin = segment != NULL ? at : 0;
        while (begin > 0 && row[begin] == row[begin - 1])
            begin--;
        y[i] = (float)(offset + at - begin + (begin == 0 ? numbers->position : 0));
    }
}

int ls_cuda_positions(cudaStream_t stream, int64_t rows, int64_t places, int offset,
                      const struct ls_batch_numbers *numbers, const float *segment, float *y)
{
    return LS_LAUNCH(number_places, ls_blocks((uint64_t)(rows * places)), LS_THREADS, stream, rows,
                     places, offset, numbers, segment, y);
}
