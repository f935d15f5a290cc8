/* Running the micro-batches of a pass on all workers.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_RUN_H
#define LS_ENGINE_RUN_H

#include "engine/pass.h"

/* Runs all units of this rank, with their sync points. What failed is noted in the pass. */
void ls_run_pass(struct ls_pass *pass);

#endif
