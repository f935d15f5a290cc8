/* Checks a gradient against central differences.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "support/gradient.h"

#include <math.h>

#include "support/support.h"

void check_gradient(double (*function)(const double *x, void *data), void *data, double *x,
                    size_t n, const double *gradient, double tolerance, const char *what)
{
    const double step = 1e-5;
    for (size_t i = 0; i < n; i++) {
        double saved = x[i];
        x[i] = saved + step;
        double above = function(x, data);
        x[i] = saved - step;
        double below = function(x, data);
        x[i] = saved;
        double slope = (above - below) / (2 * step);
        if (!(fabs(slope - gradient[i]) <= tolerance * fmax(1, fabs(slope))))
            fail_msg("%s: the gradient of element %zu is %.9g, but the slope is %.9g", what, i,
                     gradient[i], slope);
    }
}
