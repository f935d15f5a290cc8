/* Masks of a training. See solver/masks.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/masks.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "solver/notes.h"

/* ---- Files ----------------------------------------------------------------------------------- */

/* Of a tensor of bytes, or of floating-point `numbers`; false: it is neither 0 nor 1. */
static bool masks_element(const struct ls_tensor *tensor, const float *numbers, int64_t i,
                          bool *masked)
{
    const unsigned char *bytes = tensor->data;
    float number = numbers != NULL ? numbers[i] : (float)bytes[i];
    *masked = number == 0;
    return number == 0 || number == 1;
}

/* The mask that a tensor of zeros and ones says. */
static int masks_fill(const char *path, const struct ls_tensor *tensor, struct ls_mask *mask,
                      struct ls_error *error)
{
    float *numbers = NULL;
    int status = 0;
    if (ls_dtype_is_float(tensor->type)) {
        numbers = ls_alloc_aligned((size_t)mask->size * sizeof *numbers);
        if (numbers == NULL)
            return ls_fail_memory(error, "a mask");
        ls_tensor_floats(tensor, numbers);
    }
    for (int64_t i = 0; i < mask->size && status == 0; i++) {
        bool masked;
        if (!masks_element(tensor, numbers, i, &masked))
            status = ls_fail(error, LOCKSTEP_WEIGHTS, path,
                             "a mask has 0 where a weight stays zero, else 1",
                             "the mask '%s' has another number than 0 and 1 at element %lld",
                             tensor->name, (long long)i);
        else if (masked)
            ls_mask_set(mask->bits, i);
    }
    ls_free_aligned(numbers);
    ls_mask_count(mask);
    return status;
}

/* Whether two shapes are the same but for ones in front, which old caffemodels have. */
static bool masks_fit(const struct ls_shape *a, const struct ls_shape *b)
{
    int skip = a->rank - b->rank;
    if (skip < 0)
        return masks_fit(b, a);
    for (int axis = 0; axis < a->rank; axis++)
        if (a->dim[axis] != (axis < skip ? 1 : b->dim[axis - skip]))
            return false;
    return true;
}

static int masks_take(const struct ls_archive *file, const struct ls_tensor *tensor,
                      struct ls_parameter *parameter, struct ls_error *error)
{
    char there[160], wanted[160];
    if (parameter->average)
        return ls_fail(error, LOCKSTEP_WEIGHTS, file->path, NULL,
                       "'%s' is not learned, so that it can have no mask", tensor->name);
    if (!masks_fit(&tensor->shape, &parameter->shape))
        return ls_fail(error, LOCKSTEP_WEIGHTS, file->path, NULL,
                       "the mask '%s' has shape %s, but the parameter %s", tensor->name,
                       ls_shape_text(&tensor->shape, there, sizeof there),
                       ls_shape_text(&parameter->shape, wanted, sizeof wanted));
    if (!ls_dtype_is_float(tensor->type) && tensor->type != LS_BOOL && tensor->type != LS_U8 &&
        tensor->type != LS_I8)
        return ls_fail(error, LOCKSTEP_WEIGHTS, file->path, "write it as U8 or BOOL",
                       "the mask '%s' has elements of type %s", tensor->name,
                       ls_dtype_name(tensor->type));
    parameter->mask = ls_mask_new(ls_shape_size(&parameter->shape));
    if (parameter->mask == NULL)
        return ls_fail_memory(error, "a mask");
    return masks_fill(file->path, tensor, parameter->mask, error);
}

/* The mask of a parameter whose definition names a file. */
static int masks_read_one(struct ls_parameter *parameter, struct ls_error *error)
{
    struct ls_archive file = {0};
    LS_TRY(ls_archive_read(parameter->mask_file, LS_ARCHIVE_CHECK, &file, error));
    const struct ls_tensor *tensor = ls_archive_find(&file, parameter->name);
    int status = tensor != NULL ? masks_take(&file, tensor, parameter, error)
                                : ls_fail(error, LOCKSTEP_WEIGHTS, file.path,
                                          "tensors have the names of parameters",
                                          "there is no mask '%s' in it", parameter->name);
    ls_archive_free(&file);
    return status;
}

/* One tensor of the solver's file. */
static int masks_take_any(const struct ls_parameter_set *set, const struct ls_archive *file,
                          const struct ls_tensor *tensor, struct ls_error *error)
{
    struct ls_parameter *parameter = ls_parameter_find(set, tensor->name);
    if (parameter == NULL)
        return ls_fail(error, LOCKSTEP_WEIGHTS, file->path, "tensors have the names of parameters",
                       "there is a mask '%s', but no parameter of this name", tensor->name);
    if (parameter->mask_definition != NULL)
        return ls_fail(error, LOCKSTEP_WEIGHTS, file->path, "leave out one of the two",
                       "'%s' has a mask here and another one in its layer", tensor->name);
    return parameter->mask == NULL ? masks_take(file, tensor, parameter, error) : 0;
}

int ls_masks_read(const struct ls_parameter_set *set, const char *all, struct ls_error *error)
{
    struct ls_archive file = {0};
    int status = 0;
    for (size_t i = 0; i < set->count; i++) {
        struct ls_parameter *parameter = set->items[i];
        if (parameter->mask_definition == NULL || parameter->mask != NULL)
            continue;
        int result = masks_read_one(parameter, error);
        status = status != 0 ? status : result;
    }
    if (status != 0 || all == NULL)
        return status;
    LS_TRY(ls_archive_read(all, LS_ARCHIVE_CHECK, &file, error));
    for (size_t i = 0; i < file.tensor_count; i++) {
        int result = masks_take_any(set, &file, &file.tensors[i], error);
        status = status != 0 ? status : result;
    }
    ls_archive_free(&file);
    return status;
}

/* ---- Comparison ------------------------------------------------------------------------------ */

int64_t ls_masks_count(const struct ls_parameter_set *set)
{
    int64_t count = 0;
    for (size_t i = 0; i < set->count; i++)
        count += set->items[i]->mask != NULL ? set->items[i]->mask->masked : 0;
    return count;
}

void ls_masks_describe(const struct ls_parameter_set *set, char text[LS_MASKS_TEXT])
{
    uint64_t hash = 0;
    bool any = false;
    for (size_t i = 0; i < set->count; i++) {
        const struct ls_parameter *parameter = set->items[i];
        if (parameter->mask == NULL)
            continue;
        any = true;
        hash = ls_mask_hash(parameter->mask, ls_hash_string(parameter->name, hash));
    }
    if (any)
        snprintf(text, LS_MASKS_TEXT, "%lld weights, %016llx", (long long)ls_masks_count(set),
                 (unsigned long long)hash);
    else
        snprintf(text, LS_MASKS_TEXT, "none");
}

int ls_masks_compare(const struct ls_parameter_set *set, const struct ls_archive *snapshot,
                     struct ls_error *error)
{
    char now[LS_MASKS_TEXT];
    const char *before = ls_archive_note(snapshot, LS_NOTE_MASKS);
    before = before != NULL ? before : "none";
    ls_masks_describe(set, now);
    return strcmp(before, now) == 0
               ? 0
               : ls_fail(error, LOCKSTEP_WEIGHTS, snapshot->path,
                         "a resume continues the same training; use --weights to start a new one "
                         "from these weights",
                         "the snapshot was made with another mask: %s, now %s", before, now);
}
