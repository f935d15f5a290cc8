/* Writing out blocks. A copy of a layer shares its parts with the original but for what has names:
 * its own, those of its bottoms and tops, those of shared parameters. Its places are those of the
 * original. What names mean is said in schema/block_scope.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "schema/blocks.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "schema/block_scope.h"
#include "schema/places.h"

/* ---- Layers ---------------------------------------------------------------------------------- */

static int name_bottoms(struct ls_block_expansion *expansion, struct ls_block_scope *scope,
                        Lockstep__LayerParameter *copy)
{
    char **names = ls_arena_alloc(expansion->definition->arena, copy->n_bottom, sizeof *names);
    for (size_t i = 0; names != NULL && i < copy->n_bottom; i++) {
        names[i] = (char *)ls_scope_look_up(scope, copy->bottom[i]);
        if (names[i] == NULL)
            return ls_block_no_memory(expansion);
    }
    copy->bottom = names;
    return names != NULL ? 0 : ls_block_no_memory(expansion);
}

static int name_tops(struct ls_block_expansion *expansion, struct ls_block_scope *scope,
                     Lockstep__LayerParameter *copy)
{
    char **names = ls_arena_alloc(expansion->definition->arena, copy->n_top, sizeof *names);
    for (size_t i = 0; names != NULL && i < copy->n_top; i++) {
        const char *actual = NULL;
        LS_TRY(ls_scope_make(expansion, scope, copy, copy->top[i], &actual));
        names[i] = (char *)actual;
    }
    copy->top = names;
    return names != NULL ? 0 : ls_block_no_memory(expansion);
}

static int name_parameters(struct ls_block_expansion *expansion, const struct ls_block_scope *scope,
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
            return ls_block_no_memory(expansion);
        *specs[i] = *copy->param[i];
        specs[i]->name = (char *)ls_scope_parameter(expansion, scope, specs[i]->name);
        if (specs[i]->name == NULL)
            return ls_block_no_memory(expansion);
    }
    copy->param = specs;
    return specs != NULL ? 0 : ls_block_no_memory(expansion);
}

/* Appends a layer as it is in a scope. */
static int put_layer(struct ls_block_expansion *expansion, struct ls_block_scope *scope,
                     const Lockstep__LayerParameter *layer)
{
    struct ls_definition *definition = expansion->definition;
    Lockstep__LayerParameter *copy = ls_arena_alloc(definition->arena, 1, sizeof *copy);
    if (copy == NULL || !ls_places_alias(definition->places, copy, layer))
        return ls_block_no_memory(expansion);
    *copy = *layer;
    expansion->layer[expansion->count++] = copy;
    if (scope->copy != NULL) {
        struct ls_place_entry entry = {
            .message = copy, .field = LS_FIELD_COPY, .source = scope->copy};
        if (copy->name != NULL)
            copy->name = (char *)ls_scope_prefixed(expansion, scope, copy->name);
        if (!ls_places_add(definition->places, &entry) ||
            (layer->name != NULL && copy->name == NULL))
            return ls_block_no_memory(expansion);
    }
    LS_TRY(name_bottoms(expansion, scope, copy));
    LS_TRY(name_tops(expansion, scope, copy));
    return name_parameters(expansion, scope, copy);
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

static int put_parts(struct ls_block_expansion *expansion, struct ls_block_scope *scope);

/* Opens the scope of one copy, in which the values that go from copy to copy have names. */
static int open_copy(struct ls_block_expansion *expansion, struct ls_block_scope *outer,
                     const ProtobufCMessage *block, uint32_t index, const char *const *carried,
                     struct ls_block_scope *scope)
{
    struct ls_text prefix = {0}, copy = {0};
    ls_text_format(&prefix, "%s%s.%" PRIu32 ".", outer->prefix, ls_block_name(block), index);
    ls_text_format(&copy, "copy %" PRIu32 " of block '%s%s'", index, outer->prefix,
                   ls_block_name(block));
    *scope = (struct ls_block_scope){.outer = outer, .parts = block};
    if (!prefix.failed && !copy.failed) {
        scope->prefix = ls_arena_copy_string(expansion->definition->arena, prefix.data);
        scope->copy = ls_arena_copy_string(expansion->definition->arena, copy.data);
    }
    ls_text_free(&prefix);
    ls_text_free(&copy);
    bool made = scope->prefix != NULL && scope->copy != NULL;
    for (size_t i = 0; i < ls_block_count(block, "bottom") && made; i++)
        made = ls_scope_set(scope, ls_block_text(block, "bottom", i), carried[i], false);
    return made ? 0 : ls_block_no_memory(expansion);
}

/* What a copy has made as the block's tops: into `carried`. */
static int take_tops(const struct ls_block_expansion *expansion, const struct ls_block_scope *scope,
                     const char **carried)
{
    const ProtobufCMessage *block = scope->parts;
    for (size_t i = 0; i < ls_block_count(block, "top"); i++) {
        const struct ls_block_meaning *found = ls_scope_find(scope, ls_block_text(block, "top", i));
        if (found == NULL || !found->made)
            return ls_block_refuse(expansion, block, "top", NULL,
                                   "no layer of block '%s' makes its top '%s'",
                                   ls_block_name(block), ls_block_text(block, "top", i));
        carried[i] = found->actual;
    }
    return 0;
}

/* A misspelt bottom would leave the copies side by side, each with what the first one reads. */
static int check_bottoms(const struct ls_block_expansion *expansion,
                         const struct ls_block_scope *scope)
{
    const ProtobufCMessage *block = scope->parts;
    for (size_t i = 0; i < ls_block_count(block, "bottom"); i++)
        if (!ls_scope_find(scope, ls_block_text(block, "bottom", i))->read)
            return ls_block_refuse(
                expansion, block, "bottom",
                "what is the same for all copies need not be a bottom of the block",
                "no layer of block '%s' reads its bottom '%s'", ls_block_name(block),
                ls_block_text(block, "bottom", i));
    return 0;
}

/* The block's tops get a meaning in the scope around. */
static int hand_out(struct ls_block_expansion *expansion, struct ls_block_scope *outer,
                    const ProtobufCMessage *block, const char *const *carried)
{
    for (size_t i = 0; i < ls_block_count(block, "top"); i++) {
        const char *name = ls_block_text(block, "top", i), *ignored = NULL;
        const struct ls_block_meaning *known = ls_scope_find(outer, name);
        bool goes_on = false;
        for (size_t k = 0; k < ls_block_count(block, "bottom") && !goes_on; k++)
            goes_on = strcmp(ls_block_text(block, "bottom", k), name) == 0;
        if (!goes_on && known != NULL && known->made)
            return ls_block_refuse(expansion, block, "top", "give one of the two another name",
                                   "the top '%s' of block '%s' is also a top of a layer above",
                                   name, ls_block_name(block));
        if (known == NULL) /* also in a copy that has read it from outside: refused */
            LS_TRY(ls_scope_make(expansion, outer, block, name, &ignored));
        if (!ls_scope_set(outer, name, carried[i], true))
            return ls_block_no_memory(expansion);
    }
    return 0;
}

/* Whether a layer of a block, or of a block in it, has a shared parameter of this name. */
static bool has_parameter(const ProtobufCMessage *parts, const char *name)
{
    for (size_t i = 0; i < ls_block_count(parts, "layer"); i++) {
        const ProtobufCMessage *layer = ls_block_part(parts, "layer", i);
        for (size_t k = 0; k < ls_block_count(layer, "param"); k++) {
            const ProtobufCMessage *spec = ls_block_part(layer, "param", k);
            if (strcmp(ls_block_name(spec), name) == 0)
                return true;
        }
    }
    for (size_t i = 0; i < ls_block_count(parts, "block"); i++)
        if (has_parameter(ls_block_part(parts, "block", i), name))
            return true;
    return false;
}

/* What the lists of a block say that cannot be meant. */
static int check_lists(const struct ls_block_expansion *expansion, const ProtobufCMessage *block)
{
    struct ls_names names = {0};
    int status = 0;
    for (size_t i = 0; i < ls_block_count(block, "bottom") && status == 0; i++) {
        const char *bottom = ls_block_text(block, "bottom", i);
        size_t other;
        if (ls_names_find(&names, bottom, &other))
            status = ls_block_refuse(expansion, block, "bottom", NULL,
                                     "block '%s' has the bottom '%s' twice", ls_block_name(block),
                                     bottom);
        else if (!ls_names_set(&names, bottom, i))
            status = ls_block_no_memory(expansion);
    }
    ls_names_free(&names);
    LS_TRY(status);
    for (size_t i = 0; i < ls_block_count(block, "share"); i++)
        if (!has_parameter(block, ls_block_text(block, "share", i)))
            return ls_block_refuse(expansion, block, "share",
                                   "param { name: \"w\" } in a layer names its parameter",
                                   "no layer of block '%s' has a parameter that is called '%s'",
                                   ls_block_name(block), ls_block_text(block, "share", i));
    return 0;
}

/* What no copy makes right. */
static int check_block(struct ls_block_expansion *expansion, struct ls_block_scope *outer,
                       const ProtobufCMessage *block)
{
    const char *name = ls_block_name(block);
    size_t index, bottoms = ls_block_count(block, "bottom"), tops = ls_block_count(block, "top");
    if (name[0] == '\0')
        return ls_block_refuse(expansion, block, "name",
                               "name: \"h\" makes layers h.0.attn, h.1.attn, ...",
                               "a block needs a name");
    if (ls_names_find(&outer->blocks, name, &index))
        return ls_block_refuse(expansion, block, "name", NULL, "another block is called '%s', too",
                               name);
    if (!ls_names_set(&outer->blocks, name, 0))
        return ls_block_no_memory(expansion);
    if (bottoms > tops)
        return ls_block_refuse(
            expansion, block, "bottom",
            "a block names only what goes from copy to copy: each bottom with a top",
            "block '%s' has %zu bottoms but %zu tops", name, bottoms, tops);
    return check_lists(expansion, block);
}

static int put_block(struct ls_block_expansion *expansion, struct ls_block_scope *outer,
                     const ProtobufCMessage *block)
{
    LS_TRY(check_block(expansion, outer, block));
    size_t tops = ls_block_count(block, "top");
    const char **carried = ls_arena_alloc(expansion->definition->arena, tops + 1, sizeof *carried);
    if (carried == NULL)
        return ls_block_no_memory(expansion);
    for (size_t i = 0; i < ls_block_count(block, "bottom"); i++) {
        carried[i] = ls_scope_look_up(outer, ls_block_text(block, "bottom", i));
        if (carried[i] == NULL)
            return ls_block_no_memory(expansion);
    }
    int status = 0;
    for (uint32_t i = 0; i < ls_block_number(block, "repeat") && status == 0; i++) {
        struct ls_block_scope scope;
        status = open_copy(expansion, outer, block, i, carried, &scope);
        if (status == 0)
            status = put_parts(expansion, &scope);
        if (status == 0)
            status = check_bottoms(expansion, &scope);
        if (status == 0)
            status = take_tops(expansion, &scope, carried);
        ls_scope_close(&scope);
    }
    LS_TRY(status);
    return hand_out(expansion, outer, block, carried);
}

/* How many layers of its scope stand before a block. */
static int find_position(struct ls_block_expansion *expansion, const ProtobufCMessage *parts,
                         const ProtobufCMessage *block, size_t *position)
{
    size_t layers = ls_block_count(parts, "layer");
    const struct ls_place_entry *read =
        ls_places_find(expansion->definition->places, block, LS_FIELD_POSITION, 0);
    *position = read != NULL ? read->line : 0;
    if (ls_block_count(block, "position") > 0)
        *position = ls_block_number(block, "position");
    else if (read == NULL && layers > 0)
        return ls_block_refuse(expansion, block, "position",
                               "position: 0 is in front of the first one",
                               "in binary form block '%s' must say how many layers stand before it",
                               ls_block_name(block));
    if (*position > layers)
        return ls_block_refuse(expansion, block, "position", NULL,
                               "block '%s' stands behind %zu layers, but there are %zu",
                               ls_block_name(block), *position, layers);
    return 0;
}

/* The layers and blocks of a scope, in the order in which they stand. */
static int put_parts(struct ls_block_expansion *expansion, struct ls_block_scope *scope)
{
    size_t blocks = ls_block_count(scope->parts, "block"),
           layers = ls_block_count(scope->parts, "layer");
    size_t next = 0, position = 0;
    for (size_t i = 0; i <= layers; i++) {
        for (; next < blocks; next++) {
            const ProtobufCMessage *block = ls_block_part(scope->parts, "block", next);
            size_t before = position;
            LS_TRY(find_position(expansion, scope->parts, block, &position));
            if (position < before)
                return ls_block_refuse(expansion, block, "position", NULL,
                                       "block '%s' comes behind one that stands further on",
                                       ls_block_name(block));
            if (position > i)
                break;
            LS_TRY(put_block(expansion, scope, block));
        }
        if (i < layers)
            LS_TRY(put_layer(
                expansion, scope,
                (const Lockstep__LayerParameter *)ls_block_part(scope->parts, "layer", i)));
    }
    return 0;
}

/* ---- Nets ------------------------------------------------------------------------------------ */

/* How many layers a net or a block becomes, at most one more than may be. */
static int count_layers(const struct ls_block_expansion *expansion, const ProtobufCMessage *parts,
                        size_t *count)
{
    const size_t most = LS_BLOCK_LAYERS_MAX + 1;
    *count = ls_block_count(parts, "layer") < most ? ls_block_count(parts, "layer") : most;
    for (size_t i = 0; i < ls_block_count(parts, "block"); i++) {
        const ProtobufCMessage *block = ls_block_part(parts, "block", i);
        uint64_t repeat = ls_block_number(block, "repeat");
        size_t inside;
        LS_TRY(count_layers(expansion, block, &inside));
        if (repeat == 0)
            return ls_block_refuse(expansion, block, "repeat", "leave the block out",
                                   "block '%s' is repeated 0 times", ls_block_name(block));
        if (inside == 0)
            return ls_block_refuse(expansion, block, NULL, NULL, "block '%s' has no layers",
                                   ls_block_name(block));
        uint64_t all = repeat < most ? repeat * inside : most;
        *count = all < most - *count ? *count + (size_t)all : most;
        if (*count == most)
            return ls_block_refuse(expansion, block, "repeat", NULL,
                                   "with %" PRIu64
                                   " times block '%s' there are more than %d layers",
                                   repeat, ls_block_name(block), LS_BLOCK_LAYERS_MAX);
    }
    return 0;
}

int ls_blocks_expand(struct ls_definition *definition, Lockstep__NetParameter *net,
                     struct ls_error *error)
{
    struct ls_block_expansion expansion = {.definition = definition, .error = error};
    size_t count;
    if (net->n_block == 0)
        return 0;
    LS_TRY(count_layers(&expansion, &net->base, &count));
    expansion.layer = ls_arena_alloc(definition->arena, count, sizeof *expansion.layer);
    if (expansion.layer == NULL)
        return ls_block_no_memory(&expansion);
    struct ls_block_scope scope = {.parts = &net->base, .prefix = ""};
    int status = put_parts(&expansion, &scope);
    ls_scope_close(&scope);
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
    for (size_t i = 0; i < ls_block_count(net, "layer"); i++)
        LS_TRY(visit(user, (Lockstep__LayerParameter *)ls_block_part(net, "layer", i)));
    for (size_t i = 0; i < ls_block_count(net, "block"); i++)
        LS_TRY(ls_blocks_each(ls_block_part(net, "block", i), visit, user));
    return 0;
}
