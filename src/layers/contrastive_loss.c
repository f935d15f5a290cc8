/* ContrastiveLoss: pairs that are similar shall be near each other, others at least a margin apart.
 *
 *   loss = sum over n of (similar[n] ? d^2 : max(0, margin - d)^2) / (2 N),  d = |a[n] - b[n]|
 *
 * and, with legacy_version, max(0, margin - d^2) for pairs that are not similar. a, b [N, ...] with
 * equally many elements a row, similar [N]: not 0 for a pair that is. The divisor is N, as in
 * Caffe, so that there is no loss_param. The gradient divides by d + 1e-4 where it would divide by
 * d, as Caffe's. contrastive_loss_param. (Hadsell, Chopra, LeCun: Dimensionality reduction by
 * learning an invariant mapping; 2006.)
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "layers/loss.h"

static int check_similar(const struct ls_layer *layer, struct ls_error *error)
{
    const struct ls_value *a = layer->bottom[0], *similar = layer->bottom[2];
    char text[160];
    LS_TRY(ls_layer_check_samples(layer, error, 2));
    bool mixed = ls_layer_is_mixed(layer, a) || ls_layer_is_mixed(layer, similar);
    if (ls_shape_size(&similar->shape) == a->shape.dim[0] && (similar->rows == a->rows || mixed))
        return 0;
    return ls_layer_fail(layer, error, NULL, "bottom", NULL,
                         "'%s' must be one number for each row of '%s', but is %s", similar->name,
                         a->name, ls_shape_text(&similar->shape, text, sizeof text));
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    static const Lockstep__ContrastiveLossParameter defaults =
        LOCKSTEP__CONTRASTIVE_LOSS_PARAMETER__INIT;
    const Lockstep__ContrastiveLossParameter *param = layer->definition->contrastive_loss_param;
    struct ls_loss *loss = layer->state;
    param = param != NULL ? param : &defaults;
    LS_TRY(ls_layer_begin(layer, error, NULL));
    LS_TRY(ls_layer_check_samples(layer, error, 0));
    LS_TRY(ls_layer_check_samples(layer, error, 1));
    LS_TRY(ls_loss_check_bottoms(layer, error));
    LS_TRY(ls_loss_check_sizes(layer, error));
    LS_TRY(check_similar(layer, error));
    if (!isfinite(param->margin))
        return ls_layer_fail(layer, error, param, "margin", NULL, "margin must be a finite number");
    static const float left_out[] = {0, 0, 1}; /* alike, and the same */
    loss->left_out = left_out;
    loss->attr.normalization = LS_NORM_BATCH_SIZE;
    loss->attr.margin = param->margin;
    loss->attr.legacy = param->legacy_version;
    ls_loss_set_positions(loss, layer->bottom[0]->rows, 1);
    return 0;
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct ls_loss *loss = layer->state;
    ls_loss_begin(layer, layer->state);
    struct ls_op *op = ls_graph_op(layer->graph, LS_OP_CONTRASTIVE_LOSS);
    for (int i = 0; i < 3; i++)
        ls_op_in(layer->graph, op, loss->in[i]);
    if (op != NULL)
        op->attr.loss = loss->attr;
    return 0;
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    const struct ls_loss *loss = layer->state;
    LS_TRY(ls_loss_check_unlearned(layer, error, 2));
    for (int i = 0; i < 2; i++) {
        if (!layer->propagate[i])
            continue;
        struct ls_op *op =
            ls_layer_emit_gradient(layer, i, LS_OP_CONTRASTIVE_LOSS_BACKWARD, loss->in, 3);
        if (op == NULL)
            continue;
        op->attr.loss = loss->attr;
        op->attr.loss.scale = i == 0 ? 1 : -1;
    }
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    double elements = (double)ls_shape_size(&layer->bottom[0]->shape);
    cost->forward_flops = 3 * elements;
    cost->forward_bytes = 8 * elements;
    for (int i = 0; i < 2; i++) {
        if (!ls_layer_has_gradient(layer, i))
            continue;
        cost->backward_data_flops += 5 * elements;
        cost->backward_bytes += 12 * elements;
    }
}

const struct ls_layer_type ls_layer_contrastive_loss = {
    .type = "ContrastiveLoss",
    .parameter = "contrastive_loss_param",
    .state_size = sizeof(struct ls_loss),
    .bottoms_min = 3,
    .bottoms_max = 3,
    .tops_min = 1,
    .tops_max = 1,
    .auto_tops = 1,
    .is_loss = true,
    .filtered = LS_FILTERED_COUNTED,
    .setup = setup,
    .forward = forward,
    .backward = backward,
    .cost = cost,
};
