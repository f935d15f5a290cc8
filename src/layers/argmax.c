/* ArgMax: where the top_k largest numbers are, or what they are.
 *
 * With `axis`: along that axis of x [..., A, ...], independently of the others: y [..., k, ...] has
 * their places 0 .. A-1, or, with out_max_val, themselves. Without it: over all axes of a row x[n]
 * but the first, y [N, 1, k] has their places in the row, with out_max_val y [N, 2, k] the numbers
 * behind them; ones follow where x has more than three axes. Largest first; of equal numbers the
 * later one counts as the larger, as in Caffe, whose argmax_param this is; what is not a number
 * counts as larger than any. Places are written as floats and therefore at most 2^24.
 *
 * No gradient. SPDX-License-Identifier: BSD-2-Clause */
#include "layers/common.h"

enum { PLACES_MAX = 1 << 24 };

struct argmax {
    struct ls_argmax_attr attr;
    struct ls_shape top;
};

static const Lockstep__ArgMaxParameter *param_of(const struct ls_layer *layer)
{
    static const Lockstep__ArgMaxParameter defaults = LOCKSTEP__ARG_MAX_PARAMETER__INIT;
    const Lockstep__ArgMaxParameter *param = layer->definition->argmax_param;
    return param != NULL ? param : &defaults;
}

/* Whether the numbers of a row, without its first axis, belong to one sample. */
static int check_rows(const struct ls_layer *layer, struct ls_error *error)
{
    const struct ls_value *x = layer->bottom[0];
    if (x->shape.rank > 0 && (x->sample_axis <= 0 || ls_layer_mix(layer)))
        return 0;
    return ls_layer_fail(layer, error, NULL, "bottom", "name an axis",
                         "without axis, the largest numbers of all axes of '%s' but the first are "
                         "looked for, and axis %d holds the samples",
                         x->name, x->sample_axis);
}

static int check_top_k(const struct ls_layer *layer, struct ls_error *error, int64_t among)
{
    const Lockstep__ArgMaxParameter *p = param_of(layer);
    if (among > PLACES_MAX)
        return ls_layer_fail(layer, error, NULL, "bottom", NULL,
                             "the place of a maximum among %lld numbers does not fit into fp32; "
                             "the limit is %d",
                             (long long)among, (int)PLACES_MAX);
    if (p->top_k >= 1 && p->top_k <= among)
        return 0;
    return ls_layer_fail(layer, error, p, "top_k", NULL,
                         "top_k %u must be 1 to %lld, the numbers that it is among", p->top_k,
                         (long long)among);
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct argmax *state = layer->state;
    const Lockstep__ArgMaxParameter *p = param_of(layer);
    const struct ls_value *x = layer->bottom[0];
    LS_TRY(ls_layer_begin(layer, error, NULL));
    state->attr = (struct ls_argmax_attr){.axis = -1, .values = p->out_max_val};
    if (p->has_axis) {
        state->attr.axis = ls_layer_one_axis(layer, error, p, "axis", p->axis, x);
        LS_TRY(state->attr.axis < 0 ? LOCKSTEP_DEFINITION : 0);
        LS_TRY(check_top_k(layer, error, x->shape.dim[state->attr.axis]));
        state->top = x->shape;
        state->top.dim[state->attr.axis] = p->top_k;
    } else {
        LS_TRY(check_rows(layer, error));
        LS_TRY(check_top_k(layer, error, ls_shape_count(&x->shape, 1, x->shape.rank)));
        state->top.rank = x->shape.rank < 3 ? 3 : x->shape.rank;
        for (int i = 0; i < state->top.rank; i++)
            state->top.dim[i] = 1;
        state->top.dim[0] = x->shape.dim[0];
        state->top.dim[1] = p->out_max_val ? 2 : 1;
        state->top.dim[2] = p->top_k;
    }
    state->attr.top_k = p->top_k;
    return ls_layer_check_shape(layer, error, "the top", &state->top);
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct argmax *state = layer->state;
    struct ls_op *op = ls_layer_emit_top(layer, LS_OP_ARGMAX, &state->top);
    if (op != NULL)
        op->attr.argmax = state->attr;
    return 0;
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    if (!layer->propagate[0])
        return 0;
    return ls_layer_fail(layer, error, NULL, NULL,
                         "write propagate_down: false into the layer to stop the gradient there",
                         "an ArgMax layer has no gradient, but a loss depends on learned "
                         "parameters through it");
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    cost->forward_flops = (double)ls_shape_size(&layer->bottom[0]->shape);
    cost->forward_bytes = ls_layer_bytes(layer->bottom[0]) + ls_layer_bytes(layer->top[0]);
}

const struct ls_layer_type ls_layer_argmax = {
    .type = "ArgMax",
    .parameter = "argmax_param",
    .state_size = sizeof(struct argmax),
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
