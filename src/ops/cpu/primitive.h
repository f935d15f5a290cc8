/* What the kernels that stand on oneDNN share: an op whose work is one primitive.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_PRIMITIVE_H
#define LS_OPS_CPU_PRIMITIVE_H

#include "ir/kernel.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/onednn.h"

/* The two tensors of a reorder of elements of this shape between these layouts.
 * LOCKSTEP_INTERNAL where no reorder leads from the one to the other. */
int ls_reorder_tensors(const struct ls_shape *shape, enum ls_dtype type,
                       const struct ls_layout *from_layout, const struct ls_layout *to_layout,
                       struct ls_onednn_tensor *from, struct ls_onednn_tensor *to,
                       struct ls_error *error);

/* For convolutions and deconvolutions: their layouts (a deconvolution's bias is left as it is) and
 * primitives. */
int ls_convolution_layouts(const struct ls_op *op, struct ls_op_layouts *layouts,
                           struct ls_error *error);
int ls_convolution_prepare(struct ls_prepared *prepared, struct ls_error *error);
/* How oneDNN would carry out a pass of the convolution or deconvolution that an op belongs to, for
 * any number of samples: whether as products of matrices (or plain loops), and whether those are
 * slow. A deconvolution's passes are those of the convolution that it is the gradient of. */
int ls_convolution_find(const struct ls_op *op, enum ls_onednn_pass pass, bool *products,
                        bool *slow, struct ls_error *error);
/* Whether what oneDNN would do for `spec` is worth a warning. */
bool ls_primitive_plan_is_slow(const struct ls_primitive_spec *spec,
                               const struct ls_primitive_plan *plan);

/* The value of an op that takes a slot of its primitive; NULL where it is absent. */
struct ls_value *ls_primitive_value(const struct ls_op *op, enum ls_tensor_slot slot);
/* Where a slot's layout is kept; NULL where its value is absent. */
const struct ls_layout **ls_primitive_layout(const struct ls_op *op, struct ls_op_layouts *layouts,
                                             enum ls_tensor_slot slot);
enum ls_onednn_pass ls_primitive_pass(const struct ls_op *op);

/* Layouts of parameters do not depend on the micro-batch: oneDNN is asked with this many samples.
 */
enum { LS_QUERY_SAMPLES = 8 };

/* What oneDNN does for `spec` with layout `any` for the WEIGHTS; where it does the same with
 * the weights as `preferred` (NULL: no preference), they lie like that. */
int ls_primitive_query_weights(const struct ls_op *op, const struct ls_primitive_spec *spec,
                               const struct ls_layout *preferred, struct ls_primitive_plan *plan,
                               struct ls_error *error);

/* Adds to the spec of an op with weights a bias for each of `outputs`, if there is one, and for the
 * forward pass the ReLU that was fused into it. */
void ls_primitive_set_ends(struct ls_primitive_spec *spec, int64_t outputs, bool bias, bool relu,
                           float slope);

/* For prepare: builds the primitive and fills the rest of `prepared`. */
int ls_primitive_prepare(struct ls_prepared *prepared, const struct ls_primitive_spec *spec,
                         struct ls_error *error);
/* The other entries of the kernels. */
void ls_primitive_release(struct ls_prepared *prepared);
int ls_primitive_bind(const struct ls_prepared *prepared, void *const *in, void *const *out,
                      void *scratch, void **local, struct ls_error *error);
void ls_primitive_unbind(const struct ls_prepared *prepared, void *local);
int ls_primitive_run(const struct ls_prepared *prepared, void *local, void *const *in,
                     void *const *out, void *scratch, const struct ls_context *context);

#endif
