/* One loop a rule; formulas in ops/cpu/update.h.
 *
 * Numbers of the rule are copied to locals so that the compiler need not fear that a store to an
 * array changes them.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/update.h"

#include <math.h>

#include "ops/cpu/vector/lanes.h"

static void adjust(const struct ls_update_rule *rule, float *restrict gradient,
                   const float *restrict weight, size_t n)
{
    const float scale = rule->gradient_scale;
    const float decay = rule->kind == LS_UPDATE_ADAMW ? 0 : rule->decay;
    if (decay == 0) {
        /* Not just an optimization: 0 * w would be NaN for an infinite weight. */
        for (size_t i = 0; i < n; i++)
            gradient[i] = gradient[i] * scale;
    } else if (rule->l1) {
        for (size_t i = 0; i < n; i++) {
            float sign = weight[i] > 0 ? 1.0F : 0.0F;
            sign = weight[i] < 0 ? -1.0F : sign;
            gradient[i] = gradient[i] * scale + decay * sign;
        }
    } else {
        for (size_t i = 0; i < n; i++)
            gradient[i] = gradient[i] * scale + decay * weight[i];
    }
}

static void step_sgd(const struct ls_update_rule *rule, const float *restrict gradient,
                     float *restrict weight, float *restrict h, float *restrict k, size_t n)
{
    (void)k;
    const float rate = rule->rate, momentum = rule->momentum;
    for (size_t i = 0; i < n; i++) {
        h[i] = momentum * h[i] + rate * gradient[i];
        weight[i] = weight[i] - h[i];
    }
}

static void step_nesterov(const struct ls_update_rule *rule, const float *restrict gradient,
                          float *restrict weight, float *restrict h, float *restrict k, size_t n)
{
    (void)k;
    const float rate = rule->rate, momentum = rule->momentum, more = 1 + rule->momentum;
    for (size_t i = 0; i < n; i++) {
        float next = momentum * h[i] + rate * gradient[i];
        weight[i] = weight[i] - (more * next - momentum * h[i]);
        h[i] = next;
    }
}

static void step_adagrad(const struct ls_update_rule *rule, const float *restrict gradient,
                         float *restrict weight, float *restrict h, float *restrict k, size_t n)
{
    (void)k;
    const float rate = rule->rate, delta = rule->delta;
    for (size_t i = 0; i < n; i++) {
        float g = gradient[i];
        h[i] = h[i] + g * g;
        weight[i] = weight[i] - rate * (g / (sqrtf(h[i]) + delta));
    }
}

static void step_rmsprop(const struct ls_update_rule *rule, const float *restrict gradient,
                         float *restrict weight, float *restrict h, float *restrict k, size_t n)
{
    (void)k;
    const float rate = rule->rate, delta = rule->delta;
    const float keep = rule->rms_decay, take = 1 - rule->rms_decay;
    for (size_t i = 0; i < n; i++) {
        float g = gradient[i];
        h[i] = keep * h[i] + take * (g * g);
        weight[i] = weight[i] - rate * (g / (sqrtf(h[i]) + delta));
    }
}

static void step_adadelta(const struct ls_update_rule *rule, const float *restrict gradient,
                          float *restrict weight, float *restrict h, float *restrict k, size_t n)
{
    const float rate = rule->rate, delta = rule->delta;
    const float keep = rule->momentum, take = 1 - rule->momentum;
    for (size_t i = 0; i < n; i++) {
        float g = gradient[i];
        h[i] = keep * h[i] + take * (g * g);
        float u = g * sqrtf((k[i] + delta) / (h[i] + delta));
        k[i] = keep * k[i] + take * (u * u);
        weight[i] = weight[i] - rate * u;
    }
}

/* The direction h / (sqrt(k) + delta) of ADAM and ADAMW, after their histories moved. */
static inline float adam_direction(const struct ls_update_rule *rule, float g, float *h, float *k)
{
    *h = rule->momentum * *h + (1 - rule->momentum) * g;
    *k = rule->momentum2 * *k + (1 - rule->momentum2) * (g * g);
    return *h / (sqrtf(*k) + rule->delta);
}

static void step_adam(const struct ls_update_rule *shared, const float *restrict gradient,
                      float *restrict weight, float *restrict h, float *restrict k, size_t n)
{
    const struct ls_update_rule rule = *shared;
    const float rate = rule.rate * rule.correction;
    for (size_t i = 0; i < n; i++)
        weight[i] = weight[i] - rate * adam_direction(&rule, gradient[i], &h[i], &k[i]);
}

static void step_adamw(const struct ls_update_rule *shared, const float *restrict gradient,
                       float *restrict weight, float *restrict h, float *restrict k, size_t n)
{
    const struct ls_update_rule rule = *shared;
    const float rate = rule.rate * rule.correction, shrink = rule.rate * rule.decay;
    for (size_t i = 0; i < n; i++) {
        float step = rate * adam_direction(&rule, gradient[i], &h[i], &k[i]);
        weight[i] = weight[i] - (step + shrink * weight[i]);
    }
}

static void average(float decay, float *restrict mean, const float *restrict weight, size_t n)
{
    const float take = 1 - decay;
    for (size_t i = 0; i < n; i++)
        mean[i] = mean[i] + take * (weight[i] - mean[i]);
}

const struct ls_vector_update LS_ISA_NAME(ls_vector_update) = {
    .adjust = adjust,
    .step =
        {
            [LS_UPDATE_SGD] = step_sgd,
            [LS_UPDATE_NESTEROV] = step_nesterov,
            [LS_UPDATE_ADAGRAD] = step_adagrad,
            [LS_UPDATE_RMSPROP] = step_rmsprop,
            [LS_UPDATE_ADADELTA] = step_adadelta,
            [LS_UPDATE_ADAM] = step_adam,
            [LS_UPDATE_ADAMW] = step_adamw,
        },
    .average = average,
};
