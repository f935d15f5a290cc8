/* Requests: what a trainer's caller asks it for.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_REQUESTS_H
#define LS_SOLVER_REQUESTS_H

#include "solver/trainer.h"

/* What the caller wants now, as bits of enum ls_wanted. */
uint32_t ls_requests_poll(struct ls_trainer *trainer);

#endif
