/* Labels that name no class of the layer that takes them, and other numbers that cannot be meant.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_LABELS_H
#define LS_ENGINE_LABELS_H

#include "data/bad_records.h"
#include "engine/net.h"

/* Before a run: where the largest label of a data set is known and too large, looks for the first
 * sample that has a label of no class. LOCKSTEP_DATA, naming the record. */
int ls_labels_check(const struct ls_net *net, struct ls_error *error);

/* After a figure that is not finite: as above, among the samples of a micro-batch. 0 if all of
 * their labels are good. */
int ls_labels_find_bad(const struct ls_net *net, const struct ls_batch *range,
                       struct ls_error *error);

/* After the net's inputs are known: tells the data sets which numbers its layers take, for records
 * that are bad and for what cannot be meant. */
int ls_labels_tell(struct ls_net *net, struct ls_error *error);

/* What the layers of the net say of numbers that data set `dataset` brings. *rules is the caller's.
 */
int ls_labels_rules(const struct ls_net *net, int dataset, struct ls_number_rule **rules,
                    size_t *count, struct ls_error *error);

/* Calls `visit` for the parameters whose rows are what the numbers of a data set stand for: of
 * tables in which they are looked up, and of layers that make the scores of classes. */
void ls_labels_visit_rows(const struct ls_net *net, const struct ls_dataset *dataset,
                          void (*visit)(void *user, const struct ls_parameter *parameter),
                          void *user);

#endif
