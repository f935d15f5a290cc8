/* Convolutions and deconvolutions of bf16 or fp32 numbers with a group for each channel: sums of
 * few terms, which are no product of matrices. Forward and by data a sum is one chain over the
 * taps; by weights it is made of blocks, as others are (docs/numerics.md).
 *
 * Sixteen channels go together, sample by sample: they are spread to places of a padded plane, each
 * with a number for each channel (ops/cpu/vector/bf16_depthwise.h).
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/bf16_depthwise.h"

#include <string.h>

#include "base/memory.h"
#include "ops/cpu/bf16/convolution.h"
#include "ops/cpu/bf16/kernel.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/primitive.h"

enum { CHANNELS = LS_BF16_CHANNELS, CHUNK = 64, STATE = 3 * CHANNELS };

struct depthwise {
    struct ls_bf16_convolution *convolution;
    int64_t from[3];   /* extents of what windows are in */
    int64_t before[3]; /* places of the padded plane in front of it, along each axis */
    int64_t padded[3]; /* extents of the padded plane */
    int64_t positions; /* of all classes */
    int32_t *at;       /* by position of all classes, one class after the other: see meetings */
    int32_t *to;       /* and its place in a plane of the result */
    int32_t *offset;   /* by tap of all classes */
};

/* Where in the scratch what lies, in floats. */
struct areas {
    size_t plane, weights, dy, sums;
};

static bool accepts(const struct ls_op *op)
{
    if (!ls_bf16_accepts(op))
        return false;
    const struct ls_convolution_attr *attr = &op->attr.convolution;
    const struct ls_shape *x = &ls_primitive_value(op, LS_SOURCE)->shape;
    const struct ls_shape *y = &ls_primitive_value(op, LS_TARGET)->shape;
    const int channels = x->rank - attr->window.axes - 1;
    return x->dim[channels] == attr->group && y->dim[channels] == attr->group;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- Tables ---------------------------------------------------------------------------------- */

static int64_t step_of(const struct ls_bf16_convolution *convolution, int axis)
{
    return convolution->pass == LS_BF16_TO_X ? 1 : convolution->stride[axis];
}

/* How far the windows of all classes reach beyond what there is. */
static void find_padding(struct depthwise *state)
{
    const struct ls_bf16_convolution *convolution = state->convolution;
    for (int i = 0; i < 3; i++) {
        int64_t begin = 0, end = state->from[i];
        for (int64_t c = 0; c < convolution->class_count; c++) {
            const struct ls_bf16_class *class = &convolution->classes[c];
            const int64_t last = (class->grid[i] - 1) * step_of(convolution, i);
            for (int64_t k = 0; k < class->taps; k++) {
                const int64_t offset = class->offset[k][i];
                begin = offset < begin ? offset : begin;
                end = last + offset >= end ? last + offset + 1 : end;
            }
        }
        state->before[i] = -begin;
        state->padded[i] = end - begin;
    }
}

static int64_t place_of(const int64_t extent[3], int64_t d, int64_t h, int64_t w)
{
    return (d * extent[1] + h) * extent[2] + w;
}

static void fill_positions(const struct depthwise *state, const struct ls_bf16_class *class,
                           int32_t *at, int32_t *to)
{
    const struct ls_bf16_convolution *convolution = state->convolution;
    const bool to_x = convolution->pass == LS_BF16_TO_X;
    const int64_t *extent = to_x ? convolution->x : convolution->y;
    const int64_t *stride = convolution->stride, *first = class->first, *padded = state->padded;
    int64_t step[3], apart[3];
    for (int i = 0; i < 3; i++) {
        step[i] = step_of(convolution, i);
        apart[i] = to_x ? stride[i] : 1;
    }
    for (int64_t d = 0; d < class->grid[0]; d++)
        for (int64_t h = 0; h < class->grid[1]; h++)
            for (int64_t w = 0; w < class->grid[2]; w++) {
                *at++ = (int32_t)place_of(padded, d * step[0], h * step[1], w * step[2]);
                *to++ = (int32_t)place_of(extent, first[0] + d * apart[0], first[1] + h * apart[1],
                                          first[2] + w * apart[2]);
            }
}

static void fill_tables(struct depthwise *state)
{
    const struct ls_bf16_convolution *convolution = state->convolution;
    const int64_t *before = state->before;
    int64_t done = 0;
    for (int64_t c = 0; c < convolution->class_count; c++) {
        const struct ls_bf16_class *class = &convolution->classes[c];
        const int64_t taps = class->offset - convolution->offsets; /* of the classes before */
        for (int64_t k = 0; k < class->taps; k++) {
            const int64_t *offset = class->offset[k];
            state->offset[taps + k] = (int32_t)place_of(
                state->padded, offset[0] + before[0], offset[1] + before[1], offset[2] + before[2]);
        }
        fill_positions(state, class, state->at + done, state->to + done);
        done += ls_bf16_plane(class->grid);
    }
}

/* ---- Memory ---------------------------------------------------------------------------------- */

/* Returns how many floats there are in all. */
static size_t find_areas(const struct depthwise *state, struct areas *areas)
{
    const struct ls_bf16_convolution *convolution = state->convolution;
    const size_t taps = (size_t)convolution->taps;
    areas->plane = 0;
    areas->weights = (size_t)ls_bf16_plane(state->padded) * CHANNELS;
    areas->dy = areas->sums = areas->weights + taps * CHANNELS;
    if (convolution->pass != LS_BF16_TO_W)
        return areas->sums + (size_t)CHUNK * CHANNELS;
    areas->sums = areas->dy + (size_t)ls_bf16_plane(convolution->y) * CHANNELS;
    return areas->sums + (taps + 1) * STATE;
}

static void release(struct ls_prepared *prepared)
{
    struct depthwise *state = prepared->state;
    if (state != NULL) {
        ls_bf16_convolution_free(state->convolution);
        ls_free(state->at);
        ls_free(state->to);
        ls_free(state->offset);
    }
    ls_own_release(prepared);
}

/* Places of a plane are numbered in 32 bits. */
static int check_padding(const struct depthwise *state, const struct ls_op *op,
                         struct ls_error *error)
{
    int64_t places = 1;
    for (int i = 0; i < 3; i++)
        if (!ls_multiply(places, state->padded[i], &places) || places > INT32_MAX)
            return ls_bf16_refuse(op, "windows that reach over more than 2^31 places are too large",
                                  error);
    return 0;
}

static int make_state(struct depthwise *state, const struct ls_op *op, struct ls_error *error)
{
    LS_TRY(ls_bf16_convolution_new(op, &state->convolution, error));
    const struct ls_bf16_convolution *convolution = state->convolution;
    const bool to_x = convolution->pass == LS_BF16_TO_X;
    for (int i = 0; i < 3; i++)
        state->from[i] = to_x ? convolution->y[i] : convolution->x[i];
    find_padding(state);
    LS_TRY(check_padding(state, op, error));
    state->positions = ls_bf16_plane(to_x ? convolution->x : convolution->y);
    state->at = ls_alloc((size_t)state->positions, sizeof *state->at);
    state->to = ls_alloc((size_t)state->positions, sizeof *state->to);
    state->offset = ls_alloc((size_t)convolution->taps, sizeof *state->offset);
    if (state->at == NULL || state->to == NULL || state->offset == NULL)
        return ls_fail_memory(error, "tables of windows");
    fill_tables(state);
    return 0;
}

static int prepare(struct ls_prepared *prepared, struct ls_error *error)
{
    struct depthwise *state = ls_alloc(1, sizeof *state);
    struct areas areas;
    prepared->state = state;
    if (state == NULL)
        return ls_fail_memory(error, "a convolution");
    int status = make_state(state, prepared->op, error);
    if (status != 0) {
        release(prepared);
        return status;
    }
    size_t bytes = find_areas(state, &areas) * sizeof(float), sums = 0;
    if (prepared->op->kind == LS_OP_DECONVOLUTION_WEIGHTS)
        sums = ls_bf16_sum_scratch(state->convolution);
    prepared->scratch_bytes = bytes > sums ? bytes : sums;
    return ls_own_prepare_bf16(prepared, ls_cpu_isa_name(ls_cpu_isa()));
}

/* ---- Forward and by data --------------------------------------------------------------------- */

/* `count` numbers of some channels, `plane` apart, from element `at` on. */
static void spread(const struct ls_bf16_convolution *convolution, const void *data, int64_t at,
                   int64_t plane, int64_t channels, int64_t count, float *places)
{
    const struct ls_vector_bf16_depthwise *vector = ls_vector_bf16_depthwise();
    data = ls_bf16_element(data, convolution->f32, at);
    if (convolution->f32)
        vector->spread_floats(data, (size_t)plane, (size_t)channels, (size_t)count, places);
    else
        vector->spread(data, (size_t)plane, (size_t)channels, (size_t)count, places);
}

/* Spreads a sample's channels to the padded plane, whose border is zero already. */
static void spread_plane(const struct depthwise *state, const void *data, int64_t at,
                         int64_t channels, float *plane)
{
    const int64_t *from = state->from, *before = state->before, *padded = state->padded;
    for (int64_t d = 0; d < from[0]; d++)
        for (int64_t h = 0; h < from[1]; h++)
            spread(state->convolution, data, at + (d * from[1] + h) * from[2], ls_bf16_plane(from),
                   channels, from[2],
                   plane + place_of(padded, d + before[0], h + before[1], before[2]) * CHANNELS);
}

/* w [channel][tap] by the taps of all classes. */
static void spread_weights(const struct ls_bf16_convolution *convolution, const void *w,
                           int64_t first, int64_t channels, float *weights)
{
    for (int64_t k = 0; k < convolution->taps; k++)
        spread(convolution, w, first * convolution->taps + convolution->tap_numbers[k],
               convolution->taps, channels, 1, weights + k * CHANNELS);
}

/* The result for one sample's channels: `data` is the first one's plane. */
struct result {
    const struct ls_bf16_ends *ends;
    const float *bias; /* NULL: there is none */
    void *data;
    bool bf16;
    int64_t channels, plane;
};

/* Sums of positions that go to places `to` of a plane; `whole`: these follow each other. */
static void write_chunk(const struct result *result, const int32_t *to, bool whole, int64_t count,
                        const float *sums)
{
    const struct ls_vector_bf16_ends *vector = ls_vector_bf16_ends();
    uint16_t rounded[CHUNK];
    float lines[CHANNELS * CHUNK], finished[CHUNK];
    ls_vector_bf16_depthwise()->gather(sums, (size_t)result->channels, (size_t)count, lines, CHUNK);
    for (int64_t c = 0; c < result->channels; c++) {
        const float *bias = result->bias != NULL ? result->bias + c : NULL;
        float *line = lines + c * CHUNK;
        if (result->bf16) {
            uint16_t *y = (uint16_t *)result->data + c * result->plane;
            vector->row_to_bf16(result->ends, bias, line, whole ? y + *to : rounded, (size_t)count);
            for (int64_t i = 0; !whole && i < count; i++)
                y[to[i]] = rounded[i];
        } else {
            float *y = (float *)result->data + c * result->plane;
            vector->row_to_f32(result->ends, bias, line, whole ? y + *to : finished, (size_t)count);
            for (int64_t i = 0; !whole && i < count; i++)
                y[to[i]] = finished[i];
        }
    }
}

static void run_sample(const struct depthwise *state, const struct areas *areas, float *scratch,
                       const struct result *result)
{
    const struct ls_bf16_convolution *convolution = state->convolution;
    int64_t done = 0;
    for (int64_t c = 0; c < convolution->class_count; c++) {
        const struct ls_bf16_class *class = &convolution->classes[c];
        const int64_t taps = class->offset - convolution->offsets;
        const int64_t end = done + ls_bf16_plane(class->grid);
        for (; done < end; done += CHUNK) {
            const int64_t count = smaller(CHUNK, end - done);
            const struct ls_bf16_meetings meetings = {.at = state->at + done,
                                                      .positions = (size_t)count,
                                                      .offset = state->offset + taps,
                                                      .taps = (size_t) class->taps,
                                                      .f32 = convolution->f32};
            float *sums = scratch + areas->sums;
            ls_vector_bf16_depthwise()->chains(&meetings, scratch + areas->plane,
                                               scratch + areas->weights + taps * CHANNELS, sums);
            write_chunk(result, state->to + done, convolution->class_count == 1, count, sums);
        }
        done = end;
    }
}

static int positions_run(const struct ls_prepared *prepared, void *local, void *const *in,
                         void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)context;
    const struct depthwise *state = prepared->state;
    const struct ls_bf16_convolution *convolution = state->convolution;
    const float *bias = prepared->op->inputs > 2 ? in[2] : NULL;
    struct result result = {.ends = &convolution->ends,
                            .bf16 = prepared->op->output[0]->type == LS_BF16,
                            .plane = state->positions};
    const size_t size = ls_dtype_size(prepared->op->output[0]->type);
    struct areas areas;
    find_areas(state, &areas);
    float *const floats = scratch;
    memset(scratch, 0, areas.weights * sizeof(float)); /* the borders of the plane */
    for (int64_t c = 0; c < convolution->groups; c += CHANNELS) {
        result.channels = smaller(CHANNELS, convolution->groups - c);
        result.bias = bias != NULL ? bias + c : NULL;
        spread_weights(convolution, in[1], c, result.channels, floats + areas.weights);
        for (int64_t n = 0; n < convolution->samples; n++) {
            const int64_t plane = n * convolution->groups + c;
            spread_plane(state, in[0], plane * ls_bf16_plane(state->from), result.channels,
                         floats + areas.plane);
            result.data = (char *)out[0] + (size_t)(plane * result.plane) * size;
            run_sample(state, &areas, floats, &result);
        }
    }
    return 0;
}

/* ---- By weights ------------------------------------------------------------------------------ */

static void write_gradient(int64_t channels, int64_t taps, const float *sums, float *dw, float *db)
{
    for (int64_t k = 0; k < taps; k++)
        for (int64_t c = 0; c < channels; c++)
            dw[c * taps + k] = sums[k * STATE + 2 * CHANNELS + c];
    for (int64_t c = 0; db != NULL && c < channels; c++)
        db[c] = sums[taps * STATE + 2 * CHANNELS + c];
}

static void run_weights(const struct depthwise *state, const void *x, const void *dy, float *dw,
                        float *db, void *scratch)
{
    const struct ls_bf16_convolution *convolution = state->convolution;
    const struct ls_vector_bf16_depthwise *vector = ls_vector_bf16_depthwise();
    const size_t taps = (size_t)convolution->taps, positions = (size_t)state->positions;
    const struct ls_bf16_meetings meetings = {.at = state->at,
                                              .positions = positions,
                                              .offset = state->offset,
                                              .taps = taps,
                                              .f32 = convolution->f32};
    struct areas areas;
    find_areas(state, &areas);
    float *const floats = scratch;
    memset(scratch, 0, areas.weights * sizeof(float)); /* the borders of the plane */
    for (int64_t c = 0; c < convolution->groups; c += CHANNELS) {
        const int64_t channels = smaller(CHANNELS, convolution->groups - c);
        memset(floats + areas.sums, 0, (taps + 1) * STATE * sizeof(float));
        for (int64_t n = 0; n < convolution->samples; n++) {
            const int64_t plane = n * convolution->groups + c;
            spread_plane(state, x, plane * ls_bf16_plane(state->from), channels,
                         floats + areas.plane);
            spread(convolution, dy, plane * state->positions, state->positions, channels,
                   state->positions, floats + areas.dy);
            vector->blocks(&meetings, floats + areas.plane, floats + areas.dy,
                           (size_t)n * positions, floats + areas.sums);
        }
        vector->end_blocks(taps, (size_t)convolution->samples * positions, floats + areas.sums);
        write_gradient(channels, convolution->taps, floats + areas.sums, dw + c * convolution->taps,
                       db != NULL ? db + c : NULL);
    }
}

static int weights_run(const struct ls_prepared *prepared, void *local, void *const *in,
                       void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)context;
    run_weights(prepared->state, in[0], in[1], out[0], prepared->op->outputs > 1 ? out[1] : NULL,
                scratch);
    return 0;
}

static int transposed_weights_run(const struct ls_prepared *prepared, void *local, void *const *in,
                                  void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)context;
    const struct depthwise *state = prepared->state;
    run_weights(state, in[1], in[0], out[0], NULL, scratch);
    if (prepared->op->outputs > 1 && out[1] != NULL)
        ls_bf16_sum_planes(state->convolution, in[1], out[1], scratch);
    return 0;
}

/* ---- The kernels ----------------------------------------------------------------------------- */

#define KERNEL(kernel, op, words, run)                                                             \
    LS_BF16_KERNEL(kernel, op, words, accepts, ls_bf16_layouts, prepare, release, run, NULL)

KERNEL(ls_kernel_bf16_depthwise, LS_OP_CONVOLUTION, "bf16 depthwise convolution", positions_run);
KERNEL(ls_kernel_bf16_depthwise_data, LS_OP_CONVOLUTION_DATA,
       "bf16 depthwise convolution backward data", positions_run);
KERNEL(ls_kernel_bf16_depthwise_weights, LS_OP_CONVOLUTION_WEIGHTS,
       "bf16 depthwise convolution backward weights", weights_run);
KERNEL(ls_kernel_bf16_depthwise_transposed, LS_OP_DECONVOLUTION, "bf16 depthwise deconvolution",
       positions_run);
KERNEL(ls_kernel_bf16_depthwise_transposed_data, LS_OP_DECONVOLUTION_DATA,
       "bf16 depthwise deconvolution backward data", positions_run);
KERNEL(ls_kernel_bf16_depthwise_transposed_weights, LS_OP_DECONVOLUTION_WEIGHTS,
       "bf16 depthwise deconvolution backward weights", transposed_weights_run);
