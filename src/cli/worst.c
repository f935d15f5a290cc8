/* The worst samples of a net as pictures. See cli/worst.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/worst.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/predictions.h"
#include "cli/report.h"

void ls_cli_worst_free(struct ls_cli_worst *worst)
{
    for (size_t i = 0; i < worst->count; i++) {
        free((void *)worst->pictures[i].planes);
        free((void *)worst->pictures[i].caption);
    }
    free(worst->pictures);
    free(worst->weights);
    lockstep_model_free(worst->model);
    *worst = (struct ls_cli_worst){.count = 0};
}

static unsigned char to_byte(float value)
{
    return value > 0 ? value < 255 ? (unsigned char)value : 255 : 0;
}

/* What the pixel of a segmentation is coloured with, red, green, blue; NULL: with nothing. Right is
 * green, but for the background; a label that was missed red, one that is not there blue. */
static const unsigned char *colour_of(int32_t label, int32_t predicted)
{
    static const unsigned char right[] = {0, 200, 80}, missed[] = {235, 40, 40},
                               added[] = {50, 110, 255};
    if (label < 0 || (label == predicted && label == 0))
        return NULL;
    return label == predicted ? right : label > 0 ? missed : added;
}

/* Three planes of a sample's pixels, and what is predicted over them. */
static unsigned char *paint(const struct lockstep_confusion *confusion,
                            const struct lockstep_worst_sample *sample, const float *pixels,
                            const int64_t shape[3])
{
    const size_t size = (size_t)(shape[1] * shape[2]);
    const bool maps = confusion->positions > 1 && confusion->positions == size;
    unsigned char *planes = malloc(3 * size);
    for (size_t p = 0; p < size && planes != NULL; p++) {
        const unsigned char *colour =
            maps ? colour_of(sample->labels[p], sample->predicted[p]) : NULL;
        for (size_t c = 0; c < 3; c++) {
            const unsigned char own = to_byte(pixels[(shape[0] == 3 ? c * size : 0) + p]);
            planes[c * size + p] = colour != NULL ? (unsigned char)((own + colour[c]) / 2) : own;
        }
    }
    return planes;
}

static char *describe(const struct ls_cli_worst *worst, const struct lockstep_worst_sample *sample)
{
    char *text = NULL, number[2][24];
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL)
        return NULL;
    fprintf(out, "sample %" PRId64 "\n", sample->index);
    if (worst->confusion->positions > 1)
        fprintf(out, "%.1f %% of its positions right", 100 * sample->score);
    else if (sample->labels[0] == sample->predicted[0])
        fprintf(out, "is %s: right\n%.3g for its label",
                ls_cli_class_name(worst->model, (size_t)sample->labels[0], number[0]),
                sample->score);
    else
        fprintf(out, "is %s, taken for %s\n%.3g for its label",
                ls_cli_class_name(worst->model, (size_t)sample->labels[0], number[0]),
                ls_cli_class_name(worst->model, (size_t)sample->predicted[0], number[1]),
                sample->score);
    return fclose(out) == 0 ? text : NULL;
}

static int draw(struct ls_cli_worst *worst, const struct lockstep_worst_sample *sample,
                struct lockstep_error *error)
{
    int64_t shape[3];
    int label;
    int status = lockstep_model_predict_sample(worst->model, sample->index, shape, NULL, &label,
                                               NULL, error);
    if (status != 0)
        return status;
    float *pixels = malloc((size_t)(shape[0] * shape[1] * shape[2]) * sizeof *pixels);
    struct lockstep_page_picture *picture = &worst->pictures[worst->count];
    if (pixels != NULL)
        status = lockstep_model_predict_sample(worst->model, sample->index, shape, pixels, &label,
                                               NULL, error);
    if (pixels != NULL && status == 0) {
        *picture = (struct lockstep_page_picture){.shape = {3, shape[1], shape[2]}};
        picture->planes = paint(worst->confusion, sample, pixels, shape);
        picture->caption = describe(worst, sample);
        if (worst->confusion->positions == 1)
            picture->mark = sample->labels[0] == sample->predicted[0] ? 1 : -1;
        worst->count++;
        if (picture->planes == NULL || picture->caption == NULL)
            status = ls_cli_no_memory();
    }
    free(pixels);
    return pixels == NULL ? ls_cli_no_memory() : status;
}

/* Samples without pictures, such as rows of numbers, have none to draw. */
static int draw_all(struct ls_cli_worst *worst, struct lockstep_error *error)
{
    const struct lockstep_confusion *confusion = worst->confusion;
    worst->pictures = calloc(confusion->worst_count + 1, sizeof *worst->pictures);
    if (worst->pictures == NULL)
        return ls_cli_no_memory();
    worst->title = confusion->positions == 1
                       ? "The worst samples"
                       : "The worst samples: right is green, missed red, added blue";
    for (size_t i = 0; i < confusion->worst_count; i++) {
        int status = draw(worst, &confusion->worst[i], error);
        if (status == LOCKSTEP_USAGE)
            return 0;
        if (status != 0)
            return status;
    }
    return 0;
}

/* ---- Boxes ----------------------------------------------------------------------------------- */

static char *describe_boxes(const struct lockstep_boxed_sample *sample, bool judged)
{
    char *text = NULL;
    size_t size, of_kind[LOCKSTEP_BOX_OPEN + 1] = {0};
    FILE *out = open_memstream(&text, &size);
    if (out == NULL)
        return NULL;
    for (size_t i = 0; i < sample->box_count; i++)
        of_kind[sample->boxes[i].kind]++;
    fprintf(out, "sample %" PRId64 "\n", sample->index);
    if (judged)
        fprintf(out, "%zu right, %zu missed, %zu wrong", of_kind[LOCKSTEP_BOX_RIGHT],
                of_kind[LOCKSTEP_BOX_MISSED], of_kind[LOCKSTEP_BOX_WRONG]);
    else
        fprintf(out, "%zu found", sample->box_count);
    return fclose(out) == 0 ? text : NULL;
}

/* A sample as the net gets it, which boxes are parts of. */
static int draw_boxes(struct ls_cli_worst *worst, const struct lockstep_boxed_sample *sample,
                      struct lockstep_error *error)
{
    int64_t shape[3];
    int status = lockstep_model_sample_picture(worst->model, sample->index, shape, NULL, error);
    if (status != 0)
        return status;
    float *pixels = malloc((size_t)(shape[0] * shape[1] * shape[2]) * sizeof *pixels);
    if (pixels == NULL)
        return ls_cli_no_memory();
    status = lockstep_model_sample_picture(worst->model, sample->index, shape, pixels, error);
    if (status == 0) {
        const struct lockstep_confusion none = {.positions = 1};
        struct lockstep_page_picture *picture = &worst->pictures[worst->count++];
        *picture = (struct lockstep_page_picture){.shape = {3, shape[1], shape[2]},
                                                  .boxes = sample->boxes,
                                                  .box_count = sample->box_count};
        picture->planes = paint(&none, NULL, pixels, shape);
        picture->caption = describe_boxes(sample, worst->found->judged);
        if (picture->planes == NULL || picture->caption == NULL)
            status = ls_cli_no_memory();
    }
    free(pixels);
    return status;
}

static int draw_all_boxes(struct ls_cli_worst *worst, struct lockstep_error *error)
{
    const struct lockstep_found_boxes *found = worst->found;
    worst->pictures = calloc(found->worst_count + 1, sizeof *worst->pictures);
    if (worst->pictures == NULL)
        return ls_cli_no_memory();
    worst->title = found->judged ? "The worst samples: right is green, missed red, wrong blue"
                                 : "Boxes that were found";
    for (size_t i = 0; i < found->worst_count; i++) {
        int status = draw_boxes(worst, &found->worst[i], error);
        if (status == LOCKSTEP_USAGE) /* no pictures */
            return 0;
        if (status != 0)
            return status;
    }
    return 0;
}

int ls_cli_worst_find(struct ls_cli_worst *worst, const struct ls_cli_model_values *values,
                      int64_t samples, size_t count, double score)
{
    *worst = (struct ls_cli_worst){.count = 0};
    int status = ls_cli_load_model("report", values, 0, 0,
                                   (struct lockstep_callbacks){NULL, NULL, NULL}, &worst->model);
    if (status != 0)
        return status;
    struct lockstep_error *error = lockstep_error_new();
    if (lockstep_model_finds_boxes(worst->model)) {
        status =
            lockstep_model_find_boxes(worst->model, samples, count, score, &worst->found, error);
        if (status == 0)
            status = draw_all_boxes(worst, error);
    } else {
        status = lockstep_model_confusion(worst->model, samples, count, &worst->confusion, error);
        if (status == 0)
            status = draw_all(worst, error);
    }
    if (status != 0)
        ls_cli_report(status, error);
    lockstep_error_free(error);
    return status;
}
