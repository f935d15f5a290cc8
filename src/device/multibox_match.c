/* Which true box each prior is matched with. See device/multibox.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "device/box_codes.h"
#include "device/label.h"
#include "device/multibox.h"

enum { LABELS = 1 << 24 }; /* integers below are exact in fp32 */

size_t ls_multibox_room_bytes(const struct ls_multibox_attr *attr)
{
    const size_t priors = (size_t)attr->priors, objects = (size_t)attr->objects;
    return priors *
               (sizeof(struct ls_box) + 2 * sizeof(double) + 3 * sizeof(int32_t) + sizeof(bool)) +
           objects * sizeof(bool);
}

struct ls_multibox_room ls_multibox_divide_room(const struct ls_multibox_attr *attr, void *scratch)
{
    const size_t priors = (size_t)attr->priors;
    struct ls_multibox_room room = {.box = scratch};
    room.loss = (double *)(void *)(room.box + priors);
    room.overlap = room.loss + priors;
    room.object = (int32_t *)(void *)(room.overlap + priors);
    room.ordered = room.object + priors;
    room.class = room.ordered + priors;
    room.chosen = (bool *)(room.class + priors);
    room.taken = room.chosen + priors;
    return room;
}

int64_t ls_multibox_class(const struct ls_multibox_attr *attr, const float *row)
{
    const int64_t class = ls_label_class(row[1], attr->agnostic ? LABELS : attr->classes);
    return attr->agnostic && class >= 0 && class != attr->background ? attr->background + 1 : class;
}

struct ls_box ls_multibox_predicted(const struct ls_multibox_attr *attr,
                                    const struct ls_multibox_sample *sample, int64_t p,
                                    int64_t class)
{
    const struct ls_box prior = ls_box_read(sample->prior + 4 * p);
    const float *variance = sample->prior + 4 * (attr->priors + p);
    return ls_box_decode(attr->code, &prior, attr->variance_in_target ? NULL : variance,
                         sample->loc + p * ls_multibox_places(attr) +
                             (attr->by_class ? 4 * class : 0));
}

void ls_multibox_set_boxes(const struct ls_multibox_attr *attr,
                           const struct ls_multibox_sample *sample, bool predicted, int64_t class,
                           struct ls_multibox_room *room)
{
    for (int64_t p = 0; p < attr->priors; p++)
        room->box[p] = predicted ? ls_multibox_predicted(attr, sample, p, class)
                                 : ls_box_read(sample->prior + 4 * p);
}

bool ls_multibox_is_object(const struct ls_multibox_attr *attr, const float *row, int64_t class)
{
    return ls_is_true_box(row) && (attr->difficult || row[7] == 0) &&
           (class < 0 || ls_multibox_class(attr, row) == class);
}

static bool leaves_picture(const struct ls_box *box)
{
    return box->xmin < 0 || box->xmin > 1 || box->ymin < 0 || box->ymin > 1 || box->xmax < 0 ||
           box->xmax > 1 || box->ymax < 0 || box->ymax > 1;
}

/* Gives each true box in turn the prior that it covers best, of those that are left: the best pair
 * first, of equal ones that of the first prior, then of the first row. */
static void match_pairs(const struct ls_multibox_attr *attr, const float *rows, int64_t class,
                        struct ls_multibox_room *room)
{
    for (int64_t g = 0; g < attr->objects; g++)
        room->taken[g] = !ls_multibox_is_object(attr, rows + g * LS_TRUE_BOX, class);
    for (;;) {
        double best = 1e-6;
        int64_t best_prior = -1, best_row = -1;
        for (int64_t p = 0; p < attr->priors; p++) {
            for (int64_t g = 0; room->object[p] == LS_NO_OBJECT && g < attr->objects; g++) {
                const struct ls_box object = ls_true_box(rows + g * LS_TRUE_BOX);
                const double overlap =
                    room->taken[g] ? 0 : ls_box_overlap(&room->box[p], &object, 0);
                if (!(overlap > best))
                    continue;
                best = overlap;
                best_prior = p;
                best_row = g;
            }
        }
        if (best_prior < 0)
            return;
        room->object[best_prior] = (int32_t)best_row;
        room->matches++;
        room->taken[best_row] = true;
    }
}

/* The others get the true box that they overlap most, if that is enough. */
static void match_rest(const struct ls_multibox_attr *attr, const float *rows, int64_t class,
                       struct ls_multibox_room *room)
{
    for (int64_t p = 0; p < attr->priors; p++) {
        int32_t best_row = -1;
        room->overlap[p] = 0;
        for (int64_t g = 0; room->object[p] != LS_OUTSIDE && g < attr->objects; g++) {
            const struct ls_box object = ls_true_box(rows + g * LS_TRUE_BOX);
            const double overlap = ls_multibox_is_object(attr, rows + g * LS_TRUE_BOX, class)
                                       ? ls_box_overlap(&room->box[p], &object, 0)
                                       : 0;
            if (!(overlap > 1e-6 && overlap > room->overlap[p]))
                continue;
            room->overlap[p] = overlap;
            best_row = (int32_t)g;
        }
        if (attr->bipartite || room->object[p] != LS_NO_OBJECT || best_row < 0 ||
            room->overlap[p] < (double)attr->overlap)
            continue;
        room->object[p] = best_row;
        room->matches++;
    }
}

void ls_multibox_match(const struct ls_multibox_attr *attr, const float *rows, int64_t class,
                       struct ls_multibox_room *room)
{
    room->matches = 0;
    for (int64_t p = 0; p < attr->priors; p++)
        room->object[p] = attr->within && leaves_picture(&room->box[p]) ? LS_OUTSIDE : LS_NO_OBJECT;
    match_pairs(attr, rows, class, room);
    match_rest(attr, rows, class, room);
}
