/* SSD's loss of boxes and their classes. See device/multibox.h and device/defined.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <sleef.h>
#include <string.h>

#include "device/box_codes.h"
#include "device/defined.h"
#include "device/multibox.h"

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

/* ---- Classes --------------------------------------------------------------------------------- */

/* The loss of the classes of a prior, and its gradient where `slope` is there. */
static double class_loss(const struct ls_multibox_attr *attr, const float *x, int64_t class,
                         float *slope)
{
    double largest = -(double)INFINITY, sum = 0;
    for (int64_t c = 0; c < attr->classes; c++)
        largest = fmax(largest, (double)x[c]);
    for (int64_t c = 0; c < attr->classes; c++)
        sum += Sleef_cinz_expd1_u10purec((double)x[c] - largest);
    for (int64_t c = 0; slope != NULL && c < attr->classes; c++)
        slope[c] =
            (float)(Sleef_cinz_expd1_u10purec((double)x[c] - largest) / sum - (c == class ? 1 : 0));
    return Sleef_cinz_logd1_u10purec(sum) - ((double)x[class] - largest);
}

/* The same of independent yes-or-no predictions. */
static double logistic_loss(const struct ls_multibox_attr *attr, const float *x, int64_t class,
                            float *slope)
{
    double sum = 0;
    for (int64_t c = 0; c < attr->classes; c++) {
        const double number = (double)x[c], wanted = c == class ? 1 : 0;
        sum += Sleef_cinz_log1pd1_u10purec(Sleef_cinz_expd1_u10purec(-fabs(number))) -
               number * (wanted - (number >= 0 ? 1 : 0));
        if (slope != NULL)
            slope[c] = (float)(1 / (1 + Sleef_cinz_expd1_u10purec(-number)) - wanted);
    }
    return sum;
}

/* NaN where `class` is none. */
static double confidence_loss(const struct ls_multibox_attr *attr,
                              const struct ls_multibox_sample *sample, int64_t p, int64_t class,
                              bool learn)
{
    const float *x = sample->conf + p * attr->classes;
    float *slope = learn ? sample->dconf + p * attr->classes : NULL;
    if (class < 0)
        return (double)NAN;
    return (attr->logistic ? logistic_loss : class_loss)(attr, x, class, slope);
}

/* ---- Places ---------------------------------------------------------------------------------- */

/* Whether side k of the box of prior p lies in the picture; else it learns nothing. */
static void find_inside(const struct ls_multibox_attr *attr,
                        const struct ls_multibox_sample *sample, int64_t p, int64_t class,
                        bool inside[4])
{
    const struct ls_box box = attr->by_place ? ls_multibox_predicted(attr, sample, p, class)
                                             : ls_box_read(sample->prior + 4 * p);
    const double side[4] = {box.xmin, box.ymin, box.xmax, box.ymax};
    for (int k = 0; k < 4; k++)
        inside[k] = !(side[k] < 0 || side[k] > 1);
}

/* The loss of where the box of prior p, which has a match of `class`, is. */
static double place_loss(const struct ls_multibox_attr *attr,
                         const struct ls_multibox_sample *sample,
                         const struct ls_multibox_room *room, int64_t p, int64_t class, bool learn)
{
    const struct ls_box prior = ls_box_read(sample->prior + 4 * p);
    const struct ls_box object = ls_true_box(sample->rows + room->object[p] * LS_TRUE_BOX);
    const float *variance = sample->prior + 4 * (attr->priors + p);
    const int64_t at = p * ls_multibox_places(attr) + (attr->by_class ? 4 * class : 0);
    double target[4], sum = 0;
    bool inside[4] = {true, true, true, true};
    ls_box_encode(attr->code, &prior, &object, target);
    if (attr->inside)
        find_inside(attr, sample, p, class, inside);
    for (int k = 0; k < 4; k++) {
        if (!inside[k])
            continue;
        const double v = (double)variance[k], predicted = (double)sample->loc[at + k];
        /* Else both are divided by the variance. */
        const double by = attr->variance_in_target ? v : 1;
        const double apart =
            (predicted - (attr->variance_in_target ? target[k] : target[k] / v)) / by;
        const bool square = attr->euclidean || fabs(apart) < 1;
        const double slope = square ? apart : apart > 0 ? 1 : -1;
        sum += square ? apart * apart / 2 : fabs(apart) - 0.5;
        if (learn)
            sample->dloc[at + k] = (float)((double)attr->loc_weight * slope / by);
    }
    return sum;
}

/* ---- A sample -------------------------------------------------------------------------------- */

static int64_t class_of(const struct ls_multibox_attr *attr,
                        const struct ls_multibox_sample *sample,
                        const struct ls_multibox_room *room, int64_t p)
{
    const int32_t object = room->object[p];
    return object < 0 ? attr->background
                      : ls_multibox_class(attr, sample->rows + object * LS_TRUE_BOX);
}

/* Sets the losses that priors are chosen by. */
static void set_losses(const struct ls_multibox_attr *attr, const struct ls_multibox_sample *sample,
                       struct ls_multibox_room *room)
{
    for (int64_t p = 0; p < attr->priors; p++) {
        const int64_t class = class_of(attr, sample, room, p);
        if (attr->mining == LS_MINING_NEGATIVES && room->object[p] >= 0)
            continue;
        room->loss[p] = confidence_loss(attr, sample, p, class, false);
        if (room->object[p] >= 0 && class >= 0)
            room->loss[p] += place_loss(attr, sample, room, p, class, false);
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
        const int64_t class = class_of(attr, sample, room, p);
        if (room->object[p] < 0)
            continue;
        if (class >= 0)
            sum += (double)attr->loc_weight * place_loss(attr, sample, room, p, class, true);
        sum += confidence_loss(attr, sample, p, class, true);
    }
    for (int64_t i = 0; i < negatives; i++)
        sum += confidence_loss(attr, sample, room->ordered[i], attr->background, true);
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
        room->class[p] = attr->background;
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
            sum += (double)attr->loc_weight * place_loss(attr, sample, room, p, c, true);
            room->class[p] = (int32_t)c;
        }
    }
    for (int64_t p = 0; p < attr->priors; p++)
        sum += confidence_loss(attr, sample, p, room->class[p], true);
    room->matches = matches;
    return sum;
}

/* What one sample adds to the count that the loss is divided by. */
static double count_of(const struct ls_multibox_attr *attr, const struct ls_multibox_room *room)
{
    switch (attr->normalization) {
    case LS_NORM_FULL:
        return (double)attr->priors;
    case LS_NORM_BATCH_SIZE:
        return 1;
    case LS_NORM_NONE:
        return 0;
    default:
        return (double)room->matches;
    }
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
        record[1] += count_of(attr, &room);
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
