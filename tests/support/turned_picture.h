/* A JPEG file with an orientation mark. SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_TURNED_PICTURE_H
#define LS_TESTS_TURNED_PICTURE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/picture_write.h"
#include "support/support.h"

enum { LS_TURNED_SEGMENT = 36 /* bytes of the mark's segment */ };

/* A grey picture of height x width; *bytes: free with free(). The mark lies behind the first two
 * bytes. */
static inline size_t ls_turned_picture(int height, int width, int orientation, bool big_endian,
                                       uint8_t **bytes)
{
    static const uint8_t little[] = {0xFF, 0xE1, 0, 34, 'E', 'x', 'i', 'f', 0,    0, 'I', 'I',
                                     42,   0,    8, 0,  0,   0,   1,   0,   0x12, 1, 3,   0,
                                     1,    0,    0, 0,  0,   0,   0,   0,   0,    0, 0,   0};
    static const uint8_t big[] = {0xFF, 0xE1, 0, 34, 'E', 'x', 'i', 'f', 0, 0,    'M', 'M',
                                  0,    42,   0, 0,  0,   8,   0,   1,   1, 0x12, 0,   3,
                                  0,    0,    0, 1,  0,   0,   0,   0,   0, 0,    0,   0};
    uint8_t *plain, *planes = calloc((size_t)height * (size_t)width, 1);
    size_t size;
    assert_int_equal(
        ls_picture_encode(planes, (const int64_t[]){1, height, width}, "jpg", &plain, &size, NULL),
        0);
    *bytes = malloc(size + LS_TURNED_SEGMENT);
    memcpy(*bytes, plain, 2);
    memcpy(*bytes + 2, big_endian ? big : little, LS_TURNED_SEGMENT);
    (*bytes)[2 + (big_endian ? 29 : 28)] = (uint8_t)orientation;
    memcpy(*bytes + 2 + LS_TURNED_SEGMENT, plain + 2, size - 2);
    ls_free(plain);
    free(planes);
    return size + LS_TURNED_SEGMENT;
}

#endif
