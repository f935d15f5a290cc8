/* Import: the model's inputs.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "onnx/import_view.h"

/* The extents that an option gives for an input: "name=1,3,224,224". */
static bool find_shape(const struct ls_onnx_import *options, const char *name,
                       struct ls_shape *shape)
{
    const size_t length = strlen(name);
    for (size_t i = 0; i < options->shape_count; i++) {
        const char *at = options->shapes[i];
        if (strncmp(at, name, length) != 0 || at[length] != '=')
            continue;
        at += length;
        shape->rank = 0;
        do {
            char *end;
            const long long extent = strtoll(at + 1, &end, 10);
            if (end == at + 1 || extent < 1 || shape->rank == LS_RANK_MAX)
                return false;
            shape->dim[shape->rank++] = extent;
            at = end;
        } while (*at == ',');
        return *at == '\0';
    }
    return false;
}

static int input_shape(struct ls_importer *x, const struct ls_onnx_import *options,
                       const Onnx__ValueInfoProto *info, bool steps, struct ls_shape *shape)
{
    const Onnx__TypeProto__Tensor *type = info->type != NULL ? info->type->tensor_type : NULL;
    if (find_shape(options, info->name, shape))
        return ls_shape_valid(shape, false)
                   ? 0
                   : ls_fail(x->error, LOCKSTEP_USAGE, "--shape", NULL, "it is too large");
    if (type == NULL || type->shape == NULL || type->shape->n_dim > LS_RANK_MAX)
        return ls_fail(x->error, LOCKSTEP_DEFINITION, x->path, "give it with --shape NAME=1,3,...",
                       "the model does not say the shape of its input '%.200s'", info->name);
    shape->rank = (int)type->shape->n_dim;
    for (int i = 0; i < shape->rank; i++) {
        const Onnx__TensorShapeProto__Dimension *dim = type->shape->dim[i];
        const bool known = dim->has_dim_value && dim->dim_value != 0;
        if (!known && i != steps)
            return ls_fail(x->error, LOCKSTEP_DEFINITION, x->path,
                           "give its extents with --shape NAME=1,3,224,224",
                           "the model leaves axis %d of its input '%.200s' open", i, info->name);
        shape->dim[i] = known ? dim->dim_value : 1;
    }
    if (!ls_shape_valid(shape, false) || shape->rank == 0)
        return ls_fail(x->error, LOCKSTEP_DEFINITION, x->path, NULL,
                       "the shape of input '%.200s' has no extents, one below 1, or is too large",
                       info->name);
    return 0;
}

/* Whether a recurrent operator reads an input itself, so that its samples lie along axis 1. */
static bool is_sequence(const struct ls_importer *x, const char *name)
{
    for (size_t i = 0; i < x->graph->n_node; i++) {
        const Onnx__NodeProto *node = x->graph->node[i];
        if (node->op_type == NULL || !ls_import_is_recurrent(node->op_type))
            continue;
        for (size_t k = 0; k < node->n_input; k++)
            if (strcmp(node->input[k], name) == 0)
                return true;
    }
    return false;
}

static bool is_integer(const Onnx__ValueInfoProto *info)
{
    enum ls_dtype type;
    return info->type != NULL && info->type->tensor_type != NULL &&
           ls_onnx_type(info->type->tensor_type->elem_type, &type) && !ls_dtype_is_float(type);
}

/* The net's input has samples first; the model's is a view of that. */
static int put_samples_first(struct ls_importer *x, struct ls_onnx_value *value)
{
    struct ls_onnx_view *view = ls_arena_alloc(x->arena, 1, sizeof *view);
    struct ls_onnx_value base = {.top = value->top, .shape = value->shape};
    base.shape.dim[0] = value->shape.dim[1];
    base.shape.dim[1] = value->shape.dim[0];
    if (view == NULL)
        return ls_import_no_memory(x);
    ls_view_of(&base, view);
    ls_view_transpose(view, (int[]){1, 0, 2}, 3);
    view->made = true;
    value->view = view;
    value->top = NULL;
    value->waiting = true;
    return 0;
}

int ls_import_add_inputs(struct ls_importer *x, const struct ls_onnx_import *options)
{
    struct ls_onnx_net *net = x->net;
    net->inputs = ls_arena_alloc(x->arena, x->graph->n_input + 1, sizeof *net->inputs);
    if (net->inputs == NULL)
        return ls_import_no_memory(x);
    for (size_t i = 0; i < x->graph->n_input; i++) {
        const Onnx__ValueInfoProto *info = x->graph->input[i];
        struct ls_onnx_value *value;
        size_t at;
        if (info->name == NULL || *info->name == '\0')
            return ls_fail(x->error, LOCKSTEP_WEIGHTS, x->path, NULL, "input %zu has no name", i);
        if (ls_names_find(&x->names, info->name, &at))
            continue; /* weights are named among the inputs by old models */
        LS_TRY(ls_import_add_value(x, info->name, &value));
        if (value == NULL)
            return LOCKSTEP_WEIGHTS; /* has a name: see above */
        const bool steps = is_sequence(x, info->name);
        LS_TRY(input_shape(x, options, info, steps, &value->shape));
        value->integers = is_integer(info);
        char *name = ls_arena_copy_string(x->arena, info->name);
        if (name == NULL)
            return ls_import_no_memory(x);
        for (char *c = name; *c != '\0'; c++)
            if (!(*c >= '0' && *c <= '9') && !((*c | 32) >= 'a' && (*c | 32) <= 'z'))
                *c = '_';
        size_t taken;
        if (ls_names_find(&x->layers, name, &taken))
            return ls_fail(x->error, LOCKSTEP_DEFINITION, x->path, NULL,
                           "two inputs would both be called '%.200s'", name);
        if (!ls_names_set(&x->layers, name, 0))
            return ls_import_no_memory(x);
        value->top = name;
        if (steps && value->shape.rank == 3)
            LS_TRY(put_samples_first(x, value));
        net->inputs[net->input_count++] =
            (struct ls_onnx_input){name, value->view != NULL ? value->view->shape : value->shape};
    }
    return 0;
}
