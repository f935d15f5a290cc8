/* V1 layers (`layers { type: CONVOLUTION blobs_lr: 1 }`) become layers: types get names, lists of
 * numbers become one `param` for each parameter, all else keeps its name.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "schema/fields.h"
#include "schema/places.h"
#include "schema/upgrade_fields.h"

#define TYPE(v1, name)                                                                             \
    {                                                                                              \
        LOCKSTEP__V1_LAYER_PARAMETER__LAYER_TYPE__##v1, name                                       \
    }

static const struct {
    Lockstep__V1LayerParameter__LayerType v1;
    const char *name;
} types[] = {
    TYPE(NONE, ""),
    TYPE(ABSVAL, "AbsVal"),
    TYPE(ACCURACY, "Accuracy"),
    TYPE(ARGMAX, "ArgMax"),
    TYPE(BNLL, "BNLL"),
    TYPE(CONCAT, "Concat"),
    TYPE(CONTRASTIVE_LOSS, "ContrastiveLoss"),
    TYPE(CONVOLUTION, "Convolution"),
    TYPE(DATA, "Data"),
    TYPE(DECONVOLUTION, "Deconvolution"),
    TYPE(DROPOUT, "Dropout"),
    TYPE(DUMMY_DATA, "DummyData"),
    TYPE(EUCLIDEAN_LOSS, "EuclideanLoss"),
    TYPE(ELTWISE, "Eltwise"),
    TYPE(EXP, "Exp"),
    TYPE(FLATTEN, "Flatten"),
    TYPE(HDF5_DATA, "HDF5Data"),
    TYPE(HDF5_OUTPUT, "HDF5Output"),
    TYPE(HINGE_LOSS, "HingeLoss"),
    TYPE(IM2COL, "Im2col"),
    TYPE(IMAGE_DATA, "ImageData"),
    TYPE(INFOGAIN_LOSS, "InfogainLoss"),
    TYPE(INNER_PRODUCT, "InnerProduct"),
    TYPE(LRN, "LRN"),
    TYPE(MEMORY_DATA, "MemoryData"),
    TYPE(MULTINOMIAL_LOGISTIC_LOSS, "MultinomialLogisticLoss"),
    TYPE(MVN, "MVN"),
    TYPE(POOLING, "Pooling"),
    TYPE(POWER, "Power"),
    TYPE(RELU, "ReLU"),
    TYPE(SIGMOID, "Sigmoid"),
    TYPE(SIGMOID_CROSS_ENTROPY_LOSS, "SigmoidCrossEntropyLoss"),
    TYPE(SILENCE, "Silence"),
    TYPE(SOFTMAX, "Softmax"),
    TYPE(SOFTMAX_LOSS, "SoftmaxWithLoss"),
    TYPE(SPLIT, "Split"),
    TYPE(SLICE, "Slice"),
    TYPE(TANH, "TanH"),
    TYPE(WINDOW_DATA, "WindowData"),
    TYPE(THRESHOLD, "Threshold"),
};

/* The enum's value becomes a name, with its place. */
static bool set_type(struct ls_definition *definition, const Lockstep__V1LayerParameter *old,
                     Lockstep__LayerParameter *layer)
{
    const ProtobufCFieldDescriptor *from = ls_field_named(old->base.descriptor, "type");
    const ProtobufCFieldDescriptor *to = ls_field_named(layer->base.descriptor, "type");
    if (!old->has_type)
        return true;
    const char *name = ""; /* readers let no other values through */
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (types[i].v1 == old->type)
            name = types[i].name;
    layer->type = ls_arena_copy_string(definition->arena, name);
    return layer->type != NULL &&
           ls_places_copy(definition->places, old, from->id, 0, layer, to->id, 0);
}

/* The index-th value of a list of the V1 layer becomes a field of a ParamSpec. */
static bool set_spec(struct ls_definition *definition, const Lockstep__V1LayerParameter *old,
                     const char *list, size_t index, Lockstep__ParamSpec *spec, const char *name)
{
    const ProtobufCFieldDescriptor *from = ls_field_named(old->base.descriptor, list);
    const ProtobufCFieldDescriptor *to = ls_field_named(spec->base.descriptor, name);
    if (index >= ls_field_count(&old->base, from))
        return true;
    return ls_field_put(definition->arena, &spec->base, to, ls_field_at(&old->base, from, index)) &&
           ls_places_copy(definition->places, old, from->id, (uint32_t)index, spec, to->id, 0);
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* The i-th values of four lists, any of which may be shorter, make the i-th `param`. */
static bool set_specs(struct ls_definition *definition, const Lockstep__V1LayerParameter *old,
                      Lockstep__LayerParameter *layer)
{
    const ProtobufCFieldDescriptor *to = ls_field_named(layer->base.descriptor, "param");
    size_t count = larger(larger(old->n_param, old->n_blob_share_mode),
                          larger(old->n_blobs_lr, old->n_weight_decay));
    for (size_t i = 0; i < count; i++) {
        Lockstep__ParamSpec *spec = (Lockstep__ParamSpec *)ls_upgrade_new(
            definition, &lockstep__param_spec__descriptor, &old->base);
        if (spec == NULL || !ls_field_put(definition->arena, &layer->base, to, &spec) ||
            !set_spec(definition, old, "param", i, spec, "name") ||
            !set_spec(definition, old, "blob_share_mode", i, spec, "share_mode") ||
            !set_spec(definition, old, "blobs_lr", i, spec, "lr_mult") ||
            !set_spec(definition, old, "weight_decay", i, spec, "decay_mult"))
            return false;
    }
    return true;
}

/* Fields whose values have another form in a layer. */
static bool is_special(const char *name)
{
    static const char *const names[] = {"type",     "param",        "blob_share_mode",
                                        "blobs_lr", "weight_decay", "layer"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* All fields that did not change have the same name in both messages. */
static bool upgrade_layer(struct ls_definition *definition, const Lockstep__V1LayerParameter *old,
                          Lockstep__LayerParameter *layer)
{
    const ProtobufCMessageDescriptor *type = old->base.descriptor;
    for (unsigned i = 0; i < type->n_fields; i++) {
        const char *name = type->fields[i].name;
        if (!is_special(name) && !ls_upgrade_copy(definition, &old->base, name, &layer->base, name))
            return false;
    }
    if (ls_definition_is_damaged(definition, old) &&
        !ls_places_copy(definition->places, old, LS_FIELD_DAMAGED, 0, layer, LS_FIELD_DAMAGED, 0))
        return false;
    return set_type(definition, old, layer) && set_specs(definition, old, layer);
}

int ls_upgrade_v1(struct ls_definition *definition, Lockstep__NetParameter *net,
                  struct ls_error *error)
{
    char place[LS_PLACE_MAX];
    if (net->n_layers == 0)
        return 0;
    if (net->n_layer > 0)
        return ls_fail(error, LOCKSTEP_DEFINITION,
                       ls_place(definition, net, "layers", place, sizeof place),
                       "write all of them as layer { type: \"Name\" ... }",
                       "a net has either 'layer' or the older 'layers', not both");
    const ProtobufCFieldDescriptor *to = ls_field_named(net->base.descriptor, "layer");
    for (size_t i = 0; i < net->n_layers; i++) {
        Lockstep__LayerParameter *layer = (Lockstep__LayerParameter *)ls_upgrade_new(
            definition, &lockstep__layer_parameter__descriptor, &net->layers[i]->base);
        if (layer == NULL || !ls_field_put(definition->arena, &net->base, to, &layer) ||
            !upgrade_layer(definition, net->layers[i], layer))
            return ls_fail_memory(error, "a definition");
    }
    net->n_layers = 0;
    net->layers = NULL;
    return 0;
}
