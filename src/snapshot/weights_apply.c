/* Giving weights to a net by the names of its layers: which blob is for which target, whether all
 * fit, and only then the numbers.
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
    ls_free(report->fates);
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

/* Of a legacy 1x1xNxK, which is the shape N, K, the axes are counted from the end. */
bool ls_weights_fit(const struct ls_weight_blob *blob, const struct ls_shape *target)
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

/* ---- Which blob is for which target ---------------------------------------------------------- */

struct matching {
    const struct ls_weights *weights;
    const struct ls_weight_target *targets;
    size_t count;
    const struct ls_weight_blob **source; /* by target; NULL: the file has none */
    struct ls_weights_report *report;
    struct ls_error *error;
};

/* The layer of that name; one without blobs, of which files may have several, is the last choice.
 */
static const struct ls_weight_layer *find_layer(const struct ls_weights *weights, const char *name)
{
    const struct ls_weight_layer *found = NULL;
    for (size_t i = 0; i < weights->layer_count; i++) {
        if (strcmp(weights->layers[i].name, name) != 0)
            continue;
        found = &weights->layers[i];
        if (found->blob_count > 0)
            break;
    }
    return found;
}

/* Lists all blobs that are there, as those that nothing takes. */
static int list_fates(struct matching *matching)
{
    const struct ls_weights *weights = matching->weights;
    struct ls_weights_report *report = matching->report;
    size_t count = 0;
    ls_weights_report_free(report);
    for (size_t i = 0; i < weights->layer_count; i++)
        count += (size_t)weights->layers[i].blob_count;
    report->fates = ls_alloc(count + 1, sizeof *report->fates);
    if (report->fates == NULL)
        return ls_fail_memory(matching->error, weights->path);
    for (size_t i = 0; i < weights->layer_count; i++)
        for (int b = 0; b < weights->layers[i].blob_count; b++)
            if (weights->layers[i].blobs[b].present)
                report->fates[report->count++] = (struct ls_weight_fate){
                    .layer = &weights->layers[i], .blob = &weights->layers[i].blobs[b]};
    return 0;
}

/* Fails where two blobs of the layer are for one target. */
static int match_target(struct matching *matching, const struct ls_weight_layer *layer,
                        const struct ls_weight_target *target, struct target_layer wanted)
{
    const struct ls_weight_blob **source = &matching->source[target - matching->targets];
    for (int i = 0; i < layer->blob_count; i++) {
        const struct ls_weight_blob *blob = &layer->blobs[i];
        if (!is_for(blob, target, wanted))
            continue;
        if (*source != NULL)
            return ls_fail(matching->error, LOCKSTEP_WEIGHTS, matching->weights->path, NULL,
                           "layer '%s' has two tensors for its blob %d (%s)", layer->name,
                           target->blob, target->name != NULL ? target->name : "no name");
        *source = blob;
    }
    return 0;
}

static void note_fates(struct matching *matching)
{
    for (size_t i = 0; i < matching->report->count; i++) {
        struct ls_weight_fate *fate = &matching->report->fates[i];
        for (size_t t = 0; t < matching->count && fate->target == NULL; t++)
            if (matching->source[t] == fate->blob)
                fate->target = &matching->targets[t];
        matching->report->taken += fate->target != NULL;
    }
}

/* The target whose blob a parameter gets: that of its owner, if the file has it. `count`: the file
 * has none. */
static size_t giver_of(const struct matching *matching, int parameter)
{
    size_t giver = matching->count;
    for (size_t i = 0; i < matching->count; i++) {
        const struct ls_weight_target *target = &matching->targets[i];
        if (target->parameter != parameter || matching->source[i] == NULL)
            continue;
        if (giver == matching->count || !target->shared)
            giver = i;
        if (!target->shared)
            break;
    }
    return giver;
}

/* ---- What is wrong with it ------------------------------------------------------------------- */

/* Whether numbers of blobs are those of the net. A parameter that the file has under another name
 * is not missing here. */
static bool has_all(const struct matching *matching, const struct ls_weight_layer *layer,
                    struct target_layer wanted)
{
    if (layer->blob_count > wanted.first->blob_count)
        return false;
    for (size_t i = 0; i < wanted.count; i++) {
        const struct ls_weight_target *target = &wanted.first[i];
        if (matching->source[target - matching->targets] == NULL && !target->shared &&
            giver_of(matching, target->parameter) == matching->count)
            return false;
    }
    return true;
}

static int check_layer(struct matching *matching, const struct ls_weight_layer *layer,
                       struct target_layer wanted)
{
    char hint[RENAME_HINT];
    const struct ls_weights *weights = matching->weights;
    rename_hint(layer->name, hint);
    if (!has_all(matching, layer, wanted)) {
        int present = 0;
        for (int i = 0; i < layer->blob_count; i++)
            present += layer->blobs[i].present;
        return ls_fail(matching->error, LOCKSTEP_WEIGHTS, weights->path, hint,
                       "layer '%s' has %d blobs of weights in the file and %d in the net",
                       layer->name, present, wanted.first->blob_count);
    }
    int status = 0;
    for (size_t i = 0; i < wanted.count; i++) {
        const struct ls_weight_target *target = &wanted.first[i];
        const struct ls_weight_blob *blob = matching->source[target - matching->targets];
        char in_file[160], in_net[160];
        if (blob == NULL)
            continue;
        if (ls_weights_fit(blob, &target->shape)) {
            int failed = check_numbers(weights, layer, target, blob, matching->error);
            status = failed != 0 ? failed : status;
            forget(weights, blob);
            continue;
        }
        status =
            ls_fail(matching->error, LOCKSTEP_WEIGHTS, weights->path, hint,
                    "blob %d of layer '%s' has shape %s in the file and %s in the net",
                    target->blob, layer->name, ls_shape_text(&blob->shape, in_file, sizeof in_file),
                    ls_shape_text(&target->shape, in_net, sizeof in_net));
    }
    return status;
}

/* Checks every layer that both sides have; all problems are collected. */
static int check_all(struct matching *matching)
{
    int result = 0;
    for (int round = 0; round < 2 && result == 0; round++) /* match all, then check all */
        for (size_t t = 0; t < matching->count;) {
            struct target_layer wanted = layer_at(matching->targets + t, matching->count - t);
            const struct ls_weight_layer *layer =
                find_layer(matching->weights, wanted.first->layer);
            for (size_t i = 0; i < wanted.count && layer != NULL && round == 0; i++) {
                int status = match_target(matching, layer, &wanted.first[i], wanted);
                result = result != 0 ? result : status;
            }
            if (layer != NULL && round == 1) {
                int status = check_layer(matching, layer, wanted);
                result = result != 0 ? result : status;
            }
            t += wanted.count;
        }
    return result;
}

/* What is one parameter here has the same numbers under all its names. */
static int check_ties(const struct matching *matching)
{
    int status = 0;
    for (size_t i = 0; i < matching->count; i++) {
        const struct ls_weight_target *target = &matching->targets[i];
        const size_t giver = giver_of(matching, target->parameter);
        if (matching->source[i] == NULL || giver == i)
            continue;
        if (memcmp(matching->source[i]->data, matching->source[giver]->data,
                   ls_layout_bytes(&ls_layout_plain, &target->shape, LS_F32)) != 0)
            status = ls_fail(matching->error, LOCKSTEP_WEIGHTS, matching->weights->path,
                             "the file is of a net in which they are not tied: leave out "
                             "'param { name }' here, or let the first one count with "
                             "'partial_weights: true'",
                             "blob %d of layer '%s' and blob %d of layer '%s' are one parameter of "
                             "the net, and have different numbers in the file",
                             matching->targets[giver].blob, matching->targets[giver].layer,
                             target->blob, target->layer);
        forget(matching->weights, matching->source[i]);
    }
    return status;
}

static int store_all(const struct matching *matching)
{
    for (size_t i = 0; i < matching->count; i++) {
        const struct ls_weight_target *target = &matching->targets[i];
        if (matching->source[i] == NULL || giver_of(matching, target->parameter) != i)
            continue;
        LS_TRY(target->store(target->user, target, matching->source[i]->data, matching->error));
        forget(matching->weights, matching->source[i]);
    }
    return 0;
}

int ls_weights_apply(const struct ls_weights *weights, const struct ls_weight_target *targets,
                     size_t count, bool partial, struct ls_weights_report *report,
                     struct ls_error *error)
{
    struct matching matching = {weights, targets, count, NULL, report, error};
    matching.source = ls_alloc(count + 1, sizeof *matching.source);
    if (matching.source == NULL)
        return ls_fail_memory(error, weights->path);
    int status = list_fates(&matching);
    if (status == 0)
        status = check_all(&matching);
    if (status == 0 && !partial)
        status = check_ties(&matching);
    if (status == 0) {
        note_fates(&matching);
        status = store_all(&matching);
    }
    ls_free(matching.source);
    return status;
}
