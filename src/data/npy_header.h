/* The header of a .npy file: every byte is checked before it is used.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_NPY_HEADER_H
#define LS_DATA_NPY_HEADER_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "ir/dtype.h"
#include "ir/shape.h"

struct ls_npy_header {
    enum ls_dtype type;
    int64_t count;          /* the extent of axis 0 */
    struct ls_shape sample; /* the other extents, none of which is negative */
    size_t size;            /* bytes before the numbers */
};

/* Reads the header of a file of `size` bytes. `name` is for messages, which say at which byte
 * something is wrong. LOCKSTEP_DATA for what is no .npy file, or one that is not supported: other
 * types, big-endian numbers, Fortran's order, more than 8 axes. */
int ls_npy_header_read(const char *name, const uint8_t *bytes, size_t size,
                       struct ls_npy_header *header, struct ls_error *error);

/* The bytes of a record, *record. LOCKSTEP_DATA where it has none, or too many, or where a file of
 * `size` bytes does not have as many records as its header says; size 0: there is no file. */
int ls_npy_record_size(const char *name, const struct ls_npy_header *header, size_t size,
                       size_t *record, struct ls_error *error);

/* The type that NumPy calls "<f4"; LOCKSTEP_DATA for others. */
int ls_npy_type(const char *name, const char *descr, enum ls_dtype *type, struct ls_error *error);

#endif
