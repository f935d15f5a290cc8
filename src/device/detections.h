/* What a net of SSD has found, for host code and kernels alike. See device/defined_detections.c.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_DETECTIONS_H
#define LS_DEVICE_DETECTIONS_H

#include "device/box_codes.h"
#include "device/boxes.h"
#include "ir/detection.h"

/* A box that may be reported. */
struct ls_find {
    int32_t kind, prior;
    float score;
};

/* How many of a class can be kept. */
LS_HOST_DEVICE int64_t ls_detection_most(const struct ls_detection_attr *attr)
{
    return attr->top_k >= 0 && attr->top_k < attr->priors ? attr->top_k : attr->priors;
}

/* Whether what was found with this score may be reported. */
LS_HOST_DEVICE bool ls_detection_counts(const struct ls_detection_attr *attr, float score)
{
    return attr->has_threshold ? score > attr->threshold : score == score;
}

/* The higher score first; of equal ones that of the first class, then of the first prior. */
LS_HOST_DEVICE bool ls_find_scores_more(const struct ls_find *a, const struct ls_find *b)
{
    if (a->score != b->score)
        return a->score > b->score;
    return a->kind != b->kind ? a->kind < b->kind : a->prior < b->prior;
}

/* By class, then as above: as they are reported. */
LS_HOST_DEVICE bool ls_find_is_reported_first(const struct ls_find *a, const struct ls_find *b)
{
    return a->kind != b->kind ? a->kind < b->kind : ls_find_scores_more(a, b);
}

/* What the overlap of others of a class is compared with after one more is kept. */
LS_HOST_DEVICE double ls_detection_next_threshold(const struct ls_detection_attr *attr,
                                                  double threshold)
{
    return attr->eta < 1 && threshold > 0.5 ? threshold * (double)attr->eta : threshold;
}

/* The box of prior p, as the place of class `kind`, of a sample with these places. */
LS_HOST_DEVICE struct ls_box ls_detection_box(const struct ls_detection_attr *attr,
                                              const float *prior, const float *place, int64_t p,
                                              int64_t kind)
{
    const int64_t groups = attr->by_class ? attr->classes : 1;
    const struct ls_box box = ls_box_read(prior + 4 * p);
    const float *variance = attr->variance_in_target ? NULL : prior + 4 * (attr->priors + p);
    return ls_box_decode(attr->code, &box, variance,
                         place + 4 * (groups * p + (attr->by_class ? kind : 0)));
}

/* Row of the top; `find` NULL: an empty one. */
LS_HOST_DEVICE void ls_detection_write(double sample, const struct ls_find *find,
                                       const struct ls_box *box, float *row)
{
    for (int k = 0; k < LS_FOUND_ROW; k++)
        row[k] = -1;
    if (find == NULL)
        return;
    row[0] = (float)sample;
    row[1] = (float)find->kind;
    row[2] = find->score;
    row[3] = (float)box->xmin;
    row[4] = (float)box->ymin;
    row[5] = (float)box->xmax;
    row[6] = (float)box->ymax;
}

#endif
