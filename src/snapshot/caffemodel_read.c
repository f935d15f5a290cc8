/* Reading a caffemodel: names and blobs of layers of all three ages.
 *
 *   NetParameter      layers = 2: V1LayerParameter     layer = 100: LayerParameter
 *   LayerParameter    name = 1    blobs = 7
 *   V1LayerParameter  name = 4    blobs = 6            layer = 1: V0LayerParameter
 *   V0LayerParameter  name = 1    blobs = 50
 *   BlobProto         num = 1 channels = 2 height = 3 width = 4 data = 5 shape = 7 double_data = 8
 *   BlobShape         dim = 1
 *
 * All other fields are skipped, whatever they mean: forks of Caffe use their numbers differently.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "base/wire.h"
#include "snapshot/weights_build.h"

/* Where a layer of one age keeps its name and its blobs. */
struct layer_form {
    uint32_t name, blobs;
};
static const struct layer_form form_v0 = {1, 50}, form_v1 = {4, 6}, form_v2 = {1, 7};
enum { V1_HOLDS_V0 = 1, NET_LAYERS_V1 = 2, NET_LAYERS = 100 };

/* A BlobProto, looked through but not copied. */
struct blob_view {
    struct ls_wire message;
    struct ls_shape shape;
    int64_t legacy[4];
    bool has_legacy;
    uint64_t floats, doubles; /* how many there are */
};

static int fail_damaged(const struct ls_weights *weights, const char *layer, struct ls_error *error)
{
    if (layer != NULL)
        return ls_fail(error, LOCKSTEP_WEIGHTS, weights->path, "the file is damaged or was cut off",
                       "layer '%s' cannot be read", layer);
    return ls_fail(error, LOCKSTEP_WEIGHTS, weights->path,
                   "weights are read from safetensors files, caffemodels and Caffe's HDF5 files",
                   "is neither safetensors nor a caffemodel nor HDF5, or is damaged");
}

/* Appends the extents of a BlobShape. False if it is damaged or has too many of them. */
static bool read_shape(struct ls_wire message, struct ls_shape *shape)
{
    struct ls_wire_field field;
    while (ls_wire_next(&message, &field)) {
        if (field.number != 1)
            continue;
        if (field.type == LS_WIRE_VARINT) {
            if (shape->rank == LS_RANK_MAX)
                return false;
            shape->dim[shape->rank++] = (int64_t)field.value;
            continue;
        }
        if (field.type != LS_WIRE_BYTES)
            return false;
        struct ls_wire packed = ls_wire_open(field.bytes, field.size);
        while (packed.left > 0) {
            uint64_t value;
            if (shape->rank == LS_RANK_MAX || !ls_wire_varint(&packed, &value))
                return false;
            shape->dim[shape->rank++] = (int64_t)value;
        }
    }
    return !message.damaged;
}

/* Numbers in one field: a single one, or a packed list. False for anything else. */
static bool count_numbers(const struct ls_wire_field *field, size_t size, uint64_t *count)
{
    enum ls_wire_type single = size == 4 ? LS_WIRE_32 : LS_WIRE_64;
    if (field->type != LS_WIRE_BYTES && field->type != single)
        return false;
    *count += field->size / size;
    return field->size % size == 0;
}

/* Looks a blob through. False if it is damaged. */
static bool view_blob(const struct ls_wire_field *blob, struct blob_view *view)
{
    *view = (struct blob_view){.message = ls_wire_open(blob->bytes, blob->size)};
    struct ls_wire message = view->message;
    struct ls_wire_field field;
    while (ls_wire_next(&message, &field)) {
        bool good = true;
        if (field.number >= 1 && field.number <= 4) {
            good = field.type == LS_WIRE_VARINT;
            view->has_legacy = true;
            view->legacy[field.number - 1] = (int64_t)field.value;
        } else if (field.number == 5) {
            good = count_numbers(&field, 4, &view->floats);
        } else if (field.number == 7) {
            good = field.type == LS_WIRE_BYTES &&
                   read_shape(ls_wire_open(field.bytes, field.size), &view->shape);
        } else if (field.number == 8) {
            good = count_numbers(&field, 8, &view->doubles);
        }
        if (!good)
            return false;
    }
    if (view->has_legacy) {
        view->shape = (struct ls_shape){.rank = 4};
        memcpy(view->shape.dim, view->legacy, sizeof view->legacy);
    }
    return !message.damaged;
}

/* Copies the numbers of a blob whose count was checked. Doubles win over floats, as in Caffe. */
static void copy_numbers(const struct blob_view *view, float *out)
{
    struct ls_wire message = view->message;
    struct ls_wire_field field;
    while (ls_wire_next(&message, &field)) {
        if (view->doubles > 0 && field.number == 8) {
            for (size_t at = 0; at < field.size; at += 8) {
                double wide;
                memcpy(&wide, field.bytes + at, 8);
                *out++ = (float)wide;
            }
        } else if (view->doubles == 0 && field.number == 5 && field.size > 0) {
            memcpy(out, field.bytes, field.size);
            out += field.size / 4;
        }
    }
}

int ls_caffemodel_add_blob(struct ls_weights *weights, int index, const struct ls_wire_field *field,
                           struct ls_error *error)
{
    struct ls_weight_layer *layer = &weights->layers[weights->layer_count - 1];
    struct blob_view view;
    if (field->type != LS_WIRE_BYTES || !view_blob(field, &view))
        return fail_damaged(weights, layer->name, error);
    if (!ls_shape_valid(&view.shape, true))
        return ls_fail(error, LOCKSTEP_WEIGHTS, weights->path, NULL,
                       "blob %d of layer '%s' has an impossible shape", index, layer->name);
    uint64_t count = view.doubles > 0 ? view.doubles : view.floats;
    if (count != (uint64_t)ls_shape_size(&view.shape)) {
        char shape[160];
        return ls_fail(error, LOCKSTEP_WEIGHTS, weights->path, "the file is damaged",
                       "blob %d of layer '%s' has shape %s and %" PRIu64 " numbers", index,
                       layer->name, ls_shape_text(&view.shape, shape, sizeof shape), count);
    }
    struct ls_weight_blob *blob;
    LS_TRY(ls_weights_add_blob(weights, layer, index, &view.shape, &blob, error));
    blob->legacy = view.has_legacy;
    LS_TRY(ls_weights_make_copy(weights, blob, error));
    copy_numbers(&view, blob->copy);
    return 0;
}

/* The name of a layer, "" if it has none; NULL and *status after a failure. */
static char *read_name(struct ls_weights *weights, struct ls_wire message, uint32_t number,
                       struct ls_error *error, int *status)
{
    struct ls_wire_field field, found = {0};
    bool good = true;
    while (ls_wire_next(&message, &field)) {
        if (field.number != number)
            continue;
        good = good && field.type == LS_WIRE_BYTES;
        found = field;
    }
    good = good && !message.damaged;
    if (!good || (found.size > 0 && memchr(found.bytes, '\0', found.size) != NULL)) {
        *status = fail_damaged(weights, NULL, error);
        return NULL;
    }
    char *name = ls_copy_bytes(found.size > 0 ? (const char *)found.bytes : "", found.size);
    if (name == NULL)
        *status = ls_fail_memory(error, weights->path);
    return name;
}

static int read_layer(struct ls_weights *weights, struct ls_wire message,
                      const struct layer_form *form, struct ls_error *error)
{
    struct ls_wire_field field;
    struct ls_wire inner = message;
    /* A V1 layer with a V0 layer inside has nothing else that we want. */
    while (form == &form_v1 && ls_wire_next(&inner, &field)) {
        if (field.number == V1_HOLDS_V0 && field.type == LS_WIRE_BYTES)
            return read_layer(weights, ls_wire_open(field.bytes, field.size), &form_v0, error);
    }
    int status = 0;
    char *name = read_name(weights, message, form->name, error, &status);
    if (name == NULL)
        return status;
    LS_TRY(ls_weights_add_layer(weights, name, error));
    int index = 0;
    while (ls_wire_next(&message, &field)) {
        if (field.number == form->blobs)
            LS_TRY(ls_caffemodel_add_blob(weights, index++, &field, error));
    }
    return 0; /* damage would have been seen when the name was looked for */
}

/* Layers beyond this many are an attack: every one costs time in searches by name. */
enum { LAYERS_MAX = 20000 };

static int read_net(struct ls_weights *weights, struct ls_wire message, struct ls_error *error)
{
    struct ls_wire_field field;
    while (ls_wire_next(&message, &field)) {
        if (field.number == 1 && field.type == LS_WIRE_VARINT)
            return ls_fail(error, LOCKSTEP_WEIGHTS, weights->path,
                           "give the .caffemodel of the same iteration",
                           "is no caffemodel; it looks like a .solverstate");
        if (field.number != NET_LAYERS && field.number != NET_LAYERS_V1)
            continue;
        if (field.type != LS_WIRE_BYTES)
            return fail_damaged(weights, NULL, error);
        if (weights->layer_count == LAYERS_MAX)
            return ls_fail(error, LOCKSTEP_WEIGHTS, weights->path, NULL, "has more than %d layers",
                           LAYERS_MAX);
        LS_TRY(read_layer(weights, ls_wire_open(field.bytes, field.size),
                          field.number == NET_LAYERS ? &form_v2 : &form_v1, error));
    }
    return message.damaged ? fail_damaged(weights, NULL, error) : 0;
}

int ls_caffemodel_parse(const void *bytes, size_t size, struct ls_weights *weights,
                        struct ls_error *error)
{
    LS_TRY(read_net(weights, ls_wire_open(bytes, size), error));
    for (size_t i = 0; i < weights->layer_count; i++) {
        if (weights->layers[i].blob_count > 0)
            return 0;
    }
    return ls_fail(error, LOCKSTEP_WEIGHTS, weights->path,
                   "weights are read from safetensors files, caffemodels and Caffe's HDF5 files",
                   "has no layer with weights");
}
