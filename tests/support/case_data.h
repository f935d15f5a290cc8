/* Numbers and files of cases: the same ones as tools/reference/generator.py makes, where the
 * generator is described. SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_CASE_DATA_H
#define LS_TESTS_CASE_DATA_H

#include <stddef.h>
#include <stdint.h>

/* The first number of array `name`; add the index of an element. */
uint64_t case_stream(const char *name);
uint64_t case_word(uint64_t index);

/* In [-1, 1), times `scale` (a power of two). */
float case_weight(uint64_t stream, uint64_t element, float scale);
/* Bit k says whether element `element` of the k-th array of signs is negative. */
uint64_t case_signs(uint64_t element);
/* Place k of `count` that are spread over `size` elements. */
size_t case_place(size_t k, size_t count, size_t size);

/* Writes the files that the notes in a case's text describe ("# idx: ...", "# cifar: ...") into
 * the working directory. */
void case_write_files(const char *text);

#endif
