/* Functions of one number, and what they need: the attributes of LS_OP_ACTIVATION. In a header by
 * itself for the loops in ops/cpu/vector/.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_IR_ACTIVATION_H
#define LS_IR_ACTIVATION_H

#include <stdbool.h>

enum ls_activation {
    LS_RELU,      /* y = max(x, 0) + slope min(x, 0); backward: y, with slope < 0 x */
    LS_SIGMOID,   /* y = 1 / (1 + exp(-x)); backward: y */
    LS_TANH,      /* backward: y */
    LS_ELU,       /* y = x > 0 ? x : slope (exp(x) - 1); backward: y, with slope < 0 x */
    LS_SWISH,     /* y = x / (1 + exp(-slope x)); backward: x */
    LS_ABSOLUTE,  /* y = |x|, with slope 0 at 0; backward: x */
    LS_EXP,       /* y = factor exp(scale x); backward: y */
    LS_LOG,       /* y = factor log(scale x + shift); backward: x */
    LS_POWER,     /* y = (scale x + shift)^power; power or scale 0: a constant; backward: x */
    LS_BNLL,      /* y = log(1 + exp(x)); backward: x */
    LS_CLIP,      /* y = min(max(x, low), high), with slope 1 at both bounds; backward: x */
    LS_THRESHOLD, /* y = x > low ? 1 : 0; no backward */
    LS_GELU,      /* y = x P(x), P that of a normal number below x; backward: x */
    LS_GELU_TANH, /* the same with tanh for P, see device/gelu.h; backward: x */
    LS_ACTIVATIONS
};

/* One function of one number. A NaN stays a NaN. */
struct ls_activation_attr {
    enum ls_activation function;
    float slope;
    float scale, shift, factor, power;
    float low, high;
};

/* Whether the backward pass is computed from x; else from y. */
static inline bool ls_activation_keeps_x(const struct ls_activation_attr *attr)
{
    switch (attr->function) {
    case LS_RELU:
    case LS_ELU:
        return attr->slope < 0;
    case LS_SIGMOID:
    case LS_TANH:
    case LS_EXP:
        return false;
    default:
        return true;
    }
}

#endif
