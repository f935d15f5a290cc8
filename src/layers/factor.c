/* A factor and a bias along some axes of bottom 0. See layers/factor.h.
 *
 * What is learned is the same for all samples, so its axes lie behind theirs. A factor that is
 * another layer's top belongs to the samples as bottom 0 does, axis by axis, or to none of them.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/factor.h"

int ls_factor_check_unused(const struct ls_layer *layer, struct ls_error *error,
                           const void *message, bool filler, bool num_axes, const char *what)
{
    const struct {
        const char *name;
        bool given;
    } fields[] = {{"filler", filler}, {"num_axes", num_axes}};
    int status = 0;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].given)
            status = ls_layer_fail(
                layer, error, message, fields[i].name, "remove it, or the second bottom",
                "%s has no effect: the second bottom is %s", fields[i].name, what);
    return status;
}

int ls_factor_learned(const struct ls_layer *layer, struct ls_error *error, const void *message,
                      int axis, int num_axes, struct ls_scale_attr *attr, struct ls_shape *shape)
{
    const struct ls_value *x = layer->bottom[0];
    char text[160];
    *attr = (struct ls_scale_attr){0};
    *shape = (struct ls_shape){0};
    if (num_axes < -1)
        return ls_layer_fail(layer, error, message, "num_axes", NULL,
                             "num_axes %d must be at least 0, or -1 for all axes from axis on",
                             num_axes);
    if (num_axes == 0) /* one number: it does not matter which axis */
        return 0;
    int first = ls_layer_mixing_axis(layer, error, message, "axis", axis, x);
    if (first < 0)
        return LOCKSTEP_DEFINITION;
    int axes = num_axes < 0 ? x->shape.rank - first : num_axes;
    if (axes > x->shape.rank - first)
        return ls_layer_fail(layer, error, message, "num_axes", NULL,
                             "num_axes %d from axis %d on goes beyond the axes of '%s' with shape "
                             "%s",
                             num_axes, first, x->name, ls_shape_text(&x->shape, text, sizeof text));
    *attr = (struct ls_scale_attr){first, axes};
    shape->rank = axes;
    for (int i = 0; i < axes; i++)
        shape->dim[i] = x->shape.dim[first + i];
    return 0;
}

/* Whether axis 0 of bottom 1 at `axis` of bottom 0 puts sample to sample. */
static bool same_samples(const struct ls_value *x, const struct ls_value *factor, int axis)
{
    if (factor->sample_axis < 0)
        return factor->shape.rank == 0 || axis > x->sample_axis;
    return axis + factor->sample_axis == x->sample_axis && factor->rows == x->rows;
}

int ls_factor_bottom(const struct ls_layer *layer, struct ls_error *error, const void *message,
                     int axis, struct ls_scale_attr *attr)
{
    const struct ls_value *x = layer->bottom[0], *factor = layer->bottom[1];
    char a[160], b[160];
    *attr = (struct ls_scale_attr){0};
    if (factor->shape.rank > 0) {
        int first = ls_layer_axis(layer, error, message, "axis", axis, x, true);
        if (first < 0)
            return LOCKSTEP_DEFINITION;
        *attr = (struct ls_scale_attr){first, factor->shape.rank};
    }
    bool fits = attr->axis + attr->axes <= x->shape.rank;
    for (int i = 0; fits && i < attr->axes; i++)
        fits = factor->shape.dim[i] == x->shape.dim[attr->axis + i];
    if (!fits)
        return ls_layer_fail(layer, error, NULL, "bottom", NULL,
                             "the axes of '%s' (%s) must be those of '%s' (%s) from axis %d on",
                             factor->name, ls_shape_text(&factor->shape, a, sizeof a), x->name,
                             ls_shape_text(&x->shape, b, sizeof b), attr->axis);
    if (same_samples(x, factor, attr->axis) || ls_layer_mix(layer))
        return 0;
    return ls_layer_fail(layer, error, NULL, "bottom",
                         "give axis: 0 where both begin with the samples",
                         "'%s' from axis %d of '%s' on would put other samples beside its samples",
                         factor->name, attr->axis, x->name);
}

static struct ls_value *value_of(struct ls_layer *layer, int blob, bool bottom)
{
    if (bottom)
        return layer->bottom[1];
    return blob >= 0 ? ls_graph_parameter(layer->graph, layer, blob) : NULL;
}

void ls_factor_emit(struct ls_layer *layer, const struct ls_factor *factor)
{
    struct ls_graph *graph = layer->graph;
    struct ls_value *x = layer->bottom[0];
    struct ls_value *y = ls_layer_make_top(layer, 0, &x->shape, x);
    struct ls_value *by = value_of(layer, factor->factor_blob, factor->factor_bottom);
    struct ls_value *bias = value_of(layer, factor->bias_blob, factor->bias_bottom);
    struct ls_op *op = ls_graph_op(graph, LS_OP_SCALE);
    ls_op_in(graph, op, x);
    ls_op_in(graph, op, by);
    ls_op_in(graph, op, bias);
    ls_op_out(graph, op, y);
    if (op != NULL)
        op->attr.scale = factor->attr;
}

static bool is_wanted(const struct ls_layer *layer, int blob, bool bottom)
{
    return bottom ? layer->propagate[1] : blob >= 0 && layer->train_blob[blob];
}

static struct ls_value *gradient_of(struct ls_layer *layer, int blob, bool bottom)
{
    if (!is_wanted(layer, blob, bottom))
        return NULL;
    return bottom ? ls_graph_gradient_value(layer->graph, layer->bottom[1])
                  : ls_graph_parameter_gradient(layer->graph, layer, blob);
}

static void hand_on(struct ls_layer *layer, int blob, bool bottom, struct ls_value *gradient)
{
    if (bottom)
        ls_graph_add_gradient(layer->graph, layer->bottom[1], gradient);
    else if (gradient != NULL)
        ls_graph_accumulate(layer->graph, layer, blob, gradient);
}

static void backward_sums(struct ls_layer *layer, const struct ls_factor *factor,
                          struct ls_value *dy)
{
    struct ls_graph *graph = layer->graph;
    struct ls_value *dfactor = gradient_of(layer, factor->factor_blob, factor->factor_bottom);
    struct ls_value *dbias = gradient_of(layer, factor->bias_blob, factor->bias_bottom);
    if (dfactor == NULL && dbias == NULL)
        return;
    struct ls_op *op = ls_graph_op(graph, LS_OP_SCALE_SUMS);
    ls_op_in(graph, op, dy);
    ls_op_in(graph, op, dfactor != NULL ? layer->bottom[0] : NULL);
    ls_op_out(graph, op, dfactor);
    ls_op_out(graph, op, dbias);
    if (op != NULL)
        op->attr.scale = factor->attr;
    hand_on(layer, factor->factor_blob, factor->factor_bottom, dfactor);
    hand_on(layer, factor->bias_blob, factor->bias_bottom, dbias);
}

void ls_factor_emit_backward(struct ls_layer *layer, const struct ls_factor *factor)
{
    struct ls_graph *graph = layer->graph;
    struct ls_value *dy = ls_graph_gradient(graph, layer->top[0]);
    backward_sums(layer, factor, dy);
    if (!layer->propagate[0])
        return;
    struct ls_value *by = value_of(layer, factor->factor_blob, factor->factor_bottom);
    if (by == NULL) { /* a bias alone lets the gradient through */
        ls_graph_add_gradient(graph, layer->bottom[0], dy);
        return;
    }
    struct ls_value *inputs[] = {dy, by, NULL};
    struct ls_op *op = ls_layer_emit_gradient(layer, 0, LS_OP_SCALE, inputs, 3);
    if (op != NULL)
        op->attr.scale = factor->attr;
}

static bool has_gradient(const struct ls_layer *layer, int blob, bool bottom)
{
    return bottom ? ls_layer_has_gradient(layer, 1)
                  : blob >= 0 && ls_layer_trains_blob(layer, blob);
}

void ls_factor_count(const struct ls_layer *layer, const struct ls_factor *factor,
                     struct ls_cost *cost)
{
    bool scales = factor->factor_bottom || factor->factor_blob >= 0;
    bool biased = factor->bias_bottom || factor->bias_blob >= 0;
    double elements = (double)ls_shape_size(&layer->bottom[0]->shape);
    double bytes = ls_layer_bytes(layer->bottom[0]);
    cost->forward_flops = elements * (scales + biased);
    cost->forward_bytes = 2 * bytes;
    bool dfactor = has_gradient(layer, factor->factor_blob, factor->factor_bottom);
    bool dbias = has_gradient(layer, factor->bias_blob, factor->bias_bottom);
    if (dfactor || dbias) {
        cost->backward_weights_flops = elements * (2 * dfactor + dbias);
        cost->backward_bytes += bytes * (1 + dfactor);
    }
    if (scales && ls_layer_has_gradient(layer, 0)) {
        cost->backward_data_flops = elements;
        cost->backward_bytes += 2 * bytes;
    }
}

int ls_factor_forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    ls_factor_emit(layer, layer->state);
    return 0;
}

int ls_factor_backward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    ls_factor_emit_backward(layer, layer->state);
    return 0;
}

void ls_factor_cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    ls_factor_count(layer, layer->state, cost);
}
