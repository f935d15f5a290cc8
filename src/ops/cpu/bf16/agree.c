/* A product by two ways. See agree.h.
 *
 * Elements whose terms are all of one kind, so that neither infinite ones nor large ones hide what
 * becomes of small ones.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/bf16/agree.h"

#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/thread.h"
#include "ops/cpu/bf16/product.h"

#if defined(__x86_64__)

enum { LINES = 40, TERMS = 620, ELEMENTS = LINES * LINES };

/* Exponents from `least` on, by line: near 1, all that add up to something finite, small ones. */
static void fill(uint16_t numbers[LINES * TERMS], uint64_t salt)
{
    static const uint16_t least[4] = {120, 64, 60, 0}, range[4] = {12, 120, 7, 130};
    for (uint32_t line = 0; line < LINES; line++)
        for (uint32_t k = 0; k < TERMS; k++) {
            const uint32_t bits = ls_random_u32(41, salt + line, k), kind = line % 4;
            const uint32_t exponent = least[kind] + (bits >> 16) % range[kind];
            const bool zero = kind == 3 && bits >> 28 == 0;
            numbers[line * TERMS + k] =
                (uint16_t)(zero ? bits & 0x8000 : (bits & 0x807f) | exponent << 7);
        }
}

static void write(const struct ls_bf16_product *product, int64_t i, int64_t rows, int64_t j,
                  int64_t columns, float *tile, size_t pitch)
{
    uint32_t *elements = *(uint32_t *const *)product->user;
    for (int64_t row = 0; row < rows; row++, tile += pitch)
        memcpy(elements + (i + row) * LINES + j, tile, (size_t)columns * sizeof *elements);
}

static int compute(const struct ls_vector_bf16_product *tiles, const uint16_t *numbers,
                   uint32_t *elements)
{
    void *scratch = ls_alloc_aligned(ls_bf16_scratch_with(tiles, LINES, LINES, TERMS));
    const struct ls_bf16_product product = {
        .a = {.lines = LINES, .data = numbers, .pitch = TERMS},
        .b = {.lines = LINES, .data = numbers + LINES * TERMS, .pitch = TERMS},
        .depth = TERMS,
        .write = write,
        .user = &elements};
    if (scratch == NULL)
        return LOCKSTEP_RESOURCE;
    ls_bf16_multiply_with(tiles, &product, scratch);
    ls_free_aligned(scratch);
    return 0;
}

/* What is no number may have any bits. */
static bool same(uint32_t a, uint32_t b)
{
    const uint32_t infinite = 0x7f800000, size = 0x7fffffff;
    return a == b || ((a & size) > infinite && (b & size) > infinite);
}

static int compute_both(const struct ls_vector_bf16_product *tiles, uint16_t *numbers,
                        uint32_t *elements)
{
    const uint64_t mode = ls_float_mode();
    fill(numbers, 0);
    fill(numbers + LINES * TERMS, LINES);
    ls_set_float_mode();
    int status = compute(&ls_vector_bf16_product_avx512, numbers, elements);
    if (status == 0)
        status = compute(tiles, numbers, elements + ELEMENTS);
    ls_restore_float_mode(mode);
    return status;
}

int ls_bf16_agrees(const struct ls_vector_bf16_product *tiles, bool *agrees)
{
    uint16_t *numbers = ls_alloc(2 * LINES * TERMS, sizeof *numbers);
    uint32_t *elements = ls_alloc(2 * ELEMENTS, sizeof *elements);
    int status = LOCKSTEP_RESOURCE;
    if (numbers != NULL && elements != NULL)
        status = compute_both(tiles, numbers, elements);
    *agrees = status == 0;
    for (size_t e = 0; *agrees && e < ELEMENTS; e++)
        *agrees = same(elements[e], elements[ELEMENTS + e]);
    ls_free(numbers);
    ls_free(elements);
    return status;
}

#else

int ls_bf16_agrees(const struct ls_vector_bf16_product *tiles, bool *agrees)
{
    (void)tiles;
    *agrees = false;
    return 0;
}

#endif
