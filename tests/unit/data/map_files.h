/* Label maps for tests: PNG files of any depth.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_MAP_FILES_H
#define LS_TESTS_MAP_FILES_H

#include "picture_files.h"

/* Label (y, x) of the map that write_map writes: no two neighbours are alike. */
static inline uint16_t map_label(int y, int x, int bits, int salt)
{
    return (uint16_t)(((uint32_t)(y * 37 + x * 11 + salt) * 2654435761U >> 9) & ((1U << bits) - 1));
}

static inline uint8_t *map_rows(int height, int width, int bits, int salt, size_t *row_bytes)
{
    *row_bytes = ((size_t)width * (size_t)bits + 7) / 8;
    uint8_t *rows = calloc((size_t)height, *row_bytes);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            uint16_t label = map_label(y, x, bits, salt);
            uint8_t *row = rows + (size_t)y * *row_bytes;
            int at = x * bits;
            if (bits == 16) {
                row[2 * x] = (uint8_t)(label >> 8);
                row[2 * x + 1] = (uint8_t)label;
            } else {
                row[at / 8] |= (uint8_t)(label << (8 - bits - at % 8));
            }
        }
    return rows;
}

static inline void write_map(const char *path, int height, int width, int type, int bits,
                             bool interlaced, int salt)
{
    size_t row_bytes, size;
    uint8_t *rows = map_rows(height, width, bits, salt, &row_bytes);
    uint8_t *bytes = png_file(rows, row_bytes, height, width, type, bits, interlaced, &size);
    ls_test_write(path, bytes, size);
    free(bytes);
    free(rows);
}

#endif
