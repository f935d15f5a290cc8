/* Tokenizers, JSON, texts, ONNX models: what is in them. See inspect/show.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json_tree.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/wire.h"
#include "inspect/show_inner.h"
#include "text/tokenizer.h"

enum { LINE_MAX_SHOWN = 160 };
static const size_t FILE_LIMIT = (size_t)1 << 30;

int ls_show_tokenizer(const struct ls_showing *showing, struct ls_error *error)
{
    static const char *const models[] = {"byte pair encoding", "WordPiece", "whole words"};
    struct ls_tokenizer *tokenizer;
    LS_TRY(ls_tokenizer_open(showing->path, &tokenizer, error));
    ls_show_text(showing, "model", models[tokenizer->model.kind]);
    ls_show_fact(showing, "ids", "%" PRIu32, ls_tokenizer_size(tokenizer));
    if (tokenizer->model.has_unknown)
        ls_show_fact(showing, "unknown is", "id %" PRIu32, tokenizer->model.unknown);
    if (tokenizer->has_pad)
        ls_show_fact(showing, "padding is", "id %" PRIu32, tokenizer->pad);
    for (uint32_t id = 0; id < ls_tokenizer_size(tokenizer) && id < showing->records; id++) {
        size_t length;
        const char *token = ls_tokenizer_token(tokenizer, id, &length);
        char *copy = token != NULL ? ls_copy_bytes(token, length) : NULL;
        if (copy != NULL)
            ls_show_record(showing, id, copy, "");
        ls_free(copy);
    }
    ls_tokenizer_free(tokenizer);
    return 0;
}

static void show_member(const struct ls_showing *showing, const struct ls_json_tree *tree,
                        const struct ls_json_node *node)
{
    const char *name = ls_json_name(tree, node);
    switch (node->kind) {
    case LS_JSON_STRING:
        ls_show_text(showing, name, ls_json_text(tree, node));
        break;
    case LS_JSON_INTEGER:
        ls_show_fact(showing, name, "%" PRId64, node->integer);
        break;
    case LS_JSON_NUMBER:
        ls_show_fact(showing, name, "%.9g", node->number);
        break;
    case LS_JSON_ARRAY:
    case LS_JSON_OBJECT:
        ls_show_fact(showing, name, "%s of %" PRIu32,
                     node->kind == LS_JSON_ARRAY ? "a list" : "an object", node->count);
        break;
    default:
        ls_show_text(showing, name,
                     node->kind == LS_JSON_NULL   ? "null"
                     : node->kind == LS_JSON_TRUE ? "true"
                                                  : "false");
    }
}

int ls_show_json(const struct ls_showing *showing, struct ls_error *error)
{
    struct ls_json_tree tree;
    char *text;
    size_t size;
    LS_TRY(ls_file_read(showing->path, FILE_LIMIT, LOCKSTEP_DATA, &text, &size, error));
    int status = ls_json_tree_read(showing->path, text, size, LOCKSTEP_DATA, &tree, error);
    if (status == 0) {
        const struct ls_json_node *top = &tree.nodes[0];
        int64_t shown = 0;
        ls_show_fact(showing, "holds", "%s of %" PRIu32,
                     top->kind == LS_JSON_ARRAY ? "a list" : "an object", top->count);
        for (const struct ls_json_node *node = ls_json_first(&tree, top);
             node != NULL && top->kind == LS_JSON_OBJECT && shown < 5 * showing->records;
             node = ls_json_next(&tree, node), shown++)
            show_member(showing, &tree, node);
        ls_json_tree_free(&tree);
    }
    ls_free(text);
    return status;
}

int ls_show_lines(const struct ls_showing *showing, struct ls_error *error)
{
    struct ls_mapping file;
    LS_TRY(ls_file_map(showing->path, LOCKSTEP_USAGE, &file, error));
    int64_t lines = 0;
    for (size_t at = 0; at < file.size; lines++) {
        const unsigned char *begin = file.data + at;
        const unsigned char *end = memchr(begin, '\n', file.size - at);
        size_t length = end != NULL ? (size_t)(end - begin) : file.size - at;
        char line[LINE_MAX_SHOWN + 4];
        bool cut = length > LINE_MAX_SHOWN;
        snprintf(line, sizeof line, "%.*s%s", (int)(cut ? LINE_MAX_SHOWN : length),
                 (const char *)begin, cut ? "..." : "");
        if (lines < showing->records)
            ls_show_record(showing, lines, "", line);
        at += length + 1;
    }
    ls_show_fact(showing, "lines", "%" PRId64, lines);
    ls_show_fact(showing, "bytes", "%zu", file.size);
    int status = ls_file_lost(&file, showing->path, LOCKSTEP_USAGE, error);
    ls_file_unmap(&file);
    return status;
}

/* Values of ModelProto (onnx.proto), by the numbers of its fields: which of them are texts, and the
 * graph with its nodes (1), its name (2) and its initializers (5). */
int ls_show_onnx(const struct ls_showing *showing, struct ls_error *error)
{
    struct ls_mapping file;
    LS_TRY(ls_file_map(showing->path, LOCKSTEP_WEIGHTS, &file, error));
    struct ls_wire wire = ls_wire_open(file.data, file.size);
    struct ls_wire_field field, inner;
    int64_t count[8] = {0};
    while (ls_wire_next(&wire, &field)) {
        if (field.number == 1 && field.type == LS_WIRE_VARINT)
            ls_show_fact(showing, "ir_version", "%" PRIu64, field.value);
        if ((field.number == 2 || field.number == 3) && field.type == LS_WIRE_BYTES)
            ls_show_fact(showing, field.number == 2 ? "producer" : "its version", "%.*s",
                         (int)(field.size < 200 ? field.size : 200), (const char *)field.bytes);
        if (field.number != 7 || field.type != LS_WIRE_BYTES)
            continue;
        struct ls_wire graph = ls_wire_open(field.bytes, field.size);
        while (ls_wire_next(&graph, &inner))
            if (inner.number < 8)
                count[inner.number]++;
    }
    ls_show_fact(showing, "graph", "%" PRId64 " nodes, %" PRId64 " initializers", count[1],
                 count[5]);
    int status = wire.damaged ? ls_fail(error, LOCKSTEP_WEIGHTS, showing->path, NULL,
                                        "is cut off or damaged at byte %zu", file.size - wire.left)
                              : ls_file_lost(&file, showing->path, LOCKSTEP_WEIGHTS, error);
    ls_file_unmap(&file);
    return status;
}
