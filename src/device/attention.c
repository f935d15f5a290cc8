/* See device/attention.h. SPDX-License-Identifier: BSD-2-Clause */
#include "device/attention.h"

#include <sleef.h>
#include <string.h>

#include "base/assert.h"
#include "ir/convert.h"

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

struct ls_attention_attr ls_attention_append(const struct ls_op *op, void *const *in,
                                             int64_t position)
{
    struct ls_attention_attr attr = op->attr.attention, from = attr;
    const int64_t batch = op->input[LS_ATTENTION_Q]->shape.dim[0];
    LS_ASSERT(position >= 0 && position + attr.queries <= attr.cache);
    attr.keys = position + attr.queries;
    from.cache = 0;
    from.keys = from.queries;
    for (int which = LS_ATTENTION_K; which <= LS_ATTENTION_V; which++) {
        const int source = ls_attention_input_of(&from, which);
        const enum ls_dtype type = op->input[source]->type;
        const int64_t depth = which == LS_ATTENTION_K ? attr.depth : attr.value_depth;
        const size_t count = (size_t)(attr.kv_heads * depth);
        float *cache = in[ls_attention_input_of(&attr, which)];
        for (int64_t n = 0; n < batch; n++)
            for (int64_t i = 0; i < attr.queries; i++) {
                const struct ls_attention_rows rows = ls_attention_rows_of(&from, which, n, 0);
                const size_t at = (size_t)(rows.at + i * rows.pitch) * ls_dtype_size(type);
                const int64_t row = n * attr.cache + position + i;
                ls_dtype_convert(type, (const char *)in[source] + at, LS_F32,
                                 cache + (size_t)row * count, count);
            }
    }
    return attr;
}
