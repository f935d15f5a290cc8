/* What several layer types share: checks at the beginning of `setup`, tops, counts for `cost`.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_LAYERS_COMMON_H
#define LS_LAYERS_COMMON_H

#include "ir/layer.h"

/* The filler of factors that the definition does not fill otherwise: ones. */
extern const Lockstep__FillerParameter ls_filler_one;

/* What every layer begins with: parameter messages in the definition other than that of its type
 * and those called `also` (names with spaces in between; may be NULL) are noted as ignored. Returns
 * 0. */
int ls_layer_begin(const struct ls_layer *layer, struct ls_error *error, const char *also);

/* Reports a `shape` with an axis of zero or with more elements than a tensor may have; `what` says
 * whose it is ("the top"). */
int ls_layer_check_shape(const struct ls_layer *layer, struct ls_error *error, const char *what,
                         const struct ls_shape *shape);

/* Reports a bottom whose shape is another than the layer takes: it "must `wanted`". */
int ls_layer_fail_shape(const struct ls_layer *layer, struct ls_error *error, int bottom,
                        const char *wanted);
/* Reports a bottom that does not have four axes, as pictures have. */
int ls_layer_check_planes(const struct ls_layer *layer, struct ls_error *error, int bottom);

/* Reports a bottom whose outermost axis is not that of the samples. */
int ls_layer_check_samples(const struct ls_layer *layer, struct ls_error *error, int bottom);

/* The same for bottom 0, and if it has no axis of channels behind the samples. */
int ls_layer_check_channels(const struct ls_layer *layer, struct ls_error *error);

/* Reports an `eps`, the field of `message`, that does not keep what it is added to from being
 * zero. */
int ls_layer_check_eps(const struct ls_layer *layer, struct ls_error *error, const void *message,
                       float eps);

/* Reports a layer in TF32 whose products are PORTABLE, if they are. */
int ls_layer_check_tf32(const struct ls_layer *layer, struct ls_error *error, bool portable);

/* Reports bottom `bottom` whose samples do not lie as those of bottom 0: along another axis, or
 * with another number of rows each. */
int ls_layer_check_alike(const struct ls_layer *layer, struct ls_error *error, int bottom);

/* Reports a bottom that does not belong to samples. */
int ls_layer_check_belongs(const struct ls_layer *layer, struct ls_error *error, int bottom);

/* Reports bottoms 0, scores with classes along `axis`, and 1, labels, that do not belong to
 * samples, or labels that are not one for each position of the other axes, in their order. */
int ls_layer_check_positions(const struct ls_layer *layer, struct ls_error *error, int axis);

/* Makes top `top`: a value in the arena with the axis of samples of `like`; NULL when there is no
 * memory (graph->failed is set). */
struct ls_value *ls_layer_make_top(struct ls_layer *layer, int top, const struct ls_shape *shape,
                                   const struct ls_value *like);

/* A value beside the tops, shaped and cut like `like`: what the backward pass wants to keep. Its
 * name is that of the layer with `suffix` behind it. */
struct ls_value *ls_layer_make_side(struct ls_layer *layer, const char *suffix,
                                    const struct ls_value *like);

/* Makes top `top` a figure of the whole batch: a value without bytes, of `entries` numbers (0: a
 * scalar). */
void ls_layer_make_metric(struct ls_layer *layer, int top, int64_t entries);

/* Makes top `top` the value of `bottom`, without an op. Its gradient is then that of the bottom and
 * `backward` has nothing to do for it. Where the definition stops the gradient (propagate_down:
 * false) the top is a copy. */
void ls_layer_pass(struct ls_layer *layer, int bottom, int top);

/* Emits top 0 = kind(bottom 0), of this shape, with samples along the same axis, and returns the op
 * (NULL: no memory). */
struct ls_op *ls_layer_emit_top(struct ls_layer *layer, enum ls_op_kind kind,
                                const struct ls_shape *shape);
/* The same, where the shape is that of the bottom. */
struct ls_op *ls_layer_emit_map(struct ls_layer *layer, enum ls_op_kind kind);
/* The gradient of the bottom, kind(gradient of top 0), of layers with one of each. NULL: no memory,
 * or none is wanted, since nothing learns or the top is the bottom. */
struct ls_op *ls_layer_emit_back(struct ls_layer *layer, enum ls_op_kind kind);
/* Emits top 0: the elements of bottom 0 in their order, under another shape, with samples along
 * `sample_axis` (-1: none) of `rows` rows each. */
void ls_layer_emit_view(struct ls_layer *layer, const struct ls_shape *shape, int sample_axis,
                        int64_t rows);
/* `backward` of layers that emit such a view. */
int ls_layer_view_backward(struct ls_layer *layer, struct ls_error *error);

/* Emits a new contribution to the gradient of a bottom, kind(inputs), and returns the op for its
 * attributes (NULL: no memory). */
struct ls_op *ls_layer_emit_gradient(struct ls_layer *layer, int bottom, enum ls_op_kind kind,
                                     struct ls_value *const *inputs, int count);

/* For `cost`, after the backward pass was built: whether the gradient of a bottom, or of a blob, is
 * computed. */
bool ls_layer_has_gradient(const struct ls_layer *layer, int bottom);
bool ls_layer_trains_blob(const struct ls_layer *layer, int blob);
double ls_layer_bytes(const struct ls_value *value); /* 0 for NULL and for figures */
/* The cost of an op that reads bottom 0 and writes top 0, with so many operations an element;
 * backward it reads `saved` more tensors of that size, and the gradient. */
void ls_layer_map_cost(const struct ls_layer *layer, struct ls_cost *cost, double forward,
                       double backward, int saved);

#endif
