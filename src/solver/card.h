/* The card that a solver asks for. SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_CARD_H
#define LS_SOLVER_CARD_H

#include "device/device.h"
#include "schema/solver.h"

/* Fails where the device has no code for that card of its. */
int ls_card_check_runs(const struct ls_device *device, int card, struct ls_error *error);
/* The card that `solver_mode: GPU` with `device_id` means; fails where there is none. */
int ls_solver_card(const struct ls_solver_definition *definition, int *card,
                   struct ls_error *error);

#endif
