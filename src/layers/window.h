/* What Convolution and Deconvolution share: both read a ConvolutionParameter and own a weight and a
 * bias; they differ in the direction in which windows relate their bottoms and tops.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_LAYERS_WINDOW_H
#define LS_LAYERS_WINDOW_H

#include "layers/common.h"

/* What tells the two apart. */
struct ls_window_kind {
    enum ls_op_kind forward, data, weights;
    bool transposed; /* the weight is [C, O/group, K...], else [O, C/group, K...] */
    /* Sets the spatial extents of state->top, or reports why there are none. */
    int (*extents)(const struct ls_layer *layer, struct ls_error *error);
};

/* The state of such a layer. Its ops see [N, C, spatial...]: where the channels are not axis 1,
 * what stands before them is put together, samples and all. */
struct ls_window_state {
    const struct ls_window_kind *kind;
    struct ls_convolution_attr attr;
    int axis;                  /* of the channels; `bottom` and `top` have them as axis 1 */
    struct ls_shape bottom;    /* of every bottom, as the ops see it */
    struct ls_shape top;       /* of every top, as the ops see it */
    struct ls_shape whole_top; /* of every top */
    struct ls_value **x;       /* by bottom: what the ops read */
};

/* The layer's message, or one of defaults. */
const Lockstep__ConvolutionParameter *ls_window_param(const struct ls_layer *layer);
/* Whether the algorithm of its ops is PORTABLE: as the layer says, or else the solver. */
bool ls_window_is_portable(const struct ls_layer *layer);
/* Reads kernel_size, stride, pad and dilation for window->axes axes. */
int ls_window_read(const struct ls_layer *layer, struct ls_error *error, struct ls_window *window);
/* The field that gives the kernel's extent along a spatial axis: "kernel_h". */
const char *ls_window_kernel_field(const struct ls_layer *layer, int axis);

/* `setup` of a layer type of this kind, and the other entries of both types. */
int ls_window_setup(struct ls_layer *layer, struct ls_error *error,
                    const struct ls_window_kind *kind);
int ls_window_forward(struct ls_layer *layer, struct ls_error *error);
int ls_window_backward(struct ls_layer *layer, struct ls_error *error);
void ls_window_cost(const struct ls_layer *layer, struct ls_cost *cost);

#endif
