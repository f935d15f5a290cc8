/* See solver/card.h. SPDX-License-Identifier: BSD-2-Clause */
#include "solver/card.h"

#include "ops/devices.h"

int ls_card_check_runs(const struct ls_device *device, int card, struct ls_error *error)
{
    struct ls_card_facts facts;
    LS_TRY(device->cards->describe(card, &facts, error));
    if (facts.runs)
        return 0;
    return ls_fail(error, LOCKSTEP_RESOURCE, NULL, "cards of compute capability 8.0 and above are",
                   "card %d (%s, compute capability %d.%d) is too old", card, facts.name,
                   facts.major, facts.minor);
}

int ls_solver_card(const struct ls_solver_definition *definition, int *card, struct ls_error *error)
{
    const struct ls_device *device;
    int count;
    *card = definition->solver->device_id;
    LS_TRY(ls_device_find("cuda", &device, error));
    LS_TRY(device->cards->count(&count, error));
    if (*card >= count)
        return ls_fail(error, LOCKSTEP_RESOURCE, NULL, NULL,
                       "there is no card %d, which device_id asks for (of %d)", *card, count);
    return ls_card_check_runs(device, *card, error);
}
