/* Snapshots: all that a resume needs in one file, and nothing of the run.
 *
 * Tensors: "<name>" the weights, "average.<name>" their moving average, "state.history0.<name>",
 * "state.history1.<name>", "state.rows.<name>" and "state.columns.<name>" what the optimizer
 * remembers, "state.row_exponents" those of the exact sums, parameter by parameter, "state.losses"
 * the window of average_loss, "state.mean.<n>" the mean picture of data source n, from 1, so that
 * predictions can subtract it. Notes: the iteration, the canonical definition, what the data are
 * and digests of what was read of them, the numeric environment and those before it, the best
 * score, the names of the classes.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/mutant.h"
#include "base/text.h"
#include "data/source.h"
#include "engine/compare.h"
#include "engine/copies.h"
#include "engine/pass.h"
#include "engine/rows.h"
#include "engine/sample_states.h"
#include "engine/sources.h"
#include "snapshot/archive.h"
#include "snapshot/catalog.h"
#include "snapshot/weights.h"
#include "solver/caffe_files.h"
#include "solver/checkpoint.h"
#include "solver/chain.h"
#include "solver/data.h"
#include "solver/masks.h"
#include "solver/matrices.h"
#include "solver/notes.h"
#include "solver/state.h"
#include "transport/comm.h"
#include "transport/failure_detector.h"

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
    /* Do not count slow I/O as a hang. */
    ls_detector_note(draft->trainer->comm->detector, draft->trainer->iteration,
                     store->set->items[source->parameter]->layer);
    int status =
        ls_copies_read(draft->trainer->engine, source->parameter, source->array, out, error);
    draft->agreed = status == LOCKSTEP_LOST ||
                    (status != 0 &&
                     ls_copies_in_parts(draft->trainer->engine, source->parameter, source->array));
    return status;
}

static int add_array(struct draft *draft, size_t parameter, const struct ls_state_array *array)
{
    const struct ls_store *store = draft->trainer->store;
    const struct ls_parameter *what = store->set->items[parameter];
    if (!LS_GROW(draft->sources, draft->source_count, draft->source_capacity))
        return ls_fail_memory(draft->error, "a snapshot");
    draft->sources[draft->source_count++] = (struct source){(int)parameter, array->array};
    const struct ls_shape shape = ls_store_array_shape(&what->shape, array->array);
    struct ls_text name = {0};
    ls_text_format(&name, "%s%s", array->prefix, what->name);
    int status =
        name.failed
            ? ls_fail_memory(draft->error, "a snapshot")
            : ls_archive_add(&draft->archive, name.data, LS_F32, &shape,
                             ls_copies_plain(draft->trainer->engine, (int)parameter, array->array),
                             draft->error);
    ls_text_free(&name);
    return status;
}

static int add_exponents(struct draft *draft)
{
    const struct ls_store *store = draft->trainer->store;
    size_t rows = ls_rows_all(store), at = 0;
    draft->exponents = ls_alloc(rows + 1, sizeof *draft->exponents);
    if (draft->exponents == NULL)
        return ls_fail_memory(draft->error, "a snapshot");
    for (size_t i = 0; i < store->set->count; at += ls_rows_count(store, (int)i), i++)
        LS_TRY(ls_rows_read(store, (int)i, draft->exponents + at, draft->error));
    return ls_archive_add_list(&draft->archive, LS_PREFIX_STATE "row_exponents", LS_I32,
                               (int64_t)rows, draft->exponents, draft->error);
}

/* The state per sample, which every rank has. */
static int add_sample_states(struct draft *draft)
{
    const struct ls_sample_states *states = draft->trainer->train_pass->states;
    int status = 0;
    for (size_t i = 0; states != NULL && i < states->count && status == 0; i++) {
        const struct ls_state_tensor *tensor = &states->tensors[i];
        const void *data;
        struct ls_text name = {0};
        LS_TRY(ls_sample_states_read(states, i, &data, draft->error));
        ls_text_format(&name, LS_PREFIX_SAMPLE_STATE "%s", tensor->name);
        status = name.failed ? ls_fail_memory(draft->error, "a snapshot")
                             : ls_archive_add(&draft->archive, name.data, tensor->type,
                                              &tensor->shape, data, draft->error);
        ls_text_free(&name);
    }
    return status;
}

/* The mean pictures of the training data. */
static int add_means(struct draft *draft)
{
    const struct ls_net *net = draft->trainer->train;
    for (int d = 0; d < net->dataset_count; d++) {
        struct ls_shape shape = {.rank = 3};
        char name[48];
        const float *mean = ls_dataset_mean_picture(net->datasets[d], shape.dim);
        snprintf(name, sizeof name, LS_PREFIX_MEAN "%d", d + 1);
        if (mean != NULL)
            LS_TRY(ls_archive_add(&draft->archive, name, LS_F32, &shape, mean, draft->error));
    }
    return 0;
}

static int add_tensors(struct draft *draft)
{
    struct ls_trainer *trainer = draft->trainer;
    size_t count = trainer->parameters->count;
    for (size_t a = 0; a < LS_STATE_ARRAYS; a++)
        for (size_t i = 0; i < count; i++)
            if (ls_state_has(trainer, i, ls_state_arrays[a].array))
                LS_TRY(add_array(draft, i, &ls_state_arrays[a]));
    LS_TRY(add_exponents(draft));
    LS_TRY(add_sample_states(draft));
    LS_TRY(add_means(draft));
    return ls_archive_add_list(&draft->archive, LS_PREFIX_STATE "losses", LS_F64,
                               trainer->solver->average_loss, trainer->figures.losses,
                               draft->error);
}

/* The names of the classes, one a line. */
static int add_classes(struct draft *draft)
{
    const struct ls_dataset *dataset = ls_sources_named(draft->trainer->train);
    if (dataset == NULL)
        return 0;
    struct ls_text names = {0};
    for (int i = 0; i < ls_dataset_classes(dataset); i++)
        ls_text_format(&names, "%s%s", i > 0 ? "\n" : "", ls_dataset_class_name(dataset, i));
    int status = names.failed ? ls_fail_memory(draft->error, "a snapshot")
                              : ls_archive_add_note(&draft->archive, LS_NOTE_CLASSES, names.data,
                                                    draft->error);
    ls_text_free(&names);
    return status;
}

/* Whose ids the net is trained on, where that is known. */
static int add_tokenizer(struct draft *draft)
{
    const struct ls_net *net = draft->trainer->train;
    char note[17];
    for (int d = 0; d < net->dataset_count; d++) {
        const struct ls_class_names names = ls_dataset_class_names(net->datasets[d]);
        if (names.tokenizer == 0)
            continue;
        snprintf(note, sizeof note, "%016" PRIx64, names.tokenizer);
        return ls_archive_add_note(&draft->archive, LS_NOTE_TOKENIZER, note, draft->error);
    }
    return 0;
}

/* What the data are, and what was read of them. */
static int add_data(struct draft *draft)
{
    struct ls_text data = {0}, digests = {0};
    if (draft->trainer->train->dataset_count == 0)
        return 0;
    ls_data_describe(draft->trainer, &data);
    ls_data_digests(draft->trainer, &digests);
    int status = data.failed || digests.failed ? ls_fail_memory(draft->error, "a snapshot") : 0;
    if (status == 0)
        status = ls_archive_add_note(&draft->archive, LS_NOTE_DATA, data.data, draft->error);
    if (status == 0)
        status = ls_archive_add_note(&draft->archive, LS_NOTE_DIGESTS, digests.data, draft->error);
    ls_text_free(&data);
    ls_text_free(&digests);
    return status;
}

static int add_matrices(struct draft *draft)
{
    struct ls_text text = {0};
    ls_matrices_describe(draft->trainer->train, &text);
    int status = text.failed       ? ls_fail_memory(draft->error, "a snapshot")
                 : text.length > 0 ? ls_archive_add_note(&draft->archive, LS_NOTE_MATRICES,
                                                         text.data, draft->error)
                                   : 0;
    ls_text_free(&text);
    return status;
}

static int add_notes(struct draft *draft)
{
    struct ls_trainer *trainer = draft->trainer;
    struct ls_error *error = draft->error;
    char best[48], chain[LS_CHAIN_TEXT], masks[LS_MASKS_TEXT];
    struct ls_text definition = {0};
    LS_TRY(
        ls_archive_add_note_integer(&draft->archive, LS_NOTE_ITERATION, trainer->iteration, error));
    int status = ls_state_definition(trainer, &definition, error);
    if (status == 0)
        status = ls_archive_add_note(&draft->archive, LS_NOTE_DEFINITION, definition.data, error);
    ls_text_free(&definition);
    LS_TRY(status);
    ls_masks_describe(trainer->parameters, masks);
    if (ls_masks_count(trainer->parameters) > 0)
        LS_TRY(ls_archive_add_note(&draft->archive, LS_NOTE_MASKS, masks, error));
    LS_TRY(add_matrices(draft));
    if (LS_MUTANT(TRACE))
        LS_TRY(ls_archive_add_note_integer(&draft->archive, "workers", trainer->workers, error));
    LS_TRY(add_data(draft));
    LS_TRY(ls_archive_add_note(&draft->archive, LS_NOTE_ENVIRONMENT, trainer->numerics.environment,
                               error));
    LS_TRY(ls_archive_add_note(&draft->archive, LS_NOTE_HISTORY, trainer->numerics.history, error));
    LS_TRY(
        ls_archive_add_note_integer(&draft->archive, LS_NOTE_NUMERICS, LOCKSTEP_NUMERICS, error));
    LS_TRY(ls_archive_add_note(&draft->archive, LS_NOTE_VERSION, LOCKSTEP_VERSION, error));
    ls_chain_write(&trainer->chain, chain);
    LS_TRY(ls_archive_add_note(&draft->archive, LS_NOTE_CHAIN, chain, error));
    bool tested = trainer->best.iteration == trainer->iteration;
    const struct ls_best *so_far = tested ? &trainer->best.before : &trainer->best.now;
    if (so_far->known) {
        ls_format_double(best, so_far->value);
        LS_TRY(ls_archive_add_note(&draft->archive, LS_NOTE_BEST, best, error));
    }
    if (trainer->course != NULL)
        LS_TRY(ls_archive_add_note(&draft->archive, LS_NOTE_COURSE, trainer->course, error));
    if (trainer->gradients.outgrew_last >= 0) {
        snprintf(best, sizeof best, "%lld %lld", (long long)trainer->gradients.outgrew_first,
                 (long long)trainer->gradients.outgrew_last);
        LS_TRY(ls_archive_add_note(&draft->archive, LS_NOTE_OUTGREW, best, error));
    }
    LS_TRY(add_classes(draft));
    return add_tokenizer(draft);
}

static void note_piece(void *user)
{
    const struct draft *draft = user;
    ls_state_note_piece(draft->trainer);
}

static int make_draft(struct draft *draft)
{
    draft->archive.fetch = fetch;
    draft->archive.wrote = note_piece;
    draft->archive.user = draft;
    LS_TRY(add_tensors(draft));
    return add_notes(draft);
}

static void free_draft(struct draft *draft)
{
    ls_archive_free(&draft->archive);
    ls_free(draft->sources);
    ls_free(draft->exponents);
}

static int write_archive(struct ls_trainer *trainer, const char *path, struct ls_error *error)
{
    struct draft draft = {.trainer = trainer, .error = error};
    int status = make_draft(&draft);
    if (status == 0)
        status = ls_archive_write(&draft.archive, path, error);
    free_draft(&draft);
    return draft.agreed ? status : ls_comm_agree(trainer->comm, status, error);
}

/* What other ranks do while rank 0 writes or copies: they hand in their parts of arrays in the same
 * order. Where rank 0 fails between two of them, it tells at the next one. */
static int hand_in(struct ls_trainer *trainer, struct ls_error *error)
{
    for (size_t a = 0; a < LS_STATE_ARRAYS; a++)
        for (int i = 0; i < (int)trainer->parameters->count; i++)
            if (ls_state_has(trainer, (size_t)i, ls_state_arrays[a].array) &&
                ls_copies_in_parts(trainer->engine, i, ls_state_arrays[a].array))
                LS_TRY(ls_copies_read(trainer->engine, i, ls_state_arrays[a].array, NULL, error));
    return ls_comm_agree(trainer->comm, 0, error);
}

/* ---- Copies ---------------------------------------------------------------------------------- */

enum { ALIGNMENT = 64, SMALL_TENSORS = 64 << 10 }; /* bytes */

static size_t aligned(size_t size)
{
    return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static bool reserve(struct ls_staged *staged, size_t size)
{
    if (size <= staged->size)
        return true;
    ls_free_aligned(staged->memory);
    staged->size = 0;
    staged->memory = ls_alloc_aligned(size);
    if (staged->memory != NULL)
        staged->size = size;
    return staged->memory != NULL;
}

size_t ls_checkpoint_bytes(const struct ls_trainer *trainer)
{
    size_t size = aligned((size_t)trainer->solver->average_loss * sizeof(double)) + SMALL_TENSORS;
    for (size_t a = 0; a < LS_STATE_ARRAYS; a++)
        for (size_t i = 0; i < trainer->parameters->count; i++)
            if (ls_state_has(trainer, i, ls_state_arrays[a].array)) {
                const struct ls_shape shape = ls_store_array_shape(
                    &trainer->parameters->items[i]->shape, ls_state_arrays[a].array);
                size += aligned((size_t)ls_shape_size(&shape) * ls_dtype_size(LS_F32));
            }
    for (int d = 0; d < trainer->train->dataset_count; d++) {
        int64_t shape[3];
        if (ls_dataset_mean_picture(trainer->train->datasets[d], shape) != NULL)
            size += aligned((size_t)ls_record_size(shape) * ls_dtype_size(LS_F32));
    }
    return size + ls_sample_states_snapshot_bytes(trainer->train);
}

bool ls_checkpoint_reserve(const struct ls_trainer *trainer, struct ls_staged *staged)
{
    return reserve(staged, ls_checkpoint_bytes(trainer));
}

static size_t bytes_of(const struct ls_archive *archive)
{
    size_t size = 0;
    for (size_t i = 0; i < archive->tensor_count; i++)
        size += aligned(archive->tensors[i].size);
    return size;
}

/* Tensors from the store come first and in the order in which other ranks hand in their parts. */
static int copy_tensors(struct ls_staged *staged, struct draft *draft)
{
    unsigned char *at = staged->memory;
    for (size_t i = 0; i < draft->archive.tensor_count; i++) {
        struct ls_tensor *tensor = &draft->archive.tensors[i];
        if (tensor->data != NULL)
            memcpy(at, tensor->data, tensor->size);
        else if (tensor->size > 0)
            LS_TRY(fetch(draft, i, at, draft->error));
        tensor->data = at;
        at += aligned(tensor->size);
    }
    return 0;
}

static int stage_archive(struct ls_trainer *trainer, struct ls_staged *staged,
                         struct ls_error *error)
{
    struct draft draft = {.trainer = trainer, .error = error};
    int status = make_draft(&draft);
    ls_archive_free(&staged->archive);
    if (status == 0 && !reserve(staged, bytes_of(&draft.archive)))
        status = ls_fail_memory(error, "a copy of a snapshot");
    if (status == 0)
        status = copy_tensors(staged, &draft);
    if (status == 0) {
        staged->archive = draft.archive;
        draft.archive = (struct ls_archive){0};
        staged->archive.fetch = NULL;
        staged->archive.wrote = NULL;
    }
    free_draft(&draft);
    return draft.agreed ? status : ls_comm_agree(trainer->comm, status, error);
}

static int compare(struct ls_trainer *trainer, struct ls_error *error)
{
    LS_TRY(ls_trainer_check_whole(trainer, error));
    ls_thread_pool_enter(trainer->engine->pool);
    int status = ls_compare_weights(trainer->engine, trainer->iteration, error);
    if (status == 0)
        status = ls_compare_states(trainer->train_pass, trainer->iteration, error);
    ls_thread_pool_leave(trainer->engine->pool);
    return status;
}

int ls_checkpoint_stage(struct ls_trainer *trainer, struct ls_staged *staged,
                        struct ls_error *error)
{
    float **gradients;
    LS_TRY(compare(trainer, error));
    LS_TRY(ls_caffe_files_gradients(trainer, &gradients, error));
    ls_caffe_files_free_gradients(trainer, staged->gradients);
    staged->gradients = gradients;
    return trainer->comm->rank == 0 ? stage_archive(trainer, staged, error)
                                    : hand_in(trainer, error);
}

void ls_staged_free(const struct ls_trainer *trainer, struct ls_staged *staged)
{
    ls_caffe_files_free_gradients(trainer, staged->gradients);
    ls_archive_free(&staged->archive);
    ls_free_aligned(staged->memory);
    *staged = (struct ls_staged){0};
}

/* ---- At once --------------------------------------------------------------------------------- */

int ls_trainer_write(struct ls_trainer *trainer, const char *path, struct ls_error *error)
{
    LS_TRY(compare(trainer, error));
    return trainer->comm->rank == 0 ? write_archive(trainer, path, error) : hand_in(trainer, error);
}

/* Rank 0: what was just written is read back, where it lies in Caffe's order. */
static int write_caffe_files(struct ls_trainer *trainer, const char *path, float *const *gradients,
                             struct ls_error *error)
{
    struct ls_archive archive;
    LS_TRY(ls_archive_read(path, LS_ARCHIVE_HEADER, &archive, error));
    int status = ls_caffe_files_write(trainer, trainer->iteration, &archive, gradients, error);
    ls_archive_free(&archive);
    return status;
}

/* Caffe's files beside the snapshot, where the solver names a format. */
static int add_caffe_files(struct ls_trainer *trainer, const char *path, struct ls_error *error)
{
    float **gradients;
    if (!ls_caffe_files_wanted(trainer))
        return 0;
    LS_TRY(ls_caffe_files_gradients(trainer, &gradients, error));
    int status = trainer->comm->rank == 0 ? write_caffe_files(trainer, path, gradients, error) : 0;
    ls_caffe_files_free_gradients(trainer, gradients);
    return ls_comm_agree(trainer->comm, status, error);
}

int ls_checkpoint_write(struct ls_trainer *trainer, struct ls_error *error)
{
    char *path = ls_catalog_path(trainer->prefix, trainer->iteration);
    int status = path == NULL ? ls_fail_memory(error, "a snapshot") : 0;
    status = ls_comm_agree(trainer->comm, status, error);
    if (status == 0)
        status = ls_trainer_write(trainer, path, error);
    if (status == 0)
        status = add_caffe_files(trainer, path, error);
    ls_free(path);
    return status;
}
