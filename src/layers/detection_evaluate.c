/* DetectionEvaluate: how many of the boxes that a net has found are right, over a whole test.
 *
 * Bottoms: found boxes [N, 1, K, 7], rows as DetectionOutput has them, and true boxes, rows of 8
 * numbers (docs/caffe.md, "Boxes"). In each sample, the highest score first, a found box is right
 * if the true box of its class that it overlaps most, by overlap_threshold at least, belongs to no
 * better one; those that have a difficult true box count nowhere with evaluate_difficult_gt: false.
 * Over all samples of the test, sorted by score, the precision (how many of the first i are right)
 * is averaged over the recall (how many true boxes they are) as the solver's ap_version says:
 *
 *   Integral     sum over right ones of the precision there / number of true boxes (the default)
 *   MaxIntegral  the same of the best precision at that recall or a higher one
 *   11point      the mean of the best precisions at recalls of at least 0, 0.1, ... 1
 *
 * The first top is the mean of that over all classes but the background (0 for one without true
 * boxes), the second one has it by class; `show_per_class_result: true` shows it without a top.
 * With name_size_file (lines "name height width", in the order of the pictures) overlaps are of
 * boxes in whole pixels of the pictures; resize_param says how the pictures became the input.
 * SSD's detection_evaluate_param. (In SSD's fork the top are rows that the solver reads.)
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "layers/evaluation.h"

enum { FOUND_ROW = 7, SIZES_BYTES_MAX = 1 << 28 };

static const Lockstep__DetectionEvaluateParameter *param_of(const struct ls_layer *layer)
{
    static const Lockstep__DetectionEvaluateParameter defaults =
        LOCKSTEP__DETECTION_EVALUATE_PARAMETER__INIT;
    const Lockstep__DetectionEvaluateParameter *param = layer->definition->detection_evaluate_param;
    return param != NULL ? param : &defaults;
}

/* ---- Sizes of pictures ----------------------------------------------------------------------- */

/* The next word of a text, where it is; false: there are no more. */
static bool next_word(char **text, char **word)
{
    char *at = *text + strspn(*text, " \t\r\n");
    const size_t length = strcspn(at, " \t\r\n");
    *word = at;
    *text = at + length;
    if (**text != '\0')
        *(*text)++ = '\0';
    return length > 0;
}

static bool read_size(const char *word, int32_t *size)
{
    char *end;
    const long number = strtol(word, &end, 10);
    *size = number >= 1 && number <= INT16_MAX ? (int32_t)number : 0;
    return *end == '\0' && *size > 0;
}

/* Turns lines "name height width" into pairs of sizes. */
static int parse_sizes(struct ls_layer *layer, struct ls_error *error, char *text, size_t bytes,
                       struct ls_picture_sizes *pictures)
{
    /* A line has at least six bytes, but for the end of the last one. */
    int32_t *sizes = ls_graph_own(layer->graph, ls_alloc((bytes + 1) / 6 * 2 + 2, sizeof *sizes));
    char *name, *height, *width;
    if (sizes == NULL)
        return ls_fail_memory(error, "sizes of pictures");
    while (next_word(&text, &name)) {
        int32_t *size = sizes + pictures->count * 2;
        if (!next_word(&text, &height) || !next_word(&text, &width) || !read_size(height, size) ||
            !read_size(width, size + 1))
            return ls_layer_fail(layer, error, param_of(layer), "name_size_file",
                                 "each line has a name, a height and a width in pixels",
                                 "entry %lld of '%s', '%.60s', has no height and width",
                                 (long long)pictures->count + 1, param_of(layer)->name_size_file,
                                 name);
        pictures->count++;
    }
    if (pictures->count == 0)
        return ls_layer_fail(layer, error, param_of(layer), "name_size_file", "leave it out",
                             "'%s' has no sizes", param_of(layer)->name_size_file);
    pictures->sizes = sizes;
    return 0;
}

static int read_sizes(struct ls_layer *layer, struct ls_error *error,
                      struct ls_picture_sizes *pictures)
{
    const struct ls_definition *definition = layer->graph->definition;
    const char *name = param_of(layer)->name_size_file;
    struct ls_error reading = {0};
    char *data = NULL;
    size_t size = 0;
    char *path = ls_resolve_path(name, definition != NULL ? definition->file : NULL);
    if (path == NULL)
        return ls_fail_memory(error, "a path");
    int status =
        ls_file_read_text(path, SIZES_BYTES_MAX, LOCKSTEP_DEFINITION, &data, &size, &reading);
    ls_free(path);
    if (status != 0)
        return ls_layer_fail(layer, error, param_of(layer), "name_size_file",
                             "leave it out: boxes are then compared in sizes of the picture",
                             "'%s': %s", name, reading.problems[0].message);
    status = memchr(data, '\0', size) == NULL
                 ? parse_sizes(layer, error, data, size, pictures)
                 : ls_layer_fail(layer, error, param_of(layer), "name_size_file", NULL,
                                 "'%s' is not a text file", name);
    ls_free(data);
    return status;
}

/* How pictures of these sizes became the net's input. */
static int read_fit(struct ls_layer *layer, struct ls_error *error,
                    struct ls_picture_sizes *pictures)
{
    const Lockstep__DetectionEvaluateParameter *p = param_of(layer);
    const Lockstep__ResizeParameter *resize = p->resize_param;
    const bool named = p->name_size_file != NULL && p->name_size_file[0] != '\0';
    if (resize != NULL && !named)
        return ls_layer_fail(layer, error, p, "resize_param",
                             "name_size_file: a file with their sizes",
                             "resize_param needs the sizes of the pictures");
    if (!named)
        return 0;
    LS_TRY(read_sizes(layer, error, pictures));
    if (resize == NULL || resize->resize_mode == LOCKSTEP__RESIZE_PARAMETER__RESIZE_MODE__WARP)
        return 0;
    if (resize->resize_mode == LOCKSTEP__RESIZE_PARAMETER__RESIZE_MODE__FIT_SMALL_SIZE) {
        if (resize->height_scale == 0 || resize->width_scale == 0)
            return 0;
        pictures->fit = LS_FIT_CROPPED;
        pictures->height = resize->height_scale;
        pictures->width = resize->width_scale;
        return 0;
    }
    if (resize->height == 0 || resize->width == 0)
        return ls_layer_fail(layer, error, resize, resize->height == 0 ? "height" : "width", NULL,
                             "height and width of the net's input must be at least 1");
    pictures->fit = LS_FIT_PADDED;
    pictures->height = resize->height;
    pictures->width = resize->width;
    return 0;
}

/* ---- The layer ------------------------------------------------------------------------------- */

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct ls_evaluate_attr *attr = layer->state;
    const Lockstep__DetectionEvaluateParameter *p = param_of(layer);
    const struct ls_value *found = layer->bottom[0];
    LS_TRY(ls_layer_begin(layer, error, NULL));
    LS_TRY(ls_boxes_check_classes(layer, error, layer->definition->detection_evaluate_param,
                                  p->has_num_classes, p->num_classes));
    if (p->background_label_id < -1 || p->background_label_id >= (int64_t)p->num_classes)
        return ls_layer_fail(layer, error, p, "background_label_id", NULL,
                             "background_label_id %d is none of the %u classes, nor -1",
                             p->background_label_id, p->num_classes);
    if (!(p->overlap_threshold > 0 && p->overlap_threshold <= 1))
        return ls_layer_fail(layer, error, p, "overlap_threshold", NULL,
                             "overlap_threshold must be above 0 and at most 1");
    LS_TRY(ls_evaluation_check(layer, error, attr));
    if (found->shape.rank < 2 || found->shape.dim[found->shape.rank - 1] != FOUND_ROW)
        return ls_layer_fail_shape(layer, error, 0,
                                   "have rows of 7 numbers, those of DetectionOutput");
    attr->finds = ls_value_sample_size(found) / FOUND_ROW;
    attr->classes = (int)p->num_classes;
    attr->background = p->background_label_id;
    attr->overlap = p->overlap_threshold;
    attr->difficult = p->evaluate_difficult_gt;
    return read_fit(layer, error, &attr->pictures);
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    return ls_evaluation_forward(layer, error, LS_OP_DETECTION_EVALUATE, layer->state);
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    const struct ls_evaluate_attr *attr = layer->state;
    const double rows = ls_layer_bytes(layer->bottom[0]) / 4 / FOUND_ROW;
    cost->forward_flops = rows * (double)attr->objects * 20;
    cost->forward_bytes = ls_layer_bytes(layer->bottom[0]) + ls_layer_bytes(layer->bottom[1]);
}

const struct ls_layer_type ls_layer_detection_evaluate = {
    .type = "DetectionEvaluate",
    .parameter = "detection_evaluate_param",
    .state_size = sizeof(struct ls_evaluate_attr),
    .bottoms_min = 2,
    .bottoms_max = 2,
    .tops_min = 1,
    .tops_max = 2,
    .better = LS_BETTER_LARGER,
    .setup = setup,
    .forward = forward,
    .cost = cost,
};
