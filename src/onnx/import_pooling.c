/* Import: pooling.
 *
 * Averages here divide as Caffe's do, by the part of a window within the padded plane. Where the
 * model divides by something else (count_include_pad: 0), a Scale layer of fixed factors, one for
 * each place, follows.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "onnx/import_windows.h"

enum { AXES = LS_ONNX_PLACE_AXES, PLACES = 1 << 26 };

struct pooling {
    struct ls_onnx_window model, layer; /* as the model and as the layer have it */
    int64_t places[AXES];               /* of the output */
    bool ceil;                          /* the layer rounds up */
    bool average, counts;               /* counts: padding counts in averages */
};

/* The places along an axis. With `ceil` the last window may go beyond the padding; with `inside` it
 * begins within the plane or the padding in front. */
static int64_t count_places(const struct ls_onnx_window *w, int i, int64_t extent, bool ceil,
                            bool inside)
{
    const int64_t room = extent + w->before[i] + w->after[i] - w->kernel[i];
    if (room < 0)
        return 0;
    int64_t count = (room + (ceil ? w->stride[i] - 1 : 0)) / w->stride[i] + 1;
    if (inside && (count - 1) * w->stride[i] >= extent + w->before[i])
        count--;
    return count;
}

/* The window of the layer. It rounds up where that gives the model's places; else it rounds down,
 * and what a last window needs beyond the plane is padding behind it. */
static void find_layer(struct pooling *p, const struct ls_shape *in)
{
    const struct ls_onnx_window *w = &p->model;
    bool padded = false, alike = true;
    p->layer = p->model;
    for (int i = 0; i < w->axes; i++) {
        padded = padded || w->before[i] != 0;
        alike = alike && w->before[i] == w->after[i];
    }
    for (int i = 0; i < w->axes; i++)
        p->ceil =
            p->ceil && alike && count_places(w, i, in->dim[2 + i], true, padded) == p->places[i];
    for (int i = 0; !p->ceil && i < w->axes; i++) {
        const int64_t needs =
            (p->places[i] - 1) * w->stride[i] + w->kernel[i] - in->dim[2 + i] - w->before[i];
        if (needs > w->after[i])
            p->layer.after[i] = needs;
    }
}

static int64_t overlap(int64_t begin, int64_t end, int64_t low, int64_t high)
{
    begin = begin < low ? low : begin;
    end = end > high ? high : end;
    return end > begin ? end - begin : 0;
}

/* What averages have to be multiplied by along an axis, by place. */
static double factor_at(const struct pooling *p, int i, int64_t place, int64_t extent)
{
    const struct ls_onnx_window *w = &p->model;
    const int64_t begin = place * w->stride[i] - w->before[i], end = begin + w->kernel[i];
    const int64_t divisor = overlap(begin, end, -p->layer.before[i], extent + p->layer.after[i]);
    const int64_t wanted = p->counts ? overlap(begin, end, -w->before[i], extent + w->after[i])
                                     : overlap(begin, end, 0, extent);
    return wanted > 0 ? (double)divisor / (double)wanted : 0;
}

/* The averages with their model's divisors. */
static const char *correct(struct ls_importer *x, const struct pooling *p,
                           const struct ls_shape *in, const char *top)
{
    struct ls_shape plane = {.rank = p->model.axes};
    for (int i = 0; i < plane.rank; i++)
        plane.dim[i] = p->places[i];
    const int64_t count = ls_shape_size(&plane);
    if (count > PLACES) {
        ls_import_cannot(x, NULL, "its planes are too large");
        return NULL;
    }
    float *factors = top != NULL ? ls_import_new_reals(x, count) : NULL;
    bool same = true;
    for (int64_t k = 0; factors != NULL && k < count; k++) {
        double factor = 1;
        int64_t rest = k;
        for (int i = plane.rank - 1; i >= 0 && plane.dim[i] > 0; i--) {
            factor *= factor_at(p, i, rest % plane.dim[i], in->dim[2 + i]);
            rest /= plane.dim[i];
        }
        factors[k] = (float)factor;
        same = same && factor == 1;
    }
    if (factors == NULL || same)
        return factors != NULL ? top : NULL;
    const char *scaled = LS_LAYER(x, "Scale", top,
                                  "scale_param { axis: 2 "
                                  "num_axes: %d }",
                                  plane.rank);
    return ls_import_weight(x, scaled, "scale", NULL, &plane, factors) == 0 ? scaled : NULL;
}

static const char *add_pooling(struct ls_importer *x, struct pooling *p,
                               const struct ls_onnx_value *in)
{
    const struct ls_onnx_window padded = p->layer;
    const char *bottom =
        ls_import_pad_apart(x, in, &p->layer, p->average ? "" : "value: -3.4028235e+38 ");
    struct ls_text text = {0};
    ls_text_format(&text, "pool: %s ", p->average ? "AVE" : "MAX");
    ls_import_add_window(&text, &p->layer);
    if (!p->ceil)
        ls_text_add(&text, "round_mode: FLOOR ");
    if (text.failed)
        ls_import_no_memory(x);
    const char *top =
        text.failed ? NULL
                    : ls_import_layer(x, "Pooling", &bottom, 1, "pooling_param { %s}", text.data);
    ls_text_free(&text);
    p->layer = padded;
    return top;
}

static int pool(struct ls_importer *x, bool average)
{
    struct ls_onnx_value *in = ls_import_blob(x, 0);
    if (in == NULL)
        return x->status;
    LS_TRY(ls_import_check_planes(x, &in->shape));
    struct pooling p = {.average = average, .model = {.axes = in->shape.rank - 2}};
    LS_TRY(ls_import_read_window(x, &in->shape, &p.model));
    p.ceil = ls_import_integer(x, "ceil_mode", 0) != 0;
    p.counts = ls_import_integer(x, "count_include_pad", 0) != 0;
    struct ls_shape out = in->shape;
    for (int i = 0; i < p.model.axes; i++) {
        if (p.model.kernel[i] == 0)
            return ls_import_cannot(x, NULL, "kernel_shape is missing");
        if (p.model.dilation[i] != 1)
            return ls_import_cannot(x, NULL, "its dilation has no equivalent");
        if (p.model.before[i] >= p.model.kernel[i] || p.model.after[i] >= p.model.kernel[i])
            return ls_import_cannot(x, NULL, "its padding is not smaller than its window");
        p.places[i] = count_places(&p.model, i, in->shape.dim[2 + i], p.ceil, p.ceil);
        out.dim[2 + i] = p.places[i];
        if (p.places[i] < 1)
            return ls_import_cannot(x, NULL, "its window is larger than its input");
    }
    const struct ls_onnx_value *indices = ls_import_output(x, 1);
    if (indices != NULL && indices->uses > 0)
        return ls_import_cannot(x, NULL, "the places of its maxima are not imported");
    find_layer(&p, &in->shape);
    const char *top = add_pooling(x, &p, in);
    if (average)
        top = correct(x, &p, &in->shape, top);
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
    LS_TRY(ls_import_check_planes(x, &in->shape));
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

const struct ls_onnx_operator ls_onnx_read_pooling[] = {
    {"AveragePool", read_average_pool},
    {"GlobalAveragePool", read_global_average},
    {"GlobalMaxPool", read_global_max},
    {"MaxPool", read_max_pool},
    {NULL, NULL},
};
