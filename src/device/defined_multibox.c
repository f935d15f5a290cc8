/* SSD's loss of boxes and their classes. See device/multibox.h and device/defined.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <string.h>

#include "device/defined.h"
#include "device/multibox.h"
#include "device/multibox_loss.h"

/* Sets matches by where the priors are, or where the one place of each is predicted. */
static void match(const struct ls_multibox_attr *attr, const struct ls_multibox_sample *sample,
                  struct ls_multibox_room *room)
{
    ls_multibox_set_boxes(attr, sample, attr->by_place, 0, room);
    ls_multibox_match(attr, sample->rows, -1, room);
}

static size_t loss_scratch(const struct ls_op *op)
{
    return ls_multibox_room_bytes(&op->attr.multibox);
}

static void count_matches(const struct ls_defined_call *call)
{
    const struct ls_multibox_attr *attr = &call->op->attr.multibox;
    const int64_t samples = ls_value_sample_rows(call->op->input[1]) / call->op->input[1]->rows;
    struct ls_multibox_room room = ls_multibox_divide_room(attr, call->scratch);
    for (int64_t n = 0; n < samples; n++) {
        const struct ls_multibox_sample sample = {.prior = call->in[0],
                                                  .rows = (const float *)call->in[1] +
                                                          n * attr->objects * LS_TRUE_BOX};
        match(attr, &sample, &room);
        call->context->partials[attr->metric_offset] += (double)room.matches;
    }
}

/* ---- A sample -------------------------------------------------------------------------------- */

/* Sets the losses that priors are chosen by. */
static void set_losses(const struct ls_multibox_attr *attr, const struct ls_multibox_sample *sample,
                       struct ls_multibox_room *room)
{
    for (int64_t p = 0; p < attr->priors; p++) {
        const int64_t class = ls_multibox_class_of(attr, sample, room, p);
        if (attr->mining == LS_MINING_NEGATIVES && room->object[p] >= 0)
            continue;
        room->loss[p] = ls_multibox_confidence_loss(attr, sample, p, class, false);
        if (room->object[p] >= 0 && class >= 0)
            room->loss[p] += ls_multibox_place_loss(attr, sample, room, p, class, false);
    }
}

/* Returns the loss of one sample, whose gradients hold zeros, and sets room->matches. */
static double learn(const struct ls_multibox_attr *attr, const struct ls_multibox_sample *sample,
                    struct ls_multibox_room *room, double sum)
{
    match(attr, sample, room);
    if (attr->mining != LS_MINING_NONE)
        set_losses(attr, sample, room);
    const int64_t negatives = ls_multibox_mine(attr, sample, room);
    for (int64_t p = 0; p < attr->priors; p++) {
        const int64_t class = ls_multibox_class_of(attr, sample, room, p);
        if (room->object[p] < 0)
            continue;
        if (class >= 0)
            sum += (double)attr->loc_weight *
                   ls_multibox_place_loss(attr, sample, room, p, class, true);
        sum += ls_multibox_confidence_loss(attr, sample, p, class, true);
    }
    for (int64_t i = 0; i < negatives; i++)
        sum += ls_multibox_confidence_loss(attr, sample, room->ordered[i], attr->background, true);
    return sum;
}

/* The same where each class has its own predicted places, which are matched with the true boxes of
 * that class alone. A prior that several classes match learns the last of them. */
static double learn_by_class(const struct ls_multibox_attr *attr,
                             const struct ls_multibox_sample *sample, struct ls_multibox_room *room,
                             double sum)
{
    int64_t matches = 0;
    for (int64_t p = 0; p < attr->priors; p++)
        room->kind[p] = attr->background;
    for (int64_t g = 0; g < attr->objects; g++)
        if (ls_multibox_is_object(attr, sample->rows + g * LS_TRUE_BOX, -1) &&
            ls_multibox_class(attr, sample->rows + g * LS_TRUE_BOX) < 0)
            sum = (double)NAN;
    for (int64_t c = 0; c < attr->classes; c++) {
        if (c == attr->background)
            continue;
        ls_multibox_set_boxes(attr, sample, true, c, room);
        ls_multibox_match(attr, sample->rows, c, room);
        matches += room->matches;
        for (int64_t p = 0; p < attr->priors; p++) {
            if (room->object[p] < 0)
                continue;
            sum +=
                (double)attr->loc_weight * ls_multibox_place_loss(attr, sample, room, p, c, true);
            room->kind[p] = (int32_t)c;
        }
    }
    for (int64_t p = 0; p < attr->priors; p++)
        sum += ls_multibox_confidence_loss(attr, sample, p, room->kind[p], true);
    room->matches = matches;
    return sum;
}

static void multibox(const struct ls_defined_call *call)
{
    const struct ls_multibox_attr *attr = &call->op->attr.multibox;
    const struct ls_value *rows = call->op->input[3];
    const int64_t samples = ls_value_sample_rows(rows) / rows->rows;
    const int64_t places = attr->priors * ls_multibox_places(attr);
    const int64_t scores = attr->priors * attr->classes;
    double *record = call->context->partials + attr->metric_offset;
    struct ls_multibox_room room = ls_multibox_divide_room(attr, call->scratch);
    float *dloc = call->out[0], *dconf = call->out[1];
    memset(dloc, 0, (size_t)(samples * places) * sizeof *dloc);
    memset(dconf, 0, (size_t)(samples * scores) * sizeof *dconf);
    for (int64_t n = 0; n < samples; n++) {
        const struct ls_multibox_sample sample = {.loc = (const float *)call->in[0] + n * places,
                                                  .conf = (const float *)call->in[1] + n * scores,
                                                  .prior = call->in[2],
                                                  .rows = (const float *)call->in[3] +
                                                          n * attr->objects * LS_TRUE_BOX,
                                                  .dloc = dloc + n * places,
                                                  .dconf = dconf + n * scores};
        const bool alone = attr->by_class && attr->by_place;
        record[0] = (alone ? learn_by_class : learn)(attr, &sample, &room, record[0]);
        record[1] += ls_multibox_count_of(attr, room.matches);
        if (attr->count_offset >= 0)
            call->context->partials[attr->count_offset] += (double)room.matches;
    }
}

static void multibox_backward(const struct ls_defined_call *call)
{
    const struct ls_multibox_attr *attr = &call->op->attr.multibox;
    const double divisor = attr->normalizer < 0 ? 1 : call->context->normalizers[attr->normalizer];
    const double factor = (double)attr->loss_weight / divisor;
    const float *slope = call->in[0];
    float *dx = call->out[0];
    for (int64_t i = 0; i < ls_shape_size(&call->op->output[0]->shape); i++)
        dx[i] = (float)(factor * (double)slope[i]);
}

const struct ls_defined ls_defined_multibox[LS_OP_KINDS] = {
    [LS_OP_MULTIBOX_LOSS] = {.run = multibox, .scratch = loss_scratch},
    [LS_OP_MULTIBOX_LOSS_BACKWARD] = {.run = multibox_backward},
    [LS_OP_COUNT_MATCHES] = {.run = count_matches, .scratch = loss_scratch, .moves = true},
};
