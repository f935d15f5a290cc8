/* Import: the layer of attention. Views tell which numbers of which blobs are queries, keys and
 * values, however an exporter has reshaped and turned them.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "onnx/import_attention.h"

/* ---- Queries, keys and values ---------------------------------------------------------------- */

/* What a view says of heads: `kv` of them, each for `shared` heads of the queries. */
struct part {
    const char *base;
    struct ls_shape shape; /* of the base: [N, T, width] */
    int64_t kv, shared, rows, depth;
    int64_t stride, offset; /* from head to head; of the first one */
};

/* Heads of the axes in front of the last two. */
static bool read_heads(const struct ls_onnx_view *view, int rank, struct part *part)
{
    int heads = 0;
    part->kv = part->shared = 1;
    part->stride = part->depth;
    for (int i = 0; i < view->count; i++) {
        const struct ls_onnx_atom *atom = &view->atom[i];
        if (atom->axis >= rank - 2 || atom->samples)
            continue;
        if (atom->stride == 0 && part->shared == 1) {
            part->shared = atom->extent;
        } else if (heads++ == 0 && part->shared == 1) {
            part->kv = atom->extent;
            part->stride = atom->stride;
        } else {
            return false;
        }
    }
    return true;
}

/* The view of rows [T] and numbers [D] along these axes of the value. */
static bool read_part(const struct ls_onnx_value *value, int row_axis, int depth_axis,
                      struct part *part)
{
    struct ls_onnx_view view;
    if (!ls_view_of(value, &view) || view.shape.rank != 3)
        return false;
    ls_view_join(&view);
    const int64_t width = view.shape.dim[2];
    *part = (struct part){.base = view.base, .shape = view.shape, .offset = view.offset};
    part->rows = value->shape.dim[row_axis];
    part->depth = value->shape.dim[depth_axis];
    if (view.offset >= width || part->rows != view.shape.dim[1] || view.shift != 0)
        return false;
    for (int i = 0; i < view.count; i++) {
        const struct ls_onnx_atom *atom = &view.atom[i];
        if (atom->samples && atom->extent > 1 &&
            (atom->axis == row_axis || atom->axis == depth_axis))
            return false;
        if (!atom->samples && atom->axis == row_axis &&
            (atom->stride != width || atom->extent != part->rows))
            return false;
        if (!atom->samples && atom->axis == depth_axis &&
            (atom->stride != 1 || atom->extent != part->depth))
            return false;
    }
    return read_heads(&view, value->shape.rank, part);
}

/* [N, heads, T, D], or [N, T, D], of a value that is no view of rows; with rows last for keys. */
static bool turn_part(struct ls_importer *x, struct ls_onnx_value *value, bool keys,
                      struct part *part)
{
    const int orders[2][4] = {{0, 2, 1, 3}, {0, 3, 1, 2}};
    const int few[2][3] = {{0, 1, 2}, {0, 2, 1}};
    const int rank = value->shape.rank;
    struct ls_shape turned, flat;
    if (rank > 4 || (!value->waiting && value->top == NULL) || ls_import_write(x, value) != 0)
        return false;
    const int *order = rank == 4 ? orders[keys] : few[keys];
    turned = value->shape;
    for (int i = 0; i < rank; i++)
        turned.dim[i] = value->shape.dim[order[i]];
    const int64_t heads = rank == 4 ? turned.dim[2] : 1, depth = turned.dim[rank - 1];
    flat = (struct ls_shape){.rank = 3, .dim = {turned.dim[0], turned.dim[1], heads * depth}};
    *part = (struct part){.shape = flat,
                          .kv = heads,
                          .shared = 1,
                          .rows = turned.dim[1],
                          .depth = depth,
                          .stride = depth};
    part->base =
        ls_import_reshaped(x, ls_import_permuted(x, value->top, order, rank), &turned, &flat);
    return part->base != NULL;
}

/* The heads side by side, as a blob. */
static const char *bottom_of(struct ls_importer *x, const struct part *part)
{
    const int64_t width = part->shape.dim[2], own = part->kv * part->depth;
    struct ls_onnx_value now = {.top = part->base, .shape = part->shape};
    if (part->stride == part->depth || part->kv == 1)
        return ls_import_part(x, &now, 2, part->offset, part->offset + own);
    const struct ls_shape between = {
        .rank = 4, .dim = {now.shape.dim[0], now.shape.dim[1], part->kv, part->stride}};
    struct ls_shape heads = between, flat = now.shape;
    now.top = ls_import_reshaped(x, part->base, &part->shape, &between);
    now.shape = between;
    heads.dim[3] = part->depth;
    flat.dim[2] = own;
    if (now.top == NULL || width != part->kv * part->stride)
        return NULL;
    const char *top = ls_import_part(x, &now, 3, part->offset, part->offset + part->depth);
    return ls_import_reshaped(x, top, &heads, &flat);
}

static bool can_be_bottom(const struct part *part)
{
    const int64_t width = part->shape.dim[2];
    if (part->stride == part->depth || part->kv == 1)
        return part->offset + part->kv * part->depth <= width;
    return part->kv * part->stride == width && part->offset + part->depth <= part->stride;
}

/* Whether the three lie side by side in one blob, which has nothing else. */
static bool are_fused(const struct part part[3])
{
    int64_t at = 0;
    for (int i = 0; i < 3; i++) {
        if (part[i].base != part[0].base || part[i].offset != at ||
            (part[i].kv > 1 && part[i].stride != part[i].depth))
            return false;
        at += part[i].kv * part[i].depth;
    }
    return at == part[0].shape.dim[2] && part[1].depth == part[2].depth;
}

static bool find_parts(struct ls_importer *x, const struct ls_onnx_pairs *pairs,
                       struct ls_onnx_value *v, struct part part[3])
{
    struct ls_onnx_value *from[3] = {pairs->q, pairs->k, v};
    for (int i = 0; i < 3; i++) {
        const int rank = from[i]->shape.rank, rows = i == 1 ? rank - 1 : rank - 2;
        if (!read_part(from[i], rows, i == 1 ? rank - 2 : rank - 1, &part[i]) ||
            !can_be_bottom(&part[i])) {
            if (from[i]->view != NULL && from[i]->view->scale != 1)
                return false;
            if (!turn_part(x, from[i], i == 1, &part[i]))
                return false;
        }
    }
    const int64_t heads = part[0].kv;
    return part[0].shared == 1 && part[1].kv * part[1].shared == heads &&
           part[2].kv == part[1].kv && part[2].kv * part[2].shared == heads &&
           part[0].depth == part[1].depth && part[1].rows == part[2].rows &&
           part[0].shape.dim[0] == part[1].shape.dim[0] &&
           part[0].shape.dim[0] == part[2].shape.dim[0];
}

/* ---- The layer ------------------------------------------------------------------------------- */

static double scale_of(const struct ls_onnx_pairs *pairs)
{
    double scale = pairs->scale;
    if (pairs->q->view != NULL)
        scale *= pairs->q->view->scale;
    if (pairs->k->view != NULL)
        scale *= pairs->k->view->scale;
    return scale;
}

/* The top [N, Tq, heads D] is seen as the queries are. */
static int lay_out(struct ls_importer *x, const char *top, const struct part *q, int64_t depth,
                   const struct ls_onnx_value *queries, const struct ls_shape *out)
{
    struct ls_onnx_view view = {.base = top, .scale = 1, .made = true}, own;
    view.shape = (struct ls_shape){.rank = 3, .dim = {q->shape.dim[0], q->rows, q->kv * depth}};
    const int rank = out->rank;
    int64_t stride = q->kv * depth;
    if (!ls_view_of(queries, &own))
        return ls_import_cannot(x, NULL, "its queries are no blob");
    ls_view_join(&own);
    for (int i = 0; i < own.count; i++) {
        struct ls_onnx_atom atom = own.atom[i];
        if (!atom.samples && atom.axis == rank - 1)
            continue;
        if (!atom.samples && atom.axis == rank - 2) {
            atom.stride = view.shape.dim[2];
        } else if (!atom.samples) {
            stride /= atom.extent;
            atom.stride = stride;
        }
        view.atom[view.count++] = atom;
    }
    if (depth > 1 && view.count < LS_VIEW_ATOMS)
        view.atom[view.count++] = (struct ls_onnx_atom){depth, 1, rank - 1, false};
    return ls_import_view(x, 0, &view, out);
}

static const char *add_layer(struct ls_importer *x, const struct ls_onnx_pairs *pairs,
                             const struct part part[3], const struct ls_onnx_mask_fields *masks)
{
    const char *bottoms[8];
    size_t count = 0;
    char text[512], number[32];
    int length = snprintf(text, sizeof text, "num_heads: %lld ", (long long)part[0].kv);
    const bool fused = are_fused(part);
    for (int i = 0; i < (fused ? 1 : 3); i++)
        if ((bottoms[count++] = fused ? part[0].base : bottom_of(x, &part[i])) == NULL)
            return NULL;
    if (part[1].kv != part[0].kv)
        length += snprintf(text + length, sizeof text - (size_t)length, "num_kv_heads: %lld ",
                           (long long)part[1].kv);
    const double scale = scale_of(pairs), usual = 1 / sqrt((double)part[0].depth);
    if (fabs(scale - usual) > 1e-6 * usual) {
        ls_format_float(number, (float)scale);
        length += snprintf(text + length, sizeof text - (size_t)length, "scale: %s ", number);
    }
    if (masks->causal)
        length += snprintf(text + length, sizeof text - (size_t)length, "causal: true ");
    if (masks->window > 0)
        length += snprintf(text + length, sizeof text - (size_t)length, "window: %lld ",
                           (long long)masks->window);
    if (pairs->dropout > 0) {
        ls_format_float(number, pairs->dropout);
        length +=
            snprintf(text + length, sizeof text - (size_t)length, "dropout_ratio: %s ", number);
    }
    for (int i = 0; i < masks->count; i++) {
        bottoms[count++] = masks->bottom[i];
        length +=
            snprintf(text + length, sizeof text - (size_t)length, "extra: %s ", masks->extra[i]);
    }
    return ls_import_layer(x, "Attention", bottoms, count, "attention_param { %s}", text);
}

int ls_import_attention(struct ls_importer *x, const struct ls_onnx_value *weights,
                        struct ls_onnx_value *v, bool *done)
{
    const struct ls_onnx_pairs *pairs = weights->pairs;
    const int rank = weights->shape.rank;
    struct ls_onnx_mask_fields masks;
    struct part part[3];
    struct ls_shape out = weights->shape, lead = v->shape;
    if (v->shape.rank != rank || pairs->q->shape.rank != rank || pairs->k->shape.rank != rank ||
        v->shape.dim[rank - 2] != weights->shape.dim[rank - 1])
        return 0;
    lead.rank = out.rank = rank - 2;
    if (!ls_shape_equal(&lead, &out))
        return 0;
    out.rank = rank;
    out.dim[rank - 1] = v->shape.dim[rank - 1];
    if (!find_parts(x, pairs, v, part))
        return x->status;
    LS_TRY(ls_import_masks(x, pairs, &weights->shape, &masks, done));
    if (!*done)
        return 0;
    const char *top = add_layer(x, pairs, part, &masks);
    if (top == NULL)
        return x->status != 0 ? x->status
                              : ls_import_cannot(x, NULL, "its heads are in an unknown order");
    return lay_out(x, top, &part[0], part[2].depth, pairs->q, &out);
}
