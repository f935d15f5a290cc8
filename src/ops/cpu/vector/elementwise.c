/* Activations, dropout, sums, products and maxima of arrays.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/elementwise.h"

#include <stdbool.h>

#include "ops/cpu/vector/lanes.h"

static void relu(const float *x, float *y, float slope, size_t n)
{
    if (slope == 0) { /* not the general case: 0 * x is -0, or NaN for an infinite x */
        LS_ELEMENTWISE
        for (size_t i = 0; i < n; i++)
            y[i] = x[i] < 0 ? 0.0F : x[i];
    } else {
        LS_ELEMENTWISE
        for (size_t i = 0; i < n; i++) {
            float negative = slope * x[i];
            y[i] = x[i] < 0 ? negative : x[i];
        }
    }
}

static void relu_backward(const float *dy, const float *y, float *dx, float slope, size_t n)
{
    if (slope == 0) {
        LS_ELEMENTWISE
        for (size_t i = 0; i < n; i++) {
            float gradient = dy[i];
            dx[i] = y[i] > 0 ? gradient : 0.0F;
        }
    } else {
        LS_ELEMENTWISE
        for (size_t i = 0; i < n; i++) {
            float gradient = dy[i], negative = slope * gradient;
            dx[i] = y[i] > 0 ? gradient : negative;
        }
    }
}

static inline void lanes_sigmoid(const float *x, float *y)
{
    float exponential[LS_LANES];
    for (int i = 0; i < LS_LANES; i++)
        exponential[i] = -x[i];
    ls_lanes_exp(exponential, exponential);
    for (int i = 0; i < LS_LANES; i++)
        y[i] = 1.0F / (1.0F + exponential[i]);
}

static void sigmoid(const float *x, float *y, size_t n)
{
    size_t i = 0;
    for (; i + LS_LANES <= n; i += LS_LANES)
        lanes_sigmoid(x + i, y + i);
    if (i < n) {
        float rest[LS_LANES] = {0};
        memcpy(rest, x + i, (n - i) * sizeof *x);
        lanes_sigmoid(rest, rest);
        memcpy(y + i, rest, (n - i) * sizeof *y);
    }
}

static void sigmoid_backward(const float *dy, const float *y, float *dx, size_t n)
{
    LS_ELEMENTWISE
    for (size_t i = 0; i < n; i++)
        dx[i] = dy[i] * (y[i] * (1.0F - y[i]));
}

static void tanh_backward(const float *dy, const float *y, float *dx, size_t n)
{
    LS_ELEMENTWISE
    for (size_t i = 0; i < n; i++)
        dx[i] = dy[i] * (1.0F - y[i] * y[i]);
}

static void drop(const float *x, const uint32_t *word, float *y, uint32_t threshold, float scale,
                 size_t n)
{
    LS_ELEMENTWISE
    for (size_t i = 0; i < n; i++) {
        float kept = x[i] * scale;
        y[i] = word[i] >= threshold ? kept : 0.0F;
    }
}

static void drop_gated(const float *dy, const float *z, float *dx, float scale, size_t n)
{
    LS_ELEMENTWISE
    for (size_t i = 0; i < n; i++) {
        float kept = dy[i] * scale;
        dx[i] = z[i] > 0 ? kept : 0.0F;
    }
}

static void multiply(const float *a, const float *b, float *y, size_t n)
{
    LS_ELEMENTWISE
    for (size_t i = 0; i < n; i++)
        y[i] = a[i] * b[i];
}

static void add(const float *a, const float *b, float *y, size_t n)
{
    LS_ELEMENTWISE
    for (size_t i = 0; i < n; i++)
        y[i] = a[i] + b[i];
}

static void multiply_by(const float *x, float factor, float *y, size_t n)
{
    LS_ELEMENTWISE
    for (size_t i = 0; i < n; i++)
        y[i] = factor * x[i];
}

/* What is NULL or 0 is so everywhere in a loop: constants. */
static inline __attribute__((always_inline)) void add_gated(const uint16_t *a, const uint16_t *b,
                                                            const uint16_t *gate, bool relu,
                                                            float slope, uint16_t *y, size_t n)
{
    LS_ELEMENTWISE
    for (size_t i = 0; i < n; i++) {
        const float sum = ls_widen_bf16(a[i]) + ls_widen_bf16(b[i]);
        const float below = slope == 0 ? 0.0F : slope * sum;
        float z = sum;
        if (gate != NULL)
            z = ls_widen_bf16(gate[i]) > 0 ? sum : below;
        else if (relu)
            z = sum < 0 ? below : sum;
        y[i] = ls_round_bf16(z);
    }
}

static void add_bf16(const uint16_t *a, const uint16_t *b, const uint16_t *gate, const float *slope,
                     uint16_t *y, size_t n)
{
    if (slope == NULL)
        add_gated(a, b, NULL, false, 0, y, n);
    else if (gate == NULL && *slope == 0)
        add_gated(a, b, NULL, true, 0, y, n);
    else if (gate == NULL)
        add_gated(a, b, NULL, true, *slope, y, n);
    else if (*slope == 0)
        add_gated(a, b, gate, true, 0, y, n);
    else
        add_gated(a, b, gate, true, *slope, y, n);
}

static void add_scaled(const float *a, const float *x, float factor, float *y, size_t n)
{
    LS_ELEMENTWISE
    for (size_t i = 0; i < n; i++)
        y[i] = a[i] + factor * x[i];
}

static void larger(const float *a, const float *b, float *y, size_t n)
{
    LS_ELEMENTWISE
    for (size_t i = 0; i < n; i++) {
        float first = a[i], second = b[i];
        y[i] = first > second ? first : second;
    }
}

static void challenge(const float *x, float *top, int32_t *winner, int32_t which, size_t n)
{
    LS_ELEMENTWISE
    for (size_t i = 0; i < n; i++) {
        float value = x[i], best = top[i];
        int32_t holder = winner[i];
        top[i] = value > best ? value : best;
        winner[i] = value > best ? which : holder;
    }
}

static void pick(const float *dy, const int32_t *winner, int32_t which, float *dx, size_t n)
{
    LS_ELEMENTWISE
    for (size_t i = 0; i < n; i++) {
        float gradient = dy[i];
        dx[i] = winner[i] == which ? gradient : 0.0F;
    }
}

const struct ls_vector_elementwise LS_ISA_NAME(ls_vector_elementwise) = {
    .relu = relu,
    .relu_backward = relu_backward,
    .sigmoid = sigmoid,
    .sigmoid_backward = sigmoid_backward,
    .tanh_backward = tanh_backward,
    .drop = drop,
    .drop_gated = drop_gated,
    .multiply = multiply,
    .add = add,
    .multiply_by = multiply_by,
    .add_bf16 = add_bf16,
    .add_scaled = add_scaled,
    .larger = larger,
    .challenge = challenge,
    .pick = pick,
};
