/* Groups of unknown fields. See schema/unknown.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "schema/unknown.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "schema/fields.h"
#include "schema/forks.h"
#include "schema/frameworks.h"
#include "schema/suggest.h"

enum {
    CANDIDATES_MAX = 200, /* names that may have been meant */
    FIELDS_MAX = 16       /* fields of a message that are all listed */
};

struct ls_unknown {
    const ProtobufCMessageDescriptor *type;
    const char *name;                     /* of the field, in the arena */
    const char *value;                    /* or the word that its enum does not have */
    const struct ls_fork_field *fork;     /* NULL: nothing is known of it */
    const ProtobufCMessage *layer, *last; /* of the first and the latest occurrence */
    uint32_t line, column;
    size_t count, layers;
};

bool ls_unknown_add(struct ls_unknown_list *list, struct ls_arena *arena,
                    const ProtobufCMessageDescriptor *type, const char *name, const char *value,
                    const ProtobufCMessage *layer, const struct ls_token *token)
{
    char key[400];
    size_t index;
    snprintf(key, sizeof key, "%s.%s %s", type->short_name, name, value != NULL ? value : "");
    if (!ls_names_find(&list->names, key, &index)) {
        const char *kept = ls_arena_copy_string(arena, key);
        struct ls_unknown new = {.type = type,
                                 .name = ls_arena_copy_string(arena, name),
                                 .fork = ls_fork_field(type->short_name, name),
                                 .layer = layer,
                                 .line = token->line,
                                 .column = token->column};
        if (value != NULL)
            new.value = ls_arena_copy_string(arena, value);
        if (kept == NULL || new.name == NULL || (value != NULL && new.value == NULL) ||
            !LS_GROW(list->items, list->count, list->capacity) ||
            !ls_names_set(&list->names, kept, list->count))
            return false;
        index = list->count;
        list->items[list->count++] = new;
    }
    struct ls_unknown *item = &list->items[index];
    item->layers += layer != NULL && (item->count == 0 || item->last != layer);
    item->last = layer;
    item->count++;
    return true;
}

/* The value of a layer's string field `name`, or the name of an enum's value; NULL without one. */
static const char *layer_says(const ProtobufCMessage *layer, const char *name)
{
    const ProtobufCFieldDescriptor *field = ls_field_named(layer->descriptor, name);
    if (field == NULL || ls_field_count(layer, field) == 0)
        return NULL;
    const void *at = ls_field_at(layer, field, 0);
    if (field->type == PROTOBUF_C_TYPE_STRING)
        return *(const char *const *)at;
    const ProtobufCEnumValue *value =
        protobuf_c_enum_descriptor_get_value(field->descriptor, *(const int *)at);
    return value != NULL ? value->name : NULL;
}

/* " of layer 'conv1' (Convolution)", " of 35 layers, the first 'conv1' (Convolution)", "" */
static void say_layers(const struct ls_unknown *item, struct ls_text *text)
{
    if (item->layer == NULL) {
        if (item->count > 1)
            ls_text_format(text, ", %zu times", item->count);
        return;
    }
    const char *name = layer_says(item->layer, "name"), *type = layer_says(item->layer, "type");
    if (name == NULL && type == NULL && item->layers == 1)
        return;
    if (item->layers > 1)
        ls_text_format(text, " of %zu layers, the first", item->layers);
    else
        ls_text_add(text, " of layer");
    ls_text_format(text, " '%.100s'", name != NULL ? name : "");
    if (type != NULL)
        ls_text_format(text, " (%.60s)", type);
}

/* "it belongs into a_param or b_param": messages of a type that have a field of this name. False
 * if there is none, or so many that nothing is said by it. */
static bool say_owners(const ProtobufCMessageDescriptor *type, const char *name,
                       struct ls_text *text)
{
    size_t owners = 0;
    if (strcmp(name, "layer") == 0 || strcmp(name, "layers") == 0) {
        ls_text_add(text, "is a '}' missing in front of it?");
        return true;
    }
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        if (field->type != PROTOBUF_C_TYPE_MESSAGE ||
            ls_field_named(field->descriptor, name) == NULL)
            continue;
        ls_text_format(text, "%s %s", owners == 0 ? "it belongs into" : " or", field->name);
        owners++;
    }
    return owners >= 1 && owners <= 3;
}

/* Whether a name is that of a layer type's own parameters: 'roi_align_param' of a ROIAlign layer.
 */
static bool is_own(const struct ls_unknown *item)
{
    const char *name = item->name, *suffix = strstr(name, "_param");
    const char *type = item->layer != NULL ? layer_says(item->layer, "type") : NULL;
    if (suffix == NULL || suffix == name || type == NULL)
        return false;
    for (; name < suffix; name++)
        if (*name != '_' && tolower((unsigned char)*name) != tolower((unsigned char)*type++))
            return false;
    return true;
}

/* Where a name is neither a fork's nor another message's it may be misspelt. False: it is like none
 * of them. */
static bool say_meant(const struct ls_unknown *item, struct ls_text *text)
{
    const char *names[CANDIDATES_MAX];
    char meant[LS_MEANT_MAX];
    size_t count = 0;
    if (is_own(item))
        return true;
    for (unsigned i = 0; i < item->type->n_fields && count < CANDIDATES_MAX; i++)
        names[count++] = item->type->fields[i].name;
    ls_text_add(text, ls_did_you_mean(item->name, names, count, meant));
    return meant[0] != '\0';
}

/* All fields of a small message. False: it has too many to list. */
static bool say_fields(const ProtobufCMessageDescriptor *type, struct ls_text *hint)
{
    if (type->n_fields == 0 || type->n_fields > FIELDS_MAX)
        return false;
    ls_text_add(hint, "its fields are ");
    for (unsigned i = 0; i < type->n_fields; i++)
        ls_text_format(hint, "%s%s", i == 0 ? "" : ", ", type->fields[i].name);
    return true;
}

/* What to write instead of a type that V1LayerParameter does not have. */
static void say_newer(const char *value, struct ls_text *hint)
{
    const ProtobufCEnumDescriptor *types = &lockstep__v1_layer_parameter__layer_type__descriptor;
    const struct ls_fork_type *fork = ls_fork_type(value);
    const char *names[CANDIDATES_MAX];
    size_t count = 0;
    for (unsigned i = 0; i < types->n_values && count < CANDIDATES_MAX; i++)
        names[count++] = types->values[i].name;
    const char *near = ls_suggest(value, names, count);
    if (fork != NULL)
        ls_text_format(hint, "it is of %s: %s", fork->fork, fork->hint);
    else if (near != NULL && strcmp(near, value) == 0)
        ls_text_format(hint, "write %s without quotes", near);
    else if (near != NULL)
        ls_text_format(hint, "did you mean '%s'?", near);
    else
        ls_text_add(hint, "newer types are written layer { type: \"Name\" }");
}

static int refuse(const struct ls_unknown *item, const char *file, bool whole,
                  struct ls_error *error)
{
    char place[LS_PLACE_MAX];
    struct ls_text text = {0}, hint = {0};
    if (whole)
        snprintf(place, sizeof place, "%s", file);
    else
        snprintf(place, sizeof place, "%s:%u:%u", file, item->line, item->column);
    if (item->value != NULL)
        ls_text_format(&text, "unknown older layer type '%s'", item->value);
    else
        ls_text_format(&text, "unknown field '%s' in %s", item->name, item->type->short_name);
    say_layers(item, &text);
    bool hinted = item->fork != NULL || item->value != NULL ||
                  ls_framework_field(item->type, item->name, &hint) ||
                  say_owners(item->type, item->name, &hint);
    if (item->value != NULL)
        say_newer(item->value, &hint);
    else if (item->fork != NULL)
        ls_text_format(&hint, "it is of %s: %s", item->fork->fork, item->fork->hint);
    if (!hinted && !say_meant(item, &text))
        hinted = say_fields(item->type, &hint);
    bool failed = text.failed || hint.failed;
    if (!failed)
        ls_fail(error, LOCKSTEP_DEFINITION, place, hinted ? hint.data : NULL, "%s", text.data);
    ls_text_free(&text);
    ls_text_free(&hint);
    return failed ? -1 : 1;
}

/* "a (Ristretto; 35 times), engine MKLDNN (12 times)"; returns the first of them. */
static const struct ls_unknown *say_ignored(const struct ls_unknown_list *list,
                                            struct ls_text *text)
{
    const struct ls_unknown *first = NULL;
    for (size_t i = 0; i < list->count; i++) {
        const struct ls_unknown *item = &list->items[i];
        const char *times = item->count == 1 ? "time" : "times";
        if (item->fork == NULL || item->fork->effect != LS_FORK_IGNORED)
            continue;
        ls_text_format(text, "%s%s", first != NULL ? ", " : "", item->name);
        if (item->value != NULL)
            ls_text_format(text, " %s (%zu %s)", item->value, item->count, times);
        else
            ls_text_format(text, " (%s; %zu %s)", item->fork->fork, item->count, times);
        first = first != NULL ? first : item;
    }
    return first;
}

/* One warning for all fields that change no number. */
static bool warn(const struct ls_unknown_list *list, struct ls_definition *definition,
                 const char *file, bool whole)
{
    struct ls_text fields = {0}, text = {0};
    const struct ls_unknown *first = say_ignored(list, &fields);
    if (first != NULL && whole)
        ls_text_format(&text, "%s: ", file);
    else if (first != NULL)
        ls_text_format(&text, "%s:%u:%u: ", file, first->line, first->column);
    if (first != NULL) {
        ls_text_format(&text, "fields of forks that change no number are ignored: %s",
                       fields.data != NULL ? fields.data : "");
        if (!text.failed)
            definition->warning = ls_arena_copy_string(definition->arena, text.data);
    }
    bool done = first == NULL || (!fields.failed && definition->warning != NULL);
    ls_text_free(&fields);
    ls_text_free(&text);
    return done;
}

int ls_unknown_tell(struct ls_unknown_list *list, struct ls_definition *definition,
                    const char *file, bool whole, struct ls_error *error)
{
    int problems = 0;
    for (size_t i = 0; i < list->count && problems >= 0; i++) {
        const struct ls_fork_field *fork = list->items[i].fork;
        if (fork != NULL && fork->effect == LS_FORK_IGNORED)
            continue;
        int found = refuse(&list->items[i], file, whole, error);
        problems = found < 0 ? -1 : problems + found;
    }
    if (problems >= 0 && !warn(list, definition, file, whole))
        problems = -1;
    ls_unknown_free(list);
    return problems;
}

void ls_unknown_free(struct ls_unknown_list *list)
{
    ls_names_free(&list->names);
    ls_free(list->items);
    *list = (struct ls_unknown_list){0};
}
