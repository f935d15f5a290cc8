/* Reading weights: which format a file has, and what all formats share.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "snapshot/weights.h"

#include <inttypes.h>
#include <string.h>

#include "base/hdf5.h"
#include "base/memory.h"
#include "base/names.h"
#include "snapshot/weights_build.h"

bool ls_weights_name_reserved(const char *layer)
{
    /* "average" itself would make "average.weight". */
    return strncmp(layer, LS_PREFIX_AVERAGE, strlen(LS_PREFIX_AVERAGE)) == 0 ||
           strncmp(layer, LS_PREFIX_STATE, strlen(LS_PREFIX_STATE)) == 0 ||
           strcmp(layer, "average") == 0 || strcmp(layer, "state") == 0;
}

static void free_layer(struct ls_weight_layer *layer)
{
    for (int i = 0; i < layer->blob_count; i++)
        ls_free(layer->blobs[i].copy);
    ls_free(layer->blobs);
    ls_free(layer->name);
}

void ls_weights_free(struct ls_weights *weights)
{
    for (size_t i = 0; i < weights->layer_count; i++)
        free_layer(&weights->layers[i]);
    for (size_t i = 0; i < weights->unused_count; i++)
        ls_free(weights->unused[i]);
    for (size_t i = 0; i < weights->note_count; i++) {
        ls_free(weights->notes[i].key);
        ls_free(weights->notes[i].value);
    }
    ls_free(weights->layers);
    ls_free(weights->unused);
    ls_free(weights->notes);
    ls_free(weights->path);
    ls_file_unmap(&weights->file);
    if (weights->origin != NULL) {
        ls_renamed_free(&weights->origin->renamed);
        ls_weight_shards_free(&weights->origin->shards);
        ls_free(weights->origin);
    }
    *weights = (struct ls_weights){0};
}

const char *ls_weights_note(const struct ls_weights *weights, const char *key)
{
    for (size_t i = 0; i < weights->note_count; i++) {
        if (strcmp(weights->notes[i].key, key) == 0)
            return weights->notes[i].value;
    }
    return NULL;
}

void ls_weights_name_blob(const struct ls_weight_layer *layer, const struct ls_weight_blob *blob,
                          struct ls_text *name)
{
    static const char *const usual[] = {"weight", "bias"};
    if (blob->name == NULL && blob->number > 1)
        ls_text_format(name, "%s.%d", layer->name, blob->number);
    else
        ls_text_format(name, "%s.%s", layer->name,
                       blob->name != NULL ? blob->name : usual[blob->number]);
}

int ls_weights_add_layer(struct ls_weights *weights, char *name, struct ls_error *error)
{
    if (!LS_GROW(weights->layers, weights->layer_count, weights->layer_capacity)) {
        ls_free(name);
        return ls_fail_memory(error, weights->path);
    }
    weights->layers[weights->layer_count++] = (struct ls_weight_layer){.name = name};
    return 0;
}

int ls_weights_add_blob(struct ls_weights *weights, struct ls_weight_layer *layer, int index,
                        const struct ls_shape *shape, struct ls_weight_blob **blob,
                        struct ls_error *error)
{
    if (index >= LS_BLOBS_MAX)
        return ls_fail(error, LOCKSTEP_WEIGHTS, weights->path, NULL,
                       "layer '%s' has more than %d blobs", layer->name, LS_BLOBS_MAX);
    if (index >= layer->blob_count) {
        struct ls_weight_blob *more =
            ls_resize(layer->blobs, (size_t)index + 1, sizeof *layer->blobs);
        if (more == NULL)
            return ls_fail_memory(error, weights->path);
        layer->blobs = more;
        for (int i = layer->blob_count; i <= index; i++)
            more[i] = (struct ls_weight_blob){0};
        layer->blob_count = index + 1;
    }
    struct ls_weight_blob *found = &layer->blobs[index];
    if (found->present)
        return ls_fail(error, LOCKSTEP_WEIGHTS, weights->path, NULL,
                       "blob %d of layer '%s' is there twice", index, layer->name);
    found->present = true;
    found->shape = *shape;
    found->number = index;
    *blob = found;
    return 0;
}

int ls_weights_make_copy(const struct ls_weights *weights, struct ls_weight_blob *blob,
                         struct ls_error *error)
{
    blob->copy = ls_alloc((size_t)ls_shape_size(&blob->shape), sizeof *blob->copy);
    blob->data = blob->copy;
    return blob->copy != NULL ? 0 : ls_fail_memory(error, weights->path);
}

/* Formats that people have, and that are not read; with what to do about them. */
static const struct {
    const char *magic;
    size_t size;
    const char *what, *hint;
} foreign[] = {
    {"PK\x03\x04", 4, "is a zip file, as PyTorch writes them, which is not read",
     "save the tensors with the safetensors package"},
    {"\x80\x02", 2, "is a Python pickle, which is not read",
     "save the tensors with the safetensors package"},
    {"\x1f\x8b", 2, "is compressed", "unpack it with gunzip"},
    {"version https://git-lfs", 23, "is a pointer of Git LFS, not the file itself",
     "fetch the file with 'git lfs pull'"},
};

static int refuse_foreign(const char *path, const struct ls_mapping *file, struct ls_error *error)
{
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        if (file->size >= foreign[i].size &&
            memcmp(file->data, foreign[i].magic, foreign[i].size) == 0)
            return ls_fail(error, LOCKSTEP_WEIGHTS, path, foreign[i].hint, "%s", foreign[i].what);
    }
    return file->size > 0 ? 0 : ls_fail(error, LOCKSTEP_WEIGHTS, path, NULL, "is empty");
}

/* A brace where a safetensors header begins, behind a length below 2^32. Read as a protocol
 * buffer, such a file would have zeros where the first keys must be. */
static bool looks_like_safetensors(const struct ls_mapping *file)
{
    return file->size > 8 && file->data[8] == '{' && memcmp(file->data + 4, "\0\0\0\0", 4) == 0;
}

static int read_content(const char *path, enum ls_weights_set set, struct ls_weights *weights,
                        struct ls_error *error)
{
    struct ls_mapping file;
    LS_TRY(ls_file_map(path, LOCKSTEP_WEIGHTS, &file, error));
    int status = refuse_foreign(path, &file, error);
    if (status == 0 && looks_like_safetensors(&file)) {
        struct ls_archive archive;
        status = ls_archive_read(path, LS_ARCHIVE_CHECK, &archive, error);
        if (status == 0)
            status = ls_weights_from_archive(&archive, set, weights, error);
        weights->file = archive.mapping;
        archive.mapping = (struct ls_mapping){0};
        ls_archive_free(&archive);
    } else if (status == 0 && set == LS_WEIGHTS_AVERAGED) {
        status = ls_fail(error, LOCKSTEP_WEIGHTS, path, NULL, "has no averaged weights");
    } else if (status == 0 && ls_hdf5_begins(file.data, file.size)) {
        status = ls_weights_from_hdf5(path, weights, error);
    } else if (status == 0) {
        status = ls_caffemodel_parse(file.data, file.size, weights, error);
    }
    if (status == 0)
        status = ls_file_lost(&file, path, LOCKSTEP_WEIGHTS, error);
    ls_file_unmap(&file);
    return status;
}

/* Layers with weights are found by their names: each has one, and no two the same. Layers without
 * weights may share theirs, as in old definitions. */
static int check_names(const struct ls_weights *weights, struct ls_error *error)
{
    struct ls_names names = {0};
    int status = 0;
    size_t ignored;
    for (size_t i = 0; i < weights->layer_count && status == 0; i++) {
        const char *name = weights->layers[i].name;
        if (weights->layers[i].blob_count == 0)
            continue;
        if (name[0] == '\0')
            status = ls_fail(error, LOCKSTEP_WEIGHTS, weights->path, NULL,
                             "a layer with weights has no name");
        else if (ls_names_find(&names, name, &ignored))
            status = ls_fail(error, LOCKSTEP_WEIGHTS, weights->path,
                             "which of them is meant cannot be known: rename one of them in the "
                             "definition that the file was made with",
                             "layer '%s' is there twice with weights", name);
        else if (!ls_names_set(&names, name, i))
            status = ls_fail_memory(error, weights->path);
    }
    ls_names_free(&names);
    return status;
}

int ls_weights_read(const char *path, enum ls_weights_set set, struct ls_weights *weights,
                    struct ls_error *error)
{
    *weights = (struct ls_weights){.path = ls_copy_string(path)};
    if (weights->path == NULL)
        return ls_fail_memory(error, path);
    int status = ls_weight_shards_is_index(path) ? ls_weights_from_index(path, set, weights, error)
                                                 : read_content(path, set, weights, error);
    if (status == 0)
        status = check_names(weights, error);
    if (status != 0)
        ls_weights_free(weights);
    return status;
}
