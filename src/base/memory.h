/* Allocation: zeroed, checked for overflow, counted, and failable by tests.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_BASE_MEMORY_H
#define LS_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/grow.h"

/* Zeroed memory for `count` elements of `size` bytes, or NULL (also when the product overflows).
 * A product of zero gives a pointer that can be freed. Free with ls_free. */
void *ls_alloc(size_t count, size_t size);
/* As realloc, for `count` elements of `size` bytes; what is new is not zeroed. */
void *ls_resize(void *memory, size_t count, size_t size);
char *ls_copy_bytes(const void *bytes, size_t length); /* adds a NUL behind the copy */
void ls_free(void *memory);

/* Zeroed memory aligned to 64 bytes (a cache line, an AVX-512 register), or NULL.
 * Free with ls_free_aligned. */
void *ls_alloc_aligned(size_t bytes);
void ls_free_aligned(void *memory);
/* Has the kernel give such a block its pages, all in one go, which takes it less time than to do it
 * page by page as they are touched. What is in them stays, so others may use the block meanwhile.
 * Small blocks, and kernels that cannot (before Linux 5.14), are left as they are. */
void ls_populate_aligned(void *memory);

/* Why the last allocation of this thread failed, where that was of a device's memory ("card 1 has
 * no 12345 bytes left"): messages of memory that ran out go on with it (ls_fail_memory). The text
 * is copied; NULL: nothing is to be said. An allocation of this header that fails forgets it. */
void ls_note_memory(const char *why);
const char *ls_noted_memory(void); /* "": nothing */

/* Whether so much could be allocated now; for libraries that do not survive it when they cannot. */
bool ls_memory_is_there(size_t bytes);

/* Allocations made so far by all threads; tests compare two readings. */
uint64_t ls_allocations(void);
/* For tests: the allocation after `n` more fails, once; n < 0 switches this off. */
void ls_fail_allocation_after(long n);
/* For tests: all allocations after `n` more fail, whichever thread makes them; n < 0 switches this
 * off. What comes of it does not depend on which thread was first. */
void ls_fail_allocations_after(long n);

#endif
