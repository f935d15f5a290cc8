/* See windows.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/bf16/windows.h"

#include "ops/cpu/bf16/kernel.h"

enum { PIECES_MAX = LS_BF16_READ_TERMS };

/* Positions [begin, begin + count) of a row of the grid, which the columns [to, to + count) are. */
struct piece {
    int64_t sample;
    int64_t at[2];
    int64_t begin;
    int32_t to, count;
};

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Columns [first, first + count), cut where rows of the grid end. Returns how many pieces. */
static size_t cut(const struct ls_bf16_windows *windows, int64_t first, int64_t count,
                  struct piece *piece)
{
    const int64_t *grid = windows->grid;
    int64_t row = first / grid[2], begin = first % grid[2], to = 0;
    int64_t at[2] = {row / grid[1] % grid[0], row % grid[1]}, sample = row / grid[1] / grid[0];
    size_t pieces = 0;
    while (to < count) {
        int64_t here = smaller(grid[2] - begin, count - to);
        piece[pieces++] = (struct piece){.sample = sample,
                                         .at = {at[0], at[1]},
                                         .begin = begin,
                                         .to = (int32_t)to,
                                         .count = (int32_t)here};
        to += here;
        begin = 0;
        if (++at[1] < grid[1])
            continue;
        at[1] = 0;
        if (++at[0] == grid[0]) {
            at[0] = 0;
            sample++;
        }
    }
    return pieces;
}

/* What a piece meets at a tap: zeros, numbers, zeros. */
static struct ls_bf16_run meet(const struct ls_bf16_windows *windows, const struct piece *piece,
                               const int64_t offset[3])
{
    const int64_t *extent = windows->extent, step = windows->step[2];
    const int64_t i = piece->at[0] * windows->step[0] + offset[0];
    const int64_t j = piece->at[1] * windows->step[1] + offset[1];
    const int64_t first = piece->begin * step + offset[2]; /* where the first position meets */
    struct ls_bf16_run run = {.to = piece->to, .head = piece->count};
    if (i < 0 || i >= extent[0] || j < 0 || j >= extent[1] || first >= extent[2])
        return run;
    const int64_t head = first < 0 ? (-first + step - 1) / step : 0;
    if (head >= piece->count || first + head * step >= extent[2])
        return run;
    const int64_t inside = (extent[2] - 1 - first) / step + 1;
    const int64_t end = smaller(inside, piece->count);
    run.head = (int32_t)head;
    run.count = (int32_t)(end - head);
    run.tail = (int32_t)(piece->count - end);
    run.from =
        piece->sample * windows->sample + (i * extent[1] + j) * extent[2] + first + head * step;
    return run;
}

/* `rows` channels from c on at a tap, in rows from `at` on, `pitch` apart and `width` wide. */
static void read_tap(const struct ls_bf16_windows *windows, const struct piece *piece,
                     size_t pieces, int64_t tap, int64_t c, int64_t rows, void *to, size_t at,
                     size_t pitch, size_t width)
{
    struct ls_bf16_run run[PIECES_MAX];
    const struct ls_vector_bf16_windows *vector = ls_vector_bf16_windows();
    const int64_t plane = windows->plane, step = windows->step[2];
    const void *data = ls_bf16_element(windows->data, windows->f32, c * plane);
    for (size_t i = 0; i < pieces; i++)
        run[i] = meet(windows, &piece[i], windows->offset[tap]);
    if (windows->f32)
        vector->copy_floats(run, pieces, data, plane, step, (size_t)rows, (float *)to + at, pitch);
    else
        vector->copy(run, pieces, data, plane, step, (size_t)rows, (uint16_t *)to + at, pitch,
                     width);
}

/* Rows [begin, end) of columns [first, first + count). */
static void read_block(const struct ls_bf16_windows *windows, int64_t begin, int64_t end,
                       int64_t first, int64_t count, void *to, size_t pitch)
{
    struct piece piece[PIECES_MAX];
    const size_t pieces = cut(windows, first, count, piece);
    const int64_t channels = windows->channels, taps = windows->taps;
    const int64_t last = smaller(end, taps * channels);
    if (windows->by_channel) {
        for (int64_t tap = 0; tap < taps; tap++) {
            const int64_t c = (begin - tap + taps - 1) / taps, row = c * taps + tap;
            if (row < last)
                read_tap(windows, piece, pieces, tap, c, (last - 1 - row) / taps + 1, to,
                         (size_t)(row - begin) * pitch, (size_t)taps * pitch, pitch);
        }
    } else {
        for (int64_t row = begin, rows; row < last; row += rows) {
            rows = smaller(channels - row % channels, last - row);
            read_tap(windows, piece, pieces, row / channels, row % channels, rows, to,
                     (size_t)(row - begin) * pitch, pitch, pitch);
        }
    }
    if (last < end)
        ls_bf16_put_ones(windows->f32, to, (size_t)(smaller(last, end) - begin) * pitch,
                         (size_t)count);
}

static void read_columns(const struct ls_bf16_operand *operand, int64_t first, int64_t count,
                         int64_t begin, int64_t end, void *to, size_t pitch)
{
    read_block(operand->user, begin, end, first, count, to, pitch);
}

static void read_rows(const struct ls_bf16_operand *operand, int64_t first, int64_t count,
                      int64_t begin, int64_t end, void *to, size_t pitch)
{
    read_block(operand->user, first, first + count, begin, end - begin, to, pitch);
}

/* Whether each position meets the number at its own place, and planes are one row. */
static bool is_one_row(const struct ls_bf16_windows *windows)
{
    const int64_t *extent = windows->extent, *grid = windows->grid, *offset = windows->offset[0];
    return windows->taps == 1 && offset[0] == 0 && offset[1] == 0 && offset[2] == 0 &&
           windows->step[2] == 1 && grid[0] == 1 && grid[1] == 1 && extent[0] == 1 &&
           extent[1] == 1 && grid[2] == extent[2];
}

/* Columns [first, first + count) of channels [begin, end), if they are of one sample. */
static const void *look(const struct ls_bf16_windows *windows, int64_t begin, int64_t end,
                        int64_t first, int64_t count, size_t *pitch)
{
    const int64_t row = windows->grid[2], sample = first / row, at = first % row;
    if (!is_one_row(windows) || end > windows->channels || at + count > row)
        return NULL;
    *pitch = (size_t)windows->plane;
    return ls_bf16_element(windows->data, windows->f32,
                           sample * windows->sample + begin * windows->plane + at);
}

static const void *look_at_columns(const struct ls_bf16_operand *operand, int64_t first,
                                   int64_t count, int64_t begin, int64_t end, size_t *pitch)
{
    return look(operand->user, begin, end, first, count, pitch);
}

static const void *look_at_rows(const struct ls_bf16_operand *operand, int64_t first, int64_t count,
                                int64_t begin, int64_t end, size_t *pitch)
{
    return look(operand->user, first, first + count, begin, end - begin, pitch);
}

struct ls_bf16_operand ls_bf16_columns(const struct ls_bf16_windows *windows)
{
    return (struct ls_bf16_operand){.lines = ls_bf16_positions(windows),
                                    .by_term = true,
                                    .read = read_columns,
                                    .look = look_at_columns,
                                    .user = windows};
}

struct ls_bf16_operand ls_bf16_rows(const struct ls_bf16_windows *windows)
{
    return (struct ls_bf16_operand){.lines =
                                        windows->taps * windows->channels + (windows->ones ? 1 : 0),
                                    .read = read_rows,
                                    .look = look_at_rows,
                                    .user = windows};
}

size_t ls_bf16_row_runs(const struct ls_bf16_windows *windows, int axis, int64_t rows,
                        const int64_t stands[3], struct ls_bf16_run *run)
{
    int64_t count[3];
    for (int i = 0; i < 3; i++)
        count[i] = i < axis ? 1 : i == axis ? rows : windows->grid[i];
    size_t runs = 0;
    for (int64_t i = 0; i < count[0]; i++)
        for (int64_t j = 0; j < count[1]; j++) {
            const struct piece piece = {
                .at = {i, j}, .to = (int32_t)(runs * (size_t)count[2]), .count = (int32_t)count[2]};
            run[runs++] = meet(windows, &piece, stands);
        }
    return runs;
}
