/* Sizes of workers' memory. See engine/room.h. SPDX-License-Identifier: BSD-2-Clause */
#include "engine/room.h"

void ls_room_add(struct ls_room *room, const struct ls_plan *plan, int slots)
{
    if (plan->segments == 1) {
        room->alone = ls_room_larger(room->alone, plan->arena_bytes);
        return;
    }
    room->arena = ls_room_larger(room->arena, plan->arena_bytes);
    room->stashed = ls_room_larger(room->stashed, plan->stashed_bytes);
    room->slots = slots > room->slots ? slots : room->slots;
}

size_t ls_room_arena(const struct ls_room *room, int workers)
{
    /* The worker with the fewest slots must have room, too. */
    size_t least = room->stashed * (size_t)(room->slots / workers);
    return ls_room_larger(room->arena, room->alone > least ? room->alone - least : 0);
}

size_t ls_room_block(const struct ls_room *room, int workers, int worker)
{
    size_t slots = (size_t)((room->slots + workers - 1 - worker) / workers);
    return ls_room_arena(room, workers) + slots * room->stashed;
}

size_t ls_room_bytes(const struct ls_room *room, int workers)
{
    return ls_room_arena(room, workers) * (size_t)workers + room->stashed * (size_t)room->slots;
}
