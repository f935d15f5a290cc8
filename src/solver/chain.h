/* The chain of the weights' hashes. See struct ls_chain.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_CHAIN_H
#define LS_SOLVER_CHAIN_H

#include "solver/trainer.h"

/* The weights' hash becomes a link of the chain after so many updates. */
enum { LS_CHAIN_EVERY = 20 };

/* After an update: joins a link to the chain where one is due. */
int ls_trainer_link(struct ls_trainer *trainer, struct ls_error *error);
/* An event about the chain; `end`: of the weights as they are now, in words. All ranks call it. */
int ls_trainer_report_chain(struct ls_trainer *trainer, bool end, struct ls_error *error);

/* The chain as the note of a snapshot, and back: a snapshot without one begins a chain. */
enum { LS_CHAIN_TEXT = 48 };
void ls_chain_write(const struct ls_chain *chain, char text[LS_CHAIN_TEXT]);
int ls_chain_read(const char *text, int64_t iteration, struct ls_chain *chain);

#endif
