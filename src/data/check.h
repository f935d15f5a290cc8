/* Reading all records of a data set once, to find the bad ones.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_CHECK_H
#define LS_DATA_CHECK_H

#include "data/bad_records.h"
#include "data/dataset.h"

struct ls_check {
    int threads;
    const struct ls_number_rule *rules; /* what layers say of its numbers */
    size_t rule_count;
    /* Called for every bad record, in their order. `name` may be empty. */
    void (*bad)(void *user, int64_t record, const char *name, const char *reason);
    /* Called at the end for each rule with numbers that cannot be meant: what is wrong with the
     * first record that has one and how many there are, or with all labels. */
    void (*odd)(void *user, const struct ls_number_rule *rule, const char *text);
    /* (optional) Called now and then; other than 0 ends the check. */
    int (*progress)(void *user, int64_t done, int64_t count);
    void *user;
};
/* Reads, decodes and transforms every record of a data set that was opened with
 * a forgiving ls_dataset_open, and checks its numbers. *bad: how many are bad; *skippable: how many
 * of these on_bad_record: SKIP can replace, because the record is bad and not its file.
 * LOCKSTEP_STOPPED where `progress` asks for that. */
int ls_dataset_check(const struct ls_dataset *dataset, const struct ls_check *check, int64_t *bad,
                     int64_t *skippable, struct ls_error *error);

#endif
