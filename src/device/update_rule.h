/* The formulas of device/update.h, element by element, for host code and kernels alike.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_UPDATE_RULE_H
#define LS_DEVICE_UPDATE_RULE_H

#include <math.h>

#include "device/exact.h"
#include "device/update.h"

LS_HOST_DEVICE float ls_update_sign(float x)
{
    return x > 0 ? 1.0F : x < 0 ? -1.0F : 0.0F;
}

/* Rules of one pass: weight and histories after the gradient t. */
LS_HOST_DEVICE void ls_update_step(const struct ls_update_rule *rule, float t, float *w, float *h,
                                   float *k)
{
    const float mu = rule->momentum, b2 = rule->momentum2, r = rule->rate;
    const float before = *h;
    float g = t * rule->gradient_scale;
    if (rule->kind < LS_UPDATE_ADAMW && rule->decay != 0)
        g = g + rule->decay * (rule->l1 ? ls_update_sign(*w) : *w);
    switch (rule->kind) {
    case LS_UPDATE_SGD:
        *h = mu * *h + r * g;
        *w = *w - *h;
        break;
    case LS_UPDATE_NESTEROV:
        *h = mu * *h + r * g;
        *w = *w - ((1 + mu) * *h - mu * before);
        break;
    case LS_UPDATE_ADAGRAD:
        *h = *h + g * g;
        *w = *w - r * (g / (sqrtf(*h) + rule->delta));
        break;
    case LS_UPDATE_RMSPROP:
        *h = rule->rms_decay * *h + (1 - rule->rms_decay) * (g * g);
        *w = *w - r * (g / (sqrtf(*h) + rule->delta));
        break;
    case LS_UPDATE_ADADELTA:
        *h = mu * *h + (1 - mu) * (g * g);
        g = g * sqrtf((*k + rule->delta) / (*h + rule->delta));
        *k = mu * *k + (1 - mu) * (g * g);
        *w = *w - r * g;
        break;
    case LS_UPDATE_LION:
        *w = *w - (r * ls_update_sign(mu * *h + (1 - mu) * g) + r * rule->decay * *w);
        *h = b2 * *h + (1 - b2) * g;
        break;
    default: /* ADAM, ADAMW */
        *h = mu * *h + (1 - mu) * g;
        *k = b2 * *k + (1 - b2) * (g * g);
        g = r * rule->correction * (*h / (sqrtf(*k) + rule->delta));
        *w = *w - (rule->kind == LS_UPDATE_ADAM ? g : g + r * rule->decay * *w);
    }
}

/* The d of LAMB. */
LS_HOST_DEVICE float ls_update_lamb(const struct ls_update_rule *rule, float h, float k, float w)
{
    return rule->correction * (h / (sqrtf(k) + rule->delta)) + rule->decay * w;
}

/* A first pass: moves the histories of element i, and returns its direction. */
LS_HOST_DEVICE float ls_update_direction(const struct ls_update_rule *rule,
                                         const struct ls_update_slice *slice, size_t i)
{
    const float mu = rule->momentum, b2 = rule->momentum2;
    const float g = slice->gradient[i] * rule->gradient_scale;
    float *h = slice->history[0], *k = slice->history[1];
    if (rule->kind == LS_UPDATE_ADAFACTOR) {
        if (k == NULL)
            return g;
        k[i] = (1 - rule->fresh) * k[i] + rule->fresh * (g * g + rule->square_min);
        return k[i] != 0 ? g / sqrtf(k[i]) : 0;
    }
    h[i] = mu * h[i] + (1 - mu) * g;
    if (rule->kind == LS_UPDATE_MUON)
        return rule->nesterov ? mu * h[i] + (1 - mu) * g : h[i];
    k[i] = b2 * k[i] + (1 - b2) * (g * g);
    return ls_update_lamb(rule, h[i], k[i], slice->weight[i]);
}

/* A second pass: the new weight of element i. */
LS_HOST_DEVICE float ls_update_moved(const struct ls_update_rule *rule,
                                     const struct ls_update_slice *slice, size_t i)
{
    const float w = slice->weight[i], mu = rule->momentum;
    float *h = slice->history[0];
    if (rule->kind == LS_UPDATE_LAMB)
        return w - rule->rate * rule->trust * ls_update_lamb(rule, h[i], slice->history[1][i], w);
    if (rule->kind == LS_UPDATE_MUON)
        return w - (rule->rate * slice->gradient[i] + rule->rate * rule->decay * w);
    float d = rule->trust * slice->gradient[i];
    if (h != NULL)
        d = h[i] = mu * h[i] + (1 - mu) * d;
    return w - (d + rule->rate * rule->decay * w);
}

/* Whether a rule has two passes. */
LS_HOST_DEVICE bool ls_update_looks_first(enum ls_update_kind kind)
{
    return kind == LS_UPDATE_LAMB || kind == LS_UPDATE_MUON || kind == LS_UPDATE_ADAFACTOR;
}

/* Writes element i's moving average, and notes its new weight. */
LS_HOST_DEVICE void ls_update_note(const struct ls_update_rule *rule,
                                   const struct ls_update_slice *slice, size_t i,
                                   struct ls_update_seen *seen)
{
    const float w = slice->weight[i];
    float *average = slice->average;
    if (average != NULL)
        average[i] = average[i] + (1 - rule->average_decay) * (w - average[i]);
    seen->weight = ls_larger(seen->weight, ls_magnitude(w));
}

/* Does to element i what ls_device.update does to all, by a rule of one pass and with the gradient
 * t. */
LS_HOST_DEVICE void ls_update_element_by(const struct ls_update_rule *rule,
                                         const struct ls_update_slice *slice, size_t i, float t,
                                         struct ls_update_seen *seen)
{
    float none = 0; /* of rules with one history */
    seen->gradient = ls_larger(seen->gradient, ls_magnitude(t));
    ls_update_step(rule, t, &slice->weight[i], &slice->history[0][i],
                   slice->history[1] != NULL ? &slice->history[1][i] : &none);
    ls_update_note(rule, slice, i, seen);
}

/* Does to element i what ls_device.update does to all. */
LS_HOST_DEVICE void ls_update_element(const struct ls_update_rule *rule,
                                      const struct ls_update_slice *slice, size_t i,
                                      struct ls_update_seen *seen)
{
    if (!ls_update_looks_first(rule->kind)) {
        ls_update_element_by(rule, slice, i, slice->gradient[i], seen);
    } else if (slice->direction != NULL) {
        seen->gradient = ls_larger(seen->gradient, ls_magnitude(slice->gradient[i]));
        slice->direction[i] = ls_update_direction(rule, slice, i);
    } else {
        slice->weight[i] = ls_update_moved(rule, slice, i);
        ls_update_note(rule, slice, i, seen);
    }
}

#endif
