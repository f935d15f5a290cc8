/* Caffe's fillers. A gaussian one may be sparse: each number stays with probability
 * sparse / shape[0], by a mask that has a key of its own.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/filler.h"

#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/mutant.h"
#include "ops/cpu/vector/normal.h"
#include "ops/cpu/vector/philox.h"

enum { TILE = 1024 }; /* numbers made at a time; even, for pairs of normal ones */

/* 24 bits of a word, as ls_random_uniform has them. */
static double uniform(uint32_t word)
{
    return (double)(word >> 8) * 0x1p-24;
}

static void run_uniform(const struct ls_filler *filler, uint64_t key, uint64_t ordinal, float *out,
                        size_t n)
{
    uint32_t word[TILE];
    double span = filler->second - filler->first;
    for (size_t from = 0; from < n; from += TILE) {
        size_t count = n - from < TILE ? n - from : TILE;
        ls_vector_philox()->words(key, ordinal, from, word, count);
        for (size_t i = 0; i < count; i++)
            out[from + i] = (float)(filler->first + uniform(word[i]) * span);
    }
}

static double scaled(double number, double by)
{
    return LS_MUTANT(ROUNDED) ? (double)(float)(number * by) : number * by;
}

static void run_normal(const struct ls_filler *filler, uint64_t key, uint64_t ordinal, float *out,
                       size_t n)
{
    uint32_t word[TILE];
    double normal[TILE];
    uint64_t mask_key = ls_mix(key + 1);
    for (size_t from = 0; from < n; from += TILE) {
        size_t count = n - from < TILE ? n - from : TILE;
        ls_vector_philox()->words(key, ordinal, from, word, TILE);
        ls_vector_normal()->normals(word, normal, count + count % 2);
        for (size_t i = 0; i < count; i++)
            out[from + i] = (float)(filler->first + scaled(normal[i], filler->second));
        if (filler->keep >> 32 != 0)
            continue;
        ls_vector_philox()->words(mask_key, ordinal, from, word, count);
        for (size_t i = 0; i < count; i++)
            out[from + i] = word[i] < filler->keep ? out[from + i] : 0;
    }
}

static void run_integer(const struct ls_filler *filler, uint64_t key, uint64_t ordinal, float *out,
                        size_t n)
{
    const struct ls_filler one = {.kind = LS_FILLER_UNIFORM, .second = 1};
    const double count = filler->second - filler->first + 1;
    run_uniform(&one, key, ordinal, out, n);
    for (size_t i = 0; i < n; i++)
        out[i] = (float)(filler->first + floor((double)out[i] * count));
}

static void run_boxes(const struct ls_filler *filler, uint64_t key, uint64_t ordinal, float *out,
                      size_t n)
{
    const struct ls_filler one = {.kind = LS_FILLER_UNIFORM, .second = 1};
    run_uniform(&one, key, ordinal, out, n);
    for (size_t i = 0; i < n; i++)
        out[i] = (float)ls_filler_box(filler, i, (double)out[i]);
}

/* A row that sums to 0 (all its random numbers are) becomes an even one. */
static void run_unitball(const struct ls_filler *filler, uint64_t key, uint64_t ordinal, float *out,
                         size_t n)
{
    const struct ls_filler one = {.kind = LS_FILLER_UNIFORM, .second = 1};
    run_uniform(&one, key, ordinal, out, n); /* 24 bits: exact in float */
    size_t length = (size_t)filler->row;
    for (float *row = out; row < out + n; row += length) {
        double sum = 0;
        for (size_t i = 0; i < length; i++)
            sum += row[i];
        for (size_t i = 0; i < length; i++)
            row[i] = (float)(sum > 0 ? row[i] / sum : 1 / (double)length);
    }
}

static void run_bilinear(const struct ls_filler *filler, float *out, size_t n)
{
    int64_t side = filler->row;
    double f = (double)((side + 1) / 2), c = (double)(side - 1) / (2 * f);
    for (size_t i = 0; i < n; i++) {
        double x = (double)((int64_t)i % side), y = (double)((int64_t)i / side % side);
        out[i] = (float)((1 - fabs(x / f - c)) * (1 - fabs(y / f - c)));
    }
}

void ls_filler_run(const struct ls_filler *filler, uint64_t key, uint64_t ordinal, float *out,
                   size_t n)
{
    switch (filler->kind) {
    case LS_FILLER_CONSTANT:
        for (size_t i = 0; i < n; i++)
            out[i] = (float)filler->first;
        break;
    case LS_FILLER_UNIFORM:
        run_uniform(filler, key, ordinal, out, n);
        break;
    case LS_FILLER_INTEGER:
        run_integer(filler, key, ordinal, out, n);
        break;
    case LS_FILLER_BOXES:
        run_boxes(filler, key, ordinal, out, n);
        break;
    case LS_FILLER_NORMAL:
        run_normal(filler, key, ordinal, out, n);
        break;
    case LS_FILLER_UNITBALL:
        run_unitball(filler, key, ordinal, out, n);
        break;
    case LS_FILLER_BILINEAR:
        run_bilinear(filler, out, n);
        break;
    }
}
