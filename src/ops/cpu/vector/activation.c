/* ELU, Swish, GELU, absolute value, exponential, logarithm, power, BNLL, clipping, threshold.
 *
 * Functions are carried out on some elements at a time, a shorter rest in a buffer. Where a
 * definition has two branches both are computed and one is chosen.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/activation.h"

#include "device/gelu.h"
#include "ops/cpu/vector/lanes.h"

/* Elements at a time: more than lanes, since loops that go once through a register's lanes are
 * taken apart by gcc before they could become vectors. */
enum { CHUNK = 4 * LS_LANES };

#define LANES(i) LS_ELEMENTWISE for (int i = 0; i < CHUNK; i++)

#define EACH_LANES(name)                                                                           \
    static inline void chunk_##name(const float *x, float *y)                                      \
    {                                                                                              \
        for (int i = 0; i < CHUNK; i += LS_LANES)                                                  \
            ls_lanes_##name(x + i, y + i);                                                         \
    }
EACH_LANES(exp)
EACH_LANES(log)
EACH_LANES(expm1)
EACH_LANES(log1p)
#undef EACH_LANES

static inline void chunk_pow(const float *x, float exponent, float *y)
{
    for (int i = 0; i < CHUNK; i += LS_LANES)
        ls_lanes_pow(x + i, exponent, y + i);
}

typedef void forward_lanes(const struct ls_activation_attr *attr, const float *x, float *y);
typedef void backward_lanes(const struct ls_activation_attr *attr, const float *dy,
                            const float *given, float *dx);
typedef void both_lanes(const struct ls_activation_attr *attr, const float *dy, const float *x,
                        float *y, float *dx);

static inline __attribute__((always_inline)) void each(forward_lanes *function,
                                                       const struct ls_activation_attr *attr,
                                                       const float *x, float *y, size_t n)
{
    size_t i = 0;
    for (; i + CHUNK <= n; i += CHUNK)
        function(attr, x + i, y + i);
    if (i < n) {
        float rest[CHUNK] = {0};
        memcpy(rest, x + i, (n - i) * sizeof *x);
        function(attr, rest, rest);
        memcpy(y + i, rest, (n - i) * sizeof *y);
    }
}

static inline __attribute__((always_inline)) void
each_backward(backward_lanes *function, const struct ls_activation_attr *attr, const float *dy,
              const float *given, float *dx, size_t n)
{
    size_t i = 0;
    for (; i + CHUNK <= n; i += CHUNK)
        function(attr, dy + i, given + i, dx + i);
    if (i < n) {
        float rest[CHUNK] = {0}, rest_given[CHUNK] = {0};
        memcpy(rest, dy + i, (n - i) * sizeof *dy);
        memcpy(rest_given, given + i, (n - i) * sizeof *given);
        function(attr, rest, rest_given, rest);
        memcpy(dx + i, rest, (n - i) * sizeof *dx);
    }
}

static inline __attribute__((always_inline)) void each_both(both_lanes *function,
                                                            const struct ls_activation_attr *attr,
                                                            const float *dy, const float *x,
                                                            float *y, float *dx, size_t n)
{
    size_t i = 0;
    for (; i + CHUNK <= n; i += CHUNK)
        function(attr, dy + i, x + i, y + i, dx + i);
    if (i < n) {
        float rest[CHUNK] = {0}, rest_x[CHUNK] = {0}, rest_y[CHUNK];
        memcpy(rest, dy + i, (n - i) * sizeof *dy);
        memcpy(rest_x, x + i, (n - i) * sizeof *x);
        function(attr, rest, rest_x, rest_y, rest);
        memcpy(y + i, rest_y, (n - i) * sizeof *y);
        memcpy(dx + i, rest, (n - i) * sizeof *dx);
    }
}

/* y = 1 + exp(-factor x) */
static inline void lanes_divisor(float factor, const float *x, float *y)
{
    float exponential[CHUNK];
    LANES(i) exponential[i] = -(factor * x[i]);
    chunk_exp(exponential, exponential);
    LANES(i) y[i] = 1.0F + exponential[i];
}

static inline void elu(const struct ls_activation_attr *attr, const float *x, float *y)
{
    float negative[CHUNK];
    LANES(i) negative[i] = x[i] > 0 ? 0.0F : x[i];
    chunk_expm1(negative, negative);
    LANES(i)
    {
        float below = attr->slope * negative[i];
        y[i] = x[i] > 0 ? x[i] : below;
    }
}

/* With slope >= 0 the sign of y is that of x, and slope exp(x) is y + slope. */
static inline void elu_backward(const struct ls_activation_attr *attr, const float *dy,
                                const float *y, float *dx)
{
    LANES(i)
    {
        float below = dy[i] * (y[i] + attr->slope);
        dx[i] = y[i] > 0 ? dy[i] : below;
    }
}

static inline void elu_backward_by_input(const struct ls_activation_attr *attr, const float *dy,
                                         const float *x, float *dx)
{
    float negative[CHUNK];
    LANES(i) negative[i] = x[i] > 0 ? 0.0F : x[i];
    chunk_exp(negative, negative);
    LANES(i)
    {
        float below = dy[i] * (attr->slope * negative[i]);
        dx[i] = x[i] > 0 ? dy[i] : below;
    }
}

static inline void swish(const struct ls_activation_attr *attr, const float *x, float *y)
{
    float divisor[CHUNK];
    lanes_divisor(attr->slope, x, divisor);
    LANES(i) y[i] = x[i] / divisor[i];
}

/* With s = sigmoid(slope x), the inverse of the divisor: dx = dy (s + slope x s (1 - s)). */
static inline void swish_slopes(const struct ls_activation_attr *attr, const float *divisor,
                                const float *dy, const float *x, float *dx)
{
    LANES(i)
    {
        float s = 1.0F / divisor[i], along = attr->slope * x[i] * s;
        dx[i] = dy[i] * (s + along * (1.0F - s));
    }
}

static inline void swish_backward(const struct ls_activation_attr *attr, const float *dy,
                                  const float *x, float *dx)
{
    float divisor[CHUNK];
    lanes_divisor(attr->slope, x, divisor);
    swish_slopes(attr, divisor, dy, x, dx);
}

static inline void swish_both(const struct ls_activation_attr *attr, const float *dy,
                              const float *x, float *y, float *dx)
{
    float divisor[CHUNK];
    lanes_divisor(attr->slope, x, divisor);
    LANES(i) y[i] = x[i] / divisor[i];
    swish_slopes(attr, divisor, dy, x, dx);
}

/* Distances of numbers from 0, and exp of their exponents (device/gelu.h). */
static inline void lanes_gelu(const float *x, float *distance, float *power)
{
    LANES(i) distance[i] = ls_gelu_distance(x[i]);
    LANES(i) power[i] = ls_gelu_exponent(distance[i]);
    chunk_exp(power, power);
}

static inline void gelu(const struct ls_activation_attr *attr, const float *x, float *y)
{
    float distance[CHUNK], power[CHUNK];
    (void)attr;
    lanes_gelu(x, distance, power);
    LANES(i) y[i] = ls_gelu(x[i], distance[i], power[i]);
}

static inline void gelu_backward(const struct ls_activation_attr *attr, const float *dy,
                                 const float *x, float *dx)
{
    float distance[CHUNK], power[CHUNK];
    (void)attr;
    lanes_gelu(x, distance, power);
    LANES(i) dx[i] = dy[i] * ls_gelu_slope(x[i], distance[i], power[i]);
}

static inline void gelu_both(const struct ls_activation_attr *attr, const float *dy, const float *x,
                             float *y, float *dx)
{
    float distance[CHUNK], power[CHUNK];
    (void)attr;
    lanes_gelu(x, distance, power);
    LANES(i) y[i] = ls_gelu(x[i], distance[i], power[i]);
    LANES(i) dx[i] = dy[i] * ls_gelu_slope(x[i], distance[i], power[i]);
}

static inline void gelu_tanh(const struct ls_activation_attr *attr, const float *x, float *y)
{
    float power[CHUNK];
    (void)attr;
    LANES(i) power[i] = -ls_gelu_tanh_inner(x[i]);
    chunk_exp(power, power);
    LANES(i) y[i] = x[i] / (1.0F + power[i]);
}

static inline void gelu_tanh_backward(const struct ls_activation_attr *attr, const float *dy,
                                      const float *x, float *dx)
{
    float bounded[CHUNK], power[CHUNK];
    (void)attr;
    LANES(i) bounded[i] = ls_gelu_tanh_bound(x[i]);
    LANES(i) power[i] = -ls_gelu_tanh_inner(bounded[i]);
    chunk_exp(power, power);
    LANES(i) dx[i] = dy[i] * ls_gelu_tanh_slope(bounded[i], power[i]);
}

static inline void absolute(const struct ls_activation_attr *attr, const float *x, float *y)
{
    (void)attr;
    LANES(i) y[i] = __builtin_fabsf(x[i]);
}

static inline void absolute_backward(const struct ls_activation_attr *attr, const float *dy,
                                     const float *x, float *dx)
{
    (void)attr;
    LANES(i)
    {
        float plus = dy[i], minus = -dy[i];
        dx[i] = x[i] > 0 ? plus : (x[i] < 0 ? minus : 0.0F);
    }
}

static inline void exponential(const struct ls_activation_attr *attr, const float *x, float *y)
{
    float inner[CHUNK];
    LANES(i) inner[i] = attr->scale * x[i];
    chunk_exp(inner, inner);
    LANES(i) y[i] = attr->factor * inner[i];
}

static inline void exponential_backward(const struct ls_activation_attr *attr, const float *dy,
                                        const float *y, float *dx)
{
    LANES(i) dx[i] = dy[i] * (attr->scale * y[i]);
}

static inline void logarithm(const struct ls_activation_attr *attr, const float *x, float *y)
{
    float inner[CHUNK];
    LANES(i) inner[i] = attr->scale * x[i] + attr->shift;
    chunk_log(inner, inner);
    LANES(i) y[i] = attr->factor * inner[i];
}

static inline void logarithm_backward(const struct ls_activation_attr *attr, const float *dy,
                                      const float *x, float *dx)
{
    float slope = attr->factor * attr->scale;
    LANES(i) dx[i] = dy[i] * (slope / (attr->scale * x[i] + attr->shift));
}

/* base^exponent; exponents 0, 1 and 2 are exact. */
static inline void lanes_power(const float *base, float exponent, float *y)
{
    if (exponent == 0) {
        LANES(i) y[i] = 1;
    } else if (exponent == 1) {
        LANES(i) y[i] = base[i];
    } else if (exponent == 2) {
        LANES(i) y[i] = base[i] * base[i];
    } else {
        chunk_pow(base, exponent, y);
    }
}

/* Without influence of x the result is a constant, whatever x is. */
static inline void power(const struct ls_activation_attr *attr, const float *x, float *y)
{
    float base[CHUNK], scale = attr->scale;
    if (scale == 0 || attr->power == 0) {
        LANES(i) base[i] = attr->shift;
    } else {
        LANES(i) base[i] = scale * x[i] + attr->shift;
    }
    lanes_power(base, attr->power, y);
}

static inline void power_backward(const struct ls_activation_attr *attr, const float *dy,
                                  const float *x, float *dx)
{
    float base[CHUNK], slope = attr->power * attr->scale;
    if (slope == 0) {
        LANES(i) dx[i] = 0;
        return;
    }
    LANES(i) base[i] = attr->scale * x[i] + attr->shift;
    lanes_power(base, attr->power - 1, base);
    LANES(i) dx[i] = dy[i] * (slope * base[i]);
}

/* log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|)), which neither overflows nor cancels. */
static inline void bnll(const struct ls_activation_attr *attr, const float *x, float *y)
{
    float small[CHUNK];
    (void)attr;
    LANES(i) small[i] = -__builtin_fabsf(x[i]);
    chunk_exp(small, small);
    chunk_log1p(small, small);
    LANES(i)
    {
        float sum = x[i] + small[i];
        y[i] = x[i] > 0 ? sum : small[i];
    }
}

static inline void bnll_backward(const struct ls_activation_attr *attr, const float *dy,
                                 const float *x, float *dx)
{
    float divisor[CHUNK];
    (void)attr;
    lanes_divisor(1, x, divisor);
    LANES(i) dx[i] = dy[i] / divisor[i];
}

static inline void clip(const struct ls_activation_attr *attr, const float *x, float *y)
{
    float low = attr->low, high = attr->high;
    LANES(i)
    {
        float bounded = x[i] > high ? high : x[i];
        y[i] = bounded < low ? low : bounded;
    }
}

static inline void clip_backward(const struct ls_activation_attr *attr, const float *dy,
                                 const float *x, float *dx)
{
    float low = attr->low, high = attr->high;
    LANES(i)
    {
        float below = x[i] <= high ? dy[i] : 0.0F;
        dx[i] = x[i] >= low ? below : 0.0F;
    }
}

static inline void threshold(const struct ls_activation_attr *attr, const float *x, float *y)
{
    float low = attr->low;
    LANES(i)
    {
        float other = x[i] <= low ? 0.0F : x[i];
        y[i] = x[i] > low ? 1.0F : other;
    }
}

/* Behind the bound the derivative has an exponential of its own; lanes seldom get there. */
static inline void gelu_tanh_both(const struct ls_activation_attr *attr, const float *dy,
                                  const float *x, float *y, float *dx)
{
    float bounded[CHUNK], power[CHUNK];
    int32_t behind = 0;
    (void)attr;
    LANES(i) bounded[i] = ls_gelu_tanh_bound(x[i]);
    LANES(i) behind |= bounded[i] < x[i] || bounded[i] > x[i];
    LANES(i) power[i] = -ls_gelu_tanh_inner(x[i]);
    chunk_exp(power, power);
    LANES(i) y[i] = x[i] / (1.0F + power[i]);
    if (behind) {
        LANES(i) power[i] = -ls_gelu_tanh_inner(bounded[i]);
        chunk_exp(power, power);
    }
    LANES(i) dx[i] = dy[i] * ls_gelu_tanh_slope(bounded[i], power[i]);
}

static void activation_forward(const struct ls_activation_attr *attr, const float *x, float *y,
                               size_t n)
{
    switch (attr->function) {
    case LS_ELU:
        each(elu, attr, x, y, n);
        break;
    case LS_SWISH:
        each(swish, attr, x, y, n);
        break;
    case LS_GELU:
        each(gelu, attr, x, y, n);
        break;
    case LS_GELU_TANH:
        each(gelu_tanh, attr, x, y, n);
        break;
    case LS_ABSOLUTE:
        each(absolute, attr, x, y, n);
        break;
    case LS_EXP:
        each(exponential, attr, x, y, n);
        break;
    case LS_LOG:
        each(logarithm, attr, x, y, n);
        break;
    case LS_POWER:
        each(power, attr, x, y, n);
        break;
    case LS_BNLL:
        each(bnll, attr, x, y, n);
        break;
    case LS_CLIP:
        each(clip, attr, x, y, n);
        break;
    case LS_THRESHOLD:
        each(threshold, attr, x, y, n);
        break;
    default: /* RELU, SIGMOID, TANH: vector/elementwise.c */
        break;
    }
}

static void activation_backward(const struct ls_activation_attr *attr, const float *dy,
                                const float *given, float *dx, size_t n)
{
    switch (attr->function) {
    case LS_ELU:
        if (attr->slope < 0)
            each_backward(elu_backward_by_input, attr, dy, given, dx, n);
        else
            each_backward(elu_backward, attr, dy, given, dx, n);
        break;
    case LS_SWISH:
        each_backward(swish_backward, attr, dy, given, dx, n);
        break;
    case LS_GELU:
        each_backward(gelu_backward, attr, dy, given, dx, n);
        break;
    case LS_GELU_TANH:
        each_backward(gelu_tanh_backward, attr, dy, given, dx, n);
        break;
    case LS_ABSOLUTE:
        each_backward(absolute_backward, attr, dy, given, dx, n);
        break;
    case LS_EXP:
        each_backward(exponential_backward, attr, dy, given, dx, n);
        break;
    case LS_LOG:
        each_backward(logarithm_backward, attr, dy, given, dx, n);
        break;
    case LS_POWER:
        each_backward(power_backward, attr, dy, given, dx, n);
        break;
    case LS_BNLL:
        each_backward(bnll_backward, attr, dy, given, dx, n);
        break;
    case LS_CLIP:
        each_backward(clip_backward, attr, dy, given, dx, n);
        break;
    default: /* RELU, SIGMOID, TANH: vector/elementwise.c; THRESHOLD: none */
        break;
    }
}

static void activation_both(const struct ls_activation_attr *attr, const float *dy, const float *x,
                            float *y, float *dx, size_t n)
{
    if (attr->function == LS_SWISH)
        each_both(swish_both, attr, dy, x, y, dx, n);
    else if (attr->function == LS_GELU)
        each_both(gelu_both, attr, dy, x, y, dx, n);
    else
        each_both(gelu_tanh_both, attr, dy, x, y, dx, n);
}

const struct ls_vector_activation LS_ISA_NAME(ls_vector_activation) = {
    .forward = activation_forward,
    .backward = activation_backward,
    .both = activation_both,
};
