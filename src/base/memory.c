/* Allocation over the C library's, with a count and a switch that makes one allocation fail.
 *
 * The counter lets a test state that nothing is allocated between two steps of training; the
 * switch lets it walk through every "out of memory" path of a function, one after the other.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64 };

static _Atomic uint64_t allocations;
static _Atomic long fail_after = -1; /* negative: never */

/* Counts an allocation; false when it is the one that a test wants to fail. */
static bool admit(void)
{
    atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
    if (atomic_load_explicit(&fail_after, memory_order_relaxed) < 0)
        return true;
    return atomic_fetch_sub_explicit(&fail_after, 1, memory_order_relaxed) != 0;
}

void *ls_alloc(size_t count, size_t size)
{
    size_t bytes;
    if (!admit() || __builtin_mul_overflow(count, size, &bytes))
        return NULL;
    return calloc(bytes > 0 ? bytes : 1, 1);
}

void *ls_resize(void *memory, size_t count, size_t size)
{
    size_t bytes;
    if (!admit() || __builtin_mul_overflow(count, size, &bytes))
        return NULL;
    return realloc(memory, bytes > 0 ? bytes : 1);
}

char *ls_copy_bytes(const void *bytes, size_t length)
{
    if (length == SIZE_MAX || !admit())
        return NULL;
    char *copy = malloc(length + 1);
    if (copy == NULL)
        return NULL;
    if (length > 0)
        memcpy(copy, bytes, length);
    copy[length] = '\0';
    return copy;
}

char *ls_copy_string(const char *text)
{
    return text != NULL ? ls_copy_bytes(text, strlen(text)) : NULL;
}

void ls_free(void *memory)
{
    free(memory);
}

void *ls_alloc_aligned(size_t bytes)
{
    if (!admit() || bytes > SIZE_MAX - ALIGNMENT)
        return NULL;
    /* aligned_alloc wants a multiple of the alignment; zero bytes still give a pointer. */
    size_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (rounded == 0)
        rounded = ALIGNMENT;
    void *memory = aligned_alloc(ALIGNMENT, rounded);
    if (memory != NULL)
        memset(memory, 0, rounded);
    return memory;
}

void ls_free_aligned(void *memory)
{
    free(memory);
}

bool ls_multiply(int64_t a, int64_t b, int64_t *product)
{
    return a >= 0 && b >= 0 && !__builtin_mul_overflow(a, b, product);
}

uint64_t ls_allocations(void)
{
    return atomic_load_explicit(&allocations, memory_order_relaxed);
}

void ls_fail_allocation_after(long n)
{
    atomic_store_explicit(&fail_after, n, memory_order_relaxed);
}

bool ls_grow(void **items, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return true;
    size_t wanted = *capacity < 8 ? 8 : *capacity;
    while (wanted <= count) {
        if (__builtin_mul_overflow(wanted, (size_t)2, &wanted))
            return false;
    }
    /* The caller's pointer has another type than void *: read and write it as bytes, which is
     * what the aliasing rules allow. */
    void *old;
    memcpy(&old, items, sizeof old);
    void *grown = ls_resize(old, wanted, size);
    if (grown == NULL)
        return false;
    memcpy(items, &grown, sizeof grown);
    *capacity = wanted;
    return true;
}
