/* See onnx/exporter.h. SPDX-License-Identifier: BSD-2-Clause */
#include "onnx/exporter.h"

#include <stdio.h>
#include <string.h>

/* ---- Names ----------------------------------------------------------------------------------- */

const float *ls_onnx_weights(struct ls_exporter *x, const struct ls_value *parameter)
{
    const float *numbers = NULL;
    int status = x->options->weights(x->options->user, parameter->parameter, &numbers, x->error);
    if (status == 0)
        return numbers;
    x->status = status;
    return NULL;
}

const char *ls_onnx_of(struct ls_exporter *x, const struct ls_value *value)
{
    if (value->storage == LS_STORE_PARAMETER && x->names[value->index] == NULL) {
        const float *numbers = ls_onnx_weights(x, value);
        const char *name = ls_onnx_name(x->writer, value->name);
        if (numbers != NULL)
            ls_onnx_add_floats(x->writer, name, &value->shape, numbers);
        x->names[value->index] = name;
    }
    if (x->names[value->index] == NULL)
        x->names[value->index] = ls_onnx_name(x->writer, value->name);
    return x->names[value->index];
}

const char *ls_onnx_in(struct ls_exporter *x, int index)
{
    return ls_onnx_has(x->op, index) ? ls_onnx_of(x, x->op->input[index]) : NULL;
}

const char *ls_onnx_out(struct ls_exporter *x, int index)
{
    return index < x->op->outputs && x->op->output[index] != NULL
               ? ls_onnx_of(x, x->op->output[index])
               : NULL;
}

const char *ls_onnx_emit(struct ls_exporter *x, const char *type, const char *out,
                         const char *const *inputs, size_t count)
{
    if (out == NULL) {
        char wish[200];
        snprintf(wish, sizeof wish, "%.120s/%s", x->writer->scope, type);
        out = ls_onnx_name(x->writer, wish);
    }
    ls_onnx_add_node(x->writer, type, inputs, count, &out, 1);
    return out;
}

void ls_onnx_same(struct ls_exporter *x, const char *name, const struct ls_value *out)
{
    if (x->names[out->index] == NULL)
        x->names[out->index] = name;
    else
        LS_EMIT(x, "Identity", x->names[out->index], name);
}

/* ---- Shapes ---------------------------------------------------------------------------------- */

void ls_onnx_dims(const struct ls_exporter *x, const struct ls_value *value,
                  int64_t dims[LS_RANK_MAX])
{
    const int64_t batch = x->options->batch, samples = x->graph->samples;
    const int axis = value->sample_axis;
    memcpy(dims, value->shape.dim, LS_RANK_MAX * sizeof *dims);
    if (axis >= 0 && dims[axis] == value->rows * samples &&
        (batch != samples || value->selected != NULL))
        dims[axis] = batch < 0 || value->selected != NULL ? -1 : value->rows * batch;
}

const char *ls_onnx_reshape(struct ls_exporter *x, const char *in, const char *out,
                            const int64_t *dims, int rank)
{
    return LS_EMIT(x, "Reshape", out, in, ls_onnx_integers(x->writer, dims, (size_t)rank));
}

const char *ls_onnx_reshape_as(struct ls_exporter *x, const char *in, const char *out,
                               const struct ls_value *value)
{
    int64_t dims[LS_RANK_MAX];
    ls_onnx_dims(x, value, dims);
    return ls_onnx_reshape(x, in, out, dims, value->shape.rank);
}

const char *ls_onnx_transpose(struct ls_exporter *x, const char *in, const char *out,
                              const int64_t *order, int rank)
{
    bool same = true;
    for (int i = 0; i < rank; i++)
        same = same && order[i] == i;
    if (same && out == NULL)
        return in;
    const char *name = LS_EMIT(x, "Transpose", out, in);
    ls_onnx_set_ints(x->writer, "perm", order, (size_t)rank);
    return name;
}

/* The samples of a run, or what is in proportion to them, as a list of one integer. */
static const char *count_rows(struct ls_exporter *x, int64_t rows)
{
    const struct ls_value *anchor = x->anchor;
    const char *shape = LS_EMIT(x, "Shape", NULL, x->anchor_name);
    const char *count =
        ls_onnx_cut(x, shape, NULL, 0, anchor->sample_axis, anchor->sample_axis + 1);
    if (rows % anchor->rows == 0 && rows != anchor->rows)
        return LS_EMIT(x, "Mul", NULL, count,
                       ls_onnx_integers(x->writer, &(int64_t){rows / anchor->rows}, 1));
    if (rows == anchor->rows)
        return count;
    count = LS_EMIT(x, "Div", NULL, count, ls_onnx_integers(x->writer, &anchor->rows, 1));
    return LS_EMIT(x, "Mul", NULL, count, ls_onnx_integers(x->writer, &rows, 1));
}

const char *ls_onnx_shape_of(struct ls_exporter *x, const struct ls_value *value)
{
    int64_t dims[LS_RANK_MAX];
    const int rank = value->shape.rank, axis = value->sample_axis;
    ls_onnx_dims(x, value, dims);
    if (axis < 0 || dims[axis] >= 0)
        return ls_onnx_integers(x->writer, dims, (size_t)rank);
    if (value->selected != NULL) {
        ls_onnx_refuse(x, "name a blob in front of it as the output: --blob",
                       "its size goes with the samples that a Filter layer leaves");
        return "";
    }
    if (x->anchor == NULL) {
        ls_onnx_refuse(x, "--batch 1, for example",
                       "its size goes with the batch, and the model has no input to see that by");
        return "";
    }
    const char *rows = count_rows(x, value->rows);
    const char *parts[3];
    size_t count = 0;
    if (axis > 0)
        parts[count++] = ls_onnx_integers(x->writer, dims, (size_t)axis);
    parts[count++] = rows;
    if (axis < rank - 1)
        parts[count++] = ls_onnx_integers(x->writer, dims + axis + 1, (size_t)(rank - 1 - axis));
    const char *shape = ls_onnx_emit(x, "Concat", NULL, parts, count);
    ls_onnx_set_int(x->writer, "axis", 0);
    return shape;
}

static const char *cast(struct ls_exporter *x, const char *in, const char *out, int type)
{
    const char *name = LS_EMIT(x, "Cast", out, in);
    ls_onnx_set_int(x->writer, "to", type);
    return name;
}

const char *ls_onnx_as_integers(struct ls_exporter *x, const struct ls_value *value)
{
    return cast(x, ls_onnx_of(x, value), NULL, ONNX__TENSOR_PROTO__DATA_TYPE__INT64);
}

const char *ls_onnx_as_floats(struct ls_exporter *x, const struct ls_value *value)
{
    const char *name = ls_onnx_of(x, value);
    const bool is_float = ls_dtype_is_float(value->type);
    return is_float ? name : cast(x, name, NULL, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT);
}

const char *ls_onnx_as_numbers(struct ls_exporter *x, const char *in, const char *out)
{
    return cast(x, in, out, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT);
}

const char *ls_onnx_unsqueeze(struct ls_exporter *x, const char *in, const char *out,
                              const int64_t *axes, size_t count)
{
    return LS_EMIT(x, "Unsqueeze", out, in, ls_onnx_integers(x->writer, axes, count));
}

const char *ls_onnx_squeeze(struct ls_exporter *x, const char *in, const char *out, int64_t axis)
{
    return LS_EMIT(x, "Squeeze", out, in, ls_onnx_integers(x->writer, &axis, 1));
}

const char *ls_onnx_cut(struct ls_exporter *x, const char *in, const char *out, int64_t axis,
                        int64_t begin, int64_t end)
{
    return LS_EMIT(x, "Slice", out, in, ls_onnx_integers(x->writer, &begin, 1),
                   ls_onnx_integers(x->writer, &end, 1), ls_onnx_integers(x->writer, &axis, 1));
}

/* ---- Weights --------------------------------------------------------------------------------- */

float *ls_onnx_new_numbers(struct ls_exporter *x, size_t count)
{
    float *numbers = ls_arena_alloc(x->writer->arena, count + 1, sizeof *numbers);
    x->writer->failed |= numbers == NULL;
    return numbers;
}

const char *ls_onnx_add_weights(struct ls_exporter *x, const char *name,
                                const struct ls_shape *shape, const float *numbers)
{
    const char *made = ls_onnx_name(x->writer, name);
    if (numbers != NULL)
        ls_onnx_add_floats(x->writer, made, shape, numbers);
    return made;
}
