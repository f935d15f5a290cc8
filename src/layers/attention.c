/* Attention: for each query, a mean of values, weighted by how well their keys suit it. See struct
 * ls_attention_attr for the formulas.
 *
 * Bottoms: q [N, Tq, Hq D], k [N, Tk, Hk D], v [N, Tk, Hk Dv], or one, [N, T, (Hq + 2 Hk) D], in
 * which q, k and v lie side by side; behind them what `extra` lists. The top is [N, Tq, Hq Dv].
 * Lockstep's own attention_param. (Vaswani and others: Attention is all you need; NeurIPS 2017.
 * Shazeer: Fast transformer decoding; 2019. Su and others: RoFormer; 2021.)
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "base/random.h"
#include "ir/attention.h"
#include "layers/common.h"

enum { FIRST = LS_ATTENTION_LENGTHS, EXTRAS = LS_ATTENTION_INPUTS - FIRST };

struct attention {
    struct ls_attention_attr attr;
    struct ls_value *in[LS_ATTENTION_CACHED_VALUES + 1]; /* of the op */
    struct ls_value *log_sum;
};

static const Lockstep__AttentionParameter *param_of(const struct ls_layer *layer)
{
    static const Lockstep__AttentionParameter defaults = LOCKSTEP__ATTENTION_PARAMETER__INIT;
    const Lockstep__AttentionParameter *param = layer->definition->attention_param;
    return param != NULL ? param : &defaults;
}

/* ---- Fields ---------------------------------------------------------------------------------- */

static int fail(const struct ls_layer *layer, struct ls_error *error, const char *field,
                const char *hint, const char *problem)
{
    return ls_layer_fail(layer, error, layer->definition->attention_param, field, hint, "%s",
                         problem);
}

static int check_heads(struct ls_layer *layer, struct ls_error *error)
{
    const Lockstep__AttentionParameter *p = param_of(layer);
    struct ls_attention_attr *attr = &((struct attention *)layer->state)->attr;
    if (p->num_heads == 0 || p->num_heads > INT32_MAX)
        return fail(layer, error, p->has_num_heads ? "num_heads" : NULL, NULL,
                    p->has_num_heads ? "num_heads must be 1 to 2147483647"
                                     : "num_heads is missing");
    attr->heads = p->num_heads;
    attr->kv_heads = p->num_kv_heads > 0 ? p->num_kv_heads : p->num_heads;
    if (attr->heads % attr->kv_heads != 0)
        return ls_layer_fail(layer, error, p, "num_kv_heads", NULL,
                             "num_kv_heads %u must divide num_heads, %u", p->num_kv_heads,
                             p->num_heads);
    return 0;
}

static int check_numbers(struct ls_layer *layer, struct ls_error *error)
{
    const Lockstep__AttentionParameter *p = param_of(layer);
    struct ls_attention_attr *attr = &((struct attention *)layer->state)->attr;
    if (p->has_scale && !isfinite(p->scale))
        return fail(layer, error, "scale", NULL, "scale must be a finite number");
    if (!(p->dropout_ratio >= 0 && p->dropout_ratio < 1)) /* also refuses what is not a number */
        return ls_layer_fail(layer, error, p, "dropout_ratio", NULL,
                             "dropout_ratio %g must be at least 0 and less than 1",
                             (double)p->dropout_ratio);
    attr->causal = p->causal;
    attr->window = p->window;
    if (layer->graph->phase == LOCKSTEP__PHASE__TRAIN)
        attr->dropout = (struct ls_dropout_attr){
            p->dropout_ratio, ls_random_key(layer->graph->seed, LS_RANDOM_DROPOUT, layer->name)};
    return 0;
}

static int check_rotary(struct ls_layer *layer, struct ls_error *error)
{
    const Lockstep__AttentionParameter__Rotary *p = param_of(layer)->rotary;
    struct ls_attention_attr *attr = &((struct attention *)layer->state)->attr;
    if (p == NULL)
        return 0;
    attr->rotary = (struct ls_rotary_attr){
        .dims = p->dims > 0 ? p->dims : attr->depth,
        .base = p->theta,
        .neighbours = p->pairs == LOCKSTEP__ATTENTION_PARAMETER__ROTARY__PAIRS__NEIGHBOURS};
    if (attr->rotary.dims % 2 != 0 || attr->rotary.dims > attr->depth)
        return ls_layer_fail(layer, error, p, p->dims > 0 ? "dims" : NULL, NULL,
                             "rotary positions turn an even number of the %lld numbers of a head, "
                             "not %lld",
                             (long long)attr->depth, (long long)attr->rotary.dims);
    if (!(p->theta > 0 && isfinite(p->theta)))
        return ls_layer_fail(layer, error, p, "theta", "10000 is usual",
                             "theta %g must be a number above 0", (double)p->theta);
    if (attr->queries > attr->keys)
        return ls_layer_fail(layer, error, p, NULL, NULL,
                             "rotary positions are for at most as many queries as keys, not %lld "
                             "for %lld",
                             (long long)attr->queries, (long long)attr->keys);
    return 0;
}

/* ---- Bottoms --------------------------------------------------------------------------------- */

/* q, k and v side by side. */
static int check_fused(struct ls_layer *layer, struct ls_error *error)
{
    struct ls_attention_attr *attr = &((struct attention *)layer->state)->attr;
    const struct ls_shape *x = &layer->bottom[0]->shape;
    const int64_t heads = attr->heads + 2 * attr->kv_heads;
    if (x->dim[2] % heads != 0)
        return ls_layer_fail(layer, error, NULL, "bottom", NULL,
                             "its bottom '%s' has %lld channels, which are not a multiple of the "
                             "%lld heads of q, k and v",
                             layer->bottom[0]->name, (long long)x->dim[2], (long long)heads);
    attr->fused = true;
    attr->queries = attr->keys = x->dim[1];
    attr->depth = attr->value_depth = x->dim[2] / heads;
    return 0;
}

static int check_divides(const struct ls_layer *layer, struct ls_error *error, int bottom,
                         int64_t heads)
{
    const int64_t channels = layer->bottom[bottom]->shape.dim[2];
    if (channels % heads == 0)
        return 0;
    return ls_layer_fail(layer, error, NULL, "bottom", NULL,
                         "its bottom '%s' has %lld channels, which are not a multiple of its %lld "
                         "heads",
                         layer->bottom[bottom]->name, (long long)channels, (long long)heads);
}

static int check_apart(struct ls_layer *layer, struct ls_error *error)
{
    struct ls_attention_attr *attr = &((struct attention *)layer->state)->attr;
    const struct ls_shape *q = &layer->bottom[0]->shape, *k = &layer->bottom[1]->shape;
    const struct ls_shape *v = &layer->bottom[2]->shape;
    LS_TRY(check_divides(layer, error, 0, attr->heads));
    LS_TRY(check_divides(layer, error, 1, attr->kv_heads));
    LS_TRY(check_divides(layer, error, 2, attr->kv_heads));
    attr->queries = q->dim[1];
    attr->keys = k->dim[1];
    attr->depth = q->dim[2] / attr->heads;
    attr->value_depth = v->dim[2] / attr->kv_heads;
    if (k->dim[2] / attr->kv_heads != attr->depth)
        return ls_layer_fail(layer, error, NULL, "bottom", NULL,
                             "a head of '%s' has %lld numbers, but one of '%s' has %lld",
                             layer->bottom[0]->name, (long long)attr->depth, layer->bottom[1]->name,
                             (long long)(k->dim[2] / attr->kv_heads));
    if (v->dim[1] != attr->keys)
        return ls_layer_fail(layer, error, NULL, "bottom", NULL,
                             "'%s' has %lld keys, but '%s' has %lld values", layer->bottom[1]->name,
                             (long long)attr->keys, layer->bottom[2]->name, (long long)v->dim[1]);
    return 0;
}

/* q, k and v, whatever they are in. */
static int check_operands(struct ls_layer *layer, int count, struct ls_error *error)
{
    struct attention *state = layer->state;
    LS_TRY(ls_layer_check_samples(layer, error, 0));
    for (int b = 0; b < count; b++) {
        const struct ls_shape *shape = &layer->bottom[b]->shape;
        LS_TRY(ls_layer_check_alike(layer, error, b));
        if (shape->rank != 3 || shape->dim[0] != layer->bottom[0]->shape.dim[0])
            return ls_layer_fail_shape(layer, error, b, "be samples x positions x channels");
        state->in[b] = layer->bottom[b];
    }
    return count == 1 ? check_fused(layer, error) : check_apart(layer, error);
}

/* [N or 1, (H or 1,) Q, K]; with N along the axis of samples. */
static bool is_mask(const struct ls_attention_attr *attr, const struct ls_shape *shape,
                    int64_t samples)
{
    const int last = shape->rank - 1;
    if (shape->rank != 3 && shape->rank != 4)
        return false;
    if (shape->rank == 4 && shape->dim[1] != 1 && shape->dim[1] != attr->heads)
        return false;
    return (shape->dim[0] == samples || shape->dim[0] == 1) &&
           shape->dim[last - 1] == attr->queries && shape->dim[last] == attr->keys;
}

static int check_mask(const struct ls_layer *layer, int bottom, struct ls_error *error)
{
    const struct attention *state = layer->state;
    const struct ls_value *mask = layer->bottom[bottom];
    const int64_t samples = layer->bottom[0]->shape.dim[0];
    if (!is_mask(&state->attr, &mask->shape, samples))
        return ls_layer_fail_shape(layer, error, bottom,
                                   "be samples x queries x keys, or samples x heads x queries x "
                                   "keys; 1 stands for all samples, or all heads");
    /* One for all samples belongs to none of them. */
    if (mask->sample_axis < 0 && mask->shape.dim[0] == 1)
        return 0;
    if (mask->shape.dim[0] != samples)
        return ls_layer_fail_shape(layer, error, bottom, "have as many samples as bottom 0");
    return ls_layer_check_alike(layer, error, bottom);
}

/* One number for each sample (keys 0), or for each of its keys. */
static int check_numbers_of(const struct ls_layer *layer, int bottom, int64_t keys,
                            struct ls_error *error)
{
    const struct ls_shape *shape = &layer->bottom[bottom]->shape;
    const int64_t samples = layer->bottom[0]->shape.dim[0];
    if (shape->rank < 1 || shape->dim[0] != samples ||
        ls_shape_size(shape) != samples * (keys > 0 ? keys : 1))
        return ls_layer_fail_shape(layer, error, bottom,
                                   keys > 0 ? "have one number for each key of each sample"
                                            : "have one number for each sample");
    return ls_layer_check_alike(layer, error, bottom);
}

/* Bottom `bottom`, which is what `extra` says. */
static int check_extra(struct ls_layer *layer, int bottom, int extra, struct ls_error *error)
{
    struct attention *state = layer->state;
    const Lockstep__AttentionParameter *p = param_of(layer);
    const int64_t keys = state->attr.keys;
    int place = LS_ATTENTION_LENGTHS;
    if (extra == LOCKSTEP__ATTENTION_PARAMETER__EXTRA__MASK ||
        extra == LOCKSTEP__ATTENTION_PARAMETER__EXTRA__ADDED_MASK) {
        place = LS_ATTENTION_MASK;
        state->attr.added = extra == LOCKSTEP__ATTENTION_PARAMETER__EXTRA__ADDED_MASK;
        LS_TRY(check_mask(layer, bottom, error));
    } else if (extra == LOCKSTEP__ATTENTION_PARAMETER__EXTRA__KEY_LENGTHS) {
        LS_TRY(check_numbers_of(layer, bottom, 0, error));
    } else {
        const bool segments = extra == LOCKSTEP__ATTENTION_PARAMETER__EXTRA__SEGMENTS;
        const bool mask = extra == LOCKSTEP__ATTENTION_PARAMETER__EXTRA__KEY_MASK;
        place = segments ? LS_ATTENTION_SEGMENTS
                : mask   ? LS_ATTENTION_KEY_MASK
                         : LS_ATTENTION_POSITIONS;
        LS_TRY(check_numbers_of(layer, bottom, keys, error));
        if (!mask && state->attr.queries != keys)
            return fail(layer, error, "extra", "a MASK says which pairs count in any case",
                        segments ? "SEGMENTS are for as many queries as keys"
                                 : "POSITIONS are for as many queries as keys");
        if (!mask && !segments && p->rotary == NULL)
            return fail(layer, error, "extra", "rotary { } turns q and k",
                        "POSITIONS are for rotary positions, which are not asked for");
    }
    if (state->in[place] != NULL)
        return fail(layer, error, "extra", NULL,
                    place == LS_ATTENTION_MASK ? "extra lists two masks of pairs"
                                               : "extra lists a kind of bottom twice");
    state->in[place] = layer->bottom[bottom];
    return 0;
}

/* In a net that computes some tokens of a text at a time: keys and values of those in front are in
 * a cache. All tokens are of one text, which has no gaps, so that what says so is not needed. */
static void use_cache(struct ls_layer *layer)
{
    struct attention *state = layer->state;
    struct ls_attention_attr *attr = &state->attr;
    if (layer->graph->cached == 0 || !attr->causal || attr->queries != attr->keys)
        return;
    attr->cache = attr->keys = layer->graph->cached;
    state->in[LS_ATTENTION_KEY_MASK] = state->in[LS_ATTENTION_SEGMENTS] = NULL;
    state->in[LS_ATTENTION_POSITIONS] = NULL;
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct attention *state = layer->state;
    const Lockstep__AttentionParameter *p = param_of(layer);
    const int operands = layer->bottoms - (int)p->n_extra;
    LS_TRY(ls_layer_begin(layer, error, NULL));
    if (p->n_extra > EXTRAS || (operands != 1 && operands != 3))
        return ls_layer_fail(layer, error, NULL, "bottom",
                             "extra says what each bottom behind q, k and v is: extra: KEY_MASK, "
                             "for example",
                             "it has 1 bottom (q, k and v side by side) or 3, and one for each "
                             "extra, not %d with %zu extra",
                             layer->bottoms, p->n_extra);
    LS_TRY(check_heads(layer, error));
    LS_TRY(check_operands(layer, operands, error));
    LS_TRY(check_numbers(layer, error));
    LS_TRY(check_rotary(layer, error));
    for (size_t e = 0; e < p->n_extra; e++)
        LS_TRY(check_extra(layer, operands + (int)e, (int)p->extra[e], error));
    struct ls_attention_attr *attr = &state->attr;
    attr->scale = p->has_scale ? p->scale : (float)(1 / sqrt((double)attr->depth));
    attr->bf16 = layer->bf16;
    use_cache(layer);
    const int64_t samples = layer->bottom[0]->shape.dim[0];
    const struct ls_shape weights = {3, {attr->heads, attr->queries, attr->keys}};
    LS_TRY(ls_layer_check_shape(layer, error, "the weights of a sample",
                                &weights)); /* dropout counts them */
    const struct ls_shape top = {3, {samples, attr->queries, attr->heads * attr->value_depth}};
    return ls_layer_check_shape(layer, error, "the top", &top);
}

/* ---- Ops ------------------------------------------------------------------------------------- */

static void put_inputs(const struct ls_layer *layer, struct ls_op *op)
{
    const struct attention *state = layer->state;
    const bool cache = state->attr.cache > 0;
    for (int k = 0; k < (cache ? LS_ATTENTION_CACHED_VALUES + 1 : LS_ATTENTION_INPUTS); k++)
        ls_op_in(layer->graph, op, state->in[k]);
    if (op != NULL)
        op->attr.attention = state->attr;
}

static void make_cache(const struct ls_layer *layer)
{
    struct attention *state = layer->state;
    const struct ls_attention_attr *attr = &state->attr;
    const struct ls_value *q = layer->bottom[0];
    const struct ls_shape keys = {3, {q->shape.dim[0], attr->cache, attr->kv_heads * attr->depth}};
    const struct ls_shape values = {
        3, {q->shape.dim[0], attr->cache, attr->kv_heads * attr->value_depth}};
    state->in[LS_ATTENTION_CACHED_KEYS] = ls_graph_cache(layer->graph, "keys", &keys, q);
    state->in[LS_ATTENTION_CACHED_VALUES] = ls_graph_cache(layer->graph, "values", &values, q);
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    struct attention *state = layer->state;
    const struct ls_attention_attr *attr = &state->attr;
    const struct ls_value *q = layer->bottom[0];
    const struct ls_shape top = {3,
                                 {q->shape.dim[0], attr->queries, attr->heads * attr->value_depth}};
    struct ls_value *y = ls_layer_make_top(layer, 0, &top, q);
    if (layer->graph->training && y != NULL) {
        state->log_sum = ls_layer_make_side(layer, "log_sum", q);
        if (state->log_sum != NULL)
            state->log_sum->shape =
                (struct ls_shape){3, {q->shape.dim[0], attr->heads, attr->queries}};
    }
    if (attr->cache > 0)
        make_cache(layer);
    struct ls_op *op = ls_graph_op(layer->graph, LS_OP_ATTENTION);
    put_inputs(layer, op);
    ls_op_out(layer->graph, op, y);
    ls_op_out(layer->graph, op, state->log_sum);
    return 0;
}

/* Masks and numbers have no gradient: what is learned in front of them would never change. */
static int check_unlearned(const struct ls_layer *layer, int operands, struct ls_error *error)
{
    for (int b = operands; b < layer->bottoms; b++)
        if (layer->propagate[b])
            return ls_layer_fail(layer, error, NULL, "bottom",
                                 "write propagate_down for each bottom into the layer, false for "
                                 "this one, to stop the gradient there",
                                 "an Attention layer cannot backpropagate to bottoms of extra, but "
                                 "'%s' depends on learned parameters",
                                 layer->bottom[b]->name);
    return 0;
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    const struct attention *state = layer->state;
    struct ls_graph *graph = layer->graph;
    const int operands = state->attr.fused ? 1 : LS_ATTENTION_LENGTHS;
    LS_TRY(check_unlearned(layer, operands, error));
    struct ls_value *gradient[LS_ATTENTION_LENGTHS] = {NULL};
    bool any = false;
    for (int b = 0; b < operands; b++) {
        any |= layer->propagate[b];
        if (layer->propagate[b])
            gradient[b] = ls_graph_gradient_value(graph, layer->bottom[b]);
    }
    if (!any)
        return 0;
    struct ls_op *op = ls_graph_op(graph, LS_OP_ATTENTION_BACKWARD);
    ls_op_in(graph, op, ls_graph_gradient(graph, layer->top[0]));
    ls_op_in(graph, op, layer->top[0]);
    ls_op_in(graph, op, state->log_sum);
    put_inputs(layer, op);
    for (int b = 0; b < operands; b++)
        ls_op_out(graph, op, gradient[b]);
    for (int b = 0; b < operands; b++)
        if (layer->propagate[b])
            ls_graph_add_gradient(graph, layer->bottom[b], gradient[b]);
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    const struct ls_attention_attr *attr = &((const struct attention *)layer->state)->attr;
    const int operands = attr->fused ? 1 : LS_ATTENTION_LENGTHS;
    const double pairs = (double)layer->bottom[0]->shape.dim[0] * (double)attr->heads *
                         (double)attr->queries * (double)attr->keys / (attr->causal ? 2 : 1);
    double bytes = ls_layer_bytes(layer->top[0]);
    bool back = false;
    for (int b = 0; b < operands; b++) {
        bytes += ls_layer_bytes(layer->bottom[b]);
        back |= ls_layer_has_gradient(layer, b);
    }
    cost->forward_flops = pairs * 2 * (double)(attr->depth + attr->value_depth);
    cost->forward_bytes = bytes;
    if (back) {
        cost->backward_data_flops = pairs * (double)(6 * attr->depth + 4 * attr->value_depth);
        cost->backward_bytes = 2 * bytes;
    }
}

const struct ls_layer_type ls_layer_attention = {
    .type = "Attention",
    .parameter = "attention_param",
    .state_size = sizeof(struct attention),
    .bottoms_min = 1,
    .bottoms_max = 3 + EXTRAS,
    .tops_min = 1,
    .tops_max = 1,
    .is_random = true,
    .filtered = LS_FILTERED_HANDED_ON,
    .setup = setup,
    .forward = forward,
    .backward = backward,
    .cost = cost,
};
