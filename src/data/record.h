/* Records: lists of tensors, each with a type and a shape.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_RECORD_H
#define LS_DATA_RECORD_H

#include <stdint.h>

#include "ir/dtype.h"
#include "ir/shape.h"

enum { LS_RECORD_TENSORS = 32 /* that a record, or a sample, can have */ };

/* A tensor of one record. The numbers belong to the reader until its next call, or to the source or
 * its cache; they are aligned for their type. */
struct ls_record_tensor {
    enum ls_dtype type;
    struct ls_shape shape;
    const void *data; /* in C order; NULL: not wanted */
    /* Of the bytes as they were read, before decoding; 0 where they are not wanted, or computed. */
    uint64_t hash;
};

struct ls_record {
    int count;
    struct ls_record_tensor tensor[LS_RECORD_TENSORS];
};

/* Which tensors of a record are wanted: bit k is tensor k. */
#define LS_TENSOR(k)   (UINT32_C(1) << (k))
#define LS_ALL_TENSORS UINT32_MAX

#endif
