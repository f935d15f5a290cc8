/* Giving weights to a net by the names of its layers.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "ir/layout.h"
#include "snapshot/weights.h"

enum { RENAME_HINT = 400 };

void ls_weights_report_free(struct ls_weights_report *report)
{
    ls_free(report->ignored);
    ls_free(report->kept);
    *report = (struct ls_weights_report){0};
}

/* The targets of one layer, which follow each other. */
struct target_layer {
    const struct ls_weight_target *first;
    size_t count;
};

static struct target_layer layer_at(const struct ls_weight_target *targets, size_t count)
{
    size_t same = 1;
    while (same < count && strcmp(targets[same].layer, targets[0].layer) == 0)
        same++;
    return (struct target_layer){targets, same};
}

/* Whether the 1xCx1x1 numbers of channels of one fork's layers are the 1xC of another's. */
static bool fits_channels(const struct ls_shape *shape, const struct ls_shape *target)
{
    return target->rank == 4 && target->dim[0] == 1 && target->dim[2] == 1 && target->dim[3] == 1 &&
           shape->rank == 2 && shape->dim[0] == 1 && shape->dim[1] == target->dim[1];
}

/* Whether a legacy 1x1xNxK is the shape N, K: the axes are counted from the end. */
static bool fits(const struct ls_weight_blob *blob, const struct ls_shape *target)
{
    if (!blob->legacy)
        return ls_shape_equal(&blob->shape, target) || fits_channels(&blob->shape, target);
    if (target->rank > 4)
        return false;
    for (int axis = 0; axis < 4; axis++) {
        int own = axis - (4 - target->rank);
        if (blob->shape.dim[axis] != (own >= 0 ? target->dim[own] : 1))
            return false;
    }
    return true;
}

/* What to do about a layer that the file has otherwise than the net. */
static void rename_hint(const char *layer, char hint[RENAME_HINT])
{
    snprintf(hint, RENAME_HINT,
             "does the file belong to this net? to train '%.100s' from scratch instead, rename it "
             "in the net ('%.100s_new')",
             layer, layer);
}

static bool has_blob_named(struct target_layer wanted, const char *name)
{
    for (size_t i = 0; i < wanted.count; i++)
        if (wanted.first[i].name != NULL && strcmp(wanted.first[i].name, name) == 0)
            return true;
    return false;
}

/* Whether a blob of the file is the one that a target of the layer asks for. */
static bool is_for(const struct ls_weight_blob *blob, const struct ls_weight_target *target,
                   struct target_layer wanted)
{
    if (!blob->present)
        return false;
    if (blob->name == NULL)
        return blob->number == target->blob;
    if (target->name != NULL && strcmp(blob->name, target->name) == 0)
        return true;
    return blob->number == target->blob && !target->average && !has_blob_named(wanted, blob->name);
}

/* The blob that belongs to a target, or NULL. */
static const struct ls_weight_blob *blob_for(const struct ls_weight_layer *layer,
                                             const struct ls_weight_target *target,
                                             struct target_layer wanted)
{
    for (int i = 0; i < layer->blob_count; i++)
        if (is_for(&layer->blobs[i], target, wanted))
            return &layer->blobs[i];
    return NULL;
}

/* Variances that Caffe summed up as E[x^2] - E[x]^2 may be a little below zero. */
static const float variance_slack = 1e-3F;

static bool is_average(const struct ls_weight_target *target, const char *name)
{
    return target->average && target->name != NULL && strcmp(target->name, name) == 0;
}

/* The smallest number that a blob may hold. */
static float lowest(const struct ls_weight_target *target, const float *data, int64_t count)
{
    float largest = 0;
    if (is_average(target, "factor"))
        return 0;
    if (!is_average(target, "variance"))
        return -INFINITY;
    for (int64_t i = 0; i < count; i++)
        largest = data[i] > largest ? data[i] : largest;
    return -variance_slack * largest;
}

/* Numbers that no training leaves: whatever were computed from them would say nothing. */
static int check_numbers(const struct ls_weights *weights, const struct ls_weight_layer *layer,
                         const struct ls_weight_target *target, const struct ls_weight_blob *blob,
                         struct ls_error *error)
{
    int64_t count = ls_shape_size(&target->shape);
    float least = lowest(target, blob->data, count);
    for (int64_t i = 0; i < count; i++) {
        float number = blob->data[i];
        if (isfinite(number) && number >= least)
            continue;
        return ls_fail(error, LOCKSTEP_WEIGHTS, weights->path,
                       "the file is damaged, or its training had diverged",
                       "blob %d%s%s%s of layer '%s': element %lld is %g, which %s", target->blob,
                       target->name != NULL ? " (" : "", target->name != NULL ? target->name : "",
                       target->name != NULL ? ")" : "", layer->name, (long long)i, (double)number,
                       isfinite(number) ? "must not be below zero" : "is no finite number");
    }
    return 0;
}

/* What was read of a blob that lies in the file is not kept in memory. */
static void forget(const struct ls_weights *weights, const struct ls_weight_blob *blob)
{
    const unsigned char *at = (const unsigned char *)blob->data, *begin = weights->file.data;
    if (blob->copy == NULL && begin != NULL && at >= begin && at < begin + weights->file.size)
        ls_file_forget(&weights->file, blob->data,
                       ls_layout_bytes(&ls_layout_plain, &blob->shape, LS_F32));
}

static int check_layer(const struct ls_weights *weights, const struct ls_weight_layer *layer,
                       struct target_layer wanted, struct ls_error *error)
{
    char hint[RENAME_HINT];
    rename_hint(layer->name, hint);
    bool lacks = layer->blob_count > wanted.first->blob_count;
    for (size_t i = 0; i < wanted.count; i++)
        lacks =
            lacks || (blob_for(layer, &wanted.first[i], wanted) == NULL && !wanted.first[i].shared);
    if (lacks) {
        int present = 0;
        for (int i = 0; i < layer->blob_count; i++)
            present += layer->blobs[i].present;
        return ls_fail(error, LOCKSTEP_WEIGHTS, weights->path, hint,
                       "layer '%s' has %d blobs of weights in the file and %d in the net",
                       layer->name, present, wanted.first->blob_count);
    }
    int status = 0;
    for (size_t i = 0; i < wanted.count; i++) {
        const struct ls_weight_target *target = &wanted.first[i];
        const struct ls_weight_blob *blob = blob_for(layer, target, wanted);
        char in_file[160], in_net[160];
        if (blob == NULL)
            continue;
        if (fits(blob, &target->shape)) {
            int failed = check_numbers(weights, layer, target, blob, error);
            status = failed != 0 ? failed : status;
            forget(weights, blob);
            continue;
        }
        status =
            ls_fail(error, LOCKSTEP_WEIGHTS, weights->path, hint,
                    "blob %d of layer '%s' has shape %s in the file and %s in the net",
                    target->blob, layer->name, ls_shape_text(&blob->shape, in_file, sizeof in_file),
                    ls_shape_text(&target->shape, in_net, sizeof in_net));
    }
    return status;
}

static int store_layer(const struct ls_weights *weights, const struct ls_weight_layer *layer,
                       struct target_layer wanted, struct ls_weights_report *report,
                       struct ls_error *error)
{
    for (size_t i = 0; i < wanted.count; i++) {
        const struct ls_weight_target *target = &wanted.first[i];
        const struct ls_weight_blob *blob = blob_for(layer, target, wanted);
        if (blob == NULL)
            continue;
        LS_TRY(target->store(target->user, target, blob->data, error));
        forget(weights, blob);
        report->stored++;
    }
    return 0;
}

static int note_kept(struct ls_weights_report *report, const char *name, struct ls_error *error)
{
    if (!LS_GROW(report->kept, report->kept_count, report->kept_capacity))
        return ls_fail_memory(error, name);
    report->kept[report->kept_count++] = name;
    return 0;
}

static int note_ignored(const struct ls_weights *weights, const bool *used,
                        struct ls_weights_report *report, struct ls_error *error)
{
    for (size_t i = 0; i < weights->layer_count; i++) {
        if (used[i] || weights->layers[i].blob_count == 0)
            continue;
        if (!LS_GROW(report->ignored, report->ignored_count, report->ignored_capacity))
            return ls_fail_memory(error, weights->path);
        report->ignored[report->ignored_count++] = weights->layers[i].name;
    }
    return 0;
}

/* Checks every layer that both sides have; all problems are collected. */
static int check_all(const struct ls_weights *weights, const struct ls_weight_target *targets,
                     size_t count, bool *used, struct ls_weights_report *report,
                     struct ls_error *error)
{
    int result = 0;
    for (size_t t = 0; t < count;) {
        struct target_layer wanted = layer_at(targets + t, count - t);
        bool found = false;
        for (size_t i = 0; i < weights->layer_count; i++) {
            if (strcmp(weights->layers[i].name, wanted.first->layer) != 0)
                continue;
            used[i] = found = true;
            int status = check_layer(weights, &weights->layers[i], wanted, error);
            result = result != 0 ? result : status;
        }
        if (!found)
            LS_TRY(note_kept(report, wanted.first->layer, error));
        t += wanted.count;
    }
    return result;
}

static int store_all(const struct ls_weights *weights, const struct ls_weight_target *targets,
                     size_t count, struct ls_weights_report *report, struct ls_error *error)
{
    for (size_t t = 0; t < count;) {
        struct target_layer wanted = layer_at(targets + t, count - t);
        for (size_t i = 0; i < weights->layer_count; i++) {
            if (strcmp(weights->layers[i].name, wanted.first->layer) == 0)
                LS_TRY(store_layer(weights, &weights->layers[i], wanted, report, error));
        }
        t += wanted.count;
    }
    return 0;
}

int ls_weights_apply(const struct ls_weights *weights, const struct ls_weight_target *targets,
                     size_t count, struct ls_weights_report *report, struct ls_error *error)
{
    bool *used = ls_alloc(weights->layer_count, sizeof *used);
    if (used == NULL)
        return ls_fail_memory(error, weights->path);
    int status = check_all(weights, targets, count, used, report, error);
    if (status == 0)
        status = note_ignored(weights, used, report, error);
    if (status == 0)
        status = store_all(weights, targets, count, report, error);
    ls_free(used);
    return status;
}
