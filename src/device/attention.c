/* See device/attention.h. SPDX-License-Identifier: BSD-2-Clause */
#include "device/attention.h"

#include <sleef.h>
#include <string.h>

void ls_attention_angles(const struct ls_rotary_attr *attr, double position, float *angles)
{
    const int64_t pairs = attr->dims / 2;
    for (int64_t i = 0; i < pairs; i++) {
        const double power = -2 * (double)i / (double)attr->dims;
        const double angle = position * Sleef_cinz_powd1_u10purec((double)attr->base, power);
        angles[i] = (float)Sleef_cinz_cosd1_u10purec(angle);
        angles[pairs + i] = (float)Sleef_cinz_sind1_u10purec(angle);
    }
}

void ls_attention_turn(const struct ls_rotary_attr *attr, const float *angles, bool back,
                       const float *x, float *y, int64_t depth)
{
    const int64_t pairs = attr->dims / 2;
    const int64_t step = attr->neighbours ? 2 : 1, other = attr->neighbours ? 1 : pairs;
    for (int64_t i = 0; i < pairs; i++) {
        const float a = x[i * step], b = x[i * step + other];
        const float cosine = angles[i], sine = back ? -angles[pairs + i] : angles[pairs + i];
        const float up = a * cosine, left = b * sine, down = b * cosine, right = a * sine;
        y[i * step] = up - left;
        y[i * step + other] = down + right;
    }
    if (y != x)
        memcpy(y + attr->dims, x + attr->dims, (size_t)(depth - attr->dims) * sizeof *y);
}
