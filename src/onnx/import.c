/* Import: the model as a whole.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "onnx/import.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/memory.h"
#include "onnx/import_view.h"
#include "schema/binary.h"

struct ls_onnx_memory {
    struct ls_definition *model;
    struct ls_arena *arena;
};

static const struct ls_onnx_operator *const operators[] = {
    ls_onnx_read_places,   ls_onnx_read_recurrent, ls_onnx_read_arithmetic, ls_onnx_read_attention,
    ls_onnx_read_elements, ls_onnx_read_lookups,   ls_onnx_read_norms,      ls_onnx_read_parts,
    ls_onnx_read_pooling,  ls_onnx_read_products,  ls_onnx_read_resize,     ls_onnx_read_shapes,
    ls_onnx_read_windows,
};

ls_onnx_reader ls_import_reader(const char *type)
{
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        for (const struct ls_onnx_operator *o = operators[i]; o->name != NULL; o++)
            if (strcmp(o->name, type) == 0)
                return o->read;
    return NULL;
}

/* ---- The model's values ---------------------------------------------------------------------- */

int ls_import_add_value(struct ls_importer *x, const char *name, struct ls_onnx_value **out)
{
    size_t at;
    *out = NULL;
    if (name == NULL || *name == '\0')
        return 0;
    if (ls_names_find(&x->names, name, &at))
        return ls_fail(x->error, LOCKSTEP_WEIGHTS, x->path, NULL,
                       "'%.200s' is made twice in this model", name);
    if (!ls_names_set(&x->names, name, x->value_count))
        return ls_import_no_memory(x);
    *out = &x->values[x->value_count++];
    **out = (struct ls_onnx_value){.name = name, .maker = SIZE_MAX};
    return 0;
}

/* Adds the values that nodes make, and notes which nodes read each value. An input of a node must
 * have been made by a node before it, so there are no circles. */
static int add_nodes(struct ls_importer *x)
{
    const Onnx__GraphProto *graph = x->graph;
    for (size_t i = 0; i < graph->n_node; i++) {
        const Onnx__NodeProto *node = graph->node[i];
        size_t at;
        if (node->op_type == NULL)
            return ls_fail(x->error, LOCKSTEP_WEIGHTS, x->path, NULL, "node %zu has no operator",
                           i);
        for (size_t k = 0; k < node->n_input; k++) {
            if (*node->input[k] == '\0')
                continue;
            if (!ls_names_find(&x->names, node->input[k], &at))
                return ls_fail(x->error, LOCKSTEP_WEIGHTS, x->path, NULL,
                               "node %zu (%.60s) reads '%.200s', which nothing before it makes", i,
                               node->op_type, node->input[k]);
            x->values[at].uses++;
            x->values[at].user = i;
        }
        for (size_t k = 0; k < node->n_output; k++) {
            struct ls_onnx_value *value;
            LS_TRY(ls_import_add_value(x, node->output[k], &value));
            if (value != NULL)
                value->maker = i;
        }
    }
    for (size_t i = 0; i < graph->n_output; i++) {
        size_t at;
        const char *name = graph->output[i]->name;
        if (name == NULL || !ls_names_find(&x->names, name, &at))
            return ls_fail(x->error, LOCKSTEP_WEIGHTS, x->path, NULL,
                           "nothing makes the model's output '%.200s'", name != NULL ? name : "");
        x->values[at].uses++;
        x->values[at].user = SIZE_MAX;
    }
    return 0;
}

static int find_values(struct ls_importer *x, const struct ls_onnx_import *options)
{
    size_t count = x->graph->n_initializer + x->graph->n_input;
    for (size_t i = 0; i < x->graph->n_node; i++)
        count += x->graph->node[i]->n_output;
    x->values = ls_arena_alloc(x->arena, count + 1, sizeof *x->values);
    x->plan = ls_arena_alloc(x->arena, x->graph->n_node + 1, sizeof *x->plan);
    if (x->values == NULL || x->plan == NULL)
        return ls_import_no_memory(x);
    LS_TRY(ls_import_add_initializers(x));
    LS_TRY(ls_import_add_inputs(x, options));
    LS_TRY(add_nodes(x));
    ls_import_find_weights(x);
    return ls_import_find_shared(x);
}

/* ---- Operators that have no equivalent ------------------------------------------------------- */

static bool is_standard(const Onnx__NodeProto *node)
{
    return node->domain == NULL || *node->domain == '\0' || strcmp(node->domain, "ai.onnx") == 0;
}

/* Tells of an operator, with the first nodes that have it; `first` is the first of all. */
static int refuse_operator(struct ls_importer *x, size_t first)
{
    const Onnx__NodeProto *node = x->graph->node[first];
    const char *const type = node->op_type;
    const bool branches =
        strcmp(type, "If") == 0 || strcmp(type, "Loop") == 0 || strcmp(type, "Scan") == 0;
    struct ls_text where = {0};
    size_t seen = 0;
    for (size_t k = first; k < x->graph->n_node && seen <= 5; k++) {
        const Onnx__NodeProto *other = x->graph->node[k];
        if (strcmp(other->op_type, type) != 0 || seen++ >= 5)
            continue;
        if (other->name != NULL && *other->name != '\0')
            ls_text_format(&where, "%s'%.60s'", seen > 1 ? ", " : "", other->name);
        else
            ls_text_format(&where, "%snumber %zu", seen > 1 ? ", " : "", k);
    }
    const int status =
        ls_fail(x->error, LOCKSTEP_DEFINITION, x->path,
                branches ? "export a model without branches and loops that depend on data" : NULL,
                "the operator %s%s%.60s has no equivalent; nodes: %s%s",
                is_standard(node) ? "" : node->domain, is_standard(node) ? "" : ".", type,
                where.data != NULL ? where.data : "", seen > 5 ? " and others" : "");
    ls_text_free(&where);
    return status;
}

/* All of them. */
static int refuse_unknown(struct ls_importer *x)
{
    enum { MOST = 100 }; /* operators that are told of: a file of a million is no model */
    struct ls_names told = {0};
    size_t count = 0, at;
    int status = 0;
    for (size_t i = 0; i < x->graph->n_node && count < MOST; i++) {
        const Onnx__NodeProto *node = x->graph->node[i];
        if (is_standard(node) && (ls_import_reader(node->op_type) != NULL ||
                                  ls_import_folds(node->op_type) || x->plan[i].fate != 0))
            continue;
        char key[200];
        snprintf(key, sizeof key, "%.80s.%.100s", is_standard(node) ? "" : node->domain,
                 node->op_type);
        if (ls_names_find(&told, key, &at))
            continue;
        if (!ls_names_set(&told, key, i)) {
            status = ls_import_no_memory(x);
            break;
        }
        status = refuse_operator(x, i);
        count++;
    }
    ls_names_free(&told);
    return status;
}

static int check_versions(struct ls_importer *x, const Onnx__ModelProto *model)
{
    for (size_t i = 0; i < model->n_opset_import; i++) {
        const Onnx__OperatorSetIdProto *set = model->opset_import[i];
        if (set->domain == NULL || *set->domain == '\0' || strcmp(set->domain, "ai.onnx") == 0)
            x->opset = set->version;
    }
    if (x->opset >= LS_ONNX_IMPORT_MIN && x->opset <= LS_ONNX_IMPORT_MAX)
        return 0;
    return ls_fail(x->error, LOCKSTEP_DEFINITION, x->path,
                   "export it again with another opset_version",
                   "the model's operators are of version %lld; %d to %d are read",
                   (long long)x->opset, LS_ONNX_IMPORT_MIN, LS_ONNX_IMPORT_MAX);
}

/* ---- Node by node ---------------------------------------------------------------------------- */

static void break_outputs(struct ls_importer *x)
{
    for (size_t k = 0; k < x->node->n_output; k++) {
        struct ls_onnx_value *value = ls_import_output(x, (int)k);
        if (value != NULL)
            value->broken = value->top == NULL && !value->constant && !value->waiting;
    }
}

static int read_node(struct ls_importer *x)
{
    bool constant = true;
    for (size_t k = 0; k < x->node->n_input; k++) {
        const struct ls_onnx_value *value = ls_import_input(x, (int)k);
        if (value != NULL && value->broken) {
            break_outputs(x);
            return 0;
        }
        constant = constant && (value == NULL || value->constant);
    }
    if (x->plan[x->index].fate == LS_ONNX_INSIDE)
        return 0;
    if (x->plan[x->index].fate != LS_ONNX_AS_IT_IS)
        return ls_import_read_pattern(x);
    bool done = false;
    if (constant || strcmp(x->node->op_type, "Shape") == 0 || strcmp(x->node->op_type, "Size") == 0)
        LS_TRY(ls_import_fold(x, &done));
    if (!done)
        LS_TRY(ls_import_attend(x, &done));
    if (done)
        return 0;
    ls_onnx_reader reader = ls_import_reader(x->node->op_type);
    if (reader == NULL)
        return ls_import_cannot(x, NULL,
                                constant ? "it cannot be worked out"
                                         : "what it does depends on the model's input");
    return reader(x);
}

/* What one node was refused for is told, and nodes that depend on it are passed over. */
static int read_nodes(struct ls_importer *x)
{
    int status = 0;
    for (x->index = 0; x->index < x->graph->n_node; x->index++) {
        x->node = x->graph->node[x->index];
        x->status = 0;
        x->wanted = NULL;
        const int failed = read_node(x);
        if (failed != 0 && failed != LOCKSTEP_DEFINITION)
            return failed;
        if (failed != 0)
            break_outputs(x);
        status = failed != 0 ? failed : status;
        if (x->net->layers.failed)
            return ls_import_no_memory(x);
    }
    return status;
}

/* Samples lie along the first axis of the net's output, wherever the model has them. */
static int turn_output(struct ls_importer *x, struct ls_onnx_value *value)
{
    int order[LS_RANK_MAX] = {0}, at = 0;
    if (!value->waiting || value->view == NULL || !value->view->made)
        return 0;
    struct ls_onnx_view *view = ls_arena_alloc(x->arena, 1, sizeof *view);
    const struct ls_shape shape = value->shape;
    if (view == NULL)
        return ls_import_no_memory(x);
    *view = *value->view;
    for (int i = 0; i < view->count; i++)
        if (view->atom[i].samples)
            order[at++] = view->atom[i].axis;
    for (int i = 0; at > 0 && i < shape.rank; i++)
        if (i != order[0])
            order[at++] = i;
    if (at != shape.rank || order[0] == 0)
        return 0;
    ls_view_transpose(view, order, shape.rank);
    for (int i = 0; i < shape.rank; i++)
        value->shape.dim[i] = shape.dim[order[i]];
    value->view = view;
    if (ls_view_is_base(view, &value->shape)) {
        value->top = view->base;
        value->waiting = false;
    }
    return 0;
}

static int find_output(struct ls_importer *x)
{
    size_t at;
    const bool named =
        x->graph->n_output > 0 && ls_names_find(&x->names, x->graph->output[0]->name, &at);
    if (named && x->values[at].maker != SIZE_MAX) {
        x->index = x->values[at].maker;
        x->node = x->graph->node[x->index];
        x->status = 0;
        LS_TRY(turn_output(x, &x->values[at]));
        LS_TRY(ls_import_write(x, &x->values[at]));
    }
    if (!named || x->values[at].top == NULL)
        return ls_fail(x->error, LOCKSTEP_DEFINITION, x->path, NULL,
                       "the model's output does not depend on its input");
    const struct ls_onnx_value *value = &x->values[at];
    if (x->net->layers.length == 0)
        return ls_fail(x->error, LOCKSTEP_DEFINITION, x->path, NULL,
                       "the model computes nothing: its output is its input");
    x->net->output = value->top;
    x->net->output_shape = value->shape;
    x->net->scores = value->scores;
    x->net->softmax_begin = value->begin;
    x->net->softmax_last = value->scores != NULL && value->end == x->net->layers.length;
    return 0;
}

static int import_graph(struct ls_importer *x, const Onnx__ModelProto *model,
                        const struct ls_onnx_import *options)
{
    if (model->graph == NULL || model->graph->n_node == 0)
        return ls_fail(x->error, LOCKSTEP_WEIGHTS, x->path, NULL,
                       "there is no graph of nodes in this file; is it an ONNX model?");
    x->graph = model->graph;
    LS_TRY(check_versions(x, model));
    LS_TRY(find_values(x, options));
    LS_TRY(ls_import_find_patterns(x));
    LS_TRY(refuse_unknown(x));
    LS_TRY(read_nodes(x));
    LS_TRY(find_output(x));
    return ls_import_write_notes(x);
}

void ls_onnx_net_free(struct ls_onnx_net *net)
{
    ls_text_free(&net->layers);
    ls_text_free(&net->notes);
    ls_free(net->weights);
    if (net->memory != NULL) {
        ls_definition_free(net->memory->model);
        ls_arena_free(net->memory->arena);
        ls_free(net->memory);
    }
    *net = (struct ls_onnx_net){0};
}

/* Protobuf's readers take no more. */
static int check_size(const char *path, struct ls_error *error)
{
    struct stat info;
    if (stat(path, &info) != 0 || info.st_size <= INT32_MAX)
        return 0; /* reading tells what else is wrong */
    return ls_fail(error, LOCKSTEP_WEIGHTS, path,
                   "write its weights into a file beside it (external data)",
                   "a model of more than 2 GiB cannot be read");
}

int ls_onnx_import(const char *path, const struct ls_onnx_import *options, struct ls_onnx_net *net,
                   struct ls_error *error)
{
    char *bytes;
    size_t size;
    *net = (struct ls_onnx_net){0};
    net->memory = ls_alloc(1, sizeof *net->memory);
    if (net->memory == NULL)
        return ls_fail_memory(error, "an ONNX model");
    int status = check_size(path, error);
    if (status == 0)
        status = ls_file_read(path, INT32_MAX, LOCKSTEP_WEIGHTS, &bytes, &size, error);
    if (status == 0) {
        status = ls_binary_read(path, bytes, size, &onnx__model_proto__descriptor, LOCKSTEP_WEIGHTS,
                                &net->memory->model, error);
        ls_free(bytes);
    }
    if (status == 0 && (net->memory->arena = ls_arena_new(SIZE_MAX / 2)) == NULL)
        status = ls_fail_memory(error, "an ONNX model");
    if (status == 0) {
        struct ls_importer x = {.path = path,
                                .error = error,
                                .arena = net->memory->arena,
                                .net = net,
                                .tie = options->tie};
        status = import_graph(&x, (const Onnx__ModelProto *)net->memory->model->message, options);
        ls_names_free(&x.names);
        ls_names_free(&x.layers);
        ls_text_free(&x.frozen.names);
        ls_text_free(&x.apart.names);
    }
    if (status != 0)
        ls_onnx_net_free(net);
    return status;
}
