/* References of functions of one number. See support/reference_function.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "support/reference_function.h"

#include <math.h>

double reference_function(const struct ls_activation_attr *attr, double x)
{
    double inner = (double)attr->scale * x + (double)attr->shift;
    switch (attr->function) {
    case LS_ELU:
        return x > 0 ? x : (double)attr->slope * expm1(x);
    case LS_SWISH:
        return x / (1 + exp(-(double)attr->slope * x));
    case LS_ABSOLUTE:
        return fabs(x);
    case LS_EXP:
        return (double)attr->factor * exp((double)attr->scale * x);
    case LS_LOG:
        return (double)attr->factor * log(inner);
    case LS_POWER:
        return pow(inner, (double)attr->power);
    case LS_BNLL:
        return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
    case LS_CLIP:
        return fmin(fmax(x, (double)attr->low), (double)attr->high);
    case LS_THRESHOLD:
        return x > (double)attr->low;
    default:
        return NAN;
    }
}

static double swish_slope(double beta, double x)
{
    double e = exp(-beta * x);
    return 1 / (1 + e) + x * beta * e / ((1 + e) * (1 + e));
}

double reference_function_slope(const struct ls_activation_attr *attr, double x)
{
    double inner = (double)attr->scale * x + (double)attr->shift;
    double power = (double)attr->power, scale = (double)attr->scale;
    switch (attr->function) {
    case LS_ELU:
        return x > 0 ? 1 : (double)attr->slope * exp(x);
    case LS_SWISH:
        return swish_slope((double)attr->slope, x);
    case LS_ABSOLUTE:
        return (x > 0) - (x < 0);
    case LS_EXP:
        return scale * reference_function(attr, x);
    case LS_LOG:
        return (double)attr->factor * scale / inner;
    case LS_POWER:
        return power * scale == 0 ? 0 : power * scale * pow(inner, power - 1);
    case LS_BNLL:
        return 1 / (1 + exp(-x));
    case LS_CLIP:
        return x >= (double)attr->low && x <= (double)attr->high;
    default:
        return 0;
    }
}
