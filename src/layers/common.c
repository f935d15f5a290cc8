/* What several layer types share. See layers/common.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/common.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

enum { PARAMETER_FIRST = 100 }; /* number of the first parameter message of LayerParameter */

const Lockstep__FillerParameter ls_filler_one = {
    PROTOBUF_C_MESSAGE_INIT(&lockstep__filler_parameter__descriptor),
    .type = lockstep__filler_parameter__type__default_value, /* "constant" */
    .has_value = 1,
    .value = 1,
    .max = 1,
    .std = 1,
    .sparse = -1,
};

static bool is_parameter_message(const ProtobufCFieldDescriptor *field)
{
    return field->id >= PARAMETER_FIRST && field->type == PROTOBUF_C_TYPE_MESSAGE &&
           field->label == PROTOBUF_C_LABEL_OPTIONAL;
}

/* Whether a name is one of several, with spaces in between. */
static bool is_word_of(const char *words, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = words; at != NULL && *at != '\0';) {
        const size_t word = strcspn(at, " ");
        if (word == length && memcmp(at, name, length) == 0)
            return true;
        at += word + (at[word] == ' ');
    }
    return false;
}

/* What a parameter message of another type says is ignored, as in Caffe, but not in silence. */
int ls_layer_begin(const struct ls_layer *layer, struct ls_error *error, const char *also)
{
    const ProtobufCMessageDescriptor *descriptor = layer->definition->base.descriptor;
    (void)error;
    for (unsigned i = 0; i < descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &descriptor->fields[i];
        if (!is_parameter_message(field))
            continue;
        const char *start = (const char *)layer->definition + field->offset;
        const void *message = *(const void *const *)start;
        bool mine =
            layer->type->parameter != NULL && strcmp(field->name, layer->type->parameter) == 0;
        mine |= is_word_of(also, field->name);
        if (message != NULL && !mine)
            ls_graph_ignore(layer->graph, layer, field->name);
    }
    return 0;
}

int ls_layer_check_shape(const struct ls_layer *layer, struct ls_error *error, const char *what,
                         const struct ls_shape *shape)
{
    if (ls_shape_valid(shape, false))
        return 0;
    if (shape->rank > LS_RANK_MAX)
        return ls_layer_fail(layer, error, NULL, NULL, NULL,
                             "%s would have %d axes; at most %d are possible", what, shape->rank,
                             LS_RANK_MAX);
    char dims[160] = "";
    size_t used = 0;
    for (int i = 0; i < shape->rank && used < sizeof dims; i++)
        used += (size_t)snprintf(dims + used, sizeof dims - used, "%s%lld", i > 0 ? " x " : "",
                                 (long long)shape->dim[i]);
    return ls_layer_fail(layer, error, NULL, NULL, NULL,
                         "%s would be %s, which is empty or larger than a tensor may be", what,
                         dims);
}

int ls_layer_fail_shape(const struct ls_layer *layer, struct ls_error *error, int bottom,
                        const char *wanted)
{
    char text[160];
    return ls_layer_fail(layer, error, NULL, "bottom", NULL, "its bottom '%s' must %s, but is %s",
                         layer->bottom[bottom]->name, wanted,
                         ls_shape_text(&layer->bottom[bottom]->shape, text, sizeof text));
}

int ls_layer_check_planes(const struct ls_layer *layer, struct ls_error *error, int bottom)
{
    if (layer->bottom[bottom]->shape.rank == 4)
        return 0;
    return ls_layer_fail_shape(layer, error, bottom,
                               "have 4 axes (samples, channels, height, width)");
}

/* A value without samples, among layers that may mix them: its rows are those of the batch. */
static bool adopt(const struct ls_layer *layer, struct ls_value *value)
{
    if (value->sample_axis >= 0 || value->shape.rank < 1 || !ls_layer_mix(layer))
        return false;
    value->sample_axis = 0;
    value->rows = value->shape.dim[0];
    return true;
}

int ls_layer_check_samples(const struct ls_layer *layer, struct ls_error *error, int bottom)
{
    struct ls_value *value = layer->bottom[bottom];
    if (value->sample_axis == 0 || adopt(layer, value))
        return 0;
    return ls_layer_fail(layer, error, NULL, "bottom", NULL,
                         "axis 0 of its bottom '%s' does not hold the samples of the batch",
                         value->name);
}

int ls_layer_check_channels(const struct ls_layer *layer, struct ls_error *error)
{
    const struct ls_value *x = layer->bottom[0];
    char text[160];
    LS_TRY(ls_layer_check_samples(layer, error, 0));
    if (x->shape.rank >= 2)
        return 0;
    return ls_layer_fail(layer, error, NULL, "bottom", NULL,
                         "its bottom '%s' must have at least 2 axes (samples, channels), but is %s",
                         x->name, ls_shape_text(&x->shape, text, sizeof text));
}

int ls_layer_check_eps(const struct ls_layer *layer, struct ls_error *error, const void *message,
                       float eps)
{
    if (isfinite(eps) && eps >= FLT_MIN)
        return 0;
    return ls_layer_fail(layer, error, message, "eps", "1e-5 is usual",
                         "eps %g must be a number above 0: values that are all equal are divided "
                         "by it",
                         (double)eps);
}

/* "samples along axis 0, of 3 rows each" */
static const char *samples_text(const struct ls_value *value, char *buffer, size_t size)
{
    if (value->sample_axis < 0)
        snprintf(buffer, size, "no samples");
    else
        snprintf(buffer, size, "samples along axis %d, of %lld row%s each", value->sample_axis,
                 (long long)value->rows, value->rows == 1 ? "" : "s");
    return buffer;
}

/* Whether two values may be taken row by row although their samples do not lie alike: samples were
 * mixed in one of them, or must be. Samples along two different axes are a mistake all the same. */
static bool may_mix(const struct ls_layer *layer, struct ls_value *first, struct ls_value *other)
{
    bool adopted = adopt(layer, first);
    adopted |= adopt(layer, other);
    return adopted || ls_layer_is_mixed(layer, first) || ls_layer_is_mixed(layer, other);
}

int ls_layer_check_tf32(const struct ls_layer *layer, struct ls_error *error, bool portable)
{
    if (!portable || !layer->tf32)
        return 0;
    return ls_layer_fail(layer, error, NULL, "precision", "algorithm: AUTO, or precision: FP32",
                         "the sums of PORTABLE are declared in fp32: they cannot be in TF32");
}

int ls_layer_check_alike(const struct ls_layer *layer, struct ls_error *error, int bottom)
{
    struct ls_value *first = layer->bottom[0], *other = layer->bottom[bottom];
    char a[100], b[100];
    if (first->sample_axis == other->sample_axis && first->rows == other->rows)
        return 0;
    if (may_mix(layer, first, other))
        return 0;
    return ls_layer_fail(layer, error, NULL, "bottom", "a Reshape layer can bring them in line",
                         "the samples of its bottoms must lie in the same way, but '%s' has %s and "
                         "'%s' has %s",
                         first->name, samples_text(first, a, sizeof a), other->name,
                         samples_text(other, b, sizeof b));
}

int ls_layer_check_belongs(const struct ls_layer *layer, struct ls_error *error, int bottom)
{
    if (layer->bottom[bottom]->sample_axis >= 0 || adopt(layer, layer->bottom[bottom]))
        return 0;
    return ls_layer_fail(layer, error, NULL, "bottom", NULL,
                         "no axis of its bottom '%s' holds the samples of the batch",
                         layer->bottom[bottom]->name);
}

/* What to write where classes are the last axis, and another one was taken for theirs. */
static const char *last_axis_hint(const struct ls_layer *layer)
{
    const char *type = layer->type->type;
    if (strcmp(type, "SoftmaxWithLoss") == 0)
        return "softmax_param { axis: -1 } says that the classes are the last axis";
    if (strcmp(type, "Accuracy") == 0)
        return "accuracy_param { axis: -1 } says that the classes are the last axis";
    return "axis: -1 says that the classes are the last axis";
}

/* A position is an index in front of the axis of samples, a sample, and an index behind it: labels
 * belong to the same ones where there are as many of each. */
int ls_layer_check_positions(const struct ls_layer *layer, struct ls_error *error, int axis)
{
    const struct ls_value *x = layer->bottom[0], *label = layer->bottom[1];
    int64_t positions = ls_shape_size(&x->shape) / x->shape.dim[axis];
    const bool last =
        ls_shape_size(&x->shape) / x->shape.dim[x->shape.rank - 1] == ls_shape_size(&label->shape);
    char a[100], b[100];
    LS_TRY(ls_layer_check_belongs(layer, error, 0));
    LS_TRY(ls_layer_check_belongs(layer, error, 1));
    if (positions != ls_shape_size(&label->shape))
        return ls_layer_fail(layer, error, NULL, "bottom", last ? last_axis_hint(layer) : NULL,
                             "'%s' has %lld labels, but '%s' has %lld positions to label (all its "
                             "axes but axis %d, the classes)",
                             label->name, (long long)ls_shape_size(&label->shape), x->name,
                             (long long)positions, axis);
    if (ls_shape_count(&x->shape, 0, x->sample_axis) ==
            ls_shape_count(&label->shape, 0, label->sample_axis) ||
        ls_layer_is_mixed(layer, x) || ls_layer_is_mixed(layer, label))
        return 0;
    return ls_layer_fail(layer, error, NULL, "bottom", "a Reshape layer can bring them in line",
                         "labels must lie as the positions that they are for, but '%s' has %s and "
                         "'%s' has %s",
                         x->name, samples_text(x, a, sizeof a), label->name,
                         samples_text(label, b, sizeof b));
}

struct ls_value *ls_layer_make_top(struct ls_layer *layer, int top, const struct ls_shape *shape,
                                   const struct ls_value *like)
{
    layer->top[top] = ls_graph_value(layer->graph, ls_layer_top_name(layer, top), shape, like);
    return layer->top[top];
}

struct ls_value *ls_layer_make_side(struct ls_layer *layer, const char *suffix,
                                    const struct ls_value *like)
{
    if (like == NULL)
        return NULL;
    struct ls_text name = {0};
    struct ls_value *value = NULL;
    ls_text_format(&name, "%s.%s", layer->name, suffix);
    if (name.failed)
        layer->graph->failed = true;
    else
        value = ls_graph_value(layer->graph, name.data, &like->shape, like);
    ls_text_free(&name);
    return value;
}

void ls_layer_make_metric(struct ls_layer *layer, int top, int64_t entries)
{
    struct ls_shape shape = {.rank = entries > 0 ? 1 : 0, .dim = {entries}};
    struct ls_value *value = ls_layer_make_top(layer, top, &shape, NULL);
    if (value != NULL)
        value->storage = LS_STORE_NONE;
}

void ls_layer_pass(struct ls_layer *layer, int bottom, int top)
{
    const Lockstep__LayerParameter *definition = layer->definition;
    struct ls_value *value = layer->bottom[bottom];
    bool stopped =
        definition->n_propagate_down > (size_t)bottom && !definition->propagate_down[bottom];
    if (!stopped) {
        layer->top[top] = value;
        return;
    }
    struct ls_value *copy = ls_layer_make_top(layer, top, &value->shape, value);
    struct ls_op *op = ls_graph_op(layer->graph, LS_OP_VIEW);
    ls_op_in(layer->graph, op, value);
    ls_op_out(layer->graph, op, copy);
}

struct ls_op *ls_layer_emit_top(struct ls_layer *layer, enum ls_op_kind kind,
                                const struct ls_shape *shape)
{
    struct ls_value *x = layer->bottom[0];
    struct ls_value *y = ls_layer_make_top(layer, 0, shape, x);
    struct ls_op *op = ls_graph_op(layer->graph, kind);
    ls_op_in(layer->graph, op, x);
    ls_op_out(layer->graph, op, y);
    return op;
}

struct ls_op *ls_layer_emit_map(struct ls_layer *layer, enum ls_op_kind kind)
{
    return ls_layer_emit_top(layer, kind, &layer->bottom[0]->shape);
}

void ls_layer_emit_view(struct ls_layer *layer, const struct ls_shape *shape, int sample_axis,
                        int64_t rows)
{
    ls_layer_emit_top(layer, LS_OP_VIEW, shape);
    if (layer->top[0] == NULL)
        return;
    layer->top[0]->sample_axis = sample_axis;
    layer->top[0]->rows = rows;
}

int ls_layer_view_backward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    ls_layer_emit_back(layer, LS_OP_VIEW);
    return 0;
}

struct ls_op *ls_layer_emit_gradient(struct ls_layer *layer, int bottom, enum ls_op_kind kind,
                                     struct ls_value *const *inputs, int count)
{
    struct ls_graph *graph = layer->graph;
    struct ls_value *dx = ls_graph_gradient_value(graph, layer->bottom[bottom]);
    struct ls_op *op = ls_graph_op(graph, kind);
    for (int i = 0; i < count; i++)
        ls_op_in(graph, op, inputs[i]);
    ls_op_out(graph, op, dx);
    ls_graph_add_gradient(graph, layer->bottom[bottom], dx);
    return op;
}

struct ls_op *ls_layer_emit_back(struct ls_layer *layer, enum ls_op_kind kind)
{
    if (!layer->propagate[0] || layer->top[0] == layer->bottom[0])
        return NULL;
    struct ls_value *dy = ls_graph_gradient(layer->graph, layer->top[0]);
    return ls_layer_emit_gradient(layer, 0, kind, &dy, 1);
}

/* ---- Cost ------------------------------------------------------------------------------------ */

static bool has_backward(const struct ls_layer *layer)
{
    if (!layer->graph->training)
        return false;
    bool reached = ls_layer_is_loss(layer);
    for (int i = 0; i < layer->tops; i++)
        reached |= ls_graph_gradient(layer->graph, layer->top[i]) != NULL;
    return reached;
}

bool ls_layer_has_gradient(const struct ls_layer *layer, int bottom)
{
    return has_backward(layer) && layer->propagate[bottom];
}

bool ls_layer_trains_blob(const struct ls_layer *layer, int blob)
{
    return blob < layer->blobs && has_backward(layer) && layer->train_blob[blob];
}

double ls_layer_bytes(const struct ls_value *value)
{
    if (value == NULL || value->storage == LS_STORE_NONE)
        return 0;
    return (double)ls_layout_bytes(&ls_layout_plain, &value->shape, value->type);
}

void ls_layer_map_cost(const struct ls_layer *layer, struct ls_cost *cost, double forward,
                       double backward, int saved)
{
    double elements = (double)ls_shape_size(&layer->bottom[0]->shape);
    cost->forward_flops = forward * elements;
    cost->forward_bytes = 2 * ls_layer_bytes(layer->bottom[0]);
    if (!ls_layer_has_gradient(layer, 0))
        return;
    cost->backward_data_flops = backward * elements;
    cost->backward_bytes = (2 + saved) * ls_layer_bytes(layer->bottom[0]);
}
