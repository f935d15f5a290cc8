/* The Datum record of Caffe's databases: read in place, and written.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_DATUM_H
#define LS_DATA_DATUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/source.h"

struct ls_datum {
    int64_t shape[3];    /* channels, height, width as they stand in the record, unchecked */
    const uint8_t *data; /* into the bytes that were read; NULL if there are none */
    size_t data_size;
    size_t float_count; /* how many numbers float_data has */
    int32_t label;
    bool encoded; /* `data` is a picture file */
};

/* Reads a serialized Datum without copying. LOCKSTEP_DATA where it is none. */
int ls_datum_read(const uint8_t *bytes, size_t size, struct ls_datum *datum,
                  struct ls_problem *problem);
/* Copies the float_data of a record that ls_datum_read accepted; `floats` has room for its
 * float_count numbers. */
void ls_datum_floats(const uint8_t *bytes, size_t size, float *floats);
/* Whether the numbers of a raw record are as many as its shape says; else LOCKSTEP_DATA. */
int ls_datum_check(const struct ls_datum *datum, struct ls_problem *problem);

/* The serialized form of a record with an image and, if `has_label`, a label, into a buffer; *size
 * bytes. NULL when there is no memory. */
const uint8_t *ls_datum_write(const struct ls_record *record, bool has_label,
                              struct ls_buffer *buffer, size_t *size);

/* The serialized form of a record that is a picture file. */
const uint8_t *ls_datum_write_file(const uint8_t *file, size_t file_size, int32_t label,
                                   struct ls_buffer *buffer, size_t *size);

#endif
