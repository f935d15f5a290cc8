/* Layers that bring data, in the terms of Data and Input; see the header.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "schema/data_layers.h"

#include <string.h>

#include "schema/fields.h"
#include "schema/places.h"
#include "schema/upgrade_fields.h"

/* Fields of a type's own message, and what they are in data_param. */
struct moved_field {
    const char *from, *to;
};

static const struct moved_field image_fields[] = {
    {"source", "source"},     {"batch_size", "batch_size"},   {"rand_skip", "rand_skip"},
    {"shuffle", "shuffle"},   {"new_height", "new_height"},   {"new_width", "new_width"},
    {"is_color", "is_color"}, {"root_folder", "root_folder"}, {NULL, NULL},
};

static const struct moved_field hdf5_fields[] = {
    {"source", "source"},
    {"batch_size", "batch_size"},
    {"shuffle", "shuffle"},
    {NULL, NULL},
};

static const struct moved_field window_fields[] = {
    {"source", "source"},
    {"batch_size", "batch_size"},
    {"cache_images", "cache"},
    {"root_folder", "root_folder"},
    {NULL, NULL},
};

/* Types that read data sets. */
static const struct data_type {
    const char *type, *parameter;
    int backend;
    const struct moved_field *fields;
    bool interpolates; /* pictures are resized as OpenCV does it */
    bool names_tops;   /* a top gets what is called as it */
    bool cuts_windows; /* crop_size and the mean belong to cutting windows out */
    int batch;         /* if none is given; 0: one must be */
} data_types[] = {
    {.type = "HDF5Data",
     .parameter = "hdf5_data_param",
     .backend = LOCKSTEP__DATA_PARAMETER__DB__HDF5,
     .fields = hdf5_fields,
     .names_tops = true},
    {.type = "ImageData",
     .parameter = "image_data_param",
     .backend = LOCKSTEP__DATA_PARAMETER__DB__IMAGES,
     .fields = image_fields,
     .interpolates = true,
     .batch = 1},
    {.type = "WindowData",
     .parameter = "window_data_param",
     .backend = LOCKSTEP__DATA_PARAMETER__DB__WINDOWS,
     .fields = window_fields,
     .cuts_windows = true},
};
enum { DATA_TYPES = sizeof data_types / sizeof data_types[0] };

static bool is_type(const Lockstep__LayerParameter *layer, const char *type)
{
    return layer->type != NULL && strcmp(layer->type, type) == 0;
}

static const struct data_type *find_type(const Lockstep__LayerParameter *layer)
{
    for (size_t i = 0; i < DATA_TYPES; i++)
        if (is_type(layer, data_types[i].type))
            return &data_types[i];
    return NULL;
}

bool ls_data_layer_reads(const Lockstep__LayerParameter *layer)
{
    return is_type(layer, "Data") || is_type(layer, "AnnotatedData") || find_type(layer) != NULL;
}

bool ls_data_layer_takes_input(const Lockstep__LayerParameter *layer)
{
    return is_type(layer, "Input") || is_type(layer, "MemoryData");
}

/* The message of a type's own, which the layer need not have. */
static ProtobufCMessage *own_message(Lockstep__LayerParameter *layer, const char *name)
{
    const ProtobufCFieldDescriptor *field = ls_field_named(layer->base.descriptor, name);
    if (ls_field_count(&layer->base, field) == 0)
        return NULL;
    return *(ProtobufCMessage *const *)ls_field_at(&layer->base, field, 0);
}

/* A new message in place of the layer's `name`, with the fields that were there and the place of
 * `origin` (NULL: of what was there). */
static ProtobufCMessage *renew(struct ls_definition *definition, Lockstep__LayerParameter *layer,
                               const char *name, const ProtobufCMessage *origin)
{
    const ProtobufCFieldDescriptor *field = ls_field_named(layer->base.descriptor, name);
    const ProtobufCMessage *before = own_message(layer, name);
    if (origin == NULL)
        origin = before != NULL ? before : &layer->base;
    ProtobufCMessage *made = ls_upgrade_new(definition, field->descriptor, origin);
    for (unsigned i = 0; made != NULL && before != NULL && i < made->descriptor->n_fields; i++) {
        const char *inner = made->descriptor->fields[i].name;
        if (!ls_upgrade_copy(definition, before, inner, made, inner))
            return NULL;
    }
    ls_field_clear(&layer->base, field);
    if (made == NULL || !ls_field_put(definition->arena, &layer->base, field, &made) ||
        !ls_places_copy(definition->places, origin, LS_FIELD_NONE, 0, layer, field->id, 0))
        return NULL;
    return made;
}

static int refuse_twice(const struct ls_definition *definition,
                        const Lockstep__LayerParameter *layer, const char *parameter,
                        const ProtobufCMessage *data, const char *field, struct ls_error *error)
{
    char place[LS_PLACE_MAX];
    ls_place(definition, data, field, place, sizeof place);
    return ls_fail(error, LOCKSTEP_DEFINITION, place,
                   "in such a layer data_param is for what Caffe does not have: cache, "
                   "on_bad_record, prefetch, split",
                   "layer '%.100s': data_param has %s, which is %s's here",
                   layer->name != NULL ? layer->name : "", field, parameter);
}

/* Moves the fields of the type's own message to data_param. */
static int move_fields(struct ls_definition *definition, const Lockstep__LayerParameter *layer,
                       const struct data_type *type, const ProtobufCMessage *own,
                       ProtobufCMessage *data, struct ls_error *error)
{
    int status = 0;
    for (const struct moved_field *f = type->fields; f->from != NULL; f++) {
        if (ls_upgrade_is_set(data, f->to))
            status = refuse_twice(definition, layer, type->parameter, data, f->to, error);
        else if (own != NULL && !ls_upgrade_copy(definition, own, f->from, data, f->to))
            return ls_fail_memory(error, "a definition");
    }
    if (ls_upgrade_is_set(data, "backend"))
        status = refuse_twice(definition, layer, type->parameter, data, "backend", error);
    return status;
}

/* Gives each top a tensor of its name; types that stand in data_param stay. */
static bool name_tensors(struct ls_definition *definition, const Lockstep__LayerParameter *layer,
                         Lockstep__DataParameter *data)
{
    const ProtobufCFieldDescriptor *field = ls_field_named(data->base.descriptor, "tensor");
    for (size_t i = 0; i < layer->n_top; i++) {
        Lockstep__DataTensor *tensor =
            (Lockstep__DataTensor *)ls_upgrade_new(definition, field->descriptor, &data->base);
        if (tensor == NULL)
            return false;
        if (i < data->n_tensor) {
            *tensor = *data->tensor[i];
            if (tensor->name == NULL)
                tensor->name = layer->top[i];
            data->tensor[i] = tensor;
            continue;
        }
        tensor->name = layer->top[i];
        if (!ls_field_put(definition->arena, &data->base, field, &tensor))
            return false;
    }
    return true;
}

/* Moves crop_size and the mean from transform_param to what cuts windows out, which does without
 * the fields that data_param has. Windows are drawn in any order. */
static bool move_windows(struct ls_definition *definition, Lockstep__LayerParameter *layer,
                         Lockstep__DataParameter *data)
{
    static const char *const fields[] = {"crop_size", "mean_file", "mean_value"};
    ProtobufCMessage *windows = renew(definition, layer, "window_data_param", NULL);
    ProtobufCMessage *transform =
        layer->transform_param != NULL ? renew(definition, layer, "transform_param", NULL) : NULL;
    if (windows == NULL || (layer->transform_param != NULL && transform == NULL))
        return false;
    for (const struct moved_field *f = window_fields; f->from != NULL; f++)
        ls_field_clear(windows, ls_field_named(windows->descriptor, f->from));
    for (size_t i = 0; transform != NULL && i < sizeof fields / sizeof fields[0]; i++) {
        if (!ls_upgrade_copy(definition, transform, fields[i], windows, fields[i]))
            return false;
        ls_field_clear(transform, ls_field_named(transform->descriptor, fields[i]));
    }
    if (!data->has_shuffle)
        data->has_shuffle = data->shuffle = 1;
    return true;
}

static int complete_data(struct ls_definition *definition, Lockstep__LayerParameter *layer,
                         const struct data_type *type, struct ls_error *error)
{
    const ProtobufCMessage *own = own_message(layer, type->parameter);
    Lockstep__DataParameter *data =
        (Lockstep__DataParameter *)renew(definition, layer, "data_param", own);
    if (data == NULL)
        return ls_fail_memory(error, "a definition");
    int status = move_fields(definition, layer, type, own, &data->base, error);
    data->has_backend = 1;
    data->backend = (Lockstep__DataParameter__DB)type->backend;
    if (!data->has_batch_size && type->batch > 0) {
        data->has_batch_size = 1;
        data->batch_size = (uint32_t)type->batch;
    }
    if (type->names_tops && !name_tensors(definition, layer, data))
        return ls_fail_memory(error, "a definition");
    if (type->cuts_windows && !move_windows(definition, layer, data))
        return ls_fail_memory(error, "a definition");
    if (type->interpolates && !data->has_antialias) {
        data->has_antialias = 1;
        data->antialias = 0;
    }
    if (!type->cuts_windows)
        ls_field_clear(&layer->base, ls_field_named(layer->base.descriptor, type->parameter));
    return status;
}

/* Adds a shape to input_param. */
static bool add_shape(struct ls_definition *definition, Lockstep__InputParameter *input,
                      const int64_t *dims, size_t count)
{
    const ProtobufCFieldDescriptor *shapes = ls_field_named(input->base.descriptor, "shape");
    Lockstep__BlobShape *shape = (Lockstep__BlobShape *)ls_upgrade_new(
        definition, &lockstep__blob_shape__descriptor, &input->base);
    if (shape == NULL)
        return false;
    shape->dim = ls_arena_alloc(definition->arena, count, sizeof *shape->dim);
    if (shape->dim == NULL)
        return false;
    shape->n_dim = count;
    memcpy(shape->dim, dims, count * sizeof *dims);
    return ls_field_put(definition->arena, &input->base, shapes, &shape);
}

/* MemoryData: pictures and labels, which Caffe's callers hand in. */
static int complete_memory(struct ls_definition *definition, Lockstep__LayerParameter *layer,
                           struct ls_error *error)
{
    const Lockstep__MemoryDataParameter *own = layer->memory_data_param;
    if (own == NULL)
        return 0; /* the layer says what is missing */
    Lockstep__InputParameter *input =
        (Lockstep__InputParameter *)renew(definition, layer, "input_param", &own->base);
    const int64_t dims[] = {own->batch_size, own->channels, own->height, own->width};
    if (input == NULL || !add_shape(definition, input, dims, 4) ||
        (layer->n_top > 1 && !add_shape(definition, input, dims, 1)))
        return ls_fail_memory(error, "a definition");
    layer->memory_data_param = NULL;
    return 0;
}

int ls_data_layer_complete(struct ls_definition *definition, Lockstep__LayerParameter *layer,
                           struct ls_error *error)
{
    const struct data_type *type = find_type(layer);
    if (type != NULL)
        return complete_data(definition, layer, type, error);
    return is_type(layer, "MemoryData") ? complete_memory(definition, layer, error) : 0;
}
