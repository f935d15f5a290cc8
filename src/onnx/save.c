/* A model's bytes. The parts of ModelProto, and of its graph, are written one after the other, in
 * the order of their numbers, so that weights go from where they are to the file and are copied
 * nowhere.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#include "base/atomic_file.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/wire.h"
#include "onnx/writer.h"

enum {
    GRAPH = 7, /* the numbers of fields of ModelProto, GraphProto and TensorProto */
    INITIALIZER = 5,
    RAW_DATA = 9,
    PAGE = 4096,   /* where external data begin, so that readers can map them */
    INSIDE = 1024, /* bytes of weights that stay in the model beside external data */
};

/* Bytes of a message, at the end of a text. */
static void add_message(struct ls_text *text, const ProtobufCMessage *message)
{
    const size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = ls_alloc(size, 1);
    if (bytes == NULL) {
        text->failed = true;
        return;
    }
    protobuf_c_message_pack(message, bytes);
    ls_text_add_bytes(text, (const char *)bytes, size);
    ls_free(bytes);
}

/* What is in front of a weight's numbers, or all of it where these are elsewhere. */
static void add_head(struct ls_text *text, const struct ls_onnx_weight *weight)
{
    struct ls_text tensor = {0};
    const bool outside = weight->tensor->n_external_data > 0;
    add_message(&tensor, &weight->tensor->base);
    if (!outside)
        ls_wire_add_head(&tensor, RAW_DATA, weight->size);
    ls_wire_add_head(text, INITIALIZER, tensor.length + (outside ? 0 : weight->size));
    ls_text_add_bytes(text, tensor.data, tensor.length);
    text->failed |= tensor.failed;
    ls_text_free(&tensor);
}

/* The parts of a model, without the numbers of its weights. */
struct parts {
    struct ls_text front;  /* of the model and its graph, up to the first weight */
    struct ls_text *heads; /* by weight */
    struct ls_text graph_end, model_end;
};

static void free_parts(struct parts *parts, size_t weights)
{
    ls_text_free(&parts->front);
    ls_text_free(&parts->graph_end);
    ls_text_free(&parts->model_end);
    for (size_t i = 0; i < weights && parts->heads != NULL; i++)
        ls_text_free(&parts->heads[i]);
    ls_free(parts->heads);
}

static int make_parts(const struct ls_onnx_writer *writer, struct parts *parts,
                      struct ls_error *error)
{
    const Onnx__ModelProto *model = writer->model;
    Onnx__ModelProto first = *model, last = *model;
    Onnx__GraphProto nodes = ONNX__GRAPH_PROTO__INIT, ends = ONNX__GRAPH_PROTO__INIT;
    struct ls_text graph = {0};
    *parts = (struct parts){.heads = ls_alloc(writer->weight_count + 1, sizeof *parts->heads)};
    if (parts->heads == NULL)
        return ls_fail_memory(error, "a model");
    first.graph = last.graph = NULL;
    first.n_opset_import = first.n_metadata_props = 0;
    last.has_ir_version = 0;
    last.producer_name = last.producer_version = NULL;
    nodes.node = writer->nodes;
    nodes.n_node = writer->node_count;
    nodes.name = model->graph->name;
    ends.input = writer->inputs;
    ends.n_input = writer->input_count;
    ends.output = writer->outputs;
    ends.n_output = writer->output_count;
    add_message(&graph, &nodes.base);
    add_message(&parts->graph_end, &ends.base);
    size_t size = graph.length + parts->graph_end.length;
    bool failed = false;
    for (size_t i = 0; i < writer->weight_count; i++) {
        add_head(&parts->heads[i], &writer->weights[i]);
        failed |= parts->heads[i].failed;
        size += parts->heads[i].length;
        size += writer->weights[i].tensor->n_external_data > 0 ? 0 : writer->weights[i].size;
    }
    add_message(&parts->front, &first.base);
    ls_wire_add_head(&parts->front, GRAPH, size);
    ls_text_add_bytes(&parts->front, graph.data, graph.length);
    add_message(&parts->model_end, &last.base);
    failed |=
        graph.failed || parts->front.failed || parts->graph_end.failed || parts->model_end.failed;
    ls_text_free(&graph);
    return failed ? ls_fail_memory(error, "a model") : 0;
}

static int put(struct ls_atomic_file *file, const struct ls_text *text, struct ls_error *error)
{
    return text->length > 0 ? ls_atomic_write(file, text->data, text->length, error) : 0;
}

static int put_parts(const struct ls_onnx_writer *writer, const struct parts *parts,
                     struct ls_atomic_file *file, struct ls_error *error)
{
    LS_TRY(put(file, &parts->front, error));
    for (size_t i = 0; i < writer->weight_count; i++) {
        const struct ls_onnx_weight *weight = &writer->weights[i];
        LS_TRY(put(file, &parts->heads[i], error));
        if (weight->tensor->n_external_data == 0 && weight->size > 0)
            LS_TRY(ls_atomic_write(file, weight->bytes, weight->size, error));
    }
    LS_TRY(put(file, &parts->graph_end, error));
    return put(file, &parts->model_end, error);
}

/* ---- External data --------------------------------------------------------------------------- */

static bool add_entry(struct ls_onnx_writer *writer, Onnx__TensorProto *tensor, const char *key,
                      const char *value)
{
    Onnx__StringStringEntryProto *entry = (Onnx__StringStringEntryProto *)ls_arena_message(
        writer->arena, &onnx__string_string_entry_proto__descriptor);
    if (entry == NULL)
        return false;
    entry->key = ls_arena_copy_string(writer->arena, key);
    entry->value = ls_arena_copy_string(writer->arena, value);
    tensor->external_data[tensor->n_external_data++] = entry;
    return entry->key != NULL && entry->value != NULL;
}

/* Says where a weight is: in the file `location`, from `offset` on. */
static bool place(struct ls_onnx_writer *writer, const struct ls_onnx_weight *weight,
                  const char *location, size_t offset)
{
    char at[32], length[32];
    Onnx__TensorProto *tensor = weight->tensor;
    snprintf(at, sizeof at, "%zu", offset);
    snprintf(length, sizeof length, "%zu", weight->size);
    tensor->external_data = ls_arena_alloc(writer->arena, 3, sizeof *tensor->external_data);
    if (tensor->external_data == NULL)
        return false;
    tensor->has_data_location = 1;
    tensor->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    return add_entry(writer, tensor, "location", location) &&
           add_entry(writer, tensor, "offset", at) && add_entry(writer, tensor, "length", length);
}

static int put_outside(struct ls_onnx_writer *writer, const char *location,
                       struct ls_atomic_file *file, struct ls_error *error)
{
    static const char zeros[PAGE];
    size_t offset = 0;
    for (size_t i = 0; i < writer->weight_count; i++) {
        const struct ls_onnx_weight *weight = &writer->weights[i];
        if (weight->size < INSIDE)
            continue;
        if (!place(writer, weight, location, offset))
            return ls_fail_memory(error, "a model");
        LS_TRY(ls_atomic_write(file, weight->bytes, weight->size, error));
        const size_t rest = weight->size % PAGE;
        if (rest != 0)
            LS_TRY(ls_atomic_write(file, zeros, PAGE - rest, error));
        offset += weight->size + (rest != 0 ? PAGE - rest : 0);
    }
    return 0;
}

/* The file of external data, written whole but not yet in its place. */
static int open_outside(struct ls_onnx_writer *writer, const char *path,
                        struct ls_atomic_file **file, struct ls_error *error)
{
    struct ls_text name = {0};
    ls_text_format(&name, "%s.data", path);
    int status =
        name.failed ? ls_fail_memory(error, "a path") : ls_atomic_open(name.data, file, error);
    if (status == 0) {
        const char *slash = strrchr(name.data, '/');
        status = put_outside(writer, slash != NULL ? slash + 1 : name.data, *file, error);
    }
    ls_text_free(&name);
    return status;
}

static size_t weight_bytes(const struct ls_onnx_writer *writer)
{
    size_t bytes = 0;
    for (size_t i = 0; i < writer->weight_count; i++)
        bytes += writer->weights[i].size;
    return bytes;
}

int ls_onnx_save(struct ls_onnx_writer *writer, const char *path, bool external,
                 struct ls_error *error)
{
    struct parts parts = {.heads = NULL};
    struct ls_atomic_file *file = NULL, *outside = NULL;
    /* A graph of 64 MiB besides its weights is none that layers make. */
    const bool large = weight_bytes(writer) > (size_t)INT32_MAX - ((size_t)64 << 20);
    if (writer->failed)
        return ls_fail_memory(error, "a model");
    int status = external || large ? open_outside(writer, path, &outside, error) : 0;
    if (status == 0)
        status = make_parts(writer, &parts, error);
    if (status == 0)
        status = ls_atomic_open(path, &file, error);
    if (status == 0)
        status = put_parts(writer, &parts, file, error);
    if (status == 0 && outside != NULL) {
        status = ls_atomic_commit(outside, error); /* first: the model names it */
        outside = NULL;
    }
    if (status == 0) {
        status = ls_atomic_commit(file, error);
        file = NULL;
    }
    if (file != NULL)
        ls_atomic_abandon(file);
    if (outside != NULL)
        ls_atomic_abandon(outside);
    free_parts(&parts, writer->weight_count);
    return status;
}
