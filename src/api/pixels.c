/* Pixels of a caller's, transformed as training did it.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <string.h>

#include "api/api.h"
#include "api/model.h"
#include "api/predict.h"
#include "base/memory.h"

/* What is left to do for pictures that have the size of samples. `mean` is freed by the caller. */
static int without_geometry(const struct ls_transform *transform, struct ls_transform *rest,
                            float **mean, struct ls_error *error)
{
    *rest = *transform;
    rest->before = (struct ls_augment){0};
    rest->crop = rest->pad = 0;
    memcpy(rest->input, transform->output, sizeof rest->input);
    if (transform->mean == NULL)
        return 0;
    LS_TRY(ls_picture_rule_mean(transform, mean, error));
    rest->mean = *mean;
    return 0;
}

/* A picture of bytes, where all numbers are such: only they can be resized. False: there are
 * others. */
static bool to_bytes(const float *pixels, size_t count, uint8_t *bytes)
{
    for (size_t i = 0; i < count; i++) {
        if (!(pixels[i] >= 0 && pixels[i] <= 255) || pixels[i] != floorf(pixels[i]))
            return false;
        bytes[i] = (uint8_t)pixels[i];
    }
    return true;
}

static int transform_all(const struct ls_transform *transform, const float *pixels,
                         const int64_t shape[3], size_t count, float *samples,
                         struct ls_error *error)
{
    const size_t from = (size_t)ls_record_size(shape);
    const size_t to = (size_t)ls_record_size(transform->output);
    struct ls_augment_room room = {0};
    struct ls_problem problem;
    uint8_t *bytes = ls_alloc(from, 1);
    int status = bytes == NULL ? ls_fail_memory(error, "a picture") : 0;
    for (size_t i = 0; i < count && status == 0; i++) {
        struct ls_record record = {0};
        if (to_bytes(pixels + i * from, from, bytes))
            ls_record_set_image(&record, LS_U8, shape, bytes);
        else
            ls_record_set_image(&record, LS_F32, shape, pixels + i * from);
        if (record.tensor[0].type == LS_F32 && transform->before.resizes)
            status = ls_fail(error, LOCKSTEP_DATA, NULL, "round them",
                             "picture %zu has numbers that are no whole ones from 0 to 255, and "
                             "only such pictures are resized",
                             i);
        else if ((status = ls_transform_apply(transform, &record.tensor[0], NULL, 0, false, &room,
                                              samples + i * to, &problem)) != 0)
            status = ls_fail(error, status, NULL, NULL, "picture %zu: %s", i, problem.message);
    }
    ls_augment_room_free(&room);
    ls_free(bytes);
    return status;
}

static int transform_pixels(struct lockstep_model *model, const float *pixels,
                            const int64_t shape[3], size_t count, float *samples,
                            struct ls_error *error)
{
    const struct ls_transform *transform;
    struct ls_picture_rule rule;
    struct ls_transform rest;
    float *mean = NULL;
    int status = 0;
    LS_TRY(ls_model_check_one_size(model, error));
    LS_TRY(ls_picture_rule_find(model, &transform, &rule, error));
    if (!ls_record_shape_valid(shape))
        return ls_fail(error, LOCKSTEP_USAGE, NULL, NULL,
                       "pictures cannot have %lld x %lld x %lld "
                       "numbers",
                       (long long)shape[0], (long long)shape[1], (long long)shape[2]);
    const bool whole = transform->before.resizes || (rule.whole && transform->crop > 0);
    const bool fits = memcmp(shape, transform->input, sizeof transform->input) == 0;
    if (memcmp(shape, transform->output, sizeof transform->output) == 0 && !fits) {
        status = without_geometry(transform, &rest, &mean, error);
        transform = &rest;
    } else if (!fits && !whole && !transform->varies) {
        status =
            ls_fail(error, LOCKSTEP_DATA, NULL, "predict_picture resizes pictures",
                    "pictures have %lld x %lld x %lld numbers; training took %lld x %lld x %lld",
                    (long long)shape[0], (long long)shape[1], (long long)shape[2],
                    (long long)transform->input[0], (long long)transform->input[1],
                    (long long)transform->input[2]);
    }
    if (status == 0)
        status = transform_all(transform, pixels, shape, count, samples, error);
    ls_free(mean);
    return status;
}

int lockstep_model_transform(struct lockstep_model *model, const float *pixels,
                             const int64_t shape[3], size_t count, float *samples,
                             struct lockstep_error *error)
{
    LS_OWN_MODE;
    return transform_pixels(model, pixels, shape, count, samples, ls_api_error(error));
}

/* The range of (x - m) scale over the means m. */
static void find_range(const struct ls_transform *transform, double *least, double *most)
{
    const float *means = transform->mean != NULL ? transform->mean : transform->channel_mean;
    const int64_t count = transform->mean != NULL           ? ls_record_size(transform->input)
                          : transform->channel_mean != NULL ? transform->input[0]
                                                            : 0;
    double low = count > 0 ? (double)means[0] : 0, high = low;
    for (int64_t i = 1; i < count; i++) {
        low = fmin(low, (double)means[i]);
        high = fmax(high, (double)means[i]);
    }
    const double scale = (double)transform->scale;
    *least = fmin((0 - high) * scale, (255 - low) * scale);
    *most = fmax((0 - high) * scale, (255 - low) * scale);
    if (transform->standardize) {
        *most = sqrt((double)ls_record_size(transform->output));
        *least = -*most;
    }
}

int lockstep_model_input_range(struct lockstep_model *model, double *least, double *most)
{
    LS_OWN_MODE;
    const struct ls_transform *transform;
    struct ls_picture_rule rule;
    int64_t shape[3];
    lockstep_model_input_shape(model, shape);
    if (shape[0] == 0 || (shape[0] != 1 && shape[0] != 3) ||
        ls_picture_rule_find(model, &transform, &rule, NULL) != 0 || !rule.known)
        return 0;
    find_range(transform, least, most);
    return *least != 0 || *most != 255;
}
