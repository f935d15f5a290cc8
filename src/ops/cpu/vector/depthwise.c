/* Gradients by x of convolutions of single channels. See depthwise.h.
 *
 * Each number of dx is summed up in registers, weight after weight, and written once: unlike a
 * convolution of many channels this one is bound by memory. Several numbers of a row are summed up
 * at a time, so that additions do not wait for each other.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/depthwise.h"

#include "ops/cpu/vector/lanes.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))

/* What comes to the numbers of a run. */
struct terms {
    const struct ls_depthwise_term *first;
    size_t count;
};

/* `count` numbers; dy and dx are those of the first, dx of the others `step` floats apart. */
static ALWAYS_INLINE void sum_some(const struct terms *terms, const float *dy, const float *weights,
                                   int count, int64_t block, int64_t step, float *dx)
{
    LS_REGISTER sum[8];
    for (int i = 0; i < count; i++)
        sum[i] = LS_SPREAD(0.0F);
    for (size_t t = 0; t < terms->count; t++) {
        const float *from = dy + terms->first[t].dy;
        const LS_REGISTER weight = LS_LOAD(weights + terms->first[t].weight);
        for (int i = 0; i < count; i++)
            sum[i] = sum[i] + LS_LOAD(from + i * block) * weight;
    }
    for (int i = 0; i < count; i++)
        LS_STORE(dx + i * step, sum[i]);
}

/* One register's channels of all numbers of a run. */
static ALWAYS_INLINE void sum_run(const struct terms *terms, const float *dy, const float *weights,
                                  int64_t count, int64_t block, int64_t step, float *dx)
{
    int64_t at = 0;
    for (; at + 8 <= count; at += 8)
        sum_some(terms, dy + at * block, weights, 8, block, step, dx + at * step);
    if (at + 4 <= count) {
        sum_some(terms, dy + at * block, weights, 4, block, step, dx + at * step);
        at += 4;
    }
    if (at + 2 <= count) {
        sum_some(terms, dy + at * block, weights, 2, block, step, dx + at * step);
        at += 2;
    }
    if (at < count)
        sum_some(terms, dy + at * block, weights, 1, block, step, dx + at * step);
}

/* As sum_run, for a block that is smaller than a register. */
static void sum_small(const struct terms *terms, const float *dy, const float *weights,
                      int64_t count, int64_t block, int64_t step, float *dx)
{
    for (int64_t at = 0; at < count; at++)
        for (int64_t lane = 0; lane < block; lane++) {
            float sum = 0;
            for (size_t t = 0; t < terms->count; t++)
                sum = sum + dy[terms->first[t].dy + at * block + lane] *
                                weights[terms->first[t].weight + lane];
            dx[at * step + lane] = sum;
        }
}

/* The weights of a block of channels: [kernel, block], zeros behind the last channel. */
static void load_weights(const struct ls_depthwise *shape, const float *w, int64_t first,
                         float *weights)
{
    const int64_t size = shape->kernel[0] * shape->kernel[1], block = shape->block;
    for (int64_t k = 0; k < size; k++)
        for (int64_t lane = 0; lane < block; lane++)
            weights[k * block + lane] =
                first + lane < shape->channels ? w[(first + lane) * size + k] : 0;
}

/* All of dx of one block of channels of one sample. */
static ALWAYS_INLINE void write_plane(const struct ls_depthwise *shape, int64_t block,
                                      const float *dy, const float *weights, float *dx)
{
    for (int64_t i = 0; i < shape->in[0]; i++) {
        const struct ls_depthwise_row *row = &shape->row[i];
        const float *from = dy + row->from * block;
        for (size_t r = row->begin; r < row->end; r++) {
            const struct ls_depthwise_run *run = &shape->run[r];
            const struct terms terms = {shape->term + run->begin, run->end - run->begin};
            const int64_t step = run->step * block;
            float *to = dx + (i * shape->in[1] + run->first) * block;
            if (block < LS_WIDTH)
                sum_small(&terms, from, weights, run->count, block, step, to);
            for (int64_t lane = 0; lane + LS_WIDTH <= block; lane += LS_WIDTH)
                sum_run(&terms, from + lane, weights + lane, run->count, block, step, to + lane);
        }
    }
}

static void depthwise_data(const struct ls_depthwise *shape, const float *dy, const float *w,
                           float *dx, int64_t begin, int64_t end)
{
    const int64_t block = shape->block, blocks = (shape->channels + block - 1) / block;
    const int64_t in = shape->in[0] * shape->in[1] * block;
    const int64_t out = shape->out[0] * shape->out[1] * block;
    for (int64_t c = begin; c < end && c < shape->channels; c += block) {
        float weights[LS_DEPTHWISE_TAPS_MAX * LS_LANES];
        load_weights(shape, w, c, weights);
        for (int64_t n = 0; n < shape->samples; n++) {
            const int64_t plane = n * blocks + c / block;
            if (block == 16)
                write_plane(shape, 16, dy + plane * out, weights, dx + plane * in);
            else
                write_plane(shape, 8, dy + plane * out, weights, dx + plane * in);
        }
    }
}

const struct ls_vector_depthwise LS_ISA_NAME(ls_vector_depthwise) = {
    .data = depthwise_data,
};
