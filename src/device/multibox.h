/* What the parts of SSD's loss share: which prior learns what. (Liu et al.: SSD, Single Shot
 * MultiBox Detector; 2016.)
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

#include "device/boxes.h"
#include "ir/op.h"

/* What a prior's `object` is where it is no row. OUTSIDE: the box leaves the picture and is left
 * out of the matching. */
enum { LS_NO_OBJECT = -1, LS_OUTSIDE = -2 };

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
    int32_t *class;     /* by prior, where each class has its own matches */
    bool *chosen;       /* by prior */
    bool *taken;        /* by row */
    int64_t matches;
};

size_t ls_multibox_room_bytes(const struct ls_multibox_attr *attr);
struct ls_multibox_room ls_multibox_divide_room(const struct ls_multibox_attr *attr, void *scratch);

/* Numbers of the predicted places of a prior. */
static inline int64_t ls_multibox_places(const struct ls_multibox_attr *attr)
{
    return attr->by_class ? 4 * attr->classes : 4;
}

/* The class that a row of a true box shall be taken for; -1: it is none. */
int64_t ls_multibox_class(const struct ls_multibox_attr *attr, const float *row);
/* Where the box of prior p is predicted, as the place of `class`. */
struct ls_box ls_multibox_predicted(const struct ls_multibox_attr *attr,
                                    const struct ls_multibox_sample *sample, int64_t p,
                                    int64_t class);
/* Puts the boxes of priors into room->box: predicted ones, of `class`, or their own. */
void ls_multibox_set_boxes(const struct ls_multibox_attr *attr,
                           const struct ls_multibox_sample *sample, bool predicted, int64_t class,
                           struct ls_multibox_room *room);
/* Whether a row holds a box that counts, of `class` where that is not below 0. */
bool ls_multibox_is_object(const struct ls_multibox_attr *attr, const float *row, int64_t class);
/* Matches room->box with the true boxes, of `class` alone where it is not below 0. */
void ls_multibox_match(const struct ls_multibox_attr *attr, const float *rows, int64_t class,
                       struct ls_multibox_room *room);

/* Chooses from the priors whose losses are in room->loss. Lists in room->ordered those without a
 * match that learn that they show the background, and returns their number; where examples are
 * mined matches that are not chosen are undone. */
int64_t ls_multibox_mine(const struct ls_multibox_attr *attr,
                         const struct ls_multibox_sample *sample, struct ls_multibox_room *room);

#endif
