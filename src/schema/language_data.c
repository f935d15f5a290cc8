/* Data of texts as inputs. See schema/language_inner.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "schema/language_inner.h"

#include <string.h>

#include "schema/places.h"

static bool reads_windows(const Lockstep__DataParameter *data)
{
    return data->backend == LOCKSTEP__DATA_PARAMETER__DB__TOKENS ||
           data->backend == LOCKSTEP__DATA_PARAMETER__DB__TEXT;
}

int64_t ls_language_data_window(const Lockstep__LayerParameter *layer)
{
    const Lockstep__DataParameter *data = layer->data_param;
    if (data == NULL)
        return 0;
    switch (data->backend) {
    case LOCKSTEP__DATA_PARAMETER__DB__TOKENS:
        return data->tokens_param != NULL ? data->tokens_param->window : 0;
    case LOCKSTEP__DATA_PARAMETER__DB__TEXT:
        return data->text_param != NULL ? data->text_param->window : 0;
    case LOCKSTEP__DATA_PARAMETER__DB__RECORDS:
        return data->records_param != NULL ? data->records_param->window : 0;
    default:
        return 0;
    }
}

int64_t ls_language_data_separator(const Lockstep__LayerParameter *layer)
{
    const Lockstep__DataParameter *data = layer->data_param;
    uint32_t separator = UINT32_MAX;
    if (data->backend == LOCKSTEP__DATA_PARAMETER__DB__TOKENS && data->tokens_param != NULL)
        separator = data->tokens_param->separator;
    if (data->backend == LOCKSTEP__DATA_PARAMETER__DB__TEXT && data->text_param != NULL)
        separator = data->text_param->separator;
    return separator <= INT32_MAX ? (int64_t)separator : -1;
}

/* The tensor that a top is; NULL: the definition does not say. */
static const char *tensor_of(const Lockstep__DataParameter *data, size_t top)
{
    static const char *const windows[] = {"tokens", "target", "position", "segment",
                                          "cont",   "mask",   "bytes"}; /* data/token_windows.c */
    if (top < data->n_tensor && data->tensor[top]->name != NULL)
        return data->tensor[top]->name;
    return reads_windows(data) && top < sizeof windows / sizeof *windows ? windows[top] : NULL;
}

static bool ends_in(const char *name, const char *end)
{
    const size_t length = strlen(name), behind = strlen(end);
    return length >= behind && strcmp(name + length - behind, end) == 0;
}

enum ls_token_input ls_language_data_top(const Lockstep__LayerParameter *layer, size_t top)
{
    static const struct {
        const char *name;
        enum ls_token_input what;
    } known[] = {{"position", LS_TOKEN_POSITIONS},
                 {"segment", LS_TOKEN_SEGMENTS},
                 {"cont", LS_TOKEN_CONT},
                 {"mask", LS_TOKEN_MASK}};
    const char *name = tensor_of(layer->data_param, top);
    for (size_t i = 0; i < sizeof known / sizeof *known && name != NULL; i++)
        if (strcmp(name, known[i].name) == 0)
            return known[i].what;
    return name != NULL && ends_in(name, ".mask") ? LS_TOKEN_MASK : LS_TOKEN_IDS;
}

static int data_fail(const struct ls_net_definition *definition,
                     const Lockstep__LayerParameter *layer, const char *hint, const char *problem,
                     struct ls_error *error)
{
    char place[LS_PLACE_MAX];
    ls_place(definition->definition, layer, NULL, place, sizeof place);
    return ls_fail(error, LOCKSTEP_DEFINITION, place, hint, "layer '%.100s' %s",
                   layer->name != NULL ? layer->name : "", problem);
}

static int check_data(const struct ls_net_definition *definition,
                      const Lockstep__LayerParameter *layer, struct ls_error *error)
{
    const Lockstep__DataParameter *data = layer->data_param;
    const bool texts = data != NULL && (reads_windows(data) ||
                                        data->backend == LOCKSTEP__DATA_PARAMETER__DB__RECORDS);
    if (!texts)
        return data_fail(
            definition, layer, "give the net's deploy form, with an Input layer of token ids",
            "reads no text and no tokens, so that there is no text to go on with", error);
    if (ls_language_data_window(layer) < 1)
        return data_fail(definition, layer, "records_param { window: 128 }, for example",
                         "does not say how many tokens a sample has at most", error);
    return 0;
}

/* The shape of a top: [1, window], or [window, 1] where samples lie along axis 1. */
static Lockstep__BlobShape *make_shape(struct ls_arena *arena, int64_t window, uint32_t axis)
{
    Lockstep__BlobShape *shape =
        (Lockstep__BlobShape *)ls_arena_message(arena, &lockstep__blob_shape__descriptor);
    int64_t *dim = ls_arena_alloc(arena, 2, sizeof *dim);
    if (shape == NULL || dim == NULL)
        return NULL;
    dim[0] = axis == 1 ? window : 1;
    dim[1] = axis == 1 ? 1 : window;
    shape->dim = dim;
    shape->n_dim = 2;
    return shape;
}

static bool fill_input(struct ls_arena *arena, const Lockstep__LayerParameter *layer,
                       Lockstep__InputParameter *param)
{
    const Lockstep__DataParameter *data = layer->data_param;
    const size_t tops = layer->n_top;
    param->shape = ls_arena_alloc(arena, tops, sizeof *param->shape);
    param->sample_axis = ls_arena_alloc(arena, tops, sizeof *param->sample_axis);
    if (param->shape == NULL || param->sample_axis == NULL)
        return false;
    for (size_t t = 0; t < tops; t++) {
        const uint32_t axis = t < data->n_tensor ? data->tensor[t]->sample_axis : 0;
        param->sample_axis[t] = axis;
        param->shape[t] = make_shape(arena, ls_language_data_window(layer), axis);
        if (param->shape[t] == NULL)
            return false;
    }
    param->n_shape = param->n_sample_axis = tops;
    return true;
}

int ls_language_data_input(const struct ls_net_definition *definition,
                           const Lockstep__LayerParameter *layer, Lockstep__LayerParameter **input,
                           struct ls_error *error)
{
    struct ls_definition *file = definition->definition;
    LS_TRY(check_data(definition, layer, error));
    Lockstep__LayerParameter *copy = ls_language_copy(file, layer);
    Lockstep__InputParameter *param = (Lockstep__InputParameter *)ls_arena_message(
        file->arena, &lockstep__input_parameter__descriptor);
    if (copy == NULL || param == NULL || !fill_input(file->arena, layer, param) ||
        !ls_places_alias(file->places, param, layer->data_param))
        return ls_fail_memory(error, "a net");
    copy->type = ls_arena_copy_string(file->arena, "Input");
    if (copy->type == NULL)
        return ls_fail_memory(error, "a net");
    copy->input_param = param;
    copy->data_param = NULL;
    copy->transform_param = NULL;
    *input = copy;
    return 0;
}
