/* Gradients of scores of LINEAR_LOSS in double, for host code and kernels alike; what they are is
 * in device/linear_loss.h. `sum` is s of the row, `power` e of the class. SPDX-License-Identifier:
 * BSD-2-Clause */
#ifndef LS_DEVICE_LINEAR_SLOPE_H
#define LS_DEVICE_LINEAR_SLOPE_H

#include <stdint.h>

#include "base/host_device.h"

/* What the true class is worth besides its part of the smoothing, and what each class is. */
LS_HOST_DEVICE double ls_linear_own(float smoothing, double weight)
{
    return (1 - (double)smoothing) * weight;
}

LS_HOST_DEVICE double ls_linear_share(float smoothing, int64_t classes)
{
    return (double)smoothing / (double)classes;
}

/* Without smoothing: g, and d of the label; `weight` is that of its class. */
LS_HOST_DEVICE float ls_linear_factor(double scale, double weight, double sum)
{
    return (float)(scale * weight / sum);
}

LS_HOST_DEVICE float ls_linear_at_label(double scale, double weight, double sum, float power)
{
    const double factor = scale * weight;
    return (float)(((double)power / sum - 1) * factor);
}

/* With smoothing: `all` is what all targets are together, `target` that of this class. */
LS_HOST_DEVICE float ls_linear_smoothed(double scale, double all, double target, double sum,
                                        float power)
{
    return (float)((all * ((double)power / sum) - target) * scale);
}

#endif
