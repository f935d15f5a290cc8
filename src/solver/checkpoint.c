/* Snapshots: all that a resume needs in one file, and nothing of the run.
 *
 * Tensors: "<name>" the weights, "average.<name>" their moving average, "state.history0.<name>" and
 * "state.history1.<name>" what the optimizer remembers, "state.exponents" those of the exact sums,
 * "state.losses" the window of average_loss. Notes: the iteration, the canonical definition, the
 * fingerprint of the data, the numeric environment, the best score, the names of the classes.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "snapshot/archive.h"
#include "snapshot/caffemodel.h"
#include "snapshot/catalog.h"
#include "snapshot/weights.h"
#include "solver/notes.h"
#include "solver/state.h"
#include "transport/peers.h"
#include "transport/watch.h"

/* ---- Writing --------------------------------------------------------------------------------- */

/* What a snapshot borrows while it is written. */
struct draft {
    struct ls_trainer *trainer;
    struct ls_archive archive;
    struct source {
        int parameter;
        enum ls_store_array array;
    } * sources; /* by tensor, of those that come from the store */
    size_t source_count, source_capacity;
    int32_t *exponents;
    bool agreed; /* what failed was found by all ranks */
    struct ls_error *error;
};

static int fetch(void *user, size_t index, void *out, struct ls_error *error)
{
    struct draft *draft = user;
    const struct ls_store *store = draft->trainer->store;
    const struct source *source = &draft->sources[index];
    if (draft->trainer->peers != NULL) /* a slow disk is no rank that hangs */
        ls_watch_note(draft->trainer->peers->watch, draft->trainer->iteration,
                      store->set->items[source->parameter]->layer);
    int status = ls_store_read(store, source->parameter, source->array, out, error);
    draft->agreed =
        status == LOCKSTEP_LOST ||
        (status != 0 && ls_store_is_shared_out(store, source->parameter, source->array));
    return status;
}

static int add_array(struct draft *draft, size_t parameter, const struct ls_state_array *array)
{
    const struct ls_store *store = draft->trainer->store;
    const struct ls_parameter *what = store->set->items[parameter];
    if (!LS_GROW(draft->sources, draft->source_count, draft->source_capacity))
        return ls_fail_memory(draft->error, "a snapshot");
    draft->sources[draft->source_count++] = (struct source){(int)parameter, array->array};
    struct ls_text name = {0};
    ls_text_format(&name, "%s%s", array->prefix, what->name);
    int status =
        name.failed
            ? ls_fail_memory(draft->error, "a snapshot")
            : ls_archive_add(&draft->archive, name.data, LS_DTYPE_F32, &what->shape,
                             ls_store_plain(store, (int)parameter, array->array), draft->error);
    ls_text_free(&name);
    return status;
}

static int add_tensors(struct draft *draft)
{
    struct ls_trainer *trainer = draft->trainer;
    size_t count = trainer->parameters->count;
    for (size_t a = 0; a < LS_STATE_ARRAYS; a++)
        for (size_t i = 0; i < count; i++)
            if (ls_state_has(trainer, i, ls_state_arrays[a].array))
                LS_TRY(add_array(draft, i, &ls_state_arrays[a]));
    draft->exponents = ls_alloc(count + 1, sizeof *draft->exponents);
    if (draft->exponents == NULL)
        return ls_fail_memory(draft->error, "a snapshot");
    for (size_t i = 0; i < count; i++)
        draft->exponents[i] = ls_sums_exponent(trainer->store->sums, (int)i);
    LS_TRY(ls_archive_add_list(&draft->archive, LS_PREFIX_STATE "exponents", LS_DTYPE_I32,
                               (int64_t)count, draft->exponents, draft->error));
    return ls_archive_add_list(&draft->archive, LS_PREFIX_STATE "losses", LS_DTYPE_F64,
                               trainer->solver->average_loss, trainer->losses, draft->error);
}

/* The names of the classes, one a line. */
static int add_classes(struct draft *draft)
{
    const struct ls_net *net = draft->trainer->train;
    if (net->dataset_count == 0 || ls_dataset_classes(net->datasets[0]) == 0)
        return 0;
    struct ls_text names = {0};
    for (int i = 0; i < ls_dataset_classes(net->datasets[0]); i++)
        ls_text_format(&names, "%s%s", i > 0 ? "\n" : "",
                       ls_dataset_class_name(net->datasets[0], i));
    int status = names.failed ? ls_fail_memory(draft->error, "a snapshot")
                              : ls_archive_add_note(&draft->archive, LS_NOTE_CLASSES, names.data,
                                                    draft->error);
    ls_text_free(&names);
    return status;
}

static int add_notes(struct draft *draft)
{
    struct ls_trainer *trainer = draft->trainer;
    struct ls_error *error = draft->error;
    char fingerprint[64], best[32];
    struct ls_text definition = {0};
    LS_TRY(
        ls_archive_add_note_integer(&draft->archive, LS_NOTE_ITERATION, trainer->iteration, error));
    int status = ls_state_definition(trainer, &definition, error);
    if (status == 0)
        status = ls_archive_add_note(&draft->archive, LS_NOTE_DEFINITION, definition.data, error);
    ls_text_free(&definition);
    LS_TRY(status);
    ls_state_fingerprint(trainer, fingerprint);
    LS_TRY(ls_archive_add_note(&draft->archive, LS_NOTE_DATA, fingerprint, error));
    LS_TRY(ls_archive_add_note(&draft->archive, LS_NOTE_ENVIRONMENT,
                               trainer->engine->backend->environment(), error));
    LS_TRY(ls_archive_add_note(&draft->archive, LS_NOTE_VERSION, LOCKSTEP_VERSION, error));
    bool tested = trainer->best_iteration == trainer->iteration;
    const struct ls_best *so_far = tested ? &trainer->best_before : &trainer->best;
    if (so_far->known) {
        ls_format_double(best, so_far->value);
        LS_TRY(ls_archive_add_note(&draft->archive, LS_NOTE_BEST, best, error));
    }
    return add_classes(draft);
}

static int write_archive(struct ls_trainer *trainer, const char *path, struct ls_error *error)
{
    struct draft draft = {.trainer = trainer, .error = error};
    draft.archive.fetch = fetch;
    draft.archive.user = &draft;
    int status = add_tensors(&draft);
    if (status == 0)
        status = add_notes(&draft);
    if (status == 0)
        status = ls_archive_write(&draft.archive, path, error);
    ls_archive_free(&draft.archive);
    ls_free(draft.sources);
    ls_free(draft.exponents);
    return draft.agreed ? status : ls_peers_agree(trainer->peers, status, error);
}

/* What other ranks do while rank 0 writes: they hand in their parts of arrays in the same order.
 * Where rank 0 fails between two of them, it tells at the next one. */
static int hand_in(struct ls_trainer *trainer, struct ls_error *error)
{
    const struct ls_store *store = trainer->store;
    for (size_t a = 0; a < LS_STATE_ARRAYS; a++)
        for (int i = 0; i < (int)trainer->parameters->count; i++)
            if (ls_state_has(trainer, (size_t)i, ls_state_arrays[a].array) &&
                ls_store_is_shared_out(store, i, ls_state_arrays[a].array))
                LS_TRY(ls_store_read(store, i, ls_state_arrays[a].array, NULL, error));
    return ls_peers_agree(trainer->peers, 0, error);
}

int ls_trainer_write(struct ls_trainer *trainer, const char *path, struct ls_error *error)
{
    ls_team_enter(trainer->engine->team);
    int status = ls_engine_compare_weights(trainer->engine, trainer->iteration, error);
    ls_team_leave(trainer->engine->team);
    LS_TRY(status);
    return ls_peers_rank(trainer->peers) == 0 ? write_archive(trainer, path, error)
                                              : hand_in(trainer, error);
}

/* Rank 0's part of a caffemodel. */
static int save_caffemodel(struct ls_trainer *trainer, struct ls_error *error)
{
    if (ls_peers_rank(trainer->peers) != 0)
        return 0;
    char *path = ls_catalog_caffemodel_path(trainer->prefix, trainer->iteration);
    if (path == NULL)
        return ls_fail_memory(error, "a snapshot");
    int status = ls_save_caffemodel(trainer->store, ls_net_graph(trainer->train), path, error);
    ls_free(path);
    return status;
}

/* A caffemodel beside the snapshot, where the solver names the format. */
static int write_caffemodel(struct ls_trainer *trainer, struct ls_error *error)
{
    if (!trainer->solver->has_snapshot_format ||
        trainer->solver->snapshot_format !=
            LOCKSTEP__SOLVER_PARAMETER__SNAPSHOT_FORMAT__BINARYPROTO)
        return 0;
    bool averaged = trainer->solver->weight_average != NULL;
    if (averaged)
        LS_TRY(ls_store_swap_average(trainer->store, error));
    int status = save_caffemodel(trainer, error);
    status = ls_peers_agree(trainer->peers, status, error);
    if (averaged && status != LOCKSTEP_LOST) {
        int back = ls_store_swap_average(trainer->store, error);
        status = status != 0 ? status : back;
    }
    return status;
}

/* What belongs to a snapshot besides itself is done by rank 0; how it went is for all. */
static int prune(struct ls_trainer *trainer, struct ls_error *error)
{
    int status = 0;
    if (ls_peers_rank(trainer->peers) == 0)
        status = ls_catalog_prune(trainer->prefix, trainer->iteration,
                                  trainer->solver->snapshot_keep, error);
    return ls_peers_agree(trainer->peers, status, error);
}

int ls_trainer_mark_best(struct ls_trainer *trainer, struct ls_error *error)
{
    int status = 0;
    if (ls_peers_rank(trainer->peers) == 0)
        status = ls_catalog_mark_best(trainer->prefix, trainer->iteration, error);
    return ls_peers_agree(trainer->peers, status, error);
}

int ls_trainer_snapshot(struct ls_trainer *trainer, struct ls_error *error)
{
    if (trainer->snapshot_at == trainer->iteration)
        return 0; /* it is there already, with the same bytes */
    char *path = ls_catalog_path(trainer->prefix, trainer->iteration);
    int status = path == NULL ? ls_fail_memory(error, "a snapshot") : 0;
    status = ls_peers_agree(trainer->peers, status, error);
    if (status == 0)
        status = ls_trainer_write(trainer, path, error);
    if (status == 0)
        status = write_caffemodel(trainer, error);
    if (status == 0) {
        trainer->snapshot_at = trainer->iteration;
        ls_trainer_say(trainer, LOCKSTEP_EVENT_SNAPSHOT, "%s", path);
        status = prune(trainer, error);
    }
    ls_free(path);
    return status;
}
