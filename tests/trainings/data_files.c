/* Small data files: see data_files.h. SPDX-License-Identifier: BSD-2-Clause */
#include "trainings/data_files.h"

#include <stdlib.h>

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

void write_idx_pair(const char *images, const char *labels, uint32_t n, uint32_t side)
{
    size_t size = (size_t)side * side;
    uint8_t *bytes = calloc(16 + n * size, 1), *names = calloc(8 + n, 1);
    bytes[2] = names[2] = 8;
    bytes[3] = 3;
    names[3] = 1;
    put_u32(bytes + 4, n);
    put_u32(bytes + 8, side);
    put_u32(bytes + 12, side);
    put_u32(names + 4, n);
    for (uint32_t i = 0; i < n; i++) {
        names[8 + i] = (uint8_t)(i * 7 % 10);
        for (uint32_t k = 0; k < size; k++)
            bytes[16 + i * size + k] = pixel(i, names[8 + i], k, side);
    }
    ls_test_write(images, bytes, 16 + n * size);
    ls_test_write(labels, names, 8 + n);
    free(bytes);
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
