/* Factors and biases along axes in double precision. See support/reference_scale.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "support/reference_scale.h"

#include <stddef.h>

static int size_of(const struct reference_scale *scale)
{
    return scale->outer * scale->dim * scale->inner;
}

void reference_scale_forward(const struct reference_scale *scale, const double *x,
                             const double *factor, const double *bias, double *y)
{
    for (int i = 0; i < size_of(scale); i++) {
        int d = i / scale->inner % scale->dim;
        y[i] = x[i] * (factor != NULL ? factor[d] : 1) + (bias != NULL ? bias[d] : 0);
    }
}

void reference_scale_backward(const struct reference_scale *scale, const double *x,
                              const double *factor, const double *dy, double *dx, double *dfactor,
                              double *dbias)
{
    for (int d = 0; d < scale->dim; d++)
        dfactor[d] = dbias[d] = 0;
    for (int i = 0; i < size_of(scale); i++) {
        int d = i / scale->inner % scale->dim;
        if (factor != NULL)
            dx[i] = dy[i] * factor[d];
        dfactor[d] += dy[i] * x[i];
        dbias[d] += dy[i];
    }
}
