/* Allocation over the C library's, with a count and a switch that makes one allocation fail.
 *
 * The counter lets a test state that nothing is allocated between two steps of training; the
 * switch lets it walk through every "out of memory" path of a function, one after the other.
 *
 * Large aligned blocks are mapped from the kernel one by one. So they begin as zeros without being
 * touched, and go back when they are freed: what a process really takes is what it has in use,
 * which a plan can foretell. (A heap keeps what was freed below something that is still there.)
 *
 * Blocks of 4 MiB and more begin where a huge page does, and the kernel is asked for huge pages for
 * those that lie in them as a whole: walking through an arena misses the table of pages much less.
 * What is left at the end has small pages, so that a block takes no more than it did.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ALIGNMENT = 64 };

#if defined(__has_feature)
#define HAS_FEATURE(name) __has_feature(name)
#else
#define HAS_FEATURE(name) 0
#endif

/* Bytes from which on a block is mapped. A sanitizer watches the heap only. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) ||                               \
    HAS_FEATURE(address_sanitizer) || HAS_FEATURE(thread_sanitizer)
#define MAPPED SIZE_MAX
#else
#define MAPPED ((size_t)1 << 18)
#endif

static _Thread_local char noted[200]; /* why a device's allocation failed */

void ls_note_memory(const char *why)
{
    const size_t length = why != NULL ? strnlen(why, sizeof noted - 1) : 0;
    if (length > 0)
        memcpy(noted, why, length);
    noted[length] = '\0';
}

const char *ls_noted_memory(void)
{
    return noted;
}

static _Atomic uint64_t allocations;
static _Atomic long fail_after = -1;            /* negative: never */
static _Atomic uint64_t fail_from = UINT64_MAX; /* the count from which on all fail */

/* Counts an allocation; false when it is one that a test wants to fail. */
static bool admit(void)
{
    if (atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed) >=
        atomic_load_explicit(&fail_from, memory_order_relaxed))
        return false;
    if (atomic_load_explicit(&fail_after, memory_order_relaxed) < 0)
        return true;
    return atomic_fetch_sub_explicit(&fail_after, 1, memory_order_relaxed) != 0;
}

/* What failed last is no device's affair any more. */
static void *given(void *memory)
{
    if (memory == NULL)
        noted[0] = '\0';
    return memory;
}

void *ls_alloc(size_t count, size_t size)
{
    size_t bytes;
    if (!admit() || __builtin_mul_overflow(count, size, &bytes))
        return given(NULL);
    return given(calloc(bytes > 0 ? bytes : 1, 1));
}

void *ls_resize(void *memory, size_t count, size_t size)
{
    size_t bytes;
    if (!admit() || __builtin_mul_overflow(count, size, &bytes))
        return given(NULL);
    return given(realloc(memory, bytes > 0 ? bytes : 1));
}

char *ls_copy_bytes(const void *bytes, size_t length)
{
    if (length == SIZE_MAX || !admit())
        return given(NULL);
    char *copy = malloc(length + 1);
    if (copy == NULL)
        return given(NULL);
    if (length > 0)
        memcpy(copy, bytes, length);
    copy[length] = '\0';
    return copy;
}

void ls_free(void *memory)
{
    free(memory);
}

/* Bytes of a huge page, and from which on a block has them. */
static const size_t huge_page = (size_t)1 << 21, huge_block = (size_t)1 << 22;

/* In front of an aligned block: how long its mapping is, 0 for one on the heap. */
union header {
    size_t mapped;
    unsigned char room[ALIGNMENT];
};

static void *map(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory != MAP_FAILED ? memory : NULL;
}

/* As map, from the beginning of a huge page on. What is mapped around it goes back. */
static void *map_huge(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t rounded = (bytes + page - 1) / page * page;
    unsigned char *memory = map(rounded + huge_page);
    if (memory == NULL)
        return map(bytes); /* less, which may be there */
    size_t before = (huge_page - (uintptr_t)memory % huge_page) % huge_page;
    if (before > 0)
        munmap(memory, before);
    munmap(memory + before + rounded, huge_page - before);
    memory += before;
    madvise(memory, bytes / huge_page * huge_page, MADV_HUGEPAGE); /* small pages do, too */
    return memory;
}

void *ls_alloc_aligned(size_t bytes)
{
    if (!admit() || bytes > SIZE_MAX - 3 * ALIGNMENT)
        return given(NULL);
    /* aligned_alloc wants a multiple of the alignment; zero bytes still give a pointer. */
    size_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT + sizeof(union header);
    bool mapped = rounded >= MAPPED;
    union header *header = rounded >= huge_block && mapped ? map_huge(rounded)
                           : mapped                        ? map(rounded)
                                                           : aligned_alloc(ALIGNMENT, rounded);
    if (header == NULL)
        return given(NULL);
    if (!mapped)
        memset(header, 0, rounded);
    header->mapped = mapped ? rounded : 0;
    return header + 1;
}

void ls_free_aligned(void *memory)
{
    union header *header = memory;
    if (header == NULL)
        return;
    if (header[-1].mapped > 0)
        munmap(header - 1, header[-1].mapped);
    else
        free(header - 1);
}

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

void ls_populate_aligned(void *memory)
{
    union header *header = memory;
    if (header == NULL || header[-1].mapped == 0)
        return;
    /* The mapping begins with the header, and so with a page. That it fails is no matter. */
    madvise(header - 1, header[-1].mapped, MADV_POPULATE_WRITE);
}

bool ls_memory_is_there(size_t bytes)
{
    if (!admit())
        return false;
    void *memory = map(bytes);
    if (memory != NULL)
        munmap(memory, bytes);
    return memory != NULL;
}

uint64_t ls_allocations(void)
{
    return atomic_load_explicit(&allocations, memory_order_relaxed);
}

void ls_fail_allocation_after(long n)
{
    atomic_store_explicit(&fail_after, n, memory_order_relaxed);
}

void ls_fail_allocations_after(long n)
{
    uint64_t from = n < 0 ? UINT64_MAX : ls_allocations() + (uint64_t)n;
    atomic_store_explicit(&fail_from, from, memory_order_relaxed);
}
