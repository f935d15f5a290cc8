/* What differs between weights of two files of any format. Layers are found by name, their blobs by
 * name or number; where the one file has names and the other numbers, by their order.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "inspect/diff_inner.h"
#include "snapshot/weights.h"

struct comparison {
    const struct ls_diff_report *report;
    struct ls_weights weights[2];
    size_t compared, differing;
};

static const struct ls_weight_layer *find_layer(const struct ls_weights *weights, const char *name)
{
    for (size_t i = 0; i < weights->layer_count; i++)
        if (weights->layers[i].blob_count > 0 && strcmp(weights->layers[i].name, name) == 0)
            return &weights->layers[i];
    return NULL;
}

static const struct ls_weight_blob *find_blob(const struct ls_weight_layer *layer,
                                              const struct ls_weight_layer *of, int index)
{
    const struct ls_weight_blob *wanted = &of->blobs[index];
    for (int b = 0; b < layer->blob_count; b++) {
        const struct ls_weight_blob *blob = &layer->blobs[b];
        if (!blob->present)
            continue;
        if (blob->name != NULL && wanted->name != NULL && strcmp(blob->name, wanted->name) == 0)
            return blob;
        if ((blob->name == NULL || wanted->name == NULL) && blob->number >= 0 &&
            blob->number == wanted->number)
            return blob;
    }
    /* Names of the one file that stand for no number: the order of both is that of the layer. */
    const struct ls_weight_blob *same = index < layer->blob_count ? &layer->blobs[index] : NULL;
    bool named = wanted->number < 0 || (same != NULL && same->number < 0);
    bool both = same != NULL && same->name != NULL && wanted->name != NULL;
    return named && !both && layer->blob_count == of->blob_count && same->present ? same : NULL;
}

/* Extents of old caffemodels may have ones in front. */
static struct ls_shape essence(const struct ls_weight_blob *blob)
{
    struct ls_shape shape = blob->shape;
    while (shape.rank > 0 && shape.dim[0] == 1) {
        shape.rank--;
        memmove(shape.dim, shape.dim + 1, (size_t)shape.rank * sizeof *shape.dim);
    }
    return shape;
}

static void name_blob(const struct ls_weight_layer *layer, int index, char *name, size_t size)
{
    const struct ls_weight_blob *blob = &layer->blobs[index];
    if (blob->name != NULL)
        snprintf(name, size, "%.200s.%.40s", layer->name, blob->name);
    else if (blob->number == 0 || blob->number == 1)
        snprintf(name, size, "%.200s.%s", layer->name, blob->number == 0 ? "weight" : "bias");
    else
        snprintf(name, size, "%.200s.%d", layer->name, index);
}

static void compare_blob(struct comparison *comparison, const struct ls_weight_layer *layer,
                         int index, const struct ls_weight_blob *other)
{
    const struct ls_weight_blob *blob = &layer->blobs[index];
    char name[256], shapes[2][128];
    name_blob(layer, index, name, sizeof name);
    comparison->compared++;
    if (other == NULL) {
        ls_diff_say(comparison->report, "tensor '%s': only in %s", name,
                    comparison->report->names[0]);
        comparison->differing++;
        return;
    }
    struct ls_shape a = essence(blob), b = essence(other);
    if (!ls_shape_equal(&a, &b)) {
        ls_diff_say(comparison->report, "tensor '%s': other shapes: %s and %s", name,
                    ls_shape_text(&blob->shape, shapes[0], sizeof shapes[0]),
                    ls_shape_text(&other->shape, shapes[1], sizeof shapes[1]));
        comparison->differing++;
        return;
    }
    size_t bytes = (size_t)ls_shape_size(&blob->shape) * ls_dtype_size(LS_F32);
    comparison->differing +=
        ls_diff_elements(comparison->report, name, LS_F32, blob->data, other->data, bytes);
}

/* The layers of the first file; those that only the second has, `missing`. */
static void compare_layers(struct comparison *comparison, const struct ls_weights *first,
                           const struct ls_weights *second, bool missing)
{
    for (size_t i = 0; i < first->layer_count; i++) {
        const struct ls_weight_layer *layer = &first->layers[i];
        const struct ls_weight_layer *other = find_layer(second, layer->name);
        if (layer->blob_count == 0 || (missing && other != NULL))
            continue;
        if (other == NULL) {
            ls_diff_say(comparison->report, "layer '%s': only in %s", layer->name,
                        comparison->report->names[missing]);
            comparison->differing++;
            continue;
        }
        for (int b = 0; b < layer->blob_count; b++)
            if (layer->blobs[b].present)
                compare_blob(comparison, layer, b, find_blob(other, layer, b));
        for (int b = 0; b < other->blob_count; b++) {
            char name[256];
            if (!other->blobs[b].present || find_blob(layer, other, b) != NULL)
                continue;
            name_blob(other, b, name, sizeof name);
            ls_diff_say(comparison->report, "tensor '%s': only in %s", name,
                        comparison->report->names[1]);
            comparison->differing++;
        }
    }
}

/* Of a snapshot with moving averages these are compared. */
static void say_averages(const struct comparison *comparison)
{
    for (int i = 0; i < 2; i++)
        if (comparison->weights[i].averaged)
            ls_diff_say(comparison->report, "%s: its averaged weights are compared",
                        comparison->report->names[i]);
}

int ls_diff_weights(const struct ls_diff_report *report, struct ls_error *error)
{
    struct comparison comparison = {.report = report};
    LS_TRY(ls_weights_read(report->names[0], LS_WEIGHTS_BEST, &comparison.weights[0], error));
    int status = ls_weights_read(report->names[1], LS_WEIGHTS_BEST, &comparison.weights[1], error);
    if (status == 0) {
        say_averages(&comparison);
        compare_layers(&comparison, &comparison.weights[0], &comparison.weights[1], false);
        compare_layers(&comparison, &comparison.weights[1], &comparison.weights[0], true);
        if (comparison.differing == 0)
            ls_diff_say(report, "The same weights: %zu tensors", comparison.compared);
        else
            status = ls_fail(error, LOCKSTEP_DIFFERENT, NULL, NULL, "%zu differences of weights",
                             comparison.differing);
    }
    ls_weights_free(&comparison.weights[0]);
    ls_weights_free(&comparison.weights[1]);
    return status;
}
