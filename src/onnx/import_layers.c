/* Import: the layers that are written: their names, fields and weights. See onnx/importer.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "onnx/importer.h"

/* Adds a name as layers have them: '/' becomes '.', and what is neither letter nor digit '_'. A
 * part that the next one repeats with more behind it ("layer1/layer1.0") is left out. */
static void add_name(struct ls_text *text, const char *name)
{
    while (*name == '/')
        name++;
    while (*name != '\0') {
        const size_t length = strcspn(name, "/");
        const char *next = name[length] == '/' ? name + length + 1 : NULL;
        const bool repeats =
            next != NULL && strncmp(name, next, length) == 0 && next[length] == '.';
        for (size_t i = 0; i < length && !repeats; i++) {
            const char c = name[i];
            const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                               (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
            ls_text_add_bytes(text, plain ? &c : "_", 1);
        }
        if (next == NULL)
            break;
        if (!repeats)
            ls_text_add(text, ".");
        name = next;
    }
}

/* What the node at hand is called, without its operator behind it. */
static void add_node_name(struct ls_importer *x, struct ls_text *text)
{
    const char *name = x->node->name != NULL ? x->node->name : "";
    char *copy = ls_copy_string(name);
    if (copy == NULL) {
        text->failed = true;
        return;
    }
    const size_t length = strlen(copy), type = strlen(x->node->op_type);
    if (length > type + 1 && copy[length - type - 1] == '/' &&
        strcmp(copy + length - type, x->node->op_type) == 0)
        copy[length - type - 1] = '\0';
    add_name(text, strncmp(copy, "node_", 5) == 0 ? copy + 5 : copy);
    ls_free(copy);
    if (text->length == 0) {
        add_name(text, x->node->op_type);
        ls_text_format(text, "%zu", x->index);
    }
}

/* A name that no layer or input has yet. */
static const char *new_name(struct ls_importer *x)
{
    struct ls_text text = {0};
    size_t number;
    if (x->wanted != NULL)
        add_name(&text, x->wanted);
    if (text.length == 0)
        add_node_name(x, &text);
    x->wanted = NULL;
    if (text.length > 200 && text.data != NULL)
        text.data[text.length = 200] = '\0';
    const size_t length = text.length;
    size_t next = 2; /* the number that the next layer of this name gets */
    bool fresh = !text.failed && text.data != NULL;
    const bool first = fresh && !ls_names_find(&x->layers, text.data, &next);
    char *plain = fresh && !first ? ls_arena_copy_string(x->arena, text.data) : NULL;
    for (next = next < 2 ? 2 : next;
         !text.failed && text.data != NULL && ls_names_find(&x->layers, text.data, &number);
         next++) {
        text.data[text.length = length] = '\0';
        ls_text_format(&text, "_%zu", next);
    }
    fresh = !text.failed && text.data != NULL;
    char *name = fresh ? ls_arena_copy_string(x->arena, text.data) : NULL;
    ls_text_free(&text);
    if (name == NULL || !ls_names_set(&x->layers, name, 2) ||
        (!first && (plain == NULL || !ls_names_set(&x->layers, plain, next)))) {
        ls_import_no_memory(x);
        return NULL;
    }
    return name;
}

void ls_import_call_without(struct ls_importer *x, const struct ls_onnx_value *weight,
                            const char *end)
{
    const size_t length = weight != NULL ? strlen(weight->name) : 0, behind = strlen(end);
    /* Weights of several nodes are such as an exporter found to be equal. */
    if (length > behind && weight->learned && (weight->uses < 2 || weight->share != NULL) &&
        strcmp(weight->name + length - behind, end) == 0)
        x->wanted = ls_arena_copy(x->arena, weight->name, length - behind);
}

void ls_import_call(struct ls_importer *x, const struct ls_onnx_value *weight)
{
    ls_import_call_without(x, weight, ".weight");
}

static void begin_layer(struct ls_importer *x, const char *name, const char *type)
{
    x->blobs = x->params = 0;
    ls_text_format(&x->net->layers, "layer {\n  name: \"%s\"\n  type: \"%s\"\n", name, type);
}

const char *ls_import_layer(struct ls_importer *x, const char *type, const char *const *bottoms,
                            size_t count, const char *format, ...)
{
    struct ls_text *text = &x->net->layers;
    for (size_t i = 0; i < count; i++)
        if (bottoms[i] == NULL)
            return NULL; /* has been told */
    const char *name = new_name(x);
    if (name == NULL)
        return NULL;
    begin_layer(x, name, type);
    for (size_t i = 0; i < count; i++)
        ls_text_format(text, "  bottom: \"%s\"\n", bottoms[i]);
    ls_text_format(text, "  top: \"%s\"\n", name);
    char fields[1024];
    va_list list;
    va_start(list, format);
    const int length = vsnprintf(fields, sizeof fields, format, list);
    va_end(list);
    if (length < 0 || (size_t)length >= sizeof fields) {
        ls_import_cannot(x, NULL, "its fields are too long");
        return NULL;
    }
    if (length > 0)
        ls_text_format(text, "  %s\n", fields);
    ls_text_add(text, "}\n");
    return name;
}

const char *ls_import_layer_many(struct ls_importer *x, const char *type,
                                 const char *const *bottoms, size_t bottom_count, const char **tops,
                                 size_t count, const char *fields)
{
    struct ls_text *text = &x->net->layers;
    for (size_t i = 0; i < bottom_count; i++)
        if (bottoms[i] == NULL)
            return NULL; /* has been told */
    const char *name = new_name(x);
    if (name == NULL)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        x->wanted = name;
        if ((tops[i] = new_name(x)) == NULL)
            return NULL;
    }
    begin_layer(x, name, type);
    for (size_t i = 0; i < bottom_count; i++)
        ls_text_format(text, "  bottom: \"%s\"\n", bottoms[i]);
    for (size_t i = 0; i < count; i++)
        ls_text_format(text, "  top: \"%s\"\n", tops[i]);
    ls_text_format(text, "  %s\n}\n", fields);
    return name;
}

int ls_import_layer_tops(struct ls_importer *x, const char *type, const char *bottom, size_t count,
                         const char **tops, const char *parameters)
{
    return ls_import_layer_many(x, type, &bottom, 1, tops, count, parameters) == NULL ? x->status
                                                                                      : 0;
}

/* The `param` of a weight, in front of the closing brace of its layer. */
static void add_param(struct ls_importer *x, const char *share, const char *learning)
{
    struct ls_text *text = &x->net->layers;
    const size_t blob = x->blobs++;
    if ((share == NULL && *learning == '\0') || text->failed)
        return;
    text->length -= strlen("}\n");
    for (; x->params < blob; x->params++)
        ls_text_add(text, "  param { }\n");
    x->params++;
    ls_text_add(text, "  param {");
    if (share != NULL)
        ls_text_add(text, " name: \"");
    for (const char *c = share; c != NULL && *c != '\0'; c++)
        ls_text_add_bytes(text, *c == '"' || *c == '\\' || (unsigned char)*c < ' ' ? "_" : c, 1);
    if (share != NULL)
        ls_text_add(text, "\"");
    ls_text_format(text, "%s%s }\n}\n", *learning != '\0' ? " " : "", learning);
}

static int add_weight(struct ls_importer *x, const struct ls_onnx_net_weight *weight)
{
    struct ls_onnx_net *net = x->net;
    if (net->weight_count == x->weight_room) {
        const size_t room = 2 * x->weight_room + 64;
        struct ls_onnx_net_weight *more = ls_resize(net->weights, room, sizeof *more);
        if (more == NULL)
            return ls_import_no_memory(x);
        net->weights = more;
        x->weight_room = room;
    }
    net->weights[net->weight_count++] = *weight;
    return 0;
}

int ls_import_weight(struct ls_importer *x, const char *layer, const char *blob,
                     const struct ls_onnx_value *from, const struct ls_shape *shape,
                     const float *numbers)
{
    const char *learning = x->learning;
    x->learning = NULL;
    if (layer == NULL || numbers == NULL)
        return x->status;
    const size_t length = strlen(layer) + strlen(blob) + 2;
    char *name = ls_arena_alloc(x->arena, length, 1);
    if (name == NULL)
        return ls_import_no_memory(x);
    snprintf(name, length, "%s.%s", layer, blob);
    const struct ls_onnx_net_weight weight = {
        .name = name, .from = from != NULL ? from->name : "", .shape = *shape, .numbers = numbers};
    LS_TRY(add_weight(x, &weight));
    const bool tied = from != NULL && ls_import_is_tied(x, from);
    if (tied)
        x->net->weights[x->net->weight_count - 1].share = from->share;
    if (learning == NULL && from != NULL)
        ls_import_note_weight(x, layer, from, tied);
    if (learning == NULL)
        learning = ls_import_learns(x, from) ? "" : "lr_mult: 0 decay_mult: 0";
    add_param(x, tied ? from->share : NULL, learning);
    return 0;
}

const char *ls_import_reshaped(struct ls_importer *x, const char *top, const struct ls_shape *from,
                               const struct ls_shape *to)
{
    char dims[512];
    int length = 0;
    if (top == NULL || ls_shape_equal(from, to))
        return top;
    for (int i = 0; i < to->rank; i++) {
        const bool first = i == 0;
        const int64_t extent = !first                                         ? to->dim[i]
                               : from->rank > 0 && from->dim[0] == to->dim[0] ? 0
                                                                              : -1;
        length +=
            snprintf(dims + length, sizeof dims - (size_t)length, "dim: %lld ", (long long)extent);
    }
    return LS_LAYER(x, "Reshape", top, "reshape_param { shape { %s} }", dims);
}

const char *ls_import_permuted(struct ls_importer *x, const char *top, const int *order, int rank)
{
    char text[256];
    int length = 0;
    bool same = true;
    for (int i = 0; i < rank; i++) {
        length += snprintf(text + length, sizeof text - (size_t)length, "order: %d ", order[i]);
        same = same && order[i] == i;
    }
    return same ? top : LS_LAYER(x, "Permute", top, "permute_param { %s}", text);
}

const char *ls_import_power(struct ls_importer *x, const char *top, double power, double scale,
                            double shift)
{
    char p[32], a[32], b[32];
    ls_format_float(p, (float)power);
    ls_format_float(a, (float)scale);
    ls_format_float(b, (float)shift);
    if (top == NULL || (power == 1 && scale == 1 && shift == 0))
        return top;
    return LS_LAYER(x, "Power", top, "power_param { power: %s scale: %s shift: %s }", p, a, b);
}
