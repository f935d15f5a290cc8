/* Convolutions of volumes by Winograd's algorithm; see vector/volume.h.
 *
 * A piece of work is up to LS_VOLUME_ROWS rows of tiles side by side (along axis 1) of one sample:
 * their parts of x stay in cache until all channels of y are done. A row of a part has a point more
 * than x has at each end, so that all taps find numbers.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/volume.h"

#include "ops/cpu/vector/volume_registers.h"

enum { ROWS = LS_VOLUME_ROWS, PARTS = LS_VOLUME_PARTS, TAPS = LS_VOLUME_TAPS };
enum { FILTER = BLOCK * 3 * BLOCK }; /* weights of a part for two blocks */

/* Rows of tiles [row, row + rows) of plane `plane` of tiles. */
struct piece {
    int64_t plane, row, rows;
};

/* Where things lie in scratch memory, and how far parts are apart there. Parts of one point are
 * written together: an odd point between them keeps them out of one set of the cache. */
struct places {
    float *x, *y, *u, *nothing;
    size_t x_row, y_row, x_part, y_part;
};

static struct places find_places(const struct ls_volume *volume, float *scratch)
{
    struct places at = {.x_row = (size_t)(volume->out[2] + 2) * BLOCK,
                        .y_row = (size_t)volume->out[2] * BLOCK};
    at.x_part = (size_t)volume->in_blocks * ROWS * at.x_row + BLOCK;
    at.y_part = (size_t)volume->out_blocks * ROWS * at.y_row + BLOCK;
    if (scratch == NULL) /* only how much it is */
        return at;
    at.x = scratch;
    at.y = at.x + PARTS * at.x_part;
    at.nothing = at.y + PARTS * at.y_part;
    at.u = at.nothing + at.x_row;
    return at;
}

static size_t convolve_scratch(const struct ls_volume *volume)
{
    const struct places at = find_places(volume, NULL);
    return PARTS * (at.x_part + at.y_part) + at.x_row;
}

static size_t transformed_size(int64_t out_blocks, int64_t in_blocks)
{
    return (size_t)(PARTS * FILTER) * (size_t)out_blocks * (size_t)in_blocks;
}

static size_t differentiate_scratch(const struct ls_volume *volume)
{
    return convolve_scratch(volume) + transformed_size(volume->out_blocks, volume->in_blocks);
}

static void clear(float *to, size_t count)
{
    memset(to, 0, count * sizeof *to);
}

/* A register of each part; parts are `part` apart. */
INLINE void load_parts(const float *from, size_t part, REGISTER all[PARTS])
{
    UNROLL
    for (int i = 0; i < PARTS; i++)
        all[i] = LOAD(from + (size_t)i * part);
}

INLINE void store_parts(const REGISTER all[PARTS], float *to, size_t part)
{
    UNROLL
    for (int i = 0; i < PARTS; i++)
        STORE(to + (size_t)i * part, all[i]);
}

/* ---- Weights --------------------------------------------------------------------------------- */

/* One register of weights, for one tap along the last axis: from 3 x 3 numbers to 4 x 4. */
INLINE void transform_one(const float *w, int64_t step, float *u, size_t part)
{
    REGISTER all[PARTS];
    UNROLL
    for (int i = 0; i < 3; i++)
        UNROLL
    for (int j = 0; j < 3; j++)
        all[4 * i + j] = LOAD(w + (i * 3 + j) * step);
    UNROLL
    for (int j = 0; j < 3; j++)
        spread_weights(all + j, 4);
    UNROLL
    for (int i = 0; i < 4; i++)
        spread_weights(all + 4 * i, 1);
    store_parts(all, u, part);
}

FUSED static void transform(const struct ls_volume_weights *shape, const float *w, float *u)
{
    const size_t part = (size_t)(shape->out_blocks * shape->in_blocks) * FILTER;
    const int64_t tap = BLOCK * BLOCK, step = shape->turned ? -3 * tap : 3 * tap;
    for (int64_t o = 0; o < shape->out_blocks; o++)
        for (int64_t i = 0; i < shape->in_blocks; i++, u += FILTER) {
            const float *block = w + (o * shape->out_step + i * shape->in_step) * TAPS * tap;
            for (int64_t k = 0; k < 3; k++)
                for (int64_t lane = 0; lane < tap; lane += WIDTH) {
                    const int64_t first = shape->turned ? TAPS - 1 - k : k;
                    float *to = u + (lane / BLOCK * 3 + k) * BLOCK + lane % BLOCK;
                    transform_one(block + first * tap + lane, step, to, part);
                }
        }
}

/* dw from the gradients of the transformed weights. */
FUSED static void transform_back(const struct ls_volume *volume, const float *u, float *dw)
{
    const int64_t tap = BLOCK * BLOCK, blocks = volume->out_blocks * volume->in_blocks;
    const size_t part = (size_t)blocks * FILTER;
    for (int64_t b = 0; b < blocks; b++, dw += TAPS * tap, u += FILTER)
        for (int64_t k = 0; k < 3; k++)
            for (int64_t lane = 0; lane < tap; lane += WIDTH) {
                const float *from = u + (lane / BLOCK * 3 + k) * BLOCK + lane % BLOCK;
                REGISTER all[PARTS];
                load_parts(from, part, all);
                UNROLL
                for (int i = 0; i < 4; i++)
                    gather_weights(all + 4 * i, 1);
                UNROLL
                for (int j = 0; j < 3; j++)
                    gather_weights(all + j, 4);
                for (int i = 0; i < 3; i++)
                    for (int j = 0; j < 3; j++)
                        STORE(dw + ((i * 3 + j) * 3 + k) * tap + lane, all[4 * i + j]);
            }
}

/* ---- Values ---------------------------------------------------------------------------------- */

/* The row at (plane, row) of a block that begins at `from`; `nothing` beyond its ends. */
static inline const float *find_row(const float *from, const int64_t extent[3], int64_t plane,
                                    int64_t row, const float *nothing)
{
    bool inside = plane >= 0 && plane < extent[0] && row >= 0 && row < extent[1];
    return inside ? from + (plane * extent[1] + row) * extent[2] * BLOCK : nothing;
}

/* The parts of one row of tiles of one block of x. */
FUSED static void spread_x(const float *const row[PARTS], size_t count, float *to, size_t part)
{
    for (size_t p = 0; p < count; p += WIDTH) {
        REGISTER all[PARTS];
        UNROLL
        for (int i = 0; i < PARTS; i++)
            all[i] = LOAD(row[i] + p);
        UNROLL
        for (int j = 0; j < 4; j++)
            spread_in(all + j, 4);
        UNROLL
        for (int i = 0; i < 4; i++)
            spread_in(all + 4 * i, 1);
        store_parts(all, to + p, part);
    }
}

/* The parts of x of a sample for a piece. */
static void spread_piece(const struct ls_volume *volume, const struct piece *piece, const float *x,
                         const struct places *at)
{
    const size_t before = (size_t)volume->pad[2] * BLOCK, count = (size_t)volume->in[2] * BLOCK;
    for (int64_t b = 0; b < volume->in_blocks; b++)
        for (int64_t t = 0; t < piece->rows; t++) {
            const float *block = x + b * volume->in[0] * volume->in[1] * volume->in[2] * BLOCK;
            const float *row[PARTS];
            float *to = at->x + (size_t)(b * ROWS + t) * at->x_row;
            for (int i = 0; i < PARTS; i++) {
                int64_t plane = 2 * piece->plane + i / 4 - volume->pad[0];
                int64_t line = 2 * (piece->row + t) + i % 4 - volume->pad[1];
                float *ends = to + (size_t)i * at->x_part;
                row[i] = find_row(block, volume->in, plane, line, at->nothing);
                clear(ends, before);
                clear(ends + before + count, at->x_row - before - count);
            }
            spread_x(row, count, to + before, at->x_part);
        }
}

/* One row of tiles of one block of y from its parts. */
FUSED static void gather_y(const float *from, size_t part, size_t count, float *const row[4],
                           const float *bias, const struct ls_volume_end *end)
{
    const REGISTER slope = SPREAD(end->slope);
    for (size_t p = 0; p < count; p += WIDTH) {
        REGISTER all[PARTS];
        const REGISTER offset = LOAD(bias + p % BLOCK);
        load_parts(from + p, part, all);
        UNROLL
        for (int j = 0; j < 4; j++)
            gather_out(all + j, 4);
        UNROLL
        for (int i = 0; i < 2; i++)
            gather_out(all + 4 * i, 1);
        UNROLL
        for (int i = 0; i < 4; i++) {
            REGISTER y = all[i / 2 * 4 + i % 2] + offset, low = y * slope;
            if (end->slope >= 0 && end->slope <= 0)
                low = ZERO();
            if (end->relu)
                y = WHERE_NEGATIVE(y, low);
            STORE(row[i] + p, y);
        }
    }
}

static void gather_piece(const struct ls_volume *volume, const struct piece *piece,
                         const struct places *at, const struct ls_volume_end *end, float *y)
{
    static const float none[BLOCK];
    for (int64_t b = 0; b < volume->out_blocks; b++)
        for (int64_t t = 0; t < piece->rows; t++) {
            float *block = y + b * volume->out[0] * volume->out[1] * volume->out[2] * BLOCK;
            float *row[4];
            for (int i = 0; i < 4; i++) {
                int64_t plane = 2 * piece->plane + i / 2, line = 2 * (piece->row + t) + i % 2;
                bool inside = plane < volume->out[0] && line < volume->out[1];
                row[i] = inside ? block + (plane * volume->out[1] + line) * volume->out[2] * BLOCK
                                : at->nothing;
            }
            gather_y(at->y + (size_t)(b * ROWS + t) * at->y_row, at->y_part, at->y_row, row,
                     end->bias != NULL ? end->bias + b * BLOCK : none, end);
        }
}

/* The parts of one row of tiles of one block of dy; adds its sum to `sum`. */
FUSED static void spread_dy(const float *const row[4], size_t points, float *to, size_t part,
                            float *sum)
{
    for (int lane = 0; lane < BLOCK; lane += WIDTH) {
        REGISTER total = ZERO();
        for (size_t p = 0; p < points; p++) {
            const size_t here = p * BLOCK + (size_t)lane;
            REGISTER all[PARTS];
            UNROLL
            for (int i = 0; i < 4; i++)
                all[i / 2 * 4 + i % 2] = LOAD(row[i] + here);
            total = total + ((all[0] + all[1]) + (all[4] + all[5]));
            UNROLL
            for (int j = 0; j < 2; j++)
                spread_out(all + j, 4);
            UNROLL
            for (int i = 0; i < 4; i++)
                spread_out(all + 4 * i, 1);
            store_parts(all, to + here, part);
        }
        STORE(sum + lane, LOAD(sum + lane) + total);
    }
}

static void spread_dy_piece(const struct ls_volume *volume, const struct piece *piece,
                            const float *dy, const struct places *at, float *db)
{
    float unused[BLOCK] = {0};
    for (int64_t b = 0; b < volume->out_blocks; b++)
        for (int64_t t = 0; t < piece->rows; t++) {
            const float *block = dy + b * volume->out[0] * volume->out[1] * volume->out[2] * BLOCK;
            const float *row[4];
            for (int i = 0; i < 4; i++)
                row[i] = find_row(block, volume->out, 2 * piece->plane + i / 2,
                                  2 * (piece->row + t) + i % 2, at->nothing);
            spread_dy(row, (size_t)volume->out[2], at->y + (size_t)(b * ROWS + t) * at->y_row,
                      at->y_part, db != NULL ? db + b * BLOCK : unused);
        }
}

/* ---- Sums ------------------------------------------------------------------------------------ */

/* `points` (a constant) of a row of one part, one register's channels of y. A number of x is
 * spread over a register once and meets three weights. */
INLINE void sum_points(const float *x, size_t x_block, const float *u, int64_t blocks, int points,
                       float *y)
{
    REGISTER sum[POINTS];
    UNROLL
    for (int p = 0; p < points; p++)
        sum[p] = ZERO();
    for (int64_t b = 0; b < blocks; b++, x += x_block)
        for (int i = 0; i < BLOCK; i++, u += 3 * BLOCK) {
            const REGISTER first = LOAD(u), second = LOAD(u + BLOCK), third = LOAD(u + 2 * BLOCK);
            UNROLL_POINTS
            for (int q = 0; q < points + 2; q++) {
                const REGISTER number = SPREAD(x[q * BLOCK + i]);
                if (q < points)
                    sum[q] = FMA(number, first, sum[q]);
                if (q > 0 && q - 1 < points)
                    sum[q - 1] = FMA(number, second, sum[q - 1]);
                if (q > 1)
                    sum[q - 2] = FMA(number, third, sum[q - 2]);
            }
        }
    UNROLL
    for (int p = 0; p < points; p++)
        STORE(y + p * BLOCK, sum[p]);
}

/* As sum_points, for any number of points. */
FUSED static void sum_row(const float *x, size_t x_block, const float *u, int64_t blocks,
                          int64_t points, float *y)
{
    for (; points >= POINTS; points -= POINTS, x += POINTS * BLOCK, y += POINTS * BLOCK)
        sum_points(x, x_block, u, blocks, POINTS, y);
    if (points >= 8 && POINTS > 8) {
        sum_points(x, x_block, u, blocks, 8, y);
        points -= 8, x += 8 * BLOCK, y += 8 * BLOCK;
    }
    if (points >= 4 && POINTS > 4) {
        sum_points(x, x_block, u, blocks, 4, y);
        points -= 4, x += 4 * BLOCK, y += 4 * BLOCK;
    }
    for (; points > 0; points--, x += BLOCK, y += BLOCK)
        sum_points(x, x_block, u, blocks, 1, y);
}

/* All parts of y of a piece. */
static void sum_piece(const struct ls_volume *volume, const struct piece *piece,
                      const struct places *at, const float *u)
{
    for (int part = 0; part < PARTS; part++)
        for (int64_t b = 0; b < volume->out_blocks; b++, u += volume->in_blocks * FILTER)
            for (int64_t t = 0; t < piece->rows; t++)
                for (int lane = 0; lane < BLOCK; lane += WIDTH)
                    sum_row(at->x + (size_t)part * at->x_part + (size_t)t * at->x_row,
                            ROWS * at->x_row, u + lane, volume->in_blocks, volume->out[2],
                            at->y + (size_t)part * at->y_part + (size_t)(b * ROWS + t) * at->y_row +
                                lane);
}

/* INPUTS channels of x and one register's of y, for three taps. `which` (a constant): the taps that
 * a point of x has in a row of dy: bit k, tap k. dy[k] is what tap k meets. */
INLINE void add_point(const float *x, const REGISTER dy[3], int which, REGISTER sum[INPUTS][3])
{
    UNROLL
    for (int i = 0; i < INPUTS; i++) {
        const REGISTER number = SPREAD(x[i]);
        UNROLL
        for (int k = 0; k < 3; k++)
            if ((which >> k & 1) != 0)
                sum[i][k] = FMA(number, dy[k], sum[i][k]);
    }
}

/* A chain over `rows` rows of at least 2 points of one part, added to u. */
FUSED static void add_products(const float *x, size_t x_row, const float *dy, size_t y_row,
                               int64_t rows, int64_t points, float *u)
{
    REGISTER sum[INPUTS][3];
    UNROLL
    for (int i = 0; i < INPUTS; i++)
        UNROLL
    for (int k = 0; k < 3; k++)
        sum[i][k] = ZERO();
    for (int64_t t = 0; t < rows; t++) {
        const float *number = x + (size_t)t * x_row, *next = dy + (size_t)t * y_row;
        REGISTER window[3] = {LOAD(next), ZERO(), ZERO()};
        add_point(number, window, 1, sum);
        window[1] = window[0], window[0] = LOAD(next + BLOCK);
        add_point(number + BLOCK, window, 3, sum);
        for (int64_t q = 2; q < points; q++) {
            window[2] = window[1], window[1] = window[0], window[0] = LOAD(next + q * BLOCK);
            add_point(number + q * BLOCK, window, 7, sum);
        }
        window[2] = window[1], window[1] = window[0];
        add_point(number + points * BLOCK, window, 6, sum);
        window[2] = window[1];
        add_point(number + (points + 1) * BLOCK, window, 4, sum);
    }
    UNROLL
    for (int i = 0; i < INPUTS; i++)
        UNROLL
    for (int k = 0; k < 3; k++)
        STORE(u + (i * 3 + k) * BLOCK, LOAD(u + (i * 3 + k) * BLOCK) + sum[i][k]);
}

/* The gradients of all transformed weights from a piece. */
static void add_piece(const struct ls_volume *volume, const struct piece *piece,
                      const struct places *at)
{
    float *u = at->u;
    for (int part = 0; part < PARTS; part++)
        for (int64_t o = 0; o < volume->out_blocks; o++)
            for (int64_t b = 0; b < volume->in_blocks; b++, u += FILTER) {
                const float *x = at->x + (size_t)part * at->x_part + (size_t)b * ROWS * at->x_row;
                const float *dy = at->y + (size_t)part * at->y_part + (size_t)o * ROWS * at->y_row;
                for (int i = 0; i < BLOCK; i += INPUTS)
                    for (int lane = 0; lane < BLOCK; lane += WIDTH)
                        add_products(x + i, at->x_row, dy + lane, at->y_row, piece->rows,
                                     volume->out[2], u + i * 3 * BLOCK + lane);
            }
}

/* ---- The three passes ------------------------------------------------------------------------ */

/* The next piece of a sample; false behind the last one. Begins behind {0, 0, 0}. */
static bool next_piece(const struct ls_volume *volume, struct piece *piece)
{
    const int64_t planes = (volume->out[0] + 1) / 2, rows = (volume->out[1] + 1) / 2;
    piece->row += piece->rows;
    if (piece->row == rows) {
        piece->row = 0;
        piece->plane++;
    }
    piece->rows = rows - piece->row < ROWS ? rows - piece->row : ROWS;
    return piece->plane < planes;
}

static size_t sample_size(int64_t blocks, const int64_t extent[3])
{
    return (size_t)(blocks * extent[0] * extent[1] * extent[2] * BLOCK);
}

static void convolve(const struct ls_volume *volume, const float *x, const float *u,
                     const struct ls_volume_end *end, float *scratch, float *y)
{
    const struct places at = find_places(volume, scratch);
    for (int64_t n = 0; n < volume->samples; n++) {
        struct piece piece = {0};
        while (next_piece(volume, &piece)) {
            clear(at.nothing, at.x_row); /* rows beyond the end of y are written there */
            spread_piece(volume, &piece, x, &at);
            sum_piece(volume, &piece, &at, u);
            gather_piece(volume, &piece, &at, end, y);
        }
        x += sample_size(volume->in_blocks, volume->in);
        y += sample_size(volume->out_blocks, volume->out);
    }
}

static void differentiate(const struct ls_volume *volume, const float *x, const float *dy,
                          float *scratch, float *dw, float *db)
{
    const struct places at = find_places(volume, scratch);
    clear(at.nothing, at.x_row);
    clear(at.u, transformed_size(volume->out_blocks, volume->in_blocks));
    if (db != NULL)
        clear(db, (size_t)volume->out_blocks * BLOCK);
    for (int64_t n = 0; n < volume->samples; n++) {
        struct piece piece = {0};
        while (next_piece(volume, &piece)) {
            spread_piece(volume, &piece, x, &at);
            spread_dy_piece(volume, &piece, dy, &at, db);
            add_piece(volume, &piece, &at);
        }
        x += sample_size(volume->in_blocks, volume->in);
        dy += sample_size(volume->out_blocks, volume->out);
    }
    transform_back(volume, at.u, dw);
}

const struct ls_vector_volume LS_ISA_NAME(ls_vector_volume) = {
    .block = BLOCK,
    .convolve_scratch = convolve_scratch,
    .differentiate_scratch = differentiate_scratch,
    .transformed_size = transformed_size,
    .transform = transform,
    .convolve = convolve,
    .differentiate = differentiate,
};
