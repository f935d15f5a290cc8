/* Files of weights: what is in them. See inspect/show.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "data/mean_file.h"
#include "inspect/show_inner.h"
#include "snapshot/solverstate.h"
#include "snapshot/weight_shards.h"
#include "snapshot/weights.h"
#include "solver/notes.h"

static bool has_prefix(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* How many tensors and numbers there are, by what they are for. */
static void show_counts(const struct ls_showing *showing, const struct ls_tensor *tensors,
                        size_t count)
{
    int64_t number[3] = {0}, size[3] = {0};
    for (size_t i = 0; i < count; i++) {
        int group = has_prefix(tensors[i].name, LS_PREFIX_STATE)     ? 1
                    : has_prefix(tensors[i].name, LS_PREFIX_AVERAGE) ? 2
                                                                     : 0;
        number[group]++;
        size[group] += ls_shape_size(&tensors[i].shape);
    }
    ls_show_fact(showing, "weights", "%" PRId64 " numbers in %" PRId64 " tensors", size[0],
                 number[0]);
    if (number[1] > 0)
        ls_show_fact(showing, "state of the solver", "%" PRId64 " numbers in %" PRId64 " tensors",
                     size[1], number[1]);
    if (number[2] > 0)
        ls_show_fact(showing, "moving averages", "%" PRId64 " numbers in %" PRId64 " tensors",
                     size[2], number[2]);
}

int ls_show_archive(const struct ls_showing *showing, struct ls_error *error)
{
    struct ls_archive archive;
    LS_TRY(ls_archive_read(showing->path, LS_ARCHIVE_CHECK, &archive, error));
    bool snapshot = archive.ours && ls_archive_note(&archive, LS_NOTE_DEFINITION) != NULL;
    ls_show_text(showing, "written by",
                 snapshot       ? "Lockstep: a snapshot; its checksum is right"
                 : archive.ours ? "Lockstep; its checksum is right"
                                : "another program, or without a checksum");
    /* What one looks for first, then the long texts. */
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < archive.note_count; i++)
            if ((strchr(archive.notes[i].value, '\n') != NULL) == (pass == 1))
                ls_show_text(showing, archive.notes[i].key, archive.notes[i].value);
    show_counts(showing, archive.tensors, archive.tensor_count);
    for (size_t i = 0; i < archive.tensor_count; i++) {
        const struct ls_tensor *tensor = &archive.tensors[i];
        ls_show_tensor(showing, tensor->name, tensor->type, &tensor->shape, tensor->data);
    }
    int status = ls_file_lost(&archive.mapping, showing->path, LOCKSTEP_WEIGHTS, error);
    ls_archive_free(&archive);
    return status;
}

int ls_show_shards(const struct ls_showing *showing, struct ls_error *error)
{
    struct ls_weight_shards shards;
    if (!ls_weight_shards_is_index(showing->path))
        return ls_fail(error, LOCKSTEP_WEIGHTS, showing->path, "rename it to ....index.json",
                       "is an index of safetensors by its content, but not by its name");
    LS_TRY(ls_weight_shards_read(showing->path, &shards, error));
    ls_show_fact(showing, "files", "%zu", shards.count);
    for (size_t i = 0; i < shards.count; i++)
        ls_show_record(showing, (int64_t)i, shards.files[i].path, "");
    show_counts(showing, shards.tensors, shards.tensor_count);
    for (size_t i = 0; i < shards.tensor_count; i++)
        ls_show_tensor(showing, shards.tensors[i].name, shards.tensors[i].type,
                       &shards.tensors[i].shape, shards.tensors[i].data);
    ls_weight_shards_free(&shards);
    return 0;
}

/* "conv1[0]": blobs of files of Caffe's have numbers. */
static void show_blobs(const struct ls_showing *showing, const struct ls_weights *weights)
{
    int64_t tensors = 0, numbers = 0;
    for (size_t i = 0; i < weights->layer_count; i++)
        for (int b = 0; b < weights->layers[i].blob_count; b++)
            if (weights->layers[i].blobs[b].present) {
                tensors++;
                numbers += ls_shape_size(&weights->layers[i].blobs[b].shape);
            }
    ls_show_fact(showing, "layers", "%zu", weights->layer_count);
    ls_show_fact(showing, "numbers", "%" PRId64 " in %" PRId64 " blobs", numbers, tensors);
    for (size_t i = 0; i < weights->layer_count; i++) {
        const struct ls_weight_layer *layer = &weights->layers[i];
        for (int b = 0; b < layer->blob_count; b++) {
            char name[256];
            snprintf(name, sizeof name, "%.200s[%d]", layer->name, b);
            if (layer->blobs[b].present)
                ls_show_tensor(showing, name, LS_F32, &layer->blobs[b].shape, layer->blobs[b].data);
        }
    }
}

int ls_show_weights(const struct ls_showing *showing, struct ls_error *error)
{
    struct ls_weights weights;
    LS_TRY(ls_weights_read(showing->path, LS_WEIGHTS_PLAIN, &weights, error));
    show_blobs(showing, &weights);
    ls_weights_free(&weights);
    return 0;
}

int ls_show_solverstate(const struct ls_showing *showing, struct ls_error *error)
{
    struct ls_solverstate state;
    LS_TRY(ls_solverstate_read(showing->path, &state, error));
    ls_show_fact(showing, "iteration", "%" PRId64, state.iteration);
    ls_show_fact(showing, "current_step", "%" PRId64, state.current_step);
    ls_show_text(showing, "its weights",
                 state.learned_net != NULL ? state.learned_net : "not named");
    show_blobs(showing, &state.history);
    ls_solverstate_free(&state);
    return 0;
}

/* A mean file is a picture: blue, green, red where it has three channels. */
int ls_show_blob(const struct ls_showing *showing, struct ls_error *error)
{
    struct ls_shape shape = {.rank = 3};
    float *mean;
    LS_TRY(ls_mean_shape(showing->path, shape.dim, error));
    LS_TRY(ls_mean_read(showing->path, shape.dim, &mean, error));
    ls_show_tensor(showing, "blob", LS_F32, &shape, mean);
    struct lockstep_shown_record record = {.name = "",
                                           .text = "",
                                           .label = -1,
                                           .pixels = mean,
                                           .shape = {shape.dim[0], shape.dim[1], shape.dim[2]}};
    size_t plane = (size_t)(shape.dim[1] * shape.dim[2]);
    for (size_t i = 0; shape.dim[0] == 3 && i < plane; i++) {
        float blue = mean[i];
        mean[i] = mean[2 * plane + i];
        mean[2 * plane + i] = blue;
    }
    ls_show_announce(showing);
    if (showing->records > 0 && showing->options->record != NULL)
        showing->options->record(showing->options->user, &record);
    ls_free(mean);
    return 0;
}
