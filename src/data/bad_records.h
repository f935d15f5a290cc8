/* Bad records that are replaced by others (on_bad_record: SKIP).
 *
 * A record is bad if it cannot be decoded, has a size that does not fit or a label that is no class
 * of a layer that takes it. In its place the next good one of the split is read, in the order of
 * the file and around its end. Whether a record is bad is found when it is read for the first time,
 * by whichever thread does, and remembered: it is a function of the record's bytes and of the
 * definition, so that it is the same for all threads, ranks and runs. Where samples differ in size
 * the cut into micro-batches depends on it, so that all records are decoded at the start.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_BAD_RECORDS_H
#define LS_DATA_BAD_RECORDS_H

#include "data/dataset.h"
#include "data/record.h"
#include "ir/taken.h"

/* on_bad_record: SKIP. */
bool ls_dataset_skips(const struct ls_dataset *dataset);
/* A layer that takes a tensor of a data set for something, and what it takes it for. */
struct ls_number_rule {
    int tensor;
    char layer[104], place[320]; /* its name; where it is defined */
    struct ls_taken taken;
    /* Of every `block` numbers, those from `begin` to end - 1 are taken; block 0: all are. */
    int64_t block, begin, end;
};
/* Before anything is read: records with numbers that break one of these rules are bad, where bad
 * records are skipped (else nothing happens). */
int ls_dataset_set_rules(struct ls_dataset *dataset, const struct ls_number_rule *rules,
                         size_t count, struct ls_error *error);
/* The next of the first few bad records that were skipped, and what is wrong with it; false: there
 * is no further one by now. Any thread. */
bool ls_dataset_next_bad(const struct ls_dataset *dataset, int64_t *record, char *reason,
                         size_t size);

/* ---- For the files of data sets ---- */

/* What is known of a record, from less to more. READABLE: only its labels may be bad. */
enum ls_verdict { LS_UNKNOWN, LS_READABLE, LS_GOOD, LS_BAD };

struct ls_bad_records;

int ls_bad_records_open(const struct ls_dataset *dataset, struct ls_bad_records **bad,
                        struct ls_error *error);
void ls_bad_records_free(struct ls_bad_records *bad);

enum ls_verdict ls_bad_records_verdict(const struct ls_bad_records *bad, int64_t record);
void ls_bad_records_set(struct ls_bad_records *bad, int64_t record, enum ls_verdict verdict);
/* What is wrong, without the number of the record where that is said anyway. */
const char *ls_bad_reason(const char *reason);
/* A record turned out to be bad. */
void ls_bad_records_note(struct ls_bad_records *bad, int64_t record, const char *reason);

/* LOCKSTEP_DATA where a number is bad of the tensors that a record becomes and that the layer has
 * tops for, images aside: their type does not have it, or a rule forbids it. */
int ls_bad_numbers(const struct ls_dataset *dataset, const struct ls_record *record,
                   const struct ls_number_rule *rules, size_t count, struct ls_problem *problem);
/* The same by the rules that were set. */
int ls_bad_records_numbers(const struct ls_dataset *dataset, const struct ls_record *record,
                           struct ls_problem *problem);
/* Whether a tensor of a record has a number that a rule allows although it cannot be meant; then
 * `text` becomes what is wrong with the first. */
bool ls_odd_numbers(const struct ls_dataset *dataset, const struct ls_record *record,
                    const struct ls_number_rule *rule, char *text, size_t size);

/* Labels of records: how many count, that are not ignored, and the range that they are in. */
struct ls_label_range {
    int64_t count;
    float least, most;
};
/* Widens the range by what a tensor of a record has for a rule of labels. */
void ls_label_range_add(const struct ls_dataset *dataset, const struct ls_record *record,
                        const struct ls_number_rule *rule, struct ls_label_range *range);

/* Fails where no record of a data set is good. */
int ls_bad_records_none(const struct ls_dataset *dataset, struct ls_error *error);

/* For opening a data set, before its transformation: the source's shape becomes that of the first
 * record that can be decoded. Where records differ in size and are not cropped, all are decoded;
 * those that cannot be do not count for the sizes. */
int ls_bad_records_look(struct ls_dataset *dataset, bool cropped, struct ls_error *error);

#endif
