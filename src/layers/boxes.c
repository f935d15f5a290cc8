/* See layers/boxes.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/boxes.h"

#include <math.h>

enum { BOX = 4, TRUE_BOX = 8, YOLO = 5 /* numbers of an anchor, without classes */ };

int ls_boxes_check_classes(const struct ls_layer *layer, struct ls_error *error,
                           const void *message, bool given, uint32_t classes)
{
    if (given && classes >= 1 && classes <= INT16_MAX)
        return 0;
    return ls_layer_fail(layer, error, message, given ? "num_classes" : NULL, NULL,
                         given ? "num_classes must be 1 to 32767" : "num_classes is missing");
}

int ls_boxes_check(const struct ls_layer *layer, struct ls_error *error, int64_t classes,
                   bool by_class, int64_t *priors)
{
    const struct ls_value *place = layer->bottom[0], *score = layer->bottom[1];
    const struct ls_value *prior = layer->bottom[2];
    char text[160];
    LS_TRY(ls_layer_check_samples(layer, error, 0));
    LS_TRY(ls_layer_check_samples(layer, error, 1));
    LS_TRY(ls_layer_check_alike(layer, error, 1));
    if (prior->sample_axis >= 0 || prior->shape.rank != 3 || prior->shape.dim[0] != 1 ||
        prior->shape.dim[1] != 2 || prior->shape.dim[2] % BOX != 0)
        return ls_layer_fail(layer, error, NULL, "bottom", NULL,
                             "its bottom '%s' must be the boxes of PriorBox layers, joined along "
                             "axis 2, but is %s%s",
                             prior->name, ls_shape_text(&prior->shape, text, sizeof text),
                             prior->sample_axis >= 0 ? ", for samples" : "");
    *priors = prior->shape.dim[2] / BOX;
    const int64_t samples = place->shape.dim[0] / place->rows;
    const int64_t numbers = by_class ? classes * BOX : BOX;
    if (ls_shape_size(&place->shape) != samples * *priors * numbers)
        return ls_layer_fail(
            layer, error, NULL, "bottom", NULL,
            "its bottom '%s' must have %lld numbers for each of %lld boxes%s, but is %s",
            place->name, (long long)numbers, (long long)*priors,
            by_class ? " (share_location: false has 4 for each class)" : "",
            ls_shape_text(&place->shape, text, sizeof text));
    if (ls_shape_size(&score->shape) != samples * *priors * classes)
        return ls_layer_fail(
            layer, error, NULL, "bottom", NULL,
            "its bottom '%s' must have %lld numbers for each of %lld boxes, but is "
            "%s",
            score->name, (long long)classes, (long long)*priors,
            ls_shape_text(&score->shape, text, sizeof text));
    return 0;
}

int ls_boxes_check_truths(const struct ls_layer *layer, struct ls_error *error, int bottom,
                          int64_t *objects)
{
    const struct ls_value *rows = layer->bottom[bottom];
    LS_TRY(ls_layer_check_samples(layer, error, bottom));
    LS_TRY(ls_layer_check_alike(layer, error, bottom));
    *objects = ls_value_sample_size(rows) / TRUE_BOX;
    if (rows->shape.rank > 1 && rows->shape.dim[rows->shape.rank - 1] == TRUE_BOX)
        return 0;
    return ls_layer_fail_shape(layer, error, bottom,
                               "have rows of 8 numbers, one for each true box");
}

int ls_boxes_check_anchors(const struct ls_layer *layer, struct ls_error *error,
                           const void *message, const float *sizes, size_t given, int64_t count)
{
    if (given != 2 * (size_t)count)
        return ls_layer_fail(layer, error, message, given > 0 ? "biases" : NULL,
                             "give a width and a height for each anchor",
                             "%zu biases for %lld anchors; there must be two for each", given,
                             (long long)count);
    for (size_t i = 0; i < given; i++)
        if (!(sizes[i] > 0 && isfinite(sizes[i])))
            return ls_layer_fail(layer, error, message, "biases", NULL,
                                 "the size %g of an anchor must be a number above 0",
                                 (double)sizes[i]);
    return 0;
}

int ls_boxes_check_planes(const struct ls_layer *layer, struct ls_error *error, int bottom,
                          int64_t anchors, int64_t classes)
{
    const struct ls_shape *x = &layer->bottom[bottom]->shape;
    const int64_t planes = anchors * (YOLO + classes);
    char text[160];
    LS_TRY(ls_layer_check_samples(layer, error, bottom));
    if (x->rank == 4 && x->dim[1] == planes)
        return 0;
    return ls_layer_fail(layer, error, NULL, "bottom", NULL,
                         "its bottom '%s' must have 4 axes with %lld channels (%lld anchors, 5 "
                         "numbers and %lld classes each), but is %s",
                         layer->bottom[bottom]->name, (long long)planes, (long long)anchors,
                         (long long)classes, ls_shape_text(x, text, sizeof text));
}

void ls_boxes_note_side(const struct ls_layer *layer, int bottom, bool given, uint32_t side)
{
    const struct ls_shape *x = &layer->bottom[bottom]->shape;
    if (given && (x->dim[2] != side || x->dim[3] != side))
        ls_graph_ignore(layer->graph, layer, "side");
}

enum ls_box_code ls_boxes_code(Lockstep__PriorBoxParameter__CodeType code)
{
    switch (code) {
    case LOCKSTEP__PRIOR_BOX_PARAMETER__CODE_TYPE__CENTER_SIZE:
        return LS_BOX_CENTER_SIZE;
    case LOCKSTEP__PRIOR_BOX_PARAMETER__CODE_TYPE__CORNER_SIZE:
        return LS_BOX_CORNER_SIZE;
    default:
        return LS_BOX_CORNER;
    }
}
