/* .npy files, written byte by byte.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_NPY_FILES_H
#define LS_TESTS_NPY_FILES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/support.h"

/* The bytes of a file of version 1.0 with this dict, padded as NumPy pads it (to a multiple of 64)
 * and numbers behind it; free it. */
static inline char *npy_bytes(const char *dict, const void *numbers, size_t bytes, size_t *size)
{
    size_t text = strlen(dict) + 1, header = (10 + text + 63) / 64 * 64 - 10;
    char *file = malloc(10 + header + bytes + 1);
    memcpy(file, "\x93NUMPY\x01\x00", 8);
    file[8] = (char)(header & 255);
    file[9] = (char)(header >> 8);
    memset(file + 10, ' ', header);
    memcpy(file + 10, dict, text - 1);
    file[10 + header - 1] = '\n';
    memcpy(file + 10 + header, numbers, bytes);
    *size = 10 + header + bytes;
    return file;
}

/* Writes an array: `shape` as Python writes a tuple. */
static inline void write_npy(const char *path, const char *descr, const char *shape,
                             const void *numbers, size_t bytes)
{
    char dict[256];
    size_t size;
    snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr,
             shape);
    char *file = npy_bytes(dict, numbers, bytes, &size);
    ls_test_write(path, file, size);
    free(file);
}

#endif
