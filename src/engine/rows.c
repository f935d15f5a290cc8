/* Rows of gradients. See engine/rows.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/rows.h"

#include <string.h>

#include "base/memory.h"
#include "engine/exponents.h"

enum {
    MATRIX_LEAST = 1 << 15, /* elements: smaller matrices have a row for each */
    ROWS_MOST = 1 << 24,    /* of several elements: their numbers are laid out as fp32 */
    NUMBERS = 4             /* of 4 bytes that a row takes */
};

/* Elements of a row, in Caffe's order. */
static size_t rows_row_length(const struct ls_shape *shape)
{
    int axis = 0;
    while (axis < shape->rank && shape->dim[axis] == 1)
        axis++;
    return axis < shape->rank ? (size_t)ls_shape_count(shape, axis + 1, shape->rank) : 1;
}

bool ls_rows_are_elements(const struct ls_shape *shape)
{
    size_t elements = (size_t)ls_shape_size(shape);
    return shape->rank < 2 || (shape->rank == 2 && elements < MATRIX_LEAST) ||
           elements / rows_row_length(shape) > ROWS_MOST;
}

size_t ls_rows_plain(const struct ls_parameter *parameter)
{
    size_t elements = (size_t)ls_shape_size(&parameter->shape);
    return ls_rows_are_elements(&parameter->shape) ? elements
                                                   : elements / rows_row_length(&parameter->shape);
}

size_t ls_rows_laid_out(const struct ls_parameter *parameter)
{
    const struct ls_layout *layout =
        parameter->layout != NULL ? parameter->layout : &ls_layout_plain;
    return ls_rows_are_elements(&parameter->shape) ? ls_layout_elements(layout, &parameter->shape)
                                                   : ls_rows_plain(parameter);
}

size_t ls_rows_bytes(const struct ls_parameter *parameter)
{
    return ls_rows_laid_out(parameter) * NUMBERS * sizeof(int32_t);
}

/* ---- Cutting --------------------------------------------------------------------------------- */

/* Finds the row of each element by laying numbers of rows out as weights are. `plain` has room for
 * any parameter, `laid_out`, in the device's memory, too. */
static int rows_cut_rows(struct ls_store *store, int index, float *plain, float *laid_out,
                         struct ls_error *error)
{
    const struct ls_parameter *parameter = store->slots[index].parameter;
    const size_t length = rows_row_length(&parameter->shape);
    const size_t rows = (size_t)ls_shape_size(&parameter->shape) / length;
    for (size_t row = 0, i = 0; row < rows; row++)
        for (size_t end = i + length; i < end; i++)
            plain[i] = (float)(row + 1);
    if (store->slots[index].elements > rows * length) /* padding is of no row */
        LS_TRY(store->device->memory->zero(NULL, laid_out,
                                           store->slots[index].elements * sizeof *laid_out, error));
    LS_TRY(store->device->parameter_from_plain(parameter->layout, &parameter->shape, plain,
                                               laid_out, error));
    return ls_sums_cut_rows(store->sums, index, rows, laid_out, error);
}

static bool rows_are_cut(const struct ls_store *store, size_t index)
{
    return store->slots[index].parameter->trained && !ls_store_has_factors(store, (int)index);
}

static int rows_cut_all(struct ls_store *store, float *plain, float *laid_out,
                        struct ls_error *error)
{
    for (size_t i = 0; i < store->set->count; i++) {
        if (!rows_are_cut(store, i))
            continue;
        if (ls_rows_are_elements(&store->slots[i].parameter->shape))
            LS_TRY(ls_sums_cut_elements(store->sums, (int)i, error));
        else
            LS_TRY(rows_cut_rows(store, (int)i, plain, laid_out, error));
    }
    return 0;
}

int ls_rows_cut(struct ls_store *store, struct ls_error *error)
{
    size_t most = 0;
    for (size_t i = 0; i < store->set->count; i++)
        if (rows_are_cut(store, i) && store->slots[i].elements > most &&
            !ls_rows_are_elements(&store->slots[i].parameter->shape))
            most = store->slots[i].elements; /* padding included */
    float *plain = ls_alloc_aligned(most * sizeof *plain);
    float *laid_out = store->device->memory->create(most * sizeof *laid_out);
    int status = plain == NULL || laid_out == NULL ? ls_fail_memory(error, "gradient sums")
                                                   : rows_cut_all(store, plain, laid_out, error);
    ls_free_aligned(plain);
    store->device->memory->free(laid_out);
    return status;
}

size_t ls_rows_count(const struct ls_store *store, int parameter)
{
    const struct ls_parameter *what = store->slots[parameter].parameter;
    return what->trained && !ls_store_has_factors(store, parameter) ? ls_rows_plain(what) : 0;
}

size_t ls_rows_all(const struct ls_store *store)
{
    size_t rows = 0;
    for (size_t i = 0; i < store->set->count; i++)
        rows += ls_rows_count(store, (int)i);
    return rows;
}

/* ---- Copies ---------------------------------------------------------------------------------- */

/* Whether states lie as elements do, in a layout that is not Caffe's. */
static bool rows_laid_out(const struct ls_store *store, int index)
{
    const struct ls_parameter *parameter = store->slots[index].parameter;
    return ls_rows_are_elements(&parameter->shape) && parameter->layout != &ls_layout_plain;
}

/* A state as near as can be to this one, which a damaged snapshot may have. */
static int32_t rows_state_near(int32_t state)
{
    if (state > LS_SUMS_STATE_UNSET)
        return LS_SUMS_STATE_UNSET;
    return state < -LS_SUMS_STATE_UNSET ? -LS_SUMS_STATE_UNSET : state;
}

/* States between Caffe's order and the parameter's layout, as fp32: they are below 2^24. A layout's
 * padding is zero, and zero stands for a row of which nothing is known. */
static int rows_convert(const struct ls_store *store, int index, const int32_t *from, int32_t *to,
                        bool to_plain, struct ls_error *error)
{
    const struct ls_parameter_state *slot = &store->slots[index];
    const struct ls_parameter *parameter = slot->parameter;
    size_t plain = (size_t)ls_shape_size(&parameter->shape);
    size_t in = to_plain ? slot->elements : plain, out = to_plain ? plain : slot->elements;
    struct ls_mirror laid_out;
    float *caffe = ls_alloc_aligned(plain * sizeof *caffe);
    int status = ls_mirror_create(&laid_out, store->device->memory, ls_parameter_bytes(parameter),
                                  parameter->name, error);
    if (status == 0 && caffe == NULL)
        status = ls_fail_memory(error, parameter->name);
    float *before = to_plain ? laid_out.host : caffe, *after = to_plain ? caffe : laid_out.host;
    for (size_t i = 0; status == 0 && i < in; i++)
        before[i] = (float)(rows_state_near(from[i]) - LS_SUMS_STATE_UNSET);
    if (status == 0 && to_plain)
        status = ls_mirror_write(&laid_out, 0, ls_parameter_bytes(parameter), error);
    if (status == 0)
        status = to_plain
                     ? store->device->parameter_to_plain(parameter->layout, &parameter->shape,
                                                         laid_out.device, caffe, error)
                     : store->device->parameter_from_plain(parameter->layout, &parameter->shape,
                                                           caffe, laid_out.device, error);
    if (status == 0 && !to_plain)
        status = ls_mirror_read(&laid_out, 0, ls_parameter_bytes(parameter), error);
    for (size_t i = 0; status == 0 && i < out; i++)
        to[i] = (int32_t)after[i] + LS_SUMS_STATE_UNSET;
    ls_free_aligned(caffe);
    ls_mirror_free(&laid_out);
    return status;
}

int ls_rows_read(const struct ls_store *store, int parameter, int32_t *plain,
                 struct ls_error *error)
{
    const int32_t *state = ls_sums_state(store->sums, parameter);
    if (ls_rows_count(store, parameter) > 0 && rows_laid_out(store, parameter))
        return rows_convert(store, parameter, state, plain, true, error);
    memcpy(plain, state, ls_rows_count(store, parameter) * sizeof *plain);
    return 0;
}

int ls_rows_write(struct ls_store *store, int parameter, const int32_t *plain,
                  struct ls_error *error)
{
    if (ls_rows_count(store, parameter) == 0)
        return 0;
    if (!rows_laid_out(store, parameter)) {
        ls_sums_set_state(store->sums, parameter, plain);
        return 0;
    }
    int32_t *state = ls_alloc(ls_sums_rows(store->sums, parameter), sizeof *state);
    int status = state == NULL ? ls_fail_memory(error, "a snapshot")
                               : rows_convert(store, parameter, plain, state, false, error);
    if (status == 0)
        ls_sums_set_state(store->sums, parameter, state);
    ls_free(state);
    return status;
}
