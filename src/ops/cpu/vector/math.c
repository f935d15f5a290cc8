/* Exponential, logarithm, hyperbolic tangent and power of arrays, by SLEEF.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/math.h"

#include "ops/cpu/vector/lanes.h"

/* Applies CALL(source, target) to 16 elements at a time. */
#define LS_EACH_LANES(CALL)                                                                        \
    do {                                                                                           \
        size_t i = 0;                                                                              \
        for (; i + LS_LANES <= n; i += LS_LANES)                                                   \
            CALL(x + i, y + i);                                                                    \
        if (i < n) {                                                                               \
            float rest[LS_LANES] = {0};                                                            \
            memcpy(rest, x + i, (n - i) * sizeof *x);                                              \
            CALL(rest, rest);                                                                      \
            memcpy(y + i, rest, (n - i) * sizeof *y);                                              \
        }                                                                                          \
    } while (0)

static void vector_exp(const float *x, float *y, size_t n)
{
    LS_EACH_LANES(ls_lanes_exp);
}

static void vector_log(const float *x, float *y, size_t n)
{
    LS_EACH_LANES(ls_lanes_log);
}

static void vector_tanh(const float *x, float *y, size_t n)
{
    LS_EACH_LANES(ls_lanes_tanh);
}

static void vector_pow(const float *x, float exponent, float *y, size_t n)
{
#define CALL(source, target) ls_lanes_pow(source, exponent, target)
    LS_EACH_LANES(CALL);
#undef CALL
}

const struct ls_vector_math LS_ISA_NAME(ls_vector_math) = {
    .exp = vector_exp,
    .log = vector_log,
    .tanh = vector_tanh,
    .pow = vector_pow,
};
