/* Whether the data of a training are those that it began with.
 *
 * What is known from the start (how many records, labels, mean file, first and last record; see
 * ls_dataset_describe) is compared at once: by a resume with what the snapshot says, among ranks at
 * their start. Digests of records (data/digest.h) are kept of the running epoch and of a whole one;
 * both are in snapshots, so that one epoch later at the latest every record has been compared. Of
 * micro-batches only those of committed updates count.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_DATA_H
#define LS_SOLVER_DATA_H

#include "base/text.h"
#include "solver/trainer.h"

struct ls_archive;

/* Begins to keep digests; with other ranks, to compare records with theirs, until one epoch later.
 * After the nets are open. */
int ls_data_begin(struct ls_trainer *trainer, struct ls_error *error);
void ls_data_end(struct ls_trainer *trainer);

/* All ranks: the training goes on in the middle of an epoch of which nothing is known. */
void ls_data_begin_late(struct ls_trainer *trainer);

/* Lines about the data of the train net; of all nets, with some records' hashes (for ranks). */
void ls_data_describe(const struct ls_trainer *trainer, struct ls_text *text);
int ls_data_describe_all(const struct ls_trainer *trainer, struct ls_text *text,
                         struct ls_error *error);
/* The digests so far, as lines. */
void ls_data_digests(const struct ls_trainer *trainer, struct ls_text *text);

/* Rank 0 of a resume: compares a snapshot's notes with the data and takes its digests. */
int ls_data_examine(struct ls_trainer *trainer, const struct ls_archive *archive,
                    struct ls_error *error);
/* All ranks: those that rank 0 has taken. */
int ls_data_share(struct ls_trainer *trainer, struct ls_error *error);

/* After an update was committed: LOCKSTEP_DATA where an epoch has ended that had other records than
 * the first one, the same on all ranks; LOCKSTEP_DIFFERENT on a rank whose records are others than
 * those that another one has trained on. */
int ls_data_note_update(struct ls_trainer *trainer, struct ls_error *error);
/* After a test: LOCKSTEP_DATA where it has read other records than the one before. */
int ls_data_note_test(struct ls_trainer *trainer, struct ls_test *test, struct ls_error *error);
/* Before a snapshot: all ranks wait until what was trained on so far is compared. */
int ls_data_settle(struct ls_trainer *trainer, struct ls_error *error);

#endif
