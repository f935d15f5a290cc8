/* Conversion of elements, and reorders that oneDNN is not asked for: to another type, or of a type
 * other than fp32 and I32.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/convert.h"

#include <string.h>

#include "ops/cpu/kernels.h"
#include "ops/cpu/vector/convert.h"

void ls_cpu_convert(enum ls_dtype from, const void *in, enum ls_dtype to, void *out, size_t n)
{
    const struct ls_vector_convert *vector = ls_vector_convert();
    if (from == LS_F32 && to == LS_BF16)
        vector->f32_to_bf16(in, out, n);
    else if (from == LS_F32 && to == LS_F16)
        vector->f32_to_f16(in, out, n);
    else if (from == LS_BF16 && to == LS_F32)
        vector->bf16_to_f32(in, out, n);
    else if (from == LS_F16 && to == LS_F32)
        vector->f16_to_f32(in, out, n);
    else
        ls_dtype_convert(from, in, to, out, n);
}

/* Where the element of sample n, channel c, at point p behind the channels lies. */
static size_t place(const struct ls_layout *layout, int64_t channels, int64_t points, int64_t n,
                    int64_t c, int64_t p)
{
    int64_t block = layout->block, blocks = (channels + block - 1) / block;
    return (size_t)((((n * blocks + c / block) * points) + p) * block + c % block);
}

void ls_cpu_lay_out(const struct ls_shape *shape, size_t size, const struct ls_layout *from,
                    const void *in, const struct ls_layout *to, void *out)
{
    size_t bytes = ls_layout_elements(to, shape) * size;
    if (from == to || shape->rank < 2) { /* without channels there are no blocks of them */
        memcpy(out, in, bytes);
        return;
    }
    int64_t channels = shape->dim[1], points = ls_shape_count(shape, 2, shape->rank);
    memset(out, 0, bytes);
    for (int64_t n = 0; n < shape->dim[0]; n++)
        for (int64_t c = 0; c < channels; c++)
            for (int64_t p = 0; p < points; p++)
                memcpy((char *)out + place(to, channels, points, n, c, p) * size,
                       (const char *)in + place(from, channels, points, n, c, p) * size, size);
}

void ls_cpu_round_channels_last(const float *in, int64_t n, int64_t channels, int64_t points,
                                uint16_t *out)
{
    enum { PIECE = 4096 };
    uint16_t piece[PIECE];
    const struct ls_vector_convert *vector = ls_vector_convert();
    /* Some whole channels, or some points of one. */
    const int64_t most_channels = points < PIECE ? PIECE / points : 1;
    const int64_t most_points = points < PIECE ? points : PIECE;
    for (; n > 0; n--, in += channels * points, out += channels * points)
        for (int64_t c = 0; c < channels; c += most_channels)
            for (int64_t p = 0; p < points; p += most_points) {
                const int64_t some = channels - c < most_channels ? channels - c : most_channels;
                const int64_t here = points - p < most_points ? points - p : most_points;
                const void *from = in + c * points + p;
                vector->f32_to_bf16(from, piece, (size_t)(some * here));
                for (int64_t j = 0; j < here; j++)
                    for (int64_t i = 0; i < some; i++)
                        out[(p + j) * channels + c + i] = piece[i * here + j];
            }
}

static bool convert_accepts(const struct ls_op *op)
{
    const struct ls_value *x = op->input[0], *y = op->output[0];
    return x->layout->block > 0 && y->layout->block > 0 && ls_dtype_converts(x->type, y->type);
}

static int convert_layouts(const struct ls_op *op, struct ls_op_layouts *layouts,
                           struct ls_error *error)
{
    (void)error;
    layouts->out[0] = op->output[0]->layout; /* set by the plan, which asks for the reorder */
    return 0;
}

static int convert_prepare(struct ls_prepared *prepared, struct ls_error *error)
{
    const struct ls_value *x = prepared->op->input[0], *y = prepared->op->output[0];
    if (x->type != y->type && x->layout != y->layout)
        prepared->scratch_bytes = ls_layout_bytes(x->layout, &x->shape, y->type);
    return ls_own_prepare(prepared, error);
}

static int convert_run(const struct ls_prepared *prepared, void *local, void *const *in,
                       void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)context;
    const struct ls_value *x = prepared->op->input[0], *y = prepared->op->output[0];
    const void *converted = in[0];
    if (x->type != y->type) {
        void *target = x->layout != y->layout ? scratch : out[0];
        ls_cpu_convert(x->type, in[0], y->type, target, ls_value_elements(x));
        converted = target;
    }
    if (converted != out[0])
        ls_cpu_lay_out(&x->shape, ls_dtype_size(y->type), x->layout, converted, y->layout, out[0]);
    return 0;
}

const struct ls_kernel ls_kernel_convert = {
    .kind = LS_OP_REORDER,
    .name = "convert",
    .bits = LS_BITS_EXACT,
    .accepts = convert_accepts,
    .layouts = convert_layouts,
    .prepare = convert_prepare,
    .run = convert_run,
    .in_place = -1,
};
