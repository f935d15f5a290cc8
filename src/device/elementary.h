/* Elementary functions of floats for kernels of a GPU, with the bits of those that devices in the
 * host's memory take from SLEEF (docs/numerics.md, section 18): every operation rounds, none is
 * contracted, and results below FLT_MIN are flushed.
 *
 * The method is that of all such functions: an argument is reduced to a power of two and a rest
 * near 0 or 1, whose function is a polynomial; where one float is too coarse for 1 ulp, sums and
 * products are carried in pairs of floats, whose second number is what the first one leaves out.
 * The coefficients are those of SLEEF 3.5 (Sleef_cinz_expf1_u10purec and the like).
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_ELEMENTARY_H
#define LS_DEVICE_ELEMENTARY_H

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/host_device.h"

LS_HOST_DEVICE int32_t ls_float_bits(float x)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

LS_HOST_DEVICE float ls_float_of_bits(int32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* 2^n for n from -126 to 127. */
LS_HOST_DEVICE float ls_float_power_of_two(int n)
{
    return ls_float_of_bits((n + 127) * (1 << 23));
}

/* x 2^n in two steps, so that neither factor is out of range. */
LS_HOST_DEVICE float ls_float_scale(float x, int n)
{
    const int half = n >> 1;
    return x * ls_float_power_of_two(half) * ls_float_power_of_two(n - half);
}

/* ---- Pairs of floats ------------------------------------------------------------------------- */

/* The number high + low. */
struct ls_float_pair {
    float high, low;
};

LS_HOST_DEVICE struct ls_float_pair ls_pair(float high, float low)
{
    struct ls_float_pair pair;
    pair.high = high;
    pair.low = low;
    return pair;
}

/* The leading 12 bits of a float's digits: products of two such numbers are exact. */
LS_HOST_DEVICE float ls_pair_head(float x)
{
    return ls_float_of_bits(ls_float_bits(x) & (int32_t)0xfffff000);
}

/* x + y where x is the larger one. */
LS_HOST_DEVICE struct ls_float_pair ls_pair_add_less(struct ls_float_pair x, struct ls_float_pair y)
{
    const float sum = x.high + y.high;
    return ls_pair(sum, (((x.high - sum) + y.high) + x.low) + y.low);
}

LS_HOST_DEVICE struct ls_float_pair ls_pair_add_less_float(struct ls_float_pair x, float y)
{
    const float sum = x.high + y;
    return ls_pair(sum, ((x.high - sum) + y) + x.low);
}

/* 1 + y, y below 1 */
LS_HOST_DEVICE struct ls_float_pair ls_pair_one_and(struct ls_float_pair y)
{
    const float sum = 1.0F + y.high;
    return ls_pair(sum, ((1.0F - sum) + y.high) + y.low);
}

/* x + y, whichever is larger. */
LS_HOST_DEVICE struct ls_float_pair ls_pair_add(struct ls_float_pair x, struct ls_float_pair y)
{
    const float sum = x.high + y.high, part = sum - x.high;
    const float rest = (x.high - (sum - part)) + (y.high - part);
    return ls_pair(sum, rest + (x.low + y.low));
}

LS_HOST_DEVICE struct ls_float_pair ls_pair_add_float(struct ls_float_pair x, float y)
{
    const float sum = x.high + y, part = sum - x.high;
    const float rest = (x.high - (sum - part)) + (y - part);
    return ls_pair(sum, rest + x.low);
}

LS_HOST_DEVICE struct ls_float_pair ls_pair_of_sum(float x, float y)
{
    const float sum = x + y, part = sum - x;
    return ls_pair(sum, (x - (sum - part)) + (y - part));
}

/* `start` plus the four products of the halves of x and y. */
LS_HOST_DEVICE float ls_pair_add_halves(float start, float x, float y)
{
    const float xh = ls_pair_head(x), xl = x - xh, yh = ls_pair_head(y), yl = y - yh;
    return xl * yl + (xh * yl + (xl * yh + (xh * yh + start)));
}

LS_HOST_DEVICE struct ls_float_pair ls_pair_times_float(struct ls_float_pair x, float y)
{
    const float product = x.high * y;
    return ls_pair(product, x.low * y + ls_pair_add_halves(-product, x.high, y));
}

LS_HOST_DEVICE struct ls_float_pair ls_pair_times(struct ls_float_pair x, struct ls_float_pair y)
{
    const float product = x.high * y.high;
    const float rest = ls_pair_add_halves(-product, x.high, y.high);
    return ls_pair(product, x.low * y.high + (x.high * y.low + rest));
}

LS_HOST_DEVICE struct ls_float_pair ls_pair_squared(struct ls_float_pair x)
{
    const float square = x.high * x.high, head = ls_pair_head(x.high), tail = x.high - head;
    float rest = head * head - square;
    rest = (head + head) * tail + rest;
    rest = tail * tail + rest;
    return ls_pair(square, x.high * (x.low + x.low) + rest);
}

/* -1 plus the product of a number and its rounded inverse, whose halves are taken in this order. */
LS_HOST_DEVICE float ls_pair_inverse_rest(float x, float inverse)
{
    const float xh = ls_pair_head(x), xl = x - xh;
    const float ih = ls_pair_head(inverse), il = inverse - ih;
    return xl * il + (xl * ih + (xh * il + (xh * ih + -1.0F)));
}

LS_HOST_DEVICE struct ls_float_pair ls_pair_inverse(struct ls_float_pair x)
{
    const float inverse = 1.0F / x.high;
    const float rest = x.low * inverse + ls_pair_inverse_rest(x.high, inverse);
    return ls_pair(inverse, -inverse * rest);
}

LS_HOST_DEVICE struct ls_float_pair ls_pair_over(struct ls_float_pair n, struct ls_float_pair d)
{
    const float inverse = 1.0F / d.high, quotient = n.high * inverse;
    const float correction = -ls_pair_inverse_rest(d.high, inverse);
    const float nh = ls_pair_head(n.high), nl = n.high - nh;
    const float ih = ls_pair_head(inverse), il = inverse - ih;
    float rest = nh * ih + -quotient;
    rest = nh * il + rest;
    rest = nl * ih + rest;
    rest = nl * il + rest;
    rest = quotient * correction + rest;
    return ls_pair(quotient, inverse * (n.low - quotient * d.low) + rest);
}

/* ---- Exponentials ---------------------------------------------------------------------------- */

#define LS_LN2_HIGH   0.693145751953125F /* its product with a small integer is exact */
#define LS_LN2_LOW    1.428606765330187045e-06F
#define LS_ONE_BY_LN2 1.442695040888963407359924681001892137426645954152985934135449406931F

/* Multiples of ln 2 in x, rounded. */
LS_HOST_DEVICE int ls_float_twos(float x)
{
    const float twos = rintf(x * LS_ONE_BY_LN2);
    return twos > 1e9F ? 1000000000 : twos < -1e9F ? -1000000000 : twos == twos ? (int)twos : 0;
}

LS_HOST_DEVICE float ls_float_exp(float x)
{
    if (x != x)
        return x;
    if (x < -104.0F || x > 100.0F)
        return x < 0 ? 0.0F : INFINITY;
    const int twos = ls_float_twos(x);
    const float s = (float)twos * -LS_LN2_LOW + ((float)twos * -LS_LN2_HIGH + x);
    float u = 0.000198527617612853646278381F;
    u = u * s + 0.00139304355252534151077271F;
    u = u * s + 0.00833336077630519866943359F;
    u = u * s + 0.0416664853692054748535156F;
    u = u * s + 0.166666671633720397949219F;
    u = u * s + 0.5F;
    return ls_float_scale(1.0F + (s * s * u + s), twos);
}

/* exp x as a pair; x from -104 to 104. */
LS_HOST_DEVICE struct ls_float_pair ls_pair_exp(float x)
{
    const int twos = ls_float_twos(x);
    struct ls_float_pair s = ls_pair_add_float(ls_pair(x, 0.0F), (float)twos * -LS_LN2_HIGH);
    s = ls_pair_add_float(s, (float)twos * -LS_LN2_LOW);
    float u = 0.1980960224e-3F;
    u = u * s.high + 0.1394256484e-2F;
    u = u * s.high + 0.8333456703e-2F;
    u = u * s.high + 0.4166637361e-1F;
    struct ls_float_pair t =
        ls_pair_add_float(ls_pair_times_float(s, u), 0.166666659414234244790680580464e+0F);
    t = ls_pair_add_float(ls_pair_times(s, t), 0.5F);
    t = ls_pair_one_and(ls_pair_add(s, ls_pair_times(ls_pair_squared(s), t)));
    return ls_pair(ls_float_scale(t.high, twos), ls_float_scale(t.low, twos));
}

LS_HOST_DEVICE float ls_float_tanh(float x)
{
    const float size = fabsf(x);
    if (x != x)
        return x;
    float y = 1.0F;
    if (!(size > 8.664339742F)) {
        const struct ls_float_pair up = ls_pair_exp(size), down = ls_pair_inverse(up);
        const struct ls_float_pair ratio = ls_pair_over(
            ls_pair_add_less(up, ls_pair(-down.high, -down.low)), ls_pair_add_less(up, down));
        y = ratio.high + ratio.low;
        y = y != y ? 1.0F : y;
    }
    return ls_float_bits(x) < 0 ? -y : y;
}

LS_HOST_DEVICE float ls_float_expm1(float x)
{
    if (x != x || ls_float_bits(x) == INT32_MIN) /* -0 stays what it is */
        return x;
    if (x > 88.72283172607421875F)
        return INFINITY;
    if (x < -16.635532333438687426013570F)
        return -1.0F;
    const struct ls_float_pair y = ls_pair_add_float(ls_pair_exp(x), -1.0F);
    return y.high + y.low;
}

/* ---- Logarithms ------------------------------------------------------------------------------ */

/* The exponent of 4/3 x, by which x is divided to lie between 3/4 and 3/2. */
LS_HOST_DEVICE int ls_float_exponent(float x)
{
    return (int)((uint32_t)ls_float_bits(x * (1.0F / 0.75F)) >> 23 & 0xff) - 127;
}

/* x 2^n where all exponents are in range. */
LS_HOST_DEVICE float ls_float_shift(float x, int n)
{
    return ls_float_of_bits((int32_t)((uint32_t)ls_float_bits(x) + ((uint32_t)n << 23)));
}

LS_HOST_DEVICE struct ls_float_pair ls_pair_of_twos(int n)
{
    return ls_pair_times_float(ls_pair(0.69314718246459960938F, -1.904654323148236017e-09F),
                               (float)n);
}

/* n ln 2 + 2 artanh x */
LS_HOST_DEVICE float ls_float_log_sum(int n, struct ls_float_pair x)
{
    const float x2 = x.high * x.high;
    float t = 0.3027294874e+0F;
    t = t * x2 + 0.3996108174e+0F;
    t = t * x2 + 0.6666694880e+0F;
    struct ls_float_pair s =
        ls_pair_add_less(ls_pair_of_twos(n), ls_pair(x.high * 2.0F, x.low * 2.0F));
    s = ls_pair_add_less_float(s, x2 * x.high * t);
    return s.high + s.low;
}

LS_HOST_DEVICE float ls_float_log(float x)
{
    if (x != x || x < 0)
        return NAN;
    if (x == 0)
        return -INFINITY;
    if (x > FLT_MAX)
        return x;
    const bool small = x < FLT_MIN;
    const float scaled = small ? x * 0x1p64F : x;
    const int exponent = ls_float_exponent(scaled);
    const float m = ls_float_shift(scaled, -exponent);
    const struct ls_float_pair ratio =
        ls_pair_over(ls_pair_of_sum(-1.0F, m), ls_pair_of_sum(1.0F, m));
    return ls_float_log_sum(small ? exponent - 64 : exponent, ratio);
}

LS_HOST_DEVICE float ls_float_log1p(float x)
{
    if (x != x || x < -1)
        return NAN;
    if (x == -1)
        return -INFINITY;
    if (x > 1e+38F)
        return INFINITY;
    if (ls_float_bits(x) == INT32_MIN)
        return x;
    const float whole = x + 1.0F;
    const bool small = whole < FLT_MIN;
    const int exponent = ls_float_exponent(small ? whole * 0x1p64F : whole);
    const float power = ls_float_shift(1.0F, -exponent);
    const float m = x * power + (power - 1.0F);
    const struct ls_float_pair ratio = ls_pair_over(ls_pair(m, 0.0F), ls_pair_of_sum(2.0F, m));
    return ls_float_log_sum(small ? exponent - 64 : exponent, ratio);
}

/* ---- Powers ---------------------------------------------------------------------------------- */

/* The logarithm of a positive number as a pair. */
LS_HOST_DEVICE struct ls_float_pair ls_pair_log(float x)
{
    const bool small = x < FLT_MIN;
    const float scaled = small ? x * 0x1p64F : x;
    const int exponent = ls_float_exponent(scaled);
    const float m = ls_float_shift(scaled, -exponent);
    const struct ls_float_pair ratio =
        ls_pair_over(ls_pair_of_sum(-1.0F, m), ls_pair_of_sum(1.0F, m));
    const struct ls_float_pair square = ls_pair_squared(ratio);
    float t = 0.240320354700088500976562F;
    t = t * square.high + 0.285112679004669189453125F;
    t = t * square.high + 0.400007992982864379882812F;
    struct ls_float_pair s = ls_pair_of_twos(small ? exponent - 64 : exponent);
    s = ls_pair_add_less(s, ls_pair(ratio.high * 2.0F, ratio.low * 2.0F));
    const struct ls_float_pair factor =
        ls_pair_add(ls_pair_times_float(square, t),
                    ls_pair(0.66666662693023681640625F, 3.69183861259614332084311e-09F));
    return ls_pair_add_less(s, ls_pair_times(ls_pair_times(square, ratio), factor));
}

/* x 2^n for any n: three factors that can be out of range by themselves are taken four times. */
LS_HOST_DEVICE float ls_float_scale_far(float x, int n)
{
    int quarter = n >> 31;
    quarter = (((quarter + n) >> 6) - quarter) << 4;
    const int rest = n - quarter * 4;
    int biased = quarter + 127;
    biased = biased < 0 ? 0 : biased > 255 ? 255 : biased;
    const float factor = ls_float_of_bits(biased * (1 << 23));
    return x * factor * factor * factor * factor * ls_float_power_of_two(rest);
}

LS_HOST_DEVICE float ls_float_exp_of_pair(struct ls_float_pair x)
{
    const int twos = ls_float_twos(x.high + x.low);
    struct ls_float_pair s = ls_pair_add_float(x, (float)twos * -LS_LN2_HIGH);
    s = ls_pair_add_float(s, (float)twos * -LS_LN2_LOW);
    const float sum = s.high + s.low;
    s = ls_pair(sum, (s.high - sum) + s.low);
    float u = 0.00136324646882712841033936F;
    u = u * s.high + 0.00836596917361021041870117F;
    u = u * s.high + 0.0416710823774337768554688F;
    u = u * s.high + 0.166665524244308471679688F;
    u = u * s.high + 0.499999850988388061523438F;
    struct ls_float_pair t = ls_pair_add_less(s, ls_pair_times_float(ls_pair_squared(s), u));
    t = ls_pair_one_and(t);
    return x.high < -104.0F ? 0.0F : ls_float_scale_far(t.high + t.low, twos);
}

/* x^y where x or y is 0, infinite or no number. */
LS_HOST_DEVICE float ls_float_pow_of_edge(float x, float y, bool odd)
{
    if (y == 0 || x == 1)
        return 1.0F;
    if (x != x || y != y)
        return NAN;
    if (x == 0 || fabsf(x) > FLT_MAX) {
        const float size = (x == 0 ? -y : y) < 0 ? 0.0F : INFINITY;
        return odd && ls_float_bits(x) < 0 ? -size : size;
    }
    const float beyond = ls_float_bits(y) < 0 ? -(fabsf(x) - 1.0F) : fabsf(x) - 1.0F;
    return beyond < 0 ? 0.0F : beyond == 0 ? 1.0F : INFINITY;
}

LS_HOST_DEVICE float ls_float_pow(float x, float y)
{
    const bool whole = truncf(y) == y || fabsf(y) > 0x1p24F;
    const bool odd = whole && fabsf(y) < 0x1p24F && ((int)truncf(y) & 1) == 1;
    if (y == 0 || x == 1 || x != x || y != y || x == 0 || fabsf(x) > FLT_MAX || fabsf(y) > FLT_MAX)
        return ls_float_pow_of_edge(x, y, odd);
    const float size = ls_float_exp_of_pair(ls_pair_times_float(ls_pair_log(fabsf(x)), y));
    const float found = size != size ? INFINITY : size;
    return x > 0 ? found : !whole ? NAN : odd ? -found : found;
}

#endif
