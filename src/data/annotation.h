/* The AnnotatedDatum record of SSD's databases: a Datum, and boxes beside it.
 *
 * Boxes are rows of 8 numbers: item, class, instance, xmin, ymin, xmax, ymax (in sizes of the
 * picture, 0 to 1), difficult. Rows that are left over hold -1.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_ANNOTATION_H
#define LS_DATA_ANNOTATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum {
    LS_BOX_NUMBERS = 8,   /* of a row */
    LS_BOXES_MOST = 10000 /* that a record can have */
};

struct ls_annotation {
    const uint8_t *datum; /* into the bytes that were read */
    size_t datum_size;
    int64_t boxes;
    bool says_type; /* that its annotations are boxes; no other type is accepted */
};

/* Reads a serialized AnnotatedDatum without copying, and checks all boxes. LOCKSTEP_DATA where it
 * is none, or where a box is none: a number that is not finite, a class below 0 or beyond 2^24, an
 * end before its beginning. */
int ls_annotation_read(const uint8_t *bytes, size_t size, struct ls_annotation *annotation,
                       struct ls_problem *problem);
/* Writes the boxes of a record that ls_annotation_read accepted to `rows` rows, at least as many.
 */
void ls_annotation_rows(const uint8_t *bytes, size_t size, int64_t rows, float *out);
/* Rows that hold nothing. */
void ls_annotation_clear(int64_t rows, float *out);
/* How many of `rows` rows hold boxes; those come first. */
int64_t ls_annotation_count(const float *row, int64_t rows);

/* Whether bytes that are no Datum begin as an AnnotatedDatum does. */
bool ls_annotation_looks(const uint8_t *bytes, size_t size);

#endif
