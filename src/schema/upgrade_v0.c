/* V0 layers (`layers { layer { type: "conv" kernelsize: 5 } bottom: ... }`) become V1 layers. One
 * message had the fields of all types; the table says where each of them belongs, by type. A
 * "padding" layer in front of a convolution or pooling becomes its `pad`.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "schema/fields.h"
#include "schema/places.h"
#include "schema/suggest.h"
#include "schema/upgrade_fields.h"

#define TYPE(name, v1)                                                                             \
    {                                                                                              \
        name, LOCKSTEP__V1_LAYER_PARAMETER__LAYER_TYPE__##v1                                       \
    }

static const struct v0_type {
    const char *name;
    Lockstep__V1LayerParameter__LayerType v1;
} types[] = {
    TYPE("accuracy", ACCURACY),
    TYPE("bnll", BNLL),
    TYPE("concat", CONCAT),
    TYPE("conv", CONVOLUTION),
    TYPE("data", DATA),
    TYPE("dropout", DROPOUT),
    TYPE("euclidean_loss", EUCLIDEAN_LOSS),
    TYPE("flatten", FLATTEN),
    TYPE("hdf5_data", HDF5_DATA),
    TYPE("hdf5_output", HDF5_OUTPUT),
    TYPE("im2col", IM2COL),
    TYPE("images", IMAGE_DATA),
    TYPE("infogain_loss", INFOGAIN_LOSS),
    TYPE("innerproduct", INNER_PRODUCT),
    TYPE("lrn", LRN),
    TYPE("multinomial_logistic_loss", MULTINOMIAL_LOGISTIC_LOSS),
    TYPE("pool", POOLING),
    TYPE("relu", RELU),
    TYPE("sigmoid", SIGMOID),
    TYPE("softmax", SOFTMAX),
    TYPE("softmax_loss", SOFTMAX_LOSS),
    TYPE("split", SPLIT),
    TYPE("tanh", TANH),
    TYPE("window_data", WINDOW_DATA),
};
enum { TYPES = sizeof types / sizeof types[0] };

/* Where a field goes. `type` NULL: of every type; `message` NULL: into the layer itself. */
static const struct rule {
    const char *field, *type, *message, *target;
} rules[] = {
    {"name", NULL, NULL, "name"},
    {"blobs", NULL, NULL, "blobs"},
    {"blobs_lr", NULL, NULL, "blobs_lr"},
    {"weight_decay", NULL, NULL, "weight_decay"},
    {"num_output", "conv", "convolution_param", "num_output"},
    {"num_output", "innerproduct", "inner_product_param", "num_output"},
    {"biasterm", "conv", "convolution_param", "bias_term"},
    {"biasterm", "innerproduct", "inner_product_param", "bias_term"},
    {"weight_filler", "conv", "convolution_param", "weight_filler"},
    {"weight_filler", "innerproduct", "inner_product_param", "weight_filler"},
    {"bias_filler", "conv", "convolution_param", "bias_filler"},
    {"bias_filler", "innerproduct", "inner_product_param", "bias_filler"},
    {"pad", "conv", "convolution_param", "pad"},
    {"pad", "pool", "pooling_param", "pad"},
    {"kernelsize", "conv", "convolution_param", "kernel_size"},
    {"kernelsize", "pool", "pooling_param", "kernel_size"},
    {"group", "conv", "convolution_param", "group"},
    {"stride", "conv", "convolution_param", "stride"},
    {"stride", "pool", "pooling_param", "stride"},
    {"pool", "pool", "pooling_param", "pool"}, /* enums of the same numbers */
    {"dropout_ratio", "dropout", "dropout_param", "dropout_ratio"},
    {"local_size", "lrn", "lrn_param", "local_size"},
    {"alpha", "lrn", "lrn_param", "alpha"},
    {"beta", "lrn", "lrn_param", "beta"},
    {"k", "lrn", "lrn_param", "k"},
    {"source", "data", "data_param", "source"},
    {"source", "hdf5_data", "hdf5_data_param", "source"},
    {"source", "images", "image_data_param", "source"},
    {"source", "window_data", "window_data_param", "source"},
    {"source", "infogain_loss", "infogain_loss_param", "source"},
    {"scale", NULL, "transform_param", "scale"},
    {"meanfile", NULL, "transform_param", "mean_file"},
    {"cropsize", NULL, "transform_param", "crop_size"},
    {"mirror", NULL, "transform_param", "mirror"},
    {"batchsize", "data", "data_param", "batch_size"},
    {"batchsize", "hdf5_data", "hdf5_data_param", "batch_size"},
    {"batchsize", "images", "image_data_param", "batch_size"},
    {"batchsize", "window_data", "window_data_param", "batch_size"},
    {"rand_skip", "data", "data_param", "rand_skip"},
    {"rand_skip", "images", "image_data_param", "rand_skip"},
    {"shuffle_images", "images", "image_data_param", "shuffle"},
    {"new_height", "images", "image_data_param", "new_height"},
    {"new_width", "images", "image_data_param", "new_width"},
    {"concat_dim", "concat", "concat_param", "concat_dim"},
    {"det_fg_threshold", "window_data", "window_data_param", "fg_threshold"},
    {"det_bg_threshold", "window_data", "window_data_param", "bg_threshold"},
    {"det_fg_fraction", "window_data", "window_data_param", "fg_fraction"},
    {"det_context_pad", "window_data", "window_data_param", "context_pad"},
    {"det_crop_mode", "window_data", "window_data_param", "crop_mode"},
    {"hdf5_output_param", "hdf5_output", NULL, "hdf5_output_param"},
};

/* The type of a V0 layer; "" of other layers. */
static const char *type_of(const Lockstep__V1LayerParameter *layer)
{
    return layer->layer != NULL && layer->layer->type != NULL ? layer->layer->type : "";
}

/* Where a field of a layer of this type goes; NULL if such a layer has no such field. */
static const struct rule *find_rule(const char *field, const char *type)
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (strcmp(rules[i].field, field) == 0 &&
            (rules[i].type == NULL || strcmp(rules[i].type, type) == 0))
            return &rules[i];
    return NULL;
}

/* Moves one field of a V0 layer to where it belongs. */
static int move_field(struct ls_definition *definition, const ProtobufCMessage *old,
                      const char *field, const char *type, Lockstep__V1LayerParameter *layer,
                      struct ls_error *error)
{
    const struct rule *rule = find_rule(field, type);
    char place[LS_PLACE_MAX];
    if (rule == NULL)
        return ls_fail(error, LOCKSTEP_DEFINITION,
                       ls_place(definition, old, field, place, sizeof place), NULL,
                       "field '%s' means nothing for a layer of type '%s'", field, type);
    ProtobufCMessage *target = &layer->base;
    if (rule->message != NULL)
        target = ls_upgrade_child(definition, target, rule->message, old, field);
    if (target == NULL || !ls_upgrade_copy(definition, old, field, target, rule->target))
        return ls_fail_memory(error, "a definition");
    return 0;
}

/* "conv" becomes CONVOLUTION. */
static int set_type(struct ls_definition *definition, const Lockstep__V0LayerParameter *old,
                    Lockstep__V1LayerParameter *layer, struct ls_error *error)
{
    const char *names[TYPES];
    char place[LS_PLACE_MAX], meant[LS_MEANT_MAX];
    for (size_t i = 0; i < TYPES; i++) {
        names[i] = types[i].name;
        if (strcmp(names[i], old->type) == 0) {
            layer->has_type = 1;
            layer->type = types[i].v1;
            return 0;
        }
    }
    ls_did_you_mean(old->type, names, TYPES, meant);
    return ls_fail(error, LOCKSTEP_DEFINITION,
                   ls_place(definition, old, "type", place, sizeof place), NULL,
                   "unknown V0 layer type '%s'%s", old->type, meant);
}

/* Around a V0 layer nothing is known but its bottoms and tops. */
static int check_around(const struct ls_definition *definition,
                        const Lockstep__V1LayerParameter *layer, struct ls_error *error)
{
    const ProtobufCMessageDescriptor *type = layer->base.descriptor;
    char place[LS_PLACE_MAX];
    for (unsigned i = 0; i < type->n_fields; i++) {
        const char *name = type->fields[i].name;
        if (ls_field_count(&layer->base, &type->fields[i]) > 0 && strcmp(name, "layer") != 0 &&
            strcmp(name, "bottom") != 0 && strcmp(name, "top") != 0)
            return ls_fail(error, LOCKSTEP_DEFINITION,
                           ls_place(definition, layer, name, place, sizeof place), NULL,
                           "field '%s' stands beside a V0 layer, which has no such field", name);
    }
    return 0;
}

/* Makes the V1 layer that says the same; reports all fields that mean nothing. */
static int upgrade_layer(struct ls_definition *definition, const Lockstep__V1LayerParameter *old,
                         Lockstep__V1LayerParameter **out, struct ls_error *error)
{
    LS_TRY(check_around(definition, old, error));
    const Lockstep__V0LayerParameter *inner = old->layer;
    Lockstep__V1LayerParameter *layer =
        (Lockstep__V1LayerParameter *)ls_upgrade_new(definition, old->base.descriptor, &old->base);
    if (layer == NULL ||
        !ls_upgrade_copy(definition, &old->base, "bottom", &layer->base, "bottom") ||
        !ls_upgrade_copy(definition, &old->base, "top", &layer->base, "top"))
        return ls_fail_memory(error, "a definition");
    *out = layer;
    int status = 0;
    if (inner->type != NULL)
        status = set_type(definition, inner, layer, error);
    if (status != 0)
        return status;
    const ProtobufCMessageDescriptor *type = inner->base.descriptor;
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        if (ls_field_count(&inner->base, field) == 0 || strcmp(field->name, "type") == 0)
            continue;
        int found = move_field(definition, &inner->base, field->name, type_of(old), layer, error);
        status = status != 0 ? status : found;
    }
    return status;
}

/* The layer before `count` that made a blob last, or NULL. */
static const Lockstep__V1LayerParameter *maker_of(const Lockstep__NetParameter *net, size_t count,
                                                  const char *blob)
{
    for (size_t i = count; i-- > 0;)
        for (size_t k = 0; k < net->layers[i]->n_top; k++)
            if (strcmp(net->layers[i]->top[k], blob) == 0)
                return net->layers[i];
    return NULL;
}

/* Takes the padding layer in front of the index-th layer, if there is one, into its `pad`. */
static int take_padding(struct ls_definition *definition, const Lockstep__NetParameter *net,
                        size_t index, struct ls_error *error)
{
    Lockstep__V1LayerParameter *layer = net->layers[index];
    char place[LS_PLACE_MAX];
    for (size_t i = 0; i < layer->n_bottom; i++) {
        const Lockstep__V1LayerParameter *padding = maker_of(net, index, layer->bottom[i]);
        if (padding == NULL || strcmp(type_of(padding), "padding") != 0)
            continue;
        bool fits = strcmp(type_of(layer), "conv") == 0 || strcmp(type_of(layer), "pool") == 0;
        if (!fits || layer->n_bottom != 1 || padding->n_bottom != 1 || padding->n_top != 1)
            return ls_fail(error, LOCKSTEP_DEFINITION,
                           ls_place(definition, layer, NULL, place, sizeof place), NULL,
                           "a padding layer must stand between one value and one convolution or "
                           "pooling");
        layer->layer->has_pad = 1;
        layer->layer->pad = padding->layer->pad;
        layer->bottom[i] = padding->bottom[0];
    }
    return 0;
}

int ls_upgrade_v0(struct ls_definition *definition, Lockstep__NetParameter *net,
                  struct ls_error *error)
{
    int status = 0;
    size_t kept = 0;
    for (size_t i = 0; i < net->n_layers; i++)
        if (net->layers[i]->layer != NULL) {
            int found = take_padding(definition, net, i, error);
            status = status != 0 ? status : found;
        }
    if (status != 0)
        return status;
    for (size_t i = 0; i < net->n_layers; i++) {
        Lockstep__V1LayerParameter *layer = net->layers[i];
        if (strcmp(type_of(layer), "padding") == 0)
            continue;
        if (layer->layer != NULL) {
            int found = upgrade_layer(definition, layer, &layer, error);
            status = status != 0 ? status : found;
        }
        net->layers[kept++] = layer;
    }
    net->n_layers = kept;
    return status;
}
