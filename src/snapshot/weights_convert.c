/* Weights from one format to another. See snapshot/weights_convert.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "snapshot/weights_convert.h"

#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "snapshot/archive.h"
#include "snapshot/caffemodel.h"
#include "snapshot/caffemodel_hdf5.h"
#include "snapshot/weight_rename.h"
#include "snapshot/weight_shards.h"
#include "snapshot/weights.h"

static const char model_hint[] = "give the net's definition with --model";

static bool ends_with(const char *text, const char *ending)
{
    size_t length = strlen(text), wanted = strlen(ending);
    return length >= wanted && strcmp(text + length - wanted, ending) == 0;
}

enum ls_weights_format ls_weights_format(const char *path)
{
    return ends_with(path, ".caffemodel")    ? LS_WEIGHTS_CAFFEMODEL
           : ls_caffemodel_is_hdf5(path)     ? LS_WEIGHTS_HDF5
           : ends_with(path, ".safetensors") ? LS_WEIGHTS_SAFETENSORS
                                             : LS_WEIGHTS_UNKNOWN;
}

/* ---- Which blob a tensor is ------------------------------------------------------------------ */

/* The blobs of Caffe's layers, in order, by the names that tensors have. The first row in which
 * all names of a layer are, its sign among them, is the layer's. */
enum { ROW = 5 };
static const struct row {
    const char *name[ROW], *sign;
} rows[] = {
    {{"weight", "bias"}, "weight"},                              /* Convolution, InnerProduct ... */
    {{"mean", "variance", "factor", "scale", "bias"}, "factor"}, /* BatchNorm */
    {{"scale", "bias", "mean", "variance"}, "scale"},            /* BN, Scale, norms of samples */
    {{"slope"}, "slope"},                                        /* PReLU */
};

static int place_in(const struct row *row, const char *name)
{
    for (int i = 0; i < ROW && row->name[i] != NULL; i++)
        if (strcmp(row->name[i], name) == 0)
            return i;
    return -1;
}

static bool is_row_of(const struct row *row, const struct ls_weight_layer *layer)
{
    bool sign = false;
    for (int i = 0; i < layer->blob_count; i++) {
        const char *name = layer->blobs[i].name;
        if (name == NULL || place_in(row, name) < 0)
            return false;
        sign = sign || strcmp(name, row->sign) == 0;
    }
    return sign;
}

/* The number of each blob of a layer; -1: only a definition could tell. */
static void number_blobs(const struct ls_weight_layer *layer, int numbers[LS_BLOBS_MAX])
{
    const struct row *row = NULL;
    for (size_t r = 0; r < sizeof rows / sizeof rows[0] && row == NULL; r++)
        if (is_row_of(&rows[r], layer))
            row = &rows[r];
    for (int i = 0; i < layer->blob_count; i++) {
        const struct ls_weight_blob *blob = &layer->blobs[i];
        numbers[i] = blob->name == NULL ? blob->number
                     : row != NULL      ? place_in(row, blob->name)
                                        : -1;
    }
}

/* ---- To Caffe's formats ---------------------------------------------------------------------- */

struct draft {
    const struct ls_weights *weights;
    struct ls_caffemodel_layer *layers;
    struct ls_caffemodel_blob *blobs; /* of all layers */
    struct ls_error *error;
};

static int check_legacy(const struct draft *draft, const struct ls_weight_layer *layer, int index)
{
    if (!layer->blobs[index].legacy)
        return 0;
    return ls_fail(draft->error, LOCKSTEP_WEIGHTS, draft->weights->path, model_hint,
                   "blob %d of layer '%s' has four extents, whatever number of axes it has, as in "
                   "all files of Caffe's first years",
                   index, layer->name);
}

/* Puts the blobs of a layer in order; `blobs` has room for them. */
static int order_blobs(const struct draft *draft, const struct ls_weight_layer *layer,
                       struct ls_caffemodel_blob *blobs, size_t *count)
{
    const char *path = draft->weights->path;
    int numbers[LS_BLOBS_MAX];
    size_t present = 0;
    number_blobs(layer, numbers);
    *count = 0;
    for (int i = 0; i < layer->blob_count; i++) {
        const struct ls_weight_blob *blob = &layer->blobs[i];
        if (!blob->present)
            continue;
        present++;
        if (numbers[i] < 0)
            return ls_fail(draft->error, LOCKSTEP_WEIGHTS, path, model_hint,
                           "'%s' of layer '%s' does not say which of its blobs it is", blob->name,
                           layer->name);
        LS_TRY(check_legacy(draft, layer, i));
        if (numbers[i] < layer->blob_count)
            blobs[numbers[i]] =
                (struct ls_caffemodel_blob){.shape = blob->shape, .data = blob->data};
    }
    while (*count < present && blobs[*count].data != NULL)
        ++*count;
    if (*count == present)
        return 0;
    return ls_fail(
        draft->error, LOCKSTEP_WEIGHTS, path, model_hint,
        "blob %zu of layer '%s' is not there, but others behind it are: layers may share "
        "it",
        *count, layer->name);
}

static int write_draft(struct draft *draft, const char *to, enum ls_weights_format format)
{
    const struct ls_weights *weights = draft->weights;
    struct ls_caffemodel_blob *blobs = draft->blobs;
    int status = 0;
    for (size_t i = 0; i < weights->layer_count; i++) {
        size_t count;
        int failed = order_blobs(draft, &weights->layers[i], blobs, &count);
        status = status != 0 ? status : failed; /* all problems are told */
        draft->layers[i] = (struct ls_caffemodel_layer){
            .name = weights->layers[i].name, .type = "", .blobs = blobs, .blob_count = count};
        blobs += weights->layers[i].blob_count;
    }
    LS_TRY(status);
    return format == LS_WEIGHTS_HDF5
               ? ls_caffemodel_write_hdf5(to, draft->layers, weights->layer_count, false,
                                          draft->error)
               : ls_caffemodel_write(to, "", draft->layers, weights->layer_count, draft->error);
}

static int write_caffe(const struct ls_weights *weights, const char *to,
                       enum ls_weights_format format, struct ls_error *error)
{
    size_t blobs = 0;
    for (size_t i = 0; i < weights->layer_count; i++)
        blobs += (size_t)weights->layers[i].blob_count;
    struct draft draft = {.weights = weights, .error = error};
    draft.layers = ls_alloc(weights->layer_count + 1, sizeof *draft.layers);
    draft.blobs = ls_alloc(blobs + 1, sizeof *draft.blobs);
    int status = draft.layers == NULL || draft.blobs == NULL ? ls_fail_memory(error, "weights")
                                                             : write_draft(&draft, to, format);
    ls_free(draft.layers);
    ls_free(draft.blobs);
    return status;
}

/* ---- To safetensors -------------------------------------------------------------------------- */

static int add_tensor(const struct ls_weights *weights, const struct ls_weight_layer *layer,
                      int index, struct ls_archive *archive, struct ls_error *error)
{
    const struct ls_weight_blob *blob = &layer->blobs[index];
    struct ls_text name = {0};
    if (blob->name != NULL)
        ls_text_format(&name, "%s.%s", layer->name, blob->name);
    else
        ls_text_format(&name, "%s.%d", layer->name, blob->number);
    int status = 0;
    if (name.failed)
        status = ls_fail_memory(error, "weights");
    else if (ls_weights_name_reserved(layer->name))
        status = ls_fail(error, LOCKSTEP_WEIGHTS, weights->path, "rename the layer",
                         "layer '%s' has a name that snapshots keep for themselves", layer->name);
    else
        status = ls_archive_add(archive, name.data, LS_F32, &blob->shape, blob->data, error);
    ls_text_free(&name);
    return status;
}

static int write_safetensors(const struct ls_weights *weights, const char *to,
                             struct ls_error *error)
{
    struct ls_archive archive = {0};
    struct draft draft = {.weights = weights, .error = error};
    int status = 0;
    for (size_t i = 0; i < weights->layer_count && status == 0; i++) {
        const struct ls_weight_layer *layer = &weights->layers[i];
        for (int b = 0; b < layer->blob_count && status == 0; b++) {
            if (!layer->blobs[b].present)
                continue;
            status = check_legacy(&draft, layer, b);
            if (status == 0)
                status = add_tensor(weights, layer, b, &archive, error);
        }
    }
    if (status == 0)
        status = ls_archive_write(&archive, to, error);
    ls_archive_free(&archive);
    return status;
}

/* ---- All of it ------------------------------------------------------------------------------- */

static void tell_left_out(const char *path, const char *why, char *const *names, size_t count,
                          void (*tell)(void *user, const char *line), void *user)
{
    struct ls_text line = {0};
    if (tell == NULL || count == 0)
        return;
    ls_text_format(&line, "%s: left out, because %s:", path, why);
    for (size_t i = 0; i < count && i < 20; i++)
        ls_text_format(&line, "%s '%s'", i > 0 ? "," : "", names[i]);
    if (count > 20)
        ls_text_format(&line, " and %zu more", count - 20);
    if (!line.failed)
        tell(user, line.data);
    ls_text_free(&line);
}

static int check_name(enum ls_weights_format format, const char *to, struct ls_error *error)
{
    if (format != LS_WEIGHTS_UNKNOWN)
        return 0;
    return ls_fail(error, LOCKSTEP_USAGE, to, "let it end in .caffemodel, .h5 or .safetensors",
                   "is a name that does not say which format is wanted");
}

int ls_weights_convert(const char *from, const char *to, const char *map,
                       void (*tell)(void *user, const char *line), void *user,
                       struct ls_error *error)
{
    enum ls_weights_format format = ls_weights_format(to);
    struct ls_weights weights = {0};
    LS_TRY(check_name(format, to, error));
    LS_TRY(ls_weights_read_mapped(from, LS_WEIGHTS_BEST, map, &weights, error));
    tell_left_out(from, map != NULL ? "the map does not know them" : "they are no layer's",
                  weights.unused, weights.unused_count, tell, user);
    int status = format == LS_WEIGHTS_SAFETENSORS ? write_safetensors(&weights, to, error)
                                                  : write_caffe(&weights, to, format, error);
    ls_weights_free(&weights);
    return status;
}

/* ---- To the names of a family ---------------------------------------------------------------- */

/* The blobs of weights as tensors with our names, "layer.blob". */
static int add_all(const struct ls_weights *weights, struct ls_archive *archive,
                   struct ls_error *error)
{
    for (size_t i = 0; i < weights->layer_count; i++)
        for (int b = 0; b < weights->layers[i].blob_count; b++)
            if (weights->layers[i].blobs[b].present)
                LS_TRY(add_tensor(weights, &weights->layers[i], b, archive, error));
    return 0;
}

/* What readers in Python ask for: the program whose order of axes the tensors have. */
static int write_renamed(struct ls_renamed *renamed, const char *to, struct ls_error *error)
{
    LS_TRY(ls_archive_add_note(&renamed->archive, "format", "pt", error));
    return ls_archive_write(&renamed->archive, to, error);
}

static int convert_back(const struct ls_weight_map *map, const char *from, const char *to,
                        void (*tell)(void *user, const char *line), void *user,
                        struct ls_error *error)
{
    struct ls_weights weights = {0};
    struct ls_archive ours = {0};
    struct ls_renamed renamed = {0};
    if (ls_weights_format(to) != LS_WEIGHTS_SAFETENSORS)
        return ls_fail(error, LOCKSTEP_USAGE, to, "let it end in .safetensors",
                       "names of other programs are written as safetensors only");
    LS_TRY(ls_weights_read(from, LS_WEIGHTS_BEST, &weights, error));
    int status = add_all(&weights, &ours, error);
    if (status == 0)
        status =
            ls_weights_rename(map, true, ours.tensors, ours.tensor_count, from, &renamed, error);
    if (status == 0)
        status = write_renamed(&renamed, to, error);
    if (status == 0)
        tell_left_out(from, "the map does not know them", renamed.left_out, renamed.left_out_count,
                      tell, user);
    ls_renamed_free(&renamed);
    ls_archive_free(&ours);
    ls_weights_free(&weights);
    return status;
}

/* Whether a file has our names. What is no safetensors file is ours: a caffemodel. */
static int has_our_names(const struct ls_weight_map *map, const char *from, bool *ours,
                         struct ls_error *error)
{
    struct ls_weight_shards shards;
    *ours = true;
    if (ls_weights_format(from) == LS_WEIGHTS_CAFFEMODEL ||
        ls_weights_format(from) == LS_WEIGHTS_HDF5)
        return 0;
    LS_TRY(ls_weight_shards_read(from, &shards, error));
    *ours = ls_weights_are_ours(map, shards.tensors, shards.tensor_count);
    ls_weight_shards_free(&shards);
    return 0;
}

int ls_weights_convert_names(const char *from, const char *to, const char *map,
                             void (*tell)(void *user, const char *line), void *user,
                             struct ls_error *error)
{
    struct ls_weight_map rules;
    bool ours = false;
    LS_TRY(check_name(ls_weights_format(to), to, error));
    LS_TRY(ls_weight_map_read(map, &rules, error));
    int status = has_our_names(&rules, from, &ours, error);
    if (status == 0)
        status = ours ? convert_back(&rules, from, to, tell, user, error)
                      : ls_weights_convert(from, to, map, tell, user, error);
    ls_weight_map_free(&rules);
    return status;
}
