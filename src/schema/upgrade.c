/* The order matters: V0 layers become V1 layers, these become layers, and only then are the layers
 * of all origins looked at for what has changed since.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "schema/upgrade.h"

#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "schema/blocks.h"
#include "schema/fields.h"
#include "schema/places.h"
#include "schema/upgrade_fields.h"

/* Parameters of data layers that had the fields of transform_param themselves. */
static const char *const data_parameters[] = {"data_param", "image_data_param",
                                              "window_data_param"};
static const char *const transform_fields[] = {"scale", "mean_file", "crop_size", "mirror"};

/* Caffe does this for V1 layers only and ignores the fields in newer ones; here they mean what
 * they say in both. */
static bool move_transformation(struct ls_definition *definition, Lockstep__LayerParameter *layer)
{
    for (size_t p = 0; p < 3; p++) {
        if (!ls_upgrade_is_set(&layer->base, data_parameters[p]))
            continue;
        ProtobufCMessage *data =
            ls_upgrade_child(definition, &layer->base, data_parameters[p], &layer->base, NULL);
        for (size_t i = 0; i < 4; i++) {
            const char *name = transform_fields[i];
            if (!ls_upgrade_is_set(data, name))
                continue;
            ProtobufCMessage *transform =
                ls_upgrade_child(definition, &layer->base, "transform_param", data, name);
            if (transform == NULL || !ls_upgrade_copy(definition, data, name, transform, name))
                return false;
            ls_field_clear(data, ls_field_named(data->descriptor, name));
        }
    }
    return true;
}

/* SegNet's layer of pictures and label maps becomes a Data layer that reads them. */
static bool upgrade_dense_image_data(struct ls_definition *definition,
                                     Lockstep__LayerParameter *layer)
{
    static const char *const fields[] = {"source",     "batch_size", "rand_skip", "shuffle",
                                         "new_height", "new_width",  "is_color",  "root_folder"};
    static const char name[] = "dense_image_data_param";
    if (layer->type == NULL || strcmp(layer->type, "DenseImageData") != 0 ||
        layer->dense_image_data_param == NULL)
        return true;
    ProtobufCMessage *old = &layer->dense_image_data_param->base;
    ProtobufCMessage *data =
        ls_upgrade_child(definition, &layer->base, "data_param", &layer->base, name);
    layer->type = ls_arena_copy_string(definition->arena, "Data");
    if (data == NULL || layer->type == NULL)
        return false;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (ls_upgrade_is_set(old, fields[i]) &&
            !ls_upgrade_copy(definition, old, fields[i], data, fields[i]))
            return false;
    int backend = LOCKSTEP__DATA_PARAMETER__DB__IMAGE_PAIRS;
    ls_field_clear(&layer->base, ls_field_named(layer->base.descriptor, name));
    return ls_field_put(definition->arena, data, ls_field_named(data->descriptor, "backend"),
                        &backend);
}

/* A crop of equal height and width is what crop_size says. */
static void upgrade_crop(Lockstep__LayerParameter *layer)
{
    Lockstep__TransformationParameter *param = layer->transform_param;
    if (param == NULL || param->crop_size != 0 || param->crop_h != param->crop_w)
        return;
    param->crop_size = param->crop_h;
    param->has_crop_size = param->has_crop_size || param->crop_h != 0;
    param->has_crop_h = param->has_crop_w = 0;
    param->crop_h = param->crop_w = 0;
}

/* Statistics are not learned, whatever the file says about their rates. */
static void fix_batch_norm(Lockstep__LayerParameter *layer)
{
    if (layer->type == NULL || strcmp(layer->type, "BatchNorm") != 0 || layer->n_param != 3)
        return;
    for (size_t i = 0; i < 3; i++) {
        Lockstep__ParamSpec *spec = layer->param[i];
        spec->has_lr_mult = spec->has_decay_mult = 1;
        spec->lr_mult = spec->decay_mult = 0;
    }
}

/* Whether every input has the extents that it needs. */
static int check_inputs(const struct ls_definition *definition, const Lockstep__NetParameter *net,
                        struct ls_error *error)
{
    char place[LS_PLACE_MAX];
    ls_place(definition, net, "input", place, sizeof place);
    if (net->n_input_shape > 0 && net->n_input_shape != net->n_input)
        return ls_fail(error, LOCKSTEP_DEFINITION, place, NULL,
                       "%zu input but %zu input_shape: each input needs one", net->n_input,
                       net->n_input_shape);
    if (net->n_input_shape == 0 && net->n_input_dim != 4 * net->n_input)
        return ls_fail(error, LOCKSTEP_DEFINITION, place, NULL,
                       "%zu input but %zu input_dim: each input needs four", net->n_input,
                       net->n_input_dim);
    return 0;
}

/* The shape of an input: its input_shape, or a new one of its four input_dim. */
static Lockstep__BlobShape *input_shape(struct ls_definition *definition,
                                        const Lockstep__NetParameter *net, size_t index)
{
    if (net->n_input_shape > 0)
        return net->input_shape[index];
    Lockstep__BlobShape *shape = (Lockstep__BlobShape *)ls_upgrade_new(
        definition, &lockstep__blob_shape__descriptor, &net->base);
    if (shape == NULL)
        return NULL;
    shape->dim = ls_arena_alloc(definition->arena, 4, sizeof *shape->dim);
    if (shape->dim == NULL)
        return NULL;
    shape->n_dim = 4;
    for (size_t i = 0; i < 4; i++)
        shape->dim[i] = net->input_dim[4 * index + i];
    return shape;
}

/* An Input layer "input" with a top for each `input`. */
static Lockstep__LayerParameter *make_input(struct ls_definition *definition,
                                            const Lockstep__NetParameter *net)
{
    struct ls_arena *arena = definition->arena;
    Lockstep__LayerParameter *layer = (Lockstep__LayerParameter *)ls_upgrade_new(
        definition, &lockstep__layer_parameter__descriptor, &net->base);
    if (layer == NULL ||
        !ls_places_copy(definition->places, net, 3 /* input */, 0, layer, LS_FIELD_NONE, 0))
        return NULL;
    layer->name = ls_arena_copy_string(arena, "input");
    layer->type = ls_arena_copy_string(arena, "Input");
    Lockstep__InputParameter *parameter = (Lockstep__InputParameter *)ls_upgrade_child(
        definition, &layer->base, "input_param", &net->base, "input");
    if (layer->name == NULL || layer->type == NULL || parameter == NULL ||
        !ls_upgrade_copy(definition, &net->base, "input", &layer->base, "top"))
        return NULL;
    const ProtobufCFieldDescriptor *shapes = ls_field_named(parameter->base.descriptor, "shape");
    for (size_t i = 0; i < net->n_input; i++) {
        Lockstep__BlobShape *shape = input_shape(definition, net, i);
        if (shape == NULL || !ls_field_put(arena, &parameter->base, shapes, &shape))
            return NULL;
    }
    return layer;
}

/* What was declared beside the layers becomes a layer. Files of weights of that time name an input
 * without extents; nothing is lost with it. */
static int upgrade_input(struct ls_definition *definition, Lockstep__NetParameter *net,
                         struct ls_error *error)
{
    if (net->n_input > 0 && (net->n_input_shape > 0 || net->n_input_dim > 0)) {
        LS_TRY(check_inputs(definition, net, error));
        Lockstep__LayerParameter *layer = make_input(definition, net);
        const ProtobufCFieldDescriptor *layers = ls_field_named(net->base.descriptor, "layer");
        if (layer == NULL || !ls_field_put(definition->arena, &net->base, layers, &layer))
            return ls_fail_memory(error, "a definition");
        /* in front, because other layers read it */
        memmove(&net->layer[1], &net->layer[0], (net->n_layer - 1) * sizeof *net->layer);
        net->layer[0] = layer;
    }
    net->n_input = net->n_input_shape = net->n_input_dim = 0;
    return 0;
}

/* Blocks stand between layers of the newest form only. */
static int check_blocks(const struct ls_definition *definition, const Lockstep__NetParameter *net,
                        struct ls_error *error)
{
    char place[LS_PLACE_MAX];
    if (net->n_block == 0 || net->n_layers == 0)
        return 0;
    ls_place(definition, net, "layers", place, sizeof place);
    return ls_fail(error, LOCKSTEP_DEFINITION, place,
                   "write layer { ... type: \"InnerProduct\" ... } everywhere",
                   "a net with blocks cannot have layers of the older form, 'layers'");
}

/* What has changed since, in one layer of the newest form; user: the definition. */
static int upgrade_layer(void *user, Lockstep__LayerParameter *layer)
{
    struct ls_definition *definition = user;
    upgrade_crop(layer);
    if (!upgrade_dense_image_data(definition, layer) || !move_transformation(definition, layer))
        return LOCKSTEP_RESOURCE;
    fix_batch_norm(layer);
    return 0;
}

int ls_net_upgrade(struct ls_definition *definition, Lockstep__NetParameter *net,
                   struct ls_error *error)
{
    LS_TRY(check_blocks(definition, net, error));
    LS_TRY(ls_upgrade_v0(definition, net, error));
    LS_TRY(ls_upgrade_v1(definition, net, error));
    if (ls_blocks_each(&net->base, upgrade_layer, definition) != 0)
        return ls_fail_memory(error, "a definition");
    LS_TRY(ls_blocks_expand(definition, net, error));
    return upgrade_input(definition, net, error);
}

/* `solver_type: NESTEROV` becomes `type: "Nesterov"`; the names are in the order of the enum. */
static int upgrade_solver_type(struct ls_definition *definition, Lockstep__SolverParameter *solver,
                               struct ls_error *error)
{
    static const char *const names[] = {"SGD",     "Nesterov", "AdaGrad",
                                        "RMSProp", "AdaDelta", "Adam"};
    char place[LS_PLACE_MAX];
    if (!solver->has_solver_type)
        return 0;
    ls_place(definition, solver, "solver_type", place, sizeof place);
    if (ls_upgrade_is_set(&solver->base, "type"))
        return ls_fail(error, LOCKSTEP_DEFINITION, place, "keep type",
                       "both type and the older solver_type are given");
    solver->type = ls_arena_copy_string(definition->arena, names[solver->solver_type]);
    const ProtobufCMessageDescriptor *type = solver->base.descriptor;
    if (solver->type == NULL ||
        !ls_places_copy(definition->places, solver, ls_field_named(type, "solver_type")->id, 0,
                        solver, ls_field_named(type, "type")->id, 0))
        return ls_fail_memory(error, "a definition");
    ls_field_clear(&solver->base, ls_field_named(type, "solver_type"));
    return 0;
}

char *ls_snapshot_prefix(const char *file, const char *given)
{
    const char *name = strrchr(file, '/') != NULL ? strrchr(file, '/') + 1 : file;
    const char *dot = strrchr(name, '.');
    if (given != NULL && !ls_is_directory(given))
        return ls_copy_string(given);
    struct ls_text prefix = {0};
    const char *start = given != NULL ? name : file; /* up to the dot */
    if (given != NULL) {
        ls_text_add(&prefix, given);
        if (prefix.length > 0 && prefix.data[prefix.length - 1] != '/')
            ls_text_add(&prefix, "/");
    }
    ls_text_add_bytes(&prefix, start,
                      dot != NULL && dot != name ? (size_t)(dot - start) : strlen(start));
    if (prefix.failed)
        ls_text_free(&prefix);
    return prefix.data;
}

static int complete_prefix(struct ls_definition *definition, Lockstep__SolverParameter *solver,
                           struct ls_error *error)
{
    char *prefix = ls_snapshot_prefix(definition->file, solver->snapshot_prefix);
    solver->snapshot_prefix =
        prefix != NULL ? ls_arena_copy(definition->arena, prefix, strlen(prefix)) : NULL;
    ls_free(prefix);
    return solver->snapshot_prefix != NULL ? 0 : ls_fail_memory(error, "a definition");
}

int ls_solver_upgrade(struct ls_definition *definition, Lockstep__SolverParameter *solver,
                      struct ls_error *error)
{
    int status = upgrade_solver_type(definition, solver, error);
    LS_TRY(complete_prefix(definition, solver, error));
    Lockstep__NetParameter *nets[] = {solver->net_param, solver->train_net_param};
    for (size_t i = 0; i < 2 + solver->n_test_net_param; i++) {
        Lockstep__NetParameter *net = i < 2 ? nets[i] : solver->test_net_param[i - 2];
        int found = net != NULL ? ls_net_upgrade(definition, net, error) : 0;
        status = status != 0 ? status : found;
    }
    return status;
}
