/* Import: Resize and Upsample.
 *
 * Along each axis a new number is a sum of old ones with fixed factors. A rule of the operator
 * gives these; the layer is the plainest one that does the same:
 *
 *   Upsample                 numbers repeated a whole number of times
 *   Interp                   linear, corners aligned
 *   Pad and Deconvolution    linear between the middles of pixels, a whole number of times as large
 *   Parameter and Gather     one old number for each new one
 *   InnerProduct             all else: the factors as a matrix that does not learn
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <string.h>

#include "onnx/import_windows.h"

enum { MATRIX = 1 << 24 }; /* the most numbers of a matrix */

enum method { NEAREST, LINEAR, CUBIC };

/* An axis that is resized. */
struct axis {
    int64_t in, out;
    float scale;
};

struct resize {
    enum method method;
    const char *place;   /* coordinate_transformation_mode */
    const char *nearest; /* nearest_mode */
    float cubic;
    bool exclude; /* exclude_outside */
    struct axis axis[LS_RANK_MAX];
    int rank;
};

/* ---- What the node says ---------------------------------------------------------------------- */

/* The text of an attribute if it is one of `words`, which end with NULL; NULL: it is none. The
 * first word is what is taken where the attribute is not there. */
static const char *read_word(struct ls_importer *x, const char *name, const char *const *words)
{
    if (ls_import_attribute(x, name) == NULL)
        return words[0];
    for (int i = 0; words[i] != NULL; i++)
        if (ls_import_text_is(x, name, words[i], false))
            return words[i];
    ls_import_cannot(x, NULL, "its %s has no equivalent", name);
    return NULL;
}

static int read_rules(struct ls_importer *x, struct resize *r, bool old)
{
    static const char *const methods[] = {"nearest", "linear", "cubic", "bilinear", NULL};
    static const char *const places[] = {"half_pixel", "pytorch_half_pixel",   "align_corners",
                                         "asymmetric", "half_pixel_symmetric", NULL};
    static const char *const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                            "ceil", NULL};
    const char *method = read_word(x, "mode", methods);
    r->place = read_word(x, "coordinate_transformation_mode", places);
    r->nearest = read_word(x, "nearest_mode", roundings);
    if (method == NULL || r->place == NULL || r->nearest == NULL)
        return x->status;
    if (old) { /* Upsample, and Resize of version 10 */
        r->place = "asymmetric";
        r->nearest = "floor";
    }
    r->method = strcmp(method, "nearest") == 0 ? NEAREST
                : strcmp(method, "cubic") == 0 ? CUBIC
                                               : LINEAR;
    r->cubic = ls_import_real(x, "cubic_coeff_a", -0.75F);
    r->exclude = ls_import_integer(x, "exclude_outside", 0) != 0;
    if (ls_import_integer(x, "antialias", 0) != 0)
        return ls_import_cannot(x, "export it with antialias=False", "antialias has no equivalent");
    if (!ls_import_text_is(x, "keep_aspect_ratio_policy", "stretch", true))
        return ls_import_cannot(x, "give the sizes themselves",
                                "keep_aspect_ratio_policy is not read");
    return 0;
}

/* Numbers for the axes that are named, or for all. */
static int read_numbers(struct ls_importer *x, struct resize *r, int index, bool sizes)
{
    const int64_t *axes;
    int64_t count;
    struct ls_onnx_value *value = ls_import_constant(x, index);
    const float *reals = value != NULL ? ls_import_reals_of(x, value) : NULL;
    if (reals == NULL)
        return x->status;
    LS_TRY(ls_import_integers(x, "axes", -1, &axes, &count));
    if (ls_shape_size(&value->shape) != (count >= 0 ? count : r->rank))
        return ls_import_cannot(x, NULL, "it has not one size or scale for each axis");
    for (int64_t i = 0; i < (count >= 0 ? count : r->rank); i++) {
        const int at = count >= 0 ? ls_import_axis(x, axes[i], r->rank) : (int)i;
        if (at < 0)
            return x->status;
        struct axis *a = &r->axis[at];
        const double extent = sizes ? (double)reals[i] : floor((double)reals[i] * (double)a->in);
        if (!(extent >= 1 && extent < INT32_MAX))
            return ls_import_cannot(x, NULL, "a size of it is out of range");
        a->out = (int64_t)extent;
        if (!sizes && strcmp(r->place, "align_corners") == 0 &&
            extent != (double)reals[i] * (double)a->in)
            return ls_import_cannot(x, "give the sizes themselves",
                                    "its scale gives no whole size, and readers differ in where "
                                    "the corners are then");
        a->scale = sizes ? (float)a->out / (float)a->in : reals[i];
    }
    return 0;
}

static int read_sizes(struct ls_importer *x, struct resize *r, bool old)
{
    const int scales = old ? 1 : 2;
    const struct ls_onnx_value *given = ls_import_input(x, scales), *sizes = ls_import_input(x, 3);
    const Onnx__AttributeProto *attribute = ls_import_attribute(x, "scales");
    if (attribute != NULL && attribute->n_floats == (size_t)r->rank) { /* Upsample of version 7 */
        for (int i = 0; i < r->rank; i++) {
            const double extent = floor((double)attribute->floats[i] * (double)r->axis[i].in);
            if (!(extent >= 1 && extent < INT32_MAX))
                return ls_import_cannot(x, NULL, "a scale of it is out of range");
            r->axis[i].out = (int64_t)extent;
            r->axis[i].scale = attribute->floats[i];
        }
        return 0;
    }
    if (!old && sizes != NULL)
        return read_numbers(x, r, 3, true);
    if (given == NULL)
        return ls_import_cannot(x, NULL, "it has neither sizes nor scales");
    return read_numbers(x, r, scales, false);
}

/* ---- Factors --------------------------------------------------------------------------------- */

/* Where a new place lies among the old ones; in fp32, as others compute it. */
static float place_of(const struct resize *r, const struct axis *a, int64_t o)
{
    const float at = (float)o;
    if (strcmp(r->place, "asymmetric") == 0)
        return at / a->scale;
    if (strcmp(r->place, "align_corners") == 0)
        return a->out > 1 ? at * (float)(a->in - 1) / (float)(a->out - 1) : 0;
    if (strcmp(r->place, "pytorch_half_pixel") == 0 && a->out <= 1)
        return 0;
    const float half = (at + 0.5F) / a->scale - 0.5F;
    if (strcmp(r->place, "half_pixel_symmetric") != 0)
        return half;
    const float adjustment = (float)a->out / (a->scale * (float)a->in);
    return (float)a->in / 2 * (1 - adjustment) + half;
}

static int64_t within(int64_t place, const struct axis *a)
{
    return place < 0 ? 0 : place >= a->in ? a->in - 1 : place;
}

static int64_t nearest_to(const struct resize *r, const struct axis *a, float at)
{
    const float place = strcmp(r->nearest, "floor") == 0               ? floorf(at)
                        : strcmp(r->nearest, "ceil") == 0              ? ceilf(at)
                        : strcmp(r->nearest, "round_prefer_ceil") == 0 ? floorf(at + 0.5F)
                                                                       : ceilf(at - 0.5F);
    return within((int64_t)place, a);
}

/* Keys's function of a distance. */
static double cubic_factor(double d, double a)
{
    d = fabs(d);
    if (d <= 1)
        return ((a + 2) * d - (a + 3)) * d * d + 1;
    return d < 2 ? (((d - 5) * d + 8) * d - 4) * a : 0;
}

/* The factors of new place `o`, behind those of the ones before it. */
static void add_row(const struct resize *r, const struct axis *a, int64_t o, double *row)
{
    float at = place_of(r, a, o);
    memset(row, 0, (size_t)a->in * sizeof *row);
    if (r->method == NEAREST) {
        row[nearest_to(r, a, at)] = 1;
        return;
    }
    if (r->method == LINEAR) {
        at = at < 0 ? 0 : at > (float)(a->in - 1) ? (float)(a->in - 1) : at;
        const int64_t left = (int64_t)at;
        const double part = (double)at - (double)left;
        row[left] += 1 - part;
        row[within(left + 1, a)] += part;
        return;
    }
    double sum = 0, factors[4];
    const int64_t first = (int64_t)floorf(at) - 1;
    for (int k = 0; k < 4; k++) {
        const int64_t place = first + k;
        factors[k] = cubic_factor((double)at - (double)place, (double)r->cubic);
        if (r->exclude && place != within(place, a))
            factors[k] = 0;
        sum += factors[k];
    }
    for (int k = 0; k < 4; k++)
        row[within(first + k, a)] += r->exclude ? factors[k] / sum : factors[k];
}

/* The matrix of an axis, [out, in]; NULL after a failure. */
static const float *make_matrix(struct ls_importer *x, const struct resize *r, const struct axis *a)
{
    if (a->in > MATRIX / a->out) {
        ls_import_cannot(x, NULL, "its planes are too large");
        return NULL;
    }
    double *row = ls_arena_alloc(x->arena, (size_t)a->in, sizeof *row);
    float *matrix = row != NULL ? ls_import_new_reals(x, a->in * a->out) : NULL;
    for (int64_t o = 0; matrix != NULL && o < a->out; o++) {
        add_row(r, a, o, row);
        for (int64_t i = 0; i < a->in; i++)
            matrix[o * a->in + i] = (float)row[i];
    }
    if (row == NULL)
        ls_import_no_memory(x);
    return matrix;
}

/* ---- Layers ---------------------------------------------------------------------------------- */

static bool is_changed(const struct resize *r, int axis)
{
    return r->axis[axis].out != r->axis[axis].in;
}

/* Whether the axes are planes [samples, channels, height, width], and only those change. */
static bool has_planes(const struct resize *r)
{
    return r->rank == 4 && !is_changed(r, 0) && !is_changed(r, 1);
}

/* How many times an axis is as large; 0: no whole number of times. */
static int64_t times(const struct axis *a)
{
    const int64_t factor = a->out / a->in;
    return a->out % a->in == 0 && (float)factor == a->scale ? factor : 0;
}

static bool repeats(const struct resize *r, const struct axis *a)
{
    const int64_t factor = times(a);
    for (int64_t o = 0; factor > 0 && o < a->out; o++)
        if (nearest_to(r, a, place_of(r, a, o)) != o / factor)
            return false;
    return factor > 0;
}

/* Planes enlarged, numbers between the middles of pixels: sums of triangles as wide as two pixels.
 * The pixels at the edges are there once more. */
static const char *enlarge(struct ls_importer *x, const struct resize *r,
                           const struct ls_onnx_value *in)
{
    struct ls_onnx_window pad = {.axes = 2}, w = {.axes = 2};
    const int64_t channels = in->shape.dim[1];
    for (int i = 0; i < 2; i++) {
        const int64_t factor = times(&r->axis[2 + i]);
        w.stride[i] = factor;
        w.kernel[i] = factor % 2 == 0 ? 2 * factor : 2 * factor - 1;
        w.before[i] = factor > 1 ? factor + factor / 2 : 0;
        w.dilation[i] = 1;
        pad.before[i] = pad.after[i] = factor > 1;
    }
    struct ls_shape shape = {.rank = 4, .dim = {channels, 1, w.kernel[0], w.kernel[1]}};
    float *weights = ls_import_new_reals(x, ls_shape_size(&shape));
    for (int64_t k = 0;
         weights != NULL && w.kernel[0] > 0 && w.kernel[1] > 0 && k < ls_shape_size(&shape); k++) {
        double number = 1;
        for (int i = 0; i < 2; i++) {
            const int64_t at = i == 0 ? k / w.kernel[1] % w.kernel[0] : k % w.kernel[1];
            number *= 1 - fabs((double)at - (double)(w.kernel[i] - 1) / 2) / (double)w.stride[i];
        }
        weights[k] = (float)number;
    }
    struct ls_text text = {0};
    const char *top = ls_import_padded(x, in->top, &pad, "mode: EDGE ");
    ls_import_add_window(&text, &w);
    if (text.failed)
        ls_import_no_memory(x);
    top = text.failed || weights == NULL
              ? NULL
              : LS_LAYER(x, "Deconvolution", top,
                         "convolution_param { num_output: %lld "
                         "%sgroup: %lld bias_term: false }",
                         (long long)channels, text.data, (long long)channels);
    ls_text_free(&text);
    return ls_import_weight(x, top, "weight", NULL, &shape, weights) == 0 ? top : NULL;
}

/* An axis by its matrix: it goes to the end, is multiplied, and goes back. */
static const char *multiply(struct ls_importer *x, const struct resize *r, int axis,
                            const char *top)
{
    const struct axis *a = &r->axis[axis];
    const struct ls_shape shape = {.rank = 2, .dim = {a->out, a->in}};
    const float *matrix = make_matrix(x, r, a);
    int order[LS_RANK_MAX];
    for (int i = 0; i < r->rank; i++)
        order[i] = i;
    order[axis] = r->rank - 1;
    order[r->rank - 1] = axis;
    top = matrix != NULL ? ls_import_permuted(x, top, order, r->rank) : NULL;
    if (top != NULL)
        top = LS_LAYER(x, "InnerProduct", top,
                       "inner_product_param { num_output: %lld "
                       "bias_term: false axis: %d }",
                       (long long)a->out, r->rank - 1);
    if (ls_import_weight(x, top, "weight", NULL, &shape, matrix) != 0 || top == NULL)
        return NULL;
    return ls_import_permuted(x, top, order, r->rank);
}

static const char *choose(struct ls_importer *x, const struct resize *r, int axis, const char *top)
{
    const struct axis *a = &r->axis[axis];
    int64_t *places = ls_import_new_places(x, a->out);
    for (int64_t o = 0; places != NULL && o < a->out; o++)
        places[o] = nearest_to(r, a, place_of(r, a, o));
    return places != NULL ? ls_import_places(x, top, axis, places, a->out) : NULL;
}

static const char *add_resize(struct ls_importer *x, const struct resize *r,
                              const struct ls_onnx_value *in)
{
    const struct axis *h = &r->axis[2], *w = &r->axis[3];
    const bool planes = has_planes(r);
    if (planes && r->method == NEAREST && repeats(r, h) && repeats(r, w))
        return LS_LAYER(x, "Upsample", in->top,
                        h->scale == w->scale ? "upsample_param { scale: %lld }"
                                             : "upsample_param { scale_h: %lld scale_w: %lld }",
                        (long long)times(h), (long long)times(w));
    if (planes && r->method == LINEAR && strcmp(r->place, "align_corners") == 0 && h->out > 1 &&
        w->out > 1)
        return LS_LAYER(x, "Interp", in->top, "interp_param { height: %lld width: %lld }",
                        (long long)h->out, (long long)w->out);
    if (planes && r->method == LINEAR && strstr(r->place, "half_pixel") != NULL && times(h) > 0 &&
        times(w) > 0 && times(h) < INT32_MAX / 4 && times(w) < INT32_MAX / 4 &&
        times(h) * times(w) < MATRIX / 4 / in->shape.dim[1])
        return enlarge(x, r, in);
    const char *top = in->top;
    for (int i = 0; i < r->rank && top != NULL; i++)
        if (is_changed(r, i))
            top = r->method == NEAREST ? choose(x, r, i, top) : multiply(x, r, i, top);
    return top;
}

static int resize(struct ls_importer *x, bool old)
{
    struct ls_onnx_value *in = ls_import_blob(x, 0);
    if (in == NULL)
        return x->status;
    struct resize r = {.rank = in->shape.rank};
    struct ls_shape out = in->shape;
    bool changed = false;
    for (int i = 0; i < r.rank; i++)
        r.axis[i] = (struct axis){in->shape.dim[i], in->shape.dim[i], 1};
    LS_TRY(read_rules(x, &r, old));
    LS_TRY(read_sizes(x, &r, old));
    for (int i = 0; i < r.rank; i++) {
        out.dim[i] = r.axis[i].out;
        changed = changed || is_changed(&r, i) || r.axis[i].scale != 1;
        if (!is_changed(&r, i) && r.axis[i].scale != 1)
            return ls_import_cannot(x, "give the sizes themselves",
                                    "its scale along axis %d moves pixels, but keeps the size", i);
    }
    if (is_changed(&r, 0))
        return ls_import_cannot(x, NULL, "it would mix the samples of a batch");
    if (!changed)
        return ls_import_hand_on(x, in, 0);
    if (!ls_shape_valid(&out, false))
        return ls_import_cannot(x, NULL, "its output would be too large");
    return ls_import_result(x, 0, add_resize(x, &r, in), &out);
}

static int read_resize(struct ls_importer *x)
{
    return resize(x, x->opset < 11);
}

static int read_upsample(struct ls_importer *x)
{
    return resize(x, true);
}

const struct ls_onnx_operator ls_onnx_read_resize[] = {
    {"Resize", read_resize},
    {"Upsample", read_upsample},
    {NULL, NULL},
};
