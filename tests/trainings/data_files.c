/* Small data files: see data_files.h. SPDX-License-Identifier: BSD-2-Clause */
#include "trainings/data_files.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "support/support.h"

void put_u32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> (24 - 8 * i));
}

uint8_t pixel(uint32_t sample, uint32_t label, uint32_t at, uint32_t width)
{
    uint32_t noise = ls_random_below(1, sample, at, 96);
    uint32_t bar = at % width * 10 / width == label ? 140 : 0;
    return (uint8_t)(noise + bar);
}

void write_idx(const char *images, const char *labels, uint32_t n, uint32_t height, uint32_t width,
               const uint8_t *pixels, const uint8_t *names)
{
    size_t size = (size_t)n * height * width;
    uint8_t *bytes = calloc(16 + size, 1);
    bytes[2] = 8;
    bytes[3] = 3;
    put_u32(bytes + 4, n);
    put_u32(bytes + 8, height);
    put_u32(bytes + 12, width);
    memcpy(bytes + 16, pixels, size);
    ls_test_write(images, bytes, 16 + size);
    bytes[3] = 1;
    memcpy(bytes + 8, names, n);
    ls_test_write(labels, bytes, 8 + n);
    free(bytes);
}

void write_idx_pair(const char *images, const char *labels, uint32_t n, uint32_t side)
{
    size_t size = (size_t)side * side;
    uint8_t *pixels = calloc(n, size), *names = calloc(n, 1);
    for (uint32_t i = 0; i < n; i++) {
        names[i] = (uint8_t)(i * 7 % 10);
        for (uint32_t k = 0; k < size; k++)
            pixels[i * size + k] = pixel(i, names[i], k, side);
    }
    write_idx(images, labels, n, side, side, pixels, names);
    free(pixels);
    free(names);
}

void write_cifar(const char *path, uint32_t n)
{
    enum { RECORD = 3073 };
    uint8_t *bytes = calloc(n, RECORD);
    for (uint32_t i = 0; i < n; i++) {
        uint8_t *record = bytes + (size_t)i * RECORD;
        record[0] = (uint8_t)(i * 7 % 10);
        for (uint32_t k = 0; k + 1 < RECORD; k++)
            record[1 + k] = pixel(i, record[0], k, 32);
    }
    ls_test_write(path, bytes, (size_t)n * RECORD);
    free(bytes);
}
