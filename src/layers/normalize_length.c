/* Normalize: vectors of length 1, and factors.
 *
 *   across_spatial: true   y[n, c, i] = scale[c] x[n, c, i] / sqrt(eps + sum over c, i of x[n]^2)
 *   across_spatial: false  the same, with the sum over c alone, for each i
 *
 * x, y [N, C, ...]. Blob: "scale" [C], or one number with channel_shared; its filler is ones. SSD's
 * norm_param. (Liu, Rabinovich, Berg: ParseNet; 2015.)
 *
 * It is made of ops of other layers: a sum of squares, a power, two products; where the sum runs
 * over channels, these are put last for the while.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/emit.h"

struct length {
    bool spatial, shared;
    float eps;
    int order[LS_RANK_MAX]; /* channels last; not with across_spatial */
    struct ls_value *last;  /* x in this order, or x */
    struct ls_value *sum, *inverse, *unit;
};

static const Lockstep__NormalizeParameter *param_of(const struct ls_layer *layer)
{
    static const Lockstep__NormalizeParameter defaults = LOCKSTEP__NORMALIZE_PARAMETER__INIT;
    const Lockstep__NormalizeParameter *param = layer->definition->norm_param;
    return param != NULL ? param : &defaults;
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct length *state = layer->state;
    const Lockstep__NormalizeParameter *p = param_of(layer);
    const struct ls_shape *x = &layer->bottom[0]->shape;
    LS_TRY(ls_layer_begin(layer, error, NULL));
    LS_TRY(ls_layer_check_channels(layer, error));
    LS_TRY(ls_layer_check_eps(layer, error, p, p->eps));
    state->spatial = p->across_spatial || x->rank == 2;
    state->shared = p->channel_shared;
    state->eps = p->eps;
    state->order[x->rank - 1] = 1;
    for (int i = 1; i < x->rank - 1; i++)
        state->order[i] = i + 1;
    layer->request[0] = (struct ls_blob_request){
        .name = "scale",
        .shape = {.rank = state->shared ? 0 : 1, .dim = {state->shared ? 0 : x->dim[1]}},
        .filler = p->scale_filler != NULL ? p->scale_filler : &ls_filler_one};
    layer->blobs = 1;
    return 0;
}

/* The axes that the lengths have: those in front of what is summed up. */
static struct ls_scale_attr length_axes(const struct length *state, int rank)
{
    return (struct ls_scale_attr){.axis = 0, .axes = state->spatial ? 1 : rank - 1};
}

static struct ls_scale_attr factor_axes(const struct length *state, int rank)
{
    if (state->shared)
        return (struct ls_scale_attr){.axis = 0, .axes = 0};
    return (struct ls_scale_attr){.axis = state->spatial ? 1 : rank - 1, .axes = 1};
}

static void set_scale(struct ls_op *op, struct ls_scale_attr attr)
{
    if (op != NULL)
        op->attr.scale = attr;
}

static void set_sum(const struct length *state, struct ls_op *op, int rank)
{
    if (op != NULL)
        op->attr.reduction = (struct ls_reduction_attr){
            .axis = length_axes(state, rank).axes, .method = LS_REDUCE_SUMSQ, .coeff = 1};
}

/* (sum + eps)^-1/2 */
static void set_power(const struct length *state, struct ls_op *op)
{
    if (op != NULL)
        op->attr.activation = (struct ls_activation_attr){
            .function = LS_POWER, .scale = 1, .shift = state->eps, .power = -0.5F};
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    struct length *state = layer->state;
    struct ls_graph *graph = layer->graph;
    struct ls_value *x = layer->bottom[0];
    const int rank = x->shape.rank;
    struct ls_value *last = x;
    if (!state->spatial)
        last = ls_emit_permuted(layer, -1, "last", x, state->order);
    if (last == NULL)
        return 0;
    struct ls_shape lengths = last->shape;
    lengths.rank = length_axes(state, rank).axes;
    struct ls_emitted sum = ls_emit_side(layer, LS_OP_REDUCE, "sum", &lengths, last, &last, 1);
    set_sum(state, sum.op, rank);
    struct ls_emitted inverse =
        ls_emit_side(layer, LS_OP_ACTIVATION, "inverse", &lengths, last, &sum.value, 1);
    set_power(state, inverse.op);
    struct ls_value *inputs[] = {last, inverse.value, NULL};
    struct ls_emitted unit =
        ls_emit_side(layer, LS_OP_SCALE, "unit", &last->shape, last, inputs, 3);
    set_scale(unit.op, length_axes(state, rank));
    struct ls_value *factors[] = {unit.value, ls_graph_parameter(graph, layer, 0), NULL};
    struct ls_emitted scaled =
        state->spatial ? ls_emit_top(layer, LS_OP_SCALE, 0, &x->shape, x, factors, 3)
                       : ls_emit_side(layer, LS_OP_SCALE, "scaled", &last->shape, last, factors, 3);
    set_scale(scaled.op, factor_axes(state, rank));
    if (!state->spatial) {
        int back[LS_RANK_MAX] = {0};
        for (int i = 0; i < rank; i++)
            back[state->order[i]] = i;
        ls_emit_permuted(layer, 0, NULL, scaled.value, back);
    }
    state->last = last;
    state->sum = sum.value;
    state->inverse = inverse.value;
    state->unit = unit.value;
    return 0;
}

/* The gradient of the factors, from that of what they make. */
static void backward_factor(struct ls_layer *layer, struct ls_value *dy)
{
    const struct length *state = layer->state;
    struct ls_graph *graph = layer->graph;
    struct ls_value *inputs[] = {dy, state->unit};
    struct ls_value *dscale = ls_graph_parameter_gradient(graph, layer, 0);
    struct ls_op *op = ls_graph_op(graph, LS_OP_SCALE_SUMS);
    for (int i = 0; i < 2; i++)
        ls_op_in(graph, op, inputs[i]);
    ls_op_out(graph, op, dscale);
    ls_op_out(graph, op, NULL);
    set_scale(op, factor_axes(state, layer->bottom[0]->shape.rank));
    ls_graph_accumulate(graph, layer, 0, dscale);
}

/* That of `last`: through the product, and through the length. */
static struct ls_value *backward_vectors(struct ls_layer *layer, struct ls_value *dy)
{
    const struct length *state = layer->state;
    const int rank = layer->bottom[0]->shape.rank;
    struct ls_value *by[] = {dy, ls_graph_parameter(layer->graph, layer, 0), NULL};
    struct ls_emitted dunit = ls_emit_slope(layer, LS_OP_SCALE, state->unit, by, 3);
    set_scale(dunit.op, factor_axes(state, rank));
    struct ls_value *pair[] = {dunit.value, state->last};
    struct ls_emitted dinverse = ls_emit_slope(layer, LS_OP_SCALE_SUMS, state->inverse, pair, 2);
    ls_op_out(layer->graph, dinverse.op, NULL);
    set_scale(dinverse.op, length_axes(state, rank));
    struct ls_value *power[] = {dinverse.value, state->sum};
    struct ls_emitted dsum = ls_emit_slope(layer, LS_OP_ACTIVATION_BACKWARD, state->sum, power, 2);
    set_power(state, dsum.op);
    struct ls_value *scaled[] = {dunit.value, state->inverse, NULL};
    struct ls_emitted direct = ls_emit_slope(layer, LS_OP_SCALE, state->last, scaled, 3);
    set_scale(direct.op, length_axes(state, rank));
    struct ls_value *squares[] = {dsum.value, state->last};
    struct ls_emitted through =
        ls_emit_slope(layer, LS_OP_REDUCE_BACKWARD, state->last, squares, 2);
    set_sum(state, through.op, rank);
    struct ls_value *both[] = {direct.value, through.value};
    struct ls_emitted sum = ls_emit_slope(layer, LS_OP_ELTWISE, state->last, both, 2);
    if (sum.op != NULL)
        sum.op->attr.eltwise = (struct ls_eltwise_attr){.method = LS_ELTWISE_SUM};
    return sum.value;
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct length *state = layer->state;
    struct ls_graph *graph = layer->graph;
    struct ls_value *dy = ls_graph_gradient(graph, layer->top[0]);
    if (!state->spatial) /* as x was permuted */
        dy = ls_emit_permuted(layer, -1, "grad_last", dy, state->order);
    if (layer->train_blob[0])
        backward_factor(layer, dy);
    if (!layer->propagate[0])
        return 0;
    struct ls_value *dx = backward_vectors(layer, dy);
    if (!state->spatial)
        dx = ls_emit_permuted_slope(layer, layer->bottom[0], dx, state->order);
    ls_graph_add_gradient(graph, layer->bottom[0], dx);
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    ls_layer_map_cost(layer, cost, 4, 6, 2);
    if (!ls_layer_trains_blob(layer, 0))
        return;
    cost->backward_weights_flops = 2 * (double)ls_shape_size(&layer->bottom[0]->shape);
    cost->backward_bytes += 2 * ls_layer_bytes(layer->bottom[0]);
}

const struct ls_layer_type ls_layer_normalize_length = {
    .type = "Normalize",
    .parameter = "norm_param",
    .state_size = sizeof(struct length),
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
