/* What names mean in the blocks of a definition while they are written out.
 *
 * Names mean something within a scope: the net, or one copy of a block. What a layer makes in a
 * copy is local to it, with the prefix of the copy ("h.3.") before its name; a name that nothing in
 * the copy has made so far is looked up in the scope around. The values that go from copy to copy
 * are entries that each copy begins with.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SCHEMA_BLOCK_SCOPE_H
#define LS_SCHEMA_BLOCK_SCOPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

#include "base/names.h"
#include "schema/definition.h"

/* What a name in a scope stands for. */
struct ls_block_meaning {
    const char *actual; /* the name in the net that is written out */
    bool made;          /* by this scope, not handed to it */
    bool read;          /* before this scope made it */
};

/* The net, or one copy of a block. */
struct ls_block_scope {
    struct ls_block_scope *outer;  /* NULL: the net itself */
    const ProtobufCMessage *parts; /* the net, or the block */
    const char *prefix;            /* "h.3." */
    const char *copy;              /* "copy 3 of block 'h'"; NULL: the net */
    struct ls_names names;         /* names as they are written: indices of `meanings` */
    struct ls_block_meaning *meanings;
    size_t count, capacity;
    struct ls_names outside; /* names that were looked up outside of it */
    struct ls_names blocks;  /* names of blocks that have been written out */
};

struct ls_block_expansion {
    struct ls_definition *definition;
    Lockstep__LayerParameter **layer;
    size_t count;
    struct ls_error *error;
};

/* Fields of the net or of a block by their names, at any depth: how many values there are; the
 * index-th message of a repeated field; the index-th string; a number. */
size_t ls_block_count(const ProtobufCMessage *message, const char *field);
ProtobufCMessage *ls_block_part(const ProtobufCMessage *message, const char *field, size_t index);
const char *ls_block_text(const ProtobufCMessage *message, const char *field, size_t index);
uint32_t ls_block_number(const ProtobufCMessage *message, const char *field);
/* "" if it has none. */
const char *ls_block_name(const ProtobufCMessage *block);

/* Problems: both return the status. */
int ls_block_no_memory(const struct ls_block_expansion *expansion);
int ls_block_refuse(const struct ls_block_expansion *expansion, const void *message,
                    const char *field, const char *hint, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

void ls_scope_close(struct ls_block_scope *scope);
/* NULL: the scope itself gives the name no meaning. */
struct ls_block_meaning *ls_scope_find(const struct ls_block_scope *scope, const char *name);
/* Gives a name a meaning, instead of the one that it had; false without memory. */
bool ls_scope_set(struct ls_block_scope *scope, const char *name, const char *actual, bool made);
/* What a name that is read stands for; NULL without memory. */
const char *ls_scope_look_up(struct ls_block_scope *scope, const char *name);
/* A name behind the prefix of a scope; NULL without memory. */
const char *ls_scope_prefixed(const struct ls_block_expansion *expansion,
                              const struct ls_block_scope *scope, const char *name);
/* What a name that `maker`, a layer or a block, makes stands for. */
int ls_scope_make(struct ls_block_expansion *expansion, struct ls_block_scope *scope,
                  const void *maker, const char *name, const char **actual);
/* The name of a shared parameter: that of the copy, unless blocks hand it on. */
const char *ls_scope_parameter(const struct ls_block_expansion *expansion,
                               const struct ls_block_scope *scope, const char *name);

#endif
