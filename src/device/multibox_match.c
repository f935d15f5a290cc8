/* Which true box each prior is matched with. See device/multibox.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "device/multibox.h"

void ls_multibox_set_boxes(const struct ls_multibox_attr *attr,
                           const struct ls_multibox_sample *sample, bool predicted, int64_t kind,
                           struct ls_multibox_room *room)
{
    for (int64_t p = 0; p < attr->priors; p++)
        room->box[p] = ls_multibox_box(attr, sample, predicted, p, kind);
}

/* Gives each true box in turn the prior that it covers best, of those that are left: the best pair
 * first, of equal ones that of the first prior, then of the first row. */
static void match_pairs(const struct ls_multibox_attr *attr, const float *rows, int64_t kind,
                        struct ls_multibox_room *room)
{
    for (int64_t g = 0; g < attr->objects; g++)
        room->taken[g] = !ls_multibox_is_object(attr, rows + g * LS_TRUE_BOX, kind);
    for (;;) {
        struct ls_multibox_pair best = ls_multibox_no_pair();
        for (int64_t p = 0; p < attr->priors; p++)
            ls_multibox_improve_pair(attr, rows, room, p, &best);
        if (best.prior < 0)
            return;
        room->object[best.prior] = (int32_t)best.row;
        room->matches++;
        room->taken[best.row] = true;
    }
}

void ls_multibox_match(const struct ls_multibox_attr *attr, const float *rows, int64_t kind,
                       struct ls_multibox_room *room)
{
    room->matches = 0;
    for (int64_t p = 0; p < attr->priors; p++)
        room->object[p] = ls_multibox_unmatched(attr, &room->box[p]);
    match_pairs(attr, rows, kind, room);
    for (int64_t p = 0; p < attr->priors; p++) /* the others */
        room->matches += ls_multibox_match_rest(attr, rows, kind, room, p);
}
