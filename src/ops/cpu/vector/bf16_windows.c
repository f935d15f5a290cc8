/* Copying of bf16 or fp32 numbers into rows. See bf16_windows.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/bf16_windows.h"

#include "ops/cpu/vector/registers.h"

#if LS_ISA_IS(AVX512)

enum { HALVES = 32, PIECES_MAX = 256 }; /* elements of a register; pieces that go together */

/* Up to a register's elements of a row. */
struct piece {
    int64_t from;              /* element 0, whether it is there or not */
    __mmask32 low, high, most; /* what is read of a register, of the next one; what is written */
    int32_t to;
};

static inline __mmask32 first_of(int64_t count)
{
    return count >= HALVES ? UINT32_MAX : count <= 0 ? 0 : (UINT32_C(1) << count) - 1;
}

static inline __mmask32 between(int64_t begin, int64_t end)
{
    return first_of(end) & ~first_of(begin);
}

/* The piece of a run from element `at` on. What it writes behind its end the next one overwrites,
 * or it lies behind the row, where anything may be written up to `width`. */
static inline struct piece piece_of(const struct ls_bf16_run *run, int64_t at, int64_t step,
                                    size_t width)
{
    const int64_t length = run->head + run->count + run->tail;
    const int64_t begin = step * (run->head - at), end = begin + step * (run->count - 1) + 1;
    const bool fits = (size_t)(run->to + at) + HALVES <= width;
    return (struct piece){.from = run->from - begin,
                          .low = between(begin, end),
                          .high = between(begin - HALVES, end - HALVES),
                          .most = fits ? UINT32_MAX : first_of(length - at),
                          .to = (int32_t)(run->to + at)};
}

/* One piece of every row: masks stay in registers. */
static void copy_piece(const struct piece *piece, const uint16_t *data, int64_t plane, size_t rows,
                       uint16_t *to, size_t pitch)
{
    const __mmask32 low = piece->low, most = piece->most;
    data += piece->from;
    to += piece->to;
    if (most == UINT32_MAX)
        for (size_t row = 0; row < rows; row++, data += plane, to += pitch)
            _mm512_storeu_si512(to, _mm512_maskz_loadu_epi16(low, data));
    else
        for (size_t row = 0; row < rows; row++, data += plane, to += pitch)
            _mm512_mask_storeu_epi16(to, most, _mm512_maskz_loadu_epi16(low, data));
}

/* The same of every second number. */
static void copy_seconds(const struct piece *piece, const uint16_t *data, int64_t plane,
                         size_t rows, uint16_t *to, size_t pitch)
{
    const __m512i even =
        _mm512_set_epi16(62, 60, 58, 56, 54, 52, 50, 48, 46, 44, 42, 40, 38, 36, 34, 32, 30, 28, 26,
                         24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    data += piece->from;
    to += piece->to;
    for (size_t row = 0; row < rows; row++, data += plane, to += pitch) {
        const __m512i low = _mm512_maskz_loadu_epi16(piece->low, data);
        const __m512i high = _mm512_maskz_loadu_epi16(piece->high, data + HALVES);
        _mm512_mask_storeu_epi16(to, piece->most, _mm512_permutex2var_epi16(low, even, high));
    }
}

#endif

static inline void copy_run(const struct ls_bf16_run *run, const uint16_t *data, int64_t step,
                            uint16_t *to)
{
    const int64_t length = run->head + run->count + run->tail;
    uint16_t *next = to + run->to, *const end = next + length;
    for (int32_t i = 0; i < run->head; i++)
        *next++ = 0;
    const uint16_t *from = data + run->from;
    if (step == 1)
        memcpy(next, from, (size_t)run->count * sizeof *next);
    else
        for (int32_t i = 0; i < run->count; i++)
            next[i] = from[i * step];
    for (next += run->count; next < end; next++)
        *next = 0;
}

static void copy(const struct ls_bf16_run *run, size_t runs, const uint16_t *data, int64_t plane,
                 int64_t step, size_t rows, uint16_t *to, size_t pitch, size_t width)
{
#if LS_ISA_IS(AVX512)
    if (step <= 2) {
        for (; runs > 0; runs--, run++) {
            const int64_t length = run->head + run->count + run->tail;
            for (int64_t at = 0; at < length; at += HALVES) {
                const struct piece piece = piece_of(run, at, step, width);
                if (step == 1)
                    copy_piece(&piece, data, plane, rows, to, pitch);
                else
                    copy_seconds(&piece, data, plane, rows, to, pitch);
            }
        }
        return;
    }
#endif
    (void)width;
    for (size_t row = 0; row < rows; row++, data += plane, to += pitch)
        for (size_t r = 0; r < runs; r++)
            copy_run(&run[r], data, step, to);
}

/* ---- Of fp32 numbers ------------------------------------------------------------------------- */

static inline void copy_float_run(const struct ls_bf16_run *run, const float *data, int64_t step,
                                  float *to)
{
    float *next = to + run->to;
    for (int32_t i = 0; i < run->head; i++)
        *next++ = 0;
    const float *from = data + run->from;
    if (step == 1)
        for (int32_t i = 0; i < run->count; i++)
            next[i] = from[i];
    else
        for (int32_t i = 0; i < run->count; i++)
            next[i] = from[i * step];
    next += run->count;
    for (int32_t i = 0; i < run->tail; i++)
        *next++ = 0;
}

#if LS_ISA_IS(AVX512)

/* Up to a register's elements of a row: what is read, and what is written. */
struct float_piece {
    int64_t from; /* element 0, whether it is there or not */
    __mmask16 there, most;
    int32_t to;
};

static inline __mmask16 floats_before(int64_t count)
{
    return (__mmask16)(count >= WIDTH ? 0xffff : count <= 0 ? 0 : (1U << count) - 1);
}

static inline void copy_float_pieces(const struct float_piece *piece, size_t pieces,
                                     const float *data, int64_t plane, size_t rows, float *to,
                                     size_t pitch)
{
    for (size_t row = 0; row < rows; row++, data += plane, to += pitch)
        for (size_t i = 0; i < pieces; i++)
            _mm512_mask_storeu_ps(to + piece[i].to, piece[i].most,
                                  _mm512_maskz_loadu_ps(piece[i].there, data + piece[i].from));
}

static inline void copy_float_runs(const struct ls_bf16_run *run, size_t runs, const float *data,
                                   int64_t plane, size_t rows, float *to, size_t pitch)
{
    struct float_piece piece[PIECES_MAX];
    size_t pieces = 0;
    for (; runs > 0; runs--, run++) {
        const int64_t length = run->head + run->count + run->tail;
        for (int64_t at = 0; at < length; at += WIDTH) {
            const int64_t begin = run->head - at;
            piece[pieces++] = (struct float_piece){
                .from = run->from - begin,
                .there = (__mmask16)(floats_before(begin + run->count) & ~floats_before(begin)),
                .most = floats_before(length - at),
                .to = (int32_t)(run->to + at)};
            if (pieces == PIECES_MAX) {
                copy_float_pieces(piece, pieces, data, plane, rows, to, pitch);
                pieces = 0;
            }
        }
    }
    copy_float_pieces(piece, pieces, data, plane, rows, to, pitch);
}

#endif

static void copy_floats(const struct ls_bf16_run *run, size_t runs, const float *data,
                        int64_t plane, int64_t step, size_t rows, float *to, size_t pitch)
{
#if LS_ISA_IS(AVX512)
    if (step == 1) {
        copy_float_runs(run, runs, data, plane, rows, to, pitch);
        return;
    }
#endif
    for (size_t row = 0; row < rows; row++, data += plane, to += pitch)
        for (size_t r = 0; r < runs; r++)
            copy_float_run(&run[r], data, step, to);
}

const struct ls_vector_bf16_windows LS_ISA_NAME(ls_vector_bf16_windows) = {
    .copy = copy,
    .copy_floats = copy_floats,
};
