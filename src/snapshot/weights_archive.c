/* Weights from the tensors of an archive: names become layers and blobs.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "snapshot/weights_build.h"

/* Names of blobs, of all layer types; those that stand for a number where a layer has no blob of
 * that name come first. */
static const char *const blob_names[] = {
    "weight", "bias", "scale", "slope", "mean", "variance", "factor", "parameter",
    /* of LSTM, RNN and GRU */
    "W_xc", "b_c", "W_xc_static", "W_hc", "W_xh", "b_h", "W_xh_static", "W_hh", "W_ho", "b_o",
    "W_x", "b_x", "W_x_static", "W_h"};
enum { NUMBERED = 2 };

/* What the last part of a tensor's name stands for: *name is one of the above, or NULL, *number the
 * number of a blob, or -1. False: for nothing. */
static bool read_suffix(const char *suffix, const char **name, int *number)
{
    for (int i = 0; i < (int)(sizeof blob_names / sizeof *blob_names); i++)
        if (strcmp(suffix, blob_names[i]) == 0) {
            *name = blob_names[i];
            *number = i < NUMBERED ? i : -1;
            return true;
        }
    *name = NULL;
    size_t length = strlen(suffix);
    if (length < 1 || length > 2 || strspn(suffix, "0123456789") != length ||
        (length == 2 && suffix[0] == '0'))
        return false;
    *number = 0;
    for (const char *p = suffix; *p != '\0'; p++)
        *number = *number * 10 + (*p - '0');
    return *number < LS_BLOBS_MAX;
}

static int keep_unused(struct ls_weights *weights, const char *name, struct ls_error *error)
{
    if (!LS_GROW(weights->unused, weights->unused_count, weights->unused_capacity))
        return ls_fail_memory(error, weights->path);
    char *copy = ls_copy_string(name);
    if (copy == NULL)
        return ls_fail_memory(error, weights->path);
    weights->unused[weights->unused_count++] = copy;
    return 0;
}

/* The layer of that name, new if need be. Tensors of one layer mostly follow each other, so that
 * the search begins at the end. */
static int find_layer(struct ls_weights *weights, const char *name, size_t length,
                      struct ls_weight_layer **layer, struct ls_error *error)
{
    for (size_t i = weights->layer_count; i-- > 0;) {
        const char *known = weights->layers[i].name;
        if (strncmp(known, name, length) == 0 && known[length] == '\0') {
            *layer = &weights->layers[i];
            return 0;
        }
    }
    char *copy = ls_copy_bytes(name, length);
    if (copy == NULL)
        return ls_fail_memory(error, weights->path);
    LS_TRY(ls_weights_add_layer(weights, copy, error));
    *layer = &weights->layers[weights->layer_count - 1];
    return 0;
}

/* Adds a tensor under `name`, which is the tensor's without a prefix. */
static int add_tensor(struct ls_weights *weights, const struct ls_tensor *tensor, const char *name,
                      struct ls_error *error)
{
    const char *dot = strrchr(name, '.');
    const char *blob_name = NULL;
    int number = -1;
    if (dot == NULL || dot == name || !read_suffix(dot + 1, &blob_name, &number))
        return keep_unused(weights, tensor->name, error);
    if (!ls_dtype_is_float(tensor->type))
        return ls_fail(error, LOCKSTEP_WEIGHTS, weights->path, NULL,
                       "tensor '%s' has type %s; weights are F32, F64, F16 or BF16", tensor->name,
                       ls_dtype_name(tensor->type));
    struct ls_weight_layer *layer = NULL;
    struct ls_weight_blob *blob = NULL;
    LS_TRY(find_layer(weights, name, (size_t)(dot - name), &layer, error));
    for (int i = 0; i < layer->blob_count; i++)
        if (number >= 0 && layer->blobs[i].number == number)
            return ls_fail(error, LOCKSTEP_WEIGHTS, weights->path, NULL,
                           "blob %d of layer '%s' is there twice", number, layer->name);
    LS_TRY(ls_weights_add_blob(weights, layer, layer->blob_count, &tensor->shape, &blob, error));
    blob->name = blob_name;
    blob->number = number;
    if (tensor->type == LS_F32 && (uintptr_t)tensor->data % ls_dtype_size(LS_F32) == 0) {
        blob->data = tensor->data; /* large, and needed once: it stays where it is */
        return 0;
    }
    LS_TRY(ls_weights_make_copy(weights, blob, error));
    ls_tensor_floats(tensor, blob->copy);
    return 0;
}

static bool begins_with(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* What a tensor of our own files is: its name without the prefix in *wanted, or NULL if it is not
 * wanted. A plain weight is not wanted where its average is. */
static int find_wanted_name(const struct ls_archive *archive, const char *name, bool averaged,
                            const char **wanted, struct ls_error *error)
{
    *wanted = name;
    if (!archive->ours)
        return 0;
    if (begins_with(name, LS_PREFIX_STATE)) {
        *wanted = NULL;
    } else if (begins_with(name, LS_PREFIX_AVERAGE)) {
        *wanted = averaged ? name + strlen(LS_PREFIX_AVERAGE) : NULL;
    } else if (averaged) {
        struct ls_text other = {0};
        ls_text_add(&other, LS_PREFIX_AVERAGE);
        ls_text_add(&other, name);
        int status = other.failed ? ls_fail_memory(error, archive->path) : 0;
        if (status == 0 && ls_archive_find(archive, other.data) != NULL)
            *wanted = NULL;
        ls_text_free(&other);
        return status;
    }
    return 0;
}

static bool has_averages(const struct ls_archive *archive)
{
    for (size_t i = 0; archive->ours && i < archive->tensor_count; i++) {
        if (begins_with(archive->tensors[i].name, LS_PREFIX_AVERAGE))
            return true;
    }
    return false;
}

static int copy_notes(const struct ls_archive *archive, struct ls_weights *weights,
                      struct ls_error *error)
{
    weights->notes = ls_alloc(archive->note_count, sizeof *weights->notes);
    if (weights->notes == NULL)
        return ls_fail_memory(error, weights->path);
    for (size_t i = 0; i < archive->note_count; i++) {
        struct ls_note *note = &weights->notes[weights->note_count++];
        note->key = ls_copy_string(archive->notes[i].key);
        note->value = ls_copy_string(archive->notes[i].value);
        if (note->key == NULL || note->value == NULL)
            return ls_fail_memory(error, weights->path);
    }
    return 0;
}

/* Files made elsewhere may list a million tensors; the search for each one's layer would take long,
 * and no net has as many. */
enum { TENSORS_MAX = 20000 };

int ls_weights_from_archive(const struct ls_archive *archive, enum ls_weights_set set,
                            struct ls_weights *weights, struct ls_error *error)
{
    bool averages = has_averages(archive);
    if (set == LS_WEIGHTS_AVERAGED && !averages)
        return ls_fail(error, LOCKSTEP_WEIGHTS, weights->path, NULL, "has no averaged weights");
    if (archive->tensor_count > TENSORS_MAX)
        return ls_fail(error, LOCKSTEP_WEIGHTS, weights->path, NULL,
                       "has %zu tensors; at most %d are read", archive->tensor_count, TENSORS_MAX);
    weights->averaged = averages && set != LS_WEIGHTS_PLAIN;
    LS_TRY(copy_notes(archive, weights, error));
    for (size_t i = 0; i < archive->tensor_count; i++) {
        const struct ls_tensor *tensor = &archive->tensors[i];
        const char *name;
        LS_TRY(find_wanted_name(archive, tensor->name, weights->averaged, &name, error));
        if (name != NULL)
            LS_TRY(add_tensor(weights, tensor, name, error));
    }
    if (weights->layer_count == 0)
        return ls_fail(error, LOCKSTEP_WEIGHTS, weights->path,
                       "weights are tensors named <layer>.weight, <layer>.bias or <layer>.<n>",
                       "has no tensor that is a layer's");
    return 0;
}
