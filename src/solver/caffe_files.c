/* Caffe's files. See solver/caffe_files.h.
 *
 * A solver state has the iteration, the name of the file with the weights, and the history: an
 * array for each parameter that could be learned, in the order of the layers; of Adam and AdaDelta
 * then a second one for each. It does not say where in the data Caffe was: here that follows from
 * the iteration, as in any training.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/caffe_files.h"

#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/text.h"
#include "engine/copies.h"
#include "snapshot/catalog.h"
#include "snapshot/solverstate.h"
#include "snapshot/weights.h"
#include "solver/chain.h"
#include "solver/data.h"
#include "solver/events.h"
#include "solver/state.h"
#include "solver/weights.h"
#include "transport/comm.h"

bool ls_caffe_files_wanted(const struct ls_trainer *trainer)
{
    return trainer->solver->has_snapshot_format;
}

static bool wants_hdf5(const struct ls_trainer *trainer)
{
    return trainer->solver->snapshot_format == LOCKSTEP__SOLVER_PARAMETER__SNAPSHOT_FORMAT__HDF5;
}

bool ls_caffe_files_have_state(const struct ls_trainer *trainer)
{
    return ls_groups_beyond_caffe(trainer->groups) == NULL &&
           trainer->solver->weight_average == NULL;
}

/* Arrays of history that Caffe has for each parameter. */
static size_t history_arrays(const struct ls_trainer *trainer)
{
    return (size_t)ls_update_histories(trainer->groups->group[trainer->groups->count - 1].kind);
}

/* ---- Gradients ------------------------------------------------------------------------------- */

void ls_caffe_files_free_gradients(const struct ls_trainer *trainer, float **gradients)
{
    for (size_t i = 0; gradients != NULL && i < trainer->parameters->count; i++)
        ls_free_aligned(gradients[i]);
    ls_free(gradients);
}

static int make_room(const struct ls_trainer *trainer, float **gradients)
{
    for (size_t i = 0; i < trainer->parameters->count; i++) {
        gradients[i] = ls_alloc_aligned(ls_parameter_plain_bytes(trainer->parameters->items[i]));
        if (gradients[i] == NULL)
            return LOCKSTEP_RESOURCE;
    }
    return 0;
}

int ls_caffe_files_gradients(struct ls_trainer *trainer, float ***out, struct ls_error *error)
{
    *out = NULL;
    if (!ls_caffe_files_wanted(trainer) || !trainer->solver->snapshot_diff || !trainer->compared)
        return 0;
    float **gradients = ls_alloc(trainer->parameters->count + 1, sizeof *gradients);
    int status = gradients == NULL || make_room(trainer, gradients) != 0
                     ? ls_fail_memory(error, "the gradients of a snapshot")
                     : 0;
    status = ls_comm_agree(trainer->comm, status, error);
    for (size_t i = 0; gradients != NULL && i < trainer->parameters->count && status == 0; i++)
        if (trainer->parameters->items[i]->trained)
            status = ls_copies_read_gradient(trainer->engine, (int)i, gradients[i], error);
    if (status == 0 && trainer->comm->rank == 0)
        *out = gradients;
    else
        ls_caffe_files_free_gradients(trainer, gradients);
    return status;
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* The tensor of a snapshot with that name; one in memory has no index of names. */
static const struct ls_tensor *find_tensor(const struct ls_archive *archive, const char *prefix,
                                           const char *name)
{
    size_t length = strlen(prefix);
    for (size_t i = 0; i < archive->tensor_count; i++) {
        const char *known = archive->tensors[i].name;
        if (strncmp(known, prefix, length) == 0 && strcmp(known + length, name) == 0)
            return &archive->tensors[i];
    }
    return NULL;
}

/* Averages, where there are any, are what a caffemodel holds. */
static int write_weights(const struct ls_trainer *trainer, const struct ls_archive *archive,
                         float *const *gradients, const char *path, struct ls_error *error)
{
    const struct ls_parameter_set *set = trainer->parameters;
    const float **plain = ls_alloc(set->count + 1, sizeof *plain);
    int status = plain == NULL ? ls_fail_memory(error, "a caffemodel") : 0;
    for (size_t i = 0; i < set->count && status == 0; i++) {
        const struct ls_tensor *tensor =
            find_tensor(archive, LS_PREFIX_AVERAGE, set->items[i]->name);
        if (tensor == NULL)
            tensor = find_tensor(archive, "", set->items[i]->name);
        if (tensor == NULL)
            status = ls_fail(error, LOCKSTEP_RESOURCE, path, NULL, "the snapshot has no '%s'",
                             set->items[i]->name);
        else
            plain[i] = tensor->data;
    }
    if (status == 0)
        status = ls_write_caffemodel(ls_net_graph(trainer->train), plain, gradients, path, error);
    ls_free(plain);
    return status;
}

/* What Caffe's solver has counted when so many updates are done. */
static int64_t current_step(const struct ls_schedule *schedule, int64_t iteration)
{
    int64_t steps = 0;
    if (iteration == 0)
        return 0;
    if (schedule->policy == LS_POLICY_STEP)
        return (iteration - 1) / schedule->stepsize;
    for (size_t i = 0; schedule->policy == LS_POLICY_MULTISTEP && i < schedule->stepvalue_count;
         i++)
        steps += schedule->stepvalue[i] < iteration;
    return steps;
}

/* Fills the history in Caffe's order; parameters that are not learned have zeros. */
static void fill_history(const struct ls_trainer *trainer, const struct ls_archive *archive,
                         const float *zeros, struct ls_caffemodel_blob *history)
{
    static const char *const prefixes[2] = {LS_PREFIX_STATE "history0.",
                                            LS_PREFIX_STATE "history1."};
    for (size_t a = 0; a < history_arrays(trainer); a++)
        for (size_t i = 0; i < trainer->train_parameters; i++) {
            const struct ls_parameter *parameter = trainer->parameters->items[i];
            const struct ls_tensor *tensor = find_tensor(archive, prefixes[a], parameter->name);
            *history++ = (struct ls_caffemodel_blob){.shape = parameter->shape,
                                                     .data = tensor != NULL ? tensor->data : zeros};
        }
}

static int write_state(const struct ls_trainer *trainer, int64_t iteration,
                       const struct ls_archive *archive, const char *model, const char *path,
                       struct ls_error *error)
{
    size_t count = history_arrays(trainer) * trainer->train_parameters, most = 0;
    for (size_t i = 0; i < trainer->train_parameters; i++) {
        size_t size = (size_t)ls_shape_size(&trainer->parameters->items[i]->shape);
        most = size > most ? size : most;
    }
    float *zeros = ls_alloc(most + 1, sizeof *zeros);
    struct ls_caffemodel_blob *history = ls_alloc(count + 1, sizeof *history);
    int status = zeros == NULL || history == NULL ? ls_fail_memory(error, "a solver state") : 0;
    if (status == 0) {
        fill_history(trainer, archive, zeros, history);
        struct ls_solverstate_draft draft = {.iteration = iteration,
                                             .current_step =
                                                 current_step(&trainer->schedule, iteration),
                                             .learned_net = model,
                                             .history = history,
                                             .count = count};
        status = ls_solverstate_write(path, &draft, error);
    }
    ls_free(zeros);
    ls_free(history);
    return status;
}

int ls_caffe_files_write(const struct ls_trainer *trainer, int64_t iteration,
                         const struct ls_archive *archive, float *const *gradients,
                         struct ls_error *error)
{
    bool hdf5 = wants_hdf5(trainer);
    char *model = ls_catalog_caffemodel_path(trainer->prefix, iteration, hdf5);
    char *state = ls_catalog_solverstate_path(trainer->prefix, iteration, hdf5);
    int status = model == NULL || state == NULL
                     ? ls_fail_memory(error, "a snapshot")
                     : write_weights(trainer, archive, gradients, model, error);
    if (status == 0 && ls_caffe_files_have_state(trainer))
        status = write_state(trainer, iteration, archive, model, state, error);
    ls_free(model);
    ls_free(state);
    return status;
}

/* ---- Going on -------------------------------------------------------------------------------- */

/* Rank 0: whether the history is one of this net and solver. All problems are told. */
static int check_history(const struct ls_trainer *trainer, const struct ls_solverstate *state,
                         struct ls_error *error)
{
    const struct ls_weights *history = &state->history;
    size_t parameters = trainer->train_parameters, arrays = history_arrays(trainer);
    int status = 0;
    const struct ls_group *beyond = ls_groups_beyond_caffe(trainer->groups);
    if (beyond != NULL && beyond->kind > LS_UPDATE_ADAM)
        return ls_fail(error, LOCKSTEP_WEIGHTS, history->path, NULL,
                       "Caffe has no %s, so this is of another type of solver", beyond->type);
    if (beyond != NULL)
        return ls_fail(error, LOCKSTEP_WEIGHTS, history->path, NULL,
                       "Caffe has one type of solver for all parameters, this solver several");
    if (history->layer_count != parameters * arrays)
        return ls_fail(error, LOCKSTEP_WEIGHTS, history->path,
                       "is it of this net, and of this type of solver? --weights starts a new "
                       "training from the weights beside it",
                       "has %zu blobs of history; the solver (%s) has %zu for each of the net's "
                       "%zu parameters",
                       history->layer_count, trainer->solver->type, arrays, parameters);
    for (size_t i = 0; i < history->layer_count; i++) {
        const struct ls_parameter *wanted = trainer->parameters->items[i % parameters];
        const struct ls_weight_blob *blob = &history->layers[i].blobs[0];
        char there[160], here[160];
        int64_t size = ls_shape_size(&blob->shape);
        if (size == ls_shape_size(&wanted->shape) &&
            (blob->legacy || ls_shape_equal(&blob->shape, &wanted->shape)))
            for (int64_t e = 0; e < size && status == 0; e++) {
                if (!isfinite(blob->data[e]))
                    status = ls_fail(error, LOCKSTEP_WEIGHTS, history->path,
                                     "the file is damaged, or its training had diverged",
                                     "blob %zu of the history has a number that is not finite", i);
            }
        else
            status = ls_fail(error, LOCKSTEP_WEIGHTS, history->path, "is it of this net?",
                             "blob %zu of the history has shape %s, parameter '%s' has %s", i,
                             ls_shape_text(&blob->shape, there, sizeof there), wanted->name,
                             ls_shape_text(&wanted->shape, here, sizeof here));
    }
    return status;
}

/* Rank 0: the file of the weights, where Caffe wrote it or beside the state. Owned by the caller.
 */
static int find_weights(const struct ls_solverstate *state, char **found, struct ls_error *error)
{
    const char *path = state->history.path, *net = state->learned_net;
    if (net == NULL)
        return ls_fail(error, LOCKSTEP_WEIGHTS, path, "use --weights to start from weights",
                       "names no file of weights");
    *found = ls_resolve_path(net, path);
    const char *slash = strrchr(net, '/');
    if (*found != NULL && !ls_file_exists(*found) && slash != NULL) {
        ls_free(*found);
        *found = ls_resolve_path(slash + 1, path);
    }
    if (*found == NULL)
        return ls_fail_memory(error, path);
    if (ls_file_exists(*found))
        return 0;
    return ls_fail(error, LOCKSTEP_WEIGHTS, path, "put the file of this name into the same folder",
                   "its weights '%s' are not there", net);
}

struct intake {
    const struct ls_trainer *trainer;
    const struct ls_solverstate *state;
};

/* Weights have been stored; the history is Caffe's. */
static int take_array(void *user, size_t parameter, const struct ls_state_array *array,
                      float *plain, struct ls_error *error)
{
    const struct intake *intake = user;
    const struct ls_trainer *trainer = intake->trainer;
    size_t size = (size_t)ls_shape_size(&trainer->parameters->items[parameter]->shape);
    size_t second = array->array == LS_HISTORY_1 ? trainer->train_parameters : 0;
    if (array->array == LS_WEIGHTS || array->array == LS_AVERAGE)
        return ls_copies_read(trainer->engine, (int)parameter, LS_WEIGHTS, plain, error);
    if (parameter < trainer->train_parameters)
        memcpy(plain, intake->state->history.layers[second + parameter].blobs[0].data,
               size * sizeof *plain);
    else
        memset(plain, 0, size * sizeof *plain);
    return 0;
}

/* Rank 0: reads and checks. */
static int open_state(const struct ls_trainer *trainer, const char *path,
                      struct ls_solverstate *state, char **weights, struct ls_error *error)
{
    LS_TRY(ls_solverstate_read(path, state, error));
    int status = check_history(trainer, state, error);
    int found = find_weights(state, weights, error);
    return status != 0 ? status : found;
}

/* What follows from the iteration alone; the window of losses is not known. */
static void go_on(struct ls_trainer *trainer, int64_t iteration)
{
    trainer->iteration = iteration;
    (void)ls_chain_read(NULL, iteration, &trainer->chain); /* one that begins here */
    for (int32_t i = 0; i < trainer->solver->average_loss && i < iteration; i++)
        trainer->figures.losses[i] = (double)NAN;
    trainer->snapshot_at = -1;
    trainer->best.iteration = -1;
    trainer->prefetcher_ready = false;
    ls_data_begin_late(trainer);
}

int ls_caffe_files_resume(struct ls_trainer *trainer, const char *path, struct ls_error *error)
{
    struct ls_solverstate state = {0};
    char *weights = NULL;
    int status = 0;
    if (trainer->comm->rank == 0) {
        ls_progress_hear(ls_state_note_piece, trainer);
        status = open_state(trainer, path, &state, &weights, error);
        ls_progress_hear(NULL, NULL);
    }
    int64_t iteration = state.iteration;
    status = ls_comm_agree(trainer->comm, status, error);
    if (status == 0)
        status = ls_comm_broadcast(trainer->comm, &iteration, sizeof iteration, error);
    if (status == 0)
        status = ls_trainer_load_weights(trainer, weights, NULL, false, error);
    if (status == 0) {
        struct intake intake = {trainer, &state};
        struct ls_state_reader reader = {.read = take_array, .user = &intake};
        status = ls_state_hand_out(trainer, &reader, error);
    }
    if (status == 0) {
        go_on(trainer, iteration);
        ls_events_say(trainer, LOCKSTEP_EVENT_NOTICE,
                      "Going on from Caffe's %s, iteration %lld, with the weights of %s", path,
                      (long long)iteration, trainer->comm->rank == 0 ? weights : "rank 0");
    }
    ls_solverstate_free(&state);
    ls_free(weights);
    return status;
}
