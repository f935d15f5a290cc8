/* Whether the ranks of a job have the same records: a thread reads what other ranks have read from
 * this rank's own copy of the data, in the background and without decoding, and compares digests.
 *
 * It runs for the first epoch of a job; from the second on an epoch's digest, which holds what all
 * ranks have read, is enough (data/digest.h). A single rank compares nothing.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_CROSS_CHECK_H
#define LS_DATA_CROSS_CHECK_H

#include "data/dataset.h"
#include "data/digest.h"

struct ls_cross_check;

struct ls_cross_check_options {
    struct ls_dataset *const *datasets; /* they outlive the check */
    int dataset_count;
    /* What is read, in pairs: the data set, and which tensor of its samples. */
    const int (*inputs)[2];
    int input_count;
};
int ls_cross_check_open(const struct ls_cross_check_options *options, struct ls_cross_check **check,
                        struct ls_error *error);
/* NULL does nothing; what is not compared yet is not compared. */
void ls_cross_check_close(struct ls_cross_check *check);

/* What a rank has read of a data set: ordinals [begin, end). */
struct ls_cross_read {
    int64_t begin, end;
    struct ls_digests digests;
};
/* What a rank has read, by data set. Waits where too much is to be compared already. */
void ls_cross_check_add(struct ls_cross_check *check, int rank, const struct ls_cross_read *reads);
/* What was found so far: LOCKSTEP_DIFFERENT names source, record and rank; LOCKSTEP_DATA: this rank
 * cannot read what the other one could. */
int ls_cross_check_found(struct ls_cross_check *check, struct ls_error *error);
/* The same, after all that was added is compared. */
int ls_cross_check_finish(struct ls_cross_check *check, struct ls_error *error);

#endif
