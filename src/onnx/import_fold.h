/* Import: what the functions that work out constants share; for the files import_fold*.c and,
 * of strides, import_masks.c alone.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ONNX_IMPORT_FOLD_H
#define LS_ONNX_IMPORT_FOLD_H

#include "onnx/importer.h"

enum { LS_FOLD_INPUTS = 512 };

/* What a node makes of `in`. */
struct ls_folding {
    struct ls_importer *x;
    struct ls_onnx_value *in[LS_FOLD_INPUTS];
    int count;
    struct ls_onnx_value out;
    int64_t *wholes; /* of out; or: */
    float *reals;
};

struct ls_onnx_folder {
    const char *type;
    int (*fold)(struct ls_folding *f);
    bool shape_only; /* reads the shape of its input alone, so that this may be a blob */
};
/* By file, ended by a NULL. */
extern const struct ls_onnx_folder ls_onnx_fold_gather[], ls_onnx_fold_shapes[],
    ls_onnx_fold_places[], ls_onnx_fold_numbers[];

/* The first `count` inputs must be there. */
int ls_fold_need(struct ls_folding *f, int count);
/* Makes room for the result. */
int ls_fold_make(struct ls_folding *f, const struct ls_shape *shape, bool integers);
/* Number `at` of the result is number `index` of `from`. */
void ls_fold_put(struct ls_folding *f, int64_t at, const struct ls_onnx_value *from, int64_t index);
/* The result is the first input's numbers under another shape: no copy, and still a weight if it
 * was one. */
int ls_fold_keep(struct ls_folding *f, const struct ls_shape *shape);
/* Reads an input that gives a shape. */
int ls_fold_shape_at(struct ls_folding *f, int index, struct ls_shape *shape);

/* How far the elements of an axis lie from each other. */
void ls_fold_strides(const struct ls_shape *shape, int64_t *strides);
/* Strides of `in` laid over `out`: 0 where it is repeated. */
void ls_fold_lay_strides(const struct ls_shape *in, const struct ls_shape *out, int64_t *strides);
/* Where number `i` of `shape` lies in an array with these strides. */
int64_t ls_fold_place(const struct ls_shape *shape, int64_t i, const int64_t *strides);

#endif
