/* What the functions that import nodes share. See onnx/importer.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "onnx/importer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "onnx/import_view.h"

int ls_import_cannot(struct ls_importer *x, const char *hint, const char *format, ...)
{
    char place[320], message[600];
    va_list list;
    va_start(list, format);
    vsnprintf(message, sizeof message, format, list);
    va_end(list);
    const char *name = x->node->name;
    if (name != NULL && *name != '\0')
        snprintf(place, sizeof place, "node '%.200s'", name);
    else
        snprintf(place, sizeof place, "node %zu", x->index);
    x->status = LOCKSTEP_DEFINITION;
    return ls_fail(x->error, LOCKSTEP_DEFINITION, place, hint, "%.60s: %s", x->node->op_type,
                   message);
}

int ls_import_no_memory(struct ls_importer *x)
{
    x->status = LOCKSTEP_RESOURCE;
    return ls_fail_memory(x->error, "an ONNX model");
}

/* ---- Attributes ------------------------------------------------------------------------------ */

const Onnx__AttributeProto *ls_import_attribute(const struct ls_importer *x, const char *name)
{
    for (size_t i = 0; i < x->node->n_attribute; i++)
        if (x->node->attribute[i]->name != NULL && strcmp(x->node->attribute[i]->name, name) == 0)
            return x->node->attribute[i];
    return NULL;
}

int64_t ls_import_integer(const struct ls_importer *x, const char *name, int64_t otherwise)
{
    const Onnx__AttributeProto *attribute = ls_import_attribute(x, name);
    return attribute != NULL && attribute->has_i ? attribute->i : otherwise;
}

float ls_import_real(const struct ls_importer *x, const char *name, float otherwise)
{
    const Onnx__AttributeProto *attribute = ls_import_attribute(x, name);
    return attribute != NULL && attribute->has_f ? attribute->f : otherwise;
}

bool ls_import_text_is(const struct ls_importer *x, const char *name, const char *text,
                       bool otherwise)
{
    const Onnx__AttributeProto *attribute = ls_import_attribute(x, name);
    if (attribute == NULL || !attribute->has_s)
        return otherwise;
    return attribute->s.len == strlen(text) &&
           memcmp(attribute->s.data, text, attribute->s.len) == 0;
}

int ls_import_integers(struct ls_importer *x, const char *name, int index, const int64_t **out,
                       int64_t *count)
{
    const Onnx__AttributeProto *attribute = name != NULL ? ls_import_attribute(x, name) : NULL;
    *out = NULL;
    *count = -1;
    if (attribute != NULL) {
        *out = attribute->ints;
        *count = (int64_t)attribute->n_ints;
        return 0;
    }
    if (index < 0 || ls_import_input(x, index) == NULL)
        return 0;
    struct ls_onnx_value *value = ls_import_constant(x, index);
    if (value == NULL)
        return x->status;
    if (!value->integers)
        return ls_import_cannot(x, NULL, "input %d are no integers", index);
    *out = value->wholes;
    *count = ls_shape_size(&value->shape);
    return 0;
}

int ls_import_number(struct ls_importer *x, const char *name, int index, double otherwise,
                     double *out)
{
    *out = otherwise;
    const Onnx__AttributeProto *attribute = name != NULL ? ls_import_attribute(x, name) : NULL;
    if (attribute != NULL) {
        *out = attribute->has_f ? (double)attribute->f : (double)attribute->i;
        return 0;
    }
    if (index < 0 || ls_import_input(x, index) == NULL)
        return 0;
    struct ls_onnx_value *value = ls_import_constant(x, index);
    if (value == NULL)
        return x->status;
    if (ls_shape_size(&value->shape) != 1)
        return ls_import_cannot(x, NULL, "input %d is not one number", index);
    *out = ls_import_number_at(value, 0);
    return 0;
}

double ls_import_number_at(const struct ls_onnx_value *value, int64_t i)
{
    return value->integers ? (double)value->wholes[i] : (double)value->reals[i];
}

int ls_import_axis(struct ls_importer *x, int64_t axis, int rank)
{
    if (axis >= -rank && axis < rank)
        return (int)(axis < 0 ? axis + rank : axis);
    ls_import_cannot(x, NULL, "axis %lld is none of %d", (long long)axis, rank);
    return -1;
}

/* ---- Values ---------------------------------------------------------------------------------- */

static struct ls_onnx_value *find(const struct ls_importer *x, char **names, size_t count,
                                  int index)
{
    size_t at;
    if ((size_t)index >= count || *names[index] == '\0' ||
        !ls_names_find(&x->names, names[index], &at))
        return NULL;
    return &x->values[at];
}

struct ls_onnx_value *ls_import_input(const struct ls_importer *x, int index)
{
    return find(x, x->node->input, x->node->n_input, index);
}

struct ls_onnx_value *ls_import_output(const struct ls_importer *x, int index)
{
    return find(x, x->node->output, x->node->n_output, index);
}

struct ls_onnx_value *ls_import_blob(struct ls_importer *x, int index)
{
    struct ls_onnx_value *value = ls_import_input(x, index);
    if (value == NULL)
        ls_import_cannot(x, NULL, "input %d is missing", index);
    else if (value->constant) {
        ls_import_cannot(x, NULL, "input %d is a constant, where a layer reads a blob", index);
        return NULL;
    }
    return value != NULL && ls_import_write(x, value) == 0 ? value : NULL;
}

struct ls_onnx_value *ls_import_constant(struct ls_importer *x, int index)
{
    struct ls_onnx_value *value = ls_import_input(x, index);
    if (value == NULL)
        ls_import_cannot(x, NULL, "input %d is missing", index);
    else if (!value->constant) {
        ls_import_cannot(x, NULL,
                         "input %d depends on the model's input, where a layer has weights "
                         "or a constant",
                         index);
        return NULL;
    }
    return value != NULL && ls_import_numbers_of(x, value) == 0 ? value : NULL;
}

float *ls_import_new_reals(struct ls_importer *x, int64_t count)
{
    float *numbers = ls_arena_alloc(x->arena, (size_t)count + 1, sizeof *numbers);
    if (numbers == NULL)
        ls_import_no_memory(x);
    return numbers;
}

static bool is_whole(enum ls_dtype type)
{
    return type != LS_F32 && type != LS_F64 && type != LS_F16 && type != LS_BF16;
}

int ls_import_numbers_of(struct ls_importer *x, struct ls_onnx_value *value)
{
    if (!value->constant || value->tensor == NULL)
        return 0;
    struct ls_onnx_array array;
    int status = ls_onnx_tensor_read(value->tensor, x->path, &array, x->error);
    if (status != 0) {
        ls_onnx_array_free(&array);
        return x->status = status;
    }
    if (is_whole(array.type)) {
        int64_t *wholes = ls_arena_alloc(x->arena, array.count + 1, sizeof *wholes);
        for (size_t i = 0; wholes != NULL && i < array.count; i++)
            wholes[i] = ls_onnx_array_integer(&array, i);
        value->wholes = wholes;
        value->integers = true;
    } else {
        float *reals = ls_arena_alloc(x->arena, array.count + 1, sizeof *reals);
        if (reals != NULL)
            ls_onnx_array_floats(&array, reals);
        value->reals = reals;
    }
    ls_onnx_array_free(&array);
    value->tensor = NULL;
    return value->wholes == NULL && value->reals == NULL ? ls_import_no_memory(x) : 0;
}

const float *ls_import_reals_of(struct ls_importer *x, struct ls_onnx_value *value)
{
    if (ls_import_numbers_of(x, value) != 0)
        return NULL;
    if (value->reals == NULL) {
        const int64_t count = ls_shape_size(&value->shape);
        float *reals = ls_import_new_reals(x, count);
        for (int64_t i = 0; reals != NULL && i < count; i++)
            reals[i] = (float)value->wholes[i];
        value->reals = reals;
    }
    return value->reals;
}

int ls_import_result(struct ls_importer *x, int index, const char *top,
                     const struct ls_shape *shape)
{
    struct ls_onnx_value *value = ls_import_output(x, index);
    if (top == NULL)
        return x->status;
    if (!ls_shape_valid(shape, false))
        return ls_import_cannot(x, NULL, "output %d would be empty or too large", index);
    if (value == NULL)
        return 0;
    const struct ls_onnx_value *first = ls_import_input(x, 0);
    value->shape = *shape;
    value->top = top;
    value->integers = first != NULL && !first->constant && first->integers;
    return 0;
}

int ls_import_hand_on(struct ls_importer *x, const struct ls_onnx_value *from, int index)
{
    struct ls_onnx_value *value = ls_import_output(x, index);
    if (value == NULL)
        return 0;
    const struct ls_onnx_value kept = *value;
    *value = *from;
    value->name = kept.name;
    value->uses = kept.uses;
    value->user = kept.user;
    value->maker = kept.maker;
    value->depth++;
    return value->waiting && value->depth > LS_IMPORT_DEPTH ? ls_import_write(x, value) : 0;
}

bool ls_import_broadcast(const struct ls_shape *a, const struct ls_shape *b, struct ls_shape *out)
{
    out->rank = a->rank > b->rank ? a->rank : b->rank;
    for (int i = 1; i <= out->rank; i++) {
        const int64_t da = i <= a->rank ? a->dim[a->rank - i] : 1;
        const int64_t db = i <= b->rank ? b->dim[b->rank - i] : 1;
        if (da != db && da != 1 && db != 1)
            return false;
        out->dim[out->rank - i] = da == 1 ? db : da;
    }
    return true;
}
