/* Local response normalisation across channels.
 *
 * A tile of positions, with all their channels, is copied to a buffer in which neighbouring
 * channels are `step` elements apart and size / 2 zeros lie before the first channel and behind the
 * last. Then a sum over channels is a sum over shifted arrays, whatever the layout was:
 *
 *     plain:   for each channel a row of the tile's positions; step = positions
 *     blocked: for each position a row of all channels, zeros in between; step = 1
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/lrn.h"

#include "ops/cpu/vector/lrn_parts.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))

enum { TILE = 2048 }; /* elements of a buffer, about: four of them stay in the nearest cache */

/* A tile as runs of elements that are contiguous both in the tensor and in the buffer. */
struct tile {
    int64_t step;                      /* in the buffer, from a channel to the next */
    int64_t elements;                  /* of the buffer, without the zeros at both ends */
    int64_t rows, columns, length;     /* rows x columns runs of `length` elements */
    int64_t memory_row, memory_column; /* from run to run in the tensor */
    int64_t buffer_row, buffer_column; /* and in the buffer */
};

/* What is summed, with `margin` zeros at both ends; sums and then s; functions of s. */
struct buffers {
    float *window, *sum, *power, *inverse;
    int64_t margin;
};

static int64_t padded_channels(const struct ls_lrn *lrn)
{
    return (lrn->channels + lrn->block - 1) / lrn->block * lrn->block;
}

/* Half the window; what is wider than all channels sums no more than they. */
static int64_t reach(const struct ls_lrn *lrn)
{
    int64_t half = lrn->size / 2;
    return half < lrn->channels ? half : lrn->channels - 1;
}

/* From one position to the next in a blocked buffer: the zeros behind a position's channels are
 * also those before the channels of the next one. */
static int64_t position_pitch(const struct ls_lrn *lrn)
{
    int64_t padded = padded_channels(lrn), needed = lrn->channels + reach(lrn);
    return padded > needed ? padded : needed;
}

/* Positions of a sample that are worked on at a time. */
static int64_t tile_positions(const struct ls_lrn *lrn)
{
    int64_t points = lrn->height * lrn->width;
    int64_t positions = TILE / position_pitch(lrn);
    if (lrn->block == 1)
        positions = positions / LS_LANES * LS_LANES;
    int64_t least = lrn->block == 1 ? LS_LANES : 1;
    positions = positions > least ? positions : least;
    return positions < points ? positions : points;
}

static struct tile make_tile(const struct ls_lrn *lrn, int64_t positions)
{
    int64_t points = lrn->height * lrn->width, pitch = position_pitch(lrn);
    if (lrn->block == 1)
        return (struct tile){.step = positions,
                             .elements = lrn->channels * positions,
                             .rows = lrn->channels,
                             .columns = 1,
                             .length = positions,
                             .memory_row = points,
                             .buffer_row = positions};
    return (struct tile){.step = 1,
                         .elements = positions * pitch,
                         .rows = padded_channels(lrn) / lrn->block,
                         .columns = positions,
                         .length = lrn->block,
                         .memory_row = points * lrn->block,
                         .memory_column = lrn->block,
                         .buffer_row = lrn->block,
                         .buffer_column = pitch};
}

static int64_t across_scratch(const struct ls_lrn *lrn)
{
    struct tile tile = make_tile(lrn, tile_positions(lrn));
    return 4 * tile.elements + 2 * reach(lrn) * tile.step;
}

static struct buffers make_buffers(const struct ls_lrn *lrn, float *scratch)
{
    struct tile tile = make_tile(lrn, tile_positions(lrn));
    struct buffers at = {.margin = reach(lrn) * tile.step};
    at.window = scratch + at.margin;
    at.sum = at.window + tile.elements + at.margin;
    at.power = at.sum + tile.elements;
    at.inverse = at.power + tile.elements;
    memset(scratch, 0, (size_t)(tile.elements + 2 * at.margin) * sizeof *scratch);
    return at;
}

/* Calls RUN(place in the tensor, place in the buffer, length) for each run of `tile`, with a length
 * that the compiler knows where it is short. */
#define EACH_RUN(tile, RUN)                                                                        \
    do {                                                                                           \
        for (int64_t row = 0; row < (tile)->rows; row++)                                           \
            for (int64_t column = 0; column < (tile)->columns; column++) {                         \
                int64_t m = row * (tile)->memory_row + column * (tile)->memory_column;             \
                int64_t b = row * (tile)->buffer_row + column * (tile)->buffer_column;             \
                if ((tile)->length == 16)                                                          \
                    RUN(m, b, 16);                                                                 \
                else if ((tile)->length == 8)                                                      \
                    RUN(m, b, 8);                                                                  \
                else                                                                               \
                    RUN(m, b, (tile)->length);                                                     \
            }                                                                                      \
    } while (0)

static ALWAYS_INLINE void copy(const float *restrict x, float *restrict y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i];
}

static void gather(const struct tile *tile, const float *x, float *buffer)
{
#define RUN(m, b, n) copy(x + (m), buffer + (b), n)
    EACH_RUN(tile, RUN);
#undef RUN
}

static void scatter(const struct tile *tile, const float *buffer, float *y)
{
#define RUN(m, b, n) copy(buffer + (b), y + (m), n)
    EACH_RUN(tile, RUN);
#undef RUN
}

/* Zeros for the lanes behind the last channel of each position, which may hold anything after an
 * operation (1 / 0, for one). */
static void clear_lanes(const struct ls_lrn *lrn, const struct tile *tile, float *buffer)
{
    int64_t lanes = padded_channels(lrn) - lrn->channels;
    for (int64_t i = 0; lanes > 0 && i < tile->columns; i++)
        memset(buffer + i * tile->buffer_column + lrn->channels, 0, (size_t)lanes * sizeof *buffer);
}

/* at->sum = sum of at->window over the channels around. */
static void sum_window(const struct ls_lrn *lrn, const struct tile *tile, const struct buffers *at)
{
    int64_t margin = reach(lrn) * tile->step;
    /* Where the tile is smaller than the one before, that one's elements lie behind it. */
    memset(at->window + tile->elements, 0, (size_t)margin * sizeof *at->window);
    ls_lrn_sum(at->window - margin, tile->step, 2 * reach(lrn) + 1, tile->elements, at->sum);
}

/* Elements of a sample, and from a position to the next within a run of positions. */
static int64_t sample_elements(const struct ls_lrn *lrn)
{
    return padded_channels(lrn) * lrn->height * lrn->width;
}

#define RUNS_PASTE(name, type) name##_of_##type

#define NUMBER     float
#define GET(x)     (x)
#define PUT(x)     (x)
#define RUNS(name) RUNS_PASTE(name, fp32)
#include "ops/cpu/vector/lrn_runs.h"
#undef NUMBER
#undef GET
#undef PUT
#undef RUNS

#define NUMBER     uint16_t
#define GET(x)     ls_widen_bf16(x)
#define PUT(x)     ls_round_bf16(x)
#define RUNS(name) RUNS_PASTE(name, bf16)
#include "ops/cpu/vector/lrn_runs.h"
#undef NUMBER
#undef GET
#undef PUT
#undef RUNS

static void across_forward(const struct ls_lrn *lrn, const void *x, void *y, float *scale,
                           float *scratch)
{
    if (lrn->bf16)
        forward_of_bf16(lrn, x, y, scale, scratch);
    else
        forward_of_fp32(lrn, x, y, scale, scratch);
}

static void across_backward(const struct ls_lrn *lrn, const void *x, const void *y, const void *dy,
                            const float *scale, void *dx, float *scratch)
{
    if (lrn->bf16)
        backward_of_bf16(lrn, x, y, dy, scale, dx, scratch);
    else
        backward_of_fp32(lrn, x, y, dy, scale, dx, scratch);
}

const struct ls_vector_lrn_across LS_ISA_NAME(ls_vector_lrn_across) = {
    .scratch = across_scratch,
    .forward = across_forward,
    .backward = across_backward,
};
