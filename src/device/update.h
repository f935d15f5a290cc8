/* The update of weights: one pass over memory from the gradient to the new weight.
 *
 * All arithmetic is fp32, each operation rounded by itself, in the order written here; r is the
 * rate, g the gradient, w the weight, h and k the two histories, mu momentum, b2 momentum2:
 *
 *     g = t * scale       t: the gradient that is given; scale < 1 where the norm was clipped
 *     L2: g = g + decay * w      L1: g = g + decay * sign(w)      from ADAMW on: neither
 *
 *     SGD       h = mu * h + r * g
 *               w = w - h
 *     NESTEROV  h' = mu * h + r * g
 *               w = w - ((1 + mu) * h' - mu * h);  h = h'
 *     ADAGRAD   h = h + g * g
 *               w = w - r * (g / (sqrt(h) + delta))
 *     RMSPROP   h = rho * h + (1 - rho) * (g * g)
 *               w = w - r * (g / (sqrt(h) + delta))
 *     ADADELTA  h = mu * h + (1 - mu) * (g * g)
 *               u = g * sqrt((k + delta) / (h + delta))
 *               k = mu * k + (1 - mu) * (u * u);  w = w - r * u
 *     ADAM      h = mu * h + (1 - mu) * g
 *               k = b2 * k + (1 - b2) * (g * g)
 *               w = w - (r * correction) * (h / (sqrt(k) + delta))
 *     ADAMW     as ADAM, but
 *               w = w - ((r * correction) * (h / (sqrt(k) + delta)) + (r * decay) * w)
 *     LION      w = w - (r * sign(mu * h + (1 - mu) * g) + (r * decay) * w)      (h: before)
 *               h = b2 * h + (1 - b2) * g
 *     LAMB      h and k as ADAM
 *               d = correction * (h / (sqrt(k) + delta)) + decay * w
 *               w = w - (r * trust) * d
 *     MUON      h = mu * h + (1 - mu) * g
 *               u = mu * h + (1 - mu) * g      (without nesterov: u = h)
 *               w = w - (r * d + (r * decay) * w)
 *
 *     ADAFACTOR k = (1 - fresh) * k + fresh * (g * g + square_min)
 *               u = g / sqrt(k), 0 where k is 0   (parameters of two axes or more: u = g)
 *               d = trust * u'                    (with mu > 0: h = mu * h + (1 - mu) * d, d = h)
 *               w = w - (d + (r * decay) * w)
 *
 *     average = average + (1 - average_decay) * (w - average)
 *
 * These are Caffe's rules (SGD ... Adam), Loshchilov and Hutter's decoupled decay (ADAMW), Lion
 * (Chen and others, 2023) and LAMB (You and others, 2019). The same bits on every instruction set,
 * and for every way to cut a parameter into slices.
 *
 * LAMB has two passes, since its trust ratio, |w| / |d| of the whole parameter or 1 where one of
 * them is 0, is known only when d is: the first moves h and k and writes d, the second computes d
 * again and moves w.
 *
 * MUON (Jordan, 2024) has two passes, too: the first moves h and writes u, the second moves w by d,
 * which engine/muon.h makes of the whole u. So has ADAFACTOR (Shazeer and Stern, 2018): the first
 * moves k and writes u, the second moves w by u', which engine/adafactor.h makes of it.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_UPDATE_H
#define LS_DEVICE_UPDATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ls_update_kind {
    LS_UPDATE_SGD,
    LS_UPDATE_NESTEROV,
    LS_UPDATE_ADAGRAD,
    LS_UPDATE_RMSPROP,
    LS_UPDATE_ADADELTA,
    LS_UPDATE_ADAM,
    LS_UPDATE_ADAMW,
    LS_UPDATE_LION,
    LS_UPDATE_LAMB,
    LS_UPDATE_MUON,
    LS_UPDATE_ADAFACTOR,
    LS_UPDATE_KINDS
};

/* Everything about an update that is the same for all elements of a parameter. */
struct ls_update_rule {
    enum ls_update_kind kind;
    float rate;            /* learning rate times lr_mult */
    float momentum;        /* ADAM, LION: the first decay rate */
    float momentum2;       /* ADAM, ADAMW, LION, LAMB: the second decay rate */
    bool nesterov;         /* MUON */
    int iterations;        /* MUON: of Newton and Schulz */
    bool match_rms;        /* MUON: the scale of its steps */
    float fresh;           /* ADAFACTOR: what the newest square counts */
    float square_min;      /* ADAFACTOR: added to squares */
    float rate_most;       /* ADAFACTOR: its rate is no more */
    float clip, scale_min; /* ADAFACTOR: see engine/adafactor.h */
    bool scale_parameter;  /* ADAFACTOR: by the size of the weights */
    float delta;           /* added to roots, or under them */
    float rms_decay;       /* RMSPROP */
    float correction;      /* ADAM, ADAMW, LAMB: ls_adam_correction of the update's number */
    float trust;           /* LAMB's second pass: the ratio of norms */
    float decay;           /* weight decay times decay_mult */
    bool l1;               /* decay by the sign of the weight */
    float gradient_scale;  /* 1: not clipped */
    float average_decay;   /* of the moving average, where a slice has one */
};

/* A slice of a parameter. Arrays have `n` elements and do not overlap. */
struct ls_update_slice {
    size_t n;
    const float *gradient; /* not read by LAMB's second pass; d or u' in those of others */
    float *weight;
    float *history[2]; /* as many as ls_update_histories says; else NULL */
    float *direction; /* LAMB's first pass writes d here, MUON's and ADAFACTOR's u; NULL: the second
                         pass */
    float *average;   /* moving average of the weights, or NULL */
};

/* What an update saw: magnitudes as in device/exact.h. Merge two by their maxima. */
struct ls_update_seen {
    uint32_t gradient; /* largest |t|; of a second pass: 0 */
    uint32_t weight;   /* largest |new weight|; of a first pass: 0 */
};

/* How many history arrays a rule needs (0 to 2); they begin as zeros. */
int ls_update_histories(enum ls_update_kind kind);
/* Whether weights decay by themselves, and not through their gradient. */
bool ls_update_decouples(enum ls_update_kind kind);

/* sqrt(1 - b2^t) / (1 - b1^t) for update number t >= 1, in double, rounded once. */
float ls_adam_correction(float momentum, float momentum2, int64_t t);
/* delta * sqrt(1 - b2^t), in the same way: added to the root before the correction, it is what
 * delta is when it is added behind it, as PyTorch's Adam and LAMB have it. */
float ls_adam_delta(float delta, float momentum2, int64_t t);

#endif
