/* MatMul: products of the matrices that the last two axes of its bottoms are.
 *
 *   y = scale op(a) op(b),  y[..., i, j] = scale sum over k of a[..., i, k] b[..., k, j]
 *
 * a [..., M, K], or [..., K, M] with transpose_a; b [..., K, N], or [..., N, K] with transpose_b; y
 * [..., M, N]. Bottoms have as many axes as each other. Of the axes in front of the matrices each
 * has as many places in both, or one in one of them, which is repeated then. Samples lie along axis
 * 0, of both bottoms or of one (the other has one place there), or there are none. Sums have a
 * declared order, whatever `algorithm` says (docs/numerics.md, section 23). Lockstep's own
 * matmul_param.
 *
 * The gradients are such products, too: with a transposed, dc b and so on; where an operand was
 * repeated its gradient is a sum over these places as well.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "layers/common.h"

struct matmul {
    struct ls_matmul_attr attr;
    struct ls_shape top;
    int sampled; /* a bottom whose samples are those of the top */
};

static const Lockstep__MatMulParameter *param_of(const struct ls_layer *layer)
{
    static const Lockstep__MatMulParameter defaults = LOCKSTEP__MAT_MUL_PARAMETER__INIT;
    const Lockstep__MatMulParameter *param = layer->definition->matmul_param;
    return param != NULL ? param : &defaults;
}

static int fail_pair(const struct ls_layer *layer, struct ls_error *error, const char *hint,
                     const char *problem)
{
    const struct ls_value *a = layer->bottom[0], *b = layer->bottom[1];
    char text[160], other[160];
    return ls_layer_fail(layer, error, NULL, "bottom", hint, "'%s' is %s and '%s' is %s: %s",
                         a->name, ls_shape_text(&a->shape, text, sizeof text), b->name,
                         ls_shape_text(&b->shape, other, sizeof other), problem);
}

/* Which bottom has the samples of the top; -1 after a failure. */
static int find_samples(const struct ls_layer *layer, struct ls_error *error)
{
    const struct ls_value *const *bottom = (const struct ls_value *const *)layer->bottom;
    for (int i = 0; i < 2; i++) {
        if (bottom[i]->sample_axis < 0)
            continue;
        if (bottom[i]->sample_axis > 0 || bottom[i]->shape.rank < 3) {
            ls_layer_fail(layer, error, NULL, "bottom", "a Permute layer brings them to the front",
                          "the samples of its bottom '%s' lie along an axis of its matrices, or "
                          "behind another one",
                          bottom[i]->name);
            return -1;
        }
        if (bottom[1 - i]->sample_axis >= 0)
            return ls_layer_check_alike(layer, error, 1) == 0 ? i : -1;
        if (bottom[1 - i]->shape.dim[0] == 1)
            return i;
        ls_layer_fail(layer, error, NULL, "bottom", "a Reshape layer puts an axis of 1 in front",
                      "axis 0 of '%s' holds samples, so '%s', which has none, must have one place "
                      "there",
                      bottom[i]->name, bottom[1 - i]->name);
        return -1;
    }
    return 0;
}

static int set_top(struct ls_layer *layer, struct ls_error *error)
{
    struct matmul *state = layer->state;
    const struct ls_shape *a = &layer->bottom[0]->shape, *b = &layer->bottom[1]->shape;
    const int row = a->rank - 2, column = a->rank - 1;
    const bool ta = state->attr.transpose_a, tb = state->attr.transpose_b;
    state->top = *a;
    for (int axis = 0; axis < row; axis++) {
        const int64_t most = a->dim[axis] > b->dim[axis] ? a->dim[axis] : b->dim[axis];
        if ((a->dim[axis] != most && a->dim[axis] != 1) ||
            (b->dim[axis] != most && b->dim[axis] != 1))
            return fail_pair(layer, error, NULL,
                             "along each axis in front of the matrices both must have as many "
                             "places, or one of them 1");
        state->top.dim[axis] = most;
    }
    if (a->dim[ta ? row : column] != b->dim[tb ? column : row])
        return fail_pair(layer, error, "transpose_a and transpose_b turn matrices around",
                         "the columns of the first matrices must be as many as the rows of the "
                         "second");
    state->top.dim[row] = a->dim[ta ? column : row];
    state->top.dim[column] = b->dim[tb ? row : column];
    return ls_layer_check_shape(layer, error, "the top", &state->top);
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct matmul *state = layer->state;
    const Lockstep__MatMulParameter *p = param_of(layer);
    const struct ls_shape *a = &layer->bottom[0]->shape, *b = &layer->bottom[1]->shape;
    int status = ls_layer_begin(layer, error, NULL);
    state->attr = (struct ls_matmul_attr){p->transpose_a, p->transpose_b, p->scale};
    if (!isfinite(p->scale))
        status = ls_layer_fail(layer, error, p, "scale", NULL, "scale must be a finite number");
    LS_TRY(status);
    LS_TRY(ls_layer_check_tf32(layer, error, layer->portable));
    if (a->rank < 2 || a->rank != b->rank)
        return fail_pair(layer, error,
                         "an InnerProduct layer multiplies with learned weights; a Reshape layer "
                         "puts axes of 1 in front",
                         "both must have as many axes, and at least 2");
    state->sampled = find_samples(layer, error);
    if (state->sampled < 0)
        return LOCKSTEP_DEFINITION;
    return set_top(layer, error);
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct matmul *state = layer->state;
    struct ls_value *y = ls_layer_make_top(layer, 0, &state->top, layer->bottom[state->sampled]);
    struct ls_op *op = ls_graph_op(layer->graph, LS_OP_MATMUL);
    ls_op_in(layer->graph, op, layer->bottom[0]);
    ls_op_in(layer->graph, op, layer->bottom[1]);
    ls_op_out(layer->graph, op, y);
    if (op != NULL)
        op->attr.matmul = state->attr;
    return 0;
}

static void emit_gradient(struct ls_layer *layer, int bottom, struct ls_value *first,
                          bool transpose_first, struct ls_value *second, bool transpose_second)
{
    const struct matmul *state = layer->state;
    struct ls_value *inputs[] = {first, second};
    struct ls_op *op = ls_layer_emit_gradient(layer, bottom, LS_OP_MATMUL, inputs, 2);
    if (op != NULL)
        op->attr.matmul =
            (struct ls_matmul_attr){transpose_first, transpose_second, state->attr.scale};
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct matmul *state = layer->state;
    const bool ta = state->attr.transpose_a, tb = state->attr.transpose_b;
    struct ls_value *dy = ls_graph_gradient(layer->graph, layer->top[0]);
    struct ls_value *a = layer->bottom[0], *b = layer->bottom[1];
    if (layer->propagate[0] && ta)
        emit_gradient(layer, 0, b, tb, dy, true);
    else if (layer->propagate[0])
        emit_gradient(layer, 0, dy, false, b, !tb);
    if (layer->propagate[1] && tb)
        emit_gradient(layer, 1, dy, true, a, ta);
    else if (layer->propagate[1])
        emit_gradient(layer, 1, a, !ta, dy, false);
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    const struct matmul *state = layer->state;
    const struct ls_shape *a = &layer->bottom[0]->shape;
    const double terms = (double)a->dim[a->rank - (state->attr.transpose_a ? 2 : 1)];
    const double bytes = ls_layer_bytes(layer->bottom[0]) + ls_layer_bytes(layer->bottom[1]) +
                         ls_layer_bytes(layer->top[0]);
    cost->forward_flops = 2 * terms * (double)ls_shape_size(&layer->top[0]->shape);
    cost->forward_bytes = bytes;
    for (int i = 0; i < 2; i++)
        if (ls_layer_has_gradient(layer, i)) {
            cost->backward_data_flops += cost->forward_flops;
            cost->backward_bytes += bytes;
        }
}

const struct ls_layer_type ls_layer_matmul = {
    .type = "MatMul",
    .parameter = "matmul_param",
    .state_size = sizeof(struct matmul),
    .bottoms_min = 2,
    .bottoms_max = 2,
    .tops_min = 1,
    .tops_max = 1,
    .filtered = LS_FILTERED_HANDED_ON,
    .setup = setup,
    .forward = forward,
    .backward = backward,
    .cost = cost,
};
