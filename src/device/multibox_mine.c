/* Which priors SSD's loss learns from: all, hard negatives, or hard examples. See
 * device/multibox.h. (Shrivastava, Gupta, Girshick: Training region-based object detectors with
 * online hard example mining; 2016.)
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/heap.h"
#include "device/multibox.h"

/* Of those in `ordered`: the one with the larger loss first, then the one in front. */
static bool comes_before(const void *first, const void *second, const void *user)
{
    const double *loss = user;
    const int32_t a = *(const int32_t *)first, b = *(const int32_t *)second;
    return ls_multibox_is_chosen_first(loss, a, b);
}

/* Of the priors in order, keeps those whose boxes cover something and do not overlap one in front
 * of them, at most `most`; returns their number. */
static int64_t suppress(const struct ls_multibox_attr *attr,
                        const struct ls_multibox_sample *sample, struct ls_multibox_room *room,
                        int64_t count, int64_t most)
{
    int64_t kept = 0;
    ls_multibox_set_boxes(attr, sample, !attr->suppresses_priors, 0, room);
    if (attr->top_k >= 0 && attr->top_k < count)
        count = attr->top_k;
    for (int64_t i = 0; i < count && kept < most; i++) {
        const struct ls_box *box = &room->box[room->ordered[i]];
        bool keep = ls_box_area(box, 0) >= 1e-5;
        for (int64_t k = 0; keep && k < kept; k++)
            keep = !(ls_box_overlap(&room->box[room->ordered[k]], box, 0) >
                     (double)attr->nms_threshold);
        if (keep)
            room->ordered[kept++] = room->ordered[i];
    }
    return kept;
}

/* Puts the `most` of `count` priors in `ordered` with the largest losses in front. */
static int64_t choose(const struct ls_multibox_attr *attr, const struct ls_multibox_sample *sample,
                      struct ls_multibox_room *room, int64_t count, int64_t most)
{
    const struct ls_heap heap = {room->ordered, sizeof *room->ordered, comes_before, room->loss};
    for (int64_t i = 0; i < count; i++) /* so that the order is one */
        if (isnan(room->loss[room->ordered[i]]))
            room->loss[room->ordered[i]] = (double)INFINITY;
    ls_heap_sort(&heap, count);
    return attr->nms_threshold > 0 ? suppress(attr, sample, room, count, most) : most;
}

/* At most neg_pos_ratio for each match, of those that overlap no true box by much. */
static int64_t mine_negatives(const struct ls_multibox_attr *attr,
                              const struct ls_multibox_sample *sample,
                              struct ls_multibox_room *room)
{
    int64_t count = 0;
    for (int64_t p = 0; p < attr->priors; p++)
        if (ls_multibox_is_negative(attr, room, p))
            room->ordered[count++] = (int32_t)p;
    return choose(attr, sample, room, count,
                  ls_multibox_most_negatives(attr, room->matches, count));
}

static bool has_objects(const struct ls_multibox_attr *attr, const float *rows)
{
    for (int64_t g = 0; g < attr->objects; g++)
        if (ls_multibox_is_object(attr, rows + g * LS_TRUE_BOX, -1))
            return true;
    return false;
}

/* At most sample_size, with a match or without. A sample without true boxes has none, as in SSD. */
static int64_t mine_examples(const struct ls_multibox_attr *attr,
                             const struct ls_multibox_sample *sample, struct ls_multibox_room *room)
{
    int64_t negatives = 0;
    const bool any = has_objects(attr, sample->rows);
    for (int64_t p = 0; p < attr->priors; p++) {
        room->ordered[p] = (int32_t)p;
        room->chosen[p] = false;
    }
    const int64_t most = attr->sample_size < attr->priors ? attr->sample_size : attr->priors;
    const int64_t count = any ? choose(attr, sample, room, attr->priors, most) : 0;
    for (int64_t i = 0; i < count; i++)
        room->chosen[room->ordered[i]] = true;
    for (int64_t p = 0; p < attr->priors; p++) {
        if (room->object[p] >= 0 && !room->chosen[p]) {
            room->object[p] = LS_NO_OBJECT;
            room->matches--;
        } else if (room->object[p] == LS_NO_OBJECT && room->chosen[p]) {
            room->ordered[negatives++] = (int32_t)p;
        }
    }
    return negatives;
}

int64_t ls_multibox_mine(const struct ls_multibox_attr *attr,
                         const struct ls_multibox_sample *sample, struct ls_multibox_room *room)
{
    if (attr->mining == LS_MINING_NEGATIVES)
        return mine_negatives(attr, sample, room);
    if (attr->mining == LS_MINING_EXAMPLES)
        return mine_examples(attr, sample, room);
    int64_t count = 0;
    for (int64_t p = 0; p < attr->priors; p++)
        if (room->object[p] < 0)
            room->ordered[count++] = (int32_t)p;
    return count;
}
