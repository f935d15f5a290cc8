/* The slopes of what an op computes on the reference device, which gradients are compared with.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_KERNELS_OP_SLOPES_H
#define LS_TESTS_KERNELS_OP_SLOPES_H

#include "kernels/op_scene.h"

enum { SLOPES_OUTPUTS = 4 };

/* What is differentiated: the sum of all numbers of some outputs, each times a weight of its own.
 */
struct op_slopes {
    struct op_scene *scene;
    int output[SLOPES_OUTPUTS], outputs;
    float *weight[SLOPES_OUTPUTS]; /* of each: the gradients that a backward op takes */
    double tolerance;              /* of a gradient, times 1 + its size */
};

void slopes_begin(struct op_slopes *slopes, struct op_scene *scene, const int *output, int outputs,
                  double tolerance);
void slopes_end(struct op_slopes *slopes);

/* Compares some elements of the gradient of an input. Returns how many. */
int64_t slopes_check(const struct op_slopes *slopes, int input, const float *gradient);

/* The numbers of input k; NULL: there is none. */
const float *scene_given(const struct op_scene *scene, int k);
/* An input of a backward op, with these numbers; NULL `like`: none. */
void scene_copy_in(struct op_scene *back, const struct ls_value *like, const float *numbers);

#endif
