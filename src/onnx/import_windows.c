/* Import: convolutions and pooling.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>

#include "onnx/importer.h"

enum { AXES_MAX = 3 };

struct window {
    int axes;
    int64_t kernel[AXES_MAX], stride[AXES_MAX], dilation[AXES_MAX], before[AXES_MAX],
        after[AXES_MAX];
};

/* An extent that a layer's field can hold. */
static bool is_extent(int64_t number, int64_t least)
{
    return number >= least && number < INT32_MAX / 4;
}

static int read_list(struct ls_importer *x, const char *name, int axes, int64_t least, int64_t *out)
{
    const int64_t *numbers;
    int64_t count;
    int status = ls_import_integers(x, name, -1, &numbers, &count);
    if (status != 0 || count < 0)
        return status;
    if (count != axes)
        return ls_import_cannot(x, NULL, "%s has %lld numbers for %d axes", name, (long long)count,
                                axes);
    for (int i = 0; i < axes; i++) {
        if (!is_extent(numbers[i], least))
            return ls_import_cannot(x, NULL, "%s %lld is out of range", name,
                                    (long long)numbers[i]);
        out[i] = numbers[i];
    }
    return 0;
}

/* Padding so that the output has as many places as the input has strides. */
static void pad_same(const struct ls_importer *x, const struct ls_shape *in, struct window *w)
{
    const bool lower = ls_import_text_is(x, "auto_pad", "SAME_LOWER", false);
    for (int i = 0; i < w->axes; i++) {
        const int64_t extent = in->dim[2 + i], out = (extent + w->stride[i] - 1) / w->stride[i];
        int64_t pad = (out - 1) * w->stride[i] + (w->kernel[i] - 1) * w->dilation[i] + 1 - extent;
        pad = pad < 0 ? 0 : pad;
        w->before[i] = (pad + lower) / 2;
        w->after[i] = pad - w->before[i];
    }
}

/* The window of the node at hand, whose kernel is known. */
static int read_window(struct ls_importer *x, const struct ls_shape *in, struct window *w)
{
    int64_t pads[2 * AXES_MAX] = {0};
    for (int i = 0; i < w->axes; i++)
        w->stride[i] = w->dilation[i] = 1;
    LS_TRY(read_list(x, "kernel_shape", w->axes, 1, w->kernel));
    LS_TRY(read_list(x, "strides", w->axes, 1, w->stride));
    LS_TRY(read_list(x, "dilations", w->axes, 1, w->dilation));
    LS_TRY(read_list(x, "pads", 2 * w->axes, 0, pads));
    for (int i = 0; i < w->axes; i++) {
        w->before[i] = pads[i];
        w->after[i] = pads[w->axes + i];
    }
    if (!ls_import_text_is(x, "auto_pad", "NOTSET", true) &&
        !ls_import_text_is(x, "auto_pad", "VALID", true))
        pad_same(x, in, w);
    return 0;
}

static int check_planes(struct ls_importer *x, const struct ls_shape *in)
{
    if (in->rank >= 3 && in->rank <= 2 + AXES_MAX)
        return 0;
    return ls_import_cannot(x, NULL, "its input has %d axes; 3 to 5 are read", in->rank);
}

/* Adds "stride: 2 stride: 1 "; nothing where all are `usual`. */
static void add_field(struct ls_text *text, const char *name, const int64_t *numbers, int count,
                      int64_t usual)
{
    bool differ = false, same = true;
    for (int i = 0; i < count; i++) {
        differ = differ || numbers[i] != usual;
        same = same && numbers[i] == numbers[0];
    }
    for (int i = 0; differ && i < (same ? 1 : count); i++)
        ls_text_format(text, "%s: %lld ", name, (long long)numbers[i]);
}

/* The input, with a layer in front that pads it where its sides differ. */
static const char *pad_apart(struct ls_importer *x, const struct ls_onnx_value *in,
                             struct window *w, const char *value)
{
    bool alike = true;
    for (int i = 0; i < w->axes; i++)
        alike = alike && w->before[i] == w->after[i];
    if (alike)
        return in->top;
    struct ls_text text = {0};
    for (int i = 0; i < w->axes; i++) {
        ls_text_format(&text, "axis: %d before: %lld after: %lld ", 2 + i, (long long)w->before[i],
                       (long long)w->after[i]);
        w->before[i] = w->after[i] = 0;
    }
    if (text.failed)
        ls_import_no_memory(x);
    const char *wanted = x->wanted;
    x->wanted = NULL;
    const char *top =
        text.failed ? NULL : LS_LAYER(x, "Pad", in->top, "pad_param { %s%s}", text.data, value);
    x->wanted = wanted;
    ls_text_free(&text);
    return top;
}

/* Fields of a convolution or a pooling. */
static void add_window(struct ls_text *text, const struct window *w)
{
    add_field(text, "kernel_size", w->kernel, w->axes, 0);
    add_field(text, "stride", w->stride, w->axes, 1);
    add_field(text, "pad", w->before, w->axes, 0);
    add_field(text, "dilation", w->dilation, w->axes, 1);
}

static int add_bias(struct ls_importer *x, const char *top, int index, int64_t outputs)
{
    struct ls_onnx_value *bias = ls_import_constant(x, index);
    if (bias == NULL)
        return x->status;
    const struct ls_shape shape = {.rank = 1, .dim = {outputs}};
    if (!ls_shape_equal(&bias->shape, &shape))
        return ls_import_cannot(x, NULL, "its bias has not one number for each output");
    return ls_import_weight(x, top, "bias", bias->name, &shape, ls_import_reals_of(x, bias));
}

static int convolve(struct ls_importer *x, bool transposed)
{
    struct ls_onnx_value *in = ls_import_blob(x, 0), *weight = ls_import_constant(x, 1);
    if (in == NULL || weight == NULL)
        return x->status;
    LS_TRY(check_planes(x, &in->shape));
    const int64_t group = ls_import_integer(x, "group", 1);
    if (weight->shape.rank != in->shape.rank || !is_extent(group, 1) ||
        ls_shape_size(&weight->shape) == 0)
        return ls_import_cannot(x, NULL, "its weights have not the axes of its input");
    const int64_t channels = in->shape.dim[1], rows = weight->shape.dim[0],
                  columns = weight->shape.dim[1];
    if (channels % group != 0 || (transposed ? rows : columns * group) != channels ||
        columns >= INT32_MAX || (!transposed && rows % group != 0))
        return ls_import_cannot(x, NULL, "its weights do not fit %lld channels in %lld groups",
                                (long long)channels, (long long)group);
    struct window w = {.axes = in->shape.rank - 2};
    for (int i = 0; i < w.axes; i++)
        w.kernel[i] = weight->shape.dim[2 + i];
    LS_TRY(read_window(x, &in->shape, &w));
    for (int i = 0; i < w.axes; i++)
        if (w.kernel[i] != weight->shape.dim[2 + i])
            return ls_import_cannot(x, NULL, "kernel_shape is not that of its weights");
    struct ls_shape out = in->shape;
    out.dim[1] = transposed ? columns * group : rows;
    for (int i = 0; i < w.axes; i++) {
        const int64_t span = (w.kernel[i] - 1) * w.dilation[i] + 1, extent = in->shape.dim[2 + i];
        out.dim[2 + i] = transposed ? (extent - 1) * w.stride[i] + span - w.before[i] - w.after[i]
                                    : (extent + w.before[i] + w.after[i] - span) / w.stride[i] + 1;
        if (!transposed && extent + w.before[i] + w.after[i] < span)
            return ls_import_cannot(x, NULL, "its window is larger than its input");
        if (transposed && w.before[i] != w.after[i])
            return ls_import_cannot(x, NULL, "its padding differs from side to side");
    }
    ls_import_call(x, weight);
    const char *bottom = pad_apart(x, in, &w, "");
    struct ls_text text = {0};
    ls_text_format(&text, "num_output: %lld ", (long long)out.dim[1]);
    add_window(&text, &w);
    if (group != 1)
        ls_text_format(&text, "group: %lld ", (long long)group);
    const bool biased = ls_import_input(x, 2) != NULL;
    if (!biased)
        ls_text_add(&text, "bias_term: false ");
    const char *top = NULL;
    if (text.failed)
        ls_import_no_memory(x);
    else
        top = ls_import_layer(x, transposed ? "Deconvolution" : "Convolution", &bottom, 1,
                              "convolution_param { %s}", text.data);
    ls_text_free(&text);
    LS_TRY(ls_import_weight(x, top, "weight", weight->name, &weight->shape,
                            ls_import_reals_of(x, weight)));
    if (biased)
        LS_TRY(add_bias(x, top, 2, out.dim[1]));
    return ls_import_result(x, 0, top, &out);
}

static int read_conv(struct ls_importer *x)
{
    return convolve(x, false);
}

static int read_conv_transpose(struct ls_importer *x)
{
    const int64_t *more;
    int64_t count;
    LS_TRY(ls_import_integers(x, "output_padding", -1, &more, &count));
    for (int64_t i = 0; i < count; i++)
        if (more[i] != 0)
            return ls_import_cannot(x,
                                    "a kernel of an even size with half of it as padding needs "
                                    "none",
                                    "output_padding has no equivalent");
    if (ls_import_attribute(x, "output_shape") != NULL ||
        !ls_import_text_is(x, "auto_pad", "NOTSET", true))
        return ls_import_cannot(x, "give pads", "output_shape and auto_pad are not read");
    return convolve(x, true);
}

/* The places of a pooling along an axis, as the model and as a Pooling layer count them. */
static int64_t places(const struct window *w, int i, int64_t extent, bool ceil, bool padded)
{
    const int64_t room = extent + w->before[i] + w->after[i] - w->kernel[i];
    if (room < 0)
        return 0;
    int64_t count = (room + (ceil ? w->stride[i] - 1 : 0)) / w->stride[i] + 1;
    if (padded && (count - 1) * w->stride[i] >= extent + w->before[i])
        count--;
    return count;
}

static int pool(struct ls_importer *x, bool average)
{
    struct ls_onnx_value *in = ls_import_blob(x, 0);
    if (in == NULL)
        return x->status;
    LS_TRY(check_planes(x, &in->shape));
    struct window w = {.axes = in->shape.rank - 2};
    LS_TRY(read_window(x, &in->shape, &w));
    const bool ceil = ls_import_integer(x, "ceil_mode", 0) != 0;
    bool padded = false, overhang = false;
    struct ls_shape out = in->shape;
    for (int i = 0; i < w.axes; i++) {
        if (w.kernel[i] == 0)
            return ls_import_cannot(x, NULL, "kernel_shape is missing");
        if (w.dilation[i] != 1)
            return ls_import_cannot(x, NULL, "its dilation has no equivalent");
        padded = padded || w.before[i] != 0 || w.after[i] != 0;
    }
    const bool counts = ls_import_integer(x, "count_include_pad", 0) != 0;
    if (average && padded && !counts)
        return ls_import_cannot(x, "export it with count_include_pad=True, or without padding",
                                "an average that leaves the padding out has no equivalent");
    ls_import_call(x, in);
    x->wanted = NULL;
    const char *bottom = pad_apart(x, in, &w, average ? "" : "value: -3.4028235e+38 ");
    struct ls_shape padded_in = in->shape;
    for (int i = 0; i < w.axes; i++) { /* a Pad layer has made the input larger */
        if (bottom != in->top) {
            int64_t pads[2 * AXES_MAX] = {0};
            LS_TRY(read_list(x, "pads", 2 * w.axes, 0, pads));
            struct window again = w;
            if (!ls_import_text_is(x, "auto_pad", "NOTSET", true))
                pad_same(x, &in->shape, &again);
            else
                again.before[i] = pads[i], again.after[i] = pads[w.axes + i];
            padded_in.dim[2 + i] += again.before[i] + again.after[i];
        }
        padded = padded && bottom == in->top;
    }
    for (int i = 0; i < w.axes; i++) {
        const int64_t extent = padded_in.dim[2 + i];
        out.dim[2 + i] = places(&w, i, extent, ceil, padded);
        overhang = overhang || (ceil && places(&w, i, extent, false, padded) != out.dim[2 + i]);
        if (ceil && !padded && (out.dim[2 + i] - 1) * w.stride[i] >= extent)
            return ls_import_cannot(x, NULL, "with ceil_mode its last window would be empty");
    }
    if (average && overhang && !padded)
        overhang = false; /* Both divide by the part of the window within the input. */
    if (average && overhang)
        return ls_import_cannot(x, NULL, "an average with padding and ceil_mode has no equivalent");
    struct ls_text text = {0};
    ls_text_format(&text, "pool: %s ", average ? "AVE" : "MAX");
    add_window(&text, &w);
    if (!ceil)
        ls_text_add(&text, "round_mode: FLOOR ");
    const char *top = NULL;
    if (text.failed)
        ls_import_no_memory(x);
    else
        top = ls_import_layer(x, "Pooling", &bottom, 1, "pooling_param { %s}", text.data);
    ls_text_free(&text);
    struct ls_onnx_value *indices = ls_import_output(x, 1);
    if (indices != NULL && indices->uses > 0)
        return ls_import_cannot(x, NULL, "the places of its maxima are not imported");
    return ls_import_result(x, 0, top, &out);
}

static int read_max_pool(struct ls_importer *x)
{
    return pool(x, false);
}

static int read_average_pool(struct ls_importer *x)
{
    return pool(x, true);
}

static int pool_all(struct ls_importer *x, const char *method)
{
    struct ls_onnx_value *in = ls_import_blob(x, 0);
    if (in == NULL)
        return x->status;
    LS_TRY(check_planes(x, &in->shape));
    struct ls_shape out = in->shape;
    for (int i = 2; i < out.rank; i++)
        out.dim[i] = 1;
    const char *top =
        LS_LAYER(x, "Pooling", in->top, "pooling_param { pool: %s global_pooling: true }", method);
    return ls_import_result(x, 0, top, &out);
}

static int read_global_average(struct ls_importer *x)
{
    return pool_all(x, "AVE");
}

static int read_global_max(struct ls_importer *x)
{
    return pool_all(x, "MAX");
}

const struct ls_onnx_operator ls_onnx_read_windows[] = {
    {"AveragePool", read_average_pool},
    {"Conv", read_conv},
    {"ConvTranspose", read_conv_transpose},
    {"GlobalAveragePool", read_global_average},
    {"GlobalMaxPool", read_global_max},
    {"MaxPool", read_max_pool},
    {NULL, NULL},
};
