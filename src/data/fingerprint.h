/* What data are known by from the start.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_FINGERPRINT_H
#define LS_DATA_FINGERPRINT_H

#include "data/dataset.h"
#include "data/record.h"

/* What is known of the data from the start, as lines of text that begin with `prefix`: the kind of
 * source, how many records, their shape, and hashes of sizes, labels, class names, mean file, first
 * and last record. Equal for equal data, wherever they lie. */
void ls_dataset_describe(const struct ls_dataset *dataset, const char *prefix,
                         struct ls_text *text);

/* ---- For the files of data sets ---- */

/* The hash of what was read of record `index`. One without a label counts as if it had label 0. */
uint64_t ls_record_hash(int64_t index, const struct ls_record *record, uint32_t wanted);
/* Reads the first and the last record for their hashes: a source that cannot be read is found now.
 */
int ls_dataset_take_ends(struct ls_dataset *dataset, struct ls_error *error);

#endif
