/* MultiBoxLoss: SSD's loss of where boxes are and what they show.
 *
 *   loss = (loc_weight sum of f(place - target) + sum of -log softmax(scores)[class]) / divisor
 *
 * Bottoms: places [N, P 4], scores [N, P classes], priors (those of PriorBox layers) and true
 * boxes, rows of 8 numbers (docs/caffe.md, "Boxes"), a fixed number a sample. Each true box is
 * matched with the prior that overlaps it most, best pairs first, and every other prior with the
 * true box that it overlaps most, if by overlap_threshold (not with match_type: BIPARTITE). With
 * use_prior_for_matching: false the predicted boxes are matched instead of the priors; with
 * ignore_cross_boundary_bbox those that leave the picture are not.
 * The first sum runs over matched priors, with f the smooth L1 distance (L2: the square / 2) to the
 * code of the true box (bp_inside: of sides in the picture alone); the second over matched priors,
 * and over those of the rest that have the largest losses and overlap no true box by neg_overlap,
 * at most neg_pos_ratio for each match of the same sample (mining_type: MAX_NEGATIVE; NONE: over
 * all of the rest). HARD_EXAMPLE: both run over the sample_size priors with the largest losses,
 * matched or not. With nms_param none is chosen that overlaps one with a larger loss. With LOGISTIC
 * it is the cross-entropy of each class by itself. share_location: false: each class has its own
 * places, [N, P classes 4]. map_object_to_agnostic: all classes are the first one.
 * Divisor: VALID, the default, is the number of matches of the whole update, which is counted
 * before the pass, or, where it depends on predictions, at a sync point; FULL, BATCH_SIZE, NONE and
 * PRE_FIXED as for other losses. SSD's multibox_loss_param. (Liu et al.: SSD, Single Shot MultiBox
 * Detector; 2016.)
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "layers/boxes.h"
#include "layers/loss.h"

struct multibox {
    struct ls_multibox_attr attr;
    double fixed;              /* the divisor instead; 0: there is none */
    struct ls_value *slope[2]; /* of places, of scores */
};

static const Lockstep__MultiBoxLossParameter *param_of(const struct ls_layer *layer)
{
    static const Lockstep__MultiBoxLossParameter defaults =
        LOCKSTEP__MULTI_BOX_LOSS_PARAMETER__INIT;
    const Lockstep__MultiBoxLossParameter *param = layer->definition->multibox_loss_param;
    return param != NULL ? param : &defaults;
}

static const Lockstep__NonMaximumSuppressionParameter *suppression_of(const struct ls_layer *layer)
{
    static const Lockstep__NonMaximumSuppressionParameter none = {.nms_threshold = 0};
    const Lockstep__NonMaximumSuppressionParameter *param = param_of(layer)->nms_param;
    return param != NULL ? param : &none;
}

static enum ls_mining mining_of(const struct ls_layer *layer)
{
    const Lockstep__MultiBoxLossParameter *p = param_of(layer);
    if (p->mining_type == LOCKSTEP__MULTI_BOX_LOSS_PARAMETER__MINING_TYPE__HARD_EXAMPLE)
        return LS_MINING_EXAMPLES;
    const bool mined =
        p->has_do_neg_mining
            ? p->do_neg_mining
            : p->mining_type == LOCKSTEP__MULTI_BOX_LOSS_PARAMETER__MINING_TYPE__MAX_NEGATIVE;
    return mined ? LS_MINING_NEGATIVES : LS_MINING_NONE;
}

/* Fields that do not go together. */
static int check_modes(const struct ls_layer *layer, struct ls_error *error)
{
    const Lockstep__MultiBoxLossParameter *p = param_of(layer);
    if (mining_of(layer) == LS_MINING_EXAMPLES && p->has_do_neg_mining && !p->do_neg_mining)
        return ls_layer_fail(layer, error, p, "do_neg_mining", "leave one of them out",
                             "do_neg_mining: false contradicts mining_type: HARD_EXAMPLE");
    if (!p->share_location && mining_of(layer) != LS_MINING_NONE)
        return ls_layer_fail(layer, error, p, "share_location", "write mining_type: NONE",
                             "share_location: false takes all priors, and cannot choose some");
    if (p->map_object_to_agnostic && (p->num_classes != 2 || p->background_label_id != 0))
        return ls_layer_fail(layer, error, p, "map_object_to_agnostic",
                             "write num_classes: 2, and leave background_label_id out",
                             "map_object_to_agnostic has two classes, the background first");
    return 0;
}

/* What is read where some priors are chosen. */
static int check_mining(const struct ls_layer *layer, struct ls_error *error)
{
    const Lockstep__MultiBoxLossParameter *p = param_of(layer);
    const Lockstep__NonMaximumSuppressionParameter *nms = suppression_of(layer);
    if (p->sample_size < 1)
        return ls_layer_fail(layer, error, p, "sample_size", NULL,
                             "sample_size %d must be at least 1", p->sample_size);
    if (!(nms->nms_threshold >= 0 && isfinite(nms->nms_threshold)))
        return ls_layer_fail(layer, error, nms, "nms_threshold", NULL,
                             "nms_threshold must be a number of at least 0");
    if (nms->has_top_k && (nms->top_k == 0 || nms->top_k < -1))
        return ls_layer_fail(layer, error, nms, "top_k", NULL,
                             "top_k %d must be at least 1, or -1 for all", nms->top_k);
    if (nms->has_eta)
        ls_graph_ignore(layer->graph, layer, "eta");
    if (p->nms_param != NULL && mining_of(layer) == LS_MINING_NONE)
        ls_graph_ignore(layer->graph, layer, "nms_param");
    return 0;
}

static int check_numbers(const struct ls_layer *layer, struct ls_error *error)
{
    const Lockstep__MultiBoxLossParameter *p = param_of(layer);
    const struct {
        const char *name;
        float value;
    } numbers[] = {{"loc_weight", p->loc_weight},
                   {"overlap_threshold", p->overlap_threshold},
                   {"neg_overlap", p->neg_overlap},
                   {"neg_pos_ratio", p->neg_pos_ratio}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!(isfinite(numbers[i].value) && numbers[i].value >= 0))
            return ls_layer_fail(layer, error, p, numbers[i].name, NULL,
                                 "%s must be a number of at least 0", numbers[i].name);
    if (p->background_label_id >= p->num_classes)
        return ls_layer_fail(layer, error, p, "background_label_id", NULL,
                             "background_label_id %u is none of the %u classes",
                             p->background_label_id, p->num_classes);
    return 0;
}

static void set_attributes(struct ls_layer *layer)
{
    struct ls_multibox_attr *attr = &((struct multibox *)layer->state)->attr;
    const Lockstep__MultiBoxLossParameter *p = param_of(layer);
    const Lockstep__NonMaximumSuppressionParameter *nms = suppression_of(layer);
    attr->classes = p->num_classes;
    attr->code = ls_boxes_code(p->code_type);
    attr->variance_in_target = p->encode_variance_in_target;
    attr->bipartite = p->match_type == LOCKSTEP__MULTI_BOX_LOSS_PARAMETER__MATCH_TYPE__BIPARTITE;
    attr->difficult = p->use_difficult_gt;
    attr->agnostic = p->map_object_to_agnostic;
    attr->by_class = !p->share_location;
    attr->by_place = !p->use_prior_for_matching;
    attr->within = p->ignore_cross_boundary_bbox;
    attr->inside = p->bp_inside;
    attr->mining = mining_of(layer);
    attr->sample_size = p->sample_size;
    attr->top_k = nms->has_top_k ? nms->top_k : -1;
    attr->nms_threshold = nms->nms_threshold;
    attr->suppresses_priors = p->use_prior_for_nms;
    attr->euclidean = p->loc_loss_type == LOCKSTEP__MULTI_BOX_LOSS_PARAMETER__LOC_LOSS_TYPE__L2;
    attr->logistic =
        p->conf_loss_type == LOCKSTEP__MULTI_BOX_LOSS_PARAMETER__CONF_LOSS_TYPE__LOGISTIC;
    attr->background = (int)p->background_label_id;
    attr->overlap = p->overlap_threshold;
    attr->neg_overlap = p->neg_overlap;
    attr->neg_pos_ratio = p->neg_pos_ratio;
    attr->loc_weight = p->loc_weight;
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct multibox *state = layer->state;
    const Lockstep__MultiBoxLossParameter *p = param_of(layer);
    struct ls_loss loss = {0};
    LS_TRY(ls_layer_begin(layer, error, "loss_param"));
    LS_TRY(ls_boxes_check_classes(layer, error, layer->definition->multibox_loss_param,
                                  p->has_num_classes, p->num_classes));
    LS_TRY(check_numbers(layer, error));
    LS_TRY(check_modes(layer, error));
    LS_TRY(check_mining(layer, error));
    LS_TRY(ls_loss_read(layer, &(struct ls_loss_rules){.missing = LS_NORM_VALID}, &loss, error));
    LS_TRY(ls_boxes_check(layer, error, p->num_classes, !p->share_location, &state->attr.priors));
    LS_TRY(ls_boxes_check_truths(layer, error, 3, &state->attr.objects));
    set_attributes(layer);
    state->attr.normalization = loss.attr.normalization;
    state->fixed = loss.fixed;
    return 0;
}

/* The divisor: matches are counted before the pass, or by the layer's op. */
static void set_divisor(struct ls_layer *layer)
{
    struct ls_graph *graph = layer->graph;
    struct multibox *state = layer->state;
    struct ls_multibox_attr *attr = &state->attr;
    attr->normalizer = -1;
    attr->count_offset = -1;
    if (!graph->training || attr->loss_weight == 0)
        return;
    if (attr->normalization != LS_NORM_VALID) {
        const struct ls_loss_attr same = {.normalization = attr->normalization};
        const int64_t each = attr->normalization == LS_NORM_FULL ? attr->priors : 1;
        attr->normalizer = ls_graph_normalizer(graph, &same, layer->bottom[0], each, NULL);
        if (state->fixed != 0 && !graph->failed)
            graph->normalizers[attr->normalizer].fixed = state->fixed;
        return;
    }
    if (attr->by_place || attr->mining == LS_MINING_EXAMPLES) {
        attr->normalizer = ls_graph_counted_within(graph, &attr->count_offset);
        return;
    }
    struct ls_op *op = ls_graph_op(graph, LS_OP_COUNT_MATCHES);
    ls_op_in(graph, op, layer->bottom[2]);
    ls_op_in(graph, op, layer->bottom[3]);
    int offset = 0;
    attr->normalizer = ls_graph_counted(graph, op, &offset);
    if (op == NULL)
        return;
    op->attr.multibox = *attr;
    op->attr.multibox.metric_offset = offset;
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    struct multibox *state = layer->state;
    struct ls_graph *graph = layer->graph;
    for (int i = 2; i < 4; i++)
        if (layer->bottom[i]->learned)
            return ls_layer_fail(layer, error, NULL, "bottom", "take it from data",
                                 "'%s' depends on learned parameters, so that its matches cannot "
                                 "be counted before the pass",
                                 layer->bottom[i]->name);
    state->attr.loss_weight = layer->loss_weight[0];
    state->attr.metric_offset = ls_graph_record(graph, 2);
    set_divisor(layer);
    ls_layer_make_metric(layer, 0, 0);
    const int offset = state->attr.metric_offset;
    const bool divided = state->attr.normalization != LS_NORM_NONE;
    ls_graph_metric(graph, layer, 0,
                    (struct ls_metric){.entries = 1,
                                       .offset = offset,
                                       .divisor = state->fixed,
                                       .count_offset = divided ? offset + 1 : -1});
    struct ls_op *op = ls_graph_op(graph, LS_OP_MULTIBOX_LOSS);
    for (int i = 0; i < 4; i++)
        ls_op_in(graph, op, layer->bottom[i]);
    for (int i = 0; i < 2; i++) {
        state->slope[i] = ls_layer_make_side(layer, i == 0 ? "places" : "scores", layer->bottom[i]);
        ls_op_out(graph, op, state->slope[i]);
    }
    if (op != NULL)
        op->attr.multibox = state->attr;
    if (state->attr.count_offset >= 0)
        ls_graph_share_count(graph, state->attr.normalizer);
    return 0;
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    struct multibox *state = layer->state;
    for (int i = 2; i < 4; i++)
        LS_TRY(ls_loss_check_unlearned(layer, error, i));
    for (int i = 0; i < 2; i++) {
        if (!layer->propagate[i] || layer->loss_weight[0] == 0)
            continue;
        struct ls_op *op =
            ls_layer_emit_gradient(layer, i, LS_OP_MULTIBOX_LOSS_BACKWARD, &state->slope[i], 1);
        if (op != NULL)
            op->attr.multibox = state->attr;
    }
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    const struct multibox *state = layer->state;
    const double places = ls_layer_bytes(layer->bottom[0]);
    const double scores = ls_layer_bytes(layer->bottom[1]);
    cost->forward_flops = scores / 4 * 10 + places / 4 * 4 * (double)state->attr.objects;
    cost->forward_bytes = 2 * (places + scores);
    for (int i = 0; i < 2; i++) {
        if (!ls_layer_has_gradient(layer, i))
            continue;
        cost->backward_data_flops += (i == 0 ? places : scores) / 4;
        cost->backward_bytes += 2 * (i == 0 ? places : scores);
    }
}

const struct ls_layer_type ls_layer_multibox_loss = {
    .type = "MultiBoxLoss",
    .parameter = "multibox_loss_param",
    .state_size = sizeof(struct multibox),
    .bottoms_min = 4,
    .bottoms_max = 4,
    .tops_min = 1,
    .tops_max = 1,
    .auto_tops = 1,
    .is_loss = true,
    .setup = setup,
    .forward = forward,
    .backward = backward,
    .cost = cost,
};
