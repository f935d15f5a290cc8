/* Convolutions and deconvolutions of bf16 or fp32 numbers, as products whose terms have a declared
 * order (docs/numerics.md): over 1 to 3 axes, with strides, padding, dilation and groups.
 *
 * Forward a line of the one operand is the weights of an output channel, a line of the other what a
 * position meets. By data the same for each class of positions of x that are a stride apart, to
 * which the same weights come. By weights the lines are the weights of a window, and the terms are
 * the positions of all samples; a line of ones beside them gives the gradient of the bias.
 *
 * Activations lie in Caffe's order, weights with the channels of x last, so that they are in the
 * order of terms. Where they are fp32 their gradient lies as they do; where what is read is a bf16
 * copy of weights in Caffe's order, in that.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/bf16/convolution.h"

#include <string.h>

#include "base/memory.h"
#include "ops/cpu/bf16/direct.h"
#include "ops/cpu/bf16/kernel.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/primitive.h"

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- Results over positions ------------------------------------------------------------------ */

/* Where the elements of a result go: channels [0, channels) of a group, positions of a class. */
struct places {
    const struct ls_bf16_ends *ends;
    const float *bias; /* of channel 0; NULL: there is none */
    char *data;        /* channel 0 of sample 0 */
    bool bf16;
    int64_t sample, plane; /* elements from one to the next */
    int64_t grid[3], origin, step[3];
};

static struct places make_places(const struct ls_bf16_convolution *convolution,
                                 const struct ls_bf16_class *class, bool bf16)
{
    const bool to_x = convolution->pass == LS_BF16_TO_X;
    const int64_t *extent = to_x ? convolution->x : convolution->y;
    const int64_t width = extent[2], rows = extent[1];
    const int64_t channels = to_x ? convolution->x_channels : convolution->y_channels;
    struct places places = {
        .ends = &convolution->ends, .bf16 = bf16, .plane = ls_bf16_plane(extent)};
    places.sample = convolution->groups * channels * places.plane;
    places.origin = (class->first[0] * rows + class->first[1]) * width + class->first[2];
    bool whole = true;
    for (int i = 0; i < 3; i++) {
        const int64_t step = to_x ? convolution->stride[i] : 1;
        places.grid[i] = class->grid[i];
        places.step[i] = step * (i == 0 ? rows * width : i == 1 ? width : 1);
        whole = whole && step == 1;
    }
    if (whole) { /* a plane is one row */
        places.grid[0] = places.grid[1] = 1;
        places.grid[2] = places.plane;
    }
    return places;
}

static void write_positions(const struct ls_bf16_product *product, int64_t i, int64_t rows,
                            int64_t j, int64_t columns, float *tile, size_t pitch)
{
    const struct places *places = product->user;
    const struct ls_vector_bf16_ends *vector = ls_vector_bf16_ends();
    const int64_t *grid = places->grid, *step = places->step;
    for (int64_t done = 0, count; done < columns; done += count) {
        const int64_t begin = (j + done) % grid[2], row = (j + done) / grid[2];
        const int64_t plane = row / grid[1];
        count = smaller(grid[2] - begin, columns - done);
        const int64_t at = plane / grid[0] * places->sample + places->origin +
                           plane % grid[0] * step[0] + row % grid[1] * step[1] + begin * step[2];
        const struct ls_bf16_block block = {.bias = places->bias != NULL ? places->bias + i : NULL,
                                            .sums = tile + done,
                                            .pitch = pitch,
                                            .rows = (size_t)rows,
                                            .columns = (size_t)count,
                                            .to_pitch = (size_t)places->plane,
                                            .step = (size_t)step[2]};
        const int64_t to = at + i * places->plane;
        if (places->bf16)
            vector->block_to_bf16(places->ends, &block, (uint16_t *)(void *)places->data + to);
        else
            vector->block_to_f32(places->ends, &block, (float *)(void *)places->data + to);
    }
}

/* ---- Forward and by data --------------------------------------------------------------------- */

/* The weights that come to a class of x: a line for each channel of x, terms (tap, channel of y).
 */
struct class_weights {
    const struct ls_bf16_convolution *convolution;
    const struct ls_bf16_class *class;
    const void *data; /* of the group: [channel of y][tap][channel of x] */
};

static void read_weights(const struct ls_bf16_operand *operand, int64_t first, int64_t count,
                         int64_t begin, int64_t end, void *to, size_t pitch)
{
    const struct class_weights *weights = operand->user;
    const int64_t lines = weights->convolution->x_channels;
    const int64_t depth = weights->convolution->y_channels;
    const int64_t filter = weights->convolution->taps * lines;
    const bool f32 = weights->convolution->f32;
    const size_t element = f32 ? sizeof(float) : sizeof(uint16_t);
    int64_t tap = begin / depth, o = begin % depth;
    char *row = to;
    for (int64_t k = begin; k < end; k++, row += pitch * element) {
        const int64_t at = o * filter + weights->class->tap[tap] * lines + first;
        memcpy(row, ls_bf16_element(weights->data, f32, at), (size_t)count * element);
        if (++o == depth) {
            o = 0;
            tap++;
        }
    }
}

/* Terms of one tap. */
static const void *look_at_weights(const struct ls_bf16_operand *operand, int64_t first,
                                   int64_t count, int64_t begin, int64_t end, size_t *pitch)
{
    const struct class_weights *weights = operand->user;
    const int64_t lines = weights->convolution->x_channels;
    const int64_t depth = weights->convolution->y_channels;
    const int64_t filter = weights->convolution->taps * lines, tap = begin / depth;
    (void)count;
    if (end > (tap + 1) * depth)
        return NULL;
    *pitch = (size_t)filter;
    return ls_bf16_element(weights->data, weights->convolution->f32,
                           begin % depth * filter + weights->class->tap[tap] * lines + first);
}

static struct ls_bf16_operand weights_operand(const struct class_weights *weights)
{
    const struct ls_bf16_convolution *convolution = weights->convolution;
    if (convolution->pass == LS_BF16_TO_X)
        return (struct ls_bf16_operand){.lines = convolution->x_channels,
                                        .by_term = true,
                                        .read = read_weights,
                                        .look = look_at_weights,
                                        .user = weights};
    const int64_t filter = convolution->taps * convolution->x_channels;
    return (struct ls_bf16_operand){
        .lines = convolution->y_channels, .data = weights->data, .pitch = (size_t)filter};
}

static int64_t class_depth(const struct ls_bf16_convolution *convolution,
                           const struct ls_bf16_class *class)
{
    const bool to_x = convolution->pass == LS_BF16_TO_X;
    return class->taps * (to_x ? convolution->y_channels : convolution->x_channels);
}

/* One class of one group; `weights` are those of the group. */
static void run_class(const struct ls_bf16_windows *windows, const struct class_weights *weights,
                      const struct places *places, void *scratch)
{
    const struct ls_bf16_product product = {.a = weights_operand(weights),
                                            .b = ls_bf16_columns(windows),
                                            .f32 = windows->f32,
                                            .depth =
                                                class_depth(weights->convolution, weights->class),
                                            .write = write_positions,
                                            .user = places};
    ls_bf16_multiply(&product, scratch);
}

static void run_positions(const struct ls_bf16_convolution *convolution, const void *from,
                          const void *w, const float *bias, void *to, bool bf16, void *scratch)
{
    const bool to_x = convolution->pass == LS_BF16_TO_X;
    const int64_t channels = to_x ? convolution->x_channels : convolution->y_channels;
    const int64_t group = convolution->y_channels * convolution->taps * convolution->x_channels;
    for (int64_t c = 0; c < convolution->class_count; c++) {
        struct class_weights weights = {.convolution = convolution,
                                        .class = &convolution->classes[c]};
        struct ls_bf16_windows windows = ls_bf16_class_windows(convolution, weights.class, from);
        struct places places = make_places(convolution, weights.class, bf16);
        const size_t step =
            (size_t)(channels * places.plane) * ls_dtype_size(bf16 ? LS_BF16 : LS_F32);
        for (int64_t g = 0; g < convolution->groups; g++) {
            weights.data = ls_bf16_element(w, convolution->f32, g * group);
            places.data = (char *)to + (size_t)g * step;
            places.bias = bias != NULL ? bias + g * channels : NULL;
            run_class(&windows, &weights, &places, scratch);
            ls_bf16_next_group(&windows);
        }
    }
}

/* ---- By weights ------------------------------------------------------------------------------ */

/* dw in the order of lines, and db behind it where there is a row of ones. */
struct gradient {
    float *dw;      /* of the group: [channel of y][filter] */
    float *db;      /* of the group; NULL: it is not wanted */
    int64_t filter; /* weights of a channel of y */
};

static void write_gradient(const struct ls_bf16_product *product, int64_t i, int64_t rows,
                           int64_t j, int64_t columns, float *tile, size_t pitch)
{
    const struct gradient *gradient = product->user;
    const int64_t filter = gradient->filter, inside = smaller(rows, filter - i);
    if (inside > 0)
        ls_vector_bf16_ends()->transpose(tile, pitch, (size_t)inside, (size_t)columns,
                                         gradient->dw + j * filter + i, (size_t)filter);
    if (inside < rows)
        memcpy(gradient->db + j, tile + (size_t)inside * pitch, (size_t)columns * sizeof *tile);
}

/* The positions of a plane by themselves: a row for each channel of a group. */
static struct ls_bf16_windows whole_planes(const struct ls_bf16_convolution *convolution,
                                           const int64_t extent[3], int64_t channels,
                                           const void *data)
{
    static const int64_t nowhere[1][3] = {{0}};
    const int64_t plane = ls_bf16_plane(extent);
    return (struct ls_bf16_windows){.data = data,
                                    .f32 = convolution->f32,
                                    .samples = convolution->samples,
                                    .sample = convolution->groups * channels * plane,
                                    .plane = plane,
                                    .extent = {1, 1, plane},
                                    .grid = {1, 1, plane},
                                    .step = {1, 1, 1},
                                    .channels = channels,
                                    .taps = 1,
                                    .offset = nowhere};
}

static void run_weights(const struct ls_bf16_convolution *convolution, const void *x, const void *y,
                        float *dw, float *db, void *scratch)
{
    const int64_t in = convolution->x_channels, out = convolution->y_channels;
    struct ls_bf16_windows windows =
        ls_bf16_class_windows(convolution, &convolution->classes[0], x);
    struct ls_bf16_windows planes = whole_planes(convolution, convolution->y, out, y);
    struct gradient gradient = {.dw = dw, .db = db, .filter = in * convolution->taps};
    /* Gradients of bf16 lie in Caffe's order, those of fp32 in that of terms. */
    windows.by_channel = !convolution->f32;
    windows.ones = db != NULL;
    for (int64_t g = 0; g < convolution->groups; g++) {
        const struct ls_bf16_product product = {.a = ls_bf16_rows(&windows),
                                                .b = ls_bf16_rows(&planes),
                                                .f32 = convolution->f32,
                                                .depth = ls_bf16_positions(&windows),
                                                .write = write_gradient,
                                                .user = &gradient};
        ls_bf16_multiply(&product, scratch);
        ls_bf16_next_group(&windows);
        ls_bf16_next_group(&planes);
        gradient.dw += out * gradient.filter;
        gradient.db = db != NULL ? gradient.db + out : NULL;
    }
}

static void read_ones(const struct ls_bf16_operand *operand, int64_t first, int64_t count,
                      int64_t begin, int64_t end, void *to, size_t pitch)
{
    (void)first, (void)count;
    for (int64_t k = begin; k < end; k++)
        ls_bf16_put_ones(operand->user != NULL, to, (size_t)(k - begin) * pitch, 1);
}

static void write_sums(const struct ls_bf16_product *product, int64_t i, int64_t rows, int64_t j,
                       int64_t columns, float *tile, size_t pitch)
{
    (void)j, (void)columns;
    float *db = (float *)(uintptr_t)product->user;
    for (int64_t r = 0; r < rows; r++)
        db[i + r] = tile[(size_t)r * pitch];
}

size_t ls_bf16_sum_scratch(const struct ls_bf16_convolution *convolution)
{
    return ls_bf16_product_scratch(convolution->f32, convolution->groups * convolution->x_channels,
                                   1, convolution->samples * ls_bf16_plane(convolution->x));
}

void ls_bf16_sum_planes(const struct ls_bf16_convolution *convolution, const void *x, float *db,
                        void *scratch)
{
    struct ls_bf16_windows planes =
        whole_planes(convolution, convolution->x, convolution->groups * convolution->x_channels, x);
    planes.sample = planes.channels * planes.plane;
    const struct ls_bf16_product product = {
        .a = ls_bf16_rows(&planes),
        .b = {.lines = 1, .by_term = true, .read = read_ones, .user = convolution->f32 ? db : NULL},
        .f32 = convolution->f32,
        .depth = ls_bf16_positions(&planes),
        .write = write_sums,
        .user = db};
    ls_bf16_multiply(&product, scratch);
}

/* ---- The kernels ----------------------------------------------------------------------------- */

/* Activations plain; weights that are read lie in the order of terms. */
static int layouts(const struct ls_op *op, struct ls_op_layouts *result, struct ls_error *error)
{
    LS_TRY(ls_bf16_layouts(op, result, error));
    if (ls_primitive_pass(op) == LS_PASS_WEIGHTS && op->bf16)
        return 0;
    if (ls_primitive_pass(op) == LS_PASS_WEIGHTS)
        return ls_onednn_channels_last(&op->output[0]->shape, &result->out[0], error);
    return ls_onednn_channels_last(&op->input[1]->shape, &result->in[1], error);
}

static size_t product_scratch(const struct ls_bf16_convolution *convolution)
{
    const int64_t in = convolution->x_channels, out = convolution->y_channels;
    size_t most = 0;
    if (convolution->pass == LS_BF16_TO_W) {
        const int64_t depth = convolution->samples * ls_bf16_plane(convolution->y);
        const int64_t lines = in * convolution->taps;
        const size_t bare = ls_bf16_product_scratch(convolution->f32, lines, out, depth);
        const size_t with_ones = ls_bf16_product_scratch(convolution->f32, lines + 1, out, depth);
        return bare > with_ones ? bare : with_ones;
    }
    for (int64_t c = 0; c < convolution->class_count; c++) {
        const struct ls_bf16_class *class = &convolution->classes[c];
        const int64_t positions = convolution->samples * ls_bf16_plane(class->grid);
        size_t bytes =
            ls_bf16_product_scratch(convolution->f32, convolution->pass == LS_BF16_TO_X ? in : out,
                                    positions, class_depth(convolution, class));
        most = bytes > most ? bytes : most;
    }
    return most;
}

struct state {
    struct ls_bf16_convolution *convolution;
    struct ls_bf16_direct *direct; /* NULL: it is computed as a product of matrices */
};

static size_t scratch_of(const struct ls_op *op, const struct state *state)
{
    size_t most = state->direct != NULL ? ls_bf16_direct_scratch(state->direct)
                                        : product_scratch(state->convolution);
    if (op->kind != LS_OP_DECONVOLUTION_WEIGHTS)
        return most;
    const size_t sums = ls_bf16_sum_scratch(state->convolution);
    return sums > most ? sums : most;
}

static void release(struct ls_prepared *prepared)
{
    struct state *state = prepared->state;
    if (state != NULL) {
        ls_bf16_direct_free(state->direct);
        ls_bf16_convolution_free(state->convolution);
    }
    ls_own_release(prepared);
}

static int set_up(struct state *state, const struct ls_op *op, struct ls_error *error)
{
    LS_TRY(ls_bf16_convolution_new(op, &state->convolution, error));
    return ls_bf16_direct_new(state->convolution, &state->direct, error);
}

static int prepare(struct ls_prepared *prepared, struct ls_error *error)
{
    const struct ls_op *op = prepared->op;
    struct state *state = ls_alloc(1, sizeof *state);
    prepared->state = state;
    if (state == NULL)
        return ls_fail_memory(error, "a convolution");
    int status = set_up(state, op, error);
    if (status != 0) {
        release(prepared);
        return status;
    }
    prepared->scratch_bytes = scratch_of(op, state);
    return ls_own_prepare_bf16(prepared, ls_bf16_tiles_name());
}

static int positions_run(const struct ls_prepared *prepared, void *local, void *const *in,
                         void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)context;
    const struct state *state = prepared->state;
    const struct ls_op *op = prepared->op;
    const float *bias = op->inputs > 2 ? in[2] : NULL;
    const bool bf16 = op->output[0]->type == LS_BF16;
    if (state->direct != NULL)
        ls_bf16_direct_positions(state->direct, in[0], in[1], bias, out[0], bf16, scratch);
    else
        run_positions(state->convolution, in[0], in[1], bias, out[0], bf16, scratch);
    return 0;
}

static void weights(const struct state *state, const void *x, const void *y, float *dw, float *db,
                    void *scratch)
{
    if (state->direct != NULL)
        ls_bf16_direct_weights(state->direct, x, y, dw, db, scratch);
    else
        run_weights(state->convolution, x, y, dw, db, scratch);
}

static int weights_run(const struct ls_prepared *prepared, void *local, void *const *in,
                       void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)context;
    float *db = prepared->op->outputs > 1 ? out[1] : NULL;
    weights(prepared->state, in[0], in[1], out[0], db, scratch);
    return 0;
}

static int transposed_weights_run(const struct ls_prepared *prepared, void *local, void *const *in,
                                  void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)context;
    const struct state *state = prepared->state;
    weights(state, in[1], in[0], out[0], NULL, scratch);
    if (prepared->op->outputs > 1 && out[1] != NULL)
        ls_bf16_sum_planes(state->convolution, in[1], out[1], scratch);
    return 0;
}

#define KERNEL(kernel, op, words, run)                                                             \
    LS_BF16_KERNEL(kernel, op, words, ls_bf16_accepts, layouts, prepare, release, run, NULL)

KERNEL(ls_kernel_bf16_convolution, LS_OP_CONVOLUTION, "bf16 convolution", positions_run);
KERNEL(ls_kernel_bf16_convolution_data, LS_OP_CONVOLUTION_DATA, "bf16 convolution backward data",
       positions_run);
KERNEL(ls_kernel_bf16_convolution_weights, LS_OP_CONVOLUTION_WEIGHTS,
       "bf16 convolution backward weights", weights_run);
KERNEL(ls_kernel_bf16_deconvolution, LS_OP_DECONVOLUTION, "bf16 deconvolution", positions_run);
KERNEL(ls_kernel_bf16_deconvolution_data, LS_OP_DECONVOLUTION_DATA,
       "bf16 deconvolution backward data", positions_run);
KERNEL(ls_kernel_bf16_deconvolution_weights, LS_OP_DECONVOLUTION_WEIGHTS,
       "bf16 deconvolution backward weights", transposed_weights_run);
