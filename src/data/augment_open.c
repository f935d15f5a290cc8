/* Reading of what is done to pictures before they have the size of a sample: resize_param,
 * distort_param, expand_param, emit_constraint of transform_param, and batch_sampler of
 * annotated_data_param; see data/augment.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "data/part_sampler.h"
#include "data/transform.h"

static const uint32_t SIDE_MOST = 16384;

/* Fails at the place of a field of a message inside transform_param or annotated_data_param. */
static int bad(const struct ls_transform_options *options, const ProtobufCMessage *at,
               const char *field, struct ls_error *error, const char *hint, const char *what)
{
    char place[LS_PLACE_MAX] = "";
    if (options->definition != NULL)
        ls_place(options->definition, at, field, place, sizeof place);
    return ls_fail(error, LOCKSTEP_DEFINITION, place, hint, "layer '%.100s': %s", options->layer,
                   what);
}

/* A mean or a colour as a number of 8 bits: the nearest, halves upwards. */
static uint8_t to_byte(float x)
{
    return x <= 0 ? 0 : x >= 255 ? 255 : (uint8_t)floorf(x + 0.5F);
}

/* One value for each channel, of one or as many. */
static int read_values(const struct ls_transform_options *options, const ProtobufCMessage *at,
                       const char *field, const float *values, size_t count, uint8_t **out,
                       struct ls_error *error)
{
    const size_t channels = (size_t)options->record[0];
    if (count == 0)
        return 0;
    if (count != 1 && count != channels)
        return bad(options, at, field, error, NULL,
                   "give one value, or as many as the records have channels");
    *out = ls_alloc(channels, 1);
    if (*out == NULL)
        return ls_fail_memory(error, "colours");
    for (size_t c = 0; c < channels; c++) {
        if (isnan(values[count == 1 ? 0 : c]))
            return bad(options, at, field, error, NULL, "a value is not a number");
        (*out)[c] = to_byte(values[count == 1 ? 0 : c]);
    }
    return 0;
}

static enum ls_filter filter_of(Lockstep__ResizeParameter__InterpMode mode)
{
    switch (mode) {
    case LOCKSTEP__RESIZE_PARAMETER__INTERP_MODE__AREA:
        return LS_FILTER_AREA;
    case LOCKSTEP__RESIZE_PARAMETER__INTERP_MODE__NEAREST:
        return LS_FILTER_NEAREST;
    case LOCKSTEP__RESIZE_PARAMETER__INTERP_MODE__CUBIC:
        return LS_FILTER_CUBIC;
    case LOCKSTEP__RESIZE_PARAMETER__INTERP_MODE__LANCZOS4:
        return LS_FILTER_LANCZOS4;
    default:
        return LS_FILTER_LINEAR;
    }
}

static int open_resize(const struct ls_transform_options *options, struct ls_augment *a,
                       struct ls_error *error)
{
    const Lockstep__ResizeParameter *p = options->param->resize_param;
    if (p == NULL)
        return 0;
    if (options->definition != NULL &&
        ls_definition_repeats(options->definition, options->param, "resize_param"))
        return bad(options, &options->param->base, "resize_param", error,
                   "keep one: all batches have pictures of one size here",
                   "resize_param is given several times, as forks do that draw one for each batch");
    if (p->height < 1 || p->width < 1 || p->height > SIDE_MOST || p->width > SIDE_MOST)
        return bad(options, &p->base, p->has_height ? "height" : NULL, error, NULL,
                   "resize_param needs a height and a width of 1 to 16384");
    if (p->prob != 1)
        return bad(options, &p->base, "prob", error, "leave it out: all pictures are resized",
                   "resize_param: prob other than 1 is not supported");
    a->resizes = true;
    a->pads = p->resize_mode == LOCKSTEP__RESIZE_PARAMETER__RESIZE_MODE__FIT_LARGE_SIZE_AND_PAD;
    a->shortest = p->resize_mode == LOCKSTEP__RESIZE_PARAMETER__RESIZE_MODE__FIT_SMALL_SIZE;
    a->height = p->height;
    a->width = p->width;
    a->pad_mode = p->pad_mode;
    if (p->height_scale > 0 || p->width_scale > 0)
        return bad(options, &p->base, p->height_scale > 0 ? "height_scale" : "width_scale", error,
                   "leave them out; boxes are in sizes of the sample",
                   "height_scale and width_scale are not supported where data are read");
    if (p->n_interp_mode > LS_AUGMENT_FILTERS)
        return bad(options, &p->base, "interp_mode", error, NULL,
                   "interp_mode can be given 16 times at most");
    for (size_t i = 0; i < p->n_interp_mode; i++)
        a->filter[a->filters++] = filter_of(p->interp_mode[i]);
    return read_values(options, &p->base, "pad_value", p->pad_value, p->n_pad_value, &a->pad_value,
                       error);
}

static int open_distort(const struct ls_transform_options *options, struct ls_augment *a,
                        struct ls_error *error)
{
    const Lockstep__DistortionParameter *p = options->param->distort_param;
    const char *why;
    char text[200];
    if (p == NULL)
        return 0;
    const char *field = ls_distortion_check(p, &why);
    if (field != NULL) {
        snprintf(text, sizeof text, "distort_param: %s %s", field, why);
        return bad(options, &p->base, field, error, NULL, text);
    }
    if (ls_distortion_of_colours(p) && options->record[0] != 3)
        return bad(options, &options->param->base, "distort_param", error,
                   "leave saturation, hue and random_order_prob out",
                   "distort_param changes colours, and the records do not have three channels");
    a->distorts = true;
    a->distortion = *p;
    return 0;
}

static int open_expand(const struct ls_transform_options *options, struct ls_augment *a,
                       struct ls_error *error)
{
    const Lockstep__TransformationParameter *t = options->param;
    const Lockstep__ExpansionParameter *p = t->expand_param;
    if (p == NULL)
        return 0;
    if (!(p->prob >= 0 && p->prob <= 1))
        return bad(options, &p->base, "prob", error, NULL,
                   "expand_param: prob must be a probability, from 0 to 1");
    if (!(p->max_expand_ratio >= 1 && p->max_expand_ratio <= 100))
        return bad(options, &p->base, "max_expand_ratio", error, NULL,
                   "expand_param: max_expand_ratio must be from 1 to 100");
    if (t->mean_file != NULL)
        return bad(options, &t->base, "mean_file", error, "give mean_value",
                   "expand_param fills a canvas with mean values, and cannot with a mean file");
    a->expands = p->max_expand_ratio > 1;
    a->expand_probability = p->prob;
    a->expand_most = p->max_expand_ratio;
    return read_values(options, &t->base, "mean_value", t->mean_value, t->n_mean_value,
                       &a->fill_value, error);
}

static int open_emit(const struct ls_transform_options *options, struct ls_augment *a,
                     struct ls_error *error)
{
    const Lockstep__EmitConstraint *p = options->param->emit_constraint;
    if (p == NULL)
        return 0;
    if (!options->boxes)
        return bad(options, &options->param->base, "emit_constraint", error, "leave it out",
                   "emit_constraint is for boxes, which AnnotatedData brings");
    a->constrained = true;
    a->overlaps = p->emit_type == LOCKSTEP__EMIT_CONSTRAINT__EMIT_TYPE__MIN_OVERLAP;
    a->emit_overlap = p->emit_overlap;
    if (a->overlaps && !(p->emit_overlap >= 0 && p->emit_overlap < 1))
        return bad(options, &p->base, "emit_overlap", error, NULL,
                   "emit_overlap must be at least 0 and below 1");
    return 0;
}

static int check_sampler(const struct ls_transform_options *options,
                         const Lockstep__BatchSampler *sampler, struct ls_error *error)
{
    const ProtobufCMessage *at;
    const char *why;
    char text[200];
    const char *field = ls_part_sampler_check(sampler, &at, &why);
    if (field == NULL)
        return 0;
    snprintf(text, sizeof text, "batch_sampler: %s %s", field, why);
    return bad(options, at, field, error, NULL, text);
}

static int open_samplers(const struct ls_transform_options *options, struct ls_augment *a,
                         struct ls_error *error)
{
    const Lockstep__AnnotatedDataParameter *p = options->annotated;
    if (p == NULL)
        return 0;
    if (p->yolo_data_type != 0)
        return bad(options, &p->base, "yolo_data_type", error,
                   "a batch_sampler takes random parts of pictures",
                   "yolo_data_type of MobileNet-YOLO's fork is not supported");
    if (p->n_batch_sampler > LS_PART_SAMPLERS)
        return bad(options, &p->base, "batch_sampler", error, NULL,
                   "batch_sampler can be given 64 times at most");
    for (size_t i = 0; i < p->n_batch_sampler; i++)
        LS_TRY(check_sampler(options, p->batch_sampler[i], error));
    if (p->n_batch_sampler == 0)
        return 0;
    a->sampler = ls_part_sampler_open(p);
    return a->sampler != NULL ? 0 : ls_fail_memory(error, "the samplers of a layer");
}

/* What fits together. */
static int check_all(const struct ls_transform_options *options, const struct ls_augment *a,
                     struct ls_error *error)
{
    const Lockstep__TransformationParameter *t = options->param;
    const bool parts = a->expands || a->sampler != NULL;
    if (a->shortest && parts &&
        (t->crop_size == 0 || t->crop_size > t->resize_param->height ||
         t->crop_size > t->resize_param->width))
        return bad(options, &t->resize_param->base, "resize_mode", error,
                   "resize_mode: WARP, or a crop_size that height and width have room for",
                   "FIT_SMALL_SIZE makes samples of different sizes of random parts");
    if (!a->resizes && parts)
        return bad(options, &t->base, t->expand_param != NULL ? "expand_param" : NULL, error,
                   "give resize_param, with the size of the samples",
                   "expand_param and batch_sampler make pictures of different sizes");
    if (!ls_augment_is_used(a))
        return 0;
    if (options->maps)
        return bad(options, &t->base, a->resizes ? "resize_param" : "distort_param", error,
                   "new_height and new_width of data_param resize pictures and their maps",
                   "resize_param, distort_param and expand_param are not for pictures with label "
                   "maps");
    if (options->floats)
        return bad(options, &t->base, a->resizes ? "resize_param" : "distort_param", error,
                   "prepare the records themselves",
                   "resize_param, distort_param and expand_param are for records of 8 bits");
    return 0;
}

int ls_augment_open(const struct ls_transform_options *options, struct ls_augment *augment,
                    struct ls_error *error)
{
    int (*const parts[])(const struct ls_transform_options *, struct ls_augment *,
                         struct ls_error *) = {open_resize, open_distort, open_expand, open_emit,
                                               open_samplers};
    int status = 0;
    *augment = (struct ls_augment){0};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const int found = parts[i](options, augment, error);
        status = status != 0 ? status : found;
    }
    return status != 0 ? status : check_all(options, augment, error);
}
