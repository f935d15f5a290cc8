/* Numbers of records that layers take although they cannot be meant: looked for while the first
 * epoch is read, and said once for each rule. Trainings are the same with them.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_ODDITIES_H
#define LS_DATA_ODDITIES_H

#include "data/bad_records.h"

/* Before anything is read: what to look for. */
int ls_dataset_look_for(struct ls_dataset *dataset, const struct ls_number_rule *rules,
                        size_t count, struct ls_error *error);
/* The next rule that a sample breaks of those with ordinals below `end`, which have been read;
 * false: there is none. Of each rule it is the first such sample, and comes once. `text` becomes
 * what is wrong with it. Any thread. */
bool ls_dataset_next_oddity(const struct ls_dataset *dataset, int64_t end, int64_t *record,
                            char *text, size_t size);

/* What ranks have found that each read a part of the samples: bytes of it, the same on all (0:
 * nothing is looked for); writes what this rank has found; and adds what another one has. */
size_t ls_dataset_oddity_bytes(const struct ls_dataset *dataset);
void ls_dataset_put_oddities(const struct ls_dataset *dataset, void *found);
void ls_dataset_take_oddities(const struct ls_dataset *dataset, const void *found);

/* ---- For the files of data sets ---- */

struct ls_oddities;

/* Looks at a record that was read for an ordinal. Any thread. */
void ls_oddities_look(const struct ls_dataset *dataset, int64_t ordinal, int64_t index,
                      const struct ls_record *record, void *const *out);
void ls_oddities_free(struct ls_oddities *oddities);

#endif
