/* SPDX-License-Identifier: BSD-2-Clause */
#include "snapshot/weight_arrays.h"

#include <inttypes.h>
#include <stdint.h>
#include <string.h>

#include "base/memory.h"

/* Room for an array of a shape, which has been checked; NULL without memory. */
static float *new_numbers(struct ls_renamed *room, const struct ls_shape *shape)
{
    if (!LS_GROW(room->owned, room->owned_count, room->owned_capacity))
        return NULL;
    float *numbers = ls_alloc((size_t)ls_shape_size(shape) + 1, sizeof *numbers);
    if (numbers != NULL)
        room->owned[room->owned_count++] = numbers;
    return numbers;
}

static int wrong_shape(const struct ls_array *array, const char *path, const char *why,
                       struct ls_error *error)
{
    char shape[160];
    return ls_fail(error, LOCKSTEP_WEIGHTS, path, NULL, "tensor '%s' has shape %s, which %s",
                   array->name, ls_shape_text(&array->shape, shape, sizeof shape), why);
}

int ls_array_load(struct ls_renamed *room, const struct ls_tensor *tensor, const char *path,
                  struct ls_array *array, struct ls_error *error)
{
    *array = (struct ls_array){.name = tensor->name, .shape = tensor->shape, .data = tensor->data};
    if (!ls_dtype_is_float(tensor->type))
        return ls_fail(error, LOCKSTEP_WEIGHTS, path, NULL,
                       "tensor '%s' has type %s; weights are F32, F64, F16 or BF16", tensor->name,
                       ls_dtype_name(tensor->type));
    if (!ls_shape_valid(&tensor->shape, false))
        return wrong_shape(array, path, "has no elements", error);
    if (tensor->type == LS_F32 && (uintptr_t)tensor->data % ls_dtype_size(LS_F32) == 0)
        return 0;
    float *numbers = new_numbers(room, &tensor->shape);
    if (numbers == NULL)
        return ls_fail_memory(error, path);
    ls_tensor_floats(tensor, numbers);
    array->data = numbers;
    return 0;
}

int ls_array_strip(struct ls_array *array, uint32_t axes, const char *path, struct ls_error *error)
{
    struct ls_shape *shape = &array->shape;
    bool good = axes == 0 || (uint32_t)shape->rank > axes;
    for (uint32_t i = 0; i < axes && good; i++)
        good = shape->dim[i] == 1;
    if (!good)
        return wrong_shape(array, path, "does not begin with the axes of extent 1 that `lead` says",
                           error);
    shape->rank -= (int)axes;
    for (int i = 0; i < shape->rank; i++)
        shape->dim[i] = shape->dim[i + (int)axes];
    return 0;
}

int ls_array_lead(struct ls_array *array, uint32_t axes, const char *path, struct ls_error *error)
{
    struct ls_shape *shape = &array->shape;
    if (axes > (uint32_t)(LS_RANK_MAX - shape->rank))
        return wrong_shape(array, path, "has no room for the axes that `lead` says", error);
    for (int i = shape->rank; i-- > 0;)
        shape->dim[i + (int)axes] = shape->dim[i];
    for (uint32_t i = 0; i < axes; i++)
        shape->dim[i] = 1;
    shape->rank += (int)axes;
    return 0;
}

int ls_array_transpose(struct ls_renamed *room, struct ls_array *array, const char *path,
                       struct ls_error *error)
{
    enum { BLOCK = 32 }; /* of rows and columns, which stay in the cache */
    if (array->shape.rank != 2)
        return wrong_shape(array, path, "has not the two axes that `transpose` asks for", error);
    const int64_t rows = array->shape.dim[0], columns = array->shape.dim[1];
    float *numbers = new_numbers(room, &array->shape);
    if (numbers == NULL)
        return ls_fail_memory(error, path);
    for (int64_t r = 0; r < rows; r += BLOCK)
        for (int64_t c = 0; c < columns; c += BLOCK)
            for (int64_t i = r; i < rows && i < r + BLOCK; i++)
                for (int64_t k = c; k < columns && k < c + BLOCK; k++)
                    numbers[k * rows + i] = array->data[i * columns + k];
    array->shape.dim[0] = columns;
    array->shape.dim[1] = rows;
    array->data = numbers;
    return 0;
}

/* Whether two shapes are the same but for one axis. */
static bool fit_along(const struct ls_shape *a, const struct ls_shape *b, int axis)
{
    bool same = a->rank == b->rank;
    for (int i = 0; i < a->rank && same; i++)
        same = i == axis || a->dim[i] == b->dim[i];
    return same;
}

int ls_array_join(struct ls_renamed *room, const struct ls_array *parts, size_t count, int axis,
                  const char *path, struct ls_array *whole, struct ls_error *error)
{
    *whole = parts[0];
    if (count == 1)
        return 0;
    int along = ls_shape_axis(&parts[0].shape, axis);
    if (along < 0)
        return wrong_shape(&parts[0], path, "does not have the axis along which it is joined",
                           error);
    for (size_t i = 1; i < count; i++) {
        if (!fit_along(&parts[0].shape, &parts[i].shape, along))
            return wrong_shape(&parts[i], path, "does not fit what it is joined with", error);
        whole->shape.dim[along] += parts[i].shape.dim[along];
    }
    if (!ls_shape_valid(&whole->shape, false))
        return wrong_shape(whole, path, "is too large", error);
    float *numbers = new_numbers(room, &whole->shape), *at = numbers;
    if (numbers == NULL)
        return ls_fail_memory(error, path);
    const int64_t rows = ls_shape_count(&whole->shape, 0, along);
    for (int64_t r = 0; r < rows; r++)
        for (size_t i = 0; i < count; i++) {
            int64_t length = ls_shape_count(&parts[i].shape, along, parts[i].shape.rank);
            memcpy(at, parts[i].data + r * length, (size_t)length * sizeof *at);
            at += length;
        }
    whole->data = numbers;
    return 0;
}

int ls_array_cut(struct ls_renamed *room, const struct ls_array *whole, size_t count, int axis,
                 const char *path, struct ls_array *parts, struct ls_error *error)
{
    const struct ls_array from = *whole; /* may be one of the parts */
    parts[0] = from;
    if (count == 1)
        return 0;
    int along = ls_shape_axis(&from.shape, axis);
    if (along < 0 || from.shape.dim[along] % (int64_t)count != 0)
        return wrong_shape(&from, path, "cannot be cut into so many equal parts", error);
    const int64_t rows = ls_shape_count(&from.shape, 0, along);
    for (size_t i = 0; i < count; i++) {
        parts[i] = from;
        parts[i].shape.dim[along] /= (int64_t)count;
        int64_t length = ls_shape_count(&parts[i].shape, along, from.shape.rank);
        float *numbers = new_numbers(room, &parts[i].shape);
        if (numbers == NULL)
            return ls_fail_memory(error, path);
        for (int64_t r = 0; r < rows; r++)
            memcpy(numbers + r * length, from.data + (r * (int64_t)count + (int64_t)i) * length,
                   (size_t)length * sizeof *numbers);
        parts[i].data = numbers;
    }
    return 0;
}

int ls_array_divide(struct ls_renamed *room, struct ls_array *array, float by, const char *path,
                    struct ls_error *error)
{
    const int64_t count = ls_shape_size(&array->shape);
    float *numbers = new_numbers(room, &array->shape);
    if (numbers == NULL)
        return ls_fail_memory(error, path);
    for (int64_t i = 0; i < count; i++)
        numbers[i] = by != 0 ? array->data[i] / by : 0;
    array->data = numbers;
    return 0;
}
