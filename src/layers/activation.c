/* What layers that are one function of one number share. See layers/activation.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/activation.h"

#include <math.h>
#include <sleef.h>

int ls_activation_forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    struct ls_op *op = ls_layer_emit_map(layer, LS_OP_ACTIVATION);
    if (op != NULL)
        op->attr.activation = *(const struct ls_activation_attr *)layer->state;
    return 0;
}

int ls_activation_backward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct ls_activation_attr *attr = layer->state;
    struct ls_value *inputs[] = {ls_graph_gradient(layer->graph, layer->top[0]),
                                 ls_activation_keeps_x(attr) ? layer->bottom[0] : layer->top[0]};
    struct ls_op *op = ls_layer_emit_gradient(layer, 0, LS_OP_ACTIVATION_BACKWARD, inputs, 2);
    if (op != NULL)
        op->attr.activation = *attr;
    return 0;
}

void ls_activation_cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    const struct ls_activation_attr *attr = layer->state;
    bool cheap = attr->function == LS_RELU || attr->function == LS_ABSOLUTE ||
                 attr->function == LS_CLIP || attr->function == LS_THRESHOLD;
    bool product = attr->function == LS_SIGMOID || attr->function == LS_TANH; /* dy y (1 - y) */
    ls_layer_map_cost(layer, cost, cheap ? 1 : 4, cheap ? 1 : product ? 3 : 4, 1);
    if (attr->function == LS_THRESHOLD) /* has no gradient */
        cost->backward_data_flops = cost->backward_bytes = 0;
}

int ls_activation_check(const struct ls_layer *layer, struct ls_error *error, const void *message,
                        const char *field, float value)
{
    if (isfinite(value))
        return 0;
    return ls_layer_fail(layer, error, message, field, NULL, "%s must be a finite number", field);
}

int ls_activation_log_base(const struct ls_layer *layer, struct ls_error *error,
                           const void *message, float base, double *logarithm)
{
    *logarithm = 1;
    if (base == -1)
        return 0;
    if (!isfinite(base) || base <= 0)
        return ls_layer_fail(layer, error, message, "base", "leave it out for e",
                             "base %g must be a number above 0, or -1 for e", (double)base);
    *logarithm = Sleef_cinz_logd1_u10purec((double)base);
    return 0;
}
