/* Resuming: a training goes on from a snapshot, which must be of the same training. Rank 0 of a job
 * reads it, with all checks, and hands out what is in it.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/resume.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/progress.h"
#include "base/mutant.h"
#include "base/text.h"
#include "engine/exponents.h"
#include "engine/pass.h"
#include "engine/rows.h"
#include "engine/sample_states.h"
#include "engine/store_views.h"
#include "schema/canonical.h"
#include "snapshot/archive.h"
#include "snapshot/catalog.h"
#include "snapshot/solverstate.h"
#include "snapshot/weights.h"
#include "solver/caffe_files.h"
#include "solver/chain.h"
#include "solver/choice.h"
#include "solver/data.h"
#include "solver/environment.h"
#include "solver/events.h"
#include "solver/history.h"
#include "solver/masks.h"
#include "solver/matrices.h"
#include "solver/notes.h"
#include "solver/state.h"
#include "transport/comm.h"

/* ---- Checks ---------------------------------------------------------------------------------- */

/* Remembers what a resume changes of the course of a training, for all snapshots to come. */
static int add_to_course(struct ls_trainer *trainer, const struct ls_archive *archive,
                         const struct ls_changes *changes, struct ls_error *error)
{
    const char *before = ls_archive_note(archive, LS_NOTE_COURSE);
    const char *iteration = ls_archive_note(archive, LS_NOTE_ITERATION);
    struct ls_text text = {0};
    ls_text_add(&text, before != NULL ? before : "");
    for (size_t i = 0; i < changes->count; i++)
        if (changes->change[i].course)
            ls_text_format(&text, "%s%s %s: %s -> %s", text.length > 0 ? "\n" : "",
                           iteration != NULL ? iteration : "?", changes->change[i].what,
                           changes->change[i].before, changes->change[i].after);
    if (text.failed) {
        ls_text_free(&text);
        return ls_fail_memory(error, "a snapshot");
    }
    ls_free(trainer->course);
    trainer->course = text.length > 0 ? text.data : NULL;
    if (trainer->course == NULL)
        ls_text_free(&text);
    return 0;
}

/* Changes that nothing was said about, with "auto", are worth a warning. */
static int compare_definitions(struct ls_trainer *trainer, const struct ls_archive *archive,
                               bool automatic, struct ls_error *error)
{
    enum lockstep_event_kind kind = automatic ? LOCKSTEP_EVENT_WARNING : LOCKSTEP_EVENT_NOTICE;
    const char *before = ls_archive_note(archive, LS_NOTE_DEFINITION);
    struct ls_text after = {0};
    struct ls_changes changes = {0};
    if (before == NULL)
        return ls_fail(error, LOCKSTEP_WEIGHTS, archive->path, "use --weights to start from it",
                       "holds weights, but no training to resume");
    int status = ls_state_definition(trainer, &after, error);
    if (status == 0)
        status = ls_canonical_compare(archive->path, before, strlen(before), after.data,
                                      after.length, &changes, error);
    for (size_t i = 0; i < changes.count && status == 0; i++) {
        const struct ls_change *change = &changes.change[i];
        if (change->allowed)
            ls_events_say(trainer, kind, "Resume changes %s: %s -> %s", change->what,
                          change->before, change->after);
        else
            ls_fail(error, LOCKSTEP_WEIGHTS, archive->path,
                    "a resume continues the same training; use --weights to start a new one from "
                    "these weights",
                    "the snapshot was made with another %s: %s, now %s", change->what,
                    change->before, change->after);
    }
    if (status == 0 && changes.forbidden > 0)
        status = LOCKSTEP_WEIGHTS;
    if (status == 0)
        status = ls_masks_compare(trainer->parameters, archive, error);
    bool untold = false;
    if (status == 0)
        status = ls_matrices_compare(trainer, archive, &untold, error);
    if (untold)
        ls_events_say(trainer, LOCKSTEP_EVENT_WARNING,
                      "%s does not say which matrix it was trained with (it was written by an "
                      "older version): whether that of the file is the same is not known",
                      archive->path);
    if (status == 0)
        status = add_to_course(trainer, archive, &changes, error);
    ls_changes_free(&changes);
    ls_text_free(&after);
    return status;
}

/* ---- Arrays and figures ---------------------------------------------------------------------- */

struct intake {
    const struct ls_trainer *trainer;
    const struct ls_archive *archive; /* rank 0's */
};

static int take_array(void *user, size_t parameter, const struct ls_state_array *array,
                      float *plain, struct ls_error *error)
{
    const struct intake *intake = user;
    const struct ls_parameter *what = intake->trainer->parameters->items[parameter];
    const struct ls_shape shape = ls_store_array_shape(&what->shape, array->array);
    struct ls_text name = {0};
    ls_text_format(&name, "%s%s", array->prefix, what->name);
    int status = name.failed ? ls_fail_memory(error, "a snapshot")
                             : ls_archive_take(intake->archive, name.data, LS_F32,
                                               ls_shape_size(&shape), plain, error);
    ls_text_free(&name);
    return status;
}

/* What rank 0 reads of exponents. A snapshot of before numerics 2 has one for each parameter, which
 * all of its rows get. */
static int read_exponents(const struct ls_trainer *trainer, const struct ls_archive *archive,
                          int32_t *exponents, struct ls_error *error)
{
    const struct ls_store *store = trainer->store;
    size_t count = store->set->count, rows = ls_rows_all(store), at = 0;
    if (ls_archive_find(archive, LS_PREFIX_STATE "exponents") == NULL)
        return ls_archive_take(archive, LS_PREFIX_STATE "row_exponents", LS_I32, (int64_t)rows,
                               exponents, error);
    int32_t *one = ls_alloc(count + 1, sizeof *one);
    int status = one == NULL ? ls_fail_memory(error, "a snapshot")
                             : ls_archive_take(archive, LS_PREFIX_STATE "exponents", LS_I32,
                                               (int64_t)count, one, error);
    for (size_t i = 0; status == 0 && i < count; i++)
        for (size_t row = 0; row < ls_rows_count(store, (int)i); row++)
            exponents[at++] = ls_sums_state_of(one[i]);
    ls_free(one);
    return status;
}

static int take_exponents(struct ls_trainer *trainer, const struct ls_archive *archive,
                          struct ls_error *error)
{
    const struct ls_store *store = trainer->store;
    size_t rows = ls_rows_all(store), at = 0;
    int32_t *exponents = ls_alloc(rows + 1, sizeof *exponents);
    int status = exponents == NULL ? ls_fail_memory(error, "a snapshot") : 0;
    if (status == 0 && trainer->comm->rank == 0)
        status = read_exponents(trainer, archive, exponents, error);
    status = ls_comm_agree(trainer->comm, status, error);
    if (status == 0)
        status = ls_comm_broadcast(trainer->comm, exponents, rows * sizeof *exponents, error);
    for (size_t i = 0; i < store->set->count && status == 0 && !LS_MUTANT(EXPONENTS);
         at += ls_rows_count(store, (int)i), i++)
        status = ls_rows_write(trainer->store, (int)i, exponents + at, error);
    ls_free(exponents);
    return ls_comm_agree(trainer->comm, status, error);
}

/* What rank 0 reads of a state per sample. */
static int read_sample_state(const struct ls_state_tensor *tensor, const struct ls_archive *archive,
                             void *out, struct ls_error *error)
{
    struct ls_text name = {0};
    char there[160], here[160];
    ls_text_format(&name, LS_PREFIX_SAMPLE_STATE "%s", tensor->name);
    const struct ls_tensor *found = name.failed ? NULL : ls_archive_find(archive, name.data);
    int status = 0;
    if (name.failed)
        status = ls_fail_memory(error, "a snapshot");
    else if (found != NULL && !ls_shape_equal(&found->shape, &tensor->shape))
        status = ls_fail(error, LOCKSTEP_WEIGHTS, archive->path,
                         "a resume continues the same training, with the same batch; use --weights "
                         "to start a new one from these weights",
                         "tensor '%s' is %s; the state of all samples of an update is %s",
                         name.data, ls_shape_text(&found->shape, there, sizeof there),
                         ls_shape_text(&tensor->shape, here, sizeof here));
    else
        status = ls_archive_take(archive, name.data, tensor->type, ls_shape_size(&tensor->shape),
                                 out, error);
    ls_text_free(&name);
    return status;
}

static int take_sample_states(struct ls_trainer *trainer, const struct ls_archive *archive,
                              struct ls_error *error)
{
    struct ls_sample_states *states = trainer->train_pass->states;
    if (states == NULL)
        return 0;
    unsigned char *host = ls_alloc_aligned(states->bytes);
    int status = host == NULL ? ls_fail_memory(error, "a snapshot") : 0;
    for (size_t i = 0; i < states->count && status == 0 && trainer->comm->rank == 0; i++)
        status = read_sample_state(&states->tensors[i], archive, host + states->tensors[i].offset,
                                   error);
    status = ls_comm_agree(trainer->comm, status, error);
    if (status == 0)
        status = ls_comm_broadcast(trainer->comm, host, states->bytes, error);
    for (size_t i = 0; i < states->count && status == 0; i++)
        status = ls_sample_states_write(states, i, host + states->tensors[i].offset, error);
    ls_free_aligned(host);
    return ls_comm_agree(trainer->comm, status, error);
}

/* The losses of the last updates. A window of another length takes what it can; what it cannot
 * know is NaN. (It is for display only.) */
static int take_losses(struct ls_trainer *trainer, const struct ls_archive *archive,
                       int64_t iteration, struct ls_error *error)
{
    const struct ls_tensor *tensor = ls_archive_find(archive, LS_PREFIX_STATE "losses");
    int64_t window = trainer->solver->average_loss, there = 0;
    if (tensor != NULL && tensor->type == LS_F64)
        there = (int64_t)(tensor->size / sizeof(double));
    double *losses = ls_alloc((size_t)there + 1, sizeof *losses);
    if (losses == NULL)
        return ls_fail_memory(error, "a snapshot");
    if (there > 0)
        ls_tensor_copy(tensor, losses);
    for (int64_t back = 1; back <= window && back <= iteration; back++)
        trainer->figures.losses[(iteration - back) % window] =
            back <= there ? losses[(iteration - back) % there] : (double)NAN;
    ls_free(losses);
    return 0;
}

/* What rank 0 tells the others of a snapshot besides its arrays. */
struct summary {
    int64_t iteration; /* -1: there is none to resume from */
    int64_t in_place; /* it is the prefix's own snapshot of this iteration, or another name of it */
    int64_t outgrew_first, outgrew_last;
    int64_t best_known;
    double best;
    struct ls_chain chain;
};

/* Whether the snapshots of the prefix are those of the training that goes on. */
static int note_whose(struct ls_trainer *trainer, const struct ls_archive *archive, bool own,
                      struct ls_error *error)
{
    char *best = ls_catalog_best_path(trainer->prefix);
    char *any = ls_catalog_path(trainer->prefix, 0);
    if (best == NULL || any == NULL) {
        ls_free(best);
        ls_free(any);
        return ls_fail_memory(error, "a snapshot");
    }
    /* Or another one of the prefix, whatever iteration it holds. */
    size_t stem = strlen(any) - strlen("0.safetensors");
    trainer->goes_on =
        own || ls_same_file(archive->path, best) || strncmp(archive->path, any, stem) == 0;
    ls_free(best);
    ls_free(any);
    return 0;
}

/* Rank 0: the checks, and what fits into a few numbers. */
static int examine(struct ls_trainer *trainer, const struct ls_archive *archive, bool automatic,
                   struct summary *summary, struct ls_error *error)
{
    LS_TRY(compare_definitions(trainer, archive, automatic, error));
    LS_TRY(ls_data_examine(trainer, archive, error));
    LS_TRY(ls_archive_take_integer(archive, LS_NOTE_ITERATION, &summary->iteration, error));
    if (summary->iteration < 0 || summary->iteration > INT32_MAX) /* as large as max_iter can be */
        return ls_fail(error, LOCKSTEP_WEIGHTS, archive->path, NULL, "is of iteration %lld",
                       (long long)summary->iteration);
    if (ls_chain_read(ls_archive_note(archive, LS_NOTE_CHAIN), summary->iteration,
                      &summary->chain) != 0)
        return ls_fail(error, LOCKSTEP_WEIGHTS, archive->path, NULL,
                       "has a chain of weight hashes that cannot be read");
    LS_TRY(ls_environment_resume(trainer, archive, summary->iteration, error));
    char *own = ls_catalog_path(trainer->prefix, summary->iteration);
    if (own == NULL)
        return ls_fail_memory(error, "a snapshot");
    summary->in_place = ls_same_file(archive->path, own);
    ls_free(own);
    LS_TRY(note_whose(trainer, archive, automatic || summary->in_place, error));
    ls_read_outgrew(archive, &summary->outgrew_first, &summary->outgrew_last);
    const char *best = ls_archive_note(archive, LS_NOTE_BEST);
    summary->best_known = best != NULL;
    summary->best = best != NULL ? ls_parse_double(best) : 0;
    return take_losses(trainer, archive, summary->iteration, error);
}

/* All ranks take over what rank 0 reads. */
static int restore(struct ls_trainer *trainer, const struct ls_archive *archive,
                   const struct summary *summary, struct ls_error *error)
{
    struct intake intake = {trainer, archive};
    struct ls_state_reader reader = {.read = take_array, .user = &intake};
    LS_TRY(ls_state_hand_out(trainer, &reader, error));
    LS_TRY(take_exponents(trainer, archive, error));
    LS_TRY(take_sample_states(trainer, archive, error));
    LS_TRY(ls_data_share(trainer, error));
    LS_TRY(ls_comm_broadcast(
        trainer->comm, trainer->figures.losses,
        (size_t)trainer->solver->average_loss * sizeof *trainer->figures.losses, error));
    trainer->best.now = (struct ls_best){.known = summary->best_known != 0, .value = summary->best};
    trainer->iteration = summary->iteration;
    trainer->chain = summary->chain;
    trainer->snapshot_at = summary->in_place ? summary->iteration : -1;
    trainer->gradients.outgrew_first = summary->outgrew_first;
    trainer->gradients.outgrew_last = summary->outgrew_last;
    trainer->best.iteration = -1;
    trainer->prefetcher_ready = false;
    ls_thread_pool_enter(trainer->engine->pool);
    int status = ls_store_refresh_views(trainer->store, trainer->engine->pool, error);
    ls_thread_pool_leave(trainer->engine->pool);
    return ls_comm_agree(trainer->comm, status, error);
}

/* ---- Files ----------------------------------------------------------------------------------- */

/* Rank 0 finds the file; the other ranks need not see it. */
static int open_snapshot(struct ls_trainer *trainer, const char *resume, struct ls_archive *archive,
                         char **path, struct summary *summary, struct ls_error *error)
{
    bool automatic = strcmp(resume, "auto") == 0;
    if (automatic) {
        LS_TRY(ls_choose_snapshot(trainer, archive, path, error));
        trainer->goes_on = true;
        if (*path == NULL)
            return 0;
    } else {
        LS_TRY(ls_archive_read(resume, LS_ARCHIVE_CHECK, archive, error));
    }
    return examine(trainer, archive, automatic, summary, error);
}

static void report(struct ls_trainer *trainer, const char *path)
{
    const struct ls_device_environment *device = trainer->engine->device->environment;
    if (trainer->numerics.isa_taken)
        ls_events_say(trainer, LOCKSTEP_EVENT_NOTICE,
                      "The instruction set is the snapshot's, %s (this processor also has %s)",
                      device->isa(), device->widest_isa());
    ls_events_say(trainer, LOCKSTEP_EVENT_NOTICE, "Resuming from %s, iteration %lld", path,
                  (long long)trainer->iteration);
}

int ls_trainer_resume(struct ls_trainer *trainer, const char *resume, struct ls_error *error)
{
    if (ls_solverstate_named(resume))
        return ls_caffe_files_resume(trainer, resume, error);
    struct ls_archive archive = {0};
    struct summary summary = {.iteration = -1};
    char *path = NULL;
    int status = 0;
    if (trainer->comm->rank == 0) {
        ls_progress_hear(ls_state_note_piece, trainer);
        status = open_snapshot(trainer, resume, &archive, &path, &summary, error);
        ls_progress_hear(NULL, NULL);
    }
    status = ls_comm_agree(trainer->comm, status, error);
    if (status == 0)
        status = ls_comm_broadcast(trainer->comm, &summary, sizeof summary, error);
    if (status == 0 && summary.iteration >= 0) {
        status = restore(trainer, &archive, &summary, error);
        if (status == 0 && trainer->comm->rank == 0)
            report(trainer, path != NULL ? path : resume);
    }
    ls_archive_free(&archive);
    ls_free(path);
    return status;
}
