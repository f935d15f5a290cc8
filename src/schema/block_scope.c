/* Names in blocks. See schema/block_scope.h. SPDX-License-Identifier: BSD-2-Clause */
#include "schema/block_scope.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "schema/fields.h"

/* ---- Fields, of blocks of any depth ---------------------------------------------------------- */

size_t ls_block_count(const ProtobufCMessage *message, const char *field)
{
    const ProtobufCFieldDescriptor *found = ls_field_named(message->descriptor, field);
    return found != NULL ? ls_field_count(message, found) : 0;
}

/* The index-th message of a repeated field. */
ProtobufCMessage *ls_block_part(const ProtobufCMessage *message, const char *field, size_t index)
{
    return *(ProtobufCMessage *const *)ls_field_at(
        message, ls_field_named(message->descriptor, field), index);
}

const char *ls_block_text(const ProtobufCMessage *message, const char *field, size_t index)
{
    return *(const char *const *)ls_field_at(message, ls_field_named(message->descriptor, field),
                                             index);
}

uint32_t ls_block_number(const ProtobufCMessage *message, const char *field)
{
    return *(const uint32_t *)ls_field_at(message, ls_field_named(message->descriptor, field), 0);
}

const char *ls_block_name(const ProtobufCMessage *block)
{
    return ls_block_count(block, "name") > 0 ? ls_block_text(block, "name", 0) : "";
}

/* ---- Problems -------------------------------------------------------------------------------- */

int ls_block_no_memory(const struct ls_block_expansion *expansion)
{
    if (!ls_arena_limit_hit(expansion->definition->arena))
        return ls_fail_memory(expansion->error, "the layers of blocks");
    return ls_fail(expansion->error, LOCKSTEP_DEFINITION, expansion->definition->file, NULL,
                   "its blocks say far more than a definition can");
}

int ls_block_refuse(const struct ls_block_expansion *expansion, const void *message,
                    const char *field, const char *hint, const char *format, ...)
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

void ls_scope_close(struct ls_block_scope *scope)
{
    ls_names_free(&scope->names);
    ls_names_free(&scope->outside);
    ls_names_free(&scope->blocks);
    ls_free(scope->meanings);
}

struct ls_block_meaning *ls_scope_find(const struct ls_block_scope *scope, const char *name)
{
    size_t index;
    return ls_names_find(&scope->names, name, &index) ? &scope->meanings[index] : NULL;
}

/* Gives a name a meaning, instead of the one that it had. */
bool ls_scope_set(struct ls_block_scope *scope, const char *name, const char *actual, bool made)
{
    struct ls_block_meaning *known = ls_scope_find(scope, name);
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
const char *ls_scope_look_up(struct ls_block_scope *scope, const char *name)
{
    for (; scope != NULL; scope = scope->outer) {
        struct ls_block_meaning *found = ls_scope_find(scope, name);
        if (found != NULL) {
            found->read |= !found->made;
            return found->actual;
        }
        if (!ls_names_set(&scope->outside, name, 0))
            return NULL;
    }
    return name;
}

const char *ls_scope_prefixed(const struct ls_block_expansion *expansion,
                              const struct ls_block_scope *scope, const char *name)
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
int ls_scope_make(struct ls_block_expansion *expansion, struct ls_block_scope *scope,
                  const void *maker, const char *name, const char **actual)
{
    const struct ls_block_meaning *known = ls_scope_find(scope, name);
    if (known != NULL && known->made) {
        *actual = known->actual;
        return 0;
    }
    size_t index;
    if (scope->outer != NULL && known == NULL && ls_names_find(&scope->outside, name, &index))
        return ls_block_refuse(
            expansion, maker, "top",
            "write it as bottom and top of the block if it goes from copy to copy, else "
            "give one of the two another name",
            "block '%s' reads '%s' from outside and makes a value of that name later",
            ls_block_name(scope->parts), name);
    *actual = ls_scope_prefixed(expansion, scope, name);
    return *actual != NULL && ls_scope_set(scope, name, *actual, true)
               ? 0
               : ls_block_no_memory(expansion);
}

/* The name of a shared parameter: that of the copy, unless blocks hand it on. */
const char *ls_scope_parameter(const struct ls_block_expansion *expansion,
                               const struct ls_block_scope *scope, const char *name)
{
    for (; scope->outer != NULL; scope = scope->outer) {
        bool shared = false;
        for (size_t i = 0; i < ls_block_count(scope->parts, "share") && !shared; i++)
            shared = strcmp(ls_block_text(scope->parts, "share", i), name) == 0;
        if (!shared)
            break;
    }
    return ls_scope_prefixed(expansion, scope, name);
}
