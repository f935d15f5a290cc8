/* Functions of one number, what is done element by element, sums along axes, and moves.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <sleef.h>
#include <string.h>

#include "base/random.h"
#include "device/plain.h"
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

static double activation(const struct ls_ref_call *call, int64_t i)
{
    const struct ls_activation_attr *attr = &call->op->attr.activation;
    const double x = ls_ref_at(call, 0, i), slope = (double)attr->slope, low = (double)attr->low;
    const double inner = (double)attr->scale * x + (double)attr->shift, high = (double)attr->high;
    switch (attr->function) {
    case LS_RELU:
        return ls_ref_relu(x, attr->slope);
    case LS_SIGMOID:
        return sigmoid(x);
    case LS_TANH:
        return Sleef_cinz_tanhd1_u10purec(x);
    case LS_ELU:
        return !(x <= 0) ? x : slope * Sleef_cinz_expm1d1_u10purec(x);
    case LS_SWISH:
        return x * sigmoid(slope * x);
    case LS_ABSOLUTE:
        return fabs(x);
    case LS_EXP:
        return (double)attr->factor * Sleef_cinz_expd1_u10purec((double)attr->scale * x);
    case LS_LOG:
        return (double)attr->factor * Sleef_cinz_logd1_u10purec(inner);
    case LS_POWER: /* a constant where x has no influence, whatever it is */
        return power(attr->scale == 0 || attr->power == 0 ? (double)attr->shift : inner,
                     (double)attr->power);
    case LS_BNLL:
        return (x > 0 ? x : 0) + Sleef_cinz_log1pd1_u10purec(Sleef_cinz_expd1_u10purec(-fabs(x)));
    case LS_CLIP:
        return x > high ? high : x < low ? low : x;
    default: /* LS_THRESHOLD */
        return x > low ? 1 : x <= low ? 0 : x;
    }
}

/* The derivative; `given` is x or y, as enum ls_activation says. */
static double derivative(const struct ls_activation_attr *attr, double given)
{
    const double slope = (double)attr->slope, scale = (double)attr->scale;
    const double inner = scale * given + (double)attr->shift, s = sigmoid(slope * given);
    switch (attr->function) {
    case LS_RELU:
        return given > 0 ? 1 : slope;
    case LS_SIGMOID:
        return given * (1 - given);
    case LS_TANH:
        return 1 - given * given;
    case LS_ELU:
        return given > 0 ? 1 : slope < 0 ? slope * Sleef_cinz_expd1_u10purec(given) : given + slope;
    case LS_SWISH:
        return s + slope * given * s * (1 - s);
    case LS_ABSOLUTE:
        return (given > 0) - (given < 0);
    case LS_EXP:
        return scale * given;
    case LS_LOG:
        return (double)attr->factor * scale / inner;
    case LS_POWER:
        return attr->power == 0 || scale == 0
                   ? 0
                   : (double)attr->power * scale * power(inner, (double)attr->power - 1);
    case LS_BNLL:
        return sigmoid(given);
    case LS_CLIP:
        return given >= (double)attr->low && given <= (double)attr->high ? 1 : 0;
    default:
        return 0; /* of a threshold */
    }
}

static double activation_backward(const struct ls_ref_call *call, int64_t i)
{
    double slope = derivative(&call->op->attr.activation, ls_ref_at(call, 1, i));
    return slope == 0 ? 0 : ls_ref_at(call, 0, i) * slope;
}

/* The slope of element i of x: that of its channel, or one for all. */
static int64_t slope_of(const struct ls_value *x, const struct ls_value *slope, int64_t i)
{
    const struct ls_ref_split split = ls_ref_split(x, 1, 1);
    return slope->shape.rank == 0 ? 0 : ls_ref_along(&split, i);
}

/* in: x or dy, (x), slope. */
static double prelu(const struct ls_ref_call *call, int64_t i)
{
    const struct ls_op *op = call->op;
    const int last = op->inputs - 1;
    const double from = ls_ref_at(call, 0, i);
    if (ls_ref_at(call, last - 1, i) > 0)
        return from;
    return from * ls_ref_at(call, last, slope_of(op->input[0], op->input[last], i));
}

static int64_t prelu_slope(const struct ls_ref_call *call, int64_t i, double term[2])
{
    const double x = ls_ref_at(call, 1, i);
    term[0] = x > 0 ? 0 : ls_ref_at(call, 0, i) * x;
    return slope_of(call->op->input[0], call->op->output[0], i);
}

/* Element e of a sample is kept where the e-th number of (key, ordinal) is at least ratio 2^32; a
 * value that mixes samples is one sample. */
static double dropout(const struct ls_ref_call *call, int64_t i)
{
    const struct ls_value *value = call->op->input[0];
    const int axis = value->sample_axis;
    const double ratio = (double)call->op->attr.dropout.ratio,
                 scale = (double)(float)(1 / (1 - ratio));
    int64_t samples = 1, run = ls_ref_size(value);
    if (ls_ref_in(call, 1) != NULL)
        return ls_ref_at(call, 1, i) > 0 ? ls_ref_at(call, 0, i) * scale : 0;
    if (axis >= 0) {
        samples = value->shape.dim[axis] / value->rows;
        run = ls_shape_count(&value->shape, axis + 1, value->shape.rank) * value->rows;
    }
    uint64_t ordinal = (uint64_t)(call->context->first_ordinal + i / run % samples);
    uint64_t element = (uint64_t)(i / run / samples * run + i % run);
    return ls_random_u32(call->op->attr.dropout.key, ordinal, element) >=
                   (uint32_t)ceil(ratio * 0x1p32)
               ? ls_ref_at(call, 0, i) * scale
               : 0;
}

/* ---- Of several values ----------------------------------------------------------------------- */

static double coefficient(const struct ls_eltwise_attr *attr, int k)
{
    return attr->coefficients != NULL ? (double)attr->coefficients[k] : 1;
}

static double eltwise(const struct ls_ref_call *call, int64_t i)
{
    const struct ls_eltwise_attr *attr = &call->op->attr.eltwise;
    const int inputs = call->op->inputs - attr->gated;
    const bool sum = attr->method == LS_ELTWISE_SUM;
    double s = ls_ref_at(call, 0, i) * (sum ? coefficient(attr, 0) : 1);
    for (int k = 1; k < inputs; k++) {
        const double x = ls_ref_at(call, k, i);
        if (sum)
            s += coefficient(attr, k) * x;
        else
            s = attr->method == LS_ELTWISE_PROD ? s * x : s > x ? s : x;
    }
    if (attr->gated)
        return ls_ref_relu_backward(s, ls_ref_at(call, inputs, i) > 0, attr->relu_slope);
    return attr->relu ? ls_ref_relu(s, attr->relu_slope) : s;
}

/* Of equal inputs the second is the maximum rather than the first, and any of these two rather than
 * a later one. */
static double eltwise_backward(const struct ls_ref_call *call, int64_t i)
{
    const struct ls_eltwise_attr *attr = &call->op->attr.eltwise;
    double factor = coefficient(attr, attr->which);
    int winner = call->op->inputs > 2 ? 1 : 0;
    for (int k = 0; k < call->op->inputs - 1; k++) {
        const double x = ls_ref_at(call, k + 1, i);
        factor *= attr->method == LS_ELTWISE_PROD && k != attr->which ? x : 1;
        winner = k != 1 && x > ls_ref_at(call, winner + 1, i) ? k : winner;
    }
    if (attr->method == LS_ELTWISE_MAX && winner != attr->which)
        return 0;
    return factor * ls_ref_at(call, 0, i);
}

static double scale(const struct ls_ref_call *call, int64_t i)
{
    const struct ls_scale_attr *attr = &call->op->attr.scale;
    const struct ls_ref_split split = ls_ref_split(call->op->input[0], attr->axis, attr->axes);
    const float *factor = ls_ref_in(call, 1), *bias = ls_ref_in(call, 2);
    const int64_t d = ls_ref_along(&split, i);
    return ls_ref_at(call, 0, i) * (factor != NULL ? (double)factor[d] : 1) +
           (bias != NULL ? (double)bias[d] : -0.0);
}

static int64_t scale_sums(const struct ls_ref_call *call, int64_t i, double term[2])
{
    const struct ls_scale_attr *attr = &call->op->attr.scale;
    const struct ls_ref_split split = ls_ref_split(call->op->input[0], attr->axis, attr->axes);
    term[1] = ls_ref_at(call, 0, i);
    term[0] = ls_ref_in(call, 1) != NULL ? term[1] * ls_ref_at(call, 1, i) : 0;
    return ls_ref_along(&split, i);
}

/* ---- Reductions ------------------------------------------------------------------------------ */

static int64_t tile_backward(const struct ls_ref_call *call, int64_t i, double term[2])
{
    const struct ls_tile_attr *attr = &call->op->attr.tile;
    const struct ls_value *dx = call->op->output[0];
    const int64_t run = ls_shape_count(&dx->shape, attr->axis, dx->shape.rank);
    term[0] = ls_ref_at(call, 0, i);
    return i / run / attr->tiles * run + i % run;
}

static double reduced(const struct ls_reduction_attr *attr, double x)
{
    if (attr->method == LS_REDUCE_SUMSQ)
        return (double)attr->coeff * x * x;
    return (double)attr->coeff * (attr->method == LS_REDUCE_ASUM ? fabs(x) : x);
}

static int64_t reduce(const struct ls_ref_call *call, int64_t i, double term[2])
{
    const struct ls_reduction_attr *attr = &call->op->attr.reduction;
    const struct ls_value *x = call->op->input[0];
    const int64_t run = ls_shape_count(&x->shape, attr->axis, x->shape.rank);
    term[0] = reduced(attr, ls_ref_at(call, 0, i));
    term[0] /= attr->method == LS_REDUCE_MEAN ? (double)run : 1;
    return i / run;
}

/* The figure of a batch. */
static void reduce_loss(const struct ls_ref_call *call)
{
    const struct ls_reduction_attr *attr = &call->op->attr.reduction;
    const int64_t n = ls_ref_size(call->op->input[0]);
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += reduced(attr, ls_ref_at(call, 0, i));
    call->context->partials[attr->metric_offset] += sum;
    call->context->partials[attr->metric_offset + 1] += (double)n;
}

/* in: (dy), (x: ASUM, SUMSQ); dy is absent for a figure of the batch. */
static double reduce_backward(const struct ls_ref_call *call, int64_t i)
{
    const struct ls_op *op = call->op;
    const struct ls_reduction_attr *attr = &op->attr.reduction;
    const bool loss = op->kind == LS_OP_REDUCE_LOSS_BACKWARD;
    const struct ls_value *dx = op->output[0];
    const int64_t run = ls_shape_count(&dx->shape, loss ? 0 : attr->axis, dx->shape.rank);
    double factor = (double)attr->coeff, x;
    if (loss)
        factor *= (double)attr->loss_weight /
                  (attr->normalizer < 0 ? 1 : call->context->normalizers[attr->normalizer]);
    else
        factor *= ls_ref_at(call, 0, i / run) / (attr->method == LS_REDUCE_MEAN ? (double)run : 1);
    if (attr->method == LS_REDUCE_SUM || attr->method == LS_REDUCE_MEAN)
        return factor;
    x = ls_ref_at(call, loss ? 0 : 1, i);
    return attr->method == LS_REDUCE_SUMSQ ? 2 * factor * x : factor * ((x > 0) - (x < 0));
}

/* ---- Moves ----------------------------------------------------------------------------------- */

/* The same elements, of another type. */
static void convert(const struct ls_ref_call *call)
{
    const struct ls_value *x = call->op->input[0], *y = call->op->output[0];
    ls_dtype_convert(x->type, call->in[0], y->type, call->out[0], (size_t)ls_ref_size(x));
}

/* Where element i of `from` lies in `to`, by `sign` times `offset` further on; -1: outside. */
static int64_t place_of(const struct ls_value *from, int64_t i, const struct ls_value *to,
                        const int64_t offset[LS_RANK_MAX], int sign)
{
    int64_t place = 0, step = 1;
    for (int a = from->shape.rank - 1; a >= 0; a--) {
        const int64_t at = i % from->shape.dim[a] + sign * offset[a];
        if (at < 0 || at >= to->shape.dim[a])
            return -1;
        place += at * step;
        step *= to->shape.dim[a];
        i /= from->shape.dim[a];
    }
    return place;
}

static int64_t same(const struct ls_ref_call *call, int which, int64_t i, int *input)
{
    (void)call, (void)which, (void)input;
    return i;
}

static int64_t concat(const struct ls_ref_call *call, int which, int64_t i, int *input)
{
    const struct ls_op *op = call->op;
    int64_t offset[LS_RANK_MAX] = {0}, place = -1;
    for (int k = 0; k < op->inputs && place < 0; k++) {
        place = place_of(op->output[which], i, op->input[k], offset, -1);
        offset[op->attr.axis] += op->input[k]->shape.dim[op->attr.axis];
        *input = k;
    }
    return place;
}

static int64_t slice(const struct ls_ref_call *call, int which, int64_t i, int *input)
{
    const struct ls_op *op = call->op;
    int64_t offset[LS_RANK_MAX] = {0};
    (void)input;
    for (int k = 0; k < which; k++)
        offset[op->attr.axis] += op->output[k]->shape.dim[op->attr.axis];
    return place_of(op->output[which], i, op->input[0], offset, 1);
}

static int64_t tile(const struct ls_ref_call *call, int which, int64_t i, int *input)
{
    const struct ls_ref_split x = ls_ref_split(call->op->input[0], call->op->attr.tile.axis, 1);
    const struct ls_ref_split y = ls_ref_split(call->op->output[0], call->op->attr.tile.axis, 1);
    (void)which, (void)input;
    return (i / y.inner / y.dim * x.dim + ls_ref_along(&y, i) % x.dim) * x.inner + i % x.inner;
}

/* Forward y takes what lies at the offset in x, backward dx has it there. */
static int64_t crop(const struct ls_ref_call *call, int which, int64_t i, int *input)
{
    const struct ls_op *op = call->op;
    (void)which, (void)input;
    return place_of(op->output[0], i, op->input[0], op->attr.crop.offset,
                    op->kind == LS_OP_CROP ? 1 : -1);
}

/* ---- Resizing -------------------------------------------------------------------------------- */

/* Position i of an axis of y takes the share near of position low of x, and the rest of the next.
 */
static int64_t low_of(const struct ls_resize_attr *attr, int64_t in, int64_t out, int64_t i,
                      double *near)
{
    const int64_t left = in - attr->begin - attr->end, steps = out > 1 ? out - 1 : 1;
    *near = (double)(steps - i * (left - 1) % steps) / (double)steps;
    return attr->begin + i * (left - 1) / steps;
}

/* y from x; backward, the other way, dx (in double, in scratch) from dy. */
static void resize(const struct ls_ref_call *call)
{
    const struct ls_op *op = call->op;
    const bool forward = op->kind == LS_OP_RESIZE;
    const int64_t *x = (forward ? op->input[0] : op->output[0])->shape.dim;
    const int64_t *y = (forward ? op->output[0] : op->input[0])->shape.dim;
    double *sum = call->scratch, near[2];
    const int64_t size = ls_ref_size(op->output[0]);
    for (int64_t i = 0; i < size; i++)
        sum[i] = 0;
    for (int64_t i = 0; i < y[0] * y[1] * y[2] * y[3]; i++) {
        int64_t row = low_of(&op->attr.resize, x[2], y[2], i / y[3] % y[2], &near[0]);
        int64_t column = low_of(&op->attr.resize, x[3], y[3], i % y[3], &near[1]);
        for (int k = 0; k < 4; k++) {
            double share = (k / 2 ? 1 - near[0] : near[0]) * (k % 2 ? 1 - near[1] : near[1]);
            int64_t at = ((i / y[3] / y[2]) * x[2] + row + k / 2) * x[3] + column + k % 2;
            if (share > 0) /* else there may be no such neighbour */
                sum[forward ? i : at] += share * ls_ref_at(call, 0, forward ? at : i);
        }
    }
    for (int64_t i = 0; i < size; i++)
        ((float *)call->out[0])[i] = (float)sum[i];
}

/* ---- The largest of a list, and fillers ------------------------------------------------------ */

/* Whether a comes before b: of equal numbers the later one, NaN before any number. */
static bool comes_before(const float *x, int64_t step, int64_t a, int64_t b)
{
    const float left = x[a * step], right = x[b * step];
    if ((left != left) != (right != right))
        return left != left;
    return left != left || left == right ? a > b : left > right;
}

/* Along an axis, or (axis -1) of each sample: places, or numbers, or both one behind the other. */
static void argmax(const struct ls_ref_call *call)
{
    const struct ls_argmax_attr *attr = &call->op->attr.argmax;
    const struct ls_value *value = call->op->input[0];
    const struct ls_ref_split split = attr->axis >= 0
                                          ? ls_ref_split(value, attr->axis, 1)
                                          : ls_ref_split(value, 1, value->shape.rank - 1);
    const bool both = attr->axis < 0 && attr->values;
    for (int64_t i = 0; i < split.outer * split.inner; i++) {
        const int64_t o = i / split.inner, rest = i % split.inner;
        const float *x = (const float *)call->in[0] + o * split.dim * split.inner + rest;
        float *y = (float *)call->out[0] + o * attr->top_k * (both ? 2 : 1) * split.inner + rest;
        int64_t last = -1;
        for (int64_t k = 0; k < attr->top_k; k++, y += split.inner) {
            int64_t best = -1; /* the first of those that come behind the last one */
            for (int64_t c = 0; c < split.dim; c++)
                if ((last < 0 || comes_before(x, split.inner, last, c)) &&
                    (best < 0 || comes_before(x, split.inner, c, best)))
                    best = c;
            *y = attr->values && !both ? x[best * split.inner] : (float)best;
            if (both)
                y[attr->top_k] = x[best];
            last = best;
        }
    }
}

/* Each sample by its ordinal; what has no samples at once. */
static void fill(const struct ls_ref_call *call)
{
    const struct ls_value *value = call->op->output[0];
    const struct ls_fill_attr *attr = &call->op->attr.fill;
    struct ls_shape shape = value->shape;
    struct ls_filler filler;
    if (value->sample_axis == 0)
        shape.dim[0] = value->rows;
    ls_filler_resolve(&filler, attr->filler, &shape, NULL); /* which planning has checked */
    if (attr->filler == NULL)
        filler.first = (double)attr->value;
    const int64_t each = ls_shape_size(&shape);
    for (int64_t s = 0; s * each < ls_ref_size(value); s++)
        ls_plain_fill(&filler, attr->key,
                      value->sample_axis == 0 ? (uint64_t)(call->context->first_ordinal + s) : 0,
                      (float *)call->out[0] + s * each, (size_t)each);
}

const struct ls_ref_compute ls_ref_elements[LS_OP_KINDS] = {
    [LS_OP_REORDER] = {.run = convert},
    [LS_OP_VIEW] = {.source = same},
    [LS_OP_ACTIVATION] = {.element = activation},
    [LS_OP_ACTIVATION_BACKWARD] = {.element = activation_backward},
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
    [LS_OP_CONCAT] = {.source = concat},
    [LS_OP_SLICE] = {.source = slice},
    [LS_OP_TILE] = {.source = tile},
    [LS_OP_TILE_BACKWARD] = {.terms = tile_backward},
    [LS_OP_CROP] = {.source = crop},
    [LS_OP_CROP_BACKWARD] = {.source = crop},
    [LS_OP_RESIZE] = {.run = resize, .scratch = ls_ref_output_doubles},
    [LS_OP_RESIZE_BACKWARD] = {.run = resize, .scratch = ls_ref_output_doubles},
    [LS_OP_ARGMAX] = {.run = argmax},
    [LS_OP_FILL] = {.run = fill},
};
