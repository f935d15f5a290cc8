/* Convolution, deconvolution and their gradients, over 1 to 3 spatial axes, with groups, dilation.
 *
 * Layouts by a static rule, blind to the number of samples: activations in blocks of as many
 * channels as a register holds (16 for AVX-512, 8 for AVX2), but an image of at most 3 channels
 * stays plain, as oneDNN's first-layer kernels want it; 4 or more, but less than a block, are
 * widened to one (the lanes that a blocked layout has anyway, all zero), which oneDNN's own choice
 * would not do. The first pair of layouts for which oneDNN has a fast kernel is taken; the plain
 * pair, at the end, has one (matrix products) for every window and group. Where that is all, our
 * own kernels mostly compute the convolution instead (matrix_products.h).
 *
 * A deconvolution is the gradient by data of a convolution with x and y exchanged, its gradient by
 * data is that convolution: the same primitives, the same choices.
 *
 * The weights lie as the forward pass likes them. The gradient by weights writes that layout where
 * its kernel can; the gradient by data mostly cannot read it and asks for a copy in its own.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "ops/cpu/isa.h"
#include "ops/cpu/matrix_products.h"
#include "ops/cpu/primitive.h"
#include "ops/cpu/winograd.h"

enum { PLAIN_CHANNELS_MAX = 3 };

struct choice {
    const struct ls_layout *source, *target, *weights;
    bool winograd;
};

/* x or y, without and with blocks: [samples, channels, spatial...]. What stands before the channels
 * counts as samples. */
static void set_activation(struct ls_onednn_tensor *tensor, const struct ls_shape *shape, int axes,
                           int64_t samples, const struct ls_layout *layout)
{
    int channels = shape->rank - axes - 1;
    tensor->rank = axes + 2;
    tensor->dim[0] = samples > 0 ? samples : ls_shape_count(shape, 0, channels);
    for (int i = channels; i < shape->rank; i++)
        tensor->dim[i - channels + 1] = shape->dim[i];
    tensor->layout = layout;
}

/* Caffe's [O, I/group, k...] as [group, O/group, I/group, k...]; the same order in memory. */
static void set_weights(struct ls_onednn_tensor *tensor, const struct ls_convolution_attr *attr,
                        int64_t inputs, int64_t outputs)
{
    int64_t *dim = tensor->dim;
    tensor->grouped = attr->group > 1;
    if (tensor->grouped)
        *dim++ = attr->group;
    *dim++ = outputs / attr->group;
    *dim++ = inputs / attr->group;
    for (int i = 0; i < attr->window.axes; i++)
        *dim++ = attr->window.kernel[i];
    tensor->rank = (int)(dim - tensor->dim);
}

/* `samples` 0: as many as the op has. */
static struct ls_primitive_spec make_spec(const struct ls_op *op, enum ls_onednn_pass pass,
                                          int64_t samples, const struct choice *choice, bool bias)
{
    const struct ls_convolution_attr *attr = &op->attr.convolution;
    const struct ls_shape *x = &ls_primitive_value(op, LS_SOURCE)->shape;
    const struct ls_shape *y = &ls_primitive_value(op, LS_TARGET)->shape;
    int axes = attr->window.axes;
    struct ls_primitive_spec spec = {.kind = LS_PRIMITIVE_CONVOLUTION,
                                     .pass = pass,
                                     .window = attr->window,
                                     .winograd = choice->winograd};
    struct ls_onednn_tensor *source = &spec.tensor[LS_SOURCE], *target = &spec.tensor[LS_TARGET];
    struct ls_onednn_tensor *weights = &spec.tensor[LS_WEIGHTS];
    set_activation(source, x, axes, samples, choice->source);
    set_activation(target, y, axes, samples, choice->target);
    set_weights(weights, attr, source->dim[1], target->dim[1]);
    weights->layout = choice->weights;
    if (attr->group == 1 && choice->source->block > source->dim[1])
        source->widened = weights->widened = choice->source->block;
    ls_primitive_set_ends(&spec, target->dim[1], bias, attr->relu, attr->relu_slope);
    return spec;
}

/* Pairs of layouts of x and y, the best first; returns how many. Where the channels are not axis 1,
 * and without wide registers (oneDNN has no backward kernels then), only the plain one. */
static int candidates(const struct ls_op *op, struct choice result[4])
{
    const struct ls_shape *x = &ls_primitive_value(op, LS_SOURCE)->shape;
    int axis = x->rank - op->attr.convolution.window.axes - 1, count = 0;
    enum ls_isa isa = ls_cpu_isa();
    if (axis == 1 && isa >= LS_ISA_AVX2) {
        const struct ls_layout *wide =
            isa == LS_ISA_AVX512 ? &ls_layout_blocked16 : &ls_layout_blocked8;
        if (x->dim[1] <= PLAIN_CHANNELS_MAX)
            result[count++] = (struct choice){.source = &ls_layout_plain, .target = wide};
        result[count++] = (struct choice){.source = wide, .target = wide};
        if (isa == LS_ISA_AVX512)
            result[count++] =
                (struct choice){.source = &ls_layout_blocked8, .target = &ls_layout_blocked8};
    }
    result[count++] = (struct choice){.source = &ls_layout_plain, .target = &ls_layout_plain};
    return count;
}

static int choose(const struct ls_op *op, enum ls_onednn_pass pass,
                  const struct ls_layout *preferred, struct choice *result, struct ls_error *error)
{
    struct choice choice[4];
    struct ls_primitive_plan plan;
    int count = candidates(op, choice);
    for (int i = 0; i < count; i++) {
        struct ls_primitive_spec spec = make_spec(op, pass, LS_QUERY_SAMPLES, &choice[i], false);
        bool last = i == count - 1;
        spec.relu = false;
        int status = ls_primitive_query_weights(op, &spec, preferred, &plan, last ? error : NULL);
        if (last)
            LS_TRY(status);
        if (status == LOCKSTEP_RESOURCE)
            return ls_fail_memory(error, "a convolution");
        if (last || (status == 0 && !plan.reference)) {
            *result = choice[i];
            result->weights = plan.weights;
            break;
        }
    }
    return 0;
}

int ls_convolution_find(const struct ls_op *op, enum ls_onednn_pass pass, bool *products,
                        bool *slow, struct ls_error *error)
{
    struct choice choice;
    struct ls_primitive_plan plan;
    LS_TRY(choose(op, pass, NULL, &choice, error));
    struct ls_primitive_spec spec = make_spec(op, pass, LS_QUERY_SAMPLES, &choice, false);
    spec.relu = false;
    LS_TRY(ls_primitive_query(&spec, &plan, error));
    *products = plan.reference || strstr(plan.implementation, "gemm") != NULL;
    *slow = ls_primitive_plan_is_slow(&spec, &plan);
    return 0;
}

static bool is_transposed(const struct ls_op *op)
{
    return op->kind == LS_OP_DECONVOLUTION || op->kind == LS_OP_DECONVOLUTION_DATA ||
           op->kind == LS_OP_DECONVOLUTION_WEIGHTS;
}

/* What the op does in a backward pass by Winograd's algorithm: `choice` is that of the forward
 * pass. */
static int choose_winograd(const struct ls_op *op, enum ls_onednn_pass pass, struct choice *choice,
                           struct ls_error *error)
{
    struct choice free_weights = *choice;
    struct ls_primitive_plan plan;
    free_weights.weights = NULL;
    struct ls_primitive_spec spec = make_spec(op, pass, LS_QUERY_SAMPLES, &free_weights, false);
    LS_TRY(ls_primitive_query_weights(op, &spec, choice->weights, &plan, error));
    choice->weights = plan.weights;
    return 0;
}

/* All that is decided for an op: algorithm and layouts. */
static int decide(const struct ls_op *op, struct choice *choice, struct ls_error *error)
{
    enum ls_onednn_pass pass = ls_primitive_pass(op);
    if (is_transposed(op)) {
        LS_TRY(choose(op, LS_PASS_DATA, NULL, choice, error));
        return pass == LS_PASS_DATA ? 0 : choose(op, pass, choice->weights, choice, error);
    }
    LS_TRY(choose(op, LS_PASS_FORWARD, NULL, choice, error));
    struct ls_primitive_spec forward = make_spec(op, LS_PASS_FORWARD, 0, choice, false);
    forward.relu = false;
    LS_TRY(ls_winograd_choose(op, &forward, &choice->winograd, error));
    if (pass == LS_PASS_FORWARD)
        return 0;
    return choice->winograd ? choose_winograd(op, pass, choice, error)
                            : choose(op, pass, choice->weights, choice, error);
}

int ls_convolution_layouts(const struct ls_op *op, struct ls_op_layouts *result,
                           struct ls_error *error)
{
    struct choice choice;
    LS_TRY(ls_matrix_products_check(error));
    LS_TRY(decide(op, &choice, error));
    const struct ls_layout *const by_slot[LS_SLOTS] = {choice.source, choice.weights,
                                                       &ls_layout_plain, choice.target};
    for (int i = 0; i < LS_SLOTS; i++) {
        const struct ls_layout **layout = ls_primitive_layout(op, result, (enum ls_tensor_slot)i);
        if (layout != NULL)
            *layout = by_slot[i];
    }
    return 0;
}

int ls_convolution_prepare(struct ls_prepared *prepared, struct ls_error *error)
{
    const struct ls_op *op = prepared->op;
    struct choice choice;
    LS_TRY(decide(op, &choice, error));
    choice.source = ls_primitive_value(op, LS_SOURCE)->layout;
    choice.target = ls_primitive_value(op, LS_TARGET)->layout;
    choice.weights = ls_primitive_value(op, LS_WEIGHTS)->layout;
    struct ls_primitive_spec spec =
        make_spec(op, ls_primitive_pass(op), 0, &choice, ls_primitive_value(op, LS_BIAS) != NULL);
    return ls_primitive_prepare(prepared, &spec, error);
}

const struct ls_kernel ls_kernel_convolution = {
    .kind = LS_OP_CONVOLUTION,
    .bits = LS_BITS_BY_SHAPES,
    .name = "convolution",
    .library = true,
    .layouts = ls_convolution_layouts,
    .prepare = ls_convolution_prepare,
    .release = ls_primitive_release,
    .bind = ls_primitive_bind,
    .unbind = ls_primitive_unbind,
    .run = ls_primitive_run,
    .in_place = -1,
};

const struct ls_kernel ls_kernel_convolution_data = {
    .kind = LS_OP_CONVOLUTION_DATA,
    .bits = LS_BITS_BY_SHAPES,
    .name = "convolution backward data",
    .library = true,
    .layouts = ls_convolution_layouts,
    .prepare = ls_convolution_prepare,
    .release = ls_primitive_release,
    .bind = ls_primitive_bind,
    .unbind = ls_primitive_unbind,
    .run = ls_primitive_run,
    .in_place = -1,
};

const struct ls_kernel ls_kernel_convolution_weights = {
    .kind = LS_OP_CONVOLUTION_WEIGHTS,
    .bits = LS_BITS_BY_SHAPES,
    .name = "convolution backward weights",
    .library = true,
    .layouts = ls_convolution_layouts,
    .prepare = ls_convolution_prepare,
    .release = ls_primitive_release,
    .bind = ls_primitive_bind,
    .unbind = ls_primitive_unbind,
    .run = ls_primitive_run,
    .in_place = -1,
};
