/* Pruning. See snapshot/prune.h.
 *
 * Magnitudes are compared as their bits, in whose order they are. The magnitude up to which weights
 * are masked is found by counting: by the upper 16 bits first, then by the lower ones of those that
 * are equal in these.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "snapshot/prune.h"

#include <fnmatch.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "snapshot/archive.h"
#include "snapshot/weights.h"

enum { HALF = 16, BINS = 1 << HALF };

struct pruned {
    char *name;
    struct ls_shape shape;
    const float *data;
    int64_t size;
    unsigned char *keep; /* the mask: 0 where a weight stays zero */
};

struct pruning {
    const struct ls_prune_request *request;
    struct ls_weights weights;
    struct pruned *items;
    size_t count, capacity;
    int64_t *bins; /* [BINS] */
    bool *used;    /* by pattern: a layer has such a name */
};

/* ---- What is pruned -------------------------------------------------------------------------- */

static bool prune_wants(struct pruning *pruning, const char *layer)
{
    const struct ls_prune_request *request = pruning->request;
    bool wanted = request->layer_count == 0;
    for (size_t i = 0; i < request->layer_count; i++)
        if (fnmatch(request->layers[i], layer, 0) == 0)
            wanted = pruning->used[i] = true;
    return wanted;
}

/* Weights: not a bias or a statistic, which have one axis. Extents of old caffemodels may have ones
 * in front; they go. */
static bool prune_is_weight(const struct ls_weight_blob *blob, struct ls_shape *shape)
{
    *shape = blob->shape;
    while (blob->legacy && shape->rank > 1 && shape->dim[0] == 1) {
        shape->rank--;
        memmove(shape->dim, shape->dim + 1, (size_t)shape->rank * sizeof *shape->dim);
    }
    bool named = blob->name != NULL ? strstr(blob->name, "bias") == NULL : blob->number == 0;
    return blob->present && named && shape->rank >= 2;
}

static int prune_add(struct pruning *pruning, const char *layer, const struct ls_weight_blob *blob,
                     struct ls_error *error)
{
    struct ls_shape shape;
    struct ls_text name = {0};
    if (!prune_is_weight(blob, &shape))
        return 0;
    ls_text_format(&name, "%s.%s", layer, blob->name != NULL ? blob->name : "weight");
    if (name.failed || !LS_GROW(pruning->items, pruning->count, pruning->capacity)) {
        ls_text_free(&name);
        return ls_fail_memory(error, "masks");
    }
    struct pruned *item = &pruning->items[pruning->count++];
    *item = (struct pruned){
        .name = name.data, .shape = shape, .data = blob->data, .size = ls_shape_size(&shape)};
    item->keep = ls_alloc((size_t)item->size + 1, 1);
    if (item->keep == NULL)
        return ls_fail_memory(error, "masks");
    memset(item->keep, 1, (size_t)item->size);
    return 0;
}

static int prune_choose(struct pruning *pruning, struct ls_error *error)
{
    const struct ls_prune_request *request = pruning->request;
    const struct ls_weights *weights = &pruning->weights;
    for (size_t i = 0; i < weights->layer_count; i++) {
        const struct ls_weight_layer *layer = &weights->layers[i];
        bool wanted = prune_wants(pruning, layer->name);
        for (int b = 0; b < layer->blob_count && wanted; b++)
            LS_TRY(prune_add(pruning, layer->name, &layer->blobs[b], error));
    }
    int status = 0;
    for (size_t i = 0; i < request->layer_count; i++)
        if (!pruning->used[i])
            status = ls_fail(error, LOCKSTEP_USAGE, weights->path, "* stands for any characters",
                             "no layer has a name like '%s'", request->layers[i]);
    if (status == 0 && pruning->count == 0)
        status = ls_fail(error, LOCKSTEP_WEIGHTS, weights->path, NULL,
                         "has no weights with two axes in these layers, which could be pruned");
    return status;
}

/* ---- The magnitude up to which weights are masked -------------------------------------------- */

static uint32_t prune_magnitude(float weight)
{
    uint32_t bits;
    memcpy(&bits, &weight, sizeof bits);
    return bits & 0x7fffffff;
}

/* Counts weights by 16 bits of their magnitudes: all by the upper ones (`upper` < 0), or by the
 * lower ones those whose upper ones are `upper`. */
static void prune_count(const struct pruning *pruning, size_t first, size_t last, int64_t upper)
{
    memset(pruning->bins, 0, BINS * sizeof *pruning->bins);
    for (size_t p = first; p < last; p++)
        for (int64_t i = 0; i < pruning->items[p].size; i++) {
            uint32_t magnitude = prune_magnitude(pruning->items[p].data[i]);
            if (upper < 0)
                pruning->bins[magnitude >> HALF]++;
            else if (magnitude >> HALF == (uint32_t)upper)
                pruning->bins[magnitude & (BINS - 1)]++;
        }
}

/* The bin in which weight number `*rank` (from 0, by size) is; *rank: its number there. */
static uint32_t prune_find_bin(const struct pruning *pruning, int64_t *rank)
{
    uint32_t bin = 0;
    while (*rank >= pruning->bins[bin])
        *rank -= pruning->bins[bin++];
    return bin;
}

/* Masks so many of the smallest weights of items [first, last). */
static void prune_items(struct pruning *pruning, size_t first, size_t last, int64_t masked)
{
    if (masked == 0)
        return;
    int64_t rank = masked - 1; /* the largest that is masked */
    prune_count(pruning, first, last, -1);
    uint32_t upper = prune_find_bin(pruning, &rank);
    prune_count(pruning, first, last, upper);
    uint32_t largest = upper << HALF | prune_find_bin(pruning, &rank);
    int64_t equal = rank + 1; /* so many of its magnitude */
    for (size_t p = first; p < last; p++)
        for (int64_t i = 0; i < pruning->items[p].size; i++) {
            uint32_t magnitude = prune_magnitude(pruning->items[p].data[i]);
            if (magnitude < largest || (magnitude == largest && equal-- > 0))
                pruning->items[p].keep[i] = 0;
        }
}

static int64_t prune_part(double sparsity, int64_t size)
{
    int64_t part = (int64_t)floor(sparsity * (double)size + 0.5);
    return part < size ? part : size;
}

static void prune_all(struct pruning *pruning)
{
    double sparsity = pruning->request->sparsity;
    int64_t size = 0;
    for (size_t p = 0; p < pruning->count; p++) {
        size += pruning->items[p].size;
        if (!pruning->request->global)
            prune_items(pruning, p, p + 1, prune_part(sparsity, pruning->items[p].size));
    }
    if (pruning->request->global)
        prune_items(pruning, 0, pruning->count, prune_part(sparsity, size));
}

/* ---- The file of masks ----------------------------------------------------------------------- */

static int prune_write(const struct pruning *pruning, const char *output, int64_t *weights,
                       int64_t *masked, struct ls_error *error)
{
    const struct ls_prune_request *request = pruning->request;
    struct ls_archive archive = {0};
    int status = 0;
    *weights = *masked = 0;
    for (size_t p = 0; p < pruning->count && status == 0; p++) {
        const struct pruned *item = &pruning->items[p];
        int64_t zeros = 0;
        for (int64_t i = 0; i < item->size; i++)
            zeros += item->keep[i] == 0;
        *weights += item->size;
        *masked += zeros;
        status = ls_archive_add(&archive, item->name, LS_U8, &item->shape, item->keep, error);
        if (status == 0 && request->tell != NULL)
            request->tell(request->user, item->name, item->size, zeros);
    }
    if (status == 0)
        status = ls_archive_write(&archive, output, error);
    ls_archive_free(&archive);
    return status;
}

static void prune_free(struct pruning *pruning)
{
    for (size_t p = 0; p < pruning->count; p++) {
        ls_free(pruning->items[p].name);
        ls_free(pruning->items[p].keep);
    }
    ls_free(pruning->items);
    ls_free(pruning->bins);
    ls_free(pruning->used);
    ls_weights_free(&pruning->weights);
}

int ls_prune(const char *path, const char *output, const struct ls_prune_request *request,
             int64_t *weights, int64_t *masked, struct ls_error *error)
{
    struct pruning pruning = {.request = request};
    if (!(request->sparsity >= 0 && request->sparsity <= 1))
        return ls_fail(error, LOCKSTEP_USAGE, NULL, "0.8 masks 80 of 100 weights",
                       "a sparsity of %g is not possible", request->sparsity);
    pruning.bins = ls_alloc(BINS, sizeof *pruning.bins);
    pruning.used = ls_alloc(request->layer_count + 1, sizeof *pruning.used);
    int status = pruning.bins == NULL || pruning.used == NULL
                     ? ls_fail_memory(error, "masks")
                     : ls_weights_read(path, LS_WEIGHTS_BEST, &pruning.weights, error);
    if (status == 0)
        status = prune_choose(&pruning, error);
    if (status == 0) {
        prune_all(&pruning);
        status = prune_write(&pruning, output, weights, masked, error);
    }
    prune_free(&pruning);
    return status;
}
