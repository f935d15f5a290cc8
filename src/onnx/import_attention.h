/* Import: what the functions that recognize attention share; for import_attention.c,
 * import_masks.c and import_scores.c alone.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ONNX_IMPORT_ATTENTION_H
#define LS_ONNX_IMPORT_ATTENTION_H

#include "onnx/import_view.h"

#define LS_MASK_HIDDEN (-1e4) /* numbers up to this one hide a pair that they are added to */

/* Which pairs of queries and keys count: those where `pairs` and `keys` both say so. */
struct ls_onnx_mask {
    struct ls_onnx_value *pairs; /* a constant [..., Tq, Tk]; NULL: all */
    bool numbers;                /* its numbers are added to the scores; else 0 is "no" */
    bool added;                  /* the mask is added, whatever it is made of */
    bool turned;                 /* 0 is "yes" */
    struct ls_shape over;        /* the scores that it is laid over */
    bool has_keys;
    struct ls_onnx_view keys; /* [N, Tk], seen as [N, ..., Tk]: 0 is "no" */
};

/* Products of queries and keys, [..., Tq, Tk]. */
struct ls_onnx_pairs {
    struct ls_onnx_value *q, *k; /* k: [..., D, Tk] */
    double scale;
    float dropout;
    bool weighed; /* they have gone through the softmax */
    bool is_nan;  /* whether the weights are numbers is asked */
    struct ls_onnx_mask mask[2];
    int masks;
};

/* The layer that weights times values become; *done says whether it could be. */
int ls_import_attention(struct ls_importer *x, const struct ls_onnx_value *weights,
                        struct ls_onnx_value *v, bool *done);

/* What a value says as a mask: a condition, or (added) numbers to be added. False: it is none. */
bool ls_import_as_mask(struct ls_importer *x, struct ls_onnx_value *value, bool added,
                       struct ls_onnx_mask *mask);
/* Nodes that make masks. */
int ls_import_mask_node(struct ls_importer *x, bool *done);

/* The fields and bottoms of a layer that masks become. */
struct ls_onnx_mask_fields {
    bool causal;
    int64_t window;
    const char *bottom[4];
    const char *extra[4];
    int count;
};
int ls_import_masks(struct ls_importer *x, const struct ls_onnx_pairs *pairs,
                    const struct ls_shape *shape, struct ls_onnx_mask_fields *fields, bool *fits);

#endif
