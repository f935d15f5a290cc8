/* Import: values that wait, as views, for a node that needs them as blobs; and layers that can do
 * without that. See onnx/import_view.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "onnx/import_view.h"

struct ls_onnx_value *ls_import_seen(struct ls_importer *x, int index)
{
    struct ls_onnx_value *value = ls_import_input(x, index);
    if (value == NULL)
        ls_import_cannot(x, NULL, "input %d is missing", index);
    else if (value->constant)
        ls_import_cannot(x, NULL, "input %d is a constant, where a layer reads a blob", index);
    if (value == NULL || value->constant || (x->writing && ls_import_write(x, value) != 0))
        return NULL;
    return value;
}

int ls_import_wait(struct ls_importer *x, struct ls_onnx_value *value)
{
    if (!ls_shape_valid(&value->shape, false))
        return ls_import_cannot(x, NULL, "its output would be empty or too large");
    int depth = 0;
    for (size_t i = 0; i < x->node->n_input; i++) {
        const struct ls_onnx_value *in = ls_import_input(x, (int)i);
        if (in != NULL && in->waiting && in->depth > depth)
            depth = in->depth;
    }
    value->waiting = true;
    value->depth = depth + 1;
    return value->depth > LS_IMPORT_DEPTH && !x->writing ? ls_import_write(x, value) : 0;
}

int ls_import_view(struct ls_importer *x, int index, const struct ls_onnx_view *view,
                   const struct ls_shape *shape)
{
    struct ls_onnx_value *out = ls_import_output(x, index);
    if (out == NULL)
        return 0;
    if (ls_view_is_base(view, shape))
        return ls_import_result(x, index, view->base, shape);
    struct ls_onnx_view *own = ls_arena_alloc(x->arena, 1, sizeof *own);
    if (own == NULL)
        return ls_import_no_memory(x);
    *own = *view;
    const struct ls_onnx_value *first = ls_import_input(x, 0);
    out->integers = first != NULL && !first->constant && first->integers;
    out->view = own;
    out->shape = *shape;
    return ls_import_wait(x, out);
}

/* ---- Layers of values that have waited ------------------------------------------------------- */

/* Atoms as they follow each other in the base. */
static void sort_atoms(const struct ls_onnx_view *view, int *order)
{
    for (int i = 0; i < view->count; i++) {
        const struct ls_onnx_atom *atom = &view->atom[i];
        int at = i;
        while (at > 0 && !view->atom[order[at - 1]].samples &&
               (atom->samples || atom->stride > view->atom[order[at - 1]].stride)) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = i;
    }
}

/* The base under the shape of the atoms, these in another order, and the value's shape. */
static int write_view(struct ls_importer *x, struct ls_onnx_value *value)
{
    struct ls_onnx_view view = *value->view;
    struct ls_shape atoms = {0}, turned = {0};
    int sorted[LS_VIEW_ATOMS], order[LS_VIEW_ATOMS];
    if (view.count > LS_RANK_MAX || !ls_view_is_whole(&view))
        return ls_import_cannot(x, NULL, "its axes are in an order that has no equivalent");
    if (!view.atom[0].samples || (view.count > 1 && view.atom[1].axis == 0))
        return ls_import_cannot(x, "export a model whose samples are its first axis (batch_first)",
                                "samples would not lie along the first axis of its output");
    sort_atoms(&view, sorted);
    atoms.rank = turned.rank = view.count;
    for (int i = 0; i < view.count; i++) {
        atoms.dim[i] = view.atom[sorted[i]].extent;
        turned.dim[i] = view.atom[i].extent;
        order[sorted[i]] = i;
    }
    const char *top = ls_import_reshaped(x, view.base, &view.shape, &atoms);
    top = top != NULL ? ls_import_permuted(x, top, order, view.count) : NULL;
    top = ls_import_reshaped(x, top, &turned, &value->shape);
    value->top = top;
    return top == NULL ? x->status : 0;
}

/* Reads the node that makes a value once more, so that it writes its layers. */
static int write_node(struct ls_importer *x, struct ls_onnx_value *value)
{
    if (value->maker == SIZE_MAX)
        return ls_import_cannot(x, NULL, "an input of it has not been made");
    x->index = value->maker;
    x->node = x->graph->node[value->maker];
    for (size_t k = 0; k < x->node->n_output; k++) {
        struct ls_onnx_value *out = ls_import_output(x, (int)k);
        if (out != NULL)
            out->waiting = false;
    }
    const ls_onnx_reader reader = ls_import_reader(x->node->op_type);
    if (reader == NULL)
        return ls_import_cannot(x, NULL, "it has no equivalent in this place");
    LS_TRY(reader(x));
    return value->top == NULL && (value->view == NULL || !value->view->made)
               ? ls_import_cannot(x, NULL, "it has no equivalent in this place")
               : 0;
}

/* Whether a view is all of a part of its base along an axis: then what it is of that part. */
static bool is_of_part(const struct ls_onnx_view *view, int axis, struct ls_onnx_view *out,
                       int64_t *begin)
{
    const int64_t extent = view->shape.dim[axis],
                  inner = ls_shape_count(&view->shape, axis + 1, view->shape.rank),
                  others = ls_shape_count(&view->shape, 1, view->shape.rank) / extent;
    int64_t seen = 1;
    for (int i = 0; i < view->count; i++)
        seen *= view->atom[i].samples ? 1 : view->atom[i].extent;
    const int64_t places = seen / others;
    *begin = view->offset / inner;
    if (seen % others != 0 || view->offset % inner != 0 || places >= extent ||
        *begin + places > extent)
        return false;
    *out = *view;
    out->offset = 0;
    out->shape.dim[axis] = places;
    for (int i = 0; i < out->count; i++)
        if (!out->atom[i].samples && out->atom[i].stride >= inner * extent)
            out->atom[i].stride = out->atom[i].stride / extent * places;
    return ls_view_is_whole(out);
}

/* Cuts the part out of the base that a view is all of, if there is one. */
static int write_part(struct ls_importer *x, struct ls_onnx_value *value, bool *done)
{
    const struct ls_onnx_view *view = value->view;
    struct ls_onnx_view *part = ls_arena_alloc(x->arena, 1, sizeof *part);
    int64_t begin = 0;
    int axis = 1;
    *done = false;
    if (part == NULL)
        return ls_import_no_memory(x);
    while (axis < view->shape.rank && !is_of_part(view, axis, part, &begin))
        axis++;
    if (axis == view->shape.rank)
        return 0;
    const struct ls_onnx_value base = {.top = view->base, .shape = view->shape};
    part->base = ls_import_part(x, &base, axis, begin, begin + part->shape.dim[axis]);
    value->view = part;
    *done = true;
    return part->base == NULL ? x->status : 0;
}

int ls_import_write(struct ls_importer *x, struct ls_onnx_value *value)
{
    const Onnx__NodeProto *node = x->node;
    const size_t index = x->index;
    const char *wanted = x->wanted;
    const bool writing = x->writing;
    if (!value->waiting)
        return value->broken ? x->status = LOCKSTEP_DEFINITION : 0;
    value->waiting = false;
    x->wanted = NULL;
    x->writing = true;
    int status = 0;
    const bool made = value->view != NULL && value->view->made;
    bool whole = made && ls_view_is_whole(value->view);
    if (made && !whole)
        status = write_part(x, value, &whole);
    if (status == 0 && !whole)
        status = write_node(x, value);
    if (status == 0 && value->top == NULL && value->view != NULL) {
        value->waiting = false;
        status = write_view(x, value);
    }
    value->broken = status != 0;
    x->node = node;
    x->index = index;
    x->wanted = wanted;
    x->writing = writing;
    return status;
}

/* ---- Rows ------------------------------------------------------------------------------------ */

/* Whether the last axis of the value is that of the base. */
static bool has_last_axis(const struct ls_onnx_view *view, const struct ls_shape *seen)
{
    const int64_t width = view->shape.dim[view->shape.rank - 1];
    bool found = width == 1;
    if (view->shape.rank < 2 || seen->dim[seen->rank - 1] != width)
        return false;
    for (int i = 0; i < view->count; i++) {
        const struct ls_onnx_atom *atom = &view->atom[i];
        if (atom->axis != seen->rank - 1 || (atom->samples && atom->extent == 1))
            continue;
        if (atom->samples || atom->stride != 1 || atom->extent != width)
            return false;
        found = true;
    }
    return found;
}

/* Samples lie along the first axis, which has nothing else. */
static bool has_samples_first(const struct ls_onnx_view *view)
{
    return view->count > 0 && view->atom[0].samples && view->atom[0].axis == 0 &&
           (view->count == 1 || view->atom[1].axis != 0);
}

int ls_import_rows(struct ls_importer *x, struct ls_onnx_value *value, bool last,
                   struct ls_onnx_rows *rows)
{
    *rows = (struct ls_onnx_rows){.seen = value->shape};
    if (value->waiting && value->view != NULL) {
        rows->view = *value->view;
        ls_view_join(&rows->view);
        rows->through = ls_view_is_whole(&rows->view) &&
                        (!last || has_last_axis(&rows->view, &value->shape)) &&
                        (last || rows->view.made || !has_samples_first(&rows->view));
    }
    if (rows->through) {
        rows->top = rows->view.base;
        rows->shape = rows->view.shape;
        return 0;
    }
    LS_TRY(ls_import_write(x, value));
    rows->top = value->top;
    rows->shape = value->shape;
    return 0;
}

int ls_import_rows_result(struct ls_importer *x, int index, const char *top,
                          const struct ls_onnx_rows *rows, int64_t width)
{
    struct ls_onnx_view view = rows->view;
    struct ls_shape seen = rows->seen;
    const int last = seen.rank - 1;
    const int64_t old = rows->shape.dim[rows->shape.rank - 1];
    if (top == NULL)
        return x->status;
    if (width > 0)
        seen.dim[last] = width;
    if (!rows->through)
        return ls_import_result(x, index, top, &seen);
    view.base = top;
    view.made = true;
    if (width <= 0 || width == old)
        return ls_import_view(x, index, &view, &seen);
    view.shape.dim[view.shape.rank - 1] = width;
    view.count = 0;
    for (int i = 0; i < rows->view.count; i++) {
        struct ls_onnx_atom atom = rows->view.atom[i];
        if (!atom.samples && atom.axis == last)
            continue;
        atom.stride = atom.stride / old * width;
        view.atom[view.count++] = atom;
    }
    if (width > 1 && view.count < LS_VIEW_ATOMS)
        view.atom[view.count++] = (struct ls_onnx_atom){width, 1, last, false};
    return ls_import_view(x, index, &view, &seen);
}
