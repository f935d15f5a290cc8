/* Weights on their way into a store and out of it, by layer name.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "ir/layer.h"
#include "snapshot/caffemodel.h"
#include "snapshot/weights.h"
#include "solver/notes.h"
#include "solver/state.h"
#include "transport/peers.h"

/* ---- In -------------------------------------------------------------------------------------- */

struct intake {
    struct ls_store *store;
    struct ls_weight_target *targets;
    size_t count, capacity;
    void (*say)(void *user, const char *line);
    void *user;
    struct ls_error *error;
};

static int store_blob(void *user, const struct ls_weight_target *target, const float *data,
                      struct ls_error *error)
{
    struct ls_store *store = user;
    struct ls_parameter *parameter = NULL;
    for (size_t i = 0; i < store->set->count && parameter == NULL; i++)
        if (strcmp(store->set->items[i]->layer, target->layer) == 0 &&
            store->set->items[i]->blob == target->blob)
            parameter = store->set->items[i];
    if (parameter == NULL)
        return 0; /* another layer owns it and has stored it */
    LS_TRY(ls_store_write(store, parameter->index, LS_WEIGHTS, data, error));
    if (store->slots[parameter->index].average == NULL)
        return 0;
    return ls_store_write(store, parameter->index, LS_AVERAGE, data, error);
}

static bool has_target(const struct intake *intake, const char *layer)
{
    for (size_t i = 0; i < intake->count; i++)
        if (strcmp(intake->targets[i].layer, layer) == 0)
            return true;
    return false;
}

static int add_targets(struct intake *intake, const struct ls_graph *graph)
{
    for (size_t i = 0; i < graph->layer_count; i++) {
        const struct ls_layer *layer = graph->layers[i];
        if (layer->blobs == 0 || has_target(intake, layer->name))
            continue;
        for (int b = 0; b < layer->blobs; b++) {
            if (!LS_GROW(intake->targets, intake->count, intake->capacity))
                return ls_fail_memory(intake->error, "weights");
            intake->targets[intake->count++] =
                (struct ls_weight_target){.layer = layer->name,
                                          .name = layer->request[b].name,
                                          .average = layer->request[b].average,
                                          .blob = b,
                                          .blob_count = layer->blobs,
                                          .shared = strcmp(layer->blob[b]->layer, layer->name) != 0,
                                          .shape = layer->request[b].shape,
                                          .store = store_blob,
                                          .user = intake->store};
        }
    }
    return 0;
}

static void say_list(const struct intake *intake, const char *file, const char *what,
                     const char *const *names, size_t count)
{
    struct ls_text line = {0};
    if (intake->say == NULL || count == 0)
        return;
    ls_text_format(&line, "%s: %s", file, what);
    for (size_t i = 0; i < count && i < 20; i++)
        ls_text_format(&line, "%s '%s'", i > 0 ? "," : "", names[i]);
    if (count > 20)
        ls_text_format(&line, " and %zu more", count - 20);
    if (!line.failed)
        intake->say(intake->user, line.data);
    ls_text_free(&line);
}

static int take_file(struct intake *intake, const char *file, char **classes)
{
    struct ls_weights weights = {0};
    struct ls_weights_report report = {0};
    LS_TRY(ls_weights_read(file, LS_WEIGHTS_BEST, &weights, intake->error));
    int status = ls_weights_apply(&weights, intake->targets, intake->count, &report, intake->error);
    if (status == 0 && report.stored == 0)
        status = ls_fail(intake->error, LOCKSTEP_WEIGHTS, file,
                         "weights are found by the names of layers",
                         "no layer of the file is a layer of the net");
    if (status == 0) {
        say_list(intake, file, "ignored, because the net does not have them:", report.ignored,
                 report.ignored_count);
        say_list(intake, file, "not in the file, so that they keep their values:", report.kept,
                 report.kept_count);
        const char *names = ls_weights_note(&weights, LS_NOTE_CLASSES);
        if (classes != NULL && names != NULL) {
            ls_free(*classes);
            *classes = ls_copy_string(names);
            if (*classes == NULL)
                status = ls_fail_memory(intake->error, "class names");
        }
    }
    ls_weights_report_free(&report);
    ls_weights_free(&weights);
    return status;
}

int ls_load_weights(struct ls_store *store, const struct ls_graph *const *graphs, size_t count,
                    const char *files, void (*say)(void *user, const char *line), void *user,
                    char **classes, struct ls_error *error)
{
    struct intake intake = {.store = store, .say = say, .user = user, .error = error};
    char *list = ls_copy_string(files), *rest = list;
    int status = list == NULL ? ls_fail_memory(error, "weights") : 0;
    for (size_t i = 0; i < count && status == 0; i++)
        status = add_targets(&intake, graphs[i]);
    for (char *file; status == 0 && (file = strsep(&rest, ",")) != NULL;)
        status = file[0] != '\0' ? take_file(&intake, file, classes)
                                 : ls_fail(error, LOCKSTEP_WEIGHTS, NULL,
                                           "write the files to start from, with one comma between "
                                           "two of them",
                                           "'%s' has an empty file name", files);
    ls_free(list);
    ls_free(intake.targets);
    return status;
}

static void notice(void *user, const char *line)
{
    ls_trainer_say(user, LOCKSTEP_EVENT_NOTICE, "%s", line);
}

static int read_weights(void *user, size_t parameter, const struct ls_state_array *array,
                        float *plain, struct ls_error *error)
{
    (void)array; /* averages begin as the weights are */
    const struct ls_store *store = user;
    return ls_store_read(store, (int)parameter, LS_WEIGHTS, plain, error);
}

/* Rank 0 reads the files; all get what its store holds then. */
static int share_weights(struct ls_trainer *trainer, int status, struct ls_error *error)
{
    struct ls_state_reader reader = {.read = read_weights, .user = trainer->store, .fresh = true};
    status = ls_peers_agree(trainer->peers, status, error);
    if (status != 0 || !ls_peers_several(trainer->peers))
        return status;
    return ls_state_hand_out(trainer, &reader, error);
}

static int load_files(struct ls_trainer *trainer, const char *files, struct ls_error *error)
{
    if (ls_peers_rank(trainer->peers) != 0)
        return 0;
    const struct ls_graph **graphs = ls_alloc(trainer->test_count + 1, sizeof *graphs);
    if (graphs == NULL)
        return ls_fail_memory(error, "weights");
    graphs[0] = ls_net_graph(trainer->train);
    for (size_t i = 0; i < trainer->test_count; i++)
        graphs[i + 1] = ls_net_graph(trainer->tests[i].net);
    int status = ls_load_weights(trainer->store, graphs, trainer->test_count + 1, files, notice,
                                 trainer, NULL, error);
    ls_free(graphs);
    return status;
}

int ls_trainer_load_weights(struct ls_trainer *trainer, const char *files, struct ls_error *error)
{
    LS_TRY(share_weights(trainer, load_files(trainer, files, error), error));
    ls_team_enter(trainer->engine->team);
    int status = ls_store_refresh_views(trainer->store, trainer->engine->team, error);
    ls_team_leave(trainer->engine->team);
    return ls_peers_agree(trainer->peers, status, error);
}

/* ---- Out ------------------------------------------------------------------------------------- */

struct outlet {
    struct ls_caffemodel_layer *layers;
    struct ls_caffemodel_blob *blobs; /* of all layers, in order */
    float **plain;                    /* by parameter */
};

static int fill_outlet(struct outlet *outlet, const struct ls_store *store,
                       const struct ls_graph *graph, struct ls_error *error)
{
    for (size_t i = 0; i < store->set->count; i++) {
        size_t bytes = (size_t)ls_shape_size(&store->set->items[i]->shape) * sizeof(float);
        if ((outlet->plain[i] = ls_alloc_aligned(bytes)) == NULL)
            return ls_fail_memory(error, "a caffemodel");
        LS_TRY(ls_store_read(store, (int)i, LS_WEIGHTS, outlet->plain[i], error));
    }
    struct ls_caffemodel_blob *blob = outlet->blobs;
    for (size_t i = 0; i < graph->layer_count; i++) {
        const struct ls_layer *layer = graph->layers[i];
        const Lockstep__LayerParameter *definition = layer->definition;
        outlet->layers[i] =
            (struct ls_caffemodel_layer){.name = layer->name,
                                         .type = layer->type->type,
                                         .bottoms = (const char *const *)definition->bottom,
                                         .bottom_count = definition->n_bottom,
                                         .tops = (const char *const *)definition->top,
                                         .top_count = definition->n_top,
                                         .blobs = blob,
                                         .blob_count = (size_t)layer->blobs};
        for (int b = 0; b < layer->blobs; b++)
            *blob++ = (struct ls_caffemodel_blob){.shape = layer->request[b].shape,
                                                  .data = outlet->plain[layer->blob[b]->index]};
    }
    return 0;
}

int ls_save_caffemodel(const struct ls_store *store, const struct ls_graph *graph, const char *path,
                       struct ls_error *error)
{
    size_t blobs = 0;
    for (size_t i = 0; i < graph->layer_count; i++)
        blobs += (size_t)graph->layers[i]->blobs;
    struct outlet outlet = {.layers = ls_alloc(graph->layer_count + 1, sizeof *outlet.layers),
                            .blobs = ls_alloc(blobs + 1, sizeof *outlet.blobs),
                            .plain = ls_alloc(store->set->count + 1, sizeof *outlet.plain)};
    int status = outlet.layers == NULL || outlet.blobs == NULL || outlet.plain == NULL
                     ? ls_fail_memory(error, "a caffemodel")
                     : fill_outlet(&outlet, store, graph, error);
    const Lockstep__NetParameter *net = (const void *)graph->definition->message;
    const char *name =
        net->base.descriptor == &lockstep__net_parameter__descriptor ? net->name : NULL;
    if (status == 0)
        status = ls_caffemodel_write(path, name != NULL ? name : "", outlet.layers,
                                     graph->layer_count, error);
    for (size_t i = 0; i < store->set->count && outlet.plain != NULL; i++)
        ls_free_aligned(outlet.plain[i]);
    ls_free(outlet.layers);
    ls_free(outlet.blobs);
    ls_free(outlet.plain);
    return status;
}
