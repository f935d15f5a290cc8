/* For layers that are made of several ops: values between them, and their gradients.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_LAYERS_EMIT_H
#define LS_LAYERS_EMIT_H

#include "layers/common.h"

/* An op and what it writes; NULL where there is no memory (graph->failed is set). */
struct ls_emitted {
    struct ls_op *op;
    struct ls_value *value;
};

/* Emits kind(inputs), which writes a new value "LAYER.suffix" of this shape with the samples of
 * `like` (NULL: none). */
struct ls_emitted ls_emit_side(struct ls_layer *layer, enum ls_op_kind kind, const char *suffix,
                               const struct ls_shape *shape, const struct ls_value *like,
                               struct ls_value *const *inputs, int count);
/* The same, where what is written is top `top`. */
struct ls_emitted ls_emit_top(struct ls_layer *layer, enum ls_op_kind kind, int top,
                              const struct ls_shape *shape, const struct ls_value *like,
                              struct ls_value *const *inputs, int count);
/* Emits kind(inputs), which writes the gradient of `of`. It is added to no other: the layer itself
 * reads it, or hands it on (ls_graph_add_gradient). */
struct ls_emitted ls_emit_slope(struct ls_layer *layer, enum ls_op_kind kind,
                                const struct ls_value *of, struct ls_value *const *inputs,
                                int count);

/* The same elements in the same order under another shape. */
struct ls_value *ls_emit_view(struct ls_layer *layer, const char *suffix, struct ls_value *x,
                              const struct ls_shape *shape, const struct ls_value *like);

/* x with its axes in another order: axis i is axis order[i] of x. The shape and the axis of samples
 * follow. `top` below 0: a value "LAYER.suffix". */
struct ls_value *ls_emit_permuted(struct ls_layer *layer, int top, const char *suffix,
                                  struct ls_value *x, const int order[LS_RANK_MAX]);
/* The way back for a gradient: that of `of`, which was permuted in this order, from dy. */
struct ls_value *ls_emit_permuted_slope(struct ls_layer *layer, const struct ls_value *of,
                                        struct ls_value *dy, const int order[LS_RANK_MAX]);

#endif
