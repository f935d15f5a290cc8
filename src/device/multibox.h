/* What the parts of SSD's loss share: which prior learns what. (Liu et al.: SSD, Single Shot
 * MultiBox Detector; 2016.) For host code and kernels alike, but for what says something else.
 *
 * A prior is a box and four variances, prior [1, 2, P 4]. Each prior has one predicted place, or
 * one for each class. Boxes are matched by where the priors are, or by where the predictions are.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_MULTIBOX_H
#define LS_DEVICE_MULTIBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/box_codes.h"
#include "device/boxes.h"
#include "device/label.h"
#include "ir/detection.h"

/* What a prior's `object` is where it is no row. OUTSIDE: the box leaves the picture and is left
 * out of the matching. */
enum { LS_NO_OBJECT = -1, LS_OUTSIDE = -2 };

enum { LS_MULTIBOX_LABELS = 1 << 24 }; /* integers below are exact in fp32 */

/* What the net predicts of one sample, and what is made of it. */
struct ls_multibox_sample {
    const float *loc, *conf, *prior, *rows; /* loc, conf: NULL where matches are only counted */
    float *dloc, *dconf;
};

/* Scratch memory of one sample. */
struct ls_multibox_room {
    struct ls_box *box; /* by prior: what is matched, or suppressed */
    double *loss;       /* by prior */
    double *overlap;    /* by prior: the largest with any true box */
    int32_t *object;    /* by prior: the row of the true box, or as above */
    int32_t *ordered;   /* priors, from which some are chosen */
    int32_t *kind;      /* by prior, where each class has its own matches */
    bool *chosen;       /* by prior */
    bool *taken;        /* by row */
    int64_t matches;
};

/* Bytes, a multiple of 8 of them, which scratch memory is aligned to. */
LS_HOST_DEVICE size_t ls_multibox_room_bytes(const struct ls_multibox_attr *attr)
{
    const size_t priors = (size_t)attr->priors, objects = (size_t)attr->objects;
    const size_t bytes =
        priors * (sizeof(struct ls_box) + 2 * sizeof(double) + 3 * sizeof(int32_t) + sizeof(bool)) +
        objects * sizeof(bool);
    return (bytes + 7) / 8 * 8;
}

LS_HOST_DEVICE struct ls_multibox_room ls_multibox_divide_room(const struct ls_multibox_attr *attr,
                                                               void *scratch)
{
    const size_t priors = (size_t)attr->priors;
    struct ls_multibox_room room;
    room.box = (struct ls_box *)scratch;
    room.loss = (double *)(void *)(room.box + priors);
    room.overlap = room.loss + priors;
    room.object = (int32_t *)(void *)(room.overlap + priors);
    room.ordered = room.object + priors;
    room.kind = room.ordered + priors;
    room.chosen = (bool *)(room.kind + priors);
    room.taken = room.chosen + priors;
    room.matches = 0;
    return room;
}

/* ---- Matches --------------------------------------------------------------------------------- */

/* Numbers of the predicted places of a prior. */
LS_HOST_DEVICE int64_t ls_multibox_places(const struct ls_multibox_attr *attr)
{
    return attr->by_class ? 4 * attr->classes : 4;
}

/* The class that a row of a true box shall be taken for; -1: it is none. */
LS_HOST_DEVICE int64_t ls_multibox_class(const struct ls_multibox_attr *attr, const float *row)
{
    const int64_t kind =
        ls_label_class(row[1], attr->agnostic ? (int64_t)LS_MULTIBOX_LABELS : attr->classes);
    return attr->agnostic && kind >= 0 && kind != attr->background ? attr->background + 1 : kind;
}

/* Where the box of prior p is predicted, as the place of class `kind`. */
LS_HOST_DEVICE struct ls_box ls_multibox_predicted(const struct ls_multibox_attr *attr,
                                                   const struct ls_multibox_sample *sample,
                                                   int64_t p, int64_t kind)
{
    const struct ls_box prior = ls_box_read(sample->prior + 4 * p);
    const float *variance = sample->prior + 4 * (attr->priors + p);
    return ls_box_decode(attr->code, &prior, attr->variance_in_target ? NULL : variance,
                         sample->loc + p * ls_multibox_places(attr) +
                             (attr->by_class ? 4 * kind : 0));
}

/* The box of prior p: where it is predicted, as that of a class, or its own. */
LS_HOST_DEVICE struct ls_box ls_multibox_box(const struct ls_multibox_attr *attr,
                                             const struct ls_multibox_sample *sample,
                                             bool predicted, int64_t p, int64_t kind)
{
    return predicted ? ls_multibox_predicted(attr, sample, p, kind)
                     : ls_box_read(sample->prior + 4 * p);
}

/* Whether a row holds a box that counts, of class `kind` where that is not below 0. */
LS_HOST_DEVICE bool ls_multibox_is_object(const struct ls_multibox_attr *attr, const float *row,
                                          int64_t kind)
{
    return ls_is_true_box(row) && (attr->difficult || row[7] == 0) &&
           (kind < 0 || ls_multibox_class(attr, row) == kind);
}

LS_HOST_DEVICE bool ls_box_leaves_picture(const struct ls_box *box)
{
    return box->xmin < 0 || box->xmin > 1 || box->ymin < 0 || box->ymin > 1 || box->xmax < 0 ||
           box->xmax > 1 || box->ymax < 0 || box->ymax > 1;
}

/* What a prior is before it is matched. */
LS_HOST_DEVICE int32_t ls_multibox_unmatched(const struct ls_multibox_attr *attr,
                                             const struct ls_box *box)
{
    return attr->within && ls_box_leaves_picture(box) ? LS_OUTSIDE : LS_NO_OBJECT;
}

/* A prior and a true box; prior -1: none. */
struct ls_multibox_pair {
    double overlap;
    int64_t prior, row;
};

LS_HOST_DEVICE struct ls_multibox_pair ls_multibox_no_pair(void)
{
    const struct ls_multibox_pair none = {1e-6, -1, -1};
    return none;
}

/* Puts prior p in `best`, with the first row of those that are not taken that it overlaps most, if
 * that is more than what is there. */
LS_HOST_DEVICE void ls_multibox_improve_pair(const struct ls_multibox_attr *attr, const float *rows,
                                             const struct ls_multibox_room *room, int64_t p,
                                             struct ls_multibox_pair *best)
{
    for (int64_t g = 0; room->object[p] == LS_NO_OBJECT && g < attr->objects; g++) {
        const struct ls_box object = ls_true_box(rows + g * LS_TRUE_BOX);
        const double overlap = room->taken[g] ? 0 : ls_box_overlap(&room->box[p], &object, 0);
        if (!(overlap > best->overlap))
            continue;
        best->overlap = overlap;
        best->prior = p;
        best->row = g;
    }
}

/* Gives prior p, if it has no match, the true box that it overlaps most, if that is enough; returns
 * whether it did, and sets room->overlap[p]. */
LS_HOST_DEVICE bool ls_multibox_match_rest(const struct ls_multibox_attr *attr, const float *rows,
                                           int64_t kind, struct ls_multibox_room *room, int64_t p)
{
    int32_t best_row = -1;
    room->overlap[p] = 0;
    for (int64_t g = 0; room->object[p] != LS_OUTSIDE && g < attr->objects; g++) {
        const struct ls_box object = ls_true_box(rows + g * LS_TRUE_BOX);
        const double overlap = ls_multibox_is_object(attr, rows + g * LS_TRUE_BOX, kind)
                                   ? ls_box_overlap(&room->box[p], &object, 0)
                                   : 0;
        if (!(overlap > 1e-6 && overlap > room->overlap[p]))
            continue;
        room->overlap[p] = overlap;
        best_row = (int32_t)g;
    }
    if (attr->bipartite || room->object[p] != LS_NO_OBJECT || best_row < 0 ||
        room->overlap[p] < (double)attr->overlap)
        return false;
    room->object[p] = best_row;
    return true;
}

/* ---- Choosing -------------------------------------------------------------------------------- */

/* Of two priors, the one with the larger loss is chosen first, then the one in front. */
LS_HOST_DEVICE bool ls_multibox_is_chosen_first(const double *loss, int32_t a, int32_t b)
{
    return loss[a] != loss[b] ? loss[a] > loss[b] : a < b;
}

/* Whether prior p can be a hard negative. */
LS_HOST_DEVICE bool ls_multibox_is_negative(const struct ls_multibox_attr *attr,
                                            const struct ls_multibox_room *room, int64_t p)
{
    return room->object[p] == LS_NO_OBJECT && room->overlap[p] < (double)attr->neg_overlap;
}

/* How many of `count` negatives are wanted. */
LS_HOST_DEVICE int64_t ls_multibox_most_negatives(const struct ls_multibox_attr *attr,
                                                  int64_t matches, int64_t count)
{
    const double wanted = floor((double)matches * (double)attr->neg_pos_ratio);
    return wanted < (double)count ? (int64_t)wanted : count;
}

/* ---- Host code alone ------------------------------------------------------------------------- */

/* Puts the boxes of priors into room->box: predicted ones, of class `kind`, or their own. */
void ls_multibox_set_boxes(const struct ls_multibox_attr *attr,
                           const struct ls_multibox_sample *sample, bool predicted, int64_t kind,
                           struct ls_multibox_room *room);
/* Matches room->box with the true boxes, of class `kind` alone where it is not below 0. */
void ls_multibox_match(const struct ls_multibox_attr *attr, const float *rows, int64_t kind,
                       struct ls_multibox_room *room);

/* Chooses from the priors whose losses are in room->loss. Lists in room->ordered those without a
 * match that learn that they show the background, and returns their number; where examples are
 * mined matches that are not chosen are undone. */
int64_t ls_multibox_mine(const struct ls_multibox_attr *attr,
                         const struct ls_multibox_sample *sample, struct ls_multibox_room *room);

#endif
