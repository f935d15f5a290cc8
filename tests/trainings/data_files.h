/* Small data files for trainings of tests. SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_DATA_FILES_H
#define LS_TESTS_DATA_FILES_H

#include <stdint.h>

/* A number in network byte order, as IDX files have it. */
void put_u32(uint8_t *at, uint32_t value);

/* A pixel of a picture that is easy to learn: a bright bar whose place is the class, and noise. */
uint8_t pixel(uint32_t sample, uint32_t label, uint32_t at, uint32_t width);

/* An IDX pair with these pixels and labels (`names`). */
void write_idx(const char *images, const char *labels, uint32_t n, uint32_t height, uint32_t width,
               const uint8_t *pixels, const uint8_t *names);

/* An IDX pair: `n` pictures of one channel, labels i * 7 % 10. */
void write_idx_pair(const char *images, const char *labels, uint32_t n, uint32_t side);

/* A file of the binary version of CIFAR-10 with `n` records. */
void write_cifar(const char *path, uint32_t n);

#endif
