/* A limit on the memory of a test, so that what asks for more gets none.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_MEMORY_LIMIT_H
#define LS_TESTS_MEMORY_LIMIT_H

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "support/support.h"

/* Skips the running test where memory cannot be limited: a sanitizer's shadow is larger. */
static inline void need_memory_limit(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    ls_test_skip("a sanitizer's shadow does not fit any limit");
#endif
}

/* From now on the process can map `more` bytes beyond what it has; returns the limit before. */
static inline struct rlimit limit_memory(size_t more)
{
    struct rlimit before;
    unsigned long pages = 0;
    FILE *memory = fopen("/proc/self/statm", "r");
    assert_non_null(memory);
    assert_int_equal(fscanf(memory, "%lu", &pages), 1);
    fclose(memory);
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    struct rlimit limit = before;
    limit.rlim_cur = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + more;
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
    return before;
}

static inline void unlimit_memory(struct rlimit before)
{
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
}

#endif
