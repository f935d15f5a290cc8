/* What source RECORDS consists of; for its files only.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_RECORDS_INNER_H
#define LS_DATA_RECORDS_INNER_H

#include "data/first_fit.h"
#include "data/record_arrays.h"
#include "data/source.h"

/* What a tensor of a record is: an array's numbers, or what follows from their lengths. */
enum ls_record_part {
    LS_PART_NUMBERS,
    LS_PART_MASK,
    LS_PART_LENGTH,
    LS_PART_POSITION,
    LS_PART_SEGMENT,
    LS_PART_CONT
};

struct ls_records {
    struct ls_record_arrays arrays;
    struct ls_records_tensor {
        enum ls_record_part part;
        int array;
        size_t place; /* in a reader's buffer */
        size_t step;  /* bytes of a step, of sequences */
        float pad;
    } tensor[LS_RECORD_TENSORS];
    size_t bytes; /* of a record in that buffer, and of a sequence as it is in its file */
    size_t raw;
    int64_t window;
    int sequence; /* the first array of sequences; -1: there is none */
    uint64_t stamp;
    struct ls_first_fit packing;
};

/* The steps that a record has in an array: how long its sequence is, or 1. */
int64_t ls_records_steps(const struct ls_records *records, int64_t record, int array);
/* The source's read. */
int ls_records_read(struct ls_source_reader *reader, int64_t index, uint32_t wanted,
                    struct ls_record *record, struct ls_error *error);

#endif
