/* Pooling, resizing, and what goes by windows without weights.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "onnx/exporter.h"

/* ---- Pooling --------------------------------------------------------------------------------- */

/* Padding of windows along each axis: in front, and behind so much that there are as many windows
 * as the value has (Caffe rounds their number up). False: no padding gives that number. */
struct padding {
    int64_t pads[6];
    bool reaches[3]; /* the last window goes beyond the padding that the layer asks for */
    bool any;        /* some axis is reached so */
};

static bool find_padding(const struct ls_op *op, struct padding *padding)
{
    const struct ls_window *window = &op->attr.pooling.window;
    const int axes = window->axes;
    *padding = (struct padding){.any = false};
    for (int i = 0; i < axes; i++) {
        const int64_t size = op->input[0]->shape.dim[2 + i], out = op->output[0]->shape.dim[2 + i];
        const int64_t kernel = window->kernel[i], stride = window->stride[i], pad = window->pad[i];
        int64_t behind = (out - 1) * stride + kernel - size - pad;
        padding->reaches[i] = behind > pad;
        padding->any |= padding->reaches[i];
        if (behind < 0)
            behind = 0;
        padding->pads[i] = pad;
        padding->pads[axes + i] = behind;
        if ((size + pad + behind - kernel) / stride + 1 != out || pad >= kernel || behind >= kernel)
            return false;
    }
    return true;
}

static bool is_global(const struct ls_op *op)
{
    const struct ls_window *window = &op->attr.pooling.window;
    for (int i = 0; i < window->axes; i++)
        if (window->pad[i] != 0 || window->kernel[i] != op->input[0]->shape.dim[2 + i] ||
            op->output[0]->shape.dim[2 + i] != 1)
            return false;
    return op->input[0]->shape.rank == 2 + window->axes;
}

static void set_window(struct ls_exporter *x, const struct ls_window *window, const int64_t *pads)
{
    const size_t axes = (size_t)window->axes;
    ls_onnx_set_ints(x->writer, "kernel_shape", window->kernel, axes);
    ls_onnx_set_ints(x->writer, "pads", pads, 2 * axes);
    ls_onnx_set_ints(x->writer, "strides", window->stride, axes);
}

/* How much of a window of an axis is within the input and its padding. */
static int64_t within(const struct ls_op *op, int axis, int64_t place)
{
    const struct ls_window *window = &op->attr.pooling.window;
    const int64_t begin = place * window->stride[axis] - window->pad[axis];
    const int64_t most = op->input[0]->shape.dim[2 + axis] + window->pad[axis];
    return (begin + window->kernel[axis] < most ? begin + window->kernel[axis] : most) - begin;
}

/* What the average over whole windows is multiplied by, where the last ones are cut off: Caffe
 * divides by what is left of them. */
static const char *correction(struct ls_exporter *x, const struct ls_op *op)
{
    const struct ls_window *window = &op->attr.pooling.window;
    struct ls_shape shape = op->output[0]->shape;
    shape.dim[0] = shape.dim[1] = 1;
    const int64_t size = ls_shape_size(&shape);
    float *numbers = ls_onnx_new_numbers(x, (size_t)size);
    for (int64_t k = 0; k < size && numbers != NULL; k++) {
        double all = 1, left = 1;
        int64_t rest = k;
        for (int i = window->axes; i-- > 0; rest /= shape.dim[2 + i]) {
            all *= (double)window->kernel[i];
            left *= (double)within(op, i, rest % shape.dim[2 + i]);
        }
        numbers[k] = (float)(all / left);
    }
    return numbers != NULL ? ls_onnx_constant(x->writer, &shape, numbers) : "";
}

/* The average of `in` over the op's windows. */
static const char *average(struct ls_exporter *x, const struct ls_op *op, const char *in,
                           const char *out)
{
    const struct ls_window *window = &op->attr.pooling.window;
    struct padding padding;
    if (is_global(op))
        return LS_EMIT(x, "GlobalAveragePool", out, in);
    if (!find_padding(op, &padding)) {
        ls_onnx_refuse(x, NULL, "its windows are none that AveragePool of ONNX has");
        return in;
    }
    bool padded = false;
    for (int i = 0; i < window->axes; i++)
        padded |= window->pad[i] > 0;
    const bool corrected = padded && padding.any;
    const char *y = LS_EMIT(x, "AveragePool", corrected ? NULL : out, in);
    ls_onnx_set_int(x->writer, "count_include_pad", padded);
    set_window(x, window, padding.pads);
    return corrected ? LS_EMIT(x, "Mul", out, y, correction(x, op)) : y;
}

static void maximum(struct ls_exporter *x, const struct ls_op *op)
{
    struct padding padding;
    const bool index = op->outputs > 1 && op->output[1] != NULL && x->needed[op->output[1]->index];
    if (is_global(op) && !index) {
        LS_EMIT(x, "GlobalMaxPool", ls_onnx_out(x, 0), ls_onnx_in(x, 0));
        return;
    }
    if (!find_padding(op, &padding)) {
        ls_onnx_refuse(x, NULL, "its windows are none that MaxPool of ONNX has");
        return;
    }
    const char *in = ls_onnx_in(x, 0);
    const char *const outputs[] = {ls_onnx_out(x, 0), index ? ls_onnx_out(x, 1) : NULL};
    ls_onnx_add_node(x->writer, "MaxPool", &in, 1, outputs, 2);
    set_window(x, &op->attr.pooling.window, padding.pads);
}

/* The sum of squares over the sum; 0 where that is 0. */
static void expected(struct ls_exporter *x, const struct ls_op *op)
{
    const char *in = ls_onnx_in(x, 0), *zero = ls_onnx_number(x->writer, 0);
    const char *squares = average(x, op, LS_EMIT(x, "Mul", NULL, in, in), NULL);
    const char *plain = average(x, op, in, NULL);
    const char *none = LS_EMIT(x, "Equal", NULL, plain, zero);
    const char *divisor = LS_EMIT(x, "Where", NULL, none, ls_onnx_number(x->writer, 1), plain);
    const char *quotient = LS_EMIT(x, "Div", NULL, squares, divisor);
    LS_EMIT(x, "Where", ls_onnx_out(x, 0), none, zero, quotient);
}

static void pooling(struct ls_exporter *x, const struct ls_op *op)
{
    if (op->attr.pooling.method == LS_POOL_MAX)
        maximum(x, op);
    else if (op->attr.pooling.method == LS_POOL_AVERAGE)
        average(x, op, ls_onnx_in(x, 0), ls_onnx_out(x, 0));
    else if (op->attr.pooling.method == LS_POOL_EXPECTED)
        expected(x, op);
    else
        ls_onnx_refuse(x, NULL, "STOCHASTIC pooling draws random numbers in training");
}

/* Places as MaxPool wrote them: of the whole tensor. */
static void unpool(struct ls_exporter *x, const struct ls_op *op)
{
    LS_EMIT(x, "MaxUnpool", ls_onnx_out(x, 0), ls_onnx_in(x, 0), ls_onnx_in(x, 1),
            ls_onnx_shape_of(x, op->output[0]));
    for (size_t i = 0; i < x->graph->op_count; i++) {
        const struct ls_op *pool = x->graph->ops[i];
        if (pool->kind != LS_OP_POOLING || pool->outputs < 2 || pool->output[1] != op->input[1])
            continue;
        ls_onnx_set_ints(x->writer, "kernel_shape", pool->attr.pooling.window.kernel, 2);
        ls_onnx_set_ints(x->writer, "strides", pool->attr.pooling.window.stride, 2);
        return;
    }
    ls_onnx_refuse(x, NULL, "places to put numbers at must come from a Pooling layer");
}

/* ---- Sizes ----------------------------------------------------------------------------------- */

static void set_resize(struct ls_exporter *x, const char *mode, const char *coordinates)
{
    ls_onnx_set_string(x->writer, "coordinate_transformation_mode", coordinates);
    ls_onnx_set_string(x->writer, "mode", mode);
    if (mode[0] == 'n')
        ls_onnx_set_string(x->writer, "nearest_mode", "floor");
}

static void resize(struct ls_exporter *x, const struct ls_op *op)
{
    const struct ls_resize_attr *attr = &op->attr.resize;
    const char *in = ls_onnx_in(x, 0);
    for (int axis = 2; axis < 4 && (attr->begin != 0 || attr->end != 0); axis++)
        in = ls_onnx_cut(x, in, NULL, axis, attr->begin, op->input[0]->shape.dim[axis] - attr->end);
    LS_EMIT(x, "Resize", ls_onnx_out(x, 0), in, NULL, NULL, ls_onnx_shape_of(x, op->output[0]));
    set_resize(x, "linear", "align_corners");
}

static void upsample(struct ls_exporter *x, const struct ls_op *op)
{
    const float scales[] = {1, 1, (float)op->attr.upsample.factor[0],
                            (float)op->attr.upsample.factor[1]};
    const struct ls_shape shape = {.rank = 1, .dim = {4}};
    LS_EMIT(x, "Resize", ls_onnx_out(x, 0), ls_onnx_in(x, 0), NULL,
            ls_onnx_constant(x->writer, &shape, scales));
    set_resize(x, "nearest", "asymmetric");
}

/* ---- Windows as columns, regions ------------------------------------------------------------- */

/* A convolution by channel, whose filters are 1 at one place of the window. */
static void im2col(struct ls_exporter *x, const struct ls_op *op)
{
    const struct ls_window *window = &op->attr.window;
    const size_t axes = (size_t)window->axes;
    const int64_t channels = op->input[0]->shape.dim[1];
    int64_t places = 1, pads[6];
    struct ls_shape shape = {.rank = (int)axes + 2, .dim = {0, 1}};
    for (size_t i = 0; i < axes; i++) {
        places *= window->kernel[i];
        shape.dim[2 + i] = window->kernel[i];
        pads[i] = pads[axes + i] = window->pad[i];
    }
    shape.dim[0] = channels * places;
    float *filters = ls_onnx_new_numbers(x, (size_t)(channels * places * places));
    for (int64_t i = 0; i < channels * places && filters != NULL; i++)
        filters[i * places + i % places] = 1;
    LS_EMIT(x, "Conv", ls_onnx_out(x, 0), ls_onnx_in(x, 0),
            ls_onnx_add_weights(x, "places", &shape, filters));
    ls_onnx_set_ints(x->writer, "dilations", window->dilation, axes);
    ls_onnx_set_int(x->writer, "group", channels);
    set_window(x, window, pads);
}

static void region_max(struct ls_exporter *x, const struct ls_op *op)
{
    if (op->outputs > 1 && op->output[1] != NULL && x->needed[op->output[1]->index])
        ls_onnx_refuse(x, NULL, "MaxRoiPool of ONNX does not tell where the maxima are");
    LS_EMIT(x, "MaxRoiPool", ls_onnx_out(x, 0), ls_onnx_in(x, 0), ls_onnx_in(x, 1));
    ls_onnx_set_ints(x->writer, "pooled_shape", op->attr.regions.bins, 2);
    ls_onnx_set_float(x->writer, "spatial_scale", op->attr.regions.scale);
}

const ls_onnx_exporter ls_onnx_windows[LS_OP_KINDS] = {
    [LS_OP_POOLING] = pooling,   [LS_OP_UNPOOL] = unpool, [LS_OP_RESIZE] = resize,
    [LS_OP_UPSAMPLE] = upsample, [LS_OP_IM2COL] = im2col, [LS_OP_REGION_MAX] = region_max,
};
