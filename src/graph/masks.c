/* From slices to masks. See graph/masks.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "graph/masks.h"

#include <string.h>

#include "base/memory.h"

typedef Lockstep__MaskParameter__Range range_definition;

static const Lockstep__MaskParameter *masks_of(const Lockstep__ParamSpec *spec)
{
    return spec != NULL ? spec->mask : NULL;
}

/* ---- Checks ---------------------------------------------------------------------------------- */

static int64_t masks_end(const range_definition *range, int64_t extent)
{
    return range->has_end ? range->end : extent;
}

static int masks_check_range(const struct ls_layer *layer, const struct ls_shape *shape,
                             const range_definition *range, struct ls_error *error)
{
    char text[160];
    int axis = range->axis < 0 ? range->axis + shape->rank : range->axis;
    if (axis < 0 || axis >= shape->rank)
        return ls_layer_fail(layer, error, range, range->has_axis ? "axis" : NULL, NULL,
                             "mask: there is no axis %d in a parameter of shape %s",
                             (int)range->axis, ls_shape_text(shape, text, sizeof text));
    int64_t extent = shape->dim[axis], end = masks_end(range, extent);
    if (range->begin < 0 || range->begin >= end)
        return ls_layer_fail(layer, error, range, range->has_begin ? "begin" : "end", NULL,
                             "mask: indices from %lld to %lld are none; `end` is the first that is "
                             "not masked",
                             (long long)range->begin, (long long)end);
    if (end > extent)
        return ls_layer_fail(layer, error, range, "end", NULL,
                             "mask: `end` is %lld, but axis %d of a parameter of shape %s has %lld "
                             "indices",
                             (long long)end, axis, ls_shape_text(shape, text, sizeof text),
                             (long long)extent);
    return 0;
}

int ls_graph_check_mask(const struct ls_layer *layer, int blob, const Lockstep__ParamSpec *spec,
                        struct ls_error *error)
{
    const Lockstep__MaskParameter *mask = masks_of(spec);
    const struct ls_blob_request *request = &layer->request[blob];
    int status = 0;
    if (mask == NULL)
        return 0;
    if (request->average || request->fixed)
        return ls_layer_fail(layer, error, mask, NULL, NULL,
                             "its %s is not learned, so that it can have no mask", request->name);
    if (mask->n_slice == 0 && (mask->source == NULL || mask->source[0] == '\0'))
        return ls_layer_fail(layer, error, mask, NULL,
                             "write slice { range { axis begin end } }, or source: a file of masks",
                             "the mask of its %s masks nothing", request->name);
    if (mask->n_slice > 0 && mask->source != NULL)
        return ls_layer_fail(layer, error, mask, "source", NULL,
                             "the mask of its %s has both slices and a file", request->name);
    for (size_t i = 0; i < mask->n_slice; i++)
        for (size_t k = 0; k < mask->slice[i]->n_range; k++) {
            int result = masks_check_range(layer, &request->shape, mask->slice[i]->range[k], error);
            status = status != 0 ? status : result;
        }
    return status;
}

/* ---- Slices ---------------------------------------------------------------------------------- */

/* Marks a slice, in which indices along each axis lie in [begin, end). */
static void masks_add_box(const struct ls_shape *shape, const int64_t *begin, const int64_t *end,
                          struct ls_mask *mask)
{
    int64_t at[LS_RANK_MAX];
    memcpy(at, begin, sizeof at);
    for (;;) {
        int64_t element = 0;
        for (int axis = 0; axis < shape->rank; axis++)
            element = element * shape->dim[axis] + at[axis];
        ls_mask_set(mask->bits, element);
        int axis = shape->rank - 1;
        while (axis >= 0 && ++at[axis] == end[axis]) {
            at[axis] = begin[axis];
            axis--;
        }
        if (axis < 0)
            return;
    }
}

static void masks_add_slice(const struct ls_shape *shape,
                            const Lockstep__MaskParameter__Slice *slice, struct ls_mask *mask)
{
    int64_t begin[LS_RANK_MAX] = {0}, end[LS_RANK_MAX];
    memcpy(end, shape->dim, (size_t)shape->rank * sizeof *end);
    for (size_t i = 0; i < slice->n_range; i++) {
        const range_definition *range = slice->range[i];
        int axis = range->axis < 0 ? range->axis + shape->rank : range->axis;
        int64_t last = masks_end(range, shape->dim[axis]);
        begin[axis] = range->begin > begin[axis] ? range->begin : begin[axis];
        end[axis] = last < end[axis] ? last : end[axis];
    }
    for (int axis = 0; axis < shape->rank; axis++)
        if (begin[axis] >= end[axis])
            return; /* ranges of one axis have no index in common */
    masks_add_box(shape, begin, end, mask);
}

int ls_graph_make_mask(const struct ls_layer *layer, int blob, const Lockstep__ParamSpec *spec,
                       struct ls_mask **out, struct ls_error *error)
{
    const Lockstep__MaskParameter *definition = masks_of(spec);
    const struct ls_shape *shape = &layer->request[blob].shape;
    *out = NULL;
    if (definition == NULL || definition->n_slice == 0)
        return 0;
    struct ls_mask *mask = *out = ls_mask_new(ls_shape_size(shape));
    if (mask == NULL)
        return ls_fail_memory(error, "a mask");
    for (size_t i = 0; i < definition->n_slice; i++)
        masks_add_slice(shape, definition->slice[i], mask);
    ls_mask_count(mask);
    return 0;
}

/* ---- Sharing --------------------------------------------------------------------------------- */

int ls_graph_check_shared_mask(const struct ls_layer *layer, int blob,
                               const struct ls_parameter *owner, const Lockstep__ParamSpec *spec,
                               struct ls_error *error)
{
    const Lockstep__MaskParameter *mine = masks_of(spec), *theirs = owner->mask_definition;
    if (mine == NULL || mine == theirs)
        return 0;
    bool equal = false;
    if (theirs != NULL && mine->source != NULL && theirs->source != NULL) {
        equal = strcmp(mine->source, theirs->source) == 0;
    } else if (theirs != NULL && mine->source == NULL && theirs->source == NULL) {
        struct ls_mask *mask;
        LS_TRY(ls_graph_make_mask(layer, blob, spec, &mask, error));
        equal = ls_mask_equal(mask, owner->mask);
        ls_free(mask);
    }
    if (equal)
        return 0;
    return ls_layer_fail(layer, error, mine, NULL, "give it in the first of the layers only",
                         "parameter '%s' has %s mask in layer '%s'", owner->name,
                         theirs != NULL ? "another" : "no", owner->layer);
}
