/* Weights from files with the names of another program, and from indices of several files.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "snapshot/catalog.h"
#include "snapshot/weight_map.h"
#include "snapshot/weights_build.h"

/* Weights of a path whose files have been opened; *weights owns them from here on. */
static int begin(const char *path, struct ls_weights *weights, struct ls_error *error)
{
    weights->origin = ls_alloc(1, sizeof *weights->origin);
    if (weights->origin == NULL)
        return ls_fail_memory(error, path);
    return ls_weight_shards_read(path, &weights->origin->shards, error);
}

int ls_weights_from_index(const char *path, enum ls_weights_set set, struct ls_weights *weights,
                          struct ls_error *error)
{
    LS_TRY(begin(path, weights, error));
    const struct ls_weight_shards *shards = &weights->origin->shards;
    struct ls_archive *all = &weights->origin->renamed.archive;
    for (size_t i = 0; i < shards->tensor_count; i++) {
        const struct ls_tensor *tensor = &shards->tensors[i];
        LS_TRY(
            ls_archive_add(all, tensor->name, tensor->type, &tensor->shape, tensor->data, error));
    }
    return ls_weights_from_archive(all, set, weights, error);
}

/* Names that the map does not know become those that no layer has. */
static int take_left_out(struct ls_weights *weights, struct ls_error *error)
{
    struct ls_renamed *renamed = &weights->origin->renamed;
    for (size_t i = 0; i < renamed->left_out_count; i++) {
        if (!LS_GROW(weights->unused, weights->unused_count, weights->unused_capacity))
            return ls_fail_memory(error, weights->path);
        weights->unused[weights->unused_count++] = renamed->left_out[i];
        renamed->left_out[i] = NULL;
    }
    return 0;
}

static int read_with(const struct ls_weight_map *map, const char *path, enum ls_weights_set set,
                     struct ls_weights *weights, struct ls_error *error)
{
    LS_TRY(begin(path, weights, error));
    const struct ls_weight_shards *shards = &weights->origin->shards;
    struct ls_renamed *renamed = &weights->origin->renamed;
    if (ls_weights_are_ours(map, shards->tensors, shards->tensor_count))
        return ls_fail(error, LOCKSTEP_WEIGHTS, path, "leave the map out",
                       "has Lockstep's names, not those that map '%s' is for",
                       map->definition->file);
    LS_TRY(
        ls_weights_rename(map, false, shards->tensors, shards->tensor_count, path, renamed, error));
    for (size_t i = 0; i < shards->count; i++)
        LS_TRY(ls_file_lost(&shards->files[i].mapping, path, LOCKSTEP_WEIGHTS, error));
    LS_TRY(take_left_out(weights, error));
    return ls_weights_from_archive(&renamed->archive, set, weights, error);
}

int ls_weights_read_mapped(const char *path, enum ls_weights_set set, const char *map,
                           struct ls_weights *weights, struct ls_error *error)
{
    struct ls_weight_map rules;
    if (map == NULL)
        return ls_weights_read(path, set, weights, error);
    *weights = (struct ls_weights){0};
    LS_TRY(ls_weight_map_read(map, &rules, error));
    weights->path = ls_copy_string(path);
    int status = weights->path == NULL ? ls_fail_memory(error, path)
                                       : read_with(&rules, path, set, weights, error);
    ls_weight_map_free(&rules);
    if (status != 0)
        ls_weights_free(weights);
    return status;
}

/* ---- Which map a file would need ------------------------------------------------------------- */

static bool is_known(const struct ls_weight_map *map, const char *name)
{
    const char *prefix;
    return name != NULL && ls_weight_map_knows(map, name, &prefix);
}

/* How many names a map knows, of how many. */
static size_t count_names(const struct ls_weights *weights, const struct ls_weight_map *map,
                          size_t *all)
{
    size_t known = 0;
    *all = weights->unused_count;
    for (size_t i = 0; i < weights->unused_count; i++)
        known += is_known(map, weights->unused[i]);
    for (size_t l = 0; l < weights->layer_count; l++)
        for (int b = 0; b < weights->layers[l].blob_count; b++) {
            struct ls_text name = {0};
            if (!weights->layers[l].blobs[b].present)
                continue;
            ls_weights_name_blob(&weights->layers[l], &weights->layers[l].blobs[b], &name);
            known += is_known(map, name.data);
            ls_text_free(&name);
            ++*all;
        }
    return known;
}

/* A map that knows the weight of any layer, torchvision's, is only meant by files with averages of
 * a batch norm. */
static bool is_meant(const struct ls_weight_map *map, const struct ls_weights *weights)
{
    for (size_t i = 0; i < weights->unused_count; i++)
        if (strstr(weights->unused[i], ".running_mean") != NULL)
            return true;
    return !is_known(map, "any layer.weight");
}

const char *ls_weights_suggest_map(const struct ls_weights *weights)
{
    const char *best = NULL;
    size_t most = 0;
    if (weights->note_count > 0 && ls_weights_note(weights, LS_NOTE_ITERATION) != NULL)
        return NULL;
    for (const struct ls_builtin_map *own = ls_builtin_maps; own->name != NULL; own++) {
        struct ls_weight_map map;
        size_t all;
        if (ls_weight_map_read(own->name, &map, NULL) != 0)
            continue;
        const size_t known = count_names(weights, &map, &all);
        if (known > most && 2 * known >= all && is_meant(&map, weights)) {
            most = known;
            best = own->name;
        }
        ls_weight_map_free(&map);
    }
    return best;
}
