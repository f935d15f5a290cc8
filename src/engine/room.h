/* Room for plans: how a worker's memory is shared by all of them.
 *
 * A worker has one block. Plans whose micro-batches hold something across segments have their
 * arena at its beginning, and behind it what each of the worker's slots holds. Only one net runs at
 * a time, so a plan in one segment, as those of tests are, has the whole block as its arena.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_ROOM_H
#define LS_ENGINE_ROOM_H

#include "plan/plan.h"

static inline size_t ls_room_larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* What plans take at most. */
struct ls_room {
    size_t alone;          /* the arena of one in one segment */
    size_t arena, stashed; /* of one in several: its arena, and what a slot holds */
    int slots;             /* of such a one, whatever the plan */
};

/* Makes room for a plan that is run in so many slots. */
void ls_room_add(struct ls_room *room, const struct ls_plan *plan, int slots);
/* The part of each worker's block that is in front of what its slots hold. */
size_t ls_room_arena(const struct ls_room *room, int workers);
/* The block of a worker, which has the slots worker, worker + workers ... */
size_t ls_room_block(const struct ls_room *room, int workers, int worker);
/* All blocks. */
size_t ls_room_bytes(const struct ls_room *room, int workers);

#endif
