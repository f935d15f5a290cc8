/* What is said of bad records that a training skips (on_bad_record: SKIP), and of numbers that
 * cannot be meant.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_SKIPPED_H
#define LS_SOLVER_SKIPPED_H

#include "engine/net.h"
#include "solver/trainer.h"

/* Names the bad records of a net's data that were found since the last call, a few in all: calls
 * `say` with a sentence for each. */
void ls_net_tell_skipped(const struct ls_net *net, void (*say)(void *user, const char *sentence),
                         void *user);
/* Likewise names, once for each layer and kind, the first record with numbers that a layer takes
 * although they cannot be meant, of the samples of a data set with ordinals below `end`. */
void ls_net_tell_odd(const struct ls_net *net, int dataset, int64_t end,
                     void (*say)(void *user, const char *sentence), void *user);
/* The same as warnings of a trainer. */
void ls_trainer_report_odd(struct ls_trainer *trainer, const struct ls_net *net, int dataset,
                           int64_t end);
/* All ranks: what each has found of that kind becomes known to all. */
int ls_trainer_share_odd(struct ls_trainer *trainer, const struct ls_net *net,
                         struct ls_error *error);
/* Skipped records of all nets of a trainer, as warnings. */
void ls_trainer_report_skipped(struct ls_trainer *trainer);
/* At the end: how many samples others have stood in for. */
void ls_trainer_count_skipped(struct ls_trainer *trainer);

#endif
