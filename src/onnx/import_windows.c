/* Import: convolutions, and windows as they and pooling have them.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>

#include "onnx/import_windows.h"

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
static void pad_same(const struct ls_importer *x, const struct ls_shape *in,
                     struct ls_onnx_window *w)
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

int ls_import_read_window(struct ls_importer *x, const struct ls_shape *in,
                          struct ls_onnx_window *w)
{
    int64_t pads[2 * LS_ONNX_PLACE_AXES] = {0};
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

int ls_import_check_planes(struct ls_importer *x, const struct ls_shape *in)
{
    if (in->rank >= 3 && in->rank <= 2 + LS_ONNX_PLACE_AXES)
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

const char *ls_import_padded(struct ls_importer *x, const char *top, const struct ls_onnx_window *w,
                             const char *mode)
{
    struct ls_text text = {0};
    for (int i = 0; i < w->axes; i++)
        if (w->before[i] != 0 || w->after[i] != 0)
            ls_text_format(&text, "axis: %d before: %lld after: %lld ", 2 + i,
                           (long long)w->before[i], (long long)w->after[i]);
    if (text.failed)
        ls_import_no_memory(x);
    if (text.failed || top == NULL || text.length == 0)
        return text.failed ? NULL : top;
    const char *wanted = x->wanted;
    x->wanted = NULL;
    top = LS_LAYER(x, "Pad", top, "pad_param { %s%s}", text.data, mode);
    x->wanted = wanted;
    ls_text_free(&text);
    return top;
}

const char *ls_import_pad_apart(struct ls_importer *x, const struct ls_onnx_value *in,
                                struct ls_onnx_window *w, const char *mode)
{
    bool alike = true;
    for (int i = 0; i < w->axes; i++)
        alike = alike && w->before[i] == w->after[i];
    if (alike)
        return in->top;
    const char *top = ls_import_padded(x, in->top, w, mode);
    for (int i = 0; i < w->axes; i++)
        w->before[i] = w->after[i] = 0;
    return top;
}

void ls_import_add_window(struct ls_text *text, const struct ls_onnx_window *w)
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
    return ls_import_weight(x, top, "bias", bias, &shape, ls_import_reals_of(x, bias));
}

/* A convolution at hand. */
struct convolution {
    struct ls_onnx_value *in, *weight;
    struct ls_onnx_window window;
    int64_t group, outputs;
    bool biased;
};

static int read_convolution(struct ls_importer *x, bool transposed, struct convolution *c)
{
    c->in = ls_import_blob(x, 0);
    c->weight = c->in != NULL ? ls_import_constant(x, 1) : NULL;
    if (c->weight == NULL)
        return x->status;
    const struct ls_shape *in = &c->in->shape, *weight = &c->weight->shape;
    LS_TRY(ls_import_check_planes(x, in));
    c->group = ls_import_integer(x, "group", 1);
    c->biased = ls_import_input(x, 2) != NULL;
    if (weight->rank != in->rank || !is_extent(c->group, 1) || ls_shape_size(weight) == 0)
        return ls_import_cannot(x, NULL, "its weights have not the axes of its input");
    const int64_t channels = in->dim[1], rows = weight->dim[0], columns = weight->dim[1];
    if (channels % c->group != 0 || (transposed ? rows : columns * c->group) != channels ||
        columns >= INT32_MAX || (!transposed && rows % c->group != 0))
        return ls_import_cannot(x, NULL, "its weights do not fit %lld channels in %lld groups",
                                (long long)channels, (long long)c->group);
    c->outputs = transposed ? columns * c->group : rows;
    struct ls_onnx_window *w = &c->window;
    w->axes = in->rank - 2;
    for (int i = 0; i < w->axes; i++)
        w->kernel[i] = weight->dim[2 + i];
    LS_TRY(ls_import_read_window(x, in, w));
    for (int i = 0; i < w->axes; i++)
        if (w->kernel[i] != weight->dim[2 + i])
            return ls_import_cannot(x, NULL, "kernel_shape is not that of its weights");
    return 0;
}

/* The layer, of a bottom that is padded where its sides differ. */
static const char *add_convolution(struct ls_importer *x, const struct convolution *c,
                                   const char *type, const char *bottom, bool biased)
{
    struct ls_text text = {0};
    const char *top = NULL;
    ls_text_format(&text, "num_output: %lld ", (long long)c->outputs);
    ls_import_add_window(&text, &c->window);
    if (c->group != 1)
        ls_text_format(&text, "group: %lld ", (long long)c->group);
    if (!biased)
        ls_text_add(&text, "bias_term: false ");
    if (text.failed)
        ls_import_no_memory(x);
    else
        top = ls_import_layer(x, type, &bottom, 1, "convolution_param { %s}", text.data);
    ls_text_free(&text);
    if (ls_import_weight(x, top, "weight", c->weight, &c->weight->shape,
                         ls_import_reals_of(x, c->weight)) != 0 ||
        (biased && add_bias(x, top, 2, c->outputs) != 0))
        return NULL;
    return top;
}

static int read_conv(struct ls_importer *x)
{
    struct convolution c = {0};
    LS_TRY(read_convolution(x, false, &c));
    struct ls_shape out = c.in->shape;
    out.dim[1] = c.outputs;
    for (int i = 0; i < c.window.axes; i++) {
        const struct ls_onnx_window *w = &c.window;
        const int64_t span = (w->kernel[i] - 1) * w->dilation[i] + 1,
                      room = c.in->shape.dim[2 + i] + w->before[i] + w->after[i] - span;
        if (room < 0)
            return ls_import_cannot(x, NULL, "its window is larger than its input");
        out.dim[2 + i] = room / w->stride[i] + 1;
    }
    ls_import_call(x, c.weight);
    const char *bottom = ls_import_pad_apart(x, c.in, &c.window, "");
    return ls_import_result(x, 0, add_convolution(x, &c, "Convolution", bottom, c.biased), &out);
}

/* What is cut off the result of a transposed convolution, in front and behind, by axis; below 0:
 * put on. It is in the window's before and after then. */
static int read_cuts(struct ls_importer *x, const struct ls_shape *in, struct ls_onnx_window *w)
{
    const int64_t *more, *extents;
    int64_t count, extent_count;
    LS_TRY(ls_import_integers(x, "output_padding", -1, &more, &count));
    LS_TRY(ls_import_integers(x, "output_shape", -1, &extents, &extent_count));
    if ((count > 0 && count != w->axes) || (extent_count > 0 && extent_count < w->axes))
        return ls_import_cannot(x, NULL,
                                "output_padding or output_shape has not one number for "
                                "each axis");
    const bool upper = ls_import_text_is(x, "auto_pad", "SAME_UPPER", false),
               same = upper || ls_import_text_is(x, "auto_pad", "SAME_LOWER", false);
    for (int i = 0; i < w->axes; i++) {
        const int64_t extent = in->dim[2 + i], pad = count > 0 ? more[i] : 0;
        const int64_t full = (extent - 1) * w->stride[i] + (w->kernel[i] - 1) * w->dilation[i] + 1;
        if (pad < 0 || pad >= INT32_MAX / 4)
            return ls_import_cannot(x, NULL, "output_padding is out of range");
        if (extent_count > 0 || same) {
            const int64_t wanted =
                extent_count > 0 ? extents[extent_count - w->axes + i] : extent * w->stride[i];
            if (wanted < 1 || wanted >= INT32_MAX)
                return ls_import_cannot(x, NULL, "output_shape is out of range");
            const int64_t all = full + pad - wanted, half = all / 2;
            w->before[i] = all < 0 ? 0 : upper ? half : all - half;
            w->after[i] = all - w->before[i];
        }
        w->after[i] -= pad;
        if (w->before[i] + w->after[i] >= full)
            return ls_import_cannot(x, NULL, "its padding leaves nothing");
    }
    return 0;
}

/* What is to be cut off on both sides alike is the layer's own padding; Slice layers cut off the
 * rest, and a Pad layer puts on what output_padding has beyond. */
static int read_conv_transpose(struct ls_importer *x)
{
    struct convolution c = {0};
    bool grows = false;
    LS_TRY(read_convolution(x, true, &c));
    LS_TRY(read_cuts(x, &c.in->shape, &c.window));
    struct ls_onnx_window *w = &c.window, cuts = *w;
    struct ls_onnx_value now = *c.in;
    now.shape.dim[1] = c.outputs;
    for (int i = 0; i < w->axes; i++) {
        const int64_t least = cuts.before[i] < cuts.after[i] ? cuts.before[i] : cuts.after[i];
        w->before[i] = least > 0 ? least : 0;
        cuts.before[i] -= w->before[i];
        cuts.after[i] -= w->before[i];
        grows = grows || cuts.before[i] < 0 || cuts.after[i] < 0;
        now.shape.dim[2 + i] = (now.shape.dim[2 + i] - 1) * w->stride[i] +
                               (w->kernel[i] - 1) * w->dilation[i] + 1 - 2 * w->before[i];
    }
    ls_import_call(x, c.weight);
    now.top = add_convolution(x, &c, "Deconvolution", c.in->top, c.biased && !grows);
    for (int i = 0; i < w->axes; i++) {
        const int64_t extent = now.shape.dim[2 + i];
        const int64_t before = cuts.before[i] > 0 ? cuts.before[i] : 0,
                      after = cuts.after[i] > 0 ? cuts.after[i] : 0;
        now.top = ls_import_part(x, &now, 2 + i, before, extent - after);
        now.shape.dim[2 + i] -= before + after;
        w->before[i] = before - cuts.before[i];
        w->after[i] = after - cuts.after[i];
    }
    if (grows) {
        now.top = ls_import_padded(x, now.top, w, "");
        for (int i = 0; i < w->axes; i++)
            now.shape.dim[2 + i] += w->before[i] + w->after[i];
    }
    if (grows && c.biased) {
        now.top = LS_LAYER(x, "Bias", now.top, "%s", "bias_param { axis: 1 }");
        LS_TRY(add_bias(x, now.top, 2, c.outputs));
    }
    return ls_import_result(x, 0, now.top, &now.shape);
}

const struct ls_onnx_operator ls_onnx_read_windows[] = {
    {"Conv", read_conv},
    {"ConvTranspose", read_conv_transpose},
    {NULL, NULL},
};
