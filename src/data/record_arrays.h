/* The arrays of source RECORDS: files of NumPy, and the offsets that belong to some of them.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_RECORD_ARRAYS_H
#define LS_DATA_RECORD_ARRAYS_H

#include "base/file.h"
#include "data/first_fit.h"
#include "data/source.h"

enum { LS_RECORD_STEPS = 1 << 24 /* of a record */ };

struct ls_record_array {
    char name[56]; /* of the tensor */
    char *path;
    struct ls_mapping mapping;
    size_t offset;          /* of the numbers, in bytes */
    enum ls_dtype type;     /* as they are stored */
    struct ls_shape sample; /* of a record; of a sequence's step */
    size_t row;             /* bytes of that */
    int64_t rows;
    /* Of sequences: where each begins. */
    bool ragged;
    int64_t *begins; /* owned; of each record, and where the last one ends */
};

struct ls_record_arrays {
    struct ls_record_array item[LS_RECORD_TENSORS];
    int count;
    int64_t records;
};

/* Opens the files of `source` and finds which offsets belong to which array. All must have the same
 * number of records; offsets are checked. `arrays` must be closed even if this fails. */
int ls_record_arrays_open(const struct ls_source_options *options,
                          const struct ls_option_files *files, struct ls_record_arrays *arrays,
                          struct ls_error *error);
void ls_record_arrays_close(struct ls_record_arrays *arrays);
/* The rows of a record: [*begin, *end). */
void ls_record_arrays_range(const struct ls_record_array *array, int64_t record, int64_t *begin,
                            int64_t *end);

#endif
