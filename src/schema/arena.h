/* Memory that lives and dies with a definition: messages, strings, lists.
 *
 * Everything that a definition is made of comes from one arena and is released at once, so that
 * upgrades and filters can share parts of messages freely: no part has an owner of its own. The
 * arena has a limit, because files decide how much it holds. Zeroed, aligned to 16 bytes.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SCHEMA_ARENA_H
#define LS_SCHEMA_ARENA_H

#include <stdbool.h>
#include <stddef.h>

#include <protobuf-c/protobuf-c.h>

struct ls_arena;

/* An arena that gives out at most `limit` bytes; NULL when there is no memory. */
struct ls_arena *ls_arena_new(size_t limit);
void ls_arena_free(struct ls_arena *arena);

/* `count` elements of `size` bytes, zeroed, or NULL (no memory, beyond the limit, overflow). */
void *ls_arena_alloc(struct ls_arena *arena, size_t count, size_t size);
/* Returns memory early. Only what has a block of its own (64 KiB or more) is really released. */
void ls_arena_release(struct ls_arena *arena, void *memory);
/* How many bytes a piece of an arena has room for. */
size_t ls_arena_capacity(const void *memory);
/* A copy of `length` bytes with a NUL behind it. */
char *ls_arena_copy(struct ls_arena *arena, const void *bytes, size_t length);
char *ls_arena_copy_string(struct ls_arena *arena, const char *string);
/* An empty message of a type, with its defaults. */
ProtobufCMessage *ls_arena_message(struct ls_arena *arena,
                                   const ProtobufCMessageDescriptor *descriptor);
/* The same memory as an allocator of protobuf-c; valid as long as the arena. */
ProtobufCAllocator *ls_arena_allocator(struct ls_arena *arena);
/* Why a request was refused: because of the limit, or for want of memory. */
bool ls_arena_limit_hit(const struct ls_arena *arena);
bool ls_arena_exhausted(const struct ls_arena *arena);

#endif
