/* Functions of one number, what is done element by element, sums along axes, and moves.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <sleef.h>
#include <string.h>

#include "base/random.h"
#include "ir/convert.h"
#include "ops/reference/reference.h"

/* ---- Functions of one number ----------------------------------------------------------------- */

static double sigmoid(double x)
{
    return 1 / (1 + Sleef_cinz_expd1_u10purec(-x));
}

/* base^exponent; exact where Caffe's definitions have whole exponents. */
static double power(double base, double exponent)
{
    if (exponent == 0 || exponent == 1)
        return exponent == 0 ? 1 : base;
    return exponent == 2 ? base * base : Sleef_cinz_powd1_u10purec(base, exponent);
}

/* x P(x), P that of a normal number below x, or its derivative. */
static double gelu(double x, bool slope)
{
    const double below = 0.5 * Sleef_cinz_erfcd1_u15purec(-x * M_SQRT1_2);
    const double density = M_2_SQRTPI / 2 * M_SQRT1_2 * Sleef_cinz_expd1_u10purec(-x * x / 2);
    if (fabs(x) > 40) /* where P is 0 or 1 in double, too */
        return x > 0 ? (slope ? 1 : x) : 0;
    return slope ? below + x * density : x * below;
}

static double gelu_tanh(double x, bool slope)
{
    const double factor = 2 * M_2_SQRTPI * M_SQRT1_2, cube = 0.044715;
    if (fabs(x) > 40)
        return x > 0 ? (slope ? 1 : x) : 0;
    const double s = sigmoid(factor * (x + cube * x * x * x));
    return slope ? s + x * factor * (1 + 3 * cube * x * x) * s * (1 - s) : x * s;
}

double ls_ref_activation(const struct ls_activation_attr *attr, double x, bool slope)
{
    const double a = (double)attr->slope, scale = (double)attr->scale, shift = (double)attr->shift;
    const double factor = (double)attr->factor, low = (double)attr->low, high = (double)attr->high;
    const double exponent = (double)attr->power, inner = scale * x + shift, s = sigmoid(a * x);
    switch (attr->function) {
    case LS_RELU:
        return !slope ? ls_relu(x, attr->slope) : x > 0 ? 1 : a;
    case LS_SIGMOID:
        return slope ? x * (1 - x) : sigmoid(x);
    case LS_TANH:
        return slope ? 1 - x * x : Sleef_cinz_tanhd1_u10purec(x);
    case LS_ELU:
        if (!(x <= 0))
            return slope ? 1 : x;
        return !slope  ? a * Sleef_cinz_expm1d1_u10purec(x)
               : a < 0 ? a * Sleef_cinz_expd1_u10purec(x)
                       : x + a;
    case LS_SWISH:
        return slope ? s + a * x * s * (1 - s) : x * s;
    case LS_GELU:
        return gelu(x, slope);
    case LS_GELU_TANH:
        return gelu_tanh(x, slope);
    case LS_ABSOLUTE:
        return slope ? (x > 0) - (x < 0) : fabs(x);
    case LS_EXP:
        return slope ? scale * x : factor * Sleef_cinz_expd1_u10purec(scale * x);
    case LS_LOG:
        return slope ? factor * scale / inner : factor * Sleef_cinz_logd1_u10purec(inner);
    case LS_POWER: /* a constant where x has no influence, whatever it is */
        if (scale == 0 || exponent == 0)
            return slope ? 0 : power(shift, exponent);
        return slope ? exponent * scale * power(inner, exponent - 1) : power(inner, exponent);
    case LS_BNLL:
        return slope ? sigmoid(x)
                     : (x > 0 ? x : 0) +
                           Sleef_cinz_log1pd1_u10purec(Sleef_cinz_expd1_u10purec(-fabs(x)));
    case LS_CLIP:
        if (slope)
            return x >= low && x <= high ? 1 : 0;
        return x > high ? high : x < low ? low : x;
    default: /* LS_THRESHOLD has no slope */
        return x > low ? 1 : x <= low ? 0 : x;
    }
}

static double activation(const struct ls_call *call, int64_t i)
{
    const bool slope = call->op->kind == LS_OP_ACTIVATION_BACKWARD;
    const double y = ls_ref_activation(&call->op->attr.activation, ls_at(call, slope, i), slope);
    return slope && y != 0 ? ls_at(call, 0, i) * y : y;
}

/* The slope of element i of x: that of its channel, or one for all. */
static int64_t slope_of(const struct ls_value *x, const struct ls_value *slope, int64_t i)
{
    const struct ls_axes split = ls_axes(x, 1, 1);
    return slope->shape.rank == 0 ? 0 : ls_along(&split, i);
}

/* in: x or dy, (x), slope. */
static double prelu(const struct ls_call *call, int64_t i)
{
    const struct ls_op *op = call->op;
    const int last = op->inputs - 1;
    const double from = ls_at(call, 0, i);
    if (ls_at(call, last - 1, i) > 0)
        return from;
    return from * ls_at(call, last, slope_of(op->input[0], op->input[last], i));
}

static int64_t prelu_slope(const struct ls_call *call, int64_t i, double term[2])
{
    const double x = ls_at(call, 1, i);
    term[0] = x > 0 ? 0 : ls_at(call, 0, i) * x;
    return slope_of(call->op->input[0], call->op->output[0], i);
}

/* Element e of a sample is kept where the e-th number of (key, ordinal) is at least ratio 2^32; a
 * value that mixes samples is one sample. */
static double dropout(const struct ls_call *call, int64_t i)
{
    const struct ls_value *value = call->op->input[0];
    const int axis = value->sample_axis;
    const double ratio = (double)call->op->attr.dropout.ratio;
    const double scaled = ls_at(call, 0, i) * (double)(float)(1 / (1 - ratio));
    int64_t samples = 1, run = ls_size(value);
    if (ls_in(call, 1) != NULL)
        return ls_at(call, 1, i) > 0 ? scaled : 0;
    if (axis >= 0) {
        samples = value->shape.dim[axis] / value->rows;
        run = ls_shape_count(&value->shape, axis + 1, value->shape.rank) * value->rows;
    }
    uint64_t ordinal = (uint64_t)(call->context->first_ordinal + i / run % samples);
    uint64_t element = (uint64_t)(i / run / samples * run + i % run);
    uint32_t number = ls_random_u32(call->op->attr.dropout.key, ordinal, element);
    return number >= (uint32_t)ceil(ratio * 0x1p32) ? scaled : 0;
}

/* ---- Of several values ----------------------------------------------------------------------- */

static double coefficient(const struct ls_eltwise_attr *attr, int k)
{
    return attr->coefficients != NULL ? (double)attr->coefficients[k] : 1;
}

static double eltwise(const struct ls_call *call, int64_t i)
{
    const struct ls_eltwise_attr *attr = &call->op->attr.eltwise;
    const int inputs = call->op->inputs - attr->gated;
    const bool sum = attr->method == LS_ELTWISE_SUM;
    double s = ls_at(call, 0, i) * (sum ? coefficient(attr, 0) : 1);
    for (int k = 1; k < inputs; k++) {
        const double x = ls_at(call, k, i);
        if (sum)
            s += coefficient(attr, k) * x;
        else
            s = attr->method == LS_ELTWISE_PROD ? s * x : s > x ? s : x;
    }
    if (attr->gated)
        return ls_relu_backward(s, ls_at(call, inputs, i) > 0, attr->relu_slope);
    return attr->relu ? ls_relu(s, attr->relu_slope) : s;
}

/* Of equal inputs the second is the maximum rather than the first, and any of these two rather than
 * a later one. */
static double eltwise_backward(const struct ls_call *call, int64_t i)
{
    const struct ls_eltwise_attr *attr = &call->op->attr.eltwise;
    double factor = coefficient(attr, attr->which);
    int winner = call->op->inputs > 2 ? 1 : 0;
    for (int k = 0; k < call->op->inputs - 1; k++) {
        const double x = ls_at(call, k + 1, i);
        factor *= attr->method == LS_ELTWISE_PROD && k != attr->which ? x : 1;
        winner = k != 1 && x > ls_at(call, winner + 1, i) ? k : winner;
    }
    if (attr->method == LS_ELTWISE_MAX && winner != attr->which)
        return 0;
    return factor * ls_at(call, 0, i);
}

static double scale(const struct ls_call *call, int64_t i)
{
    const struct ls_scale_attr *attr = &call->op->attr.scale;
    const struct ls_axes split = ls_axes(call->op->input[0], attr->axis, attr->axes);
    const float *factor = ls_in(call, 1), *bias = ls_in(call, 2);
    const int64_t d = ls_along(&split, i);
    return ls_at(call, 0, i) * (factor != NULL ? (double)factor[d] : 1) +
           (bias != NULL ? (double)bias[d] : -0.0);
}

static int64_t scale_sums(const struct ls_call *call, int64_t i, double term[2])
{
    const struct ls_scale_attr *attr = &call->op->attr.scale;
    const struct ls_axes split = ls_axes(call->op->input[0], attr->axis, attr->axes);
    term[1] = ls_at(call, 0, i);
    term[0] = ls_in(call, 1) != NULL ? term[1] * ls_at(call, 1, i) : 0;
    return ls_along(&split, i);
}

/* ---- Reductions ------------------------------------------------------------------------------ */

static int64_t tile_backward(const struct ls_call *call, int64_t i, double term[2])
{
    const struct ls_tile_attr *attr = &call->op->attr.tile;
    const struct ls_value *dx = call->op->output[0];
    const int64_t run = ls_shape_count(&dx->shape, attr->axis, dx->shape.rank);
    term[0] = ls_at(call, 0, i);
    return i / run / attr->tiles * run + i % run;
}

/* A term of the sum, or its slope. */
static double reduced(const struct ls_reduction_attr *attr, double x, bool slope)
{
    double term = slope ? 1 : x;
    if (attr->method == LS_REDUCE_ASUM)
        term = slope ? (x > 0) - (x < 0) : fabs(x);
    if (attr->method == LS_REDUCE_SUMSQ)
        term = slope ? 2 * x : x * x;
    return (double)attr->coeff * term;
}

/* Elements of `x` that become one. */
static int64_t run_of(const struct ls_call *call, const struct ls_value *x)
{
    return ls_shape_count(&x->shape, call->op->attr.reduction.axis, x->shape.rank);
}

static int64_t reduce(const struct ls_call *call, int64_t i, double term[2])
{
    const struct ls_reduction_attr *attr = &call->op->attr.reduction;
    const int64_t run = run_of(call, call->op->input[0]);
    term[0] = reduced(attr, ls_at(call, 0, i), false);
    term[0] /= attr->method == LS_REDUCE_MEAN ? (double)run : 1;
    return i / run;
}

static void reduce_loss(const struct ls_call *call)
{
    const struct ls_reduction_attr *attr = &call->op->attr.reduction;
    double *record = call->context->partials + attr->metric_offset;
    for (int64_t i = 0; i < ls_size(call->op->input[0]); i++, record[1]++)
        record[0] += reduced(attr, ls_at(call, 0, i), false);
}

/* in: (dy), (x: ASUM, SUMSQ); dy is absent for a figure of the batch. */
static double reduce_backward(const struct ls_call *call, int64_t i)
{
    const struct ls_reduction_attr *attr = &call->op->attr.reduction;
    const bool square = attr->method == LS_REDUCE_ASUM || attr->method == LS_REDUCE_SUMSQ;
    const double x = square ? ls_at(call, call->op->inputs - 1, i) : 0;
    const int64_t run = run_of(call, call->op->output[0]);
    double factor = (double)attr->loss_weight;
    if (call->op->kind == LS_OP_REDUCE_BACKWARD)
        factor = ls_at(call, 0, i / run) / (attr->method == LS_REDUCE_MEAN ? (double)run : 1);
    else if (attr->normalizer >= 0)
        factor /= call->context->normalizers[attr->normalizer];
    return factor * reduced(attr, x, true);
}

/* ---- Moves ----------------------------------------------------------------------------------- */

/* The same elements, of another type. */
static void convert(const struct ls_call *call)
{
    const struct ls_value *x = call->op->input[0], *y = call->op->output[0];
    ls_dtype_convert(x->type, call->in[0], y->type, call->out[0], (size_t)ls_size(x));
}

/* Copies between `whole` and a part of it, which lies at `offset` there. */
static void move_part(const struct ls_value *whole, void *in_whole, const struct ls_value *part,
                      void *by_itself, const int64_t offset[LS_RANK_MAX], bool take)
{
    const size_t bytes = ls_dtype_size(part->type);
    for (int64_t i = 0; by_itself != NULL && i < ls_size(part); i++) {
        int64_t rest = i, place = 0, step = 1;
        for (int a = part->shape.rank - 1; a >= 0; step *= whole->shape.dim[a--]) {
            place += (rest % part->shape.dim[a] + offset[a]) * step;
            rest /= part->shape.dim[a];
        }
        char *there = (char *)in_whole + (size_t)place * bytes;
        char *here = (char *)by_itself + (size_t)i * bytes;
        memcpy(take ? here : there, take ? there : here, bytes);
    }
}

/* Parts one behind the other along an axis, some of which may be absent; tiles are one part. */
static void join_parts(const struct ls_call *call)
{
    const struct ls_op *op = call->op;
    const bool slices = op->kind == LS_OP_SLICE, tiles = op->kind == LS_OP_TILE;
    const int axis = tiles ? op->attr.tile.axis : op->attr.axis;
    const int parts = tiles ? (int)op->attr.tile.tiles : slices ? op->outputs : op->inputs;
    int64_t offset[LS_RANK_MAX] = {0};
    for (int k = 0; k < parts; k++) {
        const int which = tiles ? 0 : k;
        const struct ls_value *part = slices ? op->output[k] : op->input[which];
        move_part(slices ? op->input[0] : op->output[0], slices ? call->in[0] : call->out[0], part,
                  slices ? call->out[k] : call->in[which], offset, slices);
        offset[axis] += part->shape.dim[axis];
    }
}

/* Forward y is taken out of x; backward dx has dy where it was, and zeros elsewhere. */
static void crop(const struct ls_call *call)
{
    const struct ls_op *op = call->op;
    const int64_t *offset = op->attr.crop.offset;
    if (op->kind == LS_OP_CROP) {
        move_part(op->input[0], call->in[0], op->output[0], call->out[0], offset, true);
        return;
    }
    memset(call->out[0], 0, ls_value_bytes(op->output[0]));
    move_part(op->output[0], call->out[0], op->input[0], call->in[0], offset, false);
}

/* Which number of the plane before (x) belongs to element i of an enlarged plane (y). */
static int64_t enlarged_from(const struct ls_op *op, const struct ls_shape *y, int64_t i)
{
    const int64_t *factor = op->attr.upsample.factor;
    const int64_t row = i / y->dim[3] % y->dim[2], plane = i / y->dim[3] / y->dim[2];
    const int64_t rows = y->dim[2] / factor[0], columns = y->dim[3] / factor[1];
    return (plane * rows + row / factor[0]) * columns + i % y->dim[3] / factor[1];
}

static void upsample(const struct ls_call *call)
{
    const struct ls_value *y = call->op->output[0];
    const size_t bytes = ls_dtype_size(y->type);
    for (int64_t i = 0; i < ls_size(y); i++)
        memcpy((char *)call->out[0] + (size_t)i * bytes,
               (const char *)call->in[0] + (size_t)enlarged_from(call->op, &y->shape, i) * bytes,
               bytes);
}

static int64_t upsample_backward(const struct ls_call *call, int64_t i, double term[2])
{
    term[0] = ls_at(call, 0, i);
    return enlarged_from(call->op, &call->op->input[0]->shape, i);
}

/* Forward numbers of x go to their places in y; backward dx takes those of dy. */
static void unpool(const struct ls_call *call)
{
    const struct ls_op *op = call->op;
    const bool forward = op->kind == LS_OP_UNPOOL;
    const struct ls_value *small = forward ? op->input[0] : op->output[0];
    const struct ls_value *large = forward ? op->output[0] : op->input[0];
    const int64_t plane = small->shape.dim[2] * small->shape.dim[3];
    const int64_t enlarged = large->shape.dim[2] * large->shape.dim[3];
    const size_t bytes = ls_dtype_size(small->type);
    const int32_t *index = call->in[1];
    memset(call->out[0], 0, ls_value_bytes(op->output[0]));
    for (int64_t i = 0; i < ls_size(small); i++) {
        const size_t at = (size_t)(i / plane * enlarged + index[i]) * bytes;
        const size_t from = forward ? (size_t)i * bytes : at, to = forward ? at : (size_t)i * bytes;
        if (index[i] >= 0)
            memcpy((char *)call->out[0] + to, (const char *)call->in[0] + from, bytes);
    }
}

/* ---- Resizing, the largest of a list, fillers ------------------------------------------------ */

/* Position i of an axis of y takes the share near of position low of x, and the rest of the next.
 */
static int64_t low_of(const struct ls_resize_attr *attr, int64_t in, int64_t out, int64_t i,
                      double *near)
{
    const int64_t left = in - attr->begin - attr->end, steps = out > 1 ? out - 1 : 1;
    *near = (double)(steps - i * (left - 1) % steps) / (double)steps;
    return attr->begin + i * (left - 1) / steps;
}

/* y from x; backward, the other way, dx from dy. */
static void resize(const struct ls_call *call)
{
    const struct ls_op *op = call->op;
    const bool forward = op->kind == LS_OP_RESIZE;
    const int64_t *x = (forward ? op->input[0] : op->output[0])->shape.dim;
    const int64_t *y = (forward ? op->output[0] : op->input[0])->shape.dim;
    for (int64_t i = 0; i < y[0] * y[1] * y[2] * y[3]; i++) {
        double near[2];
        const int64_t row = low_of(&op->attr.resize, x[2], y[2], i / y[3] % y[2], &near[0]);
        const int64_t column = low_of(&op->attr.resize, x[3], y[3], i % y[3], &near[1]);
        for (int k = 0; k < 4; k++) {
            const double share = (k / 2 ? 1 - near[0] : near[0]) * (k % 2 ? 1 - near[1] : near[1]);
            const int64_t at = ((i / y[3] / y[2]) * x[2] + row + k / 2) * x[3] + column + k % 2;
            if (share > 0) /* else there may be no such neighbour */
                call->sum[0][forward ? i : at] += share * ls_at(call, 0, forward ? at : i);
        }
    }
}

/* Whether a comes before b: of equal numbers the later one, NaN before any number. */
static bool comes_before(const float *x, int64_t step, int64_t a, int64_t b)
{
    const float left = x[a * step], right = x[b * step];
    if ((left != left) != (right != right))
        return left != left;
    return left != left || left == right ? a > b : left > right;
}

/* Along an axis, or (axis -1) of each sample: places, or numbers, or both one behind the other. */
static double argmax(const struct ls_call *call, int64_t i)
{
    const struct ls_argmax_attr *attr = &call->op->attr.argmax;
    const struct ls_value *value = call->op->input[0];
    const bool both = attr->axis < 0 && attr->values;
    const struct ls_axes split =
        attr->axis >= 0 ? ls_axes(value, attr->axis, 1) : ls_axes(value, 1, value->shape.rank - 1);
    const int64_t run = attr->top_k * split.inner, o = i / run / (both ? 2 : 1);
    const float *x = (const float *)call->in[0] + o * split.dim * split.inner + i % split.inner;
    int64_t place = -1;
    for (int64_t k = 0; k <= i % run / split.inner; k++) {
        int64_t best = -1; /* the first of those that come behind the last one */
        for (int64_t c = 0; c < split.dim; c++)
            if ((place < 0 || comes_before(x, split.inner, place, c)) &&
                (best < 0 || comes_before(x, split.inner, c, best)))
                best = c;
        place = best;
    }
    const bool number = both ? i / run % 2 == 1 : attr->values;
    return number ? (double)x[place * split.inner] : (double)place;
}

/* Each sample by its ordinal; what has no samples at once. */
static void fill(const struct ls_call *call)
{
    struct ls_filler filler;
    int64_t each, n = ls_size(call->op->output[0]);
    const bool samples = call->op->output[0]->sample_axis == 0;
    ls_filler_resolve_op(&filler, call->op, &each, NULL); /* which planning has checked */
    for (int64_t s = 0; s * each < n; s++)
        ls_plain_fill(&filler, call->op->attr.fill.key,
                      samples ? (uint64_t)(call->context->first_ordinal + s) : 0,
                      (float *)call->out[0] + s * each, (size_t)each);
}

const struct ls_compute ls_ref_elements[LS_OP_KINDS] = {
    [LS_OP_REORDER] = {.run = convert},
    [LS_OP_VIEW] = {.run = convert},
    [LS_OP_ACTIVATION] = {.element = activation},
    [LS_OP_ACTIVATION_BACKWARD] = {.element = activation},
    [LS_OP_PRELU] = {.element = prelu},
    [LS_OP_PRELU_DATA] = {.element = prelu},
    [LS_OP_PRELU_SLOPE] = {.terms = prelu_slope},
    [LS_OP_DROPOUT] = {.element = dropout},
    [LS_OP_ELTWISE] = {.element = eltwise},
    [LS_OP_ELTWISE_BACKWARD] = {.element = eltwise_backward},
    [LS_OP_SCALE] = {.element = scale},
    [LS_OP_SCALE_SUMS] = {.terms = scale_sums},
    [LS_OP_REDUCE] = {.terms = reduce},
    [LS_OP_REDUCE_BACKWARD] = {.element = reduce_backward},
    [LS_OP_REDUCE_LOSS] = {.run = reduce_loss},
    [LS_OP_REDUCE_LOSS_BACKWARD] = {.element = reduce_backward},
    [LS_OP_CONCAT] = {.run = join_parts},
    [LS_OP_SLICE] = {.run = join_parts},
    [LS_OP_TILE] = {.run = join_parts},
    [LS_OP_TILE_BACKWARD] = {.terms = tile_backward},
    [LS_OP_CROP] = {.run = crop},
    [LS_OP_CROP_BACKWARD] = {.run = crop},
    [LS_OP_RESIZE] = {.add = resize},
    [LS_OP_RESIZE_BACKWARD] = {.add = resize},
    [LS_OP_UPSAMPLE] = {.run = upsample},
    [LS_OP_UPSAMPLE_BACKWARD] = {.terms = upsample_backward},
    [LS_OP_UNPOOL] = {.run = unpool},
    [LS_OP_UNPOOL_BACKWARD] = {.run = unpool},
    [LS_OP_ARGMAX] = {.element = argmax},
    [LS_OP_FILL] = {.run = fill},
};
