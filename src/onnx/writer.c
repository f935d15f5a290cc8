/* SPDX-License-Identifier: BSD-2-Clause */
#include "onnx/writer.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

/* The version of the format that came with a version of the operators: readers as old as that one
 * read the model. */
static int64_t format_of(int opset)
{
    return opset >= 15 ? 8 : 7;
}

static void *new_message(struct ls_onnx_writer *writer, const ProtobufCMessageDescriptor *type)
{
    void *message = ls_arena_message(writer->arena, type);
    writer->failed |= message == NULL;
    return message;
}

static char *copy(struct ls_onnx_writer *writer, const char *text)
{
    char *made = ls_arena_copy_string(writer->arena, text);
    writer->failed |= made == NULL;
    return made;
}

static void *room_for(struct ls_onnx_writer *writer, size_t count, size_t size)
{
    void *made = ls_arena_alloc(writer->arena, count + 1, size);
    writer->failed |= made == NULL;
    return made;
}

int ls_onnx_writer_open(struct ls_onnx_writer *writer, int opset, struct ls_error *error)
{
    *writer = (struct ls_onnx_writer){.arena = ls_arena_new(SIZE_MAX), .scope = ""};
    if (writer->arena == NULL)
        return ls_fail_memory(error, "a model");
    writer->model = new_message(writer, &onnx__model_proto__descriptor);
    Onnx__OperatorSetIdProto *set = new_message(writer, &onnx__operator_set_id_proto__descriptor);
    Onnx__OperatorSetIdProto **sets = room_for(writer, 1, sizeof *sets);
    Onnx__GraphProto *graph = new_message(writer, &onnx__graph_proto__descriptor);
    if (writer->failed)
        return ls_fail_memory(error, "a model");
    writer->model->has_ir_version = 1;
    writer->model->ir_version = format_of(opset);
    writer->model->producer_name = copy(writer, "Lockstep");
    writer->model->producer_version = copy(writer, LOCKSTEP_VERSION);
    writer->model->graph = graph;
    set->domain = copy(writer, "");
    set->has_version = 1;
    set->version = opset;
    sets[0] = set;
    writer->model->opset_import = sets;
    writer->model->n_opset_import = 1;
    return writer->failed ? ls_fail_memory(error, "a model") : 0;
}

void ls_onnx_writer_free(struct ls_onnx_writer *writer)
{
    ls_free(writer->nodes);
    ls_free(writer->weights);
    ls_free(writer->inputs);
    ls_free(writer->outputs);
    ls_names_free(&writer->names);
    ls_names_free(&writer->node_names);
    ls_arena_free(writer->arena);
    *writer = (struct ls_onnx_writer){.scope = ""};
}

void ls_onnx_note(struct ls_onnx_writer *writer, const char *key, const char *value)
{
    Onnx__StringStringEntryProto *entry =
        new_message(writer, &onnx__string_string_entry_proto__descriptor);
    Onnx__StringStringEntryProto **all =
        room_for(writer, writer->model->n_metadata_props + 1, sizeof *all);
    if (writer->failed)
        return;
    if (writer->model->n_metadata_props > 0)
        memcpy(all, writer->model->metadata_props, writer->model->n_metadata_props * sizeof(*all));
    entry->key = copy(writer, key);
    entry->value = copy(writer, value);
    all[writer->model->n_metadata_props++] = entry;
    writer->model->metadata_props = all;
}

/* ---- Names ----------------------------------------------------------------------------------- */

/* `wish`, or with the first number behind it that makes it another name than all so far. */
static const char *make_name(struct ls_onnx_writer *writer, struct ls_names *names,
                             const char *wish)
{
    size_t wished = 0, other;
    const char *name = copy(writer, wish);
    struct ls_text text = {0};
    if (ls_names_find(names, wish, &wished)) {
        do {
            text.length = 0;
            ls_text_format(&text, "%s_%zu", wish, ++wished);
        } while (!text.failed && ls_names_find(names, text.data, &other));
        writer->failed |= text.failed || !ls_names_set(names, copy(writer, wish), wished);
        name = text.failed ? NULL : copy(writer, text.data);
        ls_text_free(&text);
    }
    writer->failed |= name == NULL || !ls_names_set(names, name, 1);
    return writer->failed ? "" : name;
}

const char *ls_onnx_name(struct ls_onnx_writer *writer, const char *wish)
{
    return make_name(writer, &writer->names, wish);
}

/* ---- Nodes ----------------------------------------------------------------------------------- */

static char **copy_names(struct ls_onnx_writer *writer, const char *const *names, size_t count)
{
    char **list = room_for(writer, count, sizeof *list);
    for (size_t i = 0; i < count && !writer->failed; i++)
        list[i] = copy(writer, names[i] != NULL ? names[i] : "");
    return list;
}

void ls_onnx_add_node(struct ls_onnx_writer *writer, const char *type, const char *const *inputs,
                      size_t input_count, const char *const *outputs, size_t output_count)
{
    struct ls_text name = {0};
    Onnx__NodeProto *node = new_message(writer, &onnx__node_proto__descriptor);
    writer->failed |= !LS_GROW(writer->nodes, writer->node_count, writer->node_capacity);
    if (writer->failed)
        return;
    while (input_count > 0 && inputs[input_count - 1] == NULL)
        input_count--;
    while (output_count > 0 && outputs[output_count - 1] == NULL)
        output_count--;
    node->op_type = copy(writer, type);
    node->input = copy_names(writer, inputs, input_count);
    node->n_input = input_count;
    node->output = copy_names(writer, outputs, output_count);
    node->n_output = output_count;
    ls_text_format(&name, "%s/%s", writer->scope, type);
    writer->failed |= name.failed;
    if (!writer->failed) /* of the arena, though the message calls it a string of its own */
        node->name = copy(writer, make_name(writer, &writer->node_names, name.data));
    ls_text_free(&name);
    writer->nodes[writer->node_count++] = node;
}

static Onnx__AttributeProto *add_attribute(struct ls_onnx_writer *writer, const char *name,
                                           Onnx__AttributeProto__AttributeType type)
{
    Onnx__AttributeProto *attribute = new_message(writer, &onnx__attribute_proto__descriptor);
    if (writer->failed)
        return NULL;
    Onnx__NodeProto *node = writer->nodes[writer->node_count - 1];
    Onnx__AttributeProto **all = room_for(writer, node->n_attribute + 1, sizeof *all);
    attribute->name = copy(writer, name);
    attribute->has_type = 1;
    attribute->type = type;
    if (writer->failed)
        return NULL;
    if (node->n_attribute > 0)
        memcpy(all, node->attribute, node->n_attribute * sizeof(*all));
    all[node->n_attribute++] = attribute;
    node->attribute = all;
    return attribute;
}

void ls_onnx_set_int(struct ls_onnx_writer *writer, const char *name, int64_t value)
{
    Onnx__AttributeProto *attribute =
        add_attribute(writer, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    if (attribute == NULL)
        return;
    attribute->has_i = 1;
    attribute->i = value;
}

void ls_onnx_set_float(struct ls_onnx_writer *writer, const char *name, float value)
{
    Onnx__AttributeProto *attribute =
        add_attribute(writer, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    if (attribute == NULL)
        return;
    attribute->has_f = 1;
    attribute->f = value;
}

void ls_onnx_set_string(struct ls_onnx_writer *writer, const char *name, const char *value)
{
    Onnx__AttributeProto *attribute =
        add_attribute(writer, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
    if (attribute == NULL)
        return;
    attribute->has_s = 1;
    attribute->s = (ProtobufCBinaryData){strlen(value), (uint8_t *)copy(writer, value)};
}

void ls_onnx_set_ints(struct ls_onnx_writer *writer, const char *name, const int64_t *values,
                      size_t count)
{
    Onnx__AttributeProto *attribute =
        add_attribute(writer, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
    if (attribute == NULL)
        return;
    attribute->ints = room_for(writer, count, sizeof *values);
    if (attribute->ints == NULL)
        return;
    memcpy(attribute->ints, values, count * sizeof *values);
    attribute->n_ints = count;
}

/* ---- Weights --------------------------------------------------------------------------------- */

static void add_weight(struct ls_onnx_writer *writer, Onnx__TensorProto *tensor, bool constant)
{
    writer->failed |=
        tensor == NULL || !LS_GROW(writer->weights, writer->weight_count, writer->weight_capacity);
    if (writer->failed)
        return;
    writer->weights[writer->weight_count++] =
        (struct ls_onnx_weight){.tensor = tensor,
                                .bytes = tensor->raw_data.data,
                                .size = tensor->raw_data.len,
                                .constant = constant};
    tensor->has_raw_data = 0;
    tensor->raw_data = (ProtobufCBinaryData){0, NULL};
}

void ls_onnx_add_floats(struct ls_onnx_writer *writer, const char *name,
                        const struct ls_shape *shape, const float *numbers)
{
    add_weight(writer, ls_onnx_new_floats(writer->arena, name, shape, numbers), false);
}

/* A constant that is there already; NULL: there is none like it. */
static const char *find_constant(const struct ls_onnx_writer *writer,
                                 const Onnx__TensorProto *tensor)
{
    for (size_t i = 0; i < writer->weight_count; i++) {
        const struct ls_onnx_weight *known = &writer->weights[i];
        if (known->constant && known->tensor->data_type == tensor->data_type &&
            known->tensor->n_dims == tensor->n_dims && known->size == tensor->raw_data.len &&
            memcmp(known->tensor->dims, tensor->dims, tensor->n_dims * sizeof *tensor->dims) == 0 &&
            memcmp(known->bytes, tensor->raw_data.data, known->size) == 0)
            return known->tensor->name;
    }
    return NULL;
}

/* Its name is that of the constant in front of it that is like it, or a new one. */
static const char *add_constant(struct ls_onnx_writer *writer, Onnx__TensorProto *tensor)
{
    writer->failed |= tensor == NULL;
    if (writer->failed)
        return "";
    const char *known = find_constant(writer, tensor);
    if (known != NULL)
        return known;
    tensor->raw_data.data =
        (uint8_t *)ls_arena_copy(writer->arena, tensor->raw_data.data, tensor->raw_data.len);
    tensor->name = copy(writer, ls_onnx_name(writer, "constant"));
    writer->failed |= tensor->raw_data.data == NULL;
    add_weight(writer, tensor, true);
    return writer->failed ? "" : tensor->name;
}

const char *ls_onnx_constant(struct ls_onnx_writer *writer, const struct ls_shape *shape,
                             const float *numbers)
{
    return add_constant(writer, ls_onnx_new_floats(writer->arena, "", shape, numbers));
}

const char *ls_onnx_bools(struct ls_onnx_writer *writer, const struct ls_shape *shape,
                          const unsigned char *values)
{
    Onnx__TensorProto *tensor = ls_onnx_new_floats(writer->arena, "", shape, NULL);
    if (tensor != NULL) {
        tensor->data_type = ONNX__TENSOR_PROTO__DATA_TYPE__BOOL;
        tensor->raw_data =
            (ProtobufCBinaryData){(size_t)ls_shape_size(shape), (uint8_t *)(uintptr_t)values};
    }
    return add_constant(writer, tensor);
}

const char *ls_onnx_integers(struct ls_onnx_writer *writer, const int64_t *values, size_t count)
{
    return add_constant(writer, ls_onnx_new_integers(writer->arena, "", values, count));
}

const char *ls_onnx_number(struct ls_onnx_writer *writer, float number)
{
    return ls_onnx_constant(writer, &(struct ls_shape){.rank = 0}, &number);
}

const char *ls_onnx_integer(struct ls_onnx_writer *writer, int64_t number)
{
    Onnx__TensorProto *tensor = ls_onnx_new_integers(writer->arena, "", &number, 1);
    if (tensor != NULL)
        tensor->n_dims = 0;
    return add_constant(writer, tensor);
}

/* ---- Inputs and outputs ---------------------------------------------------------------------- */

static Onnx__TensorShapeProto__Dimension *new_extent(struct ls_onnx_writer *writer, int64_t extent,
                                                     int64_t rows)
{
    Onnx__TensorShapeProto__Dimension *dim =
        new_message(writer, &onnx__tensor_shape_proto__dimension__descriptor);
    if (writer->failed)
        return NULL;
    if (extent >= 0) {
        dim->has_dim_value = 1;
        dim->dim_value = extent;
    } else {
        char symbol[32] = "N";
        if (rows == 0)
            snprintf(symbol, sizeof symbol, "selected");
        else if (rows != 1)
            snprintf(symbol, sizeof symbol, "%lld*N", (long long)rows);
        dim->dim_param = copy(writer, symbol);
    }
    return dim;
}

static Onnx__ValueInfoProto *new_info(struct ls_onnx_writer *writer, const char *name, int32_t type,
                                      const int64_t *dims, int rank, int64_t rows)
{
    Onnx__ValueInfoProto *info = new_message(writer, &onnx__value_info_proto__descriptor);
    Onnx__TypeProto *of = new_message(writer, &onnx__type_proto__descriptor);
    Onnx__TypeProto__Tensor *tensor = new_message(writer, &onnx__type_proto__tensor__descriptor);
    Onnx__TensorShapeProto *shape = new_message(writer, &onnx__tensor_shape_proto__descriptor);
    Onnx__TensorShapeProto__Dimension **list = room_for(writer, (size_t)rank, sizeof *list);
    for (int i = 0; i < rank && !writer->failed; i++)
        list[i] = new_extent(writer, dims[i], rows);
    if (writer->failed)
        return NULL;
    shape->dim = list;
    shape->n_dim = (size_t)rank;
    tensor->has_elem_type = 1;
    tensor->elem_type = type;
    tensor->shape = shape;
    of->tensor_type = tensor;
    info->name = copy(writer, name);
    info->type = of;
    return info;
}

void ls_onnx_add_input(struct ls_onnx_writer *writer, const char *name, int32_t type,
                       const int64_t *dims, int rank, int64_t rows)
{
    Onnx__ValueInfoProto *info = new_info(writer, name, type, dims, rank, rows);
    writer->failed |=
        info == NULL || !LS_GROW(writer->inputs, writer->input_count, writer->input_capacity);
    if (!writer->failed)
        writer->inputs[writer->input_count++] = info;
}

void ls_onnx_add_output(struct ls_onnx_writer *writer, const char *name, int32_t type,
                        const int64_t *dims, int rank, int64_t rows)
{
    Onnx__ValueInfoProto *info = new_info(writer, name, type, dims, rank, rows);
    writer->failed |=
        info == NULL || !LS_GROW(writer->outputs, writer->output_count, writer->output_capacity);
    if (!writer->failed)
        writer->outputs[writer->output_count++] = info;
}
