/* Lockstep's own kernels for CPUs, one constant each, and what they share.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_KERNELS_H
#define LS_OPS_CPU_KERNELS_H

#include "ir/kernel.h"

/* Elementwise, shape and parameter ops. */
extern const struct ls_kernel ls_kernel_view;
extern const struct ls_kernel ls_kernel_activation;
extern const struct ls_kernel ls_kernel_activation_backward;
extern const struct ls_kernel ls_kernel_prelu;
extern const struct ls_kernel ls_kernel_prelu_data;
extern const struct ls_kernel ls_kernel_prelu_slope;
extern const struct ls_kernel ls_kernel_dropout;
extern const struct ls_kernel ls_kernel_eltwise;
extern const struct ls_kernel ls_kernel_eltwise_backward;
extern const struct ls_kernel ls_kernel_concat;
extern const struct ls_kernel ls_kernel_slice;
extern const struct ls_kernel ls_kernel_resize;
extern const struct ls_kernel ls_kernel_resize_backward;
extern const struct ls_kernel ls_kernel_crop;
extern const struct ls_kernel ls_kernel_crop_backward;
extern const struct ls_kernel ls_kernel_tile;
extern const struct ls_kernel ls_kernel_tile_backward;
extern const struct ls_kernel ls_kernel_reduce;
extern const struct ls_kernel ls_kernel_reduce_backward;
extern const struct ls_kernel ls_kernel_reduce_loss;
extern const struct ls_kernel ls_kernel_reduce_loss_backward;
extern const struct ls_kernel ls_kernel_argmax;
extern const struct ls_kernel ls_kernel_fill;
extern const struct ls_kernel ls_kernel_sum_loss;
extern const struct ls_kernel ls_kernel_sum_loss_backward;
extern const struct ls_kernel ls_kernel_accumulate;
extern const struct ls_kernel ls_kernel_count_labels;

/* Convolutions of volumes by Winograd's algorithm, of single channels, and of numbers of channels
 * that fill blocks badly; they go before oneDNN's. */
extern const struct ls_kernel ls_kernel_volume;
extern const struct ls_kernel ls_kernel_volume_data;
extern const struct ls_kernel ls_kernel_volume_weights;
extern const struct ls_kernel ls_kernel_depthwise_data;
extern const struct ls_kernel ls_kernel_planes;
extern const struct ls_kernel ls_kernel_planes_data;
extern const struct ls_kernel ls_kernel_planes_weights;

/* Inner products with weights in plain order. */
extern const struct ls_kernel ls_kernel_product;
extern const struct ls_kernel ls_kernel_product_data;
extern const struct ls_kernel ls_kernel_record;

/* Windows, normalisation, losses, metrics. */
extern const struct ls_kernel ls_kernel_pooling;
extern const struct ls_kernel ls_kernel_pooling_backward;
extern const struct ls_kernel ls_kernel_lrn;
extern const struct ls_kernel ls_kernel_lrn_backward;
extern const struct ls_kernel ls_kernel_normalize;
extern const struct ls_kernel ls_kernel_normalize_data;
extern const struct ls_kernel ls_kernel_normalize_sums;
extern const struct ls_kernel ls_kernel_scale;
extern const struct ls_kernel ls_kernel_scale_sums;
extern const struct ls_kernel ls_kernel_moments;
extern const struct ls_kernel ls_kernel_batch_norm;
extern const struct ls_kernel ls_kernel_batch_norm_sums;
extern const struct ls_kernel ls_kernel_batch_norm_backward;
extern const struct ls_kernel ls_kernel_softmax;
extern const struct ls_kernel ls_kernel_softmax_backward;
extern const struct ls_kernel ls_kernel_softmax_loss;
extern const struct ls_kernel ls_kernel_softmax_loss_backward;
extern const struct ls_kernel ls_kernel_log_loss;
extern const struct ls_kernel ls_kernel_log_loss_backward;
extern const struct ls_kernel ls_kernel_sigmoid_loss;
extern const struct ls_kernel ls_kernel_sigmoid_loss_backward;
extern const struct ls_kernel ls_kernel_euclidean_loss;
extern const struct ls_kernel ls_kernel_euclidean_loss_backward;
extern const struct ls_kernel ls_kernel_accuracy;
extern const struct ls_kernel ls_kernel_mean_iou;

/* Merges partial results of batch normalisation: ls_device.merge. */
void ls_cpu_merge(const struct ls_sync *sync, const double *const *rows, int count, int64_t begin,
                  int64_t end, float *merged);
/* For `prepare` of own kernels: names the implementation "lockstep:avx512". Returns 0. */
int ls_own_prepare(struct ls_prepared *prepared, struct ls_error *error);
/* `release` of own kernels whose state is one piece of memory. */
void ls_own_release(struct ls_prepared *prepared);
/* The layout that suits a backward op: that of the value whose gradient it writes. */
const struct ls_layout *ls_gradient_layout(const struct ls_op *op,
                                           const struct ls_op_layouts *layouts);
/* For `layouts` of elementwise kernels: all inputs and outputs as input 0 is; in a backward op, as
 * the forward value is. Returns 0. */
int ls_layouts_follow(const struct ls_op *op, struct ls_op_layouts *layouts,
                      struct ls_error *error);
/* fp32 elements of a value in its layout, padding included. */
size_t ls_value_elements(const struct ls_value *value);
/* Sets the lanes behind the last channel to zero, where `value` has a blocked layout. */
void ls_clear_padding(const struct ls_value *value, float *data);

#endif
