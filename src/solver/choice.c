/* Choosing among the snapshots of a prefix. See solver/choice.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/choice.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "schema/canonical.h"
#include "snapshot/catalog.h"
#include "snapshot/weights.h"
#include "solver/events.h"
#include "solver/masks.h"
#include "solver/matrices.h"
#include "solver/notes.h"
#include "solver/state.h"

enum {
    NAMED = 5,    /* snapshots that a message lists */
    EXPLODED = 10 /* times the loss of all earlier ones */
};

/* ---- Which is of this training --------------------------------------------------------------- */

static int is_of_this_training(void *user, const struct ls_archive *archive,
                               struct ls_error *reason)
{
    const struct ls_trainer *trainer = user;
    const char *before = ls_archive_note(archive, LS_NOTE_DEFINITION);
    struct ls_text after = {0};
    struct ls_changes changes = {0};
    char hint[512];
    if (before == NULL)
        return ls_fail(reason, LOCKSTEP_WEIGHTS, archive->path, "use --weights to start from it",
                       "holds weights, but no training to resume");
    int status = ls_state_definition(trainer, &after, reason);
    if (status == 0)
        status = ls_canonical_compare(archive->path, before, strlen(before), after.data,
                                      after.length, &changes, reason);
    for (size_t i = 0; i < changes.count && status == 0; i++) {
        const struct ls_change *change = &changes.change[i];
        snprintf(
            hint, sizeof hint,
            changes.forbidden > 0
                ? "a resume continues the same training: --weights %s starts another one from "
                  "its weights, --overwrite in place of --resume auto starts from the beginning"
                : "--resume %s goes on from it nevertheless; --overwrite in place of --resume "
                  "auto starts from the beginning",
            archive->path);
        if (!change->allowed || change->course)
            status = ls_fail(reason, LOCKSTEP_WEIGHTS, archive->path, hint,
                             "the snapshot was made with another %s: %s, now %s", change->what,
                             change->before, change->after);
    }
    ls_changes_free(&changes);
    ls_text_free(&after);
    bool untold;
    LS_TRY(status);
    LS_TRY(ls_masks_compare(trainer->parameters, archive, reason));
    return ls_matrices_compare(trainer, archive, &untold, reason);
}

static void warn_of(struct ls_trainer *trainer, const struct ls_error *list)
{
    for (int i = 0; i < list->count; i++)
        ls_events_say(trainer, LOCKSTEP_EVENT_WARNING, "skipping %s: %s", list->problems[i].place,
                      list->problems[i].message);
}

/* ---- Which can be trusted -------------------------------------------------------------------- */

void ls_read_outgrew(const struct ls_archive *archive, int64_t *first, int64_t *last)
{
    const char *note = ls_archive_note(archive, LS_NOTE_OUTGREW);
    long long from, to;
    *first = *last = -1;
    if (note != NULL && sscanf(note, "%18lld %18lld", &from, &to) == 2 && from >= 0 && from <= to) {
        *first = from;
        *last = to;
    }
}

/* The mean of the losses that a snapshot remembers; NAN: it has none that is a number. */
static double mean_loss(const struct ls_archive *archive, int64_t iteration)
{
    const struct ls_tensor *tensor = ls_archive_find(archive, LS_PREFIX_STATE "losses");
    if (tensor == NULL || tensor->type != LS_F64 || tensor->size == 0)
        return (double)NAN;
    double *losses = ls_alloc(tensor->size / sizeof(double), sizeof *losses);
    if (losses == NULL)
        return (double)NAN;
    ls_tensor_copy(tensor, losses);
    int64_t count = (int64_t)(tensor->size / sizeof(double)), known = 0;
    double sum = 0;
    for (int64_t i = 0; i < count && i < iteration; i++)
        if (!isnan(losses[i])) {
            sum += losses[i];
            known++;
        }
    ls_free(losses);
    return known > 0 ? sum / (double)known : (double)NAN;
}

/* The largest loss that any snapshot before `iteration` remembers, NAN without one; and the newest
 * one from before `sign`. That of iteration n holds the weights that the gradients of iteration n
 * come from, so it is not from before what is seen there. */
static double look_back(const struct ls_catalog *catalog, int64_t iteration, int64_t sign,
                        const char **good)
{
    double most = (double)NAN;
    *good = NULL;
    for (size_t i = 0; i < catalog->count && catalog->entries[i].iteration < iteration; i++) {
        const struct ls_catalog_entry *entry = &catalog->entries[i];
        struct ls_archive header;
        if (ls_archive_read(entry->path, LS_ARCHIVE_HEADER, &header, NULL) != 0)
            continue;
        double loss = mean_loss(&header, entry->iteration);
        most = isnan(most) || loss > most ? loss : most;
        ls_archive_free(&header);
        if (entry->iteration < sign)
            *good = entry->path;
    }
    return most;
}

/* Says so where the loss of the chosen snapshot may have exploded. */
static void check_for_explosion(struct ls_trainer *trainer, const struct ls_archive *archive)
{
    int64_t iteration = 0, first, last;
    struct ls_catalog catalog;
    char why[160] = "";
    const char *good;
    if (ls_archive_take_integer(archive, LS_NOTE_ITERATION, &iteration, NULL) != 0 ||
        ls_catalog_list(trainer->prefix, &catalog, NULL) != 0)
        return;
    ls_read_outgrew(archive, &first, &last);
    bool outgrew = last >= LS_OUTGREW_GAP && last >= iteration - LS_OUTGREW_GAP;
    double loss = mean_loss(archive, iteration);
    double most = look_back(&catalog, iteration, outgrew ? first : iteration, &good);
    if (outgrew)
        snprintf(why, sizeof why,
                 "shortly before it, in iterations %lld to %lld, gradients were 2^%d times "
                 "as large as any lately, or more",
                 (long long)first, (long long)last, LS_OUTGREW);
    else if (loss > EXPLODED * most)
        snprintf(why, sizeof why, "its loss is %.4g, and that of earlier ones at most %.4g", loss,
                 most);
    if (why[0] != '\0')
        ls_events_say(trainer, LOCKSTEP_EVENT_WARNING,
                      "the loss may have exploded before %s: %s%s%s", archive->path, why,
                      good != NULL ? "; to go on from before that, with a lower base_lr: --resume "
                                   : "; no snapshot from before that is there",
                      good != NULL ? good : "");
    ls_catalog_free(&catalog);
}

int ls_choose_snapshot(struct ls_trainer *trainer, struct ls_archive *archive, char **path,
                       struct ls_error *error)
{
    struct ls_error *skipped = ls_alloc(2, sizeof *skipped), *others = skipped + 1;
    if (skipped == NULL)
        return ls_fail_memory(error, "a choice of snapshots");
    const struct ls_catalog_question question = {is_of_this_training, trainer};
    int status =
        ls_catalog_newest(trainer->prefix, &question, archive, path, skipped, others, error);
    warn_of(trainer, skipped);
    if (status == 0 && *path != NULL) {
        warn_of(trainer, others);
        check_for_explosion(trainer, archive);
    } else if (status == 0 && others->count > 0) {
        const struct ls_problem *newest = &others->problems[0];
        status = ls_fail(error, newest->status, newest->place, newest->hint, "%s", newest->message);
    } else if (status == 0) {
        ls_events_say(trainer, LOCKSTEP_EVENT_NOTICE,
                      "No snapshot %s_iter_*.safetensors to resume from: starting afresh",
                      trainer->prefix);
    }
    ls_free(skipped);
    return status;
}

/* ---- After a divergence ---------------------------------------------------------------------- */

void ls_name_good_snapshots(const struct ls_trainer *trainer, struct ls_error *error)
{
    struct ls_catalog catalog;
    bool sign = trainer->gradients.outgrew_last >= 0 &&
                trainer->iteration - trainer->gradients.outgrew_last <= LS_OUTGREW_GAP;
    int64_t before =
        sign ? trainer->gradients.outgrew_first : trainer->iteration; /* as in look_back */
    const char *good = NULL;
    struct ls_text text = {0};
    if (ls_catalog_list(trainer->prefix, &catalog, NULL) != 0)
        return;
    size_t count = 0;
    while (count < catalog.count && catalog.entries[count].iteration <= trainer->iteration)
        count++;
    for (size_t i = 0; i < count; i++) {
        if (catalog.entries[i].iteration < before)
            good = catalog.entries[i].path;
        if (i + NAMED >= count)
            ls_text_format(&text, "%s%s", i + NAMED == count || i == 0 ? "" : ", ",
                           catalog.entries[i].path);
    }
    char signs[160] = "", hint[512];
    if (sign)
        snprintf(signs, sizeof signs,
                 "; the first sign was in iteration %lld: a gradient 2^%d times as large as "
                 "any lately, or more",
                 (long long)trainer->gradients.outgrew_first, LS_OUTGREW);
    if (good != NULL)
        snprintf(hint, sizeof hint, "go back to before that, with a lower base_lr: --resume %s",
                 good);
    else
        snprintf(hint, sizeof hint, "none of them is from before that: start again");
    if (count > 0 && !text.failed)
        ls_fail(error, LOCKSTEP_DIVERGED, NULL, hint, "snapshots: %s%s", text.data, signs);
    ls_text_free(&text);
    ls_catalog_free(&catalog);
}
