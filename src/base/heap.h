/* Heaps: an order without memory of its own, which qsort may ask for. A heap has the element that
 * comes first in front; `before` must be a total order, so that there is one result.
 *
 * Functions of a header, so that a compiler sees sizes and orders.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_BASE_HEAP_H
#define LS_BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Whether the element at `a` comes before the one at `b`. */
typedef bool (*ls_heap_order)(const void *a, const void *b, const void *user);

enum { LS_HEAP_ELEMENT_MAX = 64 }; /* bytes */

/* `count` elements of `size` bytes, one behind the other. */
struct ls_heap {
    void *elements;
    size_t size;
    ls_heap_order before;
    const void *user; /* handed on to `before`; may be NULL */
};

static inline void *ls_heap_element(const struct ls_heap *heap, int64_t index)
{
    return (char *)heap->elements + (size_t)index * heap->size;
}

static inline void ls_heap_swap(const struct ls_heap *heap, int64_t a, int64_t b)
{
    char kept[LS_HEAP_ELEMENT_MAX];
    memcpy(kept, ls_heap_element(heap, a), heap->size);
    memcpy(ls_heap_element(heap, a), ls_heap_element(heap, b), heap->size);
    memcpy(ls_heap_element(heap, b), kept, heap->size);
}

/* Moves element `at` behind those below it that come before it; with `last` the order is turned
 * around. */
static inline void ls_heap_sift(const struct ls_heap *heap, int64_t at, int64_t count, bool last)
{
    for (int64_t child; (child = 2 * at + 1) < count; at = child) {
        const void *next = ls_heap_element(heap, child + 1);
        const void *first = ls_heap_element(heap, child);
        if (child + 1 < count && heap->before(next, first, heap->user) != last)
            child++;
        if (heap->before(ls_heap_element(heap, child), ls_heap_element(heap, at), heap->user) ==
            last)
            return;
        ls_heap_swap(heap, at, child);
    }
}

/* Makes a heap of elements in any order. */
static inline void ls_heap_make(const struct ls_heap *heap, int64_t count)
{
    for (int64_t i = count / 2; i-- > 0;)
        ls_heap_sift(heap, i, count, false);
}

/* Makes a heap of `count` elements again, behind whose first ones, a heap, one was put. */
static inline void ls_heap_rise(const struct ls_heap *heap, int64_t count)
{
    for (int64_t at = count - 1, above; at > 0; at = above) {
        above = (at - 1) / 2;
        if (!heap->before(ls_heap_element(heap, at), ls_heap_element(heap, above), heap->user))
            return;
        ls_heap_swap(heap, at, above);
    }
}

/* Takes the first element of a heap out, by the last one of `count`. */
static inline void ls_heap_drop(const struct ls_heap *heap, int64_t count)
{
    memmove(heap->elements, ls_heap_element(heap, count - 1), heap->size);
    ls_heap_sift(heap, 0, count - 1, false);
}

/* Puts elements in order, the first one in front. */
static inline void ls_heap_sort(const struct ls_heap *heap, int64_t count)
{
    for (int64_t i = count / 2; i-- > 0;)
        ls_heap_sift(heap, i, count, true);
    for (int64_t last = count - 1; last > 0; last--) {
        ls_heap_swap(heap, 0, last);
        ls_heap_sift(heap, 0, last, true);
    }
}

#endif
