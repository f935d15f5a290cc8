/* LMDB's file format, version 1, as 64-bit little-endian machines write it.
 *
 * The file is an array of pages. Pages 0 and 1 are two descriptions of the database, written in
 * turn; the one with the higher transaction number holds. From there a B+ tree leads to the
 * records:
 *
 *   page:  0 number u64, 8 pad u16, 10 flags u16, 12 lower u16, 14 upper u16 (an overflow page has
 *          its count of pages as u32 at 12), 16 offsets of the nodes u16 each, up to `lower`
 *   node:  0 lo u16, 2 hi u16, 4 flags u16, 6 key size u16, 8 key, then the value
 *          in a branch lo | hi << 16 | flags << 32 is the page of the child;
 *          in a leaf   lo | hi << 16 is the size of the value, which lies behind the key, or, with
 *          flag 1, on overflow pages whose first one's number (u64) lies there
 *   description (behind 16 bytes of page header):  0 magic u32, 4 version u32, 8 address u64, 16
 * map size u64, 24 and 72 two databases (free pages, main) of 48 bytes: 0 pad u32 (of the first:
 * the page size), 4 flags u16, 6 depth u16, 8 three counts of pages u64, 32 entries u64, 40 root
 * page u64; 120 last page u64, 128 transaction u64
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/lmdb_index.h"

#include <stdbool.h>
#include <string.h>

#include "base/memory.h"

enum {
    PAGE_HEADER = 16,
    NODE_HEADER = 8,
    META_SIZE = 136,
    FLAG_BRANCH = 1,
    FLAG_LEAF = 2,
    FLAG_OVERFLOW = 4,
    NODE_BIG = 1,   /* the value is on overflow pages */
    NODE_OTHER = 6, /* a sub-database, or several values of one key */
    DEPTH_MAX = 32, /* of the tree; LMDB's own limit */
};
static const uint64_t NO_PAGE = UINT64_MAX;

struct file {
    const char *name;
    const uint8_t *bytes;
    uint64_t size;
    uint64_t page_size;
    uint64_t pages; /* complete ones in the file that the database uses */
    struct ls_error *error;
};

/* One level of the way from the root to a leaf. */
struct level {
    const uint8_t *page;
    unsigned node, nodes;
};

struct walk {
    struct file file;
    struct level level[DEPTH_MAX];
    int depth;
    uint64_t visited; /* pages so far: a tree has each once */
    struct ls_lmdb_entry *entry;
    size_t count, capacity;
};

static uint16_t u16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t u32(const uint8_t *p)
{
    return (uint32_t)u16(p) | (uint32_t)u16(p + 2) << 16;
}

static uint64_t u64(const uint8_t *p)
{
    return (uint64_t)u32(p) | (uint64_t)u32(p + 4) << 32;
}

static int damaged(const struct file *file, uint64_t page, const char *what)
{
    return ls_fail(file->error, LOCKSTEP_DATA, file->name,
                   "the database is damaged or incomplete; make it again", "LMDB page %llu: %s",
                   (unsigned long long)page, what);
}

/* A description that looks right, or NULL. */
static const uint8_t *meta_at(const struct file *file, uint64_t offset)
{
    if (file->size < META_SIZE + PAGE_HEADER || offset > file->size - META_SIZE - PAGE_HEADER)
        return NULL;
    const uint8_t *meta = file->bytes + offset + PAGE_HEADER;
    return u32(meta) == 0xbeefc0deU && u32(meta + 4) == 1 ? meta : NULL;
}

static bool page_size_valid(uint64_t size)
{
    return size >= 256 && size <= 65536 && (size & (size - 1)) == 0;
}

/* Finds the description that holds. The second one's place depends on the page size, which the
 * first one knows; if that is unreadable, common sizes are tried. */
static const uint8_t *find_meta(struct file *file)
{
    const uint8_t *first = meta_at(file, 0);
    const uint8_t *second = NULL;
    if (first != NULL && page_size_valid(u32(first + 24)))
        second = meta_at(file, u32(first + 24));
    else
        for (uint64_t size = 4096; size <= 65536 && second == NULL; size *= 2) {
            first = NULL;
            second = meta_at(file, size);
            if (second != NULL && u32(second + 24) != size)
                second = NULL;
        }
    if (first == NULL || second == NULL)
        return first != NULL ? first : second;
    return u64(second + 128) > u64(first + 128) ? second : first;
}

static int open_file(struct file *file, uint64_t *root, uint64_t *entries)
{
    const uint8_t *meta = find_meta(file);
    if (meta == NULL || !page_size_valid(u32(meta + 24)))
        return ls_fail(file->error, LOCKSTEP_DATA, file->name, NULL,
                       file->size == 0 ? "is empty" : "is not an LMDB database");
    file->page_size = u32(meta + 24);
    file->pages = file->size / file->page_size;
    uint64_t last = u64(meta + 120);
    if (last >= file->pages)
        return ls_fail(file->error, LOCKSTEP_DATA, file->name,
                       "the database is incomplete; copy or make it again",
                       "is cut off: %llu of %llu pages are there", (unsigned long long)file->pages,
                       (unsigned long long)last + 1);
    file->pages = last + 1;
    const uint8_t *main_database = meta + 72;
    if ((u16(main_database + 4) & 0x7e) != 0)
        return ls_fail(file->error, LOCKSTEP_DATA, file->name, NULL,
                       "is an LMDB database with special keys; Caffe's have none");
    *entries = u64(main_database + 32);
    *root = u64(main_database + 40);
    return 0;
}

/* Steps down to a page of the tree: checks its header and that all offsets of nodes lie in it. */
static int push(struct walk *walk, uint64_t number)
{
    const struct file *file = &walk->file;
    if (number < 2 || number >= file->pages)
        return damaged(file, number, "does not exist");
    if (walk->depth == DEPTH_MAX || walk->visited++ == file->pages)
        return damaged(file, number, "is part of a circle");
    const uint8_t *page = file->bytes + number * file->page_size;
    unsigned flags = u16(page + 10);
    unsigned lower = u16(page + 12);
    if (u64(page) != number)
        return damaged(file, number, "carries another number");
    if ((flags & 0xf) != FLAG_BRANCH && (flags & 0xf) != FLAG_LEAF)
        return damaged(file, number, "is neither branch nor leaf");
    if (lower < PAGE_HEADER || lower > file->page_size || lower % 2 != 0)
        return damaged(file, number, "has a broken table of nodes");
    struct level *level = &walk->level[walk->depth++];
    *level = (struct level){.page = page, .nodes = (lower - PAGE_HEADER) / 2};
    if (level->nodes == 0)
        return damaged(file, number, "has no nodes");
    return 0;
}

/* The node with its key inside the page, or NULL. */
static const uint8_t *node_at(const struct file *file, const struct level *level, unsigned index,
                              uint64_t *room)
{
    uint64_t offset = u16(level->page + PAGE_HEADER + 2 * index);
    if (offset < PAGE_HEADER + 2 * level->nodes || offset + NODE_HEADER > file->page_size)
        return NULL;
    const uint8_t *node = level->page + offset;
    uint64_t used = offset + NODE_HEADER;
    *room = file->page_size - used;
    return u16(node + 6) <= *room ? node : NULL;
}

/* Finds the value of a leaf's node, in the page or on overflow pages. */
static int locate_value(const struct file *file, const uint8_t *node, uint64_t room, uint64_t page,
                        struct ls_lmdb_entry *entry)
{
    uint64_t size = u16(node) | (uint64_t)u16(node + 2) << 16;
    uint64_t key_size = u16(node + 6);
    const uint8_t *value = node + NODE_HEADER + key_size;
    room -= key_size;
    if ((u16(node + 4) & NODE_OTHER) != 0)
        return damaged(file, page, "holds other databases or several values of one key");
    if ((u16(node + 4) & NODE_BIG) != 0) {
        if (room < 8)
            return damaged(file, page, "has a node that is cut off");
        uint64_t first = u64(value);
        if (first < 2 || first >= file->pages)
            return damaged(file, page, "points to a page that does not exist");
        value = file->bytes + first * file->page_size;
        if (u64(value) != first || (u16(value + 10) & 0xf) != FLAG_OVERFLOW)
            return damaged(file, first, "is not the beginning of a large value");
        room = (file->pages - first) * file->page_size - PAGE_HEADER;
        value += PAGE_HEADER;
    }
    if (size > room)
        return damaged(file, page, "has a value that reaches beyond its end");
    entry->value = (uint64_t)(value - file->bytes);
    entry->value_size = (uint32_t)size;
    entry->key = (uint64_t)(node - file->bytes) + NODE_HEADER;
    entry->key_size = (uint16_t)key_size;
    return 0;
}

/* LMDB's order of keys: as memcmp, the shorter first if one begins the other. */
static bool in_order(const struct walk *walk, const struct ls_lmdb_entry *a,
                     const struct ls_lmdb_entry *b)
{
    size_t shorter = a->key_size < b->key_size ? a->key_size : b->key_size;
    int order = memcmp(walk->file.bytes + a->key, walk->file.bytes + b->key, shorter);
    return order < 0 || (order == 0 && a->key_size < b->key_size);
}

static int read_leaf(struct walk *walk, const struct level *level)
{
    uint64_t number = u64(level->page);
    for (unsigned i = 0; i < level->nodes; i++) {
        uint64_t room;
        const uint8_t *node = node_at(&walk->file, level, i, &room);
        if (node == NULL)
            return damaged(&walk->file, number, "has a node outside of it");
        if (!LS_GROW(walk->entry, walk->count, walk->capacity))
            return ls_fail_memory(walk->file.error, "the index of a database");
        struct ls_lmdb_entry *entry = &walk->entry[walk->count];
        LS_TRY(locate_value(&walk->file, node, room, number, entry));
        if (walk->count > 0 && !in_order(walk, entry - 1, entry))
            return damaged(&walk->file, number, "has keys out of order");
        walk->count++;
    }
    return 0;
}

/* Visits the tree from left to right, without recursion. */
static int walk_tree(struct walk *walk, uint64_t root)
{
    LS_TRY(push(walk, root));
    while (walk->depth > 0) {
        struct level *level = &walk->level[walk->depth - 1];
        if ((u16(level->page + 10) & 0xf) == FLAG_LEAF) {
            LS_TRY(read_leaf(walk, level));
            walk->depth--;
        } else if (level->node == level->nodes) {
            walk->depth--;
        } else {
            uint64_t room;
            const uint8_t *node = node_at(&walk->file, level, level->node++, &room);
            if (node == NULL)
                return damaged(&walk->file, u64(level->page), "has a node outside of it");
            LS_TRY(push(walk, u32(node) | (uint64_t)u16(node + 4) << 32));
        }
    }
    return 0;
}

int ls_lmdb_index(const char *name, const uint8_t *bytes, size_t size,
                  struct ls_lmdb_entry **entries, size_t *count, struct ls_error *error)
{
    *entries = NULL;
    *count = 0;
    struct walk walk = {.file = {.name = name, .bytes = bytes, .size = size, .error = error}};
    uint64_t root = NO_PAGE, expected = 0;
    LS_TRY(open_file(&walk.file, &root, &expected));
    int status = root == NO_PAGE ? 0 : walk_tree(&walk, root);
    if (status == 0 && walk.count != expected)
        status = ls_fail(
            error, LOCKSTEP_DATA, name, "the database is damaged or incomplete; make it again",
            "has %zu records where %llu should be", walk.count, (unsigned long long)expected);
    if (status != 0) {
        ls_free(walk.entry);
        return status;
    }
    *entries = walk.entry;
    *count = walk.count;
    return 0;
}
