/* Lockstep's own kernels for CPUs, one constant each, and what they share.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_KERNELS_H
#define LS_OPS_CPU_KERNELS_H

#include "ir/kernel.h"

/* All kernels, ls_kernel_NAME, in order of preference: of those for one kind of op the first that
 * accepts an op computes it. */
#define LS_CPU_KERNELS(K)                                                                          \
    K(reorder)                                                                                     \
    K(convert)                                                                                     \
    K(view)                                                                                        \
    K(bf16_depthwise)                                                                              \
    K(bf16_depthwise_data)                                                                         \
    K(bf16_depthwise_weights)                                                                      \
    K(bf16_depthwise_transposed)                                                                   \
    K(bf16_depthwise_transposed_data)                                                              \
    K(bf16_depthwise_transposed_weights)                                                           \
    K(bf16_convolution)                                                                            \
    K(bf16_convolution_data)                                                                       \
    K(bf16_convolution_weights)                                                                    \
    K(bf16_deconvolution)                                                                          \
    K(bf16_deconvolution_data)                                                                     \
    K(bf16_deconvolution_weights)                                                                  \
    K(bf16_inner_product)                                                                          \
    K(bf16_inner_product_data)                                                                     \
    K(bf16_inner_product_weights)                                                                  \
    K(matmul)                                                                                      \
    K(volume)                                                                                      \
    K(volume_data)                                                                                 \
    K(volume_weights)                                                                              \
    K(planes)                                                                                      \
    K(convolution)                                                                                 \
    K(depthwise_data)                                                                              \
    K(planes_data)                                                                                 \
    K(convolution_data)                                                                            \
    K(planes_weights)                                                                              \
    K(convolution_weights)                                                                         \
    K(deconvolution)                                                                               \
    K(deconvolution_data)                                                                          \
    K(deconvolution_weights)                                                                       \
    K(product)                                                                                     \
    K(product_data)                                                                                \
    K(inner_product)                                                                               \
    K(inner_product_data)                                                                          \
    K(inner_product_weights)                                                                       \
    K(pooling_stochastic)                                                                          \
    K(plugin)                                                                                      \
    K(plugin_backward)                                                                             \
    K(pooling)                                                                                     \
    K(pooling_backward)                                                                            \
    K(activation)                                                                                  \
    K(activation_backward)                                                                         \
    K(glu)                                                                                         \
    K(glu_backward)                                                                                \
    K(prelu)                                                                                       \
    K(prelu_data)                                                                                  \
    K(prelu_slope)                                                                                 \
    K(lrn)                                                                                         \
    K(lrn_backward)                                                                                \
    K(normalize)                                                                                   \
    K(normalize_data)                                                                              \
    K(normalize_sums)                                                                              \
    K(scale)                                                                                       \
    K(scale_sums)                                                                                  \
    K(dropout)                                                                                     \
    K(moments)                                                                                     \
    K(batch_norm)                                                                                  \
    K(batch_norm_sums)                                                                             \
    K(batch_norm_backward)                                                                         \
    K(recurrent)                                                                                   \
    K(recurrent_backward)                                                                          \
    K(attention)                                                                                   \
    K(attention_backward)                                                                          \
    K(softmax)                                                                                     \
    K(softmax_backward)                                                                            \
    K(softmax_loss)                                                                                \
    K(softmax_loss_backward)                                                                       \
    K(linear_loss)                                                                                 \
    K(linear_loss_gradient)                                                                        \
    K(log_loss)                                                                                    \
    K(log_loss_backward)                                                                           \
    K(sigmoid_loss)                                                                                \
    K(sigmoid_loss_backward)                                                                       \
    K(euclidean_loss)                                                                              \
    K(euclidean_loss_backward)                                                                     \
    K(sum_loss)                                                                                    \
    K(sum_loss_backward)                                                                           \
    K(accuracy)                                                                                    \
    K(mean_iou)                                                                                    \
    K(count_labels)                                                                                \
    K(hinge_loss)                                                                                  \
    K(hinge_loss_backward)                                                                         \
    K(contrastive_loss)                                                                            \
    K(contrastive_loss_backward)                                                                   \
    K(infogain_loss)                                                                               \
    K(infogain_loss_backward)                                                                      \
    K(smooth_l1_loss)                                                                              \
    K(smooth_l1_loss_backward)                                                                     \
    K(multibox_loss)                                                                               \
    K(region_loss)                                                                                 \
    K(region_loss_backward)                                                                        \
    K(yolo_loss)                                                                                   \
    K(yolo_loss_backward)                                                                          \
    K(yolo_output)                                                                                 \
    K(proposal)                                                                                    \
    K(softmax_each)                                                                                \
    K(smooth_l1_each)                                                                              \
    K(hardest_regions)                                                                             \
    K(multibox_loss_backward)                                                                      \
    K(count_matches)                                                                               \
    K(detection_output)                                                                            \
    K(detection_evaluate)                                                                          \
    K(region_evaluate)                                                                             \
    K(permute)                                                                                     \
    K(im2col)                                                                                      \
    K(col2im)                                                                                      \
    K(constant)                                                                                    \
    K(select_rows)                                                                                 \
    K(filter_rows)                                                                                 \
    K(embed)                                                                                       \
    K(embed_weights)                                                                               \
    K(embed_rows)                                                                                  \
    K(gather)                                                                                      \
    K(gather_backward)                                                                             \
    K(pad)                                                                                         \
    K(pad_backward)                                                                                \
    K(positions)                                                                                   \
    K(embed_bag)                                                                                   \
    K(embed_bag_rows)                                                                              \
    K(embed_bag_factors)                                                                           \
    K(concat)                                                                                      \
    K(slice)                                                                                       \
    K(resize)                                                                                      \
    K(resize_backward)                                                                             \
    K(upsample)                                                                                    \
    K(upsample_backward)                                                                           \
    K(unpool)                                                                                      \
    K(unpool_backward)                                                                             \
    K(crop)                                                                                        \
    K(crop_backward)                                                                               \
    K(tile)                                                                                        \
    K(tile_backward)                                                                               \
    K(reduce)                                                                                      \
    K(reduce_backward)                                                                             \
    K(reduce_loss)                                                                                 \
    K(reduce_loss_backward)                                                                        \
    K(argmax)                                                                                      \
    K(pick)                                                                                        \
    K(pick_backward)                                                                               \
    K(region_max)                                                                                  \
    K(region_max_backward)                                                                         \
    K(region_average)                                                                              \
    K(region_average_backward)                                                                     \
    K(eltwise)                                                                                     \
    K(eltwise_backward)                                                                            \
    K(fill)                                                                                        \
    K(accumulate)                                                                                  \
    K(record)

#define LS_DECLARE_KERNEL(name) extern const struct ls_kernel ls_kernel_##name;
LS_CPU_KERNELS(LS_DECLARE_KERNEL)
#undef LS_DECLARE_KERNEL

/* For `prepare` of own kernels: names the implementation "lockstep:avx512". Returns 0. */
int ls_own_prepare(struct ls_prepared *prepared, struct ls_error *error);
/* The same of products in a declared order: "lockstep:bf16:amx", of bf16 numbers, with what
 * multiplies them, or "lockstep:portable:avx512". Without an instruction that multiplies and adds
 * at once they are slow, and marked so. */
int ls_own_prepare_bf16(struct ls_prepared *prepared, const char *name);
/* `release` of own kernels whose state is one piece of memory. */
void ls_own_release(struct ls_prepared *prepared);
/* The layout that suits a backward op: that of the value whose gradient it writes. */
const struct ls_layout *ls_gradient_layout(const struct ls_op *op,
                                           const struct ls_op_layouts *layouts);
/* For `layouts` of elementwise kernels: all inputs and outputs as input 0 is; in a backward op, as
 * the forward value is. Returns 0. */
int ls_layouts_follow(const struct ls_op *op, struct ls_op_layouts *layouts,
                      struct ls_error *error);
/* Elements of a value in its layout, padding included. */
size_t ls_value_elements(const struct ls_value *value);
/* Sets the lanes behind the last channel to zero, where `value` has a blocked layout. */
void ls_clear_padding(const struct ls_value *value, float *data);

#endif
