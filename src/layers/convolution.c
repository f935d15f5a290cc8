/* Convolution (cross-correlation, as in Caffe) over 1 to 3 spatial axes, in groups of channels:
 *
 *   y[n,o,i...] = b[o] + sum_{c,k...} w[o,c,k...] x[n, g(o) C/G + c, i s - p + k d ...]
 *
 * x [N, C, H...], w [O, C/G, K...], b [O], y [N, O, floor((H + 2p - (d (K - 1) + 1)) / s) + 1 ...].
 * Blobs: weight w, bias b (bias_term). The channels are axis 1, or `axis`; what stands in front of
 * them counts as samples. Several bottoms of one shape give as many tops with the
 * same weights. Caffe's convolution_param; what is shared with Deconvolution is in window.c.
 *
 * `algorithm` says how: WINOGRAD for windows of 3 x 3 (fewer multiplications, more rounding),
 * DIRECT as above, AUTO the faster one by a rule of the backend's, PORTABLE as above with sums in a
 * declared order. In bf16 all are PORTABLE.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/extent.h"
#include "layers/window.h"

/* Whether the kernel fits into the padded bottom; sets the extents of the top. */
static int extents(const struct ls_layer *layer, struct ls_error *error)
{
    struct ls_window_state *state = layer->state;
    const struct ls_window *window = &state->attr.window;
    const struct ls_shape *x = &state->bottom;
    int status = 0;
    for (int i = 0; i < window->axes; i++) {
        int64_t padded = x->dim[2 + i] + 2 * window->pad[i];
        int64_t extent = window->dilation[i] * (window->kernel[i] - 1) + 1;
        state->top.dim[2 + i] = (padded - extent) / window->stride[i] + 1;
        if (extent <= padded)
            continue;
        const char *field = ls_window_kernel_field(layer, i);
        status = ls_layer_fail(layer, error, layer->definition->convolution_param, field,
                               "make the kernel smaller or pad more",
                               "the kernel covers %lld positions, more than the padded input's "
                               "%lld (%s)",
                               (long long)extent, (long long)padded,
                               ls_extent_axis_name(window->axes, i));
        if (ls_window_param(layer)->n_kernel_size == 1)
            break; /* one field for all axes is one problem */
    }
    return status;
}

static const struct ls_window_kind kind = {
    .forward = LS_OP_CONVOLUTION,
    .data = LS_OP_CONVOLUTION_DATA,
    .weights = LS_OP_CONVOLUTION_WEIGHTS,
    .extents = extents,
};

static int read_algorithm(const struct ls_layer *layer, struct ls_error *error)
{
    struct ls_window_state *state = layer->state;
    switch (ls_window_param(layer)->algorithm) {
    case LOCKSTEP__CONVOLUTION_PARAMETER__ALGORITHM__DIRECT:
        state->attr.algorithm = LS_CONVOLUTION_DIRECT;
        return 0;
    case LOCKSTEP__CONVOLUTION_PARAMETER__ALGORITHM__WINOGRAD:
        state->attr.algorithm = LS_CONVOLUTION_WINOGRAD;
        if (layer->bf16 || layer->tf32)
            return ls_layer_fail(layer, error, layer->definition->convolution_param, "algorithm",
                                 "algorithm: AUTO, or precision: FP32 in this layer",
                                 "WINOGRAD computes in fp32 only");
        if (ls_convolution_suits_winograd(&state->attr))
            return 0;
        return ls_layer_fail(layer, error, layer->definition->convolution_param, "algorithm",
                             "AUTO chooses it where it pays",
                             "WINOGRAD is for two or three spatial axes, kernel_size 3, stride 1, "
                             "dilation 1, group 1 and a pad of 0 or 1");
    default:
        state->attr.algorithm =
            ls_window_is_portable(layer) ? LS_CONVOLUTION_PORTABLE : LS_CONVOLUTION_AUTO;
        return 0;
    }
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    LS_TRY(ls_window_setup(layer, error, &kind));
    LS_TRY(ls_layer_check_tf32(layer, error, ls_window_is_portable(layer)));
    return read_algorithm(layer, error);
}

const struct ls_layer_type ls_layer_convolution = {
    .type = "Convolution",
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
