/* Files that a test writes rows to: what HDF5Output layers read, of all samples in their order.
 *
 * Rows reach every rank as states per sample do (engine/sample_states.h), batch by batch. The first
 * rank keeps them in memory and writes each file at the end of the test, as a whole.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_ROW_FILES_H
#define LS_ENGINE_ROW_FILES_H

#include "engine/pass.h"

/* The rows of a data set of a file so far. */
struct ls_row_tensor {
    float *numbers;
    size_t count, capacity;
    int64_t rows;
};

struct ls_row_files {
    const struct ls_pass *pass;
    struct ls_row_tensor *tensors; /* LS_ROW_FILE_TENSORS a file; NULL: there are no files */
    int status;                    /* of this rank's first failure */
};

/* Begins the files of a test; none where its net has no such layer. */
void ls_row_files_begin(struct ls_row_files *files, const struct ls_pass *pass,
                        struct ls_error *error);
/* Takes the rows of a batch, whose states have been published. A failure is told at the end. */
void ls_row_files_add(struct ls_row_files *files, struct ls_error *error);
/* Writes the files. All ranks call it, and all fail where the first does. */
int ls_row_files_write(struct ls_row_files *files, struct ls_error *error);
void ls_row_files_free(struct ls_row_files *files);

#endif
