/* Reading all records of a data set once, to find the bad ones.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_CHECK_H
#define LS_DATA_CHECK_H

#include "data/dataset.h"

struct ls_check {
    int threads;
    /* (optional) What is wrong with a number of a tensor of the sample that layers take for a
     * label, or NULL; `text` has room for 300 bytes. Any thread. */
    const char *(*label)(void *user, int tensor, float label, char *text);
    /* Called for every bad record, in their order. `name` may be empty. */
    void (*bad)(void *user, int64_t record, const char *name, const char *reason);
    /* (optional) Called now and then; other than 0 ends the check. */
    int (*progress)(void *user, int64_t done, int64_t count);
    void *user;
};
/* Reads, decodes and transforms every record of the data set (which forgives), and looks at its
 * label. *bad: how many are bad; *skippable: of how many of them that is the record's own fault,
 * not its file's, so that they can be skipped. LOCKSTEP_STOPPED where `progress` says so. */
int ls_dataset_check(const struct ls_dataset *dataset, const struct ls_check *check, int64_t *bad,
                     int64_t *skippable, struct ls_error *error);

#endif
