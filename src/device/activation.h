/* Functions of one number in fp32, operation by operation (docs/numerics.md, section 18), for host
 * code and kernels alike. Each operation rounds; none is contracted.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_ACTIVATION_H
#define LS_DEVICE_ACTIVATION_H

#include <math.h>

#include "device/elementary.h"
#include "device/gelu.h"
#include "ir/activation.h"

/* 1 + exp(-factor x) */
LS_HOST_DEVICE float ls_activation_divisor(float factor, float x)
{
    return 1.0F + ls_float_exp(-(factor * x));
}

/* Exponents 0, 1 and 2 are exact. */
LS_HOST_DEVICE float ls_activation_power(float base, float exponent)
{
    if (exponent == 0)
        return 1;
    if (exponent == 1 || exponent == 2)
        return exponent == 1 ? base : base * base;
    return ls_float_pow(base, exponent);
}

LS_HOST_DEVICE float ls_relu_of(float x, float slope)
{
    return !(x < 0) ? x : slope == 0 ? 0 : slope * x;
}

/* The gradient, where y is what a ReLU gave. */
LS_HOST_DEVICE float ls_through_relu(float dy, float y, float slope)
{
    return y > 0 ? dy : slope == 0 ? 0 : slope * dy;
}

/* f(x) */
LS_HOST_DEVICE float ls_activation_number(const struct ls_activation_attr *attr, float x)
{
    const float below = x > 0 ? 0 : x, high = attr->high, low = attr->low;
    switch (attr->function) {
    case LS_RELU:
        return ls_relu_of(x, attr->slope);
    case LS_SIGMOID:
        return 1.0F / ls_activation_divisor(1, x);
    case LS_TANH:
        return ls_float_tanh(x);
    case LS_ELU:
        return x > 0 ? x : attr->slope * ls_float_expm1(below);
    case LS_SWISH:
        return x / ls_activation_divisor(attr->slope, x);
    case LS_GELU: {
        const float t = ls_gelu_distance(x);
        return ls_gelu(x, t, ls_float_exp(ls_gelu_exponent(t)));
    }
    case LS_GELU_TANH:
        return x / (1.0F + ls_float_exp(-ls_gelu_tanh_inner(x)));
    case LS_ABSOLUTE: /* a GPU's instruction for it flushes denormal numbers */
        return ls_float_of_bits(ls_float_bits(x) & INT32_MAX);
    case LS_EXP:
        return attr->factor * ls_float_exp(attr->scale * x);
    case LS_LOG:
        return attr->factor * ls_float_log(attr->scale * x + attr->shift);
    case LS_POWER:
        return ls_activation_power(
            attr->scale == 0 || attr->power == 0 ? attr->shift : attr->scale * x + attr->shift,
            attr->power);
    case LS_BNLL: {
        const float small = ls_float_log1p(ls_float_exp(-fabsf(x)));
        return x > 0 ? x + small : small;
    }
    case LS_CLIP:
        return (x > high ? high : x) < low ? low : (x > high ? high : x);
    default: /* LS_THRESHOLD */
        return x > low ? 1 : x <= low ? 0 : x;
    }
}

/* dx = dy f'(x), given x or y (ls_activation_keeps_x). */
LS_HOST_DEVICE float ls_activation_slope(const struct ls_activation_attr *attr, float dy,
                                         float given)
{
    const float one = 1;
    switch (attr->function) {
    case LS_RELU:
        return ls_through_relu(dy, given, attr->slope);
    case LS_SIGMOID:
        return dy * (given * (one - given));
    case LS_TANH:
        return dy * (one - given * given);
    case LS_ELU:
        if (attr->slope < 0)
            return given > 0 ? dy : dy * (attr->slope * ls_float_exp(given));
        return given > 0 ? dy : dy * (given + attr->slope);
    case LS_SWISH: {
        const float s = one / ls_activation_divisor(attr->slope, given),
                    along = attr->slope * given * s;
        return dy * (s + along * (one - s));
    }
    case LS_GELU: {
        const float t = ls_gelu_distance(given);
        return dy * ls_gelu_slope(given, t, ls_float_exp(ls_gelu_exponent(t)));
    }
    case LS_GELU_TANH: {
        const float bounded = ls_gelu_tanh_bound(given);
        return dy * ls_gelu_tanh_slope(bounded, ls_float_exp(-ls_gelu_tanh_inner(bounded)));
    }
    case LS_ABSOLUTE:
        return given > 0 ? dy : given < 0 ? -dy : 0;
    case LS_EXP:
        return dy * (attr->scale * given);
    case LS_LOG:
        return dy * (attr->factor * attr->scale / (attr->scale * given + attr->shift));
    case LS_POWER:
        if (attr->power * attr->scale == 0)
            return 0;
        return dy * (attr->power * attr->scale *
                     ls_activation_power(attr->scale * given + attr->shift, attr->power - 1));
    case LS_BNLL:
        return dy / ls_activation_divisor(1, given);
    default: /* LS_CLIP */
        return given >= attr->low && given <= attr->high ? dy : 0;
    }
}

#endif
