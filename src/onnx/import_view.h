/* Import: blobs that are seen under another shape, in another order or in part; for the files
 * import*.c alone.
 *
 * Reshape, Transpose, Split and their like make no layer at once: what they make is noted as a view
 * of the blob that a layer has made. Heads of attention are such views, and so are sequences whose
 * axes an exporter has put in another order. Only a node that needs the numbers as a blob of their
 * own lets the layers be written.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ONNX_IMPORT_VIEW_H
#define LS_ONNX_IMPORT_VIEW_H

#include "onnx/importer.h"

enum {
    LS_VIEW_ATOMS = 24,
    LS_IMPORT_DEPTH = 64 /* nodes that wait, one for the other */
};

/* Numbers that lie `stride` apart in a sample of the base. Axes of a value are products of these;
 * an extent of 1 has none, but for the samples. */
struct ls_onnx_atom {
    int64_t extent, stride;
    int axis;     /* of the value */
    bool samples; /* the base's axis 0; its stride does not count */
};

struct ls_onnx_view {
    const char *base;      /* a blob with samples along axis 0 */
    struct ls_shape shape; /* of the base */
    int64_t offset;        /* of the first number in each sample */
    double scale, shift;   /* numbers are scale * base + shift */
    int count;
    struct ls_onnx_atom atom[LS_VIEW_ATOMS];
    bool made; /* no node of the model makes the base in this order */
};

/* How a value is a view; of a blob, of itself. False: it is none (a constant, or scores). */
bool ls_view_of(const struct ls_onnx_value *value, struct ls_onnx_view *view);
/* Two atoms of one axis that lie as one do become one. */
void ls_view_join(struct ls_onnx_view *view);
/* Whether the view is the base as it is. */
bool ls_view_is_base(const struct ls_onnx_view *view, const struct ls_shape *shape);
/* Whether all numbers of the base are seen once each, and scaled by nothing. */
bool ls_view_is_whole(const struct ls_onnx_view *view);
bool ls_view_equal(const struct ls_onnx_view *a, const struct ls_onnx_view *b);

/* The same numbers under another shape; in another order of axes; from `begin` to `end` of an axis.
 * False: that is no view. */
bool ls_view_reshape(struct ls_onnx_view *view, const struct ls_shape *to);
bool ls_view_transpose(struct ls_onnx_view *view, const int *order, int rank);
bool ls_view_cut(struct ls_onnx_view *view, int axis, int64_t begin, int64_t end);
bool ls_view_expand(struct ls_onnx_view *view, const struct ls_shape *from,
                    const struct ls_shape *to);

/* Output `index` of the node at hand is this view, and waits for a reader that needs it as a blob.
 */
int ls_import_view(struct ls_importer *x, int index, const struct ls_onnx_view *view,
                   const struct ls_shape *shape);
/* Likewise for what is kept in the value already (scores, masks). */
int ls_import_wait(struct ls_importer *x, struct ls_onnx_value *value);
/* Writes the layers that a value waits for. */
int ls_import_write(struct ls_importer *x, struct ls_onnx_value *value);
/* Input `index`, which is no constant, whether it waits or not. NULL after a failure. */
struct ls_onnx_value *ls_import_seen(struct ls_importer *x, int index);

/* Whether a constant holds 0, 1, ..., count - 1. */
bool ls_import_is_range(const struct ls_onnx_value *index, int64_t count);
/* Whether a constant holds rows of a learned table, one for each place of a blob [N, T, C]; and the
 * blob of these rows for each sample. */
bool ls_import_is_position_rows(const struct ls_shape *shape, const struct ls_onnx_value *rows);
const char *ls_import_position_rows(struct ls_importer *x, const struct ls_onnx_value *like,
                                    const struct ls_onnx_value *rows);
/* The shape that a Reshape asks for. */
int ls_import_shape_of_reshape(struct ls_importer *x, const struct ls_onnx_value *in,
                               struct ls_shape *to);

/* An input of a layer that treats numbers one by one, or (last) rows along the last axis, wherever
 * those lie: the base instead of the view, where it has the same rows. */
struct ls_onnx_rows {
    const char *top;
    struct ls_shape shape; /* of top */
    struct ls_shape seen;  /* of the value */
    struct ls_onnx_view view;
    bool through; /* the value is a view of top */
};
int ls_import_rows(struct ls_importer *x, struct ls_onnx_value *value, bool last,
                   struct ls_onnx_rows *rows);
/* Output `index` lies as the rows do; they have `width` numbers now. */
int ls_import_rows_result(struct ls_importer *x, int index, const char *top,
                          const struct ls_onnx_rows *rows, int64_t width);

#endif
