/* Weights on their way into a store and out of it, by layer name.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/weights.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/progress.h"
#include "base/text.h"
#include "engine/copies.h"
#include "engine/labels.h"
#include "engine/store_views.h"
#include "ir/layer.h"
#include "snapshot/archive.h"
#include "snapshot/caffemodel.h"
#include "snapshot/caffemodel_hdf5.h"
#include "snapshot/weights.h"
#include "solver/environment.h"
#include "solver/events.h"
#include "solver/history.h"
#include "solver/notes.h"
#include "solver/state.h"
#include "solver/weights_account.h"
#include "transport/comm.h"

/* ---- In -------------------------------------------------------------------------------------- */

struct intake {
    const struct ls_weights_request *request;
    struct ls_store *store;
    struct ls_weight_target *targets;
    size_t count, capacity;
    struct ls_weights_account account;
    struct ls_error *error;
};

static int store_blob(void *user, const struct ls_weight_target *target, const float *data,
                      struct ls_error *error)
{
    struct ls_store *store = user;
    LS_TRY(ls_store_write(store, target->parameter, LS_WEIGHTS, data, error));
    if (store->slots[target->parameter].average == NULL)
        return 0;
    return ls_store_write(store, target->parameter, LS_AVERAGE, data, error);
}

static bool has_target(const struct intake *intake, const char *layer)
{
    for (size_t i = 0; i < intake->count; i++)
        if (strcmp(intake->targets[i].layer, layer) == 0)
            return true;
    return false;
}

static bool is_random(const struct ls_blob_request *request)
{
    return request->filler != NULL && strcmp(request->filler->type, "constant") != 0;
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
                                          .parameter = layer->blob[b]->index,
                                          .shared = strcmp(layer->blob[b]->layer, layer->name) != 0,
                                          .random = is_random(&layer->request[b]),
                                          .shape = layer->request[b].shape,
                                          .store = store_blob,
                                          .user = intake->store};
        }
    }
    return 0;
}

static void say(const struct intake *intake, struct ls_text *line)
{
    if (intake->request->say != NULL && line->length > 0)
        intake->request->say(intake->request->user, LOCKSTEP_EVENT_NOTICE, line->data);
    ls_text_free(line);
}

/* That a file of weights was trained in several numeric environments. */
static void say_history(const struct intake *intake, const char *file, const char *history)
{
    struct ls_text words = {0}, line = {0};
    if (history == NULL)
        return;
    ls_environment_say_history(history, &words);
    if (words.length > 0)
        ls_text_format(&line, "%s: trained in several numeric environments: %s", file, words.data);
    ls_text_free(&words);
    say(intake, &line);
}

/* Not one tensor of a file is the net's. */
static int fail_strange(struct intake *intake, const char *file, const struct ls_weights *weights)
{
    char hint[400] = "weights are found by the names of layers";
    const char *map = intake->request->map == NULL ? ls_weights_suggest_map(weights) : NULL;
    if (map != NULL)
        snprintf(hint, sizeof hint, "%s knows its names: --map %s (docs/weights.md)", map, map);
    else
        ls_weights_account_prefix(&intake->account, hint, sizeof hint);
    return ls_fail(intake->error, LOCKSTEP_WEIGHTS, file, hint,
                   "no layer of the file is a layer of the net");
}

/* Some layers of a file have the net's names by chance, as 'classifier'. */
static void say_map(const struct intake *intake, const char *file, const struct ls_weights *weights,
                    const struct ls_weights_report *report)
{
    const char *map = intake->request->map == NULL && report->count > 2 * report->taken
                          ? ls_weights_suggest_map(weights)
                          : NULL;
    struct ls_text line = {0};
    if (map != NULL)
        ls_text_format(&line, "%s: %s knows its names: --map %s (docs/weights.md)", file, map, map);
    say(intake, &line);
}

static int take_file(struct intake *intake, const char *file)
{
    const struct ls_weights_request *request = intake->request;
    struct ls_weights weights = {0};
    struct ls_weights_report report = {0};
    LS_TRY(ls_weights_read_mapped(file, LS_WEIGHTS_BEST, request->map, &weights, intake->error));
    int status = ls_weights_apply(&weights, intake->targets, intake->count, request->partial,
                                  &report, intake->error);
    if (status == 0)
        status = ls_weights_account_file(&intake->account, file, &weights, &report, intake->error);
    if (status == 0 && report.taken == 0 && (request->use == LS_WEIGHTS_TRAIN || intake->count > 0))
        status = fail_strange(intake, file, &weights);
    if (status == 0) {
        say_map(intake, file, &weights, &report);
        say_history(intake, file, ls_weights_note(&weights, LS_NOTE_HISTORY));
    }
    ls_weights_report_free(&report);
    ls_weights_free(&weights);
    return status;
}

static int take_files(struct intake *intake)
{
    const char *files = intake->request->files;
    char *list = ls_copy_string(files), *rest = list;
    int status = list == NULL ? ls_fail_memory(intake->error, "weights") : 0;
    for (char *file; status == 0 && (file = strsep(&rest, ",")) != NULL;)
        status = file[0] != '\0' ? take_file(intake, file)
                                 : ls_fail(intake->error, LOCKSTEP_WEIGHTS, NULL,
                                           "write the files to start from, with one comma between "
                                           "two of them",
                                           "'%s' has an empty file name", files);
    ls_free(list);
    return status;
}

int ls_load_weights(struct ls_store *store, const struct ls_graph *const *graphs, size_t count,
                    const struct ls_weights_request *request, struct ls_error *error)
{
    struct intake intake = {.request = request, .store = store, .error = error};
    int status = 0;
    for (size_t i = 0; i < count && status == 0; i++)
        status = add_targets(&intake, graphs[i]);
    intake.account = (struct ls_weights_account){
        .request = request, .store = store, .targets = intake.targets, .count = intake.count};
    if (status == 0)
        status = ls_weights_account_open(&intake.account, error);
    if (status == 0)
        status = take_files(&intake);
    if (status == 0)
        status = ls_weights_account_end(&intake.account, error);
    ls_weights_account_close(&intake.account);
    ls_free(intake.targets);
    return status;
}

/* Keeps a copy of a note, if there is one, in place of another file's. */
static bool keep_note(const struct ls_archive *archive, const char *key, char **kept)
{
    const char *note = ls_archive_note(archive, key);
    if (note == NULL)
        return true;
    ls_free(*kept);
    *kept = ls_copy_string(note);
    return *kept != NULL;
}

uint64_t ls_weights_tokenizer(const char *note)
{
    uint64_t tokenizer = 0;
    return note != NULL && sscanf(note, "%16" SCNx64, &tokenizer) == 1 ? tokenizer : 0;
}

int ls_read_weights_names(const char *files, char **names, char **tokenizer, struct ls_error *error)
{
    char *list = ls_copy_string(files), *rest = list;
    bool kept = list != NULL;
    *names = *tokenizer = NULL;
    for (char *file; kept && (file = strsep(&rest, ",")) != NULL;) {
        struct ls_archive archive = {0};
        const int status =
            file[0] != '\0' ? ls_archive_read(file, LS_ARCHIVE_HEADER, &archive, NULL) : 0;
        kept = status != LOCKSTEP_RESOURCE;
        if (file[0] != '\0' && status == 0)
            kept = keep_note(&archive, LS_NOTE_CLASSES, names) &&
                   keep_note(&archive, LS_NOTE_TOKENIZER, tokenizer);
        ls_archive_free(&archive);
    }
    ls_free(list);
    return kept ? 0 : ls_fail_memory(error, "class names");
}

/* ---- What numbers stand for ------------------------------------------------------------------ */

/* Whether a file has a parameter whose rows are classes or tokens. */
struct rows_in_file {
    const struct ls_archive *archive;
    bool there;
};

static void look_for_rows(void *user, const struct ls_parameter *parameter)
{
    struct rows_in_file *rows = user;
    rows->there = rows->there || ls_archive_find(rows->archive, parameter->name) != NULL;
}

/* A class that both have, with other numbers. */
static void warn_of_classes(struct ls_trainer *trainer, const struct ls_class_names *own,
                            const struct ls_class_names *theirs)
{
    for (int i = 0; i < own->count; i++) {
        const int there = ls_class_names_find(theirs, own->name[i]);
        if (own->name[i][0] == '\0' || there < 0 || there == i)
            continue;
        ls_events_say(trainer, LOCKSTEP_EVENT_WARNING,
                      "class %d is '%s' in %s and number %d in %s: the layer that makes the scores "
                      "begins with what it has learned of other classes (give it another name to "
                      "start with new weights)",
                      i, own->name[i], own->of, there, theirs->of);
        return;
    }
}

/* Holds what the numbers of the data stand for against what they did for the weights of a file. */
static int check_names(struct ls_trainer *trainer, const struct ls_archive *archive,
                       const struct ls_dataset *dataset, struct ls_error *error)
{
    struct rows_in_file rows = {.archive = archive};
    const struct ls_class_names own = ls_dataset_class_names(dataset);
    const char *names = ls_archive_note(archive, LS_NOTE_CLASSES);
    struct ls_class_list list = {.count = 0};
    ls_labels_visit_rows(trainer->train, dataset, look_for_rows, &rows);
    if (!rows.there || (own.count == 0 && own.tokenizer == 0))
        return 0;
    LS_TRY(names != NULL ? ls_class_list_lines(names, &list, error) : 0);
    const struct ls_class_names theirs = {
        (const char *const *)list.name, list.count, archive->path,
        ls_weights_tokenizer(ls_archive_note(archive, LS_NOTE_TOKENIZER))};
    int status = 0;
    if (ls_dataset_has_vocabulary(dataset) || own.tokenizer != 0)
        status = ls_dataset_check_names(dataset, &theirs, error);
    else
        warn_of_classes(trainer, &own, &theirs);
    ls_class_list_free(&list);
    return status;
}

static int check_file(struct ls_trainer *trainer, const char *file, struct ls_error *error)
{
    struct ls_archive archive = {0};
    if (file[0] == '\0' || ls_archive_read(file, LS_ARCHIVE_HEADER, &archive, NULL) != 0)
        return 0; /* what it is will be said when it is read */
    int status = 0;
    const struct ls_net *train = trainer->train;
    for (int d = 0; d < train->dataset_count && status == 0; d++)
        if (train->datasets[d] != NULL)
            status = check_names(trainer, &archive, train->datasets[d], error);
    ls_archive_free(&archive);
    return status;
}

static int check_files(struct ls_trainer *trainer, const char *files, struct ls_error *error)
{
    char *list = ls_copy_string(files), *rest = list;
    int status = list == NULL ? ls_fail_memory(error, "weights") : 0;
    for (char *file; status == 0 && (file = strsep(&rest, ",")) != NULL;)
        status = check_file(trainer, file, error);
    ls_free(list);
    return status;
}

static void notice(void *user, enum lockstep_event_kind kind, const char *line)
{
    ls_events_say(user, kind, "%s", line);
}

static int read_weights(void *user, size_t parameter, const struct ls_state_array *array,
                        float *plain, struct ls_error *error)
{
    (void)array; /* averages begin as the weights are */
    return ls_copies_read(user, (int)parameter, LS_WEIGHTS, plain, error);
}

/* Rank 0 reads the files; all get what its store holds then. */
static int share_weights(struct ls_trainer *trainer, int status, struct ls_error *error)
{
    struct ls_state_reader reader = {.read = read_weights, .user = trainer->engine, .fresh = true};
    status = ls_comm_agree(trainer->comm, status, error);
    if (status != 0 || trainer->comm->size == 1)
        return status;
    return ls_state_hand_out(trainer, &reader, error);
}

static int load_files(struct ls_trainer *trainer, const char *files, const char *map, bool partial,
                      struct ls_error *error)
{
    if (trainer->comm->rank != 0)
        return 0;
    LS_TRY(check_files(trainer, files, error));
    const struct ls_graph **graphs = ls_alloc(trainer->test_count + 1, sizeof *graphs);
    if (graphs == NULL)
        return ls_fail_memory(error, "weights");
    graphs[0] = ls_net_graph(trainer->train);
    for (size_t i = 0; i < trainer->test_count; i++)
        graphs[i + 1] = ls_net_graph(trainer->tests[i].net);
    const struct ls_weights_request request = {
        .files = files,
        .map = map,
        .use = LS_WEIGHTS_TRAIN,
        .partial = partial || trainer->solver->partial_weights,
        .say = notice,
        .user = trainer,
    };
    int status = ls_load_weights(trainer->store, graphs, trainer->test_count + 1, &request, error);
    ls_free(graphs);
    return status;
}

int ls_trainer_load_weights(struct ls_trainer *trainer, const char *files, const char *map,
                            bool partial, struct ls_error *error)
{
    ls_progress_hear(ls_state_note_piece, trainer);
    int status = load_files(trainer, files, map, partial, error);
    ls_progress_hear(NULL, NULL);
    LS_TRY(share_weights(trainer, status, error));
    ls_thread_pool_enter(trainer->engine->pool);
    status = ls_store_refresh_views(trainer->store, trainer->engine->pool, error);
    ls_thread_pool_leave(trainer->engine->pool);
    return ls_comm_agree(trainer->comm, status, error);
}

/* ---- Out ------------------------------------------------------------------------------------- */

/* What the layers of a caffemodel are, with weights that lie at plain[parameter]. */
static void fill_layers(const struct ls_graph *graph, const float *const *plain,
                        float *const *gradients, struct ls_caffemodel_layer *layers,
                        struct ls_caffemodel_blob *blob)
{
    for (size_t i = 0; i < graph->layer_count; i++) {
        const struct ls_layer *layer = graph->layers[i];
        const Lockstep__LayerParameter *definition = layer->definition;
        layers[i] = (struct ls_caffemodel_layer){.name = layer->name,
                                                 .type = layer->type->type,
                                                 .bottoms = (const char *const *)definition->bottom,
                                                 .bottom_count = definition->n_bottom,
                                                 .tops = (const char *const *)definition->top,
                                                 .top_count = definition->n_top,
                                                 .blobs = blob,
                                                 .blob_count = (size_t)layer->blobs};
        for (int b = 0; b < layer->blobs; b++) {
            const int index = layer->blob[b]->index;
            *blob++ = (struct ls_caffemodel_blob){
                .shape = layer->request[b].shape,
                .data = plain[index],
                .diff = gradients != NULL ? gradients[index] : NULL,
                .shared = strcmp(layer->blob[b]->layer, layer->name) != 0};
        }
    }
}

int ls_write_caffemodel(const struct ls_graph *graph, const float *const *plain,
                        float *const *gradients, const char *path, struct ls_error *error)
{
    size_t blobs = 0;
    for (size_t i = 0; i < graph->layer_count; i++)
        blobs += (size_t)graph->layers[i]->blobs;
    struct ls_caffemodel_layer *layers = ls_alloc(graph->layer_count + 1, sizeof *layers);
    struct ls_caffemodel_blob *blob = ls_alloc(blobs + 1, sizeof *blob);
    const char *name = graph->net != NULL ? graph->net->name : NULL;
    int status = layers == NULL || blob == NULL ? ls_fail_memory(error, "a caffemodel") : 0;
    if (status == 0) {
        fill_layers(graph, plain, gradients, layers, blob);
        status = ls_caffemodel_is_hdf5(path)
                     ? ls_caffemodel_write_hdf5(path, layers, graph->layer_count, gradients != NULL,
                                                error)
                     : ls_caffemodel_write(path, name != NULL ? name : "", layers,
                                           graph->layer_count, error);
    }
    ls_free(layers);
    ls_free(blob);
    return status;
}

int ls_save_caffemodel(const struct ls_engine *engine, const struct ls_graph *graph,
                       const char *path, struct ls_error *error)
{
    const struct ls_store *store = engine->store;
    size_t count = store->set->count;
    float **plain = ls_alloc(count + 1, sizeof *plain);
    int status = plain == NULL ? ls_fail_memory(error, "a caffemodel") : 0;
    for (size_t i = 0; i < count && status == 0; i++) {
        plain[i] = ls_alloc_aligned(ls_parameter_plain_bytes(store->set->items[i]));
        status = plain[i] == NULL ? ls_fail_memory(error, "a caffemodel")
                                  : ls_copies_read(engine, (int)i, LS_WEIGHTS, plain[i], error);
    }
    if (status == 0)
        status = ls_write_caffemodel(graph, (const float *const *)plain, NULL, path, error);
    for (size_t i = 0; i < count && plain != NULL; i++)
        ls_free_aligned(plain[i]);
    ls_free(plain);
    return status;
}
