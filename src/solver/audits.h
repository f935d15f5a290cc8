/* What audits have found, told to the user.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_AUDITS_H
#define LS_SOLVER_AUDITS_H

#include "solver/trainer.h"

/* What audits have found in the last update, and at the end what came of all. */
void ls_trainer_report_findings(struct ls_trainer *trainer);
void ls_trainer_report_audits(struct ls_trainer *trainer);

#endif
