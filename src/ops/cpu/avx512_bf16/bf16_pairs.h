/* What vector/bf16_direct.h does with fp32 numbers, with pairs of bf16 numbers: words of 32 bits
 * whose upper half holds a term, and whose lower half the next one of the same chain, which is the
 * term behind the next one. One instruction adds both to the chain, in this order, so that the bits
 * are the same (docs/numerics.md, section 16).
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_AVX512_BF16_BF16_PAIRS_H
#define LS_OPS_CPU_AVX512_BF16_BF16_PAIRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ops/cpu/vector/bf16_windows.h"

/* How many steps the chains of a block have: one after the other in turn, the even chain first,
 * then what is left of one of them. */
struct ls_bf16_chains {
    uint8_t even, odd;
};

/* sum[line, p] over the steps s of w[line, s] x[offset[s] + p], finished. */
struct ls_bf16_pair_positions {
    const uint32_t *w;
    size_t line, step; /* words from a line, and from a step, to the next */
    size_t lines;
    const uint32_t *x;     /* of position 0; a register may be read behind the last */
    const int32_t *offset; /* by step */
    const struct ls_bf16_chains *block;
    size_t blocks;
    size_t positions; /* at most ls_bf16_pairs.positions */
    float *sums;      /* [lines][pitch]; a register may be written behind the last position */
    size_t pitch;
};

/* sum[line, column] over words i of x[offset[line] + i] y[i, column], which go on from what is
 * there unless `first`. The words are positions 0 and 2, 1 and 3, 4 and 6, 5 and 7, and so on. */
struct ls_bf16_pair_lines {
    const uint32_t *x;
    const int32_t *offset; /* by line */
    size_t stride;         /* words from line to line in each four of them; 0: they lie anyhow */
    size_t lines;
    const uint32_t *y; /* [words][pitch] */
    size_t positions;  /* a multiple of 32 */
    size_t columns;    /* a multiple of 16 */
    float *sums;       /* [lines][pitch] */
    size_t pitch;      /* at least columns */
    bool first;
};

/* Planes of which pairs are made: the one that lies in the upper half, and that in the lower half,
 * by their numbers; -1: zeros. */
struct ls_bf16_pair_planes {
    int32_t upper, lower;
};

struct ls_bf16_pairs {
    size_t positions; /* that are summed up together: several registers */
    void (*over_positions)(const struct ls_bf16_pair_positions *sums);
    void (*over_lines)(const struct ls_bf16_pair_lines *sums);
    /* Runs of `rows` rows, `pitch` words apart; a number's element of `data` is `plane` further for
     * each plane. */
    void (*fill)(const struct ls_bf16_run *run, size_t runs, const uint16_t *data, int64_t plane,
                 const struct ls_bf16_pair_planes *pair, size_t rows, uint32_t *to, size_t pitch);
    /* Words of positions 0 and 2, 1 and 3, and so on, of runs whose lengths are multiples of 4: for
     * `rows` rows, `pitch` words apart; for each row `data` is `plane` further. */
    void (*fill_positions)(const struct ls_bf16_run *run, size_t runs, const uint16_t *data,
                           int64_t plane, size_t rows, uint32_t *to, size_t pitch);
    /* Rows of ls_bf16_pair_lines.y for `count` positions (a multiple of 32) of channels; zeros up
     * to a multiple of 16 channels. */
    void (*transpose)(const uint16_t *y, int64_t plane, size_t channels, size_t count, uint32_t *to,
                      size_t pitch);
    /* Words of terms 0 and 2, 1 and 3, 4 and 6, 5 and 7, and so on; `terms` is a multiple of 4. */
    void (*pair_terms)(const uint16_t *from, size_t terms, uint32_t *to);
    /* Whether all numbers of these words are finite. */
    bool (*finite)(const uint32_t *word, size_t count);
    /* to[i] = upper[i], lower[i]; lower may be NULL: zeros. */
    void (*join)(const uint16_t *upper, const uint16_t *lower, size_t count, uint32_t *to);
};

/* Where the build has it (LS_AVX512_BF16 is defined); see ops/cpu/bf16/units.h. */
extern const struct ls_bf16_pairs ls_bf16_pairs_avx512_bf16;

#endif
