/* What labels of dummy data must be like: they are followed to the layers that read them, and the
 * net is built without these layers, which tells the shapes of what labels are compared with.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/dummy_labels.h"

#include <string.h>

#include "base/memory.h"
#include "base/names.h"
#include "graph/build.h"
#include "ir/layer.h"

enum { BOXES = 4, BOX_ROW = 8 }; /* of a sample; numbers of a box */

/* What a layer takes a bottom as. */
enum use {
    USE_OTHER,
    USE_NOTHING, /* it reads no numbers */
    USE_PASS,    /* its tops are the same numbers, or some of them */
    USE_CLASS,   /* a class for each position of bottom 0 */
    USE_BINARY,  /* 0 or 1 for each number of bottom 0 */
    USE_TARGET,  /* a number for each number of bottom 0 */
    USE_FLAG,    /* 0 or 1 for each sample */
    USE_MARKER,  /* 0 or 1, of the shape that it has */
    USE_INDEX,   /* an index into a table */
    USE_PLACE,   /* places of which 0 is always one: pictures and corners, indices */
    USE_BOXES    /* rows of true boxes */
};

static const struct {
    const char *type;
    size_t bottom;
    enum use use;
} uses[] = {
    {"SoftmaxWithLoss", 1, USE_CLASS},
    {"MultinomialLogisticLoss", 1, USE_CLASS},
    {"HingeLoss", 1, USE_CLASS},
    {"InfogainLoss", 1, USE_CLASS},
    {"Accuracy", 1, USE_CLASS},
    {"MeanIoU", 1, USE_CLASS},
    {"LinearSoftmaxLoss", 1, USE_CLASS},
    {"SigmoidCrossEntropyLoss", 1, USE_BINARY},
    {"EuclideanLoss", 1, USE_TARGET},
    {"SmoothL1Loss", 1, USE_TARGET},
    {"ContrastiveLoss", 2, USE_FLAG},
    {"LSTM", 1, USE_MARKER},
    {"RNN", 1, USE_MARKER},
    {"GRU", 1, USE_MARKER},
    {"Embed", 0, USE_INDEX},
    {"Positions", 0, USE_INDEX},
    {"ROIPooling", 1, USE_PLACE},
    {"PSROIPooling", 1, USE_PLACE},
    {"BatchReindex", 1, USE_PLACE},
    {"Gather", 1, USE_PLACE},
    {"MultiBoxLoss", 3, USE_BOXES},
    {"DetectionEvaluate", 1, USE_BOXES},
    {"RegionLoss", 1, USE_BOXES},
    {"Yolov3", 1, USE_BOXES},
    {"EvalDetection", 1, USE_BOXES},
    {"Silence", 0, USE_NOTHING},
    {"Slice", 0, USE_PASS},
    {"Split", 0, USE_PASS},
    {"Flatten", 0, USE_PASS},
    {"Reshape", 0, USE_PASS},
};

static enum use use_of(const Lockstep__LayerParameter *layer, size_t bottom)
{
    const char *type = layer->type != NULL ? layer->type : "";
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++)
        if (strcmp(uses[i].type, type) == 0 &&
            (uses[i].bottom == bottom || uses[i].use == USE_NOTHING))
            return uses[i].use;
    return USE_OTHER;
}

/* ---- Following a top ------------------------------------------------------------------------- */

struct follower {
    const Lockstep__NetParameter *net;
    /* Told of each layer that reads the numbers; how it gets them: on the way there was a Slice. */
    void (*visit)(struct follower *follower, const Lockstep__LayerParameter *layer, enum use use,
                  const Lockstep__LayerParameter *slice);
    bool labels, others;          /* for ls_dummy_is_label */
    struct ls_dummy_label *label; /* for find_label */
    const struct ls_graph *graph;
    int64_t batch;
};

/* Goes through the layers behind number `from`. A layer that writes the name anew ends the way. */
static void follow(struct follower *follower, size_t from, const char *name,
                   const Lockstep__LayerParameter *slice, int depth)
{
    const Lockstep__NetParameter *net = follower->net;
    for (size_t i = from + 1; i < net->n_layer; i++) {
        const Lockstep__LayerParameter *layer = net->layer[i];
        bool rewritten = false;
        for (size_t b = 0; b < layer->n_bottom; b++) {
            if (strcmp(layer->bottom[b], name) != 0)
                continue;
            enum use use = use_of(layer, b);
            const bool sliced = use == USE_PASS && strcmp(layer->type, "Slice") == 0;
            if (use != USE_PASS)
                follower->visit(follower, layer, use, slice);
            for (size_t t = 0; use == USE_PASS && t < layer->n_top && depth < 8; t++)
                follow(follower, i, layer->top[t], sliced ? layer : slice, depth + 1);
        }
        for (size_t t = 0; t < layer->n_top; t++)
            rewritten = rewritten || strcmp(layer->top[t], name) == 0;
        if (rewritten)
            return;
    }
}

static void note_use(struct follower *follower, const Lockstep__LayerParameter *layer, enum use use,
                     const Lockstep__LayerParameter *slice)
{
    (void)layer, (void)slice;
    if (use == USE_OTHER)
        follower->others = true;
    else if (use != USE_NOTHING)
        follower->labels = true;
}

bool ls_dummy_is_label(const Lockstep__NetParameter *net, size_t layer, const char *name)
{
    struct follower follower = {.net = net, .visit = note_use};
    follow(&follower, layer, name, NULL, 0);
    return follower.labels && !follower.others;
}

/* ---- What they are compared with ------------------------------------------------------------- */

/* The shape of the value that a name has last, for the whole batch; false: it is not known. */
static bool find_shape(const struct follower *follower, const char *name, struct ls_shape *shape)
{
    const struct ls_value *value = NULL;
    for (size_t i = 0; follower->graph != NULL && i < follower->graph->layer_count; i++) {
        const struct ls_layer *layer = follower->graph->layers[i];
        for (int t = 0; t < layer->tops; t++)
            if (layer->top[t] != NULL && strcmp(ls_layer_top_name(layer, t), name) == 0)
                value = layer->top[t];
    }
    if (value == NULL || value->sample_axis < 0)
        return false;
    *shape = value->shape;
    shape->dim[value->sample_axis] =
        shape->dim[value->sample_axis] / follower->graph->samples * follower->batch;
    return true;
}

/* The axis of the classes. */
static int class_axis(const Lockstep__LayerParameter *layer, const struct ls_shape *shape)
{
    int axis = 1;
    if (layer->softmax_param != NULL && strcmp(layer->type, "SoftmaxWithLoss") == 0)
        axis = layer->softmax_param->axis;
    if (layer->accuracy_param != NULL && strcmp(layer->type, "Accuracy") == 0)
        axis = layer->accuracy_param->axis;
    return ls_shape_axis(shape, axis);
}

/* Labels have the shape of the scores without the axis of the classes; maps keep it, with 1. */
static void set_classes(struct ls_dummy_label *label, const struct ls_shape *scores, int axis)
{
    const int64_t classes = scores->dim[axis];
    if (label->classes == 0 || classes < label->classes)
        label->classes = classes;
    if (label->shape.rank > 0)
        return;
    const bool map = scores->rank == 4 && axis == 1;
    for (int i = 0; i < scores->rank; i++)
        if (i != axis || map)
            label->shape.dim[label->shape.rank++] = i == axis ? 1 : scores->dim[i];
}

/* How many classes a layer tells boxes apart by, that of the background included; 0: unknown. */
static int64_t box_classes(const Lockstep__LayerParameter *layer)
{
    if (layer->multibox_loss_param != NULL)
        return layer->multibox_loss_param->num_classes;
    if (layer->detection_evaluate_param != NULL)
        return layer->detection_evaluate_param->num_classes;
    if (layer->eval_detection_param != NULL)
        return (int64_t)layer->eval_detection_param->num_class + 1;
    if (layer->yolov3_param != NULL)
        return (int64_t)layer->yolov3_param->num_class + 1;
    return layer->region_loss_param != NULL ? (int64_t)layer->region_loss_param->num_class + 1 : 0;
}

static void describe_boxes(struct follower *follower, const Lockstep__LayerParameter *layer)
{
    struct ls_dummy_label *label = follower->label;
    const int64_t classes = box_classes(layer);
    label->boxes = true;
    if (classes > 0 && (label->classes == 0 || classes < label->classes))
        label->classes = classes;
    if (label->shape.rank == 0)
        label->shape = (struct ls_shape){4, {follower->batch, 1, BOXES, BOX_ROW}};
}

/* Labels lie along the axes in front of those that a LinearSoftmaxLoss multiplies. */
static void describe_linear(struct follower *follower,
                            const Lockstep__LinearSoftmaxLossParameter *param, const char *bottom)
{
    struct ls_dummy_label *label = follower->label;
    struct ls_shape multiplied = {0};
    if (label->classes == 0 || param->num_output < label->classes)
        label->classes = param->num_output;
    if (label->shape.rank > 0 || !find_shape(follower, bottom, &multiplied))
        return;
    const int axis = ls_shape_axis(&multiplied, param->axis);
    for (int i = 0; i < axis; i++)
        label->shape.dim[label->shape.rank++] = multiplied.dim[i];
}

static void describe(struct follower *follower, const Lockstep__LayerParameter *layer, enum use use,
                     const Lockstep__LayerParameter *slice)
{
    struct ls_dummy_label *label = follower->label;
    struct ls_shape compared = {0};
    if (use == USE_INDEX && layer->embed_param != NULL && layer->embed_param->input_dim > 0)
        label->classes = layer->embed_param->input_dim;
    if (use == USE_PLACE)
        label->classes = 1;
    if (use == USE_FLAG || use == USE_MARKER || use == USE_BINARY)
        label->classes = 2;
    if (slice != NULL && label->shape.rank == 0)
        label->shape = (struct ls_shape){2, {follower->batch, (int64_t)slice->n_top}};
    if (use == USE_CLASS &&
        layer->linear_softmax_loss_param != NULL) { /* what it reads are no scores yet */
        describe_linear(follower, layer->linear_softmax_loss_param, layer->bottom[0]);
        return;
    }
    if (use == USE_BOXES) {
        describe_boxes(follower, layer);
        return;
    }
    if (layer->n_bottom == 0 || !find_shape(follower, layer->bottom[0], &compared))
        return;
    const int axis = use == USE_CLASS ? class_axis(layer, &compared) : -1;
    if (axis >= 0)
        set_classes(label, &compared, axis);
    else if ((use == USE_BINARY || use == USE_TARGET) && label->shape.rank == 0)
        label->shape = compared;
}

/* The layers that do not depend on a label. */
static size_t leave_out(const Lockstep__NetParameter *net, const struct ls_dummy_label *labels,
                        size_t count, Lockstep__LayerParameter **left)
{
    struct ls_names names = {0};
    size_t kept = 0, ignored;
    bool full = true;
    for (size_t i = 0; i < count; i++)
        if (!labels[i].settled)
            full = ls_names_set(&names, labels[i].name, i) && full;
    for (size_t i = 0; i < net->n_layer && full; i++) {
        Lockstep__LayerParameter *layer = net->layer[i];
        bool depends = false;
        for (size_t b = 0; b < layer->n_bottom; b++)
            depends = depends || ls_names_find(&names, layer->bottom[b], &ignored);
        for (size_t t = 0; depends && t < layer->n_top; t++)
            full = ls_names_set(&names, layer->top[t], i) && full;
        if (!depends)
            left[kept++] = layer;
    }
    ls_names_free(&names);
    return full ? kept : 0;
}

/* The graph of one sample of a net, or of a whole batch, which layers may mix. What is wrong with
 * it is said when the net is opened. */
static struct ls_graph *build(const struct ls_net_definition *definition,
                              struct ls_parameter_set *parameters, int64_t batch, bool whole)
{
    struct ls_graph *graph = NULL;
    const struct ls_source_shapes sources = {.batch = batch};
    const struct ls_graph_options options = {.net = definition,
                                             .phase = (int)definition->net->state->phase,
                                             .samples = whole ? batch : 1,
                                             .whole = whole,
                                             .update_samples = batch,
                                             .seed = 1,
                                             .parameters = parameters,
                                             .sources = &sources};
    return ls_graph_build(&options, &graph, NULL) == 0 ? graph : NULL;
}

bool ls_dummy_find_labels(const struct ls_net_definition *definition, int64_t batch,
                          struct ls_dummy_label *labels, size_t count)
{
    const Lockstep__NetParameter *net = definition->net;
    Lockstep__NetParameter less = *net;
    struct ls_net_definition rest = *definition;
    struct ls_parameter_set *parameters = ls_parameter_set_new();
    less.layer = ls_alloc(net->n_layer + 1, sizeof *less.layer);
    struct ls_graph *graph = NULL;
    if (less.layer != NULL && parameters != NULL) {
        less.n_layer = leave_out(net, labels, count, less.layer);
        rest.net = &less;
        graph = build(&rest, parameters, batch, false);
        if (graph == NULL)
            graph = build(&rest, parameters, batch, true);
    }
    for (size_t i = 0; i < count; i++) { /* without a graph there are classes, but no shapes */
        if (labels[i].settled)
            continue;
        struct follower follower = {
            .net = net, .visit = describe, .label = &labels[i], .graph = graph, .batch = batch};
        follow(&follower, labels[i].layer, labels[i].name, NULL, 0);
    }
    const bool fits = graph != NULL;
    ls_graph_free(graph);
    ls_parameter_set_free(parameters);
    ls_free(less.layer);
    return fits;
}
