/* Opening of transformations: what transform_param says, checked; see data/transform.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/random.h"
#include "data/mean_file.h"
#include "data/transform.h"
#include "schema/fields.h"

/* ---- Checks ---- */

/* Fails at the place of a field. */
static int bad_field(const struct ls_transform_options *options, const char *field,
                     const char *hint, struct ls_error *error, const char *message)
{
    char place[LS_PLACE_MAX] = "";
    if (options->definition != NULL)
        ls_place(options->definition, options->param, field, place, sizeof place);
    return ls_fail(error, LOCKSTEP_DEFINITION, place, hint, "layer '%.100s': %s", options->layer,
                   message);
}

static int check_geometry(const struct ls_transform_options *options, struct ls_transform *t,
                          struct ls_error *error)
{
    const Lockstep__TransformationParameter *p = options->param;
    if (p->crop_size > 65536)
        return bad_field(options, "crop_size", NULL, error, "crop_size is too large");
    if (p->pad > 4096)
        return bad_field(options, "pad", NULL, error, "pad is too large");
    t->crop = (int)p->crop_size;
    t->pad = (int)p->pad;
    t->reflect = p->pad_mode == LOCKSTEP__TRANSFORMATION_PARAMETER__PAD_MODE__REFLECT;
    int64_t height = options->record[1], width = options->record[2];
    if (t->pad > 0 && t->reflect && (t->pad >= height || t->pad >= width))
        return bad_field(options, "pad", NULL, error,
                         "a reflecting pad must be smaller than the records");
    t->label_pad = (float)options->label_pad;
    t->output[0] = options->record[0];
    t->output[1] = t->crop > 0 ? t->crop : height + 2 * t->pad;
    t->output[2] = t->crop > 0 ? t->crop : width + 2 * t->pad;
    if (!t->varies && (t->crop > height + 2 * t->pad || t->crop > width + 2 * t->pad)) {
        char message[160];
        snprintf(message, sizeof message,
                 "crop_size %d is larger than the records (%" PRId64 " x %" PRId64 "%s)", t->crop,
                 height + 2 * t->pad, width + 2 * t->pad, t->pad > 0 ? " with padding" : "");
        return bad_field(options, "crop_size", NULL, error, message);
    }
    if (!ls_record_shape_valid(t->output))
        return bad_field(options, "pad", NULL, error, "the padded records are too large");
    return 0;
}

static int check_numbers(const struct ls_transform_options *options, struct ls_transform *t,
                         struct ls_error *error)
{
    const Lockstep__TransformationParameter *p = options->param;
    int status = 0;
    if (!isfinite(p->scale))
        status = bad_field(options, "scale", NULL, error, "scale is not a finite number");
    else if (p->scale == 0)
        status = bad_field(options, "scale", "leave it out, or write 0.00390625 for 1 / 256", error,
                           "scale 0 makes every number 0");
    if (!(p->brightness >= 0) || !isfinite(p->brightness))
        status = bad_field(options, "brightness", "it is the largest change, such as 63", error,
                           "brightness must be a finite number of at least 0");
    if (!(p->contrast_lower >= 0) || !(p->contrast_upper >= p->contrast_lower) ||
        !isfinite(p->contrast_upper))
        status = bad_field(options, p->has_contrast_lower ? "contrast_lower" : "contrast_upper",
                           "for example contrast_lower: 0.2 contrast_upper: 1.8", error,
                           "contrast_lower and contrast_upper must be 0 <= lower <= upper");
    t->scale = p->scale;
    t->mirror = p->mirror;
    t->standardize = p->standardize;
    t->brightness = p->brightness;
    t->contrast_lower = p->contrast_lower;
    t->contrast_upper = p->contrast_upper;
    return status;
}

/* The caller's mean picture. */
static int copy_mean(const struct ls_transform_options *options, struct ls_transform *t,
                     struct ls_error *error)
{
    const int64_t *has = options->mean_shape, *wants = options->record;
    if (memcmp(has, wants, sizeof options->mean_shape) != 0)
        return ls_fail(error, LOCKSTEP_DATA, NULL, NULL,
                       "layer '%.100s': the mean picture has %" PRId64 " x %" PRId64 " x %" PRId64
                       " numbers, pictures have %" PRId64 " x %" PRId64 " x %" PRId64,
                       options->layer, has[0], has[1], has[2], wants[0], wants[1], wants[2]);
    const size_t size = (size_t)ls_record_size(has);
    t->mean = ls_alloc(size, sizeof *t->mean);
    if (t->mean == NULL)
        return ls_fail_memory(error, "a mean picture");
    memcpy(t->mean, options->mean, size * sizeof *t->mean);
    return 0;
}

static int open_mean(const struct ls_transform_options *options, struct ls_transform *t,
                     struct ls_error *error)
{
    const Lockstep__TransformationParameter *p = options->param;
    size_t channels = (size_t)options->record[0];
    if (p->mean_file != NULL && p->n_mean_value > 0)
        return bad_field(options, "mean_value", NULL, error,
                         "mean_file and mean_value cannot both be given");
    if (p->mean_file != NULL && options->varies)
        return bad_field(options, "mean_file", "give mean_value", error,
                         "mean_file needs records of one size, and these differ");
    if (options->mean != NULL)
        return copy_mean(options, t, error);
    if (p->mean_file != NULL) {
        char *path = ls_resolve_path(
            p->mean_file, options->definition != NULL ? options->definition->file : NULL);
        if (path == NULL)
            return ls_fail_memory(error, "a path");
        int status = ls_mean_read(path, options->record, &t->mean, error);
        ls_free(path);
        return status;
    }
    if (p->n_mean_value == 0)
        return 0;
    if (p->n_mean_value != 1 && p->n_mean_value != channels)
        return bad_field(options, "mean_value", NULL, error,
                         "give one mean_value, or as many as the records have channels");
    t->channel_mean = ls_alloc(channels, sizeof *t->channel_mean);
    if (t->channel_mean == NULL)
        return ls_fail_memory(error, "mean values");
    for (size_t c = 0; c < channels; c++) {
        t->channel_mean[c] = p->mean_value[p->n_mean_value == 1 ? 0 : c];
        if (!isfinite(t->channel_mean[c]))
            return bad_field(options, "mean_value", NULL, error, "mean_value is not finite");
    }
    return 0;
}

/* Transformations of forks, which would change pictures. */
static int check_forks(const struct ls_transform_options *options, struct ls_error *error)
{
    static const struct {
        const char *field, *hint;
    } forks[] = {
        {"noise_param", "leave it out"},
        {"crop_h", "crop_size is the side of a square; resize the pictures to the size of the net"},
        {"crop_w", "crop_size is the side of a square; resize the pictures to the size of the net"},
        {"random_resize_param", "resize_param, with crop_size"},
        {"random_aspect_ratio_param", "resize_param, with crop_size"},
    };
    const ProtobufCMessage *message = &options->param->base;
    int status = 0;
    for (size_t i = 0; i < sizeof forks / sizeof forks[0]; i++) {
        char text[100];
        if (ls_field_count(message, ls_field_named(message->descriptor, forks[i].field)) == 0)
            continue;
        snprintf(text, sizeof text, "%s of forks of Caffe is not supported", forks[i].field);
        status = bad_field(options, forks[i].field, forks[i].hint, error, text);
    }
    return status;
}

int ls_transform_open(const struct ls_transform_options *options, struct ls_transform *transform,
                      struct ls_error *error)
{
    static const Lockstep__TransformationParameter plain = LOCKSTEP__TRANSFORMATION_PARAMETER__INIT;
    struct ls_transform_options o = *options;
    if (o.param == NULL)
        o.param = &plain;
    *transform = (struct ls_transform){.augment = o.augment};
    int status = ls_augment_open(&o, &transform->before, error);
    if (status == 0)
        ls_augment_shape(&transform->before, options->record, o.record);
    transform->varies = o.varies = o.varies && !ls_augment_fixes_size(&transform->before);
    memcpy(transform->input, o.record, sizeof o.record);
    transform->key = ls_random_key(o.seed, LS_RANDOM_AUGMENT, o.layer);
    int next = check_geometry(&o, transform, error);
    status = status != 0 ? status : next;
    next = check_numbers(&o, transform, error);
    status = status != 0 ? status : next;
    next = check_forks(&o, error);
    status = status != 0 ? status : next;
    next = open_mean(&o, transform, error);
    return status != 0 ? status : next;
}

void ls_transform_free(struct ls_transform *transform)
{
    ls_augment_free(&transform->before);
    ls_free(transform->mean);
    ls_free(transform->channel_mean);
    transform->mean = NULL;
    transform->channel_mean = NULL;
}
