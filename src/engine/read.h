/* What a pass has read: digests of records by micro-batch, which go to the other ranks with the
 * records of figures, and data that cannot be read.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_READ_H
#define LS_ENGINE_READ_H

#include "engine/pass.h"

int ls_read_create(struct ls_pass *pass, struct ls_error *error);
void ls_read_free(struct ls_pass *pass);

void ls_read_note(struct ls_pass *pass, size_t unit, const struct ls_prefetch_item *item);
/* A unit's data are bad: it runs on zeros, so that ranks keep step, and when all units have run
 * ls_read_check says what was wrong, on all ranks. Anything but LOCKSTEP_DATA is a failure:
 * false. */
bool ls_read_note_bad(struct ls_pass *pass, size_t unit, const struct ls_error *error);
int ls_read_check(struct ls_pass *pass, struct ls_error *error);
/* The inputs of a unit: its item's, or zeros. */
void *const *ls_read_inputs(const struct ls_pass *pass, size_t unit);
/* How the device makes them of its item (struct ls_inputs). */
const struct ls_sample_making *const *ls_read_making(const struct ls_pass *pass, size_t unit);

/* What a micro-batch has read of a data set: digests of records (data/digest.h) at ordinals
 * [begin, end), by a rank of the job. In the order of the micro-batches they are all ordinals. */
struct ls_read {
    int64_t begin, end;
    int rank;
    struct ls_digests digests;
};
void ls_read_of(const struct ls_pass *pass, size_t unit, int dataset, struct ls_read *read);

/* A test begins, and adds up all that each of its passes has read. What the last test has read of a
 * data set in all, and of how many samples of all data sets it has skipped the records, as they are
 * bad. */
void ls_read_begin_test(struct ls_pass *pass);
void ls_read_add_tested(struct ls_pass *pass);
const struct ls_digest *ls_read_tested(const struct ls_pass *pass, int dataset);
int64_t ls_read_skipped(const struct ls_pass *pass);

#endif
