/* Files in memory, for tests that write thousands of them.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_MEMORY_FILE_H
#define LS_TESTS_MEMORY_FILE_H

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/support.h"

/* The path of a file with this content; the next call gives it another one. */
static inline const char *memory_file(const void *bytes, size_t size)
{
    static int file = -1;
    static char path[64];
    if (file < 0)
        file = memfd_create("test", MFD_CLOEXEC);
    assert_true(file >= 0);
    assert_int_equal(ftruncate(file, 0), 0);
    assert_int_equal(pwrite(file, bytes, size, 0), (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    return path;
}

#endif
