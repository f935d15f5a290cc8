/* Runs work in a process of its own, and counts the memory that it has touched.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_PROCESS_H
#define LS_TESTS_PROCESS_H

#include <stddef.h>

/* Bytes of anonymous memory that this process has touched; 0 where the kernel does not say. */
double ls_test_anonymous_memory(void);

/* Skips the running test where such memory cannot be counted, or is not the program's alone (a
 * sanitizer takes some). */
void ls_test_skip_uncounted(void);

/* Runs `work` in a process of its own and returns the `size` bytes of `result` that it filled;
 * `work` that does not return 0 fails the running test. */
void ls_test_in_child(int (*work)(void *result), void *result, size_t size);

#endif
