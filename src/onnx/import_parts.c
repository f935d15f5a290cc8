/* Import: parts of blobs along an axis.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "onnx/import_view.h"

/* Cuts a blob along an axis at `points`; parts that nothing reads are silenced. */
static int cut(struct ls_importer *x, const struct ls_onnx_value *in, int axis,
               const int64_t *points, size_t count, const bool *wanted, const char **tops)
{
    struct ls_text text = {0};
    ls_text_format(&text, "slice_param { axis: %d ", axis);
    for (size_t i = 0; i < count; i++)
        ls_text_format(&text, "slice_point: %lld ", (long long)points[i]);
    ls_text_add(&text, "}");
    int status = text.failed
                     ? ls_import_no_memory(x)
                     : ls_import_layer_tops(x, "Slice", in->top, count + 1, tops, text.data);
    ls_text_free(&text);
    for (size_t i = 0; i <= count && status == 0; i++)
        if (!wanted[i])
            ls_text_format(
                &x->net->layers,
                "layer {\n  name: \"%s.unused\"\n  type: \"Silence\"\n  bottom: \"%s\"\n}\n",
                tops[i], tops[i]);
    return status;
}

const char *ls_import_part(struct ls_importer *x, const struct ls_onnx_value *in, int axis,
                           int64_t begin, int64_t end)
{
    int64_t points[2];
    bool wanted[3] = {false};
    const char *tops[3] = {NULL};
    size_t count = 0;
    if (in->top == NULL)
        return NULL; /* has been told */
    if (begin > 0)
        points[count++] = begin;
    const size_t index = count;
    if (end < in->shape.dim[axis])
        points[count++] = end;
    wanted[index] = true;
    if (count == 0)
        return in->top;
    return cut(x, in, axis, points, count, wanted, tops) == 0 ? tops[index] : NULL;
}

/* Whether parts of a blob along an axis are views. */
static bool sees_parts(const struct ls_onnx_value *in, int axis, const int64_t *ends, size_t parts)
{
    struct ls_onnx_view view;
    int64_t begin = 0;
    for (size_t i = 0; i < parts; begin = ends[i++])
        if (!ls_view_of(in, &view) || !ls_view_cut(&view, axis, begin, ends[i]))
            return false;
    return true;
}

static int split_views(struct ls_importer *x, const struct ls_onnx_value *in, int axis,
                       const int64_t *ends, size_t parts)
{
    struct ls_onnx_view view;
    struct ls_shape shape = in->shape;
    int64_t begin = 0;
    for (size_t i = 0; i < parts; begin = ends[i++]) {
        ls_view_of(in, &view);
        ls_view_cut(&view, axis, begin, ends[i]);
        shape.dim[axis] = ends[i] - begin;
        LS_TRY(ls_import_view(x, (int)i, &view, &shape));
    }
    return 0;
}

static int read_split(struct ls_importer *x)
{
    enum { MOST = 32 };
    struct ls_onnx_value *in = ls_import_seen(x, 0);
    const int64_t *sizes;
    int64_t count, points[MOST], at = 0;
    const char *tops[MOST];
    bool wanted[MOST];
    const size_t parts = x->node->n_output;
    if (in == NULL)
        return x->status;
    const int axis = ls_import_axis(x, ls_import_integer(x, "axis", 0), in->shape.rank);
    if (axis < 0)
        return x->status;
    LS_TRY(ls_import_integers(x, "split", 1, &sizes, &count));
    if (parts < 1 || parts > MOST || (count >= 0 && (size_t)count != parts))
        return ls_import_cannot(x, NULL, "1 to %d parts are read, each with its size", MOST);
    const int64_t extent = in->shape.dim[axis];
    const int64_t each = (extent + (int64_t)parts - 1) / (int64_t)parts;
    int64_t size[MOST];
    for (size_t i = 0; i < parts; i++) {
        size[i] = count >= 0 ? sizes[i] : each < extent - at ? each : extent - at;
        if (size[i] < 1 || size[i] > extent - at)
            return ls_import_cannot(x, NULL, "its parts are not as large as its input together");
        at += size[i];
        points[i] = at;
        const struct ls_onnx_value *out = ls_import_output(x, (int)i);
        wanted[i] = out != NULL && out->uses > 0;
    }
    if (at != extent)
        return ls_import_cannot(x, NULL, "its parts are not as large as its input together");
    if (parts == 1)
        return ls_import_hand_on(x, in, 0);
    if (!x->writing && sees_parts(in, axis, points, parts))
        return split_views(x, in, axis, points, parts);
    LS_TRY(ls_import_write(x, in));
    if (axis == 0)
        return ls_import_cannot(x, NULL, "it would take samples out of a batch");
    LS_TRY(cut(x, in, axis, points, parts - 1, wanted, tops));
    for (size_t i = 0; i < parts; i++) {
        struct ls_shape out = in->shape;
        out.dim[axis] = size[i];
        LS_TRY(ls_import_result(x, (int)i, tops[i], &out));
    }
    return 0;
}

int64_t ls_import_bound(int64_t number, int64_t extent, bool forward)
{
    const int64_t low = forward ? 0 : -1, high = forward ? extent : extent - 1;
    number = number < 0 ? (number < -extent ? low : number + extent) : number;
    return number > high ? high : number;
}

/* One axis of a slice whose step is not 1. */
static int step_along(struct ls_importer *x, struct ls_onnx_value *now, int axis, int64_t start,
                      int64_t end, int64_t step)
{
    const int64_t extent = now->shape.dim[axis];
    if (step == 0 || step <= -INT32_MAX || step >= INT32_MAX)
        return ls_import_cannot(x, NULL, "its step is out of range");
    if (axis == 0)
        return ls_import_cannot(x, NULL, "it would take samples out of a batch");
    const int64_t first = ls_import_bound(start, extent, step > 0),
                  last = ls_import_bound(end, extent, step > 0);
    const int64_t room = step > 0 ? last - first : first - last, by = step > 0 ? step : -step;
    if (room < 1)
        return ls_import_cannot(x, NULL, "it leaves nothing");
    const int64_t count = (room + by - 1) / by;
    int64_t *places = ls_import_new_places(x, count);
    if (places == NULL)
        return x->status;
    for (int64_t i = 0; i < count; i++)
        places[i] = first + i * step;
    now->top = ls_import_places(x, now->top, axis, places, count);
    now->shape.dim[axis] = count;
    return now->top == NULL ? x->status : 0;
}

static int read_slice(struct ls_importer *x);

/* Layers, where a part is no view. */
static int slice_at_once(struct ls_importer *x)
{
    x->writing = true;
    const int status = read_slice(x);
    x->writing = false;
    return status;
}

static int read_slice(struct ls_importer *x)
{
    struct ls_onnx_value *in = ls_import_seen(x, 0);
    const int64_t *starts, *ends, *axes, *steps;
    int64_t count, end_count, axis_count, step_count;
    if (in == NULL)
        return x->status;
    LS_TRY(ls_import_integers(x, "starts", 1, &starts, &count));
    LS_TRY(ls_import_integers(x, "ends", 2, &ends, &end_count));
    LS_TRY(ls_import_integers(x, "axes", 3, &axes, &axis_count));
    LS_TRY(ls_import_integers(x, "steps", 4, &steps, &step_count));
    if (count < 1 || end_count != count || (axis_count >= 0 && axis_count != count) ||
        (step_count >= 0 && step_count != count) || count > in->shape.rank)
        return ls_import_cannot(x, NULL, "starts, ends, axes and steps do not fit each other");
    struct ls_onnx_view view;
    bool seen = !x->writing && ls_view_of(in, &view);
    if (!seen)
        LS_TRY(ls_import_write(x, in));
    struct ls_onnx_value now = *in;
    for (int64_t i = 0; i < count; i++) {
        const int axis = ls_import_axis(x, axis_count >= 0 ? axes[i] : i, in->shape.rank);
        if (axis < 0)
            return x->status;
        if (step_count >= 0 && steps[i] != 1) {
            if (seen)
                return slice_at_once(x);
            LS_TRY(step_along(x, &now, axis, starts[i], ends[i], steps[i]));
            continue;
        }
        const int64_t extent = now.shape.dim[axis];
        const int64_t begin = ls_import_bound(starts[i], extent, true),
                      end = ls_import_bound(ends[i], extent, true);
        if (begin >= end)
            return ls_import_cannot(x, NULL, "it leaves nothing");
        if (seen && (begin > 0 || end < extent) && !ls_view_cut(&view, axis, begin, end))
            return slice_at_once(x);
        if (!seen && axis == 0 && (begin > 0 || end < extent))
            return ls_import_cannot(x, NULL, "it would take samples out of a batch");
        if (!seen && (now.top = ls_import_part(x, &now, axis, begin, end)) == NULL)
            return x->status;
        now.shape.dim[axis] = end - begin;
    }
    return seen ? ls_import_view(x, 0, &view, &now.shape)
                : ls_import_result(x, 0, now.top, &now.shape);
}

const struct ls_onnx_operator ls_onnx_read_parts[] = {
    {"Slice", read_slice},
    {"Split", read_split},
    {NULL, NULL},
};
