/* Convolutions over planes: the gradients by weights and bias. See planes.h.
 *
 *     dw[o, t] = sum over samples and positions of dy[o, p] u[at(t) + p]
 *
 * Rows times rows, whose products are summed up lane by lane over a chunk of samples, and then
 * across the lanes. Chunks are added one after the other.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/planes.h"

#include "ops/cpu/vector/planes_registers.h"

#if LS_ISA_IS(AVX512)
enum { TILE_ROWS = 6, TILE_TERMS = 4 };
#elif LS_ISA_IS(AVX2)
enum { TILE_ROWS = 3, TILE_TERMS = 2 };
#else
enum { TILE_ROWS = 1, TILE_TERMS = 1 };
#endif

/* Some outputs and some terms; u and dy are those of the first sample of the chunk. */
struct tile {
    const float *dy, *u;
    const int64_t *at; /* by term */
    int64_t dy_row, dy_sample, u_sample;
    int64_t samples, positions;
    float *dw;
    int64_t dw_row;
    bool first; /* the first chunk */
};

/* Adds the products of LS_LANES positions, or of the `count` that are left. */
INLINE void add_lanes(const struct tile *tile, const float *dy, const float *u, int rows, int terms,
                      int64_t count, REGISTER sum[TILE_ROWS][TILE_TERMS][LANE_REGISTERS])
{
    UNROLL
    for (int l = 0; l < LANE_REGISTERS; l++) {
        const int64_t begin = (int64_t)l * WIDTH;
        const size_t left = count > begin ? (size_t)(count - begin) : 0;
        REGISTER x[TILE_TERMS];
        UNROLL
        for (int j = 0; j < terms; j++)
            x[j] = LOAD_UP_TO(u + tile->at[j] + begin, left);
        UNROLL
        for (int i = 0; i < rows; i++) {
            const REGISTER y = LOAD_UP_TO(dy + i * tile->dy_row + begin, left);
            UNROLL
            for (int j = 0; j < terms; j++)
                sum[i][j][l] = FMA(y, x[j], sum[i][j][l]);
        }
    }
}

#if LS_ISA_IS(AVX512)

/* The sums of four registers, in the order of `fold`. */
static inline __m128 fold_four(const REGISTER sum[4][1])
{
    const __m512 a = _mm512_shuffle_f32x4(sum[0][0], sum[1][0], 0x44);
    const __m512 b = _mm512_shuffle_f32x4(sum[0][0], sum[1][0], 0xee);
    const __m512 c = _mm512_shuffle_f32x4(sum[2][0], sum[3][0], 0x44);
    const __m512 d = _mm512_shuffle_f32x4(sum[2][0], sum[3][0], 0xee);
    const __m512 ab = _mm512_add_ps(a, b), cd = _mm512_add_ps(c, d); /* lanes 0-7 + 8-15 */
    const __m512 four =
        _mm512_add_ps(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xdd));
    const __m512 two = _mm512_add_ps(four, _mm512_permute_ps(four, 0x4e));
    const __m512 one = _mm512_add_ps(two, _mm512_permute_ps(two, 0xb1));
    const __m512i firsts = _mm512_setr_epi32(0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    return _mm512_castps512_ps128(_mm512_permutexvar_ps(firsts, one));
}

INLINE void finish_row(const struct tile *tile, int terms, const REGISTER sum[TILE_TERMS][1],
                       float *dw)
{
    REGISTER all[4][1];
    UNROLL
    for (int j = 0; j < 4; j++)
        all[j][0] = j < terms ? sum[j][0] : ZERO();
    const __mmask8 wanted = (__mmask8)((1 << terms) - 1);
    __m128 folded = fold_four((const REGISTER(*)[1])all);
    if (!tile->first)
        folded = _mm_add_ps(_mm_maskz_loadu_ps(wanted, dw), folded);
    _mm_mask_storeu_ps(dw, wanted, folded);
}

#else

INLINE void finish_row(const struct tile *tile, int terms,
                       const REGISTER sum[TILE_TERMS][LANE_REGISTERS], float *dw)
{
    UNROLL
    for (int j = 0; j < terms; j++) {
        const float folded = fold(sum[j]);
        dw[j] = tile->first ? folded : dw[j] + folded;
    }
}

#endif

/* `rows` and `terms` are constants. */
INLINE void multiply_tile(const struct tile *tile, int rows, int terms)
{
    REGISTER sum[TILE_ROWS][TILE_TERMS][LANE_REGISTERS];
    UNROLL
    for (int i = 0; i < rows; i++)
        UNROLL
    for (int j = 0; j < terms; j++)
        UNROLL
    for (int l = 0; l < LANE_REGISTERS; l++)
        sum[i][j][l] = ZERO();
    const float *dy = tile->dy, *u = tile->u;
    for (int64_t n = 0; n < tile->samples; n++, dy += tile->dy_sample, u += tile->u_sample) {
        int64_t p = 0;
        for (; p + LS_LANES <= tile->positions; p += LS_LANES)
            add_lanes(tile, dy + p, u + p, rows, terms, LS_LANES, sum);
        if (p < tile->positions)
            add_lanes(tile, dy + p, u + p, rows, terms, tile->positions - p, sum);
    }
    UNROLL
    for (int i = 0; i < rows; i++)
        finish_row(tile, terms, (const REGISTER(*)[LANE_REGISTERS])sum[i],
                   tile->dw + i * tile->dw_row);
}

#define TILE(rows, terms)                                                                          \
    FUSED static void tile_##rows##_##terms(const struct tile *tile)                               \
    {                                                                                              \
        multiply_tile(tile, rows, terms);                                                          \
    }

TILE(1, 1)
#if WIDTH >= 8
TILE(1, 2)
TILE(2, 1)
TILE(2, 2)
TILE(3, 1)
TILE(3, 2)
#endif
#if WIDTH >= 16
TILE(1, 3)
TILE(1, 4)
TILE(2, 3)
TILE(2, 4)
TILE(3, 3)
TILE(3, 4)
TILE(4, 1)
TILE(4, 2)
TILE(4, 3)
TILE(4, 4)
TILE(5, 1)
TILE(5, 2)
TILE(5, 3)
TILE(5, 4)
TILE(6, 1)
TILE(6, 2)
TILE(6, 3)
TILE(6, 4)
#endif

static void (*const tiles[TILE_ROWS][TILE_TERMS])(const struct tile *) = {
#if WIDTH >= 16
    {tile_1_1, tile_1_2, tile_1_3, tile_1_4}, {tile_2_1, tile_2_2, tile_2_3, tile_2_4},
    {tile_3_1, tile_3_2, tile_3_3, tile_3_4}, {tile_4_1, tile_4_2, tile_4_3, tile_4_4},
    {tile_5_1, tile_5_2, tile_5_3, tile_5_4}, {tile_6_1, tile_6_2, tile_6_3, tile_6_4},
#elif WIDTH >= 8
    {tile_1_1, tile_1_2},
    {tile_2_1, tile_2_2},
    {tile_3_1, tile_3_2},
#else
    {tile_1_1},
#endif
};

/* All terms of some outputs. */
static void multiply_terms(struct tile tile, int64_t rows, int64_t terms)
{
    const int64_t count = piece_count(terms, TILE_TERMS);
    for (int64_t i = 0; i < count; i++) {
        const int64_t some = piece_size(terms, count, i);
        tiles[rows - 1][some - 1](&tile);
        tile.at += some;
        tile.dw += some;
    }
}

static void multiply(struct tile tile, int64_t rows, int64_t terms)
{
    const int64_t count = piece_count(rows, TILE_ROWS);
    for (int64_t i = 0; i < count; i++) {
        const int64_t some = piece_size(rows, count, i);
        multiply_terms(tile, some, terms);
        tile.dy += some * tile.dy_row;
        tile.dw += some * tile.dw_row;
    }
}

/* The sum of dy of one output over a chunk. */
FUSED static float sum_output(const struct tile *tile, const float *dy)
{
    REGISTER sum[LANE_REGISTERS];
    for (int l = 0; l < LANE_REGISTERS; l++)
        sum[l] = ZERO();
    for (int64_t n = 0; n < tile->samples; n++, dy += tile->dy_sample)
        for (int64_t p = 0; p < tile->positions; p += LS_LANES)
            for (int l = 0; l < LANE_REGISTERS; l++) {
                const int64_t left = tile->positions - p - (int64_t)l * WIDTH;
                sum[l] = ADD(sum[l], LOAD_UP_TO(dy + p + l * WIDTH, left > 0 ? (size_t)left : 0));
            }
    return fold(sum);
}

static int64_t scratch_floats(const struct ls_planes *planes)
{
    return planes->chunk * planes->sample;
}

static void run(const struct ls_planes *planes, const float *x, const float *dy, float *dw,
                float *db, float *scratch)
{
    struct tile tile = {.u = scratch,
                        .at = planes->meets,
                        .dy_row = planes->positions,
                        .dy_sample = planes->out * planes->positions,
                        .u_sample = planes->sample,
                        .positions = planes->positions,
                        .dw = dw,
                        .dw_row = planes->terms};
    for (int64_t n = 0; n < planes->samples; n += tile.samples) {
        const int64_t left = planes->samples - n;
        tile.samples = left < planes->chunk ? left : planes->chunk;
        tile.first = n == 0;
        tile.dy = dy + n * tile.dy_sample;
        for (int64_t i = 0; i < tile.samples; i++)
            unroll(planes, x + (n + i) * planes->in * planes->x[0] * planes->x[1],
                   scratch + i * planes->sample);
        multiply(tile, planes->out, planes->terms);
        for (int64_t o = 0; db != NULL && o < planes->out; o++) {
            const float sum = sum_output(&tile, tile.dy + o * tile.dy_row);
            db[o] = n == 0 ? sum : db[o] + sum;
        }
    }
}

const struct ls_vector_planes_weights LS_ISA_NAME(ls_vector_planes_weights) = {
    .scratch = scratch_floats,
    .run = run,
};
