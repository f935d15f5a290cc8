/* See device/linear_loss.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "device/linear_loss.h"

#include <sleef.h>

#include "device/label.h"
#include "device/linear_slope.h"

enum { BLOCK_MIN = 32, SCORES_MAX = 1 << 24 };

int64_t ls_linear_loss_block(int64_t classes)
{
    int64_t rows = LS_LINEAR_BLOCK_MAX;
    while (rows > BLOCK_MIN && rows * classes > SCORES_MAX)
        rows /= 2;
    return rows;
}

int64_t ls_linear_loss_next(const struct ls_linear_loss_attr *attr, const float *label,
                            int64_t from, int64_t *class, struct ls_linear_sums *sums)
{
    const struct ls_loss_attr *loss = &attr->loss;
    for (; from < attr->rows; from++) {
        sums->loss.positions++;
        sums->loss.samples++;
        if (ls_label_ignored(label[from], loss->has_ignore, loss->ignore_label))
            continue;
        sums->loss.valid++;
        *class = ls_label_class(label[from], attr->classes);
        if (*class >= 0)
            break;
        sums->loss.bad_label = true;
    }
    return from;
}

double ls_linear_loss_weights(const struct ls_linear_loss_attr *attr)
{
    double sum = 0;
    if (attr->loss.smoothing > 0)
        for (int64_t v = 0; v < attr->classes; v++)
            sum += ls_loss_weight(&attr->loss, v);
    return sum;
}

static double own_of(const struct ls_linear_loss_attr *attr, int64_t label)
{
    return ls_linear_own(attr->loss.smoothing, ls_loss_weight(&attr->loss, label));
}

static double share_of(const struct ls_linear_loss_attr *attr)
{
    return ls_linear_share(attr->loss.smoothing, attr->classes);
}

void ls_linear_loss_take(const struct ls_linear_loss_attr *attr, double weights,
                         const struct ls_linear_row *row, const float *bytes,
                         struct ls_linear_sums *sums)
{
    const double log_sum = Sleef_cinz_logd1_u10purec(row->sum);
    const double nats = log_sum - (double)row->at;
    sums->loss.weights += ls_loss_weight(&attr->loss, row->label);
    sums->loss.sum += own_of(attr, row->label) * nats;
    if (attr->loss.smoothing > 0)
        sums->loss.sum += share_of(attr) * (weights * log_sum - row->all);
    sums->figures[LS_LINEAR_NATS] += nats;
    sums->figures[LS_LINEAR_COUNT]++;
    sums->figures[LS_LINEAR_HITS] += row->hit ? 1 : 0;
    sums->figures[LS_LINEAR_BYTES] += bytes != NULL ? (double)bytes[row->row] : 0;
}

void ls_linear_loss_record(const struct ls_linear_loss_attr *attr, const struct ls_context *context,
                           const struct ls_linear_sums *sums)
{
    ls_loss_add(&attr->loss, context, &sums->loss);
    for (int i = 0; attr->figures >= 0 && i < LS_LINEAR_FIGURES; i++)
        context->partials[attr->figures + i] += sums->figures[i];
}

float ls_linear_loss_factor(const struct ls_linear_loss_attr *attr, double scale,
                            const struct ls_linear_row *row)
{
    return ls_linear_factor(scale, ls_loss_weight(&attr->loss, row->label), row->sum);
}

float ls_linear_loss_at_label(const struct ls_linear_loss_attr *attr, double scale,
                              const struct ls_linear_row *row)
{
    return ls_linear_at_label(scale, ls_loss_weight(&attr->loss, row->label), row->sum, row->power);
}

float ls_linear_loss_slope(const struct ls_linear_loss_attr *attr, double scale, double weights,
                           const struct ls_linear_row *row, int64_t v, float power)
{
    const double own = own_of(attr, row->label), share = share_of(attr);
    const double target = share * ls_loss_weight(&attr->loss, v) + (v == row->label ? own : 0);
    return ls_linear_smoothed(scale, own + share * weights, target, row->sum, power);
}
