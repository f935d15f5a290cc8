/* Writing out blocks. A copy of a layer shares its parts with the original but for what has names:
 * its own, those of its bottoms and tops, those of shared parameters. Its places are those of the
 * original.
 *
 * Names mean something within a scope: the net, or one copy of a block. What a layer makes in a
 * copy is local to it, with the prefix of the copy ("h.3.") before its name; a name that nothing in
 * the copy has made so far is looked up in the scope around. The values that go from copy to copy
 * are entries that each copy begins with.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "schema/blocks.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/names.h"
#include "base/text.h"
#include "schema/fields.h"
#include "schema/places.h"

/* What a name in a scope stands for. */
struct meaning {
    const char *actual; /* the name in the net that is written out */
    bool made;          /* by this scope, not handed to it */
    bool read;          /* before this scope made it */
};

/* The net, or one copy of a block. */
struct scope {
    struct scope *outer;           /* NULL: the net itself */
    const ProtobufCMessage *parts; /* the net, or the block */
    const char *prefix;            /* "h.3." */
    const char *copy;              /* "copy 3 of block 'h'"; NULL: the net */
    struct ls_names names;         /* names as they are written: indices of `meanings` */
    struct meaning *meanings;
    size_t count, capacity;
    struct ls_names outside; /* names that were looked up outside of it */
    struct ls_names blocks;  /* names of blocks that have been written out */
};

struct expansion {
    struct ls_definition *definition;
    Lockstep__LayerParameter **layer;
    size_t count;
    struct ls_error *error;
};

/* ---- Fields, of blocks of any depth ---------------------------------------------------------- */

static size_t count_of(const ProtobufCMessage *message, const char *field)
{
    const ProtobufCFieldDescriptor *found = ls_field_named(message->descriptor, field);
    return found != NULL ? ls_field_count(message, found) : 0;
}

/* The index-th message of a repeated field. */
static ProtobufCMessage *part_of(const ProtobufCMessage *message, const char *field, size_t index)
{
    return *(ProtobufCMessage *const *)ls_field_at(
        message, ls_field_named(message->descriptor, field), index);
}

static const char *text_of(const ProtobufCMessage *message, const char *field, size_t index)
{
    return *(const char *const *)ls_field_at(message, ls_field_named(message->descriptor, field),
                                             index);
}

static uint32_t number_of(const ProtobufCMessage *message, const char *field)
{
    return *(const uint32_t *)ls_field_at(message, ls_field_named(message->descriptor, field), 0);
}

static const char *name_of(const ProtobufCMessage *block)
{
    return count_of(block, "name") > 0 ? text_of(block, "name", 0) : "";
}

/* ---- Problems -------------------------------------------------------------------------------- */

static int no_memory(const struct expansion *expansion)
{
    if (!ls_arena_limit_hit(expansion->definition->arena))
        return ls_fail_memory(expansion->error, "the layers of blocks");
    return ls_fail(expansion->error, LOCKSTEP_DEFINITION, expansion->definition->file, NULL,
                   "its blocks say far more than a definition can");
}

static int refuse(const struct expansion *expansion, const void *message, const char *field,
                  const char *hint, const char *format, ...) __attribute__((format(printf, 5, 6)));
static int refuse(const struct expansion *expansion, const void *message, const char *field,
                  const char *hint, const char *format, ...)
{
    char place[LS_PLACE_MAX], text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    ls_place(expansion->definition, message, field, place, sizeof place);
    return ls_fail(expansion->error, LOCKSTEP_DEFINITION, place, hint, "%s", text);
}

/* ---- Scopes ---------------------------------------------------------------------------------- */

static void close_scope(struct scope *scope)
{
    ls_names_free(&scope->names);
    ls_names_free(&scope->outside);
    ls_names_free(&scope->blocks);
    ls_free(scope->meanings);
}

static struct meaning *find(const struct scope *scope, const char *name)
{
    size_t index;
    return ls_names_find(&scope->names, name, &index) ? &scope->meanings[index] : NULL;
}

/* Gives a name a meaning, instead of the one that it had. */
static bool set(struct scope *scope, const char *name, const char *actual, bool made)
{
    struct meaning *known = find(scope, name);
    if (known == NULL) {
        if (!LS_GROW(scope->meanings, scope->count, scope->capacity) ||
            !ls_names_set(&scope->names, name, scope->count))
            return false;
        known = &scope->meanings[scope->count++];
        known->read = false;
    }
    known->actual = actual;
    known->made = made;
    return true;
}

/* What a name that is read stands for; NULL without memory. */
static const char *look_up(struct scope *scope, const char *name)
{
    for (; scope != NULL; scope = scope->outer) {
        struct meaning *found = find(scope, name);
        if (found != NULL) {
            found->read |= !found->made;
            return found->actual;
        }
        if (!ls_names_set(&scope->outside, name, 0))
            return NULL;
    }
    return name;
}

static const char *prefixed(const struct expansion *expansion, const struct scope *scope,
                            const char *name)
{
    size_t before = strlen(scope->prefix), length = strlen(name);
    if (before == 0)
        return name;
    char *full = ls_arena_alloc(expansion->definition->arena, before + length + 1, 1);
    if (full != NULL) {
        memcpy(full, scope->prefix, before);
        memcpy(full + before, name, length);
    }
    return full;
}

/* What a name that a layer makes stands for. A layer of the net that writes over what a block has
 * left under that name writes over the last copy's. */
static int make_name(struct expansion *expansion, struct scope *scope, const void *maker,
                     const char *name, const char **actual)
{
    const struct meaning *known = find(scope, name);
    if (known != NULL && known->made) {
        *actual = known->actual;
        return 0;
    }
    size_t index;
    if (scope->outer != NULL && known == NULL && ls_names_find(&scope->outside, name, &index))
        return refuse(expansion, maker, "top",
                      "write it as bottom and top of the block if it goes from copy to copy, else "
                      "give one of the two another name",
                      "block '%s' reads '%s' from outside and makes a value of that name later",
                      name_of(scope->parts), name);
    *actual = prefixed(expansion, scope, name);
    return *actual != NULL && set(scope, name, *actual, true) ? 0 : no_memory(expansion);
}

/* The name of a shared parameter: that of the copy, unless blocks hand it on. */
static const char *parameter_name(const struct expansion *expansion, const struct scope *scope,
                                  const char *name)
{
    for (; scope->outer != NULL; scope = scope->outer) {
        bool shared = false;
        for (size_t i = 0; i < count_of(scope->parts, "share") && !shared; i++)
            shared = strcmp(text_of(scope->parts, "share", i), name) == 0;
        if (!shared)
            break;
    }
    return prefixed(expansion, scope, name);
}

/* ---- Layers ---------------------------------------------------------------------------------- */

static int name_bottoms(struct expansion *expansion, struct scope *scope,
                        Lockstep__LayerParameter *copy)
{
    char **names = ls_arena_alloc(expansion->definition->arena, copy->n_bottom, sizeof *names);
    for (size_t i = 0; names != NULL && i < copy->n_bottom; i++) {
        names[i] = (char *)look_up(scope, copy->bottom[i]);
        if (names[i] == NULL)
            return no_memory(expansion);
    }
    copy->bottom = names;
    return names != NULL ? 0 : no_memory(expansion);
}

static int name_tops(struct expansion *expansion, struct scope *scope,
                     Lockstep__LayerParameter *copy)
{
    char **names = ls_arena_alloc(expansion->definition->arena, copy->n_top, sizeof *names);
    for (size_t i = 0; names != NULL && i < copy->n_top; i++) {
        const char *actual = NULL;
        LS_TRY(make_name(expansion, scope, copy, copy->top[i], &actual));
        names[i] = (char *)actual;
    }
    copy->top = names;
    return names != NULL ? 0 : no_memory(expansion);
}

static int name_parameters(struct expansion *expansion, const struct scope *scope,
                           Lockstep__LayerParameter *copy)
{
    struct ls_definition *definition = expansion->definition;
    Lockstep__ParamSpec **specs = ls_arena_alloc(definition->arena, copy->n_param, sizeof *specs);
    for (size_t i = 0; specs != NULL && i < copy->n_param; i++) {
        specs[i] = copy->param[i];
        if (specs[i]->name == NULL || specs[i]->name[0] == '\0')
            continue;
        specs[i] = ls_arena_alloc(definition->arena, 1, sizeof **specs);
        if (specs[i] == NULL || !ls_places_alias(definition->places, specs[i], copy->param[i]))
            return no_memory(expansion);
        *specs[i] = *copy->param[i];
        specs[i]->name = (char *)parameter_name(expansion, scope, specs[i]->name);
        if (specs[i]->name == NULL)
            return no_memory(expansion);
    }
    copy->param = specs;
    return specs != NULL ? 0 : no_memory(expansion);
}

/* Appends a layer as it is in a scope. */
static int put_layer(struct expansion *expansion, struct scope *scope,
                     const Lockstep__LayerParameter *layer)
{
    struct ls_definition *definition = expansion->definition;
    Lockstep__LayerParameter *copy = ls_arena_alloc(definition->arena, 1, sizeof *copy);
    if (copy == NULL || !ls_places_alias(definition->places, copy, layer))
        return no_memory(expansion);
    *copy = *layer;
    expansion->layer[expansion->count++] = copy;
    if (scope->copy != NULL) {
        struct ls_place_entry entry = {
            .message = copy, .field = LS_FIELD_COPY, .source = scope->copy};
        if (copy->name != NULL)
            copy->name = (char *)prefixed(expansion, scope, copy->name);
        if (!ls_places_add(definition->places, &entry) ||
            (layer->name != NULL && copy->name == NULL))
            return no_memory(expansion);
    }
    LS_TRY(name_bottoms(expansion, scope, copy));
    LS_TRY(name_tops(expansion, scope, copy));
    return name_parameters(expansion, scope, copy);
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

static int put_parts(struct expansion *expansion, struct scope *scope);

/* Opens the scope of one copy, in which the values that go from copy to copy have names. */
static int open_copy(struct expansion *expansion, struct scope *outer,
                     const ProtobufCMessage *block, uint32_t index, const char *const *carried,
                     struct scope *scope)
{
    struct ls_text prefix = {0}, copy = {0};
    ls_text_format(&prefix, "%s%s.%" PRIu32 ".", outer->prefix, name_of(block), index);
    ls_text_format(&copy, "copy %" PRIu32 " of block '%s%s'", index, outer->prefix, name_of(block));
    *scope = (struct scope){.outer = outer, .parts = block};
    if (!prefix.failed && !copy.failed) {
        scope->prefix = ls_arena_copy_string(expansion->definition->arena, prefix.data);
        scope->copy = ls_arena_copy_string(expansion->definition->arena, copy.data);
    }
    ls_text_free(&prefix);
    ls_text_free(&copy);
    bool made = scope->prefix != NULL && scope->copy != NULL;
    for (size_t i = 0; i < count_of(block, "bottom") && made; i++)
        made = set(scope, text_of(block, "bottom", i), carried[i], false);
    return made ? 0 : no_memory(expansion);
}

/* What a copy has made as the block's tops: into `carried`. */
static int take_tops(const struct expansion *expansion, const struct scope *scope,
                     const char **carried)
{
    const ProtobufCMessage *block = scope->parts;
    for (size_t i = 0; i < count_of(block, "top"); i++) {
        const struct meaning *found = find(scope, text_of(block, "top", i));
        if (found == NULL || !found->made)
            return refuse(expansion, block, "top", NULL,
                          "no layer of block '%s' makes its top '%s'", name_of(block),
                          text_of(block, "top", i));
        carried[i] = found->actual;
    }
    return 0;
}

/* A misspelt bottom would leave the copies side by side, each with what the first one reads. */
static int check_bottoms(const struct expansion *expansion, const struct scope *scope)
{
    const ProtobufCMessage *block = scope->parts;
    for (size_t i = 0; i < count_of(block, "bottom"); i++)
        if (!find(scope, text_of(block, "bottom", i))->read)
            return refuse(expansion, block, "bottom",
                          "what is the same for all copies need not be a bottom of the block",
                          "no layer of block '%s' reads its bottom '%s'", name_of(block),
                          text_of(block, "bottom", i));
    return 0;
}

/* The block's tops get a meaning in the scope around. */
static int hand_out(struct expansion *expansion, struct scope *outer, const ProtobufCMessage *block,
                    const char *const *carried)
{
    for (size_t i = 0; i < count_of(block, "top"); i++) {
        const char *name = text_of(block, "top", i), *ignored = NULL;
        const struct meaning *known = find(outer, name);
        bool goes_on = false;
        for (size_t k = 0; k < count_of(block, "bottom") && !goes_on; k++)
            goes_on = strcmp(text_of(block, "bottom", k), name) == 0;
        if (!goes_on && known != NULL && known->made)
            return refuse(expansion, block, "top", "give one of the two another name",
                          "the top '%s' of block '%s' is also a top of a layer above", name,
                          name_of(block));
        if (known == NULL) /* also in a copy that has read it from outside: refused */
            LS_TRY(make_name(expansion, outer, block, name, &ignored));
        if (!set(outer, name, carried[i], true))
            return no_memory(expansion);
    }
    return 0;
}

/* Whether a layer of a block, or of a block in it, has a shared parameter of this name. */
static bool has_parameter(const ProtobufCMessage *parts, const char *name)
{
    for (size_t i = 0; i < count_of(parts, "layer"); i++) {
        const ProtobufCMessage *layer = part_of(parts, "layer", i);
        for (size_t k = 0; k < count_of(layer, "param"); k++) {
            const ProtobufCMessage *spec = part_of(layer, "param", k);
            if (strcmp(name_of(spec), name) == 0)
                return true;
        }
    }
    for (size_t i = 0; i < count_of(parts, "block"); i++)
        if (has_parameter(part_of(parts, "block", i), name))
            return true;
    return false;
}

/* What the lists of a block say that cannot be meant. */
static int check_lists(const struct expansion *expansion, const ProtobufCMessage *block)
{
    struct ls_names names = {0};
    int status = 0;
    for (size_t i = 0; i < count_of(block, "bottom") && status == 0; i++) {
        const char *bottom = text_of(block, "bottom", i);
        size_t other;
        if (ls_names_find(&names, bottom, &other))
            status = refuse(expansion, block, "bottom", NULL,
                            "block '%s' has the bottom '%s' twice", name_of(block), bottom);
        else if (!ls_names_set(&names, bottom, i))
            status = no_memory(expansion);
    }
    ls_names_free(&names);
    LS_TRY(status);
    for (size_t i = 0; i < count_of(block, "share"); i++)
        if (!has_parameter(block, text_of(block, "share", i)))
            return refuse(expansion, block, "share",
                          "param { name: \"w\" } in a layer names its parameter",
                          "no layer of block '%s' has a parameter that is called '%s'",
                          name_of(block), text_of(block, "share", i));
    return 0;
}

/* What no copy makes right. */
static int check_block(struct expansion *expansion, struct scope *outer,
                       const ProtobufCMessage *block)
{
    const char *name = name_of(block);
    size_t index, bottoms = count_of(block, "bottom"), tops = count_of(block, "top");
    if (name[0] == '\0')
        return refuse(expansion, block, "name", "name: \"h\" makes layers h.0.attn, h.1.attn, ...",
                      "a block needs a name");
    if (ls_names_find(&outer->blocks, name, &index))
        return refuse(expansion, block, "name", NULL, "another block is called '%s', too", name);
    if (!ls_names_set(&outer->blocks, name, 0))
        return no_memory(expansion);
    if (bottoms > tops)
        return refuse(expansion, block, "bottom",
                      "a block names only what goes from copy to copy: each bottom with a top",
                      "block '%s' has %zu bottoms but %zu tops", name, bottoms, tops);
    return check_lists(expansion, block);
}

static int put_block(struct expansion *expansion, struct scope *outer,
                     const ProtobufCMessage *block)
{
    LS_TRY(check_block(expansion, outer, block));
    size_t tops = count_of(block, "top");
    const char **carried = ls_arena_alloc(expansion->definition->arena, tops + 1, sizeof *carried);
    if (carried == NULL)
        return no_memory(expansion);
    for (size_t i = 0; i < count_of(block, "bottom"); i++) {
        carried[i] = look_up(outer, text_of(block, "bottom", i));
        if (carried[i] == NULL)
            return no_memory(expansion);
    }
    int status = 0;
    for (uint32_t i = 0; i < number_of(block, "repeat") && status == 0; i++) {
        struct scope scope;
        status = open_copy(expansion, outer, block, i, carried, &scope);
        if (status == 0)
            status = put_parts(expansion, &scope);
        if (status == 0)
            status = check_bottoms(expansion, &scope);
        if (status == 0)
            status = take_tops(expansion, &scope, carried);
        close_scope(&scope);
    }
    LS_TRY(status);
    return hand_out(expansion, outer, block, carried);
}

/* How many layers of its scope stand before a block. */
static int find_position(struct expansion *expansion, const ProtobufCMessage *parts,
                         const ProtobufCMessage *block, size_t *position)
{
    size_t layers = count_of(parts, "layer");
    const struct ls_place_entry *read =
        ls_places_find(expansion->definition->places, block, LS_FIELD_POSITION, 0);
    *position = read != NULL ? read->line : 0;
    if (count_of(block, "position") > 0)
        *position = number_of(block, "position");
    else if (read == NULL && layers > 0)
        return refuse(expansion, block, "position", "position: 0 is in front of the first one",
                      "in binary form block '%s' must say how many layers stand before it",
                      name_of(block));
    if (*position > layers)
        return refuse(expansion, block, "position", NULL,
                      "block '%s' stands behind %zu layers, but there are %zu", name_of(block),
                      *position, layers);
    return 0;
}

/* The layers and blocks of a scope, in the order in which they stand. */
static int put_parts(struct expansion *expansion, struct scope *scope)
{
    size_t blocks = count_of(scope->parts, "block"), layers = count_of(scope->parts, "layer");
    size_t next = 0, position = 0;
    for (size_t i = 0; i <= layers; i++) {
        for (; next < blocks; next++) {
            const ProtobufCMessage *block = part_of(scope->parts, "block", next);
            size_t before = position;
            LS_TRY(find_position(expansion, scope->parts, block, &position));
            if (position < before)
                return refuse(expansion, block, "position", NULL,
                              "block '%s' comes behind one that stands further on", name_of(block));
            if (position > i)
                break;
            LS_TRY(put_block(expansion, scope, block));
        }
        if (i < layers)
            LS_TRY(put_layer(expansion, scope,
                             (const Lockstep__LayerParameter *)part_of(scope->parts, "layer", i)));
    }
    return 0;
}

/* ---- Nets ------------------------------------------------------------------------------------ */

/* How many layers a net or a block becomes, at most one more than may be. */
static int count_layers(const struct expansion *expansion, const ProtobufCMessage *parts,
                        size_t *count)
{
    const size_t most = LS_BLOCK_LAYERS_MAX + 1;
    *count = count_of(parts, "layer") < most ? count_of(parts, "layer") : most;
    for (size_t i = 0; i < count_of(parts, "block"); i++) {
        const ProtobufCMessage *block = part_of(parts, "block", i);
        uint64_t repeat = number_of(block, "repeat");
        size_t inside;
        LS_TRY(count_layers(expansion, block, &inside));
        if (repeat == 0)
            return refuse(expansion, block, "repeat", "leave the block out",
                          "block '%s' is repeated 0 times", name_of(block));
        if (inside == 0)
            return refuse(expansion, block, NULL, NULL, "block '%s' has no layers", name_of(block));
        uint64_t all = repeat < most ? repeat * inside : most;
        *count = all < most - *count ? *count + (size_t)all : most;
        if (*count == most)
            return refuse(expansion, block, "repeat", NULL,
                          "with %" PRIu64 " times block '%s' there are more than %d layers", repeat,
                          name_of(block), LS_BLOCK_LAYERS_MAX);
    }
    return 0;
}

int ls_blocks_expand(struct ls_definition *definition, Lockstep__NetParameter *net,
                     struct ls_error *error)
{
    struct expansion expansion = {.definition = definition, .error = error};
    size_t count;
    if (net->n_block == 0)
        return 0;
    LS_TRY(count_layers(&expansion, &net->base, &count));
    expansion.layer = ls_arena_alloc(definition->arena, count, sizeof *expansion.layer);
    if (expansion.layer == NULL)
        return no_memory(&expansion);
    struct scope scope = {.parts = &net->base, .prefix = ""};
    int status = put_parts(&expansion, &scope);
    close_scope(&scope);
    LS_TRY(status);
    net->layer = expansion.layer;
    net->n_layer = expansion.count;
    net->n_block = 0;
    net->block = NULL;
    return 0;
}

int ls_blocks_each(const ProtobufCMessage *net,
                   int (*visit)(void *user, Lockstep__LayerParameter *layer), void *user)
{
    for (size_t i = 0; i < count_of(net, "layer"); i++)
        LS_TRY(visit(user, (Lockstep__LayerParameter *)part_of(net, "layer", i)));
    for (size_t i = 0; i < count_of(net, "block"); i++)
        LS_TRY(ls_blocks_each(part_of(net, "block", i), visit, user));
    return 0;
}
