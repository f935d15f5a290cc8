/* GELU for all devices: what surrounds the exponential function, in fp32, operation by operation
 * (docs/numerics.md, section 23). Each operation rounds; none is contracted.
 *
 * P(x), that a normal number is below x, is Q(|x|) or 1 - Q(|x|), where Q(t) = exp(-t^2 / 2) R(t)
 * and R is a polynomial in 1 / (1 + t 11/32), at most 5e-8 off, relatively, for t up to 12.5.
 * Behind that Q is taken for 0: it is below 4e-36. Of t^2 / 2, which has more digits than a float,
 * h is t with 12 bits, so that h^2 is exact, and exp of the rest is four terms of its series. P,
 * and so GELU, is within 6e-7 of itself, also where it is small.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_GELU_H
#define LS_DEVICE_GELU_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/host_device.h"

#define LS_GELU_END 12.5F

/* t: |x|, up to the end. */
LS_HOST_DEVICE float ls_gelu_distance(float x)
{
    const float t = fabsf(x);
    return t > LS_GELU_END ? LS_GELU_END : t;
}

/* h */
LS_HOST_DEVICE float ls_gelu_head(float t)
{
    uint32_t bits;
    float head;
    memcpy(&bits, &t, sizeof bits);
    bits &= 0xfffff000;
    memcpy(&head, &bits, sizeof head);
    return head;
}

/* What exp is taken of: -h^2 / 2, exactly. */
LS_HOST_DEVICE float ls_gelu_exponent(float t)
{
    const float head = ls_gelu_head(t);
    return -0.5F * (head * head);
}

/* exp(-t^2 / 2), by `power`, the exponential of the exponent; 0 at the end. */
LS_HOST_DEVICE float ls_gelu_bell(float t, float power)
{
    const float head = ls_gelu_head(t), rest = -0.5F * ((t - head) * (t + head));
    const float series = 1.0F + rest * (1.0F + rest * (0.5F + rest * 0x1.555556p-3F));
    const float bell = power * series;
    return t >= LS_GELU_END ? 0.0F : bell;
}

/* Q(t) */
LS_HOST_DEVICE float ls_gelu_tail(float t, float bell)
{
    const float u = 1.0F / (1.0F + 0x1.6p-2F * t);
    float r = -0x1.cebd90p-6F;
    r = r * u + 0x1.2ab02ep-3F;
    r = r * u + -0x1.1a3564p-2F;
    r = r * u + 0x1.8f8768p-3F;
    r = r * u + -0x1.57fbb0p-5F;
    r = r * u + 0x1.d1cb88p-4F;
    r = r * u + 0x1.dd2414p-4F;
    r = r * u + 0x1.19c0b8p-3F;
    r = r * u + 0x1.18d14ap-3F;
    return bell * (r * u);
}

/* x P(x) */
LS_HOST_DEVICE float ls_gelu(float x, float t, float power)
{
    const float tail = ls_gelu_tail(t, ls_gelu_bell(t, power));
    const float above = x * (1.0F - tail), below = -(t * tail);
    return x >= 0 ? above : below;
}

/* Its derivative: P(x) + x exp(-x^2 / 2) / sqrt(2 pi). */
LS_HOST_DEVICE float ls_gelu_slope(float x, float t, float power)
{
    const float bell = ls_gelu_bell(t, power), tail = ls_gelu_tail(t, bell);
    const float along = t * (bell * 0x1.988454p-2F);
    const float above = (1.0F - tail) + along, below = tail - along;
    return x >= 0 ? above : below;
}

/* By tanh: P(x) = (1 + tanh(v / 2)) / 2 = 1 / (1 + exp(-v)), v = 2 sqrt(2 / pi) (x + 0.044715 x^3).
 */
LS_HOST_DEVICE float ls_gelu_tanh_inner(float x)
{
    return x * (0x1.988454p0F + 0x1.2444f2p-4F * (x * x));
}

/* Behind +-9.9 the derivative is that for 9.9, which is 1, or 0 but for 3e-35; exp(-v) is finite.
 */
LS_HOST_DEVICE float ls_gelu_tanh_bound(float x)
{
    const float bounded = x > 9.9F ? 9.9F : x;
    return bounded < -9.9F ? -9.9F : bounded;
}

/* The derivative: s + x v' s (1 - s), by `power` = exp(-v); 1 - s is power s. */
LS_HOST_DEVICE float ls_gelu_tanh_slope(float x, float power)
{
    const float s = 1.0F / (1.0F + power);
    const float along = x * (0x1.988454p0F + 0x1.b6676cp-3F * (x * x));
    return s + along * (s * (power * s));
}

#endif
