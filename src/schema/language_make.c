/* Parts of a net that writes texts, for any number of tokens. See schema/language_net.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "schema/data_layers.h"
#include "schema/language_inner.h"
#include "schema/places.h"

enum { HEAD_AXES = 3 };

Lockstep__LayerParameter *ls_language_copy(struct ls_definition *definition,
                                           const Lockstep__LayerParameter *layer)
{
    Lockstep__LayerParameter *copy = ls_arena_alloc(definition->arena, 1, sizeof *copy);
    if (copy == NULL || !ls_places_alias(definition->places, copy, layer))
        return NULL;
    *copy = *layer;
    return copy;
}

int ls_language_token_axis(const Lockstep__LayerParameter *layer, int top)
{
    const Lockstep__InputParameter *param = layer->input_param;
    if (param == NULL || param->n_shape == 0 ||
        (param->n_shape != 1 && param->n_shape <= (size_t)top))
        return -1;
    const Lockstep__BlobShape *shape = param->shape[param->n_shape == 1 ? 0 : top];
    const uint32_t samples = param->n_sample_axis == 0            ? 0
                             : param->n_sample_axis == 1          ? param->sample_axis[0]
                             : (size_t)top < param->n_sample_axis ? param->sample_axis[top]
                                                                  : 2;
    return shape->n_dim == 2 && samples < 2 ? 1 - (int)samples : -1;
}

/* An Input layer like `layer`, for `steps` tokens. */
static Lockstep__LayerParameter *make_input(const struct ls_language_net *net,
                                            const Lockstep__LayerParameter *layer, int64_t steps)
{
    struct ls_definition *definition = net->definition.definition;
    struct ls_arena *arena = definition->arena;
    const Lockstep__InputParameter *old = layer->input_param;
    Lockstep__LayerParameter *copy = ls_language_copy(definition, layer);
    Lockstep__InputParameter *param = ls_arena_alloc(arena, 1, sizeof *param);
    if (copy == NULL || param == NULL || !ls_places_alias(definition->places, param, old))
        return NULL;
    *param = *old;
    copy->input_param = param;
    param->n_shape = layer->n_top;
    param->shape = ls_arena_alloc(arena, layer->n_top, sizeof *param->shape);
    for (size_t t = 0; param->shape != NULL && t < layer->n_top; t++) {
        const Lockstep__BlobShape *shape = old->shape[old->n_shape == 1 ? 0 : t];
        const enum ls_token_input what = ls_language_net_input(net, layer->top[t]);
        const int axis = what != LS_TOKEN_UNUSED ? ls_language_token_axis(layer, (int)t) : -1;
        Lockstep__BlobShape *made = ls_arena_alloc(arena, 1, sizeof *made);
        int64_t *dim = ls_arena_alloc(arena, shape->n_dim + 1, sizeof *dim);
        if (made == NULL || dim == NULL)
            return NULL;
        *made = *shape;
        memcpy(dim, shape->dim, shape->n_dim * sizeof *dim);
        made->dim = dim;
        if (axis >= 0)
            dim[axis] = steps;
        param->shape[t] = made;
    }
    return param->shape != NULL ? copy : NULL;
}

/* A net like `cut` with room for `layers` layers; NULL: there is no memory. */
static Lockstep__NetParameter *copy_net(const struct ls_language_net *net, size_t layers)
{
    struct ls_definition *definition = net->definition.definition;
    Lockstep__NetParameter *made = ls_arena_alloc(definition->arena, 1, sizeof *made);
    Lockstep__LayerParameter **layer = ls_arena_alloc(definition->arena, layers + 1, sizeof *layer);
    if (made == NULL || layer == NULL ||
        !ls_places_alias(definition->places, made, net->definition.net))
        return NULL;
    *made = *net->definition.net;
    made->layer = layer;
    made->n_layer = layers;
    return made;
}

int ls_language_net_make(const struct ls_language_net *net, const struct ls_language_part *part,
                         struct ls_net_definition *definition, struct ls_error *error)
{
    const Lockstep__NetParameter *cut = net->definition.net;
    Lockstep__NetParameter *made = copy_net(net, cut->n_layer - (part->body ? 1 : 0));
    if (made == NULL)
        return ls_fail_memory(error, "a net");
    for (size_t i = 0; i < made->n_layer; i++) {
        made->layer[i] = cut->layer[i];
        if (ls_data_layer_takes_input(cut->layer[i]))
            made->layer[i] = make_input(net, cut->layer[i], part->steps);
        if (made->layer[i] == NULL)
            return ls_fail_memory(error, "a net");
    }
    *definition = net->definition;
    definition->net = made;
    definition->portable = true;
    definition->cached = part->cached;
    return 0;
}

int ls_language_net_make_head(const struct ls_language_net *net, const int64_t *dim,
                              int sample_axis, struct ls_net_definition *definition,
                              struct ls_error *error)
{
    struct ls_definition *file = net->definition.definition;
    const Lockstep__LayerParameter *head = net->head;
    Lockstep__NetParameter *made = copy_net(net, 2);
    Lockstep__LayerParameter *input = (Lockstep__LayerParameter *)ls_arena_message(
        file->arena, &lockstep__layer_parameter__descriptor);
    Lockstep__InputParameter *param = (Lockstep__InputParameter *)ls_arena_message(
        file->arena, &lockstep__input_parameter__descriptor);
    Lockstep__BlobShape *blob =
        (Lockstep__BlobShape *)ls_arena_message(file->arena, &lockstep__blob_shape__descriptor);
    if (made == NULL || input == NULL || param == NULL || blob == NULL)
        return ls_fail_memory(error, "a net");
    param->shape = ls_arena_alloc(file->arena, 1, sizeof *param->shape);
    param->sample_axis = ls_arena_alloc(file->arena, 1, sizeof *param->sample_axis);
    blob->dim = ls_arena_alloc(file->arena, HEAD_AXES, sizeof *blob->dim);
    input->name = ls_arena_copy_string(file->arena, "(last token)");
    input->type = ls_arena_copy_string(file->arena, "Input");
    if (param->shape == NULL || param->sample_axis == NULL || blob->dim == NULL ||
        input->name == NULL || input->type == NULL || !ls_places_alias(file->places, input, head) ||
        !ls_places_alias(file->places, param, head))
        return ls_fail_memory(error, "a net");
    memcpy(blob->dim, dim, HEAD_AXES * sizeof *blob->dim);
    blob->n_dim = HEAD_AXES;
    param->shape[0] = blob;
    param->sample_axis[0] = (uint32_t)sample_axis;
    param->n_shape = param->n_sample_axis = 1;
    input->input_param = param;
    input->top = head->bottom;
    input->n_top = 1;
    made->layer[0] = input;
    made->layer[1] = net->definition.net->layer[net->definition.net->n_layer - 1];
    *definition = net->definition;
    definition->net = made;
    definition->portable = true;
    return 0;
}

enum ls_token_input ls_language_net_input(const struct ls_language_net *net, const char *blob)
{
    for (size_t i = 0; i < net->input_count; i++)
        if (strcmp(net->inputs[i].layer->top[net->inputs[i].top], blob) == 0)
            return net->inputs[i].what;
    return LS_TOKEN_UNUSED;
}
