/* Messages of a definition, read and made. See solver/dummy_messages.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/dummy_messages.h"

#include <string.h>

#include "schema/fields.h"
#include "schema/language_net.h"

Lockstep__BlobShape *ls_dummy_make_shape(struct ls_arena *arena, const struct ls_shape *shape)
{
    Lockstep__BlobShape *made =
        (Lockstep__BlobShape *)(void *)ls_arena_message(arena, &lockstep__blob_shape__descriptor);
    int64_t *dim = ls_arena_alloc(arena, (size_t)shape->rank + 1, sizeof *dim);
    if (made == NULL || dim == NULL)
        return NULL;
    memcpy(dim, shape->dim, (size_t)shape->rank * sizeof *dim);
    made->n_dim = (size_t)shape->rank;
    made->dim = dim;
    return made;
}

Lockstep__FillerParameter *ls_dummy_make_filler(struct ls_arena *arena, const char *type,
                                                double low, double high)
{
    Lockstep__FillerParameter *made = (Lockstep__FillerParameter *)(void *)ls_arena_message(
        arena, &lockstep__filler_parameter__descriptor);
    if (made == NULL)
        return NULL;
    made->type = ls_arena_copy_string(arena, type);
    made->has_min = made->has_max = 1;
    made->min = (float)low;
    made->max = (float)high;
    return made->type != NULL ? made : NULL;
}

void ls_dummy_clear_parameters(Lockstep__LayerParameter *layer)
{
    static const char ending[] = "_param";
    const ProtobufCMessageDescriptor *descriptor = layer->base.descriptor;
    for (unsigned i = 0; i < descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &descriptor->fields[i];
        size_t length = strlen(field->name);
        if (field->type == PROTOBUF_C_TYPE_MESSAGE && length >= sizeof ending - 1 &&
            strcmp(field->name + length - (sizeof ending - 1), ending) == 0)
            ls_field_clear(&layer->base, field);
    }
}

static void set_size(struct ls_dummy_picture *picture, uint32_t height, uint32_t width)
{
    if (height > 0 && width > 0) {
        picture->height = height;
        picture->width = width;
    }
}

static void describe_transform(const Lockstep__TransformationParameter *transform,
                               struct ls_dummy_picture *picture)
{
    if (transform == NULL)
        return;
    if (transform->resize_param != NULL)
        set_size(picture, transform->resize_param->height, transform->resize_param->width);
    set_size(picture, transform->crop_size, transform->crop_size);
    if (transform->n_mean_value > 1)
        picture->channels = (int64_t)transform->n_mean_value;
    if (transform->force_gray)
        picture->channels = 1;
    const bool centred = transform->mean_file != NULL || transform->n_mean_value > 0;
    picture->low = (centred ? -128.0 : 0) * (double)transform->scale;
    picture->high = (centred ? 128.0 : 256.0) * (double)transform->scale;
}

/* Sizes that follow from the kind of the source. */
static void describe_kind(const Lockstep__DataParameter *data, struct ls_dummy_picture *picture)
{
    static const Lockstep__SyntheticParameter defaults = LOCKSTEP__SYNTHETIC_PARAMETER__INIT;
    const Lockstep__SyntheticParameter *synthetic =
        data->synthetic_param != NULL ? data->synthetic_param : &defaults;
    if (data->backend == LOCKSTEP__DATA_PARAMETER__DB__CIFAR) {
        picture->channels = 3;
        set_size(picture, 32, 32);
    } else if (data->backend == LOCKSTEP__DATA_PARAMETER__DB__SYNTHETIC) {
        picture->channels = synthetic->channels;
        set_size(picture, synthetic->height, synthetic->width);
    }
}

struct ls_dummy_picture ls_dummy_describe(const Lockstep__LayerParameter *layer)
{
    struct ls_dummy_picture picture = {.high = 256};
    const Lockstep__WindowDataParameter *window = layer->window_data_param;
    if (window != NULL) {
        picture.batch = window->batch_size;
        set_size(&picture, window->crop_size, window->crop_size);
    }
    if (layer->data_param != NULL) {
        picture.batch = layer->data_param->batch_size;
        describe_kind(layer->data_param, &picture);
        if (!layer->data_param->is_color)
            picture.channels = 1;
        set_size(&picture, layer->data_param->new_height, layer->data_param->new_width);
    }
    describe_transform(layer->transform_param, &picture);
    return picture;
}

struct ls_shape ls_dummy_input_shape(const Lockstep__LayerParameter *layer, size_t top)
{
    const Lockstep__InputParameter *param = layer->input_param;
    struct ls_shape shape = {0};
    if (param == NULL || param->n_shape == 0)
        return shape;
    const Lockstep__BlobShape *given = param->shape[top < param->n_shape ? top : 0];
    for (size_t i = 0; i < given->n_dim && i < LS_RANK_MAX; i++)
        shape.dim[shape.rank++] = given->dim[i];
    return shape;
}

/* What a Data layer says of the tensor of a top, among whose axes is that of the samples. */
static struct ls_shape tensor_shape(const Lockstep__DataParameter *data, size_t top, int64_t batch)
{
    const Lockstep__DataTensor *tensor =
        data != NULL && top < data->n_tensor ? data->tensor[top] : NULL;
    struct ls_shape shape = {0};
    if (tensor == NULL || tensor->shape == NULL || tensor->shape->n_dim >= LS_RANK_MAX)
        return shape;
    for (size_t i = 0; i <= tensor->shape->n_dim; i++) {
        const bool samples = i == tensor->sample_axis;
        const size_t from = i > tensor->sample_axis ? i - 1 : i;
        if (!samples && from >= tensor->shape->n_dim)
            return (struct ls_shape){0};
        shape.dim[shape.rank++] = samples ? batch : tensor->shape->dim[from];
    }
    return shape;
}

struct ls_shape ls_dummy_known_shape(const Lockstep__LayerParameter *layer, size_t top,
                                     int64_t batch)
{
    const int64_t window = ls_language_data_window(layer);
    if (window > 0)
        return (struct ls_shape){2, {batch, window}};
    return layer->data_param != NULL ? tensor_shape(layer->data_param, top, batch)
                                     : ls_dummy_input_shape(layer, top);
}
