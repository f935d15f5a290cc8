/* Options of sources from a Data layer; see data/options.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "data/arrays.h"
#include "data/options_inner.h"

/* "new_height is for IMAGES and IMAGE_PAIRS" */
static void say_owners(struct ls_text *text, const struct ls_option *option, const char *name)
{
    ls_text_format(text, "%s is for %s%s", name, option->of != NULL ? option->of : "",
                   option->of != NULL ? " " : "");
    ls_option_add_owners(text, option->name);
}

/* Calls `visit` once for each field that other sources read and this one does not. */
static int visit_foreign(const struct ls_source_type *type, void *user,
                         int (*visit)(void *user, const struct ls_option *option))
{
    int status = 0;
    for (size_t i = 0; ls_source_types[i] != NULL; i++)
        for (const struct ls_option *o = ls_source_types[i]->options; o->name != NULL; o++) {
            size_t length = ls_option_owned(o->name);
            bool seen = ls_option_reads(type, o->name, length);
            for (size_t k = 0; k < i && !seen; k++)
                seen = ls_option_reads(ls_source_types[k], o->name, length);
            for (const struct ls_option *p = ls_source_types[i]->options; p < o && !seen; p++)
                seen = strncmp(p->name, o->name, length) == 0 && ls_option_owned(p->name) == length;
            int found = seen ? 0 : visit(user, o);
            status = status != 0 ? status : found;
        }
    return status;
}

struct reading {
    const Lockstep__LayerParameter *layer;
    struct ls_source_options *options;
    struct ls_error *error;
};

static int refuse_foreign(void *user, const struct ls_option *option)
{
    const struct reading *r = user;
    const struct ls_source_type *type = r->options->type;
    bool outer = ls_option_shown(option->name) == option->name;
    struct ls_option_field field = ls_option_field(r->layer, option->name, outer);
    if (!ls_option_is_said(field))
        return 0;
    if (option->kind == LS_OPTION_FILES)
        return ls_option_fail(r->options, option->name, type->summary, r->error,
                              "data of backend %s has no %s", type->name, option->name);
    struct ls_text text = {0};
    char hint[100] = "", place[64];
    say_owners(&text, option, field.descriptor->name);
    if (option->instead != NULL && ls_option_find(type, option->instead) != NULL)
        snprintf(hint, sizeof hint, "use %s", option->instead);
    snprintf(place, sizeof place, "%.*s", (int)ls_option_owned(option->name), option->name);
    int status = ls_option_fail(r->options, place, hint, r->error, "%s",
                                text.data != NULL ? text.data : "a field of another backend");
    ls_text_free(&text);
    return status;
}

/* The path that the index-th value of a field leads to, which is kept. What is not there is
 * reported at the place in the definition that names it. */
static int resolve(const struct reading *r, struct ls_option_field field, size_t index,
                   const char **out)
{
    struct ls_source_options *options = r->options;
    const char *path = *(const char *const *)ls_field_at(field.message, field.descriptor, index);
    if (path[0] == '\0')
        return ls_option_fail(options, field.descriptor->name, NULL, r->error, "%s is empty",
                              field.descriptor->name);
    const bool array = ls_arrays_find(options->definition, path) != NULL;
    char *found = array ? ls_copy_string(path) : ls_resolve_path(path, options->definition->file);
    if (found == NULL || !LS_GROW(options->paths, options->path_count, options->path_capacity)) {
        ls_free(found);
        return ls_fail_memory(r->error, "a path");
    }
    options->paths[options->path_count++] = found;
    *out = found;
    if (array && options->type != &ls_source_npy)
        return ls_option_fail(options, field.descriptor->name, "arrays are for backend NPY",
                              r->error, "'%s' is an array, and not what %s reads", path,
                              options->type->name);
    if (array || ls_file_exists(found))
        return 0;
    char place[LS_PLACE_MAX];
    ls_place_index(options->definition, field.message, field.descriptor->name, index, place,
                   sizeof place);
    return ls_fail(r->error, LOCKSTEP_DATA, place,
                   "a path is tried from the working directory, then from the definition's folder",
                   "layer '%.100s': there is no file or folder '%s'",
                   r->layer->name != NULL ? r->layer->name : "", path);
}

static int read_files(const struct reading *r, const struct ls_option *option)
{
    struct ls_option_field field = ls_option_field(r->layer, option->name, false);
    size_t count = field.message != NULL ? ls_field_count(field.message, field.descriptor) : 0;
    struct ls_option_files *files = (void *)((char *)r->options->own + option->offset);
    LS_TRY(ls_option_check_count(r->options, option, count, r->error));
    /* The list lies behind the paths, as one of them, so that it is freed with them. */
    const char **list = ls_alloc(count + 1, sizeof *list);
    if (list == NULL ||
        !LS_GROW(r->options->paths, r->options->path_count, r->options->path_capacity)) {
        ls_free(list);
        return ls_fail_memory(r->error, "a path");
    }
    r->options->paths[r->options->path_count++] = (char *)list;
    *files = (struct ls_option_files){list, count};
    int status = 0;
    for (size_t i = 0; i < count; i++) {
        int found = resolve(r, field, i, &list[i]);
        status = status != 0 ? status : found;
    }
    return status;
}

static int read_option(const struct reading *r, const struct ls_option *option)
{
    struct ls_option_field field = ls_option_field(r->layer, option->name, false);
    void *member = (char *)r->options->own + option->offset;
    if (option->kind == LS_OPTION_FILES)
        return read_files(r, option);
    if (field.message == NULL || ls_field_count(field.message, field.descriptor) == 0)
        return 0;
    if (option->kind == LS_OPTION_FILE)
        return ls_option_is_said(field) ? resolve(r, field, 0, member) : 0;
    if (option->kind == LS_OPTION_UNSIGNED) {
        *(uint64_t *)member = *(const uint64_t *)ls_field_at(field.message, field.descriptor, 0);
        return 0;
    }
    double value = ls_option_number(field);
    LS_TRY(ls_option_check_range(r->options, option, field.descriptor->name, value, r->error));
    ls_option_put(option, r->options->own, value);
    return 0;
}

static int find_type(const Lockstep__LayerParameter *layer, struct ls_source_options *options,
                     struct ls_error *error)
{
    const Lockstep__DataParameter *data = layer->data_param;
    if (data == NULL)
        return ls_option_fail(options, NULL, "data_param { source: ... backend: ... }", error,
                              "a Data layer needs data_param");
    const struct ls_source_type *type = ls_source_type_of((int)data->backend);
    if (type != NULL)
        return ls_option_start(type, options, error);
    struct ls_text hint = {0};
    ls_text_add(&hint, "backend: ");
    ls_source_names(false, &hint);
    int status =
        ls_option_fail(options, "backend", hint.data, error, "%s", "this backend is not supported");
    ls_text_free(&hint);
    return status;
}

/* The least side of a picture that the crop can be cut from; any, where pictures are resized. */
static int least_side(const Lockstep__TransformationParameter *transform)
{
    const Lockstep__ResizeParameter *resize = transform != NULL ? transform->resize_param : NULL;
    if (resize != NULL &&
        (transform->crop_size > 0 ||
         resize->resize_mode != LOCKSTEP__RESIZE_PARAMETER__RESIZE_MODE__FIT_SMALL_SIZE))
        return 1;
    if (transform == NULL || transform->crop_size == 0)
        return 0;
    int64_t side = (int64_t)transform->crop_size - 2 * (int64_t)transform->pad;
    return side < 1 ? 1 : (int)side;
}

int ls_source_options_read(const Lockstep__LayerParameter *layer,
                           const struct ls_definition *definition, Lockstep__Phase phase,
                           struct ls_source_options *options, struct ls_error *error)
{
    struct reading reading = {.layer = layer, .options = options, .error = error};
    *options = (struct ls_source_options){.layer = layer,
                                          .definition = definition,
                                          .test = phase == LOCKSTEP__PHASE__TEST,
                                          .split = {.all = true},
                                          .crop = least_side(layer->transform_param)};
    LS_TRY(find_type(layer, options, error));
    options->batch = layer->data_param->has_batch_size ? layer->data_param->batch_size : 0;
    int status = visit_foreign(options->type, &reading, refuse_foreign);
    for (const struct ls_option *o = options->type->options; o->name != NULL; o++) {
        int found = read_option(&reading, o);
        status = status != 0 ? status : found;
    }
    return status;
}

/* ---- What is trained on ---- */

/* Whether a layer is for the train phase, and reads data of this kind. */
static bool reads_in_training(const Lockstep__LayerParameter *layer, int backend)
{
    bool train = layer->has_phase && layer->phase == LOCKSTEP__PHASE__TRAIN;
    for (size_t i = 0; i < layer->n_include; i++)
        train = train || (layer->include[i]->has_phase &&
                          layer->include[i]->phase == LOCKSTEP__PHASE__TRAIN);
    return train && layer->data_param != NULL && (int)layer->data_param->backend == backend;
}

const Lockstep__LayerParameter *ls_source_training_layer(const struct ls_source_options *options)
{
    const ProtobufCMessage *root =
        options->definition != NULL ? options->definition->message : NULL;
    const Lockstep__NetParameter *net = NULL;
    if (root != NULL && root->descriptor == &lockstep__net_parameter__descriptor)
        net = (const Lockstep__NetParameter *)root;
    if (root != NULL && root->descriptor == &lockstep__solver_parameter__descriptor) {
        const Lockstep__SolverParameter *solver = (const Lockstep__SolverParameter *)root;
        net = solver->net_param != NULL ? solver->net_param : solver->train_net_param;
    }
    const Lockstep__LayerParameter *found = NULL;
    for (size_t i = 0; net != NULL && options->test && i < net->n_layer; i++) {
        const Lockstep__LayerParameter *layer = net->layer[i];
        if (!reads_in_training(layer, options->type->backend))
            continue;
        if (found == NULL)
            found = layer;
        if (layer->name != NULL && options->layer->name != NULL &&
            strcmp(layer->name, options->layer->name) == 0)
            return layer;
    }
    return found;
}
