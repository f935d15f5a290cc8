/* Which cards compute. A device is named as "cpu", "cuda" (its first card), "cuda:2", "cuda:0,1"
 * (a rank of this process for each) or "cuda:all".
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_API_CARDS_H
#define LS_API_CARDS_H

#include "api/api.h"
#include "ops/devices.h"

struct ls_api_cards {
    const struct ls_device *device;
    int card[LS_RANK_THREADS_MAX];
    int count; /* 0: the device has no cards */
};

/* Fails where there is no such device or card, or no code for a card. */
int ls_api_cards(const char *device, struct ls_api_cards *cards, struct ls_error *error);
/* The one card of this process among those that all processes of a job were told: by its number on
 * its machine. All ranks call it, and it fails on all or on none. */
int ls_api_cards_of_job(struct lockstep_job *job, struct ls_api_cards *cards,
                        struct ls_error *error);
/* For what computes on one card: the calling thread works with it from now on. Several are refused,
 * `what` ("a test") is for the message. *card: -1 where the device has none. */
int ls_api_use_card(const char *device, const char *what, int *card, struct ls_error *error);

/* The device of a training: what was asked for or, where nothing was (NULL), what solver_mode says,
 * if there is that card; else NULL. `name` has room for it. */
enum { LS_API_DEVICE_ROOM = 32 };
const char *ls_api_solver_device(const struct lockstep_solver *solver, const char *asked,
                                 char name[LS_API_DEVICE_ROOM]);

/* How many workers there are where no number was given: the cores that this process may use, or
 * for a card one, which gives it its work. */
int ls_api_workers(const struct ls_device *device, int asked);

#endif
