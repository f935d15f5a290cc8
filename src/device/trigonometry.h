/* Sine and cosine of doubles for kernels of a GPU, with the bits of SLEEF's for one double
 * (Sleef_cinz_sind1_u10purec and the like), as device/elementary.h: every operation rounds, none is
 * contracted. Arguments of 1e14 and more have no result here: a NaN.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_TRIGONOMETRY_H
#define LS_DEVICE_TRIGONOMETRY_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/host_device.h"

/* ---- Numbers of two doubles ------------------------------------------------------------------ */

/* The number high + low. */
struct ls_wide {
    double high, low;
};

LS_HOST_DEVICE struct ls_wide ls_wide_of(double high, double low)
{
    struct ls_wide wide;
    wide.high = high;
    wide.low = low;
    return wide;
}

/* The leading 26 bits of a double's digits: products of two such numbers are exact. */
LS_HOST_DEVICE double ls_wide_head(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= UINT64_C(0xfffffffff8000000);
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* x + y where x is the larger one. */
LS_HOST_DEVICE struct ls_wide ls_wide_add_less(double x, double y)
{
    const double sum = x + y;
    return ls_wide_of(sum, (x - sum) + y);
}

LS_HOST_DEVICE struct ls_wide ls_wide_plus_less(struct ls_wide x, double y)
{
    const double sum = x.high + y;
    return ls_wide_of(sum, ((x.high - sum) + y) + x.low);
}

LS_HOST_DEVICE struct ls_wide ls_wide_one_and(struct ls_wide y)
{
    const double sum = 1 + y.high;
    return ls_wide_of(sum, ((1 - sum) + y.high) + y.low);
}

/* x + y, whichever is larger. */
LS_HOST_DEVICE struct ls_wide ls_wide_of_sum(double x, double y)
{
    const double sum = x + y, part = sum - x;
    return ls_wide_of(sum, (x - (sum - part)) + (y - part));
}

LS_HOST_DEVICE struct ls_wide ls_wide_plus(struct ls_wide x, double y)
{
    const double sum = x.high + y, part = sum - x.high;
    return ls_wide_of(sum, ((x.high - (sum - part)) + (y - part)) + x.low);
}

LS_HOST_DEVICE struct ls_wide ls_wide_add(struct ls_wide x, struct ls_wide y)
{
    const double sum = x.high + y.high, part = sum - x.high;
    return ls_wide_of(sum, ((x.high - (sum - part)) + (y.high - part)) + (x.low + y.low));
}

/* What x y is beside its rounded product, of the halves of both, in this order. */
LS_HOST_DEVICE double ls_wide_rest(double x, double y, double product)
{
    const double xh = ls_wide_head(x), xl = x - xh, yh = ls_wide_head(y), yl = y - yh;
    return (((xh * yh + -product) + xl * yh) + xh * yl) + xl * yl;
}

LS_HOST_DEVICE struct ls_wide ls_wide_times(struct ls_wide x, struct ls_wide y)
{
    const double product = x.high * y.high;
    const double xh = ls_wide_head(x.high), xl = x.high - xh;
    const double yh = ls_wide_head(y.high), yl = y.high - yh;
    double rest = xh * yh + -product;
    rest = rest + xl * yh;
    rest = rest + xh * yl;
    rest = rest + xl * yl;
    rest = rest + x.high * y.low;
    rest = rest + x.low * y.high;
    return ls_wide_of(product, rest);
}

/* The sum of the halves' product where x has one double. */
LS_HOST_DEVICE struct ls_wide ls_wide_scaled(struct ls_wide x, double y)
{
    const double product = x.high * y;
    return ls_wide_of(product, ls_wide_rest(x.high, y, product) + x.low * y);
}

LS_HOST_DEVICE struct ls_wide ls_wide_squared(struct ls_wide x)
{
    const double square = x.high * x.high;
    const double xh = ls_wide_head(x.high), xl = x.high - xh;
    double rest = xh * xh + -square;
    rest = rest + (xh + xh) * xl;
    rest = rest + xl * xl;
    return ls_wide_of(square, rest + x.high * (x.low + x.low));
}

LS_HOST_DEVICE struct ls_wide ls_wide_product(double x, double y)
{
    const double product = x * y;
    return ls_wide_of(product, ls_wide_rest(x, y, product));
}

/* ---- Of an angle ----------------------------------------------------------------------------- */

/* The sine of a reduced angle. */
LS_HOST_DEVICE double ls_double_sine_of(struct ls_wide angle)
{
    const struct ls_wide square = ls_wide_squared(angle);
    const double s = square.high, s2 = s * s, s4 = s2 * s2;
    const double high = s * 2.72052416138529567917983e-15 + -7.6429259411395447190023e-13;
    const double middle = s * 1.60589370117277896211623e-10 + -2.5052106814843123359368e-08;
    const double low = s * 2.75573192104428224777379e-06 + -0.000198412698412046454654947;
    double u = s4 * high + (s2 * middle + low);
    u = u * s + 0.00833333333333318056201922;
    const struct ls_wide slope = ls_wide_one_and(
        ls_wide_times(ls_wide_add_less(-0.166666666666666657414808, u * s), square));
    const double ah = ls_wide_head(angle.high), al = angle.high - ah;
    const double sh = ls_wide_head(slope.high), sl = slope.high - sh;
    double sine = angle.low * sh + ah * slope.low; /* the smallest ones first */
    sine = sine + al * sl;
    sine = sine + ah * sl;
    sine = sine + al * sh;
    return sine + ah * sh;
}

#define LS_TURN_A 3.1415926218032836914
#define LS_TURN_B 3.1786509424591713469e-08
#define LS_TURN_C 1.2246467864107188502e-16
#define LS_TURN_D 1.2736634327021899816e-24

LS_HOST_DEVICE double ls_double_sin(double x)
{
    const double size = fabs(x), by_pi = 0.318309886183790671537767526745028724;
    struct ls_wide s;
    double half;
    if (x == 0)
        return x;
    if (!(size < 1e+14))
        return NAN;
    if (size < 15) {
        half = rint(x * by_pi);
        s = ls_wide_add_less(half * -3.141592653589793116 + x, half * -1.2246467991473532072e-16);
    } else {
        const double far = trunc(x * (by_pi / 16777216.0)) * 16777216.0;
        half = rint(x * by_pi - far);
        s = ls_wide_add_less(far * -LS_TURN_A + x, half * -LS_TURN_A);
        s = ls_wide_plus(s, far * -LS_TURN_B);
        s = ls_wide_plus(s, half * -LS_TURN_B);
        s = ls_wide_plus(s, far * -LS_TURN_C);
        s = ls_wide_plus(s, half * -LS_TURN_C);
        s = ls_wide_plus_less(s, (far + half) * -LS_TURN_D);
    }
    const double y = ls_double_sine_of(s);
    return ((int64_t)half & 1) != 0 ? -y : y;
}

LS_HOST_DEVICE double ls_double_cos(double x)
{
    const double size = fabs(x), by_pi = 0.318309886183790671537767526745028724;
    struct ls_wide s;
    double half;
    if (!(size < 1e+14))
        return NAN;
    if (size < 15) {
        half = 2 * rint(x * by_pi + -0.5) + 1;
        s = ls_wide_of_sum(x, half * (-3.141592653589793116 * 0.5));
        s = ls_wide_plus_less(s, half * (-1.2246467991473532072e-16 * 0.5));
    } else {
        double far = trunc(x * (by_pi / 8388608.0) + -by_pi / 16777216.0);
        half = rint(x * by_pi + (far * -8388608.0 + -0.5));
        far = far * 16777216.0;
        half = 2 * half + 1;
        s = ls_wide_of_sum(far * (-LS_TURN_A * 0.5) + x, half * (-LS_TURN_A * 0.5));
        s = ls_wide_plus(s, far * (-LS_TURN_B * 0.5));
        s = ls_wide_plus(s, half * (-LS_TURN_B * 0.5));
        s = ls_wide_plus(s, far * (-LS_TURN_C * 0.5));
        s = ls_wide_plus(s, half * (-LS_TURN_C * 0.5));
        s = ls_wide_plus_less(s, (far + half) * (-LS_TURN_D * 0.5));
    }
    const double y = ls_double_sine_of(s);
    return ((int64_t)half & 2) == 0 ? -y : y;
}

/* ---- Of half turns --------------------------------------------------------------------------- */

/* sin(pi t / 4) and cos(pi t / 4), |t| at most 1. */
LS_HOST_DEVICE double ls_double_eighth_sine(double t)
{
    const double s = t * t;
    const struct ls_wide square = ls_wide_product(t, t);
    double u = -2.02461120785182399295868e-14;
    u = u * s + 6.94821830580179461327784e-12;
    u = u * s + -1.75724749952853179952664e-09;
    u = u * s + 3.13361688966868392878422e-07;
    u = u * s + -3.6576204182161551920361e-05;
    u = u * s + 0.00249039457019271850274356;
    struct ls_wide x = ls_wide_add(ls_wide_of(u * s, 0), ls_wide_of(-0.0807455121882807852484731,
                                                                    3.61852475067037104849987e-18));
    x = ls_wide_add(ls_wide_times(square, x),
                    ls_wide_of(0.785398163397448278999491, 3.06287113727155002607105e-17));
    x = ls_wide_scaled(x, t);
    return x.high + x.low;
}

LS_HOST_DEVICE double ls_double_eighth_cosine(double t)
{
    const double s = t * t;
    const struct ls_wide square = ls_wide_product(t, t);
    double u = 9.94480387626843774090208e-16;
    u = u * s + -3.89796226062932799164047e-13;
    u = u * s + 1.15011582539996035266901e-10;
    u = u * s + -2.4611369501044697495359e-08;
    u = u * s + 3.59086044859052754005062e-06;
    u = u * s + -0.000325991886927389905997954;
    struct ls_wide x =
        ls_wide_add(ls_wide_of(u * s, 0),
                    ls_wide_of(0.0158543442438155018914259, -1.04693272280631521908845e-18));
    x = ls_wide_add(ls_wide_times(square, x),
                    ls_wide_of(-0.308425137534042437259529, -1.95698492133633550338345e-17));
    x = ls_wide_plus(ls_wide_times(x, square), 1);
    return x.high + x.low;
}

/* cosine: cos(pi x), else sin(pi x); x from 0 to 2. */
LS_HOST_DEVICE double ls_double_of_half_turns(double x, bool cosine)
{
    const double eighths = x * 4;
    int q = (int)eighths;
    q = (q + 1) & ~1;
    const double t = eighths - q;
    const double sine = ls_double_eighth_sine(t), other = ls_double_eighth_cosine(t);
    if (cosine) {
        const double y = (q & 2) == 0 ? other : sine;
        return ((q + 2) & 4) == 4 ? -y : y;
    }
    const double y = (q & 2) == 0 ? sine : other;
    return (q & 4) == 4 ? -y : y;
}

#endif
