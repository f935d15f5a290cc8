/* The courier: a thread that carries parcels between ranks while others compute.
 *
 * Parcels go in the order in which they were queued, the same on all ranks, each as soon as it is
 * ready and those before it are on their way. The courier sleeps while nothing is to be done, and
 * asks at growing intervals while something is under way: it shares cores with the workers.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TRANSPORT_COURIER_H
#define LS_TRANSPORT_COURIER_H

#include <stdatomic.h>
#include <stdbool.h>

#include "transport/peers.h"

enum { LS_COURIER_UNDER_WAY = 4 }; /* parcels at a time */

enum ls_parcel_state {
    LS_PARCEL_IDLE,
    LS_PARCEL_QUEUED,
    LS_PARCEL_READY,
    LS_PARCEL_SENT,
    LS_PARCEL_DONE
};

struct ls_parcel {
    /* By the courier: starts the operation (see struct ls_link_calls), 0 or -1. */
    int (*start)(struct ls_parcel *parcel, struct ls_link *link, struct ls_link_op **op);
    /* (optional) By the courier: what arrived is put to use. */
    void (*finish)(struct ls_parcel *parcel);
    void *user;
    size_t index;           /* the user's */
    _Atomic int state;      /* enum ls_parcel_state */
    struct ls_parcel *next; /* the courier's */
    struct ls_link_op *op;
};

/* `enter_thread` prepares the thread for computing; may be NULL. */
int ls_courier_start(struct ls_peers *peers, void (*enter_thread)(void),
                     struct ls_courier **courier, struct ls_error *error);
/* Nothing may be under way. */
void ls_courier_stop(struct ls_courier *courier);

/* Messages are waited for (true): they are heard within a fraction of a millisecond, until that is
 * called off. Calls are counted. NULL: nobody does. */
void ls_courier_listen(struct ls_courier *courier, bool on);

/* Appends a parcel that is IDLE or DONE; it lives until it is DONE. */
void ls_courier_queue(struct ls_courier *courier, struct ls_parcel *parcel);
/* It may go. Any thread. */
void ls_courier_ready(struct ls_courier *courier, struct ls_parcel *parcel);
/* Waits until a queued parcel has arrived, or was never queued. Any thread. */
int ls_courier_wait(struct ls_courier *courier, struct ls_parcel *parcel, struct ls_error *error);
static inline bool ls_parcel_done(const struct ls_parcel *parcel)
{
    int state = atomic_load_explicit(&parcel->state, memory_order_acquire);
    return state == LS_PARCEL_DONE || state == LS_PARCEL_IDLE;
}

#endif
