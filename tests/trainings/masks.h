/* Files of masks for tests.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_TRAININGS_MASKS_H
#define LS_TESTS_TRAININGS_MASKS_H

#include <stdlib.h>

#include "snapshot/archive.h"
#include "support/support.h"

/* A mask of bytes for one parameter, in which each `every`-th element is 0. */
static inline void write_mask(const char *path, const char *name, const struct ls_shape *shape,
                              int every)
{
    struct ls_archive file = {0};
    struct ls_error error = {0};
    size_t size = (size_t)ls_shape_size(shape);
    unsigned char *bytes = malloc(size);
    assert_non_null(bytes);
    for (size_t i = 0; i < size; i++)
        bytes[i] = i % (size_t)every != 0;
    assert_int_equal(ls_archive_add(&file, name, LS_U8, shape, bytes, &error), 0);
    assert_int_equal(ls_archive_write(&file, path, &error), 0);
    ls_archive_free(&file);
    free(bytes);
}

#endif
