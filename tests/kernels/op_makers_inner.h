/* The makers of other files than op_makers.c, for its table.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_KERNELS_OP_MAKERS_INNER_H
#define LS_TESTS_KERNELS_OP_MAKERS_INNER_H

#include "kernels/op_makers.h"

/* A random window over `axes` axes of lengths `in`; sets the lengths of what it makes. */
struct ls_window draw_window(struct op_scene *scene, int axes, const int64_t *in, int64_t *out,
                             bool dilated);

void make_classes(struct op_scene *scene);
void make_linear_loss(struct op_scene *scene);
void make_softmax(struct op_scene *scene);
void make_element_loss(struct op_scene *scene);
void make_pair_loss(struct op_scene *scene);
void make_region(struct op_scene *scene);
void make_yolo(struct op_scene *scene);
void make_yolo_output(struct op_scene *scene);
void make_proposal(struct op_scene *scene);
void make_hardest(struct op_scene *scene);
void make_infogain(struct op_scene *scene);
void make_multibox(struct op_scene *scene);
void make_detection(struct op_scene *scene);
void make_evaluation(struct op_scene *scene);
void make_reduction(struct op_scene *scene);
void make_permute(struct op_scene *scene);
void make_columns(struct op_scene *scene);
void make_constant(struct op_scene *scene);
void make_embed(struct op_scene *scene);
void make_embed_rows(struct op_scene *scene);
void make_copy(struct op_scene *scene);
void make_join(struct op_scene *scene);
void make_tile(struct op_scene *scene);
void make_crop(struct op_scene *scene);
void make_plugin(struct op_scene *scene);
void make_resize(struct op_scene *scene);
void make_upsample(struct op_scene *scene);
void make_unpool(struct op_scene *scene);
void make_argmax(struct op_scene *scene);
void make_fill(struct op_scene *scene);
void make_pick(struct op_scene *scene);
void make_filter(struct op_scene *scene);
void make_regions(struct op_scene *scene);
void make_glu(struct op_scene *scene);
void make_matmul(struct op_scene *scene);
void make_gather(struct op_scene *scene);
void make_pad(struct op_scene *scene);
void make_positions(struct op_scene *scene);
void make_bag(struct op_scene *scene);
void make_batch_norm(struct op_scene *scene);
void make_normalize(struct op_scene *scene);
void make_lrn(struct op_scene *scene);
void make_recurrent(struct op_scene *scene);
void make_attention(struct op_scene *scene);

#endif
