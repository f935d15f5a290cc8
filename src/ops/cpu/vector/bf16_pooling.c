/* See bf16_pooling.h.
 *
 * A register holds 32 numbers of a row. With steps of 2 its words are pairs of columns, of which
 * the lower half is one column of each of 16 windows, and the upper half the next one; with steps
 * of 1 words are made of 16 numbers.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/bf16_pooling.h"

#include "ops/cpu/vector/registers.h"

#if LS_ISA_IS(AVX512)

#include <float.h>

enum { KERNEL_MAX = 8, CHUNKS_MAX = 1024 / WIDTH };

/* ---- Numbers --------------------------------------------------------------------------------- */

/* The first `count` bits, of at most 32. */
static inline uint32_t first_of(int64_t count)
{
    return count >= 32 ? UINT32_MAX : count <= 0 ? 0 : (UINT32_C(1) << count) - 1;
}

/* Bits [begin, end). */
static inline uint32_t between(int64_t begin, int64_t end)
{
    return first_of(end) & ~first_of(begin);
}

/* Every second bit, from the first one on. */
static inline __mmask16 seconds(uint32_t bits)
{
    uint32_t x = bits & 0x55555555;
    x = (x | x >> 1) & 0x33333333;
    x = (x | x >> 2) & 0x0f0f0f0f;
    x = (x | x >> 4) & 0x00ff00ff;
    return (__mmask16)(x | x >> 8);
}

static inline __m512 lower(__m512i words)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(words, 16));
}

static inline __m512 upper(__m512i words)
{
    return _mm512_castsi512_ps(_mm512_and_si512(words, _mm512_set1_epi32((int)0xffff0000U)));
}

static inline __m512i words_of(__m256i numbers)
{
    return _mm512_cvtepu16_epi32(numbers);
}

/* bf16 in the upper halves of words; what is below is of no use. */
static inline __m512i rounded(__m512 x)
{
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i last = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i up = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), last);
    const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
    return _mm512_mask_mov_epi32(up, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), quiet);
}

static inline void store_rounded(uint16_t *to, __mmask16 some, __m512 x)
{
    const __m512i words = _mm512_srli_epi32(rounded(x), 16);
    _mm256_mask_storeu_epi16(to, some, _mm512_cvtepi32_epi16(words));
}

static inline __m512i counting(void)
{
    return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}

/* 1 / (outer * extent) where that is a number of elements, else 0. */
static inline __m512 factors(int64_t outer, const int32_t *extent, __mmask16 some)
{
    const __m512i own = _mm512_maskz_loadu_epi32(some, extent);
    const __m512i all = _mm512_mullo_epi32(own, _mm512_set1_epi32((int)outer));
    const __mmask16 there = _mm512_cmpgt_epi32_mask(all, _mm512_setzero_si512());
    return _mm512_maskz_div_ps(there, _mm512_set1_ps(1), _mm512_cvtepi32_ps(all));
}

static inline int64_t outer_extent(const struct ls_windows *windows, int64_t od, int64_t oh)
{
    const int64_t depth = windows->axis[0].extent[od], height = windows->axis[1].extent[oh];
    return depth > 0 && height > 0 ? depth * height : 0;
}

/* ---- Windows --------------------------------------------------------------------------------- */

/* What 16 windows of a row meet at columns k and, with steps of 2, k + 1 of theirs. */
struct column {
    int64_t from; /* of the first window, within the row of x */
    uint32_t there;
    __mmask16 low, high; /* windows that meet something at k, at k + 1 */
};

struct chunk {
    int64_t first; /* window */
    __mmask16 some;
    struct column column[KERNEL_MAX];
};

/* Cuts a row of windows; returns how many chunks. */
static int64_t cut(const struct ls_pooling_axis *width, int stride, struct chunk *chunk)
{
    int64_t chunks = 0;
    for (int64_t first = 0; first < width->out; first += WIDTH, chunks++) {
        chunk[chunks].first = first;
        chunk[chunks].some =
            (__mmask16)first_of(width->out - first < WIDTH ? width->out - first : WIDTH);
        for (int64_t k = 0; k < width->kernel; k += stride) {
            struct column *column = &chunk[chunks].column[k / stride];
            column->from = first * stride - width->pad + k;
            column->there = between(-column->from, width->in - column->from);
            column->low = stride == 1 ? (__mmask16)column->there : seconds(column->there);
            column->high = stride == 1 || k + 1 == width->kernel ? 0 : seconds(column->there >> 1);
        }
    }
    return chunks;
}

INLINE __m512i load_column(const struct column *column, const uint16_t *row, int stride)
{
    if (stride == 1)
        return words_of(_mm256_maskz_loadu_epi16((__mmask16)column->there, row + column->from));
    return _mm512_maskz_loadu_epi16(column->there, row + column->from);
}

struct found {
    __m512 best;
    __m512i at;
};

INLINE void challenge(__mmask16 there, __m512 value, int64_t place, struct found *found,
                      bool indexed)
{
    const __mmask16 wins = _mm512_mask_cmp_ps_mask(there, value, found->best, _CMP_GT_OQ);
    found->best = _mm512_mask_mov_ps(found->best, wins, value);
    if (indexed)
        found->at = _mm512_mask_set1_epi32(found->at, wins, (int)place);
}

/* The maxima of a chunk of windows; places are relative to where a window's row begins. `kernel` is
 * the width of windows. */
INLINE void find_chunk(const struct ls_windows *windows, const struct chunk *chunk, int64_t od,
                       int64_t oh, const uint16_t *x, uint16_t *y, int32_t *index, int stride,
                       int64_t kernel, bool indexed)
{
    const struct ls_pooling_axis *depth = &windows->axis[0], *height = &windows->axis[1];
    const struct ls_pooling_axis *width = &windows->axis[2];
    const __m512i begin =
        _mm512_add_epi32(_mm512_mullo_epi32(counting(), _mm512_set1_epi32(stride)),
                         _mm512_set1_epi32((int)(chunk->first * stride - width->pad)));
    struct found found = {.best = SPREAD(-FLT_MAX),
                          .at = _mm512_xor_si512(begin, _mm512_set1_epi32(-1))};
    for (int64_t d = depth->begin[od]; d < depth->end[od]; d++)
        for (int64_t h = height->begin[oh]; h < height->end[oh]; h++) {
            const int64_t place = (d * height->in + h) * width->in;
            UNROLL
            for (int64_t k = 0; k < kernel; k += stride) {
                const struct column *column = &chunk->column[k / stride];
                const __m512i words = load_column(column, x + place, stride);
                challenge(column->low, lower(words), place + k, &found, indexed);
                if (stride == 2 && k + 1 < kernel)
                    challenge(column->high, upper(words), place + k + 1, &found, indexed);
            }
        }
    store_rounded(y + chunk->first, chunk->some, found.best);
    if (indexed)
        _mm512_mask_storeu_epi32(index + chunk->first, chunk->some,
                                 _mm512_add_epi32(found.at, begin));
}

/* The averages. */
INLINE void add_chunk(const struct ls_windows *windows, const struct chunk *chunk, int64_t od,
                      int64_t oh, const uint16_t *x, uint16_t *y, int stride, int64_t kernel)
{
    const struct ls_pooling_axis *depth = &windows->axis[0], *height = &windows->axis[1];
    const struct ls_pooling_axis *width = &windows->axis[2];
    __m512 sum = ZERO();
    for (int64_t d = depth->begin[od]; d < depth->end[od]; d++)
        for (int64_t h = height->begin[oh]; h < height->end[oh]; h++) {
            const uint16_t *row = x + (d * height->in + h) * width->in;
            UNROLL
            for (int64_t k = 0; k < kernel; k += stride) {
                const struct column *column = &chunk->column[k / stride];
                const __m512i words = load_column(column, row, stride);
                sum = _mm512_mask_add_ps(sum, column->low, sum, lower(words));
                if (stride == 2 && k + 1 < kernel)
                    sum = _mm512_mask_add_ps(sum, column->high, sum, upper(words));
            }
        }
    const __m512 factor =
        factors(outer_extent(windows, od, oh), width->extent + chunk->first, chunk->some);
    store_rounded(y + chunk->first, chunk->some, _mm512_mul_ps(sum, factor));
}

enum task { MAX, MAX_INDEXED, AVERAGE };

INLINE void walk(enum task task, const struct ls_windows *windows, const uint16_t *x, uint16_t *y,
                 int32_t *index, int stride, int64_t kernel)
{
    const struct ls_pooling_axis *axis = windows->axis;
    struct chunk chunk[CHUNKS_MAX];
    const int64_t chunks = cut(&axis[2], stride, chunk);
    for (int64_t p = 0; p < windows->planes; p++, x += axis[0].in * axis[1].in * axis[2].in)
        for (int64_t od = 0; od < axis[0].out; od++)
            for (int64_t oh = 0; oh < axis[1].out; oh++) {
                for (int64_t c = 0; c < chunks; c++)
                    if (task == AVERAGE)
                        add_chunk(windows, &chunk[c], od, oh, x, y, stride, kernel);
                    else
                        find_chunk(windows, &chunk[c], od, oh, x, y, index, stride, kernel,
                                   task == MAX_INDEXED);
                y += axis[2].out;
                index = task == MAX_INDEXED ? index + axis[2].out : NULL;
            }
}

/* The usual windows have loops of their own. */
INLINE void walk_any(enum task task, const struct ls_windows *windows, const uint16_t *x,
                     uint16_t *y, int32_t *index)
{
    const int64_t stride = windows->axis[2].stride, kernel = windows->axis[2].kernel;
    if (stride == 2 && kernel == 2)
        walk(task, windows, x, y, index, 2, 2);
    else if (stride == 2 && kernel == 3)
        walk(task, windows, x, y, index, 2, 3);
    else if (stride == 2)
        walk(task, windows, x, y, index, 2, kernel);
    else
        walk(task, windows, x, y, index, 1, kernel);
}

static void maximum(const struct ls_windows *windows, const uint16_t *x, uint16_t *y,
                    int32_t *index)
{
    if (index != NULL)
        walk_any(MAX_INDEXED, windows, x, y, index);
    else
        walk_any(MAX, windows, x, y, NULL);
}

static void average(const struct ls_windows *windows, const uint16_t *x, uint16_t *y)
{
    walk_any(AVERAGE, windows, x, y, NULL);
}

/* ---- Gradients ------------------------------------------------------------------------------- */

/* The windows [begin, end) along an axis that cover a position. */
struct span {
    int32_t begin, end;
};

static void fill_spans(const struct ls_pooling_axis *axis, struct span *span)
{
    for (int64_t at = 0; at < axis->in; at++) {
        const int64_t behind = (at + axis->pad) / axis->stride + 1;
        const int64_t before = at + axis->pad - axis->kernel;
        span[at].begin = (int32_t)(before < 0 ? 0 : before / axis->stride + 1);
        span[at].end = (int32_t)(behind < axis->out ? behind : axis->out);
    }
}

/* Windows that cover inputs of a chunk, one each: those `further` than the inputs in units of the
 * stride, which cover even ones, or odd ones, or both. */
struct cover {
    int64_t further;
    __mmask16 there, even, odd;
};

enum { COVERS_MAX = KERNEL_MAX + 1, SPANS_MAX = 1024 };

/* What is the same for all rows of all planes. */
struct covers {
    struct cover cover[CHUNKS_MAX][COVERS_MAX];
    int64_t count;
    struct span depth[SPANS_MAX], height[SPANS_MAX];
};

static void fill_covers(const struct ls_windows *windows, struct covers *covers)
{
    const struct ls_pooling_axis *width = &windows->axis[2];
    const int64_t stride = width->stride, reach = width->pad + stride - 1;
    const int64_t least = width->pad - width->kernel + 1;
    const int64_t begin = least > 0 ? (least + stride - 1) / stride : -(-least / stride);
    covers->count = reach / stride - begin + 1;
    for (int64_t w = 0, c = 0; w < width->in; w += WIDTH * stride, c++)
        for (int64_t i = 0; i < covers->count; i++) {
            const int64_t further = begin + i, k = width->pad - stride * further;
            const int64_t o = w / stride + further;
            const __mmask16 there = (__mmask16)between(-o, width->out - o);
            covers->cover[c][i] =
                (struct cover){.further = o,
                               .there = there,
                               .even = k >= 0 && k < width->kernel ? there : 0,
                               .odd = k + 1 >= 0 && k + 1 < width->kernel ? there : 0};
        }
    fill_spans(&windows->axis[0], covers->depth);
    fill_spans(&windows->axis[1], covers->height);
}

/* Sums of 16 inputs, or of 16 even and 16 odd ones. */
struct gradient {
    __m512i place; /* of the even ones, in their plane */
    __m512 even, odd;
};

/* What comes from a row of windows: of `dy`, where `index` names the input, or all of `share`. */
INLINE void add_row(const struct cover *cover, int64_t count, const uint16_t *dy,
                    const int32_t *index, const float *share, struct gradient *gradient, int stride)
{
    for (int64_t i = 0; i < count; i++, cover++) {
        const int64_t o = cover->further;
        if (share != NULL) {
            const __m512 part = _mm512_maskz_loadu_ps(cover->there, share + o);
            gradient->even = _mm512_mask_add_ps(gradient->even, cover->even, gradient->even, part);
            if (stride == 2)
                gradient->odd = _mm512_mask_add_ps(gradient->odd, cover->odd, gradient->odd, part);
            continue;
        }
        const __m512 part = lower(words_of(_mm256_maskz_loadu_epi16(cover->there, dy + o)));
        const __m512i winner = _mm512_maskz_loadu_epi32(cover->there, index + o);
        const __m512i next = _mm512_add_epi32(gradient->place, _mm512_set1_epi32(1));
        const __mmask16 here = _mm512_mask_cmpeq_epi32_mask(cover->even, winner, gradient->place);
        const __mmask16 behind = _mm512_mask_cmpeq_epi32_mask(cover->odd, winner, next);
        gradient->even = _mm512_mask_add_ps(gradient->even, here, gradient->even, part);
        if (stride == 2)
            gradient->odd = _mm512_mask_add_ps(gradient->odd, behind, gradient->odd, part);
    }
}

INLINE void store_gradient(const struct gradient *gradient, int64_t left, uint16_t *to, int stride)
{
    if (stride == 1) {
        store_rounded(to, (__mmask16)first_of(left < WIDTH ? left : WIDTH), gradient->even);
        return;
    }
    const __m512i low = _mm512_srli_epi32(rounded(gradient->even), 16);
    const __m512i words = _mm512_mask_blend_epi16(0xaaaaaaaa, low, rounded(gradient->odd));
    _mm512_mask_storeu_epi16(to, first_of(left), words);
}

/* A row of inputs of a plane, from the windows that cover it, in their order. */
INLINE void row_backward(const struct ls_windows *windows, const struct covers *covers, int64_t d,
                         int64_t h, const uint16_t *dy, const int32_t *index, const float *share,
                         uint16_t *dx, int stride)
{
    const struct ls_pooling_axis *axis = windows->axis, *width = &axis[2];
    const struct span depth = covers->depth[d], height = covers->height[h];
    const int64_t row = (d * axis[1].in + h) * width->in;
    const __m512i lanes = _mm512_mullo_epi32(counting(), _mm512_set1_epi32(stride));
    for (int64_t w = 0, c = 0; w < width->in; w += (int64_t)WIDTH * stride, c++) {
        struct gradient gradient = {.place =
                                        _mm512_add_epi32(lanes, _mm512_set1_epi32((int)(row + w))),
                                    .even = ZERO(),
                                    .odd = ZERO()};
        for (int64_t od = depth.begin; od < depth.end; od++)
            for (int64_t oh = height.begin; oh < height.end; oh++) {
                const int64_t from = (od * axis[1].out + oh) * width->out;
                if (share != NULL)
                    add_row(covers->cover[c], covers->count, NULL, NULL, share + from, &gradient,
                            stride);
                else
                    add_row(covers->cover[c], covers->count, dy + from, index + from, NULL,
                            &gradient, stride);
            }
        store_gradient(&gradient, width->in - w, dx + row + w, stride);
    }
}

INLINE void plane_backward(const struct ls_windows *windows, const struct covers *covers,
                           const uint16_t *dy, const int32_t *index, const float *share,
                           uint16_t *dx, int stride)
{
    for (int64_t d = 0; d < windows->axis[0].in; d++)
        for (int64_t h = 0; h < windows->axis[1].in; h++)
            row_backward(windows, covers, d, h, dy, index, share, dx, stride);
}

/* Windows of 2 x 2 side by side: a row of windows gives two rows of inputs. */
static bool side_by_side(const struct ls_windows *windows)
{
    const struct ls_pooling_axis *axis = windows->axis;
    bool found = axis[0].in == 1 && axis[0].out == 1;
    for (int i = 1; i < 3; i++)
        found = found && axis[i].kernel == 2 && axis[i].stride == 2 && axis[i].pad == 0 &&
                axis[i].in == 2 * axis[i].out;
    return found;
}

static void pairs_backward(const struct ls_windows *windows, const uint16_t *dy,
                           const int32_t *index, uint16_t *dx)
{
    const int64_t out = windows->axis[2].out, in = 2 * out;
    const __m512i lanes = _mm512_slli_epi32(counting(), 1), one = _mm512_set1_epi32(1);
    for (int64_t row = 0; row < windows->axis[1].out; row++, dy += out, index += out, dx += 2 * in)
        for (int64_t o = 0; o < out; o += WIDTH) {
            const __mmask16 some = (__mmask16)between(0, out - o);
            const __m512 x = lower(words_of(_mm256_maskz_loadu_epi16(some, dy + o)));
            const __m512i winner = _mm512_mask_loadu_epi32(_mm512_set1_epi32(-1), some, index + o);
            __m512i place = _mm512_add_epi32(lanes, _mm512_set1_epi32((int)(2 * row * in + 2 * o)));
            const __m512i part = rounded(ADD(ZERO(), x)); /* not -0, as in a sum */
            UNROLL
            for (int r = 0; r < 2; r++) {
                const __mmask16 even = _mm512_cmpeq_epi32_mask(winner, place);
                const __mmask16 odd = _mm512_cmpeq_epi32_mask(winner, _mm512_add_epi32(place, one));
                const __m512i low = _mm512_maskz_srli_epi32(even, part, 16);
                const __m512i words =
                    _mm512_mask_blend_epi16(0xaaaaaaaa, low, _mm512_maskz_mov_epi32(odd, part));
                _mm512_mask_storeu_epi16(dx + r * in + 2 * o, first_of(2 * (out - o)), words);
                place = _mm512_add_epi32(place, _mm512_set1_epi32((int)in));
            }
        }
}

static void maximum_backward(const struct ls_windows *windows, const uint16_t *dy,
                             const int32_t *index, uint16_t *dx)
{
    const struct ls_pooling_axis *axis = windows->axis;
    const int64_t in = axis[0].in * axis[1].in * axis[2].in;
    const int64_t out = axis[0].out * axis[1].out * axis[2].out;
    struct covers covers;
    const bool pairs = side_by_side(windows);
    fill_covers(windows, &covers);
    for (int64_t p = 0; p < windows->planes; p++, dy += out, index += out, dx += in)
        if (pairs)
            pairs_backward(windows, dy, index, dx);
        else if (axis[2].stride == 2)
            plane_backward(windows, &covers, dy, index, NULL, dx, 2);
        else
            plane_backward(windows, &covers, dy, index, NULL, dx, 1);
}

/* What each window of a plane gives to each of its inputs. */
static void find_shares(const struct ls_windows *windows, const uint16_t *dy, float *share)
{
    const struct ls_pooling_axis *axis = windows->axis;
    for (int64_t od = 0; od < axis[0].out; od++)
        for (int64_t oh = 0; oh < axis[1].out; oh++) {
            const int64_t outer = outer_extent(windows, od, oh);
            for (int64_t o = 0; o < axis[2].out; o += WIDTH) {
                const __mmask16 some = (__mmask16)between(0, axis[2].out - o);
                const __m512 x = lower(words_of(_mm256_maskz_loadu_epi16(some, dy + o)));
                const __m512 factor = factors(outer, axis[2].extent + o, some);
                _mm512_mask_storeu_ps(share + o, some, _mm512_mul_ps(x, factor));
            }
            dy += axis[2].out;
            share += axis[2].out;
        }
}

static void average_backward(const struct ls_windows *windows, const uint16_t *dy, uint16_t *dx,
                             float *share)
{
    const struct ls_pooling_axis *axis = windows->axis;
    const int64_t in = axis[0].in * axis[1].in * axis[2].in;
    const int64_t out = axis[0].out * axis[1].out * axis[2].out;
    struct covers covers;
    fill_covers(windows, &covers);
    for (int64_t p = 0; p < windows->planes; p++, dy += out, dx += in) {
        find_shares(windows, dy, share);
        if (axis[2].stride == 2)
            plane_backward(windows, &covers, NULL, NULL, share, dx, 2);
        else
            plane_backward(windows, &covers, NULL, NULL, share, dx, 1);
    }
}

const struct ls_vector_bf16_pooling LS_ISA_NAME(ls_vector_bf16_pooling) = {
    .maximum = maximum,
    .average = average,
    .maximum_backward = maximum_backward,
    .average_backward = average_backward,
};

#else

const struct ls_vector_bf16_pooling LS_ISA_NAME(ls_vector_bf16_pooling) = {0};

#endif
