/* Copying of bf16 numbers into rows. See bf16_windows.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/bf16_windows.h"

#include "ops/cpu/vector/registers.h"

#if LS_ISA_IS(AVX512)

enum { HALVES = 32 }; /* elements of a register */

static inline __mmask32 first_of(int64_t count)
{
    return count >= HALVES ? UINT32_MAX : count <= 0 ? 0 : (UINT32_C(1) << count) - 1;
}

/* Of a run, elements [at, at + 32): what is zero is not read. */
static inline void copy_piece(const struct ls_bf16_run *run, const uint16_t *data, int64_t at,
                              uint16_t *to)
{
    const int64_t length = run->head + run->count + run->tail;
    const int64_t begin = run->head - at, end = begin + run->count;
    const __mmask32 there = first_of(end) & ~first_of(begin);
    const __m512i numbers = _mm512_maskz_loadu_epi16(there, data + run->from - begin);
    _mm512_mask_storeu_epi16(to + run->to + at, first_of(length - at), numbers);
}

/* The same of every second number. */
static inline void copy_seconds(const struct ls_bf16_run *run, const uint16_t *data, int64_t at,
                                uint16_t *to)
{
    const __m512i even =
        _mm512_set_epi16(62, 60, 58, 56, 54, 52, 50, 48, 46, 44, 42, 40, 38, 36, 34, 32, 30, 28, 26,
                         24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    const int64_t length = run->head + run->count + run->tail;
    const int64_t begin = 2 * (run->head - at), end = begin + 2 * run->count - 1;
    const uint16_t *from = data + run->from - begin;
    const __m512i low = _mm512_maskz_loadu_epi16(first_of(end) & ~first_of(begin), from);
    const __m512i high =
        _mm512_maskz_loadu_epi16(first_of(end - HALVES) & ~first_of(begin - HALVES), from + HALVES);
    _mm512_mask_storeu_epi16(to + run->to + at, first_of(length - at),
                             _mm512_permutex2var_epi16(low, even, high));
}

#endif

static inline void copy_run(const struct ls_bf16_run *run, const uint16_t *data, int64_t step,
                            uint16_t *to)
{
    const int64_t length = run->head + run->count + run->tail;
#if LS_ISA_IS(AVX512)
    if (step <= 2) {
        for (int64_t at = 0; at < length; at += HALVES)
            if (step == 1)
                copy_piece(run, data, at, to);
            else
                copy_seconds(run, data, at, to);
        return;
    }
#endif
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
                 int64_t step, size_t rows, uint16_t *to, size_t pitch)
{
    for (size_t row = 0; row < rows; row++, data += plane, to += pitch)
        for (size_t r = 0; r < runs; r++)
            copy_run(&run[r], data, step, to);
}

const struct ls_vector_bf16_windows LS_ISA_NAME(ls_vector_bf16_windows) = {
    .copy = copy,
};
