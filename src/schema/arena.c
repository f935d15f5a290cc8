/* A stack of blocks, bumped; big requests have blocks of their own in a list, so that they can be
 * returned. A small header before each piece tells which of both it is.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "schema/arena.h"

#include <stdint.h>
#include <string.h>

#include "base/memory.h"

enum { BLOCK = 32 * 1024, BIG = 64 * 1024, HEADER = 16 };

struct block {
    struct block *next, *previous;
    size_t size;  /* bytes behind this header */
    size_t taken; /* of them */
};
_Static_assert(sizeof(struct block) % HEADER == 0, "pieces are aligned to 16 bytes");

struct ls_arena {
    struct block *blocks; /* the newest first; pieces come from it */
    struct block *big;    /* one piece each, doubly linked */
    size_t limit, used;
    bool limit_hit, exhausted;
    ProtobufCAllocator allocator;
};

/* Before each piece. */
struct header {
    size_t size;
    struct block *big; /* NULL for a piece of a shared block */
};
_Static_assert(sizeof(struct header) == HEADER, "pieces are aligned to 16 bytes");

/* protobuf-c's view of an arena. */
static void *allocator_alloc(void *arena, size_t size)
{
    return ls_arena_alloc(arena, 1, size);
}

static void allocator_free(void *arena, void *memory)
{
    ls_arena_release(arena, memory);
}

struct ls_arena *ls_arena_new(size_t limit)
{
    struct ls_arena *arena = ls_alloc(1, sizeof *arena);
    if (arena == NULL)
        return NULL;
    arena->limit = limit;
    arena->allocator = (ProtobufCAllocator){allocator_alloc, allocator_free, arena};
    return arena;
}

static void free_blocks(struct block *block)
{
    while (block != NULL) {
        struct block *next = block->next;
        ls_free(block);
        block = next;
    }
}

void ls_arena_free(struct ls_arena *arena)
{
    if (arena == NULL)
        return;
    free_blocks(arena->blocks);
    free_blocks(arena->big);
    ls_free(arena);
}

static struct block *new_block(size_t size)
{
    struct block *block = ls_alloc(1, sizeof *block + size);
    if (block != NULL)
        block->size = size;
    return block;
}

/* The first free byte of a block. */
static char *block_end(struct block *block)
{
    return (char *)(block + 1) + block->taken;
}

/* A piece with a block of its own. `size` includes the header. */
static struct header *take_big(struct ls_arena *arena, size_t size)
{
    struct block *block = new_block(size);
    if (block == NULL)
        return NULL;
    block->next = arena->big;
    if (arena->big != NULL)
        arena->big->previous = block;
    arena->big = block;
    struct header *header = (struct header *)block_end(block);
    header->big = block;
    return header;
}

/* A piece behind the last one; what is left of a full block is given up. */
static struct header *take_small(struct ls_arena *arena, size_t size)
{
    if (arena->blocks == NULL || arena->blocks->size - arena->blocks->taken < size) {
        struct block *block = new_block(size > BLOCK ? size : BLOCK);
        if (block == NULL)
            return NULL;
        block->next = arena->blocks;
        arena->blocks = block;
    }
    struct header *header = (struct header *)block_end(arena->blocks);
    arena->blocks->taken += size;
    return header;
}

void *ls_arena_alloc(struct ls_arena *arena, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX / 2)
        return NULL;
    bytes = (bytes + 2 * HEADER - 1) / HEADER * HEADER; /* and its header */
    if (bytes > arena->limit - arena->used) {
        arena->limit_hit = true;
        return NULL;
    }
    struct header *header = bytes >= BIG ? take_big(arena, bytes) : take_small(arena, bytes);
    if (header == NULL) {
        arena->exhausted = true;
        return NULL;
    }
    header->size = bytes;
    arena->used += bytes;
    return header + 1;
}

void ls_arena_release(struct ls_arena *arena, void *memory)
{
    if (memory == NULL)
        return;
    struct header *header = (struct header *)memory - 1;
    struct block *block = header->big;
    if (block == NULL)
        return;
    arena->used -= header->size;
    if (block->previous != NULL)
        block->previous->next = block->next;
    else
        arena->big = block->next;
    if (block->next != NULL)
        block->next->previous = block->previous;
    ls_free(block);
}

size_t ls_arena_capacity(const void *memory)
{
    return ((const struct header *)memory - 1)->size - HEADER;
}

char *ls_arena_copy(struct ls_arena *arena, const void *bytes, size_t length)
{
    char *copy = length < SIZE_MAX ? ls_arena_alloc(arena, length + 1, 1) : NULL;
    if (copy != NULL && length > 0)
        memcpy(copy, bytes, length);
    return copy;
}

char *ls_arena_copy_string(struct ls_arena *arena, const char *string)
{
    return ls_arena_copy(arena, string, strlen(string));
}

ProtobufCMessage *ls_arena_message(struct ls_arena *arena,
                                   const ProtobufCMessageDescriptor *descriptor)
{
    ProtobufCMessage *message = ls_arena_alloc(arena, 1, descriptor->sizeof_message);
    if (message != NULL)
        protobuf_c_message_init(descriptor, message);
    return message;
}

ProtobufCAllocator *ls_arena_allocator(struct ls_arena *arena)
{
    return &arena->allocator;
}

bool ls_arena_limit_hit(const struct ls_arena *arena)
{
    return arena->limit_hit;
}

bool ls_arena_exhausted(const struct ls_arena *arena)
{
    return arena->exhausted;
}
