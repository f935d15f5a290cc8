/* References of elementwise operations: as close to their definitions as can be, in double.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "support/reference_elementwise.h"

#include <math.h>

#include "base/random.h"

double reference_activation(enum reference_activation function, double slope, double x)
{
    switch (function) {
    case REFERENCE_RELU:
        return fmax(x, 0) + slope * fmin(x, 0);
    case REFERENCE_SIGMOID:
        return 1 / (1 + exp(-x));
    default:
        return tanh(x);
    }
}

double reference_activation_slope(enum reference_activation function, double slope, double x)
{
    double y = reference_activation(function, slope, x);
    switch (function) {
    case REFERENCE_RELU:
        return x > 0 ? 1 : slope;
    case REFERENCE_SIGMOID:
        return y * (1 - y);
    default:
        return 1 - y * y;
    }
}

void reference_dropout(uint64_t key, uint64_t ordinal, double ratio, const double *x, double *y,
                       size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double number = (double)ls_random_u32(key, ordinal, i) / 4294967296.0;
        y[i] = number >= ratio ? x[i] / (1 - ratio) : 0;
    }
}

double reference_eltwise(enum reference_eltwise method, const double *coefficient, const double *x,
                         int count)
{
    double y = method == REFERENCE_PROD ? 1 : method == REFERENCE_SUM ? 0 : x[0];
    for (int i = 0; i < count; i++) {
        if (method == REFERENCE_PROD)
            y *= x[i];
        else if (method == REFERENCE_SUM)
            y += (coefficient != NULL ? coefficient[i] : 1) * x[i];
        else
            y = fmax(y, x[i]);
    }
    return y;
}

double reference_eltwise_slope(enum reference_eltwise method, const double *coefficient,
                               const double *x, int count, int which)
{
    if (method == REFERENCE_SUM)
        return coefficient != NULL ? coefficient[which] : 1;
    if (method == REFERENCE_PROD) {
        double others = 1;
        for (int i = 0; i < count; i++)
            others *= i == which ? 1 : x[i];
        return others;
    }
    double largest = reference_eltwise(method, NULL, x, count);
    int winner = 0;
    while (x[winner] < largest)
        winner++;
    if (winner == 0 && count > 1 && x[1] == largest)
        winner = 1;
    return winner == which;
}
