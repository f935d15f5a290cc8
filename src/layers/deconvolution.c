/* Deconvolution: a convolution backwards, over 1 to 3 spatial axes, in groups of channels. Each
 * element of the bottom adds its multiple of the kernel to the top (transposed convolution):
 *
 *   y[n, g(c) O/G + o, i s - p + k d ...] += w[c,o,k...] x[n,c,i...],   y[n,o,...] += b[o]
 *
 * x [N, C, H...], w [C, O/G, K...], b [O], y [N, O, s (H - 1) + (d (K - 1) + 1) - 2p ...]. Blobs:
 * weight w, bias b (bias_term). With group = num_output = C, a "bilinear" weight filler and
 * lr_mult 0 it enlarges by a fixed factor. Caffe's convolution_param; what is shared with
 * Convolution is in window.c. (Long, Shelhamer, Darrell: Fully convolutional networks for semantic
 * segmentation; 2015.)
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/extent.h"
#include "layers/window.h"

#include "base/memory.h"

/* s (H - 1) + d (K - 1) + 1 - 2p along spatial axis `axis`; INT64_MAX where that overflows. */
static int64_t extent_of(const struct ls_window *window, int64_t in, int axis)
{
    int64_t steps, kernel;
    if (!ls_multiply(window->stride[axis], in - 1, &steps) ||
        !ls_multiply(window->dilation[axis], window->kernel[axis] - 1, &kernel) ||
        steps > INT64_MAX / 2 || kernel > INT64_MAX / 2)
        return INT64_MAX;
    return steps + kernel + 1 - 2 * window->pad[axis];
}

/* Whether the padding leaves something of the top; sets its extents. */
static int extents(const struct ls_layer *layer, struct ls_error *error)
{
    struct ls_window_state *state = layer->state;
    const struct ls_window *window = &state->attr.window;
    const struct ls_shape *x = &state->bottom;
    const Lockstep__ConvolutionParameter *p = ls_window_param(layer);
    int status = 0;
    for (int i = 0; i < window->axes; i++) {
        int64_t extent = extent_of(window, x->dim[2 + i], i);
        state->top.dim[2 + i] = extent;
        if (extent >= 1)
            continue;
        const char *field = p->n_pad > 0 ? "pad" : i == 0 ? "pad_h" : "pad_w";
        status = ls_layer_fail(layer, error, layer->definition->convolution_param, field,
                               "pad is what is cut off on each side of the top",
                               "the top would have %lld positions along an axis (%s)",
                               (long long)extent, ls_extent_axis_name(window->axes, i));
        if (p->n_pad == 1)
            break; /* one field for all axes is one problem */
    }
    return status;
}

static const struct ls_window_kind kind = {
    .forward = LS_OP_DECONVOLUTION,
    .data = LS_OP_DECONVOLUTION_DATA,
    .weights = LS_OP_DECONVOLUTION_WEIGHTS,
    .transposed = true,
    .extents = extents,
};

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    const Lockstep__ConvolutionParameter *p = ls_window_param(layer);
    if (p->algorithm == LOCKSTEP__CONVOLUTION_PARAMETER__ALGORITHM__WINOGRAD)
        return ls_layer_fail(layer, error, layer->definition->convolution_param, "algorithm",
                             "algorithm: AUTO, or PORTABLE", "a Deconvolution has no WINOGRAD");
    LS_TRY(ls_window_setup(layer, error, &kind));
    LS_TRY(ls_layer_check_tf32(layer, error, ls_window_is_portable(layer)));
    struct ls_window_state *state = layer->state;
    if (ls_window_is_portable(layer))
        state->attr.algorithm = LS_CONVOLUTION_PORTABLE;
    return 0;
}

const struct ls_layer_type ls_layer_deconvolution = {
    .type = "Deconvolution",
    .parameter = "convolution_param",
    .state_size = sizeof(struct ls_window_state),
    .bottoms_min = 1,
    .bottoms_max = -1,
    .tops_min = 1,
    .tops_max = -1,
    .filtered = LS_FILTERED_HANDED_ON,
    .setup = setup,
    .forward = ls_window_forward,
    .backward = ls_window_backward,
    .cost = ls_window_cost,
};
