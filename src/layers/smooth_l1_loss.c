/* SmoothL1Loss: a squared distance near 0, a distance elsewhere.
 *
 *   loss = sum of outside f(inside (x - target)) / N
 *   f(d) = sigma^2 d^2 / 2 where |d| < 1 / sigma^2, else |d| - 1 / (2 sigma^2)
 *
 * x and target have equally many elements; `inside` and `outside`, the bottoms behind them, too,
 * and are 1 where they are not there. Both x and target may be learned. The divisor is N, the rows
 * of x, whatever the weights are, as in Fast R-CNN's fork of Caffe, whose smooth_l1_loss_param this
 * is, unless loss_param says something else, as in R-FCN's: FULL and VALID are N times the
 * positions behind axis 1. SmoothL1LossOHEM is R-FCN's other name of it, for which VALID is the
 * default. (Girshick: Fast R-CNN; 2015.)
 *
 * An optional second top, R-FCN's, has the terms of the sum: those along axis 1 are added up,
 * [N, 1, ...] with 4 axes at least. No gradient goes back from it.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <float.h>
#include <math.h>

#include "layers/loss.h"

extern const struct ls_layer_type ls_layer_smooth_l1_loss_ohem;

static int check_weights(const struct ls_layer *layer, struct ls_error *error, int bottom)
{
    const struct ls_value *x = layer->bottom[0], *weights = layer->bottom[bottom];
    char a[160], b[160];
    LS_TRY(ls_layer_check_belongs(layer, error, bottom));
    if (ls_shape_size(&x->shape) != ls_shape_size(&weights->shape))
        return ls_layer_fail(layer, error, NULL, "bottom", NULL,
                             "its bottoms must have equally many elements, but '%s' is %s and '%s' "
                             "is %s",
                             x->name, ls_shape_text(&x->shape, a, sizeof a), weights->name,
                             ls_shape_text(&weights->shape, b, sizeof b));
    return ls_layer_check_alike(layer, error, bottom);
}

/* What the sum is divided by. */
static int read_divisor(struct ls_layer *layer, struct ls_loss *loss, struct ls_error *error)
{
    const struct ls_value *x = layer->bottom[0];
    const bool ohem = layer->type == &ls_layer_smooth_l1_loss_ohem;
    const struct ls_loss_rules rules = {.missing = ohem ? LS_NORM_VALID : LS_NORM_BATCH_SIZE};
    LS_TRY(ls_loss_read(layer, &rules, loss, error));
    if (loss->attr.has_ignore)
        ls_graph_ignore(layer->graph, layer, "loss_param.ignore_label");
    loss->attr.has_ignore = false; /* targets are no labels */
    const bool by_position =
        loss->attr.normalization == LS_NORM_FULL || loss->attr.normalization == LS_NORM_VALID;
    if (by_position || layer->tops > 1)
        LS_TRY(ls_layer_check_samples(layer, error, 0));
    const int64_t inner = x->shape.rank > 2 ? ls_shape_count(&x->shape, 2, x->shape.rank) : 1;
    ls_loss_set_positions(loss, x->rows, inner);
    return 0;
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    const Lockstep__SmoothL1LossParameter *param = layer->definition->smooth_l1_loss_param;
    struct ls_loss *loss = layer->state;
    const double sigma = param != NULL ? (double)param->sigma : 1;
    LS_TRY(ls_layer_begin(layer, error, "loss_param"));
    LS_TRY(ls_loss_check_bottoms(layer, error));
    LS_TRY(ls_loss_check_sizes(layer, error));
    for (int i = 2; i < layer->bottoms; i++)
        LS_TRY(check_weights(layer, error, i));
    loss->attr.sigma2 = (float)(sigma * sigma);
    if (!(isfinite(loss->attr.sigma2) && loss->attr.sigma2 >= FLT_MIN))
        return ls_layer_fail(layer, error, param, "sigma", NULL,
                             "sigma %g must be a number above 0", sigma);
    static const float left_out[LS_LOSS_BOTTOMS_MAX] = {0};
    loss->left_out = left_out;
    return read_divisor(layer, loss, error);
}

/* Emits the terms of the sum, with a number for each position behind axis 1. */
static int emit_each(struct ls_layer *layer, struct ls_error *error)
{
    const struct ls_loss *loss = layer->state;
    struct ls_shape shape = layer->bottom[0]->shape;
    while (shape.rank < 4)
        shape.dim[shape.rank++] = 1;
    shape.dim[1] = 1;
    LS_TRY(ls_layer_check_shape(layer, error, "the top", &shape));
    struct ls_value *each = ls_layer_make_top(layer, 1, &shape, layer->bottom[0]);
    struct ls_op *op = ls_graph_op(layer->graph, LS_OP_SMOOTH_L1_EACH);
    for (int i = 0; i < layer->bottoms; i++)
        ls_op_in(layer->graph, op, loss->in[i]);
    ls_op_out(layer->graph, op, each);
    if (op != NULL)
        op->attr.loss = loss->attr;
    return 0;
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    const struct ls_loss *loss = layer->state;
    ls_loss_begin(layer, layer->state);
    struct ls_op *op = ls_graph_op(layer->graph, LS_OP_SMOOTH_L1_LOSS);
    for (int i = 0; i < layer->bottoms; i++)
        ls_op_in(layer->graph, op, loss->in[i]);
    if (op != NULL)
        op->attr.loss = loss->attr;
    return layer->tops > 1 ? emit_each(layer, error) : 0;
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    const struct ls_loss *loss = layer->state;
    LS_TRY(ls_loss_check_each(layer, error, 1));
    for (int i = 2; i < layer->bottoms; i++)
        LS_TRY(ls_loss_check_unlearned(layer, error, i));
    for (int i = 0; i < 2; i++) {
        if (!layer->propagate[i])
            continue;
        struct ls_op *op = ls_layer_emit_gradient(layer, i, LS_OP_SMOOTH_L1_LOSS_BACKWARD, loss->in,
                                                  layer->bottoms);
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
    cost->forward_flops = 5 * elements;
    cost->forward_bytes = layer->bottoms * ls_layer_bytes(layer->bottom[0]);
    for (int i = 0; i < 2; i++) {
        if (!ls_layer_has_gradient(layer, i))
            continue;
        cost->backward_data_flops += 5 * elements;
        cost->backward_bytes += (layer->bottoms + 1) * ls_layer_bytes(layer->bottom[0]);
    }
}

const struct ls_layer_type ls_layer_smooth_l1_loss = {
    .type = "SmoothL1Loss",
    .parameter = "smooth_l1_loss_param",
    .state_size = sizeof(struct ls_loss),
    .bottoms_min = 2,
    .bottoms_max = 4,
    .tops_min = 1,
    .tops_max = 2,
    .auto_tops = 1,
    .is_loss = true,
    .filtered = LS_FILTERED_COUNTED,
    .setup = setup,
    .forward = forward,
    .backward = backward,
    .cost = cost,
};

const struct ls_layer_type ls_layer_smooth_l1_loss_ohem = {
    .type = "SmoothL1LossOHEM",
    .parameter = "smooth_l1_loss_param",
    .state_size = sizeof(struct ls_loss),
    .bottoms_min = 2,
    .bottoms_max = 3,
    .tops_min = 1,
    .tops_max = 2,
    .auto_tops = 1,
    .is_loss = true,
    .filtered = LS_FILTERED_COUNTED,
    .setup = setup,
    .forward = forward,
    .backward = backward,
    .cost = cost,
};
