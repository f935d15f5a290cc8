/* ONNX models of a few nodes, written by a test, and what their import makes of them.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TEST_ONNX_MODELS_H
#define LS_TEST_ONNX_MODELS_H

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "onnx/import.h"
#include "onnx/tensor.h"
#include "schema/binary.h"
#include "support/support.h"

enum { TEST_MODEL_MOST = 32 };

/* A model that is being written. */
struct model {
    struct ls_arena *arena;
    Onnx__ModelProto *proto;
    Onnx__GraphProto *graph;
    Onnx__NodeProto *node; /* the last one */
};

static inline void *message(struct model *m, const ProtobufCMessageDescriptor *type)
{
    void *made = ls_arena_message(m->arena, type);
    assert_non_null(made);
    return made;
}

static inline struct model begin(int64_t opset)
{
    struct model m = {.arena = ls_arena_new((size_t)64 << 20)};
    m.proto = message(&m, &onnx__model_proto__descriptor);
    m.graph = m.proto->graph = message(&m, &onnx__graph_proto__descriptor);
    m.graph->node = ls_arena_alloc(m.arena, TEST_MODEL_MOST, sizeof *m.graph->node);
    m.graph->input = ls_arena_alloc(m.arena, TEST_MODEL_MOST, sizeof *m.graph->input);
    m.graph->output = ls_arena_alloc(m.arena, TEST_MODEL_MOST, sizeof *m.graph->output);
    m.graph->initializer = ls_arena_alloc(m.arena, TEST_MODEL_MOST, sizeof *m.graph->initializer);
    m.proto->opset_import = ls_arena_alloc(m.arena, 1, sizeof *m.proto->opset_import);
    m.proto->opset_import[0] = message(&m, &onnx__operator_set_id_proto__descriptor);
    m.proto->opset_import[0]->has_version = 1;
    m.proto->opset_import[0]->version = opset;
    m.proto->n_opset_import = 1;
    return m;
}

/* An input; an extent of 0 is open. */
static inline void input(struct model *m, const char *name, const struct ls_shape *shape)
{
    Onnx__ValueInfoProto *info = message(m, &onnx__value_info_proto__descriptor);
    info->name = ls_arena_copy_string(m->arena, name);
    info->type = message(m, &onnx__type_proto__descriptor);
    info->type->tensor_type = message(m, &onnx__type_proto__tensor__descriptor);
    Onnx__TensorShapeProto *s = message(m, &onnx__tensor_shape_proto__descriptor);
    info->type->tensor_type->shape = s;
    s->dim = ls_arena_alloc(m->arena, TEST_MODEL_MOST, sizeof *s->dim);
    for (int i = 0; i < shape->rank; i++) {
        s->dim[i] = message(m, &onnx__tensor_shape_proto__dimension__descriptor);
        s->dim[i]->has_dim_value = shape->dim[i] != 0;
        s->dim[i]->dim_value = shape->dim[i];
    }
    s->n_dim = (size_t)shape->rank;
    m->graph->input[m->graph->n_input++] = info;
}

static inline void output(struct model *m, const char *name)
{
    Onnx__ValueInfoProto *info = message(m, &onnx__value_info_proto__descriptor);
    info->name = ls_arena_copy_string(m->arena, name);
    m->graph->output[m->graph->n_output++] = info;
}

/* Weights: `first`, and each number 1 more. */
static inline void weight(struct model *m, const char *name, const struct ls_shape *shape,
                          float first)
{
    const int64_t count = ls_shape_size(shape);
    float *numbers = ls_arena_alloc(m->arena, (size_t)count, sizeof *numbers);
    for (int64_t i = 0; i < count; i++)
        numbers[i] = first + (float)i;
    m->graph->initializer[m->graph->n_initializer++] =
        ls_onnx_new_floats(m->arena, name, shape, numbers);
}

static inline void number(struct model *m, const char *name, float value)
{
    weight(m, name, &(struct ls_shape){0}, value);
}

static inline void integers(struct model *m, const char *name, size_t count, const int64_t *values)
{
    int64_t *own = ls_arena_alloc(m->arena, count + 1, sizeof *own); /* the tensor refers to them */
    memcpy(own, values, count * sizeof *own);
    m->graph->initializer[m->graph->n_initializer++] =
        ls_onnx_new_integers(m->arena, name, own, count);
}
#define INTEGERS(m, name, ...)                                                                     \
    integers(m, name, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__})

static inline char **words(struct model *m, const char *text, size_t *count)
{
    char **list = ls_arena_alloc(m->arena, TEST_MODEL_MOST, sizeof *list);
    for (*count = 0; *text != '\0'; text += *text == ' ') {
        const size_t length = strcspn(text, " ");
        list[(*count)++] = ls_arena_copy(m->arena, text, length);
        text += length;
    }
    return list;
}

static inline void node(struct model *m, const char *type, const char *in, const char *out)
{
    m->node = message(m, &onnx__node_proto__descriptor);
    m->node->op_type = ls_arena_copy_string(m->arena, type);
    m->node->input = words(m, in, &m->node->n_input);
    m->node->output = words(m, out, &m->node->n_output);
    m->node->attribute = ls_arena_alloc(m->arena, TEST_MODEL_MOST, sizeof *m->node->attribute);
    m->graph->node[m->graph->n_node++] = m->node;
}

static inline Onnx__AttributeProto *attribute(struct model *m, const char *name)
{
    Onnx__AttributeProto *a = message(m, &onnx__attribute_proto__descriptor);
    a->name = ls_arena_copy_string(m->arena, name);
    m->node->attribute[m->node->n_attribute++] = a;
    return a;
}

static inline void set_integer(struct model *m, const char *name, int64_t value)
{
    Onnx__AttributeProto *a = attribute(m, name);
    a->has_i = 1;
    a->i = value;
}

static inline void set_list(struct model *m, const char *name, size_t count, const int64_t *values)
{
    Onnx__AttributeProto *a = attribute(m, name);
    a->ints = ls_arena_alloc(m->arena, count, sizeof *a->ints);
    memcpy(a->ints, values, count * sizeof *values);
    a->n_ints = count;
}

#define SHAPE(...)                                                                                 \
    (&(struct ls_shape){.rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t),                \
                        .dim = {__VA_ARGS__}})

static inline void write_model(struct model *m, const char *path)
{
    uint8_t *bytes;
    size_t size;
    assert_int_equal(ls_binary_write(&m->proto->base, &bytes, &size, NULL), 0);
    ls_test_write(path, bytes, size);
    ls_free(bytes);
    ls_arena_free(m->arena);
}

static inline struct ls_onnx_net import(struct model *m)
{
    struct ls_error *error = calloc(1, sizeof *error);
    struct ls_onnx_net net;
    const char *path = ls_test_path("m.onnx");
    write_model(m, path);
    if (ls_onnx_import(path, &(struct ls_onnx_import){0}, &net, error) != 0)
        fail_msg("%s: %s", error->problems[0].place, error->problems[0].message);
    free(error);
    return net;
}

/* The import fails, and each of the words is in one of its problems. */
static inline void must_fail(struct model *m, int status, size_t count, const char *const *said)
{
    struct ls_error *error = calloc(1, sizeof *error);
    struct ls_onnx_net net;
    const char *path = ls_test_path("m.onnx");
    write_model(m, path);
    assert_int_equal(ls_onnx_import(path, &(struct ls_onnx_import){0}, &net, error), status);
    assert_null(net.layers.data);
    for (size_t i = 0; i < count; i++) {
        bool found = false;
        for (int k = 0; k < error->count; k++)
            found = found || strstr(error->problems[k].message, said[i]) != NULL ||
                    strstr(error->problems[k].place, said[i]) != NULL;
        if (!found)
            fail_msg("'%s' is not said, but '%s'", said[i], error->problems[0].message);
    }
    free(error);
}
#define FAILS(m, status, ...)                                                                      \
    must_fail(m, status, sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *),                   \
              (const char *[]){__VA_ARGS__})

static inline void expect_text(const struct ls_onnx_net *net, const char *text)
{
    if (strstr(net->layers.data, text) == NULL)
        fail_msg("'%s' is not in:\n%s", text, net->layers.data);
}

static inline const float *find_weight(const struct ls_onnx_net *net, const char *name)
{
    for (size_t i = 0; i < net->weight_count; i++)
        if (strcmp(net->weights[i].name, name) == 0)
            return net->weights[i].numbers;
    fail_msg("there is no weight '%s'", name);
    return NULL;
}

#endif
