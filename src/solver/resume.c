/* Resuming: a training goes on from a snapshot, which must be of the same training. Rank 0 of a job
 * reads it, with all checks, and hands out what is in it.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "schema/canonical.h"
#include "snapshot/archive.h"
#include "snapshot/catalog.h"
#include "snapshot/weights.h"
#include "solver/notes.h"
#include "solver/state.h"
#include "transport/peers.h"

/* ---- Checks ---------------------------------------------------------------------------------- */

static int compare_definitions(struct ls_trainer *trainer, const struct ls_archive *archive,
                               struct ls_error *error)
{
    const char *before = ls_archive_note(archive, LS_NOTE_DEFINITION);
    struct ls_text after = {0};
    struct ls_changes changes = {0};
    if (before == NULL)
        return ls_fail(error, LOCKSTEP_WEIGHTS, archive->path, "use --weights to start from it",
                       "holds weights, but no training to resume");
    int status = ls_state_definition(trainer, &after, error);
    if (status == 0)
        status =
            ls_canonical_compare(before, strlen(before), after.data, after.length, &changes, error);
    for (size_t i = 0; i < changes.count && status == 0; i++) {
        const struct ls_change *change = &changes.change[i];
        if (change->allowed)
            ls_trainer_say(trainer, LOCKSTEP_EVENT_NOTICE, "Resume changes %s: %s -> %s",
                           change->what, change->before, change->after);
        else
            ls_fail(error, LOCKSTEP_WEIGHTS, archive->path,
                    "a resume continues the same training; use --weights to start a new one from "
                    "these weights",
                    "the snapshot was made with another %s: %s, now %s", change->what,
                    change->before, change->after);
    }
    if (status == 0 && changes.forbidden > 0)
        status = LOCKSTEP_WEIGHTS;
    ls_changes_free(&changes);
    ls_text_free(&after);
    return status;
}

static int check_data(const struct ls_trainer *trainer, const struct ls_archive *archive,
                      struct ls_error *error)
{
    char fingerprint[64];
    const char *before = ls_archive_note(archive, LS_NOTE_DATA);
    ls_state_fingerprint(trainer, fingerprint);
    if (before == NULL || strcmp(before, fingerprint) == 0)
        return 0;
    return ls_fail(error, LOCKSTEP_WEIGHTS, archive->path, "use --weights to go on with other data",
                   "the snapshot was trained on other data than the definition's sources hold now");
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
    struct ls_text name = {0};
    ls_text_format(&name, "%s%s", array->prefix, what->name);
    int status = name.failed ? ls_fail_memory(error, "a snapshot")
                             : ls_archive_take(intake->archive, name.data, LS_DTYPE_F32,
                                               ls_shape_size(&what->shape), plain, error);
    ls_text_free(&name);
    return status;
}

static int take_exponents(struct ls_trainer *trainer, const struct ls_archive *archive,
                          struct ls_error *error)
{
    size_t count = trainer->parameters->count;
    int32_t *exponents = ls_alloc(count + 1, sizeof *exponents);
    int status = exponents == NULL ? ls_fail_memory(error, "a snapshot") : 0;
    if (status == 0 && ls_peers_rank(trainer->peers) == 0)
        status = ls_archive_take(archive, LS_PREFIX_STATE "exponents", LS_DTYPE_I32, (int64_t)count,
                                 exponents, error);
    status = ls_peers_agree(trainer->peers, status, error);
    if (status == 0)
        status = ls_peers_broadcast(trainer->peers, exponents, count * sizeof *exponents, error);
    for (size_t i = 0; i < count && status == 0; i++)
        ls_sums_set_exponent(trainer->store->sums, (int)i, exponents[i]);
    ls_free(exponents);
    return status;
}

/* The losses of the last updates. A window of another length takes what it can; what it cannot
 * know is NaN. (It is for display only.) */
static int take_losses(struct ls_trainer *trainer, const struct ls_archive *archive,
                       int64_t iteration, struct ls_error *error)
{
    const struct ls_tensor *tensor = ls_archive_find(archive, LS_PREFIX_STATE "losses");
    int64_t window = trainer->solver->average_loss, there = 0;
    if (tensor != NULL && tensor->type == LS_DTYPE_F64)
        there = (int64_t)(tensor->size / sizeof(double));
    double *losses = ls_alloc((size_t)there + 1, sizeof *losses);
    if (losses == NULL)
        return ls_fail_memory(error, "a snapshot");
    if (there > 0)
        ls_tensor_copy(tensor, losses);
    for (int64_t back = 1; back <= window && back <= iteration; back++)
        trainer->losses[(iteration - back) % window] =
            back <= there ? losses[(iteration - back) % there] : (double)NAN;
    ls_free(losses);
    return 0;
}

/* What rank 0 tells the others of a snapshot besides its arrays. */
struct summary {
    int64_t iteration; /* -1: there is none to resume from */
    int64_t best_known;
    double best;
};

/* Rank 0: the checks, and what fits into a few numbers. */
static int examine(struct ls_trainer *trainer, const struct ls_archive *archive,
                   struct summary *summary, struct ls_error *error)
{
    LS_TRY(compare_definitions(trainer, archive, error));
    LS_TRY(check_data(trainer, archive, error));
    LS_TRY(ls_archive_take_integer(archive, LS_NOTE_ITERATION, &summary->iteration, error));
    if (summary->iteration < 0)
        return ls_fail(error, LOCKSTEP_WEIGHTS, archive->path, NULL, "is of iteration %lld",
                       (long long)summary->iteration);
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
    LS_TRY(ls_peers_broadcast(trainer->peers, trainer->losses,
                              (size_t)trainer->solver->average_loss * sizeof *trainer->losses,
                              error));
    trainer->best = (struct ls_best){.known = summary->best_known != 0, .value = summary->best};
    trainer->iteration = summary->iteration;
    trainer->snapshot_at = summary->iteration;
    trainer->best_iteration = -1;
    trainer->feed_ready = false;
    ls_team_enter(trainer->engine->team);
    int status = ls_store_refresh_views(trainer->store, trainer->engine->team, error);
    ls_team_leave(trainer->engine->team);
    return ls_peers_agree(trainer->peers, status, error);
}

/* ---- Files ----------------------------------------------------------------------------------- */

/* The newest snapshot that is whole; *path NULL: there is none. */
static int open_newest(struct ls_trainer *trainer, struct ls_archive *archive, char **path,
                       struct ls_error *error)
{
    static _Thread_local struct ls_error skipped;
    ls_error_clear(&skipped);
    int status = ls_catalog_newest(trainer->prefix, archive, path, &skipped, error);
    for (int i = 0; i < skipped.count; i++)
        ls_trainer_say(trainer, LOCKSTEP_EVENT_WARNING, "skipping %s: %s",
                       skipped.problems[i].place, skipped.problems[i].message);
    if (status == 0 && *path == NULL)
        ls_trainer_say(trainer, LOCKSTEP_EVENT_NOTICE,
                       "No snapshot %s_iter_*.safetensors to resume from: starting afresh",
                       trainer->prefix);
    return status;
}

/* Rank 0 finds the file, which nobody else needs to see. */
static int open_snapshot(struct ls_trainer *trainer, const char *resume, struct ls_archive *archive,
                         char **path, struct summary *summary, struct ls_error *error)
{
    if (strcmp(resume, "auto") == 0) {
        LS_TRY(open_newest(trainer, archive, path, error));
        if (*path == NULL)
            return 0;
    } else {
        LS_TRY(ls_archive_read(resume, LS_ARCHIVE_CHECK, archive, error));
    }
    return examine(trainer, archive, summary, error);
}

static void report(struct ls_trainer *trainer, const struct ls_archive *archive, const char *path)
{
    const char *environment = ls_archive_note(archive, LS_NOTE_ENVIRONMENT);
    if (environment == NULL || strcmp(environment, trainer->engine->backend->environment()) != 0)
        ls_trainer_say(trainer, LOCKSTEP_EVENT_WARNING,
                       "the snapshot comes from another numeric environment (processor, "
                       "instruction set or kernel library); the bits may differ from there on");
    ls_trainer_say(trainer, LOCKSTEP_EVENT_NOTICE, "Resuming from %s, iteration %lld", path,
                   (long long)trainer->iteration);
}

int ls_trainer_resume(struct ls_trainer *trainer, const char *resume, struct ls_error *error)
{
    struct ls_archive archive = {0};
    struct summary summary = {.iteration = -1};
    char *path = NULL;
    int status = 0;
    if (ls_peers_rank(trainer->peers) == 0)
        status = open_snapshot(trainer, resume, &archive, &path, &summary, error);
    status = ls_peers_agree(trainer->peers, status, error);
    if (status == 0)
        status = ls_peers_broadcast(trainer->peers, &summary, sizeof summary, error);
    if (status == 0 && summary.iteration >= 0) {
        status = restore(trainer, &archive, &summary, error);
        if (status == 0 && ls_peers_rank(trainer->peers) == 0)
            report(trainer, &archive, path != NULL ? path : resume);
    }
    ls_archive_free(&archive);
    ls_free(path);
    return status;
}
