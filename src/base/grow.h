/* What is made of allocation (base/memory.h, which includes this): copies of texts, arrays that
 * grow, products that fit. SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_BASE_GROW_H
#define LS_BASE_GROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

char *ls_copy_string(const char *text); /* NULL gives NULL */

/* *product = a * b for non-negative numbers; false when it does not fit. */
bool ls_multiply(int64_t a, int64_t b, int64_t *product);

/* A growing array: makes room for one more element behind `count` of them. True on success.
 *     if (!LS_GROW(items, count, capacity)) return ls_fail_memory(...); items[count++] = ...; */
#define LS_GROW(items, count, capacity)                                                            \
    ls_grow((void **)&(items), (size_t)(count), &(capacity), sizeof *(items))
bool ls_grow(void **items, size_t count, size_t *capacity, size_t size);

#endif
