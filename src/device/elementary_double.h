/* Elementary functions of doubles for kernels of a GPU, as device/elementary.h has those of floats:
 * with the bits of SLEEF's deterministic functions (Sleef_cinz_expd1_u10purec, logd1, log1pd1),
 * which ops with one definition have (docs/numerics.md, section 20). What is below DBL_MIN is 0.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_ELEMENTARY_DOUBLE_H
#define LS_DEVICE_ELEMENTARY_DOUBLE_H

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/host_device.h"

LS_HOST_DEVICE int64_t ls_double_bits(double x)
{
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

LS_HOST_DEVICE double ls_double_of_bits(int64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* 2^n for n from -1022 to 1023. */
LS_HOST_DEVICE double ls_double_power_of_two(int n)
{
    return ls_double_of_bits((int64_t)(n + 1023) * (INT64_C(1) << 52));
}

/* A result of operations that may lie below DBL_MIN, where the host's are 0: it is then, too. */
LS_HOST_DEVICE double ls_double_flush(double x)
{
#ifdef __CUDA_ARCH__
    return fabs(x) < DBL_MIN ? copysign(0.0, x) : x;
#else
    return x;
#endif
}

/* ---- Exponentials ---------------------------------------------------------------------------- */

/* x rounded to an integer, the even one of two that are as near. */
LS_HOST_DEVICE int ls_double_whole(double x)
{
    const double beyond = x + (x > 0 ? 0.5 : -0.5);
    const int64_t odd = (int)beyond & 1; /* then a tie goes back */
    return (int)ls_double_of_bits(ls_double_bits(beyond) - odd);
}

/* (exp s - 1 - s - s^2 / 2) / s^3, pairs of coefficients first. */
LS_HOST_DEVICE double ls_double_exp_rest(double s)
{
    const double s2 = s * s, s4 = s2 * s2, s8 = s4 * s4;
    const double c01 = s * 0.0416666666666665047591422 + 0.166666666666666851703837;
    const double c23 = s * 0.00138888888889774492207962 + 0.00833333333331652721664984;
    const double c45 = s * 2.4801587159235472998791e-05 + 0.000198412698960509205564975;
    const double c67 = s * 2.75573911234900471893338e-07 + 2.75572362911928827629423e-06;
    const double c89 = s * 2.08860621107283687536341e-09 + 2.51112930892876518610661e-08;
    return s8 * c89 + (s4 * (s2 * c67 + c45) + (s2 * c23 + c01));
}

LS_HOST_DEVICE double ls_double_exp(double x)
{
    if (x != x)
        return x;
    if (x < -708.39641853226408) /* the logarithm of DBL_MIN */
        return 0.0;
    if (x > 709.78271114955742909217217426)
        return INFINITY;
    const int twos = ls_double_whole(x * 1.442695040888963407359924681001892137426645954152985934);
    double s = (double)twos * -0.69314718055966295651160180568695068359375 + x;
    s = (double)twos * -0.28235290563031577122588448175013436025525412068e-12 + s;
    const double rest = (ls_double_exp_rest(s) * s + 0.5) * (s * s);
    const int half = twos >> 1;
    return (rest + s + 1.0) * ls_double_power_of_two(half) * ls_double_power_of_two(twos - half);
}

/* ---- Logarithms ------------------------------------------------------------------------------ */

/* The number high + low. */
struct ls_double_pair {
    double high, low;
};

/* The leading 26 bits of a double's digits: products of two such numbers are exact. */
LS_HOST_DEVICE double ls_double_head(double x)
{
    return ls_double_of_bits(ls_double_bits(x) & ~INT64_C(0x7ffffff));
}

LS_HOST_DEVICE struct ls_double_pair ls_double_sum(double x, double y)
{
    const double sum = x + y, part = sum - x;
    struct ls_double_pair pair;
    pair.high = sum;
    pair.low = (x - (sum - part)) + (y - part);
    return pair;
}

LS_HOST_DEVICE struct ls_double_pair ls_double_ratio(struct ls_double_pair n,
                                                     struct ls_double_pair d)
{
    const double inverse = 1.0 / d.high, quotient = n.high * inverse;
    const double dh = ls_double_head(d.high), dl = d.high - dh;
    const double ih = ls_double_head(inverse), il = inverse - ih;
    const double nh = ls_double_head(n.high), nl = n.high - nh;
    const double correction = 1.0 - dh * ih - dh * il - dl * ih - dl * il;
    double rest = nh * ih - quotient;
    rest = rest + nh * il + nl * ih + nl * il + quotient * correction;
    struct ls_double_pair pair;
    pair.high = quotient;
    pair.low = inverse * (n.low - quotient * d.low) + rest;
    return pair;
}

/* n ln 2 */
LS_HOST_DEVICE struct ls_double_pair ls_double_twos(int n)
{
    const double high = 0.693147180559945286226764, low = 2.319046813846299558417771e-17;
    const double head = ls_double_head(high), tail = high - head, times = (double)n;
    struct ls_double_pair pair;
    pair.high = high * times;
    pair.low = head * times - pair.high + tail * times + low * times;
    return pair;
}

/* The sum behind 2 x of 2 artanh x, over x^3, for x2 = x^2; pairs of coefficients first. */
LS_HOST_DEVICE double ls_double_log_rest(double x2)
{
    const double x4 = x2 * x2, x8 = x4 * x4;
    const double c01 = x2 * 0.3999999999635251990e+0 + 0.6666666666667333541e+0;
    const double c23 = x2 * 0.2222214519839380009e+0 + 0.2857142932794299317e+0;
    const double c45 = x2 * 0.1525629051003428716e+0 + 0.1818605932937785996e+0;
    return x8 * (x4 * 0.1532076988502701353e+0 + c45) + (x4 * c23 + c01);
}

/* n ln 2 + 2 artanh ratio */
LS_HOST_DEVICE double ls_double_log_sum(int n, struct ls_double_pair ratio)
{
    const struct ls_double_pair twos = ls_double_twos(n);
    const double x2 = ratio.high * ratio.high;
    const double high = twos.high + ratio.high * 2.0;
    const double low = (((twos.high - high) + ratio.high * 2.0) + twos.low) + ratio.low * 2.0;
    const double last = x2 * ratio.high * ls_double_log_rest(x2);
    const double sum = high + last;
    return sum + (((high - sum) + last) + low);
}

/* The exponent of 4/3 x, by which x is divided to lie between 3/4 and 3/2. */
LS_HOST_DEVICE int ls_double_exponent(double x)
{
    return (int)((uint64_t)ls_double_bits(x * (1.0 / 0.75)) >> 52 & 0x7ff) - 1023;
}

LS_HOST_DEVICE double ls_double_log(double x)
{
    if (x != x || x < 0)
        return NAN;
    if (x == 0)
        return -INFINITY;
    if (x > DBL_MAX)
        return x;
    const bool small = x < DBL_MIN;
    const double scaled = small ? x * 0x1p64 : x;
    const int exponent = ls_double_exponent(scaled);
    const double m =
        ls_double_of_bits(ls_double_bits(scaled) - (int64_t)exponent * (INT64_C(1) << 52));
    return ls_double_log_sum(small ? exponent - 64 : exponent,
                             ls_double_ratio(ls_double_sum(-1.0, m), ls_double_sum(1.0, m)));
}

/* log(1 + x) */
LS_HOST_DEVICE double ls_double_log1p(double x)
{
    if (x != x || x < -1)
        return NAN;
    if (x == -1)
        return -INFINITY;
    if (x > 1e+307)
        return INFINITY;
    if (ls_double_bits(x) == INT64_MIN) /* -0 stays what it is */
        return x;
    const int exponent = ls_double_exponent(x + 1);
    const double power = ls_double_power_of_two(-exponent), m = x * power + (power - 1);
    struct ls_double_pair n, d;
    n.high = m;
    n.low = 0;
    d.high = 2 + m;
    d.low = 2 - d.high + m;
    return ls_double_log_sum(exponent, ls_double_ratio(n, d));
}

#endif
