/* Snapshots: all that a resume needs in one file, and nothing of the run.
 *
 * Tensors: "<name>" the weights, "average.<name>" their moving average, "state.history0.<name>" and
 * "state.history1.<name>" what the optimizer remembers, "state.exponents" those of the exact sums,
 * "state.losses" the window of average_loss. Notes: the iteration, the canonical definition, the
 * fingerprint of the data, the numeric environment, the best score, the names of the classes.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "schema/canonical.h"
#include "snapshot/archive.h"
#include "snapshot/caffemodel.h"
#include "snapshot/catalog.h"
#include "snapshot/weights.h"
#include "solver/notes.h"
#include "solver/trainer.h"

static const struct {
    const char *prefix;
    enum ls_store_array array;
} arrays[] = {{"", LS_WEIGHTS},
              {LS_PREFIX_AVERAGE, LS_AVERAGE},
              {LS_PREFIX_STATE "history0.", LS_HISTORY_0},
              {LS_PREFIX_STATE "history1.", LS_HISTORY_1}};
enum { ARRAYS = sizeof arrays / sizeof *arrays };

static bool slot_has(const struct ls_slot *slot, enum ls_store_array array)
{
    switch (array) {
    case LS_WEIGHTS:
        return true;
    case LS_HISTORY_0:
        return slot->history[0] != NULL;
    case LS_HISTORY_1:
        return slot->history[1] != NULL;
    case LS_AVERAGE:
        return slot->average != NULL;
    }
    return false;
}

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
    struct ls_error *error;
};

static int fetch(void *user, size_t index, void *out, struct ls_error *error)
{
    const struct draft *draft = user;
    const struct source *source = &draft->sources[index];
    return ls_store_read(draft->trainer->store, source->parameter, source->array, out, error);
}

static int add_array(struct draft *draft, size_t parameter, size_t which)
{
    const struct ls_store *store = draft->trainer->store;
    const struct ls_parameter *what = store->set->items[parameter];
    if (!LS_GROW(draft->sources, draft->source_count, draft->source_capacity))
        return ls_fail_memory(draft->error, "a snapshot");
    draft->sources[draft->source_count++] = (struct source){(int)parameter, arrays[which].array};
    struct ls_text name = {0};
    ls_text_format(&name, "%s%s", arrays[which].prefix, what->name);
    int status = name.failed
                     ? ls_fail_memory(draft->error, "a snapshot")
                     : ls_archive_add(&draft->archive, name.data, LS_DTYPE_F32, &what->shape,
                                      ls_store_plain(store, (int)parameter, arrays[which].array),
                                      draft->error);
    ls_text_free(&name);
    return status;
}

static int add_tensors(struct draft *draft)
{
    struct ls_trainer *trainer = draft->trainer;
    size_t count = trainer->parameters->count;
    for (size_t a = 0; a < ARRAYS; a++)
        for (size_t i = 0; i < count; i++)
            if (slot_has(&trainer->store->slots[i], arrays[a].array))
                LS_TRY(add_array(draft, i, a));
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

/* A hash of what the training data are. */
static void data_fingerprint(const struct ls_trainer *trainer, char text[64])
{
    uint64_t fingerprint = 0;
    for (int i = 0; i < trainer->train->dataset_count; i++)
        fingerprint = fingerprint * 31 + ls_dataset_fingerprint(trainer->train->datasets[i]);
    snprintf(text, 64, "%016llx", (unsigned long long)fingerprint);
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

static int canonical_definition(const struct ls_trainer *trainer, struct ls_text *text,
                                struct ls_error *error)
{
    return ls_definition_canonical(trainer->definition,
                                   (int32_t)trainer->train->batching.micro_batch, text, error);
}

static int add_notes(struct draft *draft)
{
    struct ls_trainer *trainer = draft->trainer;
    struct ls_error *error = draft->error;
    char fingerprint[64], best[32];
    struct ls_text definition = {0};
    LS_TRY(
        ls_archive_add_note_integer(&draft->archive, LS_NOTE_ITERATION, trainer->iteration, error));
    int status = canonical_definition(trainer, &definition, error);
    if (status == 0)
        status = ls_archive_add_note(&draft->archive, LS_NOTE_DEFINITION, definition.data, error);
    ls_text_free(&definition);
    LS_TRY(status);
    data_fingerprint(trainer, fingerprint);
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

int ls_trainer_write(struct ls_trainer *trainer, const char *path, struct ls_error *error)
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
    return status;
}

/* A caffemodel beside the snapshot, where the solver names the format. */
static int write_caffemodel(struct ls_trainer *trainer, struct ls_error *error)
{
    if (!trainer->solver->has_snapshot_format ||
        trainer->solver->snapshot_format !=
            LOCKSTEP__SOLVER_PARAMETER__SNAPSHOT_FORMAT__BINARYPROTO)
        return 0;
    char *path = ls_catalog_caffemodel_path(trainer->prefix, trainer->iteration);
    if (path == NULL)
        return ls_fail_memory(error, "a snapshot");
    bool averaged = trainer->solver->weight_average != NULL;
    int status = averaged ? ls_store_swap_average(trainer->store, error) : 0;
    if (status == 0)
        status = ls_save_caffemodel(trainer->store, ls_net_graph(trainer->train), path, error);
    if (averaged && status != LOCKSTEP_LOST) {
        int back = ls_store_swap_average(trainer->store, error);
        status = status != 0 ? status : back;
    }
    ls_free(path);
    return status;
}

int ls_trainer_snapshot(struct ls_trainer *trainer, struct ls_error *error)
{
    if (trainer->snapshot_at == trainer->iteration)
        return 0; /* it is there already, with the same bytes */
    char *path = ls_catalog_path(trainer->prefix, trainer->iteration);
    if (path == NULL)
        return ls_fail_memory(error, "a snapshot");
    int status = ls_trainer_write(trainer, path, error);
    if (status == 0)
        status = write_caffemodel(trainer, error);
    if (status == 0) {
        trainer->snapshot_at = trainer->iteration;
        ls_trainer_say(trainer, LOCKSTEP_EVENT_SNAPSHOT, "%s", path);
        status = ls_catalog_prune(trainer->prefix, trainer->iteration,
                                  trainer->solver->snapshot_keep, error);
    }
    ls_free(path);
    return status;
}

/* ---- Resuming -------------------------------------------------------------------------------- */

static int compare_definitions(struct ls_trainer *trainer, const struct ls_archive *archive,
                               struct ls_error *error)
{
    const char *before = ls_archive_note(archive, LS_NOTE_DEFINITION);
    struct ls_text after = {0};
    struct ls_changes changes = {0};
    if (before == NULL)
        return ls_fail(error, LOCKSTEP_WEIGHTS, archive->path, "use --weights to start from it",
                       "holds weights, but no training to resume");
    int status = canonical_definition(trainer, &after, error);
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
    data_fingerprint(trainer, fingerprint);
    if (before == NULL || strcmp(before, fingerprint) == 0)
        return 0;
    return ls_fail(error, LOCKSTEP_WEIGHTS, archive->path, "use --weights to go on with other data",
                   "the snapshot was trained on other data than the definition's sources hold now");
}

static int take_array(struct ls_trainer *trainer, const struct ls_archive *archive,
                      size_t parameter, size_t which, struct ls_error *error)
{
    const struct ls_parameter *what = trainer->parameters->items[parameter];
    int64_t size = ls_shape_size(&what->shape);
    struct ls_text name = {0};
    float *plain = ls_alloc_aligned((size_t)size * sizeof *plain);
    ls_text_format(&name, "%s%s", arrays[which].prefix, what->name);
    int status = plain == NULL || name.failed ? ls_fail_memory(error, "a snapshot") : 0;
    if (status == 0)
        status = ls_archive_take(archive, name.data, LS_DTYPE_F32, size, plain, error);
    if (status == 0)
        status = ls_store_write(trainer->store, (int)parameter, arrays[which].array, plain, error);
    ls_free_aligned(plain);
    ls_text_free(&name);
    return status;
}

static int take_state(struct ls_trainer *trainer, const struct ls_archive *archive,
                      struct ls_error *error)
{
    size_t count = trainer->parameters->count;
    for (size_t a = 0; a < ARRAYS; a++)
        for (size_t i = 0; i < count; i++)
            if (slot_has(&trainer->store->slots[i], arrays[a].array))
                LS_TRY(take_array(trainer, archive, i, a, error));
    int32_t *exponents = ls_alloc(count + 1, sizeof *exponents);
    if (exponents == NULL)
        return ls_fail_memory(error, "a snapshot");
    int status = ls_archive_take(archive, LS_PREFIX_STATE "exponents", LS_DTYPE_I32, (int64_t)count,
                                 exponents, error);
    for (size_t i = 0; i < count && status == 0; i++)
        ls_sums_set_exponent(trainer->store->sums, (int)i, exponents[i]);
    ls_free(exponents);
    LS_TRY(status);
    const char *best = ls_archive_note(archive, LS_NOTE_BEST);
    trainer->best = (struct ls_best){.known = best != NULL};
    if (best != NULL)
        trainer->best.value = ls_parse_double(best);
    return 0;
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

static int restore(struct ls_trainer *trainer, const struct ls_archive *archive,
                   struct ls_error *error)
{
    int64_t iteration = 0;
    LS_TRY(compare_definitions(trainer, archive, error));
    LS_TRY(check_data(trainer, archive, error));
    LS_TRY(ls_archive_take_integer(archive, LS_NOTE_ITERATION, &iteration, error));
    if (iteration < 0)
        return ls_fail(error, LOCKSTEP_WEIGHTS, archive->path, NULL, "is of iteration %lld",
                       (long long)iteration);
    LS_TRY(take_state(trainer, archive, error));
    LS_TRY(take_losses(trainer, archive, iteration, error));
    const char *environment = ls_archive_note(archive, LS_NOTE_ENVIRONMENT);
    if (environment == NULL || strcmp(environment, trainer->engine->backend->environment()) != 0)
        ls_trainer_say(trainer, LOCKSTEP_EVENT_WARNING,
                       "the snapshot comes from another numeric environment (processor, "
                       "instruction set or kernel library); the bits may differ from there on");
    trainer->iteration = iteration;
    trainer->snapshot_at = iteration;
    trainer->best_iteration = -1;
    trainer->feed_ready = false;
    ls_team_enter(trainer->engine->team);
    int status = ls_store_refresh_views(trainer->store, trainer->engine->team, error);
    ls_team_leave(trainer->engine->team);
    return status;
}

int ls_trainer_resume(struct ls_trainer *trainer, const char *resume, struct ls_error *error)
{
    struct ls_archive archive = {0};
    char *path = NULL;
    int status;
    if (strcmp(resume, "auto") == 0) {
        static _Thread_local struct ls_error skipped;
        ls_error_clear(&skipped);
        status = ls_catalog_newest(trainer->prefix, &archive, &path, &skipped, error);
        for (int i = 0; i < skipped.count; i++)
            ls_trainer_say(trainer, LOCKSTEP_EVENT_WARNING, "skipping %s: %s",
                           skipped.problems[i].place, skipped.problems[i].message);
        if (status == 0 && path == NULL) {
            ls_trainer_say(trainer, LOCKSTEP_EVENT_NOTICE,
                           "No snapshot %s_iter_*.safetensors to resume from: starting afresh",
                           trainer->prefix);
            return 0;
        }
    } else {
        status = ls_archive_read(resume, LS_ARCHIVE_CHECK, &archive, error);
    }
    if (status == 0)
        status = restore(trainer, &archive, error);
    if (status == 0)
        ls_trainer_say(trainer, LOCKSTEP_EVENT_NOTICE, "Resuming from %s, iteration %lld",
                       path != NULL ? path : resume, (long long)trainer->iteration);
    ls_archive_free(&archive);
    ls_free(path);
    return status;
}
