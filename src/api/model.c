/* The public interface: trained nets.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "api/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "api/boxes.h"
#include "api/cards.h"
#include "api/confusion.h"
#include "api/options.h"
#include "api/predict.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/names.h"
#include "base/thread.h"
#include "engine/copies.h"
#include "engine/ignored.h"
#include "engine/sources.h"
#include "engine/step.h"
#include "ir/layer.h"
#include "ops/devices.h"
#include "schema/data_layers.h"
#include "schema/text_format.h"
#include "snapshot/archive.h"
#include "snapshot/catalog.h"
#include "snapshot/weights_convert.h"
#include "solver/check.h"
#include "solver/dummy_data.h"
#include "solver/fit.h"
#include "solver/masks.h"
#include "solver/notes.h"
#include "solver/weights.h"
#include "transport/comm.h"
#include "transport/comm_job.h"

void lockstep_model_options_init(struct lockstep_model_options *options)
{
    *options = (struct lockstep_model_options){.struct_size = sizeof *options};
}

static bool takes_input(const struct ls_net_definition *definition)
{
    for (size_t i = 0; i < definition->net->n_layer; i++)
        if (ls_data_layer_takes_input(definition->net->layer[i]))
            return true;
    return false;
}

/* ---- Loading --------------------------------------------------------------------------------- */

/* Whether a layer has a top or a bottom of one of these names. */
static bool is_among(const struct ls_names *names, char *const *blobs, size_t count)
{
    size_t ignored;
    for (size_t i = 0; i < count; i++)
        if (ls_names_find(names, blobs[i], &ignored))
            return true;
    return false;
}

/* Names what the net ends with: the tops that no layer reads. */
static int no_blob(const struct ls_net_definition *definition, const char *blob,
                   struct ls_error *error)
{
    const Lockstep__NetParameter *net = definition->net;
    struct ls_names read = {0};
    struct ls_text hint = {0};
    size_t ignored;
    bool made = true;
    for (size_t i = 0; i < net->n_layer; i++)
        for (size_t b = 0; b < net->layer[i]->n_bottom; b++)
            made = made && ls_names_set(&read, net->layer[i]->bottom[b], 0);
    for (size_t i = 0; i < net->n_layer && made; i++)
        for (size_t t = 0; t < net->layer[i]->n_top && hint.length < 300; t++)
            if (!ls_names_find(&read, net->layer[i]->top[t], &ignored))
                ls_text_format(&hint, "%s'%.100s'", hint.length > 0 ? ", " : "the net ends with ",
                               net->layer[i]->top[t]);
    ls_text_format(&hint, "%s'lockstep shapes' lists all blobs", hint.length > 0 ? "; " : "");
    int status = ls_fail(error, LOCKSTEP_USAGE, definition->definition->file,
                         hint.failed ? NULL : hint.data, "the net has no blob '%s'", blob);
    ls_text_free(&hint);
    ls_names_free(&read);
    return status;
}

/* Leaves of a net what a blob is computed from: then it is what the net ends with. */
static int cut_at(struct lockstep_model *model, const char *blob, struct ls_error *error)
{
    struct ls_net_definition *definition = &model->definition;
    const Lockstep__NetParameter *net = definition->net;
    struct ls_arena *arena = definition->definition->arena;
    struct ls_names names = {0};
    Lockstep__NetParameter *less = ls_arena_alloc(arena, 1, sizeof *less);
    Lockstep__LayerParameter **layer = ls_arena_alloc(arena, net->n_layer + 1, sizeof *layer);
    bool made = less != NULL && layer != NULL && ls_names_set(&names, blob, 0);
    size_t kept = 0; /* at the end of the list */
    for (size_t i = net->n_layer; i-- > 0 && made;) {
        if (!is_among(&names, net->layer[i]->top, net->layer[i]->n_top))
            continue;
        layer[net->n_layer - ++kept] = net->layer[i];
        for (size_t b = 0; b < net->layer[i]->n_bottom; b++)
            made = made && ls_names_set(&names, net->layer[i]->bottom[b], 0);
    }
    ls_names_free(&names);
    if (!made)
        return ls_fail_memory(error, "a net");
    if (kept == 0)
        return no_blob(definition, blob, error);
    *less = *net;
    less->layer = layer + (net->n_layer - kept);
    less->n_layer = kept;
    definition->net = less;
    model->blob = ls_arena_copy_string(arena, blob);
    if (model->blob == NULL)
        return ls_fail_memory(error, "a net");
    return 0;
}

/* How figures are measured is said by a solver. A net that is read without one is tested as it was
 * by the solver that the snapshot has. */
static void measure_as_trained(struct lockstep_model *model, const char *path)
{
    const ProtobufCMessageDescriptor *type = &lockstep__net_parameter__descriptor;
    const Lockstep__SolverParameter *solver = ls_trained_solver(&model->trained);
    struct ls_net_definition of_solver = {0};
    if (solver == NULL || ls_definition_guess(path, &type, NULL) != 0 ||
        type != &lockstep__net_parameter__descriptor)
        return;
    ls_net_take_solver(&of_solver, solver);
    model->definition.average_precision = of_solver.average_precision;
    model->definition.class_figures = of_solver.class_figures;
}

static int read_net(struct lockstep_model *model, const char *path,
                    const struct lockstep_model_options *options, int64_t micro_batch,
                    struct ls_error *error)
{
    struct ls_net_state state = {.phase = LOCKSTEP__PHASE__TEST,
                                 .level = options->level,
                                 .stages = options->stages,
                                 .stage_count = options->stage_count};
    LS_TRY(ls_net_read(path, &state, &model->definition, error));
    measure_as_trained(model, path);
    if (options->dummy != NULL)
        LS_TRY(ls_dummy_data_net(&model->definition, options->dummy, error));
    if (options->output != NULL)
        LS_TRY(cut_at(model, options->output, error));
    struct ls_net_options net = {.definition = &model->definition,
                                 .phase = LOCKSTEP__PHASE__TEST,
                                 .from_outside = takes_input(&model->definition),
                                 .seed = 1,
                                 .micro_batch = micro_batch,
                                 .workers = model->workers,
                                 .device = model->device,
                                 .parameters = model->parameters,
                                 .views = &model->views,
                                 .output = ls_model_output,
                                 .blob = model->blob};
    const struct ls_class_names classes = {(const char *const *)model->classes,
                                           (int)model->class_count, "the weights",
                                           model->tokenizer};
    net.classes = &classes;
    LS_TRY(ls_net_open(&net, &model->net, error));
    model->net->options.classes = NULL;
    return ls_masks_read(model->parameters, NULL, error);
}

int ls_model_plan(const char *path, const struct lockstep_model_options *options, int workers,
                  int64_t micro_batch, struct lockstep_model **out, struct ls_error *error)
{
    struct lockstep_model *model = ls_alloc(1, sizeof *model);
    *out = NULL;
    if (model == NULL)
        return ls_fail_memory(error, "a model");
    model->workers = workers;
    model->card = ls_thread_card();
    (void)ls_device_find(options->device, &model->device, NULL); /* options have been checked */
    model->parameters = ls_parameter_set_new();
    int status = model->parameters == NULL ? ls_fail_memory(error, "a model")
                                           : read_net(model, path, options, micro_batch, error);
    if (status != 0)
        lockstep_model_free(model);
    else
        *out = model;
    return status;
}

static int open_trial(void *user, int64_t micro_batch, void **trial, struct ls_fit *fit,
                      struct ls_error *error)
{
    const struct ls_model_trial *from = user;
    struct ls_model_trial made = *from;
    struct lockstep_model_options options = *from->options;
    struct lockstep_dummy_options quiet;
    if (options.dummy != NULL) { /* it was told when the model itself was planned */
        quiet = *options.dummy;
        quiet.tell = NULL;
        options.dummy = &quiet;
    }
    LS_TRY(
        ls_model_plan(from->path, &options, from->model->workers, micro_batch, &made.model, error));
    ls_model_fit(&made, fit);
    fit->user = NULL; /* no trials of a trial */
    *trial = made.model;
    return 0;
}

static void close_trial(void *trial)
{
    struct lockstep_model *model = trial;
    lockstep_model_free(model);
}

void ls_model_fit(struct ls_model_trial *trial, struct ls_fit *fit)
{
    struct lockstep_model *model = trial->model;
    *fit = (struct ls_fit){.what = "testing",
                           .nets = &model->net,
                           .count = 1,
                           .set = model->parameters,
                           .views = &model->views,
                           .store = {.ranks = 1, .workers = model->workers, .seed = 1},
                           .there = ls_fit_there(1),
                           .open = open_trial,
                           .close = close_trial,
                           .user = trial};
}

/* Takes names of classes, which become the model's, in place of those that there are. */
static void set_classes(struct lockstep_model *model, const struct ls_class_list *names)
{
    struct ls_class_list old = {model->classes, (int)model->class_count};
    ls_class_list_free(&old);
    model->classes = names->name;
    model->class_count = (size_t)names->count;
}

/* Names from a file of the caller's, in place of those of the weights. */
static int read_labels(struct lockstep_model *model, const char *path, struct ls_error *error)
{
    struct ls_class_list names;
    LS_TRY(ls_class_list_read(path, LOCKSTEP_USAGE, &names, error));
    if (names.count == 0)
        return ls_fail(error, LOCKSTEP_USAGE, path, "it has the name of a class on each line",
                       "there are no names in it");
    set_classes(model, &names);
    return 0;
}

static void say(void *user, enum lockstep_event_kind kind, const char *line)
{
    const struct lockstep_model *model = user;
    struct lockstep_event event = {.kind = kind, .text = line};
    if (model->callbacks.event != NULL)
        model->callbacks.event(model->callbacks.user, &event);
}

void ls_model_warn(void *user, const char *sentence)
{
    const struct lockstep_model *model = user;
    struct lockstep_event event = {.kind = LOCKSTEP_EVENT_WARNING, .text = sentence};
    if (model->callbacks.event != NULL)
        model->callbacks.event(model->callbacks.user, &event);
}

/* What the definition says in vain. */
static void tell_ignored(struct lockstep_model *model)
{
    const char *warning = model->definition.definition->warning;
    if (warning != NULL)
        ls_model_warn(model, warning);
    ls_ignored_tell(&model->net, 1, ls_model_warn, model);
}

static int load_weights(struct lockstep_model *model, const char *weights, const char *map,
                        struct ls_error *error)
{
    const struct ls_graph *graph = ls_net_graph(model->net);
    const struct ls_weights_request request = {
        .files = weights,
        .map = map,
        .use = model->blob != NULL ? LS_WEIGHTS_PART : LS_WEIGHTS_COMPUTE,
        .say = say,
        .user = model,
    };
    LS_TRY(ls_load_weights(model->store, &graph, 1, &request, error));
    return ls_check_averages(model->store, graph,
                             "train the net, or name a file of weights that has them", error);
}

/* How pictures are to be transformed, where the caller says it. */
static int note_pictures(struct lockstep_model *model, const struct lockstep_model_options *options,
                         struct ls_error *error)
{
    model->scale = options->scale;
    model->resize = options->resize;
    model->oversample = options->oversample != 0;
    if (options->mean != NULL && (model->mean = ls_copy_string(options->mean)) == NULL)
        return ls_fail_memory(error, "a model");
    if (options->resize < 0 || options->resize > 65536 || !isfinite(options->scale))
        return ls_fail(error, LOCKSTEP_USAGE, NULL, NULL,
                       "pictures cannot be resized to %d, or multiplied by %g", options->resize,
                       options->scale);
    const bool said =
        model->mean != NULL || model->scale != 0 || model->resize != 0 || model->oversample;
    if (said && model->net->dataset_count > 0)
        return ls_fail(error, LOCKSTEP_USAGE, model->definition.definition->file,
                       "leave mean, scale, size and oversample out, or use the net's deploy form",
                       "the net has a data layer, which says how pictures are transformed");
    return 0;
}

static int load(struct lockstep_model *model, const char *path, const char *weights,
                const struct lockstep_model_options *options, struct ls_error *error)
{
    struct ls_model_trial trial = {path, options, model};
    struct ls_fit fit;
    LS_TRY(ls_device_find(options->device, &model->device, error));
    LS_TRY(ls_api_use_card(options->device, "a trained net", &model->card, error));
    const int workers = ls_api_workers(model->device, options->workers);
    model->workers = workers;
    model->outer_callbacks = options->callbacks;
    model->callbacks = ls_caller_callbacks(&model->outer_callbacks);
    model->iterations = options->iterations;
    model->parameters = ls_parameter_set_new();
    if (model->parameters == NULL)
        return ls_fail_memory(error, "a model");
    LS_TRY(ls_comm_create_alone(&model->comm, error));
    LS_TRY(ls_comm_start(model->comm, workers, NULL, error));
    LS_TRY(read_net(model, path, options, 0, error));
    tell_ignored(model);
    ls_model_fit(&trial, &fit);
    LS_TRY(ls_fit(&fit, (size_t)options->memory, &model->forecast, error));
    LS_TRY(ls_engine_create(model->device, model->comm, workers, &model->engine, error));
    int made =
        ls_engine_create_store(model->engine, model->parameters, &model->views, &fit.store, error);
    model->store = model->engine->store;
    LS_TRY(made);
    LS_TRY(load_weights(model, weights, options->map, error));
    if (options->labels != NULL)
        LS_TRY(read_labels(model, options->labels, error));
    LS_TRY(note_pictures(model, options, error));
    ls_thread_pool_enter(model->engine->pool);
    int status = ls_engine_bind(model->engine, &model->net, 1, error);
    ls_thread_pool_leave(model->engine->pool);
    LS_TRY(status);
    if (!model->net->options.from_outside)
        LS_TRY(ls_step_create(model->engine, model->net, &model->pass, error));
    ls_picture_rule_compare(model);
    return ls_model_init_predictions(model, error);
}

/* What the weights call the classes: the data are numbered by it. */
static int read_class_names(struct lockstep_model *model, const char *weights,
                            struct ls_error *error)
{
    char *names = NULL, *tokenizer = NULL;
    int status = ls_read_weights_names(weights, &names, &tokenizer, error);
    struct ls_class_list list = {.count = 0};
    if (status == 0 && names != NULL)
        status = ls_class_list_lines(names, &list, error);
    set_classes(model, &list);
    model->tokenizer = ls_weights_tokenizer(tokenizer);
    ls_free(names);
    ls_free(tokenizer);
    return status;
}

int lockstep_model_load(const char *path, const char *weights,
                        const struct lockstep_model_options *options, struct lockstep_model **out,
                        struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct ls_error *inner = ls_api_error(error);
    *out = NULL;
    struct lockstep_model_options mine;
    LS_TRY(ls_api_require(path, "path", inner));
    LS_TRY(ls_api_require(weights, "weights", inner));
    LS_TRY(LS_API_OPTIONS(mine, options, "lockstep_model_options_init", inner));
    options = &mine;
    if (options->workers < 0 || options->workers > 4096)
        return ls_fail(inner, LOCKSTEP_USAGE, NULL, "use 1 to 4096, or leave it out",
                       "%d workers are not possible", options->workers);
    LS_TRY(ls_api_select(options->device, options->isa, inner));
    struct lockstep_model *model = ls_alloc(1, sizeof *model);
    if (model == NULL)
        return ls_fail_memory(inner, "a model");
    int status = ls_trained_read(weights, &model->trained, inner);
    if (status == 0)
        status = read_class_names(model, weights, inner);
    if (status == 0)
        status = load(model, path, weights, options, inner);
    if (status != 0)
        lockstep_model_free(model);
    else
        *out = model;
    return status;
}

void lockstep_model_free(struct lockstep_model *model)
{
    if (model == NULL)
        return;
    LS_OWN_MODE;
    ls_thread_set_card(model->card);
    ls_confusion_free(model->confusion);
    ls_found_boxes_free(model->found);
    ls_model_free_predictions(model);
    ls_step_free(model->pass);
    ls_net_close(model->net);
    ls_engine_free(model->engine);
    ls_comm_end(model->comm);
    ls_view_set_free(&model->views);
    ls_parameter_set_free(model->parameters);
    ls_outputs_free(&model->outputs);
    ls_trained_free(&model->trained);
    ls_definition_free(model->definition.definition);
    struct ls_class_list classes = {model->classes, (int)model->class_count};
    ls_class_list_free(&classes);
    ls_free(model->mean);
    ls_free(model);
}

/* ---- What it knows --------------------------------------------------------------------------- */

const char *lockstep_model_class_name(const struct lockstep_model *model, size_t index)
{
    if (index < model->class_count)
        return model->classes[index];
    const struct ls_dataset *dataset = ls_sources_named(model->net);
    return dataset != NULL && (int64_t)index < ls_dataset_classes(dataset)
               ? ls_dataset_class_name(dataset, (int)index)
               : NULL;
}

int64_t lockstep_model_sample_count(const struct lockstep_model *model)
{
    return model->net->dataset_count > 0 ? model->net->batching.samples : 0;
}

/* ---- Saving ---------------------------------------------------------------------------------- */

static int fetch(void *user, size_t index, void *out, struct ls_error *error)
{
    return ls_copies_read(user, (int)index, LS_WEIGHTS, out, error);
}

static int save_archive(const struct lockstep_model *model, const char *path,
                        struct ls_error *error)
{
    const struct ls_parameter_set *set = model->parameters;
    struct ls_archive archive = {.fetch = fetch, .user = model->engine};
    int status = 0;
    for (size_t i = 0; i < set->count && status == 0; i++)
        status = ls_archive_add(&archive, set->items[i]->name, LS_F32, &set->items[i]->shape,
                                ls_copies_plain(model->engine, (int)i, LS_WEIGHTS), error);
    if (status == 0)
        status = ls_archive_write(&archive, path, error);
    ls_archive_free(&archive);
    return status;
}

int lockstep_model_save(struct lockstep_model *model, const char *path,
                        struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct ls_error *inner = ls_api_error(error);
    LS_TRY(ls_api_require(model, "model", inner));
    ls_thread_set_card(model->card);
    LS_TRY(ls_api_require(path, "path", inner));
    enum ls_weights_format format = ls_weights_format(path);
    if (format == LS_WEIGHTS_CAFFEMODEL || format == LS_WEIGHTS_HDF5)
        return ls_save_caffemodel(model->engine, ls_net_graph(model->net), path, inner);
    return save_archive(model, path, inner);
}

int lockstep_convert_weights(const char *from, const char *to,
                             void (*tell)(void *user, const char *line), void *user,
                             struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct ls_error *inner = ls_api_error(error);
    LS_TRY(ls_api_require(from, "from", inner));
    LS_TRY(ls_api_require(to, "to", inner));
    return ls_weights_convert(from, to, NULL, tell, user, inner);
}

int lockstep_convert_weight_names(const char *from, const char *to, const char *map,
                                  void (*tell)(void *user, const char *line), void *user,
                                  struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct ls_error *inner = ls_api_error(error);
    LS_TRY(ls_api_require(from, "from", inner));
    LS_TRY(ls_api_require(to, "to", inner));
    LS_TRY(ls_api_require(map, "map", inner));
    return ls_weights_convert_names(from, to, map, tell, user, inner);
}
