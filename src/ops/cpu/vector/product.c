/* Products of matrices: a few rows and columns of the result at a time, in registers.
 *
 * See vector/product.h for the order of sums: `combine` adds the terms of an element one after the
 * other within LS_COMBINE_DEPTH of them, `dot` keeps term r in lane r % 16 within LS_DOT_DEPTH.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/product.h"

#include "ops/cpu/vector/registers.h"

/* How many rows and registers, or columns, of the result a piece has. */
#if LS_ISA_IS(AVX512)
enum { COMBINE_VECTORS = 4, DOT_ROWS = 6, DOT_COLUMNS = 4 };
#elif LS_ISA_IS(AVX2)
enum { COMBINE_VECTORS = 2, DOT_ROWS = 3, DOT_COLUMNS = 2 };
#else
enum { COMBINE_VECTORS = 1, DOT_ROWS = 1, DOT_COLUMNS = 1 };
#endif
enum { COMBINE_ROWS = 6 };

static inline size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* ---- Rows of q, combined --------------------------------------------------------------------- */

enum { WIDE = COMBINE_VECTORS * WIDTH, LINE = 16 /* floats */ };

/* The rows of q whose turn comes next, behind the columns of this piece or the terms. They are
 * fetched from memory meanwhile: WIDE columns of a row after every so many terms, evenly, since a
 * core waits for few lines at a time. */
struct ahead {
    const float *at;
    size_t row, every, wait;
};

/* A piece of a result: `rows` rows (a constant), some columns; terms [0, depth) of the sums. */
struct piece {
    const float *p, *q;
    size_t p_row, p_step, q_row, depth;
    float *out;
    size_t out_row;
    bool first;        /* these are the first terms */
    const float *more; /* q of the terms that come next; NULL: none do */
    struct ahead *ahead;
    const float *next[LS_PRODUCT_NEXT];
    size_t next_row;
    /* `dot`: the rows of q behind these; so many of them are fetched by each piece, until none is
     * left. */
    const float *behind;
    size_t behind_count, behind_left;
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

/* The piece's place in what the caller goes through next. */
INLINE void fetch_next(const struct piece *piece, int rows, int vectors)
{
    if (vectors * WIDTH < LINE)
        return;
    for (int k = 0; k < LS_PRODUCT_NEXT; k++) {
        if (piece->next[k] == NULL)
            continue;
        UNROLL
        for (int i = 0; i < rows; i++)
            UNROLL
        for (int j = 0; j < vectors * WIDTH; j += LINE)
            FETCH(piece->next[k] + (size_t)i * piece->next_row + j);
    }
}

INLINE void fetch_ahead(struct ahead *ahead)
{
    UNROLL
    for (int j = 0; j < WIDE; j += LINE)
        FETCH(ahead->at + j);
    ahead->at += ahead->row;
    ahead->wait = ahead->every;
}

/* `some` < WIDTH: only so many columns of one register. `packed`, unless it is NULL, gets q's rows,
 * one right behind the other. */
INLINE void combine_piece(const struct piece *piece, int rows, int vectors, size_t some,
                          float *packed)
{
    REGISTER sum[COMBINE_ROWS][COMBINE_VECTORS];
    const float *p = piece->p, *q = piece->q;
    UNROLL
    for (int i = 0; i < rows; i++)
        UNROLL
    for (int v = 0; v < vectors; v++)
        sum[i][v] = ZERO();
    fetch_next(piece, rows, vectors);
    for (size_t r = 0; r < piece->depth; r++) {
        REGISTER x[COMBINE_VECTORS];
        UNROLL
        for (int v = 0; v < vectors; v++) {
            x[v] = some < WIDTH ? LOAD_SOME(q, some) : LOAD(q + v * WIDTH);
            if (packed != NULL)
                STORE(packed + v * WIDTH, x[v]);
        }
        if (--piece->ahead->wait == 0)
            fetch_ahead(piece->ahead);
        UNROLL
        for (int i = 0; i < rows; i++) {
            REGISTER factor = SPREAD(p[(size_t)i * piece->p_row]);
            UNROLL
            for (int v = 0; v < vectors; v++)
                sum[i][v] = FMA(factor, x[v], sum[i][v]);
        }
        p += piece->p_step;
        q += piece->q_row;
        if (packed != NULL)
            packed += vectors * WIDTH;
    }
    UNROLL
    for (int i = 0; i < rows; i++)
        finish_row(piece, i, vectors, some, sum[i]);
}

static inline void advance(struct piece *piece)
{
    piece->p += COMBINE_ROWS * piece->p_row;
    piece->out += COMBINE_ROWS * piece->out_row;
    for (int k = 0; k < LS_PRODUCT_NEXT; k++)
        if (piece->next[k] != NULL)
            piece->next[k] += COMBINE_ROWS * piece->next_row;
}

/* All rows of a piece that has `rows` of them, COMBINE_ROWS at a time. */
INLINE void combine_rows(struct piece piece, size_t rows, int vectors, size_t some)
{
    for (; rows >= COMBINE_ROWS; rows -= COMBINE_ROWS) {
        combine_piece(&piece, COMBINE_ROWS, vectors, some, NULL);
        advance(&piece);
    }
    switch (rows) {
    case 5:
        combine_piece(&piece, 5, vectors, some, NULL);
        break;
    case 4:
        combine_piece(&piece, 4, vectors, some, NULL);
        break;
    case 3:
        combine_piece(&piece, 3, vectors, some, NULL);
        break;
    case 2:
        combine_piece(&piece, 2, vectors, some, NULL);
        break;
    case 1:
        combine_piece(&piece, 1, vectors, some, NULL);
        break;
    default:
        break;
    }
}

/* Rows of q lie far apart, often by a power of two, so that few of them are in the first-level
 * cache at a time: the first piece copies them to one place for the others, if these are many. */
FUSED static void combine_wide(const struct piece *from, size_t rows)
{
    _Alignas(64) float packed[LS_COMBINE_DEPTH * WIDE];
    struct piece piece = *from;
    if (rows > 2 * COMBINE_ROWS) {
        combine_piece(&piece, COMBINE_ROWS, COMBINE_VECTORS, WIDTH, packed);
        advance(&piece);
        piece.q = packed;
        piece.q_row = WIDE;
        rows -= COMBINE_ROWS;
    }
    combine_rows(piece, rows, COMBINE_VECTORS, WIDTH);
}

FUSED static void combine_narrow(const struct piece *piece, size_t rows)
{
    combine_rows(*piece, rows, 1, WIDTH);
}

FUSED static void combine_some(const struct piece *piece, size_t rows, size_t some)
{
    combine_rows(*piece, rows, 1, some);
}

static void set_ahead(const struct piece *piece, const float *at)
{
    piece->ahead->at = at;
    piece->ahead->wait = at != NULL && WIDE >= LINE ? 1 : SIZE_MAX;
}

/* Columns of the result whose terms are those of `piece`, some registers at a time. */
static void combine_columns(struct piece piece, size_t rows, size_t columns)
{
    while (columns > 0) {
        size_t width = columns >= WIDE ? WIDE : smaller(columns, WIDTH);
        set_ahead(&piece, columns >= width + WIDE ? piece.q + width : piece.more);
        if (width == WIDE)
            combine_wide(&piece, rows);
        else if (width == WIDTH)
            combine_narrow(&piece, rows);
        else
            combine_some(&piece, rows, width);
        piece.q += width;
        piece.out += width;
        for (int k = 0; k < LS_PRODUCT_NEXT; k++)
            if (piece.next[k] != NULL)
                piece.next[k] += width;
        columns -= width;
    }
}

static void combine(const struct ls_product *product)
{
    const size_t pieces = (product->rows + COMBINE_ROWS - 1) / COMBINE_ROWS;
    struct ahead ahead = {.row = product->q_row, .every = pieces};
    struct piece piece = {.p_row = product->p.row,
                          .p_step = product->p.step,
                          .q_row = product->q_row,
                          .out = product->out,
                          .out_row = product->out_row,
                          .ahead = &ahead,
                          .next_row = product->next_row};
    for (int k = 0; k < LS_PRODUCT_NEXT; k++)
        piece.next[k] = product->next[k];
    for (size_t r = 0; r < product->depth || r == 0; r += LS_COMBINE_DEPTH) {
        piece.first = r == 0;
        piece.depth = smaller(product->depth - r, LS_COMBINE_DEPTH);
        piece.p = product->p.data + r * product->p.step;
        piece.q = product->q + r * product->q_row;
        piece.more = piece.depth < product->depth - r ? piece.q + piece.depth * piece.q_row : NULL;
        combine_columns(piece, product->rows, product->columns);
        for (int k = 0; k < LS_PRODUCT_NEXT; k++)
            piece.next[k] = NULL;
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

/* ---- Rows times rows ------------------------------------------------------------------------- */

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
    const size_t behind = smaller(piece->behind_count, piece->behind_left);
    for (; r + LS_LANES <= piece->depth; r += LS_LANES) {
        for (size_t j = 0; j < behind; j++)
            FETCH(piece->behind + j * piece->q_row + r);
        dot_step(piece, rows, columns, r, LS_LANES, sum);
    }
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
        piece->behind += piece->behind_count * piece->q_row;
        piece->behind_left -= smaller(piece->behind_count, piece->behind_left);
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
    const size_t pieces = (product->rows + DOT_ROWS - 1) / DOT_ROWS;
    struct piece piece = {.p_row = product->p.row,
                          .q_row = product->q_row,
                          .out_row = product->out_row,
                          .behind_count = (DOT_COLUMNS + pieces - 1) / (pieces > 0 ? pieces : 1)};
    for (size_t r = 0; r < product->depth || r == 0; r += LS_DOT_DEPTH) {
        piece.first = r == 0;
        piece.depth = smaller(product->depth - r, LS_DOT_DEPTH);
        piece.p = product->p.data + r;
        for (size_t j = 0; j < product->columns;) {
            bool all = product->columns - j >= DOT_COLUMNS;
            piece.q = product->q + j * product->q_row + r;
            piece.out = product->out + j;
            piece.behind = piece.q + DOT_COLUMNS * product->q_row;
            piece.behind_left = product->columns - j >= 2 * DOT_COLUMNS ? DOT_COLUMNS : 0;
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
