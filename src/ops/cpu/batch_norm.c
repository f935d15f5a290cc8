/* Batch normalisation in any layout: partial results, outputs and gradients, part by part (a part
 * is what a micro-batch shares with one group of samples). What is merged from the partial results
 * between these ops is in device/merge.c. By saved averages there are no parts.
 *
 * Statistics are a float each for mean, rest (what the float of the mean leaves out) and
 * 1 / sqrt(variance + eps), so that inputs far from zero lose nothing.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "ir/graph.h"
#include "ir/layer.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/vector/batch_norm.h"

/* Which input is which. */
struct inputs {
    int dy, x, y, averages, scale, bias; /* averages: the first of three; -1: not there */
};

static struct inputs inputs_of(enum ls_op_kind kind)
{
    switch (kind) {
    case LS_OP_BATCH_NORM:
        return (struct inputs){.dy = -1, .x = 0, .y = -1, .averages = 1, .scale = 4, .bias = 5};
    case LS_OP_BATCH_NORM_SUMS:
    case LS_OP_BATCH_NORM_BACKWARD:
        return (struct inputs){.dy = 0, .x = 1, .y = 2, .averages = 3, .scale = 6, .bias = 7};
    default:
        return (struct inputs){.dy = -1, .x = 0, .y = -1, .averages = -1, .scale = -1, .bias = -1};
    }
}

/* Prepared: the view of one row of x (a sample has `rows` of them) and the sizes of what is
 * exchanged. */
struct batch_norm {
    struct inputs input;
    struct ls_batch_norm_view view;
    int64_t channels, padded; /* padded: a multiple of LS_SYNC_BLOCK */
    int64_t rows, all_rows;   /* all_rows: of the micro-batch */
    int64_t row_stride;       /* in numbers */
    int grouping;             /* -1: saved averages */
};

/* What the loops read and write for a channel, in scratch; `padded` numbers each. */
struct arrays {
    double *sum_dz, *sum_dzx, *total_dz, *total_dzx;
    float *mean, *rest, *inv_std, *scale, *bias, *factor;
};
enum { DOUBLES = 4, FLOATS = 6 };

static struct arrays place_arrays(const struct batch_norm *norm, void *scratch)
{
    double *d = scratch;
    float *f = (float *)(d + DOUBLES * norm->padded);
    int64_t n = norm->padded;
    return (struct arrays){d,     d + n,     d + 2 * n, d + 3 * n, f,
                           f + n, f + 2 * n, f + 3 * n, f + 4 * n, f + 5 * n};
}

/* The number at `offset` of an array; NULL for none. */
static void *at_offset(const struct batch_norm *norm, const void *array, int64_t offset)
{
    const size_t size = norm->view.bf16 ? sizeof(uint16_t) : sizeof(float);
    return array == NULL ? NULL : (char *)array + (size_t)offset * size;
}

/* An input that may be absent, also where the list of inputs ends before it. */
static const void *input(const struct ls_prepared *prepared, void *const *in, int i)
{
    return i >= 0 && i < prepared->op->inputs ? in[i] : NULL;
}

static float *output(const struct ls_prepared *prepared, void *const *out, int i)
{
    return i < prepared->op->outputs ? out[i] : NULL;
}

/* ---- Preparation ----------------------------------------------------------------------------- */

static bool batch_norm_accepts(const struct ls_op *op)
{
    const struct ls_batch_norm_attr *attr = &op->attr.batch_norm;
    const struct ls_value *x = op->input[inputs_of(op->kind).x];
    bool needs_sums = op->kind == LS_OP_BATCH_NORM_BACKWARD && attr->moments >= 0;
    return x->shape.rank >= 2 && (op->kind != LS_OP_MOMENTS || attr->moments >= 0) &&
           (!needs_sums || attr->sums >= 0);
}

/* Values along the rows of a channel; where it has one position in a row they lie side by side, and
 * the loops for that are for fp32. */
static bool batch_norm_takes_bf16(const struct ls_op *op)
{
    const struct inputs index = inputs_of(op->kind);
    const int values[] = {index.x, index.dy, index.y};
    const struct ls_shape *shape = &op->input[index.x]->shape;
    const bool writes = op->kind == LS_OP_BATCH_NORM || op->kind == LS_OP_BATCH_NORM_BACKWARD;
    bool all = ls_shape_count(shape, 2, shape->rank) > 1;
    for (int i = 0; i < 3; i++)
        if (values[i] >= 0 && values[i] < op->inputs && op->input[values[i]] != NULL)
            all = all && op->input[values[i]]->type == LS_BF16;
    return all && (!writes || op->output[0]->type == LS_BF16);
}

/* Parameters and their gradients are plain; all else lies as x does. */
static int batch_norm_layouts(const struct ls_op *op, struct ls_op_layouts *layouts,
                              struct ls_error *error)
{
    (void)error;
    const struct inputs index = inputs_of(op->kind);
    const bool gradient = op->kind == LS_OP_BATCH_NORM_BACKWARD;
    const struct ls_layout *layout =
        gradient ? ls_gradient_layout(op, layouts) : layouts->in[index.x];
    for (int i = 0; i < op->inputs; i++)
        if (op->input[i] != NULL)
            layouts->in[i] =
                i == index.dy || i == index.x || i == index.y ? layout : &ls_layout_plain;
    for (int i = 0; i < op->outputs; i++)
        if (op->output[i] != NULL)
            layouts->out[i] = op->kind == LS_OP_BATCH_NORM_SUMS ? &ls_layout_plain : layout;
    return 0;
}

/* The view of one row of x; `runs` counts rows. Positions that have no neighbour in their row, or
 * whose next row follows at once, become one long run, in view_rows. */
static void describe(const struct ls_value *x, struct batch_norm *norm)
{
    const struct ls_shape *shape = &x->shape;
    const int64_t points = ls_shape_count(shape, 2, shape->rank);
    const int64_t block = x->layout->block, channels = shape->dim[1];
    norm->channels = channels;
    norm->padded = ls_sync_round(channels);
    norm->all_rows = shape->dim[0];
    norm->rows = x->rows > 0 ? x->rows : 1;
    struct ls_batch_norm_view *view = &norm->view;
    view->bf16 = x->type == LS_BF16;
    view->channels = block > 1 ? (channels + block - 1) / block * block : channels;
    view->block = block > 1 ? block : points == 1 ? channels : 1;
    view->block_stride = view->block * points;
    view->points = points;
    view->point_stride = view->block;
    norm->row_stride = view->channels * points;
    view->run_stride = norm->row_stride;
}

static struct ls_batch_norm_view view_rows(const struct batch_norm *norm, int64_t rows)
{
    struct ls_batch_norm_view view = norm->view;
    view.runs = rows;
    if (view.points == 1) {
        view.points = rows;
        view.point_stride = view.run_stride;
        view.runs = 1;
    } else if (view.run_stride == view.points * view.point_stride) {
        view.points *= rows;
        view.runs = 1;
    }
    return view;
}

static int batch_norm_prepare(struct ls_prepared *prepared, struct ls_error *error)
{
    const struct ls_op *op = prepared->op;
    struct batch_norm *norm = ls_alloc(1, sizeof *norm);
    if (norm == NULL)
        return ls_fail_memory(error, "a batch normalisation");
    norm->input = inputs_of(op->kind);
    describe(op->input[norm->input.x], norm);
    int moments = op->attr.batch_norm.moments;
    norm->grouping = moments < 0 ? -1 : op->layer->graph->syncs[moments].grouping;
    prepared->state = norm;
    if (LS_SYNC_BLOCK % norm->view.block == 0)
        prepared->channels = norm->padded;
    if (op->kind != LS_OP_MOMENTS)
        prepared->scratch_bytes =
            (size_t)norm->padded * (DOUBLES * sizeof(double) + FLOATS * sizeof(float));
    return ls_own_prepare(prepared, error);
}

/* ---- Parts ----------------------------------------------------------------------------------- */

/* Channels [begin, end) of an op, and what it was called with. */
struct share {
    const struct ls_prepared *prepared;
    const struct ls_context *context;
    int64_t begin, end; /* end may be behind the channels that there are */
};

static const struct batch_norm *norm_of(const struct share *share)
{
    return share->prepared->state;
}

static int part_count(const struct share *share)
{
    const struct batch_norm *norm = norm_of(share);
    return norm->grouping < 0 ? 1 : share->context->parts[norm->grouping].count;
}

/* The view of part p; where its first value is, in *offset. */
static struct ls_batch_norm_view view_part(const struct share *share, int p, int64_t *offset)
{
    const struct batch_norm *norm = norm_of(share);
    int64_t rows = norm->all_rows;
    *offset = share->begin / norm->view.block * norm->view.block_stride;
    /* The one sample of a value whose samples were mixed is the batch. */
    if (norm->grouping >= 0 && norm->rows < norm->all_rows) {
        const struct ls_part *part = &share->context->parts[norm->grouping].part[p];
        *offset += part->first * norm->rows * norm->row_stride;
        rows = part->count * norm->rows;
    }
    struct ls_batch_norm_view view = view_rows(norm, rows);
    view.channels = (share->end < view.channels ? share->end : view.channels) - share->begin;
    return view;
}

/* The row of partial results of part p for `sync`, of either kind: two arrays of `padded` numbers
 * and the count, which is set; all else is zero. Points to that of the first channel. */
static double *start_row(const struct share *share, int sync, int p,
                         const struct ls_batch_norm_view *view)
{
    const int64_t padded = norm_of(share)->padded;
    double *row = share->context->partial[sync] + p * (2 * padded + LS_SYNC_ROW_END);
    const size_t bytes = (size_t)(share->end - share->begin) * sizeof *row;
    if (share->begin == 0)
        memset(row + 2 * padded, 0, LS_SYNC_ROW_END * sizeof *row);
    row[2 * padded] = (double)view->runs * (double)view->points;
    memset(row + share->begin, 0, bytes);
    memset(row + padded + share->begin, 0, bytes);
    return row + share->begin;
}

/* `arrays` of `padded` floats that were merged for the group of part p; from the first channel on.
 */
static const float *merged_of(const struct share *share, int sync, int p, int arrays)
{
    const struct batch_norm *norm = norm_of(share);
    const struct ls_part *part = &share->context->parts[norm->grouping].part[p];
    return share->context->merged[sync] + part->merged * arrays * norm->padded + share->begin;
}

/* ---- Statistics ------------------------------------------------------------------------------ */

/* A parameter of each channel with zeros behind, or `constant` where there is none. */
static void spread(const struct share *share, const float *parameter, float constant, float *to)
{
    const int64_t channels = norm_of(share)->channels;
    for (int64_t c = share->begin; c < share->end; c++, to++)
        *to = c >= channels ? 0 : parameter != NULL ? parameter[c] : constant;
}

/* Mean and variance as a / c and b / c; c absent is 1; c = 0: mean 0, variance 1. A variance below
 * zero, which no training leaves, counts as zero. */
static void read_averages(const struct share *share, void *const *in, const struct arrays *at)
{
    const struct ls_prepared *prepared = share->prepared;
    const struct batch_norm *norm = norm_of(share);
    const int first = norm->input.averages;
    const float *a = input(prepared, in, first), *b = input(prepared, in, first + 1);
    const float *c = input(prepared, in, first + 2);
    const double factor = c == NULL ? 1 : (double)*c;
    memset(at->mean, 0, (size_t)norm->padded * 3 * sizeof(float)); /* rest, inv_std follow */
    for (int64_t i = share->begin; i < share->end && i < norm->channels; i++) {
        double mean = factor == 0 || a == NULL ? 0 : (double)a[i] / factor;
        double variance = factor == 0 || b == NULL ? 1 : (double)b[i] / factor;
        int64_t k = i - share->begin;
        variance = variance < 0 ? 0 : variance;
        at->mean[k] = (float)mean;
        at->rest[k] = (float)(mean - (double)at->mean[k]);
        at->inv_std[k] = (float)(1 / sqrt(variance + (double)prepared->op->attr.batch_norm.eps));
    }
}

/* What does not depend on the part. */
static struct ls_batch_norm_channels start_channels(const struct share *share, void *const *in,
                                                    const struct arrays *at)
{
    const struct ls_prepared *prepared = share->prepared;
    const struct batch_norm *norm = norm_of(share);
    const struct ls_batch_norm_attr *attr = &prepared->op->attr.batch_norm;
    if (norm->grouping < 0)
        read_averages(share, in, at);
    spread(share, input(prepared, in, norm->input.scale), 1, at->scale);
    spread(share, input(prepared, in, norm->input.bias), 0, at->bias);
    return (struct ls_batch_norm_channels){.mean = at->mean,
                                           .rest = at->rest,
                                           .inv_std = at->inv_std,
                                           .scale = at->scale,
                                           .bias = at->bias,
                                           .factor = at->factor,
                                           .relu = attr->relu,
                                           .slope = attr->relu_slope};
}

/* The statistics of the group of part p, where they are not saved averages. */
static void read_moments(const struct share *share, int p, struct ls_batch_norm_channels *channels)
{
    const struct batch_norm *norm = norm_of(share);
    if (norm->grouping < 0)
        return;
    channels->mean = merged_of(share, share->prepared->op->attr.batch_norm.moments, p, 4);
    channels->rest = channels->mean + norm->padded;
    channels->inv_std = channels->rest + norm->padded;
}

/* ---- Ops ------------------------------------------------------------------------------------- */

static int moments_channels(const struct ls_prepared *prepared, void *const *in, void *const *out,
                            void *scratch, const struct ls_context *context, int64_t begin,
                            int64_t end)
{
    (void)out, (void)scratch;
    const struct share share = {prepared, context, begin, end};
    const struct batch_norm *norm = prepared->state;
    for (int p = 0; p < part_count(&share); p++) {
        int64_t offset;
        struct ls_batch_norm_view view = view_part(&share, p, &offset);
        double *row = start_row(&share, prepared->op->attr.batch_norm.moments, p, &view);
        ls_vector_batch_norm()->moments(&view, at_offset(norm, in[0], offset), row,
                                        row + norm->padded);
    }
    return 0;
}

static int forward_channels(const struct ls_prepared *prepared, void *const *in, void *const *out,
                            void *scratch, const struct ls_context *context, int64_t begin,
                            int64_t end)
{
    const struct share share = {prepared, context, begin, end};
    const struct batch_norm *norm = prepared->state;
    const struct arrays at = place_arrays(norm, scratch);
    struct ls_batch_norm_channels channels = start_channels(&share, in, &at);
    for (int p = 0; p < part_count(&share); p++) {
        int64_t offset;
        struct ls_batch_norm_view view = view_part(&share, p, &offset);
        read_moments(&share, p, &channels);
        ls_vector_batch_norm()->forward(&view, &channels, at_offset(norm, in[0], offset),
                                        at_offset(norm, out[0], offset));
    }
    return 0;
}

/* The channels of a share that there are. */
static int64_t channels_in(const struct share *share)
{
    const int64_t channels = norm_of(share)->channels;
    return (share->end < channels ? share->end : channels) - share->begin;
}

static void add_up(const struct share *share, const double *from, double *to)
{
    for (int64_t c = 0; c < channels_in(share); c++)
        to[c] += from[c];
}

static void write_gradient(const struct share *share, const double *from, float *gradient)
{
    for (int64_t c = 0; gradient != NULL && c < channels_in(share); c++)
        gradient[share->begin + c] = (float)from[c];
}

/* dy, x and y (NULL where there is none) of the part at `offset`. */
struct places {
    const void *dy, *x, *y;
};

static struct places places_at(const struct ls_prepared *prepared, void *const *in, int64_t offset)
{
    const struct batch_norm *norm = prepared->state;
    return (struct places){at_offset(norm, input(prepared, in, norm->input.dy), offset),
                           at_offset(norm, input(prepared, in, norm->input.x), offset),
                           at_offset(norm, input(prepared, in, norm->input.y), offset)};
}

static int sums_channels(const struct ls_prepared *prepared, void *const *in, void *const *out,
                         void *scratch, const struct ls_context *context, int64_t begin,
                         int64_t end)
{
    const struct share share = {prepared, context, begin, end};
    const struct batch_norm *norm = prepared->state;
    const struct arrays at = place_arrays(norm, scratch);
    const int sync = prepared->op->attr.batch_norm.sums;
    struct ls_batch_norm_channels channels = start_channels(&share, in, &at);
    memset(at.total_dz, 0, (size_t)norm->padded * 2 * sizeof(double)); /* total_dzx follows */
    for (int p = 0; p < part_count(&share); p++) {
        int64_t offset;
        struct ls_batch_norm_view view = view_part(&share, p, &offset);
        struct places from = places_at(prepared, in, offset);
        double *sum_dz = at.sum_dz, *sum_dzx = at.sum_dzx;
        if (sync >= 0 && norm->grouping >= 0) {
            sum_dz = start_row(&share, sync, p, &view);
            sum_dzx = sum_dz + norm->padded;
        }
        read_moments(&share, p, &channels);
        ls_vector_batch_norm()->sums(&view, &channels, from.dy, from.x, from.y, sum_dz, sum_dzx);
        add_up(&share, sum_dz, at.total_dz);
        add_up(&share, sum_dzx, at.total_dzx);
    }
    write_gradient(&share, at.total_dzx, output(prepared, out, 0));
    write_gradient(&share, at.total_dz, output(prepared, out, 1));
    return 0;
}

static int backward_channels(const struct ls_prepared *prepared, void *const *in, void *const *out,
                             void *scratch, const struct ls_context *context, int64_t begin,
                             int64_t end)
{
    const struct share share = {prepared, context, begin, end};
    const struct batch_norm *norm = prepared->state;
    const struct arrays at = place_arrays(norm, scratch);
    struct ls_batch_norm_channels channels = start_channels(&share, in, &at);
    for (int p = 0; p < part_count(&share); p++) {
        int64_t offset;
        struct ls_batch_norm_view view = view_part(&share, p, &offset);
        struct places from = places_at(prepared, in, offset);
        read_moments(&share, p, &channels);
        for (int64_t c = 0; c < end - begin; c++)
            at.factor[c] = at.scale[c] * channels.inv_std[c];
        if (norm->grouping < 0) {
            from.x = NULL; /* dx = factor dz */
        } else {
            channels.mean_dz = merged_of(&share, prepared->op->attr.batch_norm.sums, p, 2);
            channels.mean_dzx = channels.mean_dz + norm->padded;
        }
        ls_vector_batch_norm()->backward(&view, &channels, from.dy, from.x, from.y,
                                         at_offset(norm, out[0], offset));
    }
    return 0;
}

static int norm_run(const struct ls_prepared *prepared, void *local, void *const *in,
                    void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local;
    const struct batch_norm *norm = prepared->state;
    return prepared->kernel->run_channels(prepared, in, out, scratch, context, 0, norm->padded);
}

const struct ls_kernel ls_kernel_moments = {
    .kind = LS_OP_MOMENTS,
    .bits = LS_BITS_NEEDS_SYNC,
    .name = "moments",
    .accepts = batch_norm_accepts,
    .takes_bf16 = batch_norm_takes_bf16,
    .layouts = batch_norm_layouts,
    .prepare = batch_norm_prepare,
    .release = ls_own_release,
    .run = norm_run,
    .run_channels = moments_channels,
    .in_place = -1,
};

const struct ls_kernel ls_kernel_batch_norm = {
    .kind = LS_OP_BATCH_NORM,
    .bits = LS_BITS_OWN,
    .name = "batch norm",
    .accepts = batch_norm_accepts,
    .takes_bf16 = batch_norm_takes_bf16,
    .layouts = batch_norm_layouts,
    .prepare = batch_norm_prepare,
    .release = ls_own_release,
    .run = norm_run,
    .run_channels = forward_channels,
    .in_place = 0,
};

const struct ls_kernel ls_kernel_batch_norm_sums = {
    .kind = LS_OP_BATCH_NORM_SUMS,
    .bits = LS_BITS_NEEDS_SYNC,
    .name = "batch norm sums",
    .accepts = batch_norm_accepts,
    .takes_bf16 = batch_norm_takes_bf16,
    .layouts = batch_norm_layouts,
    .prepare = batch_norm_prepare,
    .release = ls_own_release,
    .run = norm_run,
    .run_channels = sums_channels,
    .in_place = -1,
};

const struct ls_kernel ls_kernel_batch_norm_backward = {
    .kind = LS_OP_BATCH_NORM_BACKWARD,
    .bits = LS_BITS_NEEDS_SYNC,
    .name = "batch norm backward",
    .accepts = batch_norm_accepts,
    .takes_bf16 = batch_norm_takes_bf16,
    .layouts = batch_norm_layouts,
    .prepare = batch_norm_prepare,
    .release = ls_own_release,
    .run = norm_run,
    .run_channels = backward_channels,
    .in_place = 0,
};
