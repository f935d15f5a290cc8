/* What the loss layers share. See layers/loss.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/loss.h"

#include <math.h>

#include "ir/filter.h"

/* The normalization that loss_param asks for; `normalize` is its older form, which counts only
 * where `normalization` is not given. */
static enum ls_normalization mode_of(const Lockstep__LossParameter *param,
                                     enum ls_normalization missing)
{
    if (param->has_normalization) {
        switch (param->normalization) {
        case LOCKSTEP__LOSS_PARAMETER__NORMALIZATION_MODE__FULL:
            return LS_NORM_FULL;
        case LOCKSTEP__LOSS_PARAMETER__NORMALIZATION_MODE__BATCH_SIZE:
            return LS_NORM_BATCH_SIZE;
        case LOCKSTEP__LOSS_PARAMETER__NORMALIZATION_MODE__NONE:
        case LOCKSTEP__LOSS_PARAMETER__NORMALIZATION_MODE__PRE_FIXED: /* `fixed` divides */
            return LS_NORM_NONE;
        case LOCKSTEP__LOSS_PARAMETER__NORMALIZATION_MODE__WEIGHTS:
            return LS_NORM_WEIGHTS;
        default:
            return LS_NORM_VALID;
        }
    }
    if (param->has_normalize)
        return param->normalize ? LS_NORM_VALID : LS_NORM_BATCH_SIZE;
    return missing;
}

static int check_smoothing(const struct ls_layer *layer, const struct ls_loss_rules *rules,
                           struct ls_error *error)
{
    const Lockstep__LossParameter *param = layer->definition->loss_param;
    float smoothing = param->label_smoothing;
    if (!param->has_label_smoothing || (rules->smoothing && smoothing >= 0 && smoothing < 1))
        return 0;
    if (rules->smoothing)
        return ls_layer_fail(layer, error, param, "label_smoothing", NULL,
                             "label_smoothing %g must be at least 0 and below 1",
                             (double)smoothing);
    return ls_layer_fail(layer, error, param, "label_smoothing",
                         "a SoftmaxWithLoss layer has label smoothing",
                         "a %s layer takes no label_smoothing", layer->type->type);
}

static int check_class_weights(const struct ls_layer *layer, const struct ls_loss_rules *rules,
                               struct ls_error *error)
{
    const Lockstep__LossParameter *param = layer->definition->loss_param;
    if (param->n_class_weight == 0)
        return 0;
    if (rules->classes == 0)
        return ls_layer_fail(layer, error, param, "class_weight", NULL,
                             "a %s layer takes no class_weight: its targets name no classes",
                             layer->type->type);
    if ((int64_t)param->n_class_weight != rules->classes)
        return ls_layer_fail(layer, error, param, "class_weight", NULL,
                             "class_weight must be given once for each of the %lld classes, or "
                             "not at all; it is given %zu times",
                             (long long)rules->classes, param->n_class_weight);
    for (size_t i = 0; i < param->n_class_weight; i++)
        if (!(isfinite(param->class_weight[i]) && param->class_weight[i] >= 0))
            return ls_layer_fail(layer, error, param, "class_weight", NULL,
                                 "class_weight must be finite numbers of at least 0, but that of "
                                 "class %zu is %g",
                                 i, (double)param->class_weight[i]);
    return 0;
}

/* R-FCN's divisor that the definition gives. */
static int read_fixed(const struct ls_layer *layer, struct ls_loss *loss, struct ls_error *error)
{
    const Lockstep__LossParameter *param = layer->definition->loss_param;
    bool fixed = param->has_normalization &&
                 param->normalization == LOCKSTEP__LOSS_PARAMETER__NORMALIZATION_MODE__PRE_FIXED;
    loss->fixed = fixed ? (double)param->pre_fixed_normalizer : 0;
    if (!fixed || (isfinite(param->pre_fixed_normalizer) && param->pre_fixed_normalizer > 0))
        return 0;
    return ls_layer_fail(layer, error, param, "pre_fixed_normalizer", NULL,
                         "pre_fixed_normalizer %g must be a number above 0",
                         (double)param->pre_fixed_normalizer);
}

int ls_loss_read(const struct ls_layer *layer, const struct ls_loss_rules *rules,
                 struct ls_loss *loss, struct ls_error *error)
{
    const Lockstep__LossParameter *param = layer->definition->loss_param;
    struct ls_loss_attr *attr = &loss->attr;
    attr->normalization = rules->missing;
    attr->classes = rules->classes;
    if (param == NULL)
        return 0;
    attr->normalization = mode_of(param, rules->missing);
    attr->has_ignore = param->has_ignore_label;
    attr->ignore_label = param->ignore_label;
    attr->smoothing = param->label_smoothing;
    if (param->n_class_weight > 0 && param->weight_by_label_freqs)
        attr->class_weight = param->class_weight;
    LS_TRY(read_fixed(layer, loss, error));
    int smoothing = check_smoothing(layer, rules, error);
    int weights = check_class_weights(layer, rules, error);
    if (attr->normalization == LS_NORM_WEIGHTS && attr->class_weight == NULL)
        return ls_layer_fail(layer, error, param, "normalization",
                             "use normalization: VALID, or give class_weight",
                             "normalization: WEIGHTS divides by class weights, but there are none");
    return smoothing != 0 ? smoothing : weights;
}

int ls_loss_check_bottoms(const struct ls_layer *layer, struct ls_error *error)
{
    const struct ls_value *x = layer->bottom[0], *label = layer->bottom[1];
    LS_TRY(ls_layer_check_belongs(layer, error, 0));
    LS_TRY(ls_layer_check_belongs(layer, error, 1));
    bool mixed = ls_layer_is_mixed(layer, x) || ls_layer_is_mixed(layer, label);
    if (ls_value_sample_rows(x) == ls_value_sample_rows(label) && (x->rows == label->rows || mixed))
        return 0;
    char a[160], b[160];
    return ls_layer_fail(layer, error, NULL, "bottom", NULL,
                         "its bottoms must agree in axis %d, but '%s' is %s and '%s' is %s",
                         x->sample_axis, x->name, ls_shape_text(&x->shape, a, sizeof a),
                         label->name, ls_shape_text(&label->shape, b, sizeof b));
}

int ls_loss_check_sizes(const struct ls_layer *layer, struct ls_error *error)
{
    const struct ls_value *x = layer->bottom[0], *target = layer->bottom[1];
    char a[160], b[160];
    bool same_size = ls_shape_size(&x->shape) == ls_shape_size(&target->shape);
    if (same_size && ls_shape_count(&x->shape, 0, x->sample_axis) !=
                         ls_shape_count(&target->shape, 0, target->sample_axis))
        return ls_layer_check_alike(layer, error, 1);
    if (same_size)
        return 0;
    return ls_layer_fail(layer, error, NULL, "bottom", NULL,
                         "its bottoms must have equally many elements, but '%s' is %s and '%s' "
                         "is %s",
                         x->name, ls_shape_text(&x->shape, a, sizeof a), target->name,
                         ls_shape_text(&target->shape, b, sizeof b));
}

void ls_loss_set_positions(struct ls_loss *loss, int64_t outer, int64_t inner)
{
    bool rows_only = loss->attr.normalization == LS_NORM_BATCH_SIZE;
    loss->per_sample = rows_only ? outer : outer * inner;
}

/* Sets what the op takes. */
static void take_bottoms(struct ls_layer *layer, struct ls_loss *loss)
{
    struct ls_loss_attr *attr = &loss->attr;
    for (int i = 0; i < layer->bottoms && i < LS_LOSS_BOTTOMS_MAX; i++)
        loss->in[i] = loss->left_out != NULL
                          ? ls_filter_fill(layer->graph, layer->bottom[i], loss->left_out[i])
                      : i == 1 ? ls_filter_fill_labels(layer->graph, layer->bottom[i],
                                                       &attr->has_ignore, &attr->ignore_label)
                               : layer->bottom[i];
}

/* What the sum is divided by, which the op counts unless it would count rows that are left out. */
static struct ls_metric make_metric(struct ls_layer *layer, const struct ls_loss *loss)
{
    const struct ls_loss_attr *attr = &loss->attr;
    const struct ls_value *x = layer->bottom[0];
    struct ls_metric metric = {.entries = 1,
                               .offset = attr->metric_offset,
                               .divisor = loss->fixed,
                               .count_offset = attr->metric_offset + 1};
    if (attr->normalization == LS_NORM_NONE) {
        metric.count_offset = -1;
    } else if (x->selected != NULL &&
               (attr->normalization == LS_NORM_FULL || attr->normalization == LS_NORM_BATCH_SIZE)) {
        metric.count_offset = ls_filter_count(layer->graph, x);
        metric.divisor = (double)(loss->per_sample / x->rows);
    }
    return metric;
}

void ls_loss_begin(struct ls_layer *layer, struct ls_loss *loss)
{
    struct ls_graph *graph = layer->graph;
    struct ls_loss_attr *attr = &loss->attr;
    take_bottoms(layer, loss);
    attr->loss_weight = layer->loss_weight[0];
    attr->metric_offset = ls_graph_record(graph, 2);
    attr->normalizer = -1; /* without a gradient nothing is divided during the pass */
    if (graph->training && attr->loss_weight != 0)
        attr->normalizer =
            ls_graph_normalizer(graph, attr, layer->bottom[0], loss->per_sample, loss->in[1]);
    if (attr->normalizer >= 0 && loss->fixed != 0 && !graph->failed)
        graph->normalizers[attr->normalizer].fixed = loss->fixed;
    ls_layer_make_metric(layer, 0, 0);
    ls_graph_metric(graph, layer, 0, make_metric(layer, loss));
}

void ls_loss_emit(struct ls_layer *layer, struct ls_loss *loss, enum ls_op_kind kind)
{
    ls_loss_begin(layer, loss);
    struct ls_op *op = ls_graph_op(layer->graph, kind);
    ls_op_in(layer->graph, op, loss->in[0]);
    ls_op_in(layer->graph, op, loss->in[1]);
    if (op != NULL)
        op->attr.loss = loss->attr;
}

int ls_loss_check_labels(const struct ls_layer *layer, struct ls_error *error)
{
    if (!layer->propagate[1])
        return 0;
    return ls_layer_fail(layer, error, NULL, "bottom",
                         "take the labels from data, or write propagate_down: true and "
                         "propagate_down: false into the layer to stop the gradient there",
                         "a %s layer cannot backpropagate to its labels, but '%s' depends on "
                         "learned parameters",
                         layer->type->type, layer->bottom[1]->name);
}

int ls_loss_check_unlearned(const struct ls_layer *layer, struct ls_error *error, int bottom)
{
    if (!layer->propagate[bottom])
        return 0;
    return ls_layer_fail(layer, error, NULL, "bottom",
                         "write propagate_down, once for each bottom, into the layer to stop the "
                         "gradient there",
                         "a %s layer cannot backpropagate to its bottom %d, but '%s' depends on "
                         "learned parameters",
                         layer->type->type, bottom, layer->bottom[bottom]->name);
}

int ls_loss_check_each(const struct ls_layer *layer, struct ls_error *error, int top)
{
    if (layer->tops <= top || ls_graph_gradient(layer->graph, layer->top[top]) == NULL)
        return 0;
    return ls_layer_fail(layer, error, NULL, "top",
                         "compute the loss from its first top, or write propagate_down: false into "
                         "the layer that reads this one",
                         "its top '%s', the losses of positions, has no gradient",
                         layer->top[top]->name);
}

void ls_loss_emit_backward(struct ls_layer *layer, const struct ls_loss *loss, enum ls_op_kind kind,
                           struct ls_value *first, struct ls_value *second, int bottom)
{
    struct ls_value *inputs[] = {first, second};
    struct ls_op *op = ls_layer_emit_gradient(layer, bottom, kind, inputs, 2);
    if (op != NULL)
        op->attr.loss = loss->attr;
}
