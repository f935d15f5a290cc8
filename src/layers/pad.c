/* Pad: more places in front of and behind those along some axes.
 *
 * `axis` is given once for each axis that gets more (default: the last one, once); `before` and
 * `after`, how many, once for each of these, or once for all. What is in the new places is `value`
 * (mode CONSTANT, default 0), what lies as far on the other side of the first or last place
 * (REFLECT; at most one less than there are), or the first or last place again (EDGE). Several axes
 * are padded one after the other, so that corners follow. The axis of the samples, and those in
 * front of it, stay as they are. Backward a place gets the sum over all places that it was put to.
 * Lockstep's own pad_param.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "layers/common.h"

struct pad {
    struct ls_pad_attr attr;
    struct ls_shape top;
};

static const Lockstep__PadParameter *param_of(const struct ls_layer *layer)
{
    static const Lockstep__PadParameter defaults = LOCKSTEP__PAD_PARAMETER__INIT;
    const Lockstep__PadParameter *param = layer->definition->pad_param;
    return param != NULL ? param : &defaults;
}

static int check_counts(const struct ls_layer *layer, struct ls_error *error, const char *field,
                        size_t given, size_t axes)
{
    if (given <= 1 || given == axes)
        return 0;
    return ls_layer_fail(layer, error, param_of(layer), field, NULL,
                         "%s is given %zu times; it must be given once, or once for each of the "
                         "%zu axes",
                         field, given, axes);
}

static int64_t count_of(const uint32_t *counts, size_t given, size_t which)
{
    return given == 0 ? 0 : counts[given == 1 ? 0 : which];
}

static int pad_axis(struct ls_layer *layer, struct ls_error *error, size_t which)
{
    struct pad *state = layer->state;
    const Lockstep__PadParameter *p = param_of(layer);
    const struct ls_value *x = layer->bottom[0];
    const int axis =
        ls_layer_axis(layer, error, p, "axis", p->n_axis > 0 ? p->axis[which] : -1, x, false);
    const int64_t before = count_of(p->before, p->n_before, which);
    const int64_t after = count_of(p->after, p->n_after, which);
    if (axis < 0)
        return LOCKSTEP_DEFINITION;
    if (state->top.dim[axis] != x->shape.dim[axis])
        return ls_layer_fail(layer, error, p, "axis", NULL, "axis %d is given twice", axis);
    if (state->attr.mode == LS_PAD_REFLECT &&
        (before > after ? before : after) >= x->shape.dim[axis])
        return ls_layer_fail(layer, error, p, before > after ? "before" : "after",
                             "EDGE repeats the outermost place any number of times",
                             "there are %lld places to reflect at the end of axis %d of '%s'; the "
                             "outermost one is not repeated",
                             (long long)x->shape.dim[axis] - 1, axis, x->name);
    state->attr.before[axis] = before;
    state->top.dim[axis] += before + after;
    return 0;
}

static enum ls_pad_mode mode_of(const Lockstep__PadParameter *p)
{
    switch (p->mode) {
    case LOCKSTEP__PAD_PARAMETER__MODE__REFLECT:
        return LS_PAD_REFLECT;
    case LOCKSTEP__PAD_PARAMETER__MODE__EDGE:
        return LS_PAD_EDGE;
    default:
        return LS_PAD_CONSTANT;
    }
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct pad *state = layer->state;
    const Lockstep__PadParameter *p = param_of(layer);
    const size_t axes = p->n_axis > 0 ? p->n_axis : 1;
    int status = ls_layer_begin(layer, error, NULL);
    state->attr.mode = mode_of(p);
    state->attr.value = p->value;
    state->top = layer->bottom[0]->shape;
    if (p->n_before == 0 && p->n_after == 0)
        status = ls_layer_fail(layer, error, layer->definition->pad_param, NULL, NULL,
                               "pad_param must have before or after, the numbers of places");
    if (!isfinite(p->value))
        status = ls_layer_fail(layer, error, p, "value", NULL, "value must be a finite number");
    if (p->has_value && state->attr.mode != LS_PAD_CONSTANT)
        status = ls_layer_fail(layer, error, p, "value", "remove it",
                               "value is for mode: CONSTANT only");
    LS_TRY(status);
    LS_TRY(check_counts(layer, error, "before", p->n_before, axes));
    LS_TRY(check_counts(layer, error, "after", p->n_after, axes));
    for (size_t i = 0; i < axes; i++)
        LS_TRY(pad_axis(layer, error, i));
    return ls_layer_check_shape(layer, error, "the top", &state->top);
}

/* Whether the top is the bottom. */
static bool same(const struct ls_layer *layer)
{
    const struct pad *state = layer->state;
    return ls_shape_equal(&state->top, &layer->bottom[0]->shape);
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct pad *state = layer->state;
    if (same(layer)) {
        ls_layer_pass(layer, 0, 0);
        return 0;
    }
    struct ls_op *op = ls_layer_emit_top(layer, LS_OP_PAD, &state->top);
    if (op != NULL)
        op->attr.pad = state->attr;
    return 0;
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct pad *state = layer->state;
    struct ls_op *op = ls_layer_emit_back(layer, LS_OP_PAD_BACKWARD);
    if (op != NULL)
        op->attr.pad = state->attr;
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    if (same(layer))
        return;
    cost->forward_bytes = ls_layer_bytes(layer->top[0]) + ls_layer_bytes(layer->bottom[0]);
    if (ls_layer_has_gradient(layer, 0))
        cost->backward_bytes = cost->forward_bytes;
}

const struct ls_layer_type ls_layer_pad = {
    .type = "Pad",
    .parameter = "pad_param",
    .state_size = sizeof(struct pad),
    .bottoms_min = 1,
    .bottoms_max = 1,
    .tops_min = 1,
    .tops_max = 1,
    .filtered = LS_FILTERED_HANDED_ON,
    .setup = setup,
    .forward = forward,
    .backward = backward,
    .cost = cost,
};
