/* Products of matrices: a few rows and columns of the result at a time, in registers.
 *
 * See vector/product.h for the order of sums: `combine` adds the terms of an element one after the
 * other within LS_COMBINE_DEPTH of them, `dot` keeps term r in lane r % 16 within LS_DOT_DEPTH.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/product.h"

#include "ops/cpu/vector/product_registers.h"

static inline size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* ---- Rows of q, combined ----------------------------------------------------------------------
 */

/* A piece of a result: `rows` rows (a constant), some columns; terms [0, depth) of the sums. */
struct piece {
    const float *p, *q;
    size_t p_row, p_step, q_row, depth;
    float *out;
    size_t out_row;
    bool first; /* these are the first terms */
};

/* Adds the registers of a row to what earlier terms gave. */
INLINE void finish_row(const struct piece *piece, int row, int vectors, size_t some,
                       const REGISTER *sum)
{
    float *out = piece->out + (size_t)row * piece->out_row;
    if (some < WIDTH) {
        REGISTER all = sum[0];
        if (!piece->first)
            all = ADD(LOAD_SOME(out, some), all);
        STORE_SOME(out, some, all);
        return;
    }
    UNROLL
    for (int v = 0; v < vectors; v++)
        STORE(out + v * WIDTH, piece->first ? sum[v] : ADD(LOAD(out + v * WIDTH), sum[v]));
}

/* `some` < WIDTH: only so many columns of one register. */
INLINE void combine_piece(const struct piece *piece, int rows, int vectors, size_t some)
{
    REGISTER sum[COMBINE_ROWS][COMBINE_VECTORS];
    const float *p = piece->p, *q = piece->q;
    UNROLL
    for (int i = 0; i < rows; i++)
        UNROLL
    for (int v = 0; v < vectors; v++)
        sum[i][v] = ZERO();
    for (size_t r = 0; r < piece->depth; r++) {
        REGISTER x[COMBINE_VECTORS];
        UNROLL
        for (int v = 0; v < vectors; v++)
            x[v] = some < WIDTH ? LOAD_SOME(q, some) : LOAD(q + v * WIDTH);
        UNROLL
        for (int i = 0; i < rows; i++) {
            REGISTER factor = SPREAD(p[(size_t)i * piece->p_row]);
            UNROLL
            for (int v = 0; v < vectors; v++)
                sum[i][v] = FMA(factor, x[v], sum[i][v]);
        }
        p += piece->p_step;
        q += piece->q_row;
    }
    UNROLL
    for (int i = 0; i < rows; i++)
        finish_row(piece, i, vectors, some, sum[i]);
}

/* All rows of a piece that has `rows` of them, COMBINE_ROWS at a time. */
INLINE void combine_rows(struct piece piece, size_t rows, int vectors, size_t some)
{
    for (; rows >= COMBINE_ROWS; rows -= COMBINE_ROWS) {
        combine_piece(&piece, COMBINE_ROWS, vectors, some);
        piece.p += COMBINE_ROWS * piece.p_row;
        piece.out += COMBINE_ROWS * piece.out_row;
    }
    switch (rows) {
    case 5:
        combine_piece(&piece, 5, vectors, some);
        break;
    case 4:
        combine_piece(&piece, 4, vectors, some);
        break;
    case 3:
        combine_piece(&piece, 3, vectors, some);
        break;
    case 2:
        combine_piece(&piece, 2, vectors, some);
        break;
    case 1:
        combine_piece(&piece, 1, vectors, some);
        break;
    default:
        break;
    }
}

FUSED static void combine_wide(const struct piece *piece, size_t rows)
{
    combine_rows(*piece, rows, COMBINE_VECTORS, WIDTH);
}

FUSED static void combine_narrow(const struct piece *piece, size_t rows)
{
    combine_rows(*piece, rows, 1, WIDTH);
}

FUSED static void combine_some(const struct piece *piece, size_t rows, size_t some)
{
    combine_rows(*piece, rows, 1, some);
}

/* Columns of the result whose terms are those of `piece`, some registers at a time. */
static void combine_columns(struct piece piece, size_t rows, size_t columns)
{
    const size_t wide = COMBINE_VECTORS * WIDTH;
    while (columns > 0) {
        size_t width = columns >= wide ? wide : smaller(columns, WIDTH);
        if (width == wide)
            combine_wide(&piece, rows);
        else if (width == WIDTH)
            combine_narrow(&piece, rows);
        else
            combine_some(&piece, rows, width);
        piece.q += width;
        piece.out += width;
        columns -= width;
    }
}

static void combine(const struct ls_product *product)
{
    struct piece piece = {.p_row = product->p.row,
                          .p_step = product->p.step,
                          .q_row = product->q_row,
                          .out = product->out,
                          .out_row = product->out_row};
    for (size_t r = 0; r < product->depth || r == 0; r += LS_COMBINE_DEPTH) {
        piece.first = r == 0;
        piece.depth = smaller(product->depth - r, LS_COMBINE_DEPTH);
        piece.p = product->p.data + r * product->p.step;
        piece.q = product->q + r * product->q_row;
        combine_columns(piece, product->rows, product->columns);
    }
}

static void add_rows(const float *q, size_t q_row, size_t depth, float *sums, size_t columns)
{
    const float one = 1;
    const struct ls_product product = {.rows = 1,
                                       .columns = columns,
                                       .depth = depth,
                                       .p = {.data = &one},
                                       .q = q,
                                       .q_row = q_row,
                                       .out = sums};
    combine(&product);
}

/* ---- Rows times rows --------------------------------------------------------------------------
 */

/* Terms [at, at + 16): as many of them as there are. Lanes behind the last term add 0 times 0. */
INLINE void dot_step(const struct piece *piece, int rows, int columns, size_t at, size_t count,
                     REGISTER sum[DOT_ROWS][DOT_COLUMNS][LANE_REGISTERS])
{
    UNROLL
    for (int l = 0; l < LANE_REGISTERS; l++) {
        const size_t begin = (size_t)l * WIDTH, left = count > begin ? count - begin : 0;
        const float *p = piece->p + at + begin, *q = piece->q + at + begin;
        REGISTER x[DOT_COLUMNS];
        UNROLL
        for (int j = 0; j < columns; j++)
            x[j] = LOAD_UP_TO(q + (size_t)j * piece->q_row, left);
        UNROLL
        for (int i = 0; i < rows; i++) {
            REGISTER y = LOAD_UP_TO(p + (size_t)i * piece->p_row, left);
            UNROLL
            for (int j = 0; j < columns; j++)
                sum[i][j][l] = FMA(y, x[j], sum[i][j][l]);
        }
    }
}

/* `rows` and `columns` are constants. */
INLINE void dot_piece(const struct piece *piece, int rows, int columns)
{
    REGISTER sum[DOT_ROWS][DOT_COLUMNS][LANE_REGISTERS];
    UNROLL
    for (int i = 0; i < rows; i++)
        UNROLL
    for (int j = 0; j < columns; j++)
        UNROLL
    for (int l = 0; l < LANE_REGISTERS; l++)
        sum[i][j][l] = ZERO();
    size_t r = 0;
    for (; r + LS_LANES <= piece->depth; r += LS_LANES)
        dot_step(piece, rows, columns, r, LS_LANES, sum);
    if (r < piece->depth)
        dot_step(piece, rows, columns, r, piece->depth - r, sum);
    UNROLL
    for (int i = 0; i < rows; i++)
        UNROLL
    for (int j = 0; j < columns; j++) {
        float *out = piece->out + (size_t)i * piece->out_row + j;
        float folded = fold(sum[i][j]);
        *out = piece->first ? folded : *out + folded;
    }
}

/* As many rows as there are of a piece, `size` (a constant) at a time. */
INLINE size_t dot_some_rows(struct piece *piece, size_t rows, int size, int columns)
{
    for (; rows >= (size_t)size; rows -= (size_t)size) {
        dot_piece(piece, size, columns);
        piece->p += (size_t)size * piece->p_row;
        piece->out += (size_t)size * piece->out_row;
    }
    return rows;
}

INLINE void dot_rows(struct piece piece, size_t rows, int columns)
{
    rows = dot_some_rows(&piece, rows, DOT_ROWS, columns);
    rows = dot_some_rows(&piece, rows, DOT_ROWS < 4 ? DOT_ROWS : 4, columns);
    rows = dot_some_rows(&piece, rows, DOT_ROWS < 2 ? DOT_ROWS : 2, columns);
    dot_some_rows(&piece, rows, 1, columns);
}

FUSED static void dot_columns(const struct piece *piece, size_t rows)
{
    dot_rows(*piece, rows, DOT_COLUMNS);
}

FUSED static void dot_column(const struct piece *piece, size_t rows)
{
    dot_rows(*piece, rows, 1);
}

static void dot(const struct ls_product *product)
{
    struct piece piece = {
        .p_row = product->p.row, .q_row = product->q_row, .out_row = product->out_row};
    for (size_t r = 0; r < product->depth || r == 0; r += LS_DOT_DEPTH) {
        piece.first = r == 0;
        piece.depth = smaller(product->depth - r, LS_DOT_DEPTH);
        piece.p = product->p.data + r;
        for (size_t j = 0; j < product->columns;) {
            bool all = product->columns - j >= DOT_COLUMNS;
            piece.q = product->q + j * product->q_row + r;
            piece.out = product->out + j;
            if (all)
                dot_columns(&piece, product->rows);
            else
                dot_column(&piece, product->rows);
            j += all ? DOT_COLUMNS : 1;
        }
    }
}

const struct ls_vector_product LS_ISA_NAME(ls_vector_product) = {
    .combine = combine,
    .dot = dot,
    .add_rows = add_rows,
};
