/* One loop a rule; formulas in ops/cpu/update.h.
 *
 * Each rule is written for one element and put into a loop for each form of decay. The rule's
 * numbers are copied to a local so that the compiler need not fear that a store to an array
 * changes them.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/update.h"

#include <math.h>
#include <string.h>

#include "ir/mask.h"
#include "ops/cpu/vector/lanes.h"

#define INLINE static inline __attribute__((always_inline))

/* Not just for speed: 0 * w would be NaN for an infinite weight. */
enum decay { NO_DECAY, DECAY_L1, DECAY_L2 };

static enum decay decay_of(const struct ls_update_rule *rule)
{
    if (ls_update_decouples(rule->kind) || rule->decay == 0)
        return NO_DECAY;
    return rule->l1 ? DECAY_L1 : DECAY_L2;
}

INLINE float sign_of(float x)
{
    float sign = x > 0 ? 1.0F : 0.0F;
    return x < 0 ? -1.0F : sign;
}

/* g */
INLINE float adjusted(const struct ls_update_rule *rule, enum decay decay, float t, float weight)
{
    float g = t * rule->gradient_scale;
    if (decay == DECAY_L2)
        return g + rule->decay * weight;
    if (decay == DECAY_L1)
        return g + rule->decay * sign_of(weight);
    return g;
}

/* ---- What a rule does to the weight and the histories of an element -------------------------- */

INLINE void sgd(const struct ls_update_rule *rule, float g, float *w, float *h, float *k)
{
    (void)k;
    *h = rule->momentum * *h + rule->rate * g;
    *w = *w - *h;
}

INLINE void nesterov(const struct ls_update_rule *rule, float g, float *w, float *h, float *k)
{
    (void)k;
    float next = rule->momentum * *h + rule->rate * g;
    *w = *w - ((1 + rule->momentum) * next - rule->momentum * *h);
    *h = next;
}

INLINE void adagrad(const struct ls_update_rule *rule, float g, float *w, float *h, float *k)
{
    (void)k;
    *h = *h + g * g;
    *w = *w - rule->rate * (g / (sqrtf(*h) + rule->delta));
}

INLINE void rmsprop(const struct ls_update_rule *rule, float g, float *w, float *h, float *k)
{
    (void)k;
    *h = rule->rms_decay * *h + (1 - rule->rms_decay) * (g * g);
    *w = *w - rule->rate * (g / (sqrtf(*h) + rule->delta));
}

INLINE void adadelta(const struct ls_update_rule *rule, float g, float *w, float *h, float *k)
{
    *h = rule->momentum * *h + (1 - rule->momentum) * (g * g);
    float u = g * sqrtf((*k + rule->delta) / (*h + rule->delta));
    *k = rule->momentum * *k + (1 - rule->momentum) * (u * u);
    *w = *w - rule->rate * u;
}

INLINE void adam_moments(const struct ls_update_rule *rule, float g, float *h, float *k)
{
    *h = rule->momentum * *h + (1 - rule->momentum) * g;
    *k = rule->momentum2 * *k + (1 - rule->momentum2) * (g * g);
}

/* The direction h / (sqrt(k) + delta) of ADAM and ADAMW, after their histories moved. */
INLINE float adam_direction(const struct ls_update_rule *rule, float g, float *h, float *k)
{
    adam_moments(rule, g, h, k);
    return *h / (sqrtf(*k) + rule->delta);
}

INLINE void adam(const struct ls_update_rule *rule, float g, float *w, float *h, float *k)
{
    float rate = rule->rate * rule->correction;
    *w = *w - rate * adam_direction(rule, g, h, k);
}

INLINE void adamw(const struct ls_update_rule *rule, float g, float *w, float *h, float *k)
{
    float rate = rule->rate * rule->correction, shrink = rule->rate * rule->decay;
    float step = rate * adam_direction(rule, g, h, k);
    *w = *w - (step + shrink * *w);
}

INLINE void lion(const struct ls_update_rule *rule, float g, float *w, float *h, float *k)
{
    (void)k;
    float shrink = rule->rate * rule->decay;
    float step = rule->rate * sign_of(rule->momentum * *h + (1 - rule->momentum) * g);
    *w = *w - (step + shrink * *w);
    *h = rule->momentum2 * *h + (1 - rule->momentum2) * g;
}

INLINE float lamb_direction(const struct ls_update_rule *rule, float h, float k, float w)
{
    return rule->correction * (h / (sqrtf(k) + rule->delta)) + rule->decay * w;
}

/* ---- Loops ----------------------------------------------------------------------------------- */

INLINE uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* The loop; the form of decay, the rule, and whether `k` is NULL are constants. */
INLINE void each(const struct ls_update_rule *shared, enum decay decay,
                 void (*one)(const struct ls_update_rule *rule, float g, float *w, float *h,
                             float *k),
                 const float *restrict t, float *restrict weight, float *restrict h,
                 float *restrict k, size_t n, struct ls_update_seen *seen)
{
    const struct ls_update_rule rule = *shared;
    const uint32_t magnitude = UINT32_C(0x7fffffff);
    uint32_t gradients = seen->gradient, weights = seen->weight;
    for (size_t i = 0; i < n; i++) {
        float g = adjusted(&rule, decay, t[i], weight[i]);
        gradients = larger(gradients, ls_float_bits(t[i]) & magnitude);
        one(&rule, g, &weight[i], &h[i], k != NULL ? &k[i] : NULL);
        weights = larger(weights, ls_float_bits(weight[i]) & magnitude);
    }
    seen->gradient = gradients;
    seen->weight = weights;
}

/* step_NAME: the loop of a rule that has one history, or two. */
#define STEP(name, second)                                                                         \
    static void step_##name(const struct ls_update_rule *rule, const float *restrict t,            \
                            float *restrict weight, float *restrict h, float *restrict k,          \
                            size_t n, struct ls_update_seen *seen)                                 \
    {                                                                                              \
        (void)k;                                                                                   \
        switch (decay_of(rule)) {                                                                  \
        case NO_DECAY:                                                                             \
            each(rule, NO_DECAY, name, t, weight, h, second, n, seen);                             \
            break;                                                                                 \
        case DECAY_L1:                                                                             \
            each(rule, DECAY_L1, name, t, weight, h, second, n, seen);                             \
            break;                                                                                 \
        case DECAY_L2:                                                                             \
            each(rule, DECAY_L2, name, t, weight, h, second, n, seen);                             \
            break;                                                                                 \
        }                                                                                          \
    }

STEP(sgd, NULL)
STEP(nesterov, NULL)
STEP(adagrad, NULL)
STEP(rmsprop, NULL)
STEP(adadelta, k)
STEP(adam, k)
STEP(adamw, k)
STEP(lion, NULL)

static void lamb_look(const struct ls_update_rule *shared, const float *restrict t,
                      const float *restrict weight, float *restrict h, float *restrict k,
                      float *restrict direction, size_t n, struct ls_update_seen *seen)
{
    const struct ls_update_rule rule = *shared;
    const uint32_t magnitude = UINT32_C(0x7fffffff);
    uint32_t gradients = seen->gradient;
    for (size_t i = 0; i < n; i++) {
        adam_moments(&rule, t[i] * rule.gradient_scale, &h[i], &k[i]);
        direction[i] = lamb_direction(&rule, h[i], k[i], weight[i]);
        gradients = larger(gradients, ls_float_bits(t[i]) & magnitude);
    }
    seen->gradient = gradients;
}

static void lamb_move(const struct ls_update_rule *shared, float *restrict weight,
                      const float *restrict h, const float *restrict k, size_t n,
                      struct ls_update_seen *seen)
{
    const struct ls_update_rule rule = *shared;
    const float rate = rule.rate * rule.trust;
    const uint32_t magnitude = UINT32_C(0x7fffffff);
    uint32_t weights = seen->weight;
    for (size_t i = 0; i < n; i++) {
        weight[i] = weight[i] - rate * lamb_direction(&rule, h[i], k[i], weight[i]);
        weights = larger(weights, ls_float_bits(weight[i]) & magnitude);
    }
    seen->weight = weights;
}

static void average(float decay, float *restrict mean, const float *restrict weight, size_t n)
{
    const float take = 1 - decay;
    for (size_t i = 0; i < n; i++)
        mean[i] = mean[i] + take * (weight[i] - mean[i]);
}

/* Without branches on bits, in whole registers. */
static void clear(const uint32_t *mask, float *restrict numbers, size_t words)
{
    uint32_t one[LS_MASK_WORD], bits[LS_MASK_WORD];
    for (uint32_t i = 0; i < LS_MASK_WORD; i++)
        one[i] = UINT32_C(1) << i;
    for (size_t w = 0; w < words; w++, numbers += LS_MASK_WORD) {
        if (mask[w] == 0)
            continue;
        memcpy(bits, numbers, sizeof bits);
        for (int i = 0; i < LS_MASK_WORD; i++)
            bits[i] = (mask[w] & one[i]) == 0 ? bits[i] : 0;
        memcpy(numbers, bits, sizeof bits);
    }
}

const struct ls_vector_update LS_ISA_NAME(ls_vector_update) = {
    .step =
        {
            [LS_UPDATE_SGD] = step_sgd,
            [LS_UPDATE_NESTEROV] = step_nesterov,
            [LS_UPDATE_ADAGRAD] = step_adagrad,
            [LS_UPDATE_RMSPROP] = step_rmsprop,
            [LS_UPDATE_ADADELTA] = step_adadelta,
            [LS_UPDATE_ADAM] = step_adam,
            [LS_UPDATE_ADAMW] = step_adamw,
            [LS_UPDATE_LION] = step_lion,
        },
    .lamb_look = lamb_look,
    .lamb_move = lamb_move,
    .average = average,
    .clear = clear,
};
