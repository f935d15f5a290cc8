/* See elements.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/kernels/elements.h"

#include "base/philox.h"
#include "device/activation.h"
#include "ops/cuda/kernels/lanes.h"
#include "ops/cuda/kernels/numbers.h"

/* ---- Functions of one number ----------------------------------------------------------------- */

template <typename P>
__global__ void activate(struct ls_activation_attr attr, const typename P::number *x,
                         typename P::number *y, uint64_t packs)
{
    for (LS_EACH(i, packs)) {
        float number[P::WIDTH];
        ls_read(P(), x, i, number);
        for (int k = 0; k < P::WIDTH; k++)
            number[k] = ls_activation_number(&attr, number[k]);
        ls_write(P(), y, i, number);
    }
}

int ls_cuda_activation(cudaStream_t stream, const struct ls_activation_attr *attr, bool bf16,
                       const void *x, void *y, int64_t n)
{
    const struct ls_activation_attr by = *attr;
    return ls_by_pack(bf16, (uint64_t)n, (uintptr_t)x | (uintptr_t)y, [=](auto pack) {
        using P = decltype(pack);
        const uint64_t packs = (uint64_t)n / P::WIDTH;
        return LS_LAUNCH(activate<P>, ls_blocks(packs), LS_THREADS, stream, by,
                         (const typename P::number *)x, (typename P::number *)y, packs);
    });
}

template <typename P>
__global__ void activate_backward(struct ls_activation_attr attr, const typename P::number *dy,
                                  const typename P::number *given, typename P::number *dx,
                                  uint64_t packs)
{
    for (LS_EACH(i, packs)) {
        float slope[P::WIDTH], number[P::WIDTH];
        ls_read(P(), dy, i, slope);
        ls_read(P(), given, i, number);
        for (int k = 0; k < P::WIDTH; k++)
            slope[k] = ls_activation_slope(&attr, slope[k], number[k]);
        ls_write(P(), dx, i, slope);
    }
}

int ls_cuda_activation_backward(cudaStream_t stream, const struct ls_activation_attr *attr,
                                bool bf16, const void *dy, const void *given, void *dx, int64_t n)
{
    const struct ls_activation_attr by = *attr;
    const uintptr_t addresses = (uintptr_t)dy | (uintptr_t)given | (uintptr_t)dx;
    return ls_by_pack(bf16, (uint64_t)n, addresses, [=](auto pack) {
        using P = decltype(pack);
        typedef typename P::number T;
        const uint64_t packs = (uint64_t)n / P::WIDTH;
        return LS_LAUNCH(activate_backward<P>, ls_blocks(packs), LS_THREADS, stream, by,
                         (const T *)dy, (const T *)given, (T *)dx, packs);
    });
}

/* ---- Dropout --------------------------------------------------------------------------------- */

/* Elements in Caffe's order, in which they are counted, from where they lie. */
__device__ static uint64_t place_of(const struct ls_cuda_dropout *of, uint64_t i)
{
    const uint64_t channels = (uint64_t)of->channels, points = (uint64_t)of->points;
    if (!of->last)
        return i;
    return (i / channels / points * channels + i % channels) * points + i / channels % points;
}

/* Random numbers come four at a time. */
struct drawn {
    uint64_t ordinal, block;
    uint32_t number[4];
    bool any;
};

__device__ static uint32_t draw(struct drawn *drawn, uint64_t key, uint64_t ordinal,
                                uint64_t element)
{
    if (!drawn->any || drawn->ordinal != ordinal || drawn->block != element / 4) {
        drawn->any = true;
        drawn->ordinal = ordinal;
        drawn->block = element / 4;
        ls_philox_rounds(key, ordinal, drawn->block, drawn->number);
    }
    return drawn->number[element % 4];
}

template <typename P>
__global__ void drop(struct ls_cuda_dropout of, const struct ls_batch_numbers *numbers,
                     const typename P::number *x, const typename P::number *gate,
                     typename P::number *y, uint64_t packs)
{
    const float factor = (float)(1 / (1 - (double)of.ratio));
    const uint32_t least = (uint32_t)ceil((double)of.ratio * 0x1p32);
    const uint64_t first = (uint64_t)numbers->first_ordinal;
    const uint64_t run = (uint64_t)of.run, samples = (uint64_t)of.samples;
    for (LS_EACH(i, packs)) {
        float number[P::WIDTH], open[P::WIDTH];
        struct drawn drawn = {0, 0, {0, 0, 0, 0}, false};
        ls_read(P(), x, i, number);
        if (gate != NULL)
            ls_read(P(), gate, i, open);
        for (int k = 0; k < P::WIDTH; k++) {
            const uint64_t at = place_of(&of, i * P::WIDTH + (uint64_t)k);
            const float scaled = (float)((double)number[k] * (double)factor);
            const bool kept = gate != NULL ? open[k] > 0
                                           : draw(&drawn, of.key, first + at / run % samples,
                                                  at / run / samples * run + at % run) >= least;
            number[k] = kept ? scaled : 0.0F;
        }
        ls_write(P(), y, i, number);
    }
}

int ls_cuda_drop(cudaStream_t stream, const struct ls_cuda_dropout *of,
                 const struct ls_batch_numbers *numbers, const void *x, const void *gate, void *y)
{
    const struct ls_cuda_dropout by = *of;
    const uintptr_t addresses = (uintptr_t)x | (uintptr_t)gate | (uintptr_t)y;
    return ls_by_pack(by.bf16, (uint64_t)by.n, addresses, [=](auto pack) {
        using P = decltype(pack);
        typedef typename P::number T;
        const uint64_t packs = (uint64_t)by.n / P::WIDTH;
        return LS_LAUNCH(drop<P>, ls_blocks(packs), LS_THREADS, stream, by, numbers, (const T *)x,
                         (const T *)gate, (T *)y, packs);
    });
}

/* ---- Of several values ----------------------------------------------------------------------- */

__device__ static float combine_two(const struct ls_cuda_eltwise *of, int k, float s, float x)
{
    if (of->method == LS_ELTWISE_SUM)
        return s + (of->weighted ? of->coefficient[k] * x : x);
    return of->method == LS_ELTWISE_PROD ? s * x : ls_larger_number(s, x);
}

template <typename P>
__global__ void combine(struct ls_cuda_eltwise of, typename P::number *y, uint64_t packs)
{
    typedef const typename P::number *array;
    for (LS_EACH(i, packs)) {
        float s[P::WIDTH], x[P::WIDTH];
        ls_read(P(), (array)of.x[0], i, s);
        for (int e = 0; of.weighted && e < P::WIDTH; e++)
            s[e] *= of.coefficient[0];
        for (int k = 1; k < of.inputs; k++) {
            ls_read(P(), (array)of.x[k], i, x);
            for (int e = 0; e < P::WIDTH; e++)
                s[e] = combine_two(&of, k, s[e], x[e]);
        }
        if (of.gate != NULL)
            ls_read(P(), (array)of.gate, i, x);
        for (int e = 0; e < P::WIDTH; e++)
            s[e] = of.gate != NULL ? ls_through_relu(s[e], x[e], of.slope)
                   : of.relu       ? ls_relu_of(s[e], of.slope)
                                   : s[e];
        ls_write(P(), y, i, s);
    }
}

static uintptr_t addresses_of(const struct ls_cuda_eltwise *of)
{
    uintptr_t all = (uintptr_t)of->gate;
    for (int k = 0; k < of->inputs; k++)
        all |= (uintptr_t)of->x[k];
    return all;
}

int ls_cuda_combine(cudaStream_t stream, const struct ls_cuda_eltwise *of, void *y, int64_t n)
{
    const struct ls_cuda_eltwise by = *of;
    const uintptr_t addresses = addresses_of(&by) | (uintptr_t)y;
    return ls_by_pack(by.bf16, (uint64_t)n, addresses, [=](auto pack) {
        using P = decltype(pack);
        const uint64_t packs = (uint64_t)n / P::WIDTH;
        return LS_LAUNCH(combine<P>, ls_blocks(packs), LS_THREADS, stream, by,
                         (typename P::number *)y, packs);
    });
}

/* Of equal inputs the second is the maximum rather than the first, and any of these two rather than
 * a later one. */
template <typename P>
__device__ static void find_largest(const struct ls_cuda_eltwise *of, uint64_t i,
                                    int winner[P::WIDTH])
{
    typedef const typename P::number *array;
    float best[P::WIDTH], x[P::WIDTH];
    const int first = of->inputs > 1 ? 1 : 0;
    ls_read(P(), (array)of->x[first], i, best);
    for (int e = 0; e < P::WIDTH; e++)
        winner[e] = first;
    for (int k = 0; k < of->inputs; k++) {
        ls_read(P(), (array)of->x[k], i, x);
        for (int e = 0; e < P::WIDTH; e++)
            if (k != 1 && x[e] > best[e]) {
                winner[e] = k;
                best[e] = x[e];
            }
    }
}

/* The product of all inputs but one. */
template <typename P>
__device__ static void find_others(const struct ls_cuda_eltwise *of, uint64_t i,
                                   float others[P::WIDTH])
{
    float x[P::WIDTH];
    for (int e = 0; e < P::WIDTH; e++)
        others[e] = 1;
    for (int k = 0; k < of->inputs; k++) {
        if (k == of->which)
            continue;
        ls_read(P(), (const typename P::number *)of->x[k], i, x);
        for (int e = 0; e < P::WIDTH; e++)
            others[e] *= x[e];
    }
}

template <typename P>
__global__ void combine_backward(struct ls_cuda_eltwise of, const typename P::number *dy,
                                 typename P::number *dx, uint64_t packs)
{
    const double factor = of.weighted ? (double)of.coefficient[of.which] : 1;
    for (LS_EACH(i, packs)) {
        float slope[P::WIDTH], others[P::WIDTH];
        int winner[P::WIDTH];
        ls_read(P(), dy, i, slope);
        if (of.method == LS_ELTWISE_PROD)
            find_others<P>(&of, i, others);
        if (of.method == LS_ELTWISE_MAX)
            find_largest<P>(&of, i, winner);
        for (int e = 0; e < P::WIDTH; e++) {
            if (of.method == LS_ELTWISE_PROD)
                slope[e] = others[e] * slope[e];
            else if (of.method == LS_ELTWISE_MAX && winner[e] != of.which)
                slope[e] = 0;
            else
                slope[e] = (float)(factor * (double)slope[e]);
        }
        ls_write(P(), dx, i, slope);
    }
}

int ls_cuda_combine_backward(cudaStream_t stream, const struct ls_cuda_eltwise *of, const void *dy,
                             void *dx, int64_t n)
{
    const struct ls_cuda_eltwise by = *of;
    const uintptr_t addresses = addresses_of(&by) | (uintptr_t)dy | (uintptr_t)dx;
    return ls_by_pack(by.bf16, (uint64_t)n, addresses, [=](auto pack) {
        using P = decltype(pack);
        typedef typename P::number T;
        const uint64_t packs = (uint64_t)n / P::WIDTH;
        return LS_LAUNCH(combine_backward<P>, ls_blocks(packs), LS_THREADS, stream, by,
                         (const T *)dy, (T *)dx, packs);
    });
}

/* ---- Parts ----------------------------------------------------------------------------------- */

__device__ static uint64_t place_in_whole(const struct ls_cuda_part *of, uint64_t i)
{
    uint64_t place = 0, step = 1;
    for (int a = of->rank - 1; a >= 0; step *= (uint64_t)of->whole[a--]) {
        place += (i % (uint64_t)of->part[a] + (uint64_t)of->offset[a]) * step;
        i /= (uint64_t)of->part[a];
    }
    return place;
}

__device__ static uint64_t part_size(const struct ls_cuda_part *of)
{
    uint64_t n = 1;
    for (int a = 0; a < of->rank; a++)
        n *= (uint64_t)of->part[a];
    return n;
}

template <typename T>
__global__ void move_part(struct ls_cuda_part of, bool take, T *whole, T *part)
{
    for (LS_EACH(i, part_size(&of))) {
        T *there = &whole[place_in_whole(&of, i)];
        *(take ? &part[i] : there) = *(take ? there : &part[i]);
    }
}

/* Axes of which the part has all belong to the axis in front of them. */
static struct ls_cuda_part merge_axes(const struct ls_cuda_part *of)
{
    struct ls_cuda_part to = *of;
    to.rank = 1;
    for (int a = 1; a < of->rank; a++) {
        const bool whole = of->part[a] == of->whole[a];
        const int at = whole ? to.rank - 1 : to.rank++;
        to.whole[at] = whole ? to.whole[at] * of->whole[a] : of->whole[a];
        to.part[at] = whole ? to.part[at] * of->part[a] : of->part[a];
        to.offset[at] = whole ? to.offset[at] * of->whole[a] : of->offset[a];
    }
    return to;
}

/* Elements of 16 bytes, where runs of the last axis are made of them; false: they are not. */
static bool widen_elements(struct ls_cuda_part *of, const void *whole, const void *part)
{
    const int last = of->rank - 1, count = 16 / of->bytes;
    if (((uintptr_t)whole | (uintptr_t)part) % 16 != 0 || of->whole[last] % count != 0 ||
        of->part[last] % count != 0 || of->offset[last] % count != 0)
        return false;
    of->whole[last] /= count;
    of->part[last] /= count;
    of->offset[last] /= count;
    return true;
}

template <typename T>
static int give_elements(cudaStream_t stream, const struct ls_cuda_part *of, bool take, void *whole,
                         void *part)
{
    const struct ls_cuda_part by = *of;
    uint64_t n = 1;
    for (int a = 0; a < by.rank; a++)
        n *= (uint64_t)by.part[a];
    return n == 0 ? 0
                  : LS_LAUNCH(move_part<T>, ls_blocks(n), LS_THREADS, stream, by, take, (T *)whole,
                              (T *)part);
}

static int give_part(cudaStream_t stream, const struct ls_cuda_part *of, bool take, void *whole,
                     void *part)
{
    struct ls_cuda_part by = merge_axes(of);
    if (widen_elements(&by, whole, part))
        return give_elements<ls_packed<uint32_t, 4>>(stream, &by, take, whole, part);
    if (by.bytes == 2)
        return give_elements<uint16_t>(stream, &by, take, whole, part);
    return give_elements<uint32_t>(stream, &by, take, whole, part);
}

int ls_cuda_take_part(cudaStream_t stream, const struct ls_cuda_part *of, const void *whole,
                      void *part)
{
    return give_part(stream, of, true, (void *)whole, part);
}

int ls_cuda_put_part(cudaStream_t stream, const struct ls_cuda_part *of, const void *part,
                     void *whole)
{
    return give_part(stream, of, false, whole, (void *)part);
}

template <typename T>
__global__ void sum_tiles(int64_t outer, int64_t tiles, int64_t run, const T *dy, T *dx)
{
    for (LS_EACH(i, outer * run)) {
        const int64_t first = (int64_t)i / run * tiles * run + (int64_t)i % run;
        double sum = (double)ls_number(dy[first]);
        for (int64_t t = 1; t < tiles; t++)
            sum += (double)ls_number(dy[first + t * run]);
        ls_put(&dx[i], (float)sum);
    }
}

int ls_cuda_tile_backward(cudaStream_t stream, bool bf16, int64_t outer, int64_t tiles, int64_t run,
                          const void *dy, void *dx)
{
    return ls_by_type(bf16, [=](auto number) {
        using T = decltype(number);
        return LS_LAUNCH(sum_tiles<T>, ls_blocks((uint64_t)(outer * run)), LS_THREADS, stream,
                         outer, tiles, run, (const T *)dy, (T *)dx);
    });
}
