/* Import: views of blobs: what they are, and how nodes change them. See onnx/import_view.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "onnx/import_view.h"

static bool add_atom(struct ls_onnx_view *view, int64_t extent, int64_t stride, int axis,
                     bool samples)
{
    if (view->count == LS_VIEW_ATOMS)
        return false;
    view->atom[view->count++] = (struct ls_onnx_atom){extent, stride, axis, samples};
    return true;
}

bool ls_view_of(const struct ls_onnx_value *value, struct ls_onnx_view *view)
{
    if (value->view != NULL)
        *view = *value->view;
    if (value->view != NULL || value->constant || value->top == NULL || value->shape.rank == 0)
        return value->view != NULL;
    *view = (struct ls_onnx_view){.base = value->top, .shape = value->shape, .scale = 1};
    int64_t stride = ls_shape_count(&value->shape, 1, value->shape.rank);
    add_atom(view, value->shape.dim[0], stride, 0, true);
    for (int i = 1; i < value->shape.rank; i++) {
        stride /= value->shape.dim[i];
        if (value->shape.dim[i] > 1)
            add_atom(view, value->shape.dim[i], stride, i, false);
    }
    return true;
}

void ls_view_join(struct ls_onnx_view *view)
{
    int count = 0;
    for (int i = 0; i < view->count; i++) {
        const struct ls_onnx_atom now = view->atom[i];
        struct ls_onnx_atom *last = count > 0 ? &view->atom[count - 1] : NULL;
        if (last != NULL && last->axis == now.axis && !last->samples && !now.samples &&
            last->stride == now.extent * now.stride) {
            last->extent *= now.extent;
            last->stride = now.stride;
        } else {
            view->atom[count++] = now;
        }
    }
    view->count = count;
}

bool ls_view_equal(const struct ls_onnx_view *a, const struct ls_onnx_view *b)
{
    if (!ls_shape_equal(&a->shape, &b->shape) || a->offset != b->offset || a->scale != b->scale ||
        a->shift != b->shift || a->count != b->count)
        return false;
    for (int i = 0; i < a->count; i++) {
        const struct ls_onnx_atom *p = &a->atom[i], *q = &b->atom[i];
        if (p->extent != q->extent || (!p->samples && p->stride != q->stride) ||
            p->axis != q->axis || p->samples != q->samples)
            return false;
    }
    return true;
}

bool ls_view_is_base(const struct ls_onnx_view *view, const struct ls_shape *shape)
{
    struct ls_onnx_view own, mine = *view;
    const struct ls_onnx_value base = {.top = view->base, .shape = view->shape};
    if (!ls_shape_equal(shape, &view->shape) || !ls_view_of(&base, &own))
        return false;
    ls_view_join(&mine);
    return ls_view_equal(&mine, &own);
}

/* Strides that are those of a dense array, in any order. */
bool ls_view_is_whole(const struct ls_onnx_view *view)
{
    int64_t stride = 1;
    bool used[LS_VIEW_ATOMS] = {false};
    if (view->offset != 0 || view->scale != 1 || view->shift != 0)
        return false;
    for (int found = 0; found < view->count; found++) {
        int at = -1;
        for (int i = 0; i < view->count; i++)
            if (!used[i] && (view->atom[i].samples ? at < 0 : view->atom[i].stride == stride))
                at = i;
        if (at < 0)
            return false;
        used[at] = true;
        if (!view->atom[at].samples)
            stride *= view->atom[at].extent;
    }
    return stride == ls_shape_count(&view->shape, 1, view->shape.rank);
}

/* Whether the axis of a batch of one sample, which any axis could take, belongs to this one: in the
 * middle of its numbers; to an extent of 1; behind its numbers, if the next axis is the last. */
static bool takes_sample(const struct ls_shape *to, int axis, int64_t need, bool fresh)
{
    if (need > 1 || fresh || axis + 1 == to->rank)
        return true;
    return axis + 2 == to->rank && to->dim[axis + 1] > 1;
}

/* Takes atoms for one axis; `rest` is what the axes before have left of the first one. */
static bool fill_axis(struct ls_onnx_view *out, const struct ls_onnx_view *in, int *at,
                      struct ls_onnx_atom *rest, const struct ls_shape *to, int axis)
{
    int64_t need = to->dim[axis];
    bool fresh = true;
    while (*at < in->count) {
        const bool lone = rest->samples && rest->extent == 1;
        if (lone ? !takes_sample(to, axis, need, fresh) : need == 1)
            break;
        const int64_t part = rest->extent <= need ? rest->extent : need;
        if (need % part != 0 || rest->extent % part != 0 || (rest->samples && part != rest->extent))
            return false;
        rest->extent /= part;
        if (!add_atom(out, part, rest->stride * rest->extent, axis, rest->samples))
            return false;
        need /= part;
        if (rest->extent == 1 && ++*at < in->count)
            *rest = in->atom[*at];
        if (lone && fresh && to->dim[axis] == 1)
            break;
        fresh = false;
    }
    return need == 1;
}

bool ls_view_reshape(struct ls_onnx_view *view, const struct ls_shape *to)
{
    struct ls_onnx_view out = *view;
    struct ls_onnx_atom rest = view->atom[0];
    int at = 0;
    out.count = 0;
    for (int axis = 0; axis < to->rank; axis++)
        if (!fill_axis(&out, view, &at, &rest, to, axis))
            return false;
    if (at < view->count)
        return false;
    ls_view_join(&out);
    *view = out;
    return true;
}

bool ls_view_transpose(struct ls_onnx_view *view, const int *order, int rank)
{
    struct ls_onnx_view out = *view;
    out.count = 0;
    for (int axis = 0; axis < rank; axis++)
        for (int i = 0; i < view->count; i++)
            if (view->atom[i].axis == order[axis]) {
                out.atom[out.count] = view->atom[i];
                out.atom[out.count++].axis = axis;
            }
    *view = out;
    return true;
}

bool ls_view_cut(struct ls_onnx_view *view, int axis, int64_t begin, int64_t end)
{
    int at = -1, count = 0;
    for (int i = 0; i < view->count; i++)
        if (view->atom[i].axis == axis) {
            if (view->atom[i].samples || at >= 0)
                return false;
            at = i;
        }
    if (at < 0)
        return begin == 0 && end == 1;
    view->offset += begin * view->atom[at].stride;
    view->atom[at].extent = end - begin;
    for (int i = 0; i < view->count; i++)
        if (i != at || end - begin > 1)
            view->atom[count++] = view->atom[i];
    view->count = count;
    return true;
}

bool ls_view_expand(struct ls_onnx_view *view, const struct ls_shape *from,
                    const struct ls_shape *to)
{
    struct ls_onnx_view out = *view;
    const int lead = to->rank - from->rank;
    out.count = 0;
    for (int axis = 0; axis < to->rank; axis++) {
        const int own = axis - lead;
        const bool more = (own < 0 || from->dim[own] == 1) && to->dim[axis] > 1;
        if (more && !add_atom(&out, to->dim[axis], 0, axis, false))
            return false;
        for (int i = 0; own >= 0 && i < view->count; i++)
            if (view->atom[i].axis == own &&
                (more || !add_atom(&out, view->atom[i].extent, view->atom[i].stride, axis,
                                   view->atom[i].samples)))
                return false;
    }
    *view = out;
    return true;
}
