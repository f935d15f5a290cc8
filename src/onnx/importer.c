/* What the functions that import nodes share. See onnx/importer.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "onnx/importer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

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
    const Onnx__AttributeProto *attribute = ls_import_attribute(x, name);
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
    *out = value->integers ? (double)value->wholes[0] : (double)value->reals[0];
    return 0;
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
    return value;
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
    value->shape = *shape;
    value->top = top;
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
    return 0;
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

/* ---- Layers ---------------------------------------------------------------------------------- */

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
    for (size_t i = 2;
         !text.failed && text.data != NULL && ls_names_find(&x->layers, text.data, &number); i++) {
        text.data[text.length = length] = '\0';
        ls_text_format(&text, "_%zu", i);
    }
    char *name =
        text.failed || text.data == NULL ? NULL : ls_arena_copy_string(x->arena, text.data);
    ls_text_free(&text);
    if (name == NULL || !ls_names_set(&x->layers, name, 0)) {
        ls_import_no_memory(x);
        return NULL;
    }
    return name;
}

void ls_import_call(struct ls_importer *x, const struct ls_onnx_value *weight)
{
    static const char end[] = ".weight";
    const size_t length = strlen(weight->name);
    if (length > sizeof end - 1 && weight->learned &&
        strcmp(weight->name + length - (sizeof end - 1), end) == 0)
        x->wanted = ls_arena_copy(x->arena, weight->name, length - (sizeof end - 1));
}

static void begin_layer(struct ls_text *text, const char *name, const char *type)
{
    ls_text_format(text, "layer {\n  name: \"%s\"\n  type: \"%s\"\n", name, type);
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
    begin_layer(text, name, type);
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

int ls_import_layer_tops(struct ls_importer *x, const char *type, const char *bottom, size_t count,
                         const char **tops, const char *parameters)
{
    struct ls_text *text = &x->net->layers;
    const char *name = new_name(x);
    if (name == NULL)
        return x->status;
    for (size_t i = 0; i < count; i++) {
        x->wanted = name;
        if ((tops[i] = new_name(x)) == NULL)
            return x->status;
    }
    begin_layer(text, name, type);
    ls_text_format(text, "  bottom: \"%s\"\n", bottom);
    for (size_t i = 0; i < count; i++)
        ls_text_format(text, "  top: \"%s\"\n", tops[i]);
    ls_text_format(text, "  %s\n}\n", parameters);
    return 0;
}

int ls_import_weight(struct ls_importer *x, const char *layer, const char *blob, const char *from,
                     const struct ls_shape *shape, const float *numbers)
{
    struct ls_onnx_net *net = x->net;
    if (layer == NULL || numbers == NULL)
        return x->status;
    if (net->weight_count == x->weight_room) {
        const size_t room = 2 * x->weight_room + 64;
        struct ls_onnx_net_weight *more = ls_resize(net->weights, room, sizeof *more);
        if (more == NULL)
            return ls_import_no_memory(x);
        net->weights = more;
        x->weight_room = room;
    }
    const size_t length = strlen(layer) + strlen(blob) + 2;
    char *name = ls_arena_alloc(x->arena, length, 1);
    if (name == NULL)
        return ls_import_no_memory(x);
    snprintf(name, length, "%s.%s", layer, blob);
    net->weights[net->weight_count++] =
        (struct ls_onnx_net_weight){name, from != NULL ? from : "", *shape, numbers};
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
