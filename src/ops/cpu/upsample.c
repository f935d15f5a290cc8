/* Planes enlarged, each number of x by a field of its copies or back at the place that a maximum
 * came from, and their gradients. Everything is plain; forward passes, and the way back to what was
 * unpooled, are moves, so they take any type of numbers. The gradient of a field is its sum in
 * double, row by row, rounded once.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "ops/cpu/kernels.h"
#include "ops/cpu/tiles.h"

/* The planes of x, or dx, and those of y, or dy. */
struct enlargement {
    int64_t planes, rows, columns;
    int64_t large_rows, large_columns;
    size_t size; /* of an element */
};

static struct enlargement describe(const struct ls_op *op, bool forward)
{
    const struct ls_value *small = forward ? op->input[0] : op->output[0];
    const struct ls_value *large = forward ? op->output[0] : op->input[0];
    return (struct enlargement){.planes = ls_shape_count(&small->shape, 0, 2),
                                .rows = small->shape.dim[2],
                                .columns = small->shape.dim[3],
                                .large_rows = large->shape.dim[2],
                                .large_columns = large->shape.dim[3],
                                .size = ls_dtype_size(small->type)};
}

/* Each element of a row `factor` times. */
static void widen_row(const struct enlargement *sizes, int64_t factor, const char *x, char *y)
{
    for (int64_t column = 0; column < sizes->columns; column++, x += sizes->size)
        for (int64_t i = 0; i < factor; i++, y += sizes->size)
            memcpy(y, x, sizes->size);
}

static int upsample_run(const struct ls_prepared *prepared, void *local, void *const *in,
                        void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)scratch, (void)context;
    const struct enlargement sizes = describe(prepared->op, true);
    const int64_t *factor = prepared->op->attr.upsample.factor;
    const size_t narrow = (size_t)sizes.columns * sizes.size;
    const size_t wide = (size_t)sizes.large_columns * sizes.size;
    const char *x = in[0];
    char *y = out[0];
    for (int64_t row = 0; row < sizes.planes * sizes.rows; row++, x += narrow) {
        char *first = y;
        widen_row(&sizes, factor[1], x, first);
        for (y += wide; y < first + (size_t)factor[0] * wide; y += wide)
            memcpy(y, first, wide);
    }
    return 0;
}

static int upsample_backward_run(const struct ls_prepared *prepared, void *local, void *const *in,
                                 void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)scratch, (void)context;
    const struct enlargement sizes = describe(prepared->op, false);
    const int64_t *factor = prepared->op->attr.upsample.factor;
    const float *dy = in[0];
    float *dx = out[0];
    for (int64_t row = 0; row < sizes.planes * sizes.rows; row++) {
        const float *field = dy + row * factor[0] * sizes.large_columns;
        for (int64_t column = 0; column < sizes.columns; column++, field += factor[1]) {
            double sum = 0;
            for (int64_t i = 0; i < factor[0]; i++)
                for (int64_t j = 0; j < factor[1]; j++)
                    sum += (double)field[i * sizes.large_columns + j];
            *dx++ = (float)sum;
        }
    }
    return 0;
}

static int unpool_run(const struct ls_prepared *prepared, void *local, void *const *in,
                      void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)scratch, (void)context;
    const struct enlargement sizes = describe(prepared->op, true);
    const char *x = in[0];
    const int32_t *index = in[1];
    char *plane = out[0];
    memset(plane, 0, ls_value_bytes(prepared->op->output[0]));
    for (int64_t p = 0; p < sizes.planes; p++) {
        for (int64_t i = 0; i < sizes.rows * sizes.columns; i++, index++, x += sizes.size)
            if (*index >= 0)
                memcpy(plane + (size_t)*index * sizes.size, x, sizes.size);
        plane += (size_t)(sizes.large_rows * sizes.large_columns) * sizes.size;
    }
    return 0;
}

static int unpool_backward_run(const struct ls_prepared *prepared, void *local, void *const *in,
                               void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)scratch, (void)context;
    const struct enlargement sizes = describe(prepared->op, false);
    const char *plane = in[0];
    const int32_t *index = in[1];
    char *dx = out[0];
    for (int64_t p = 0; p < sizes.planes; p++) {
        for (int64_t i = 0; i < sizes.rows * sizes.columns; i++, index++, dx += sizes.size)
            if (*index >= 0)
                memcpy(dx, plane + (size_t)*index * sizes.size, sizes.size);
            else
                memset(dx, 0, sizes.size);
        plane += (size_t)(sizes.large_rows * sizes.large_columns) * sizes.size;
    }
    return 0;
}

const struct ls_kernel ls_kernel_upsample = {
    .kind = LS_OP_UPSAMPLE,
    .bits = LS_BITS_EXACT,
    .name = "upsample",
    .takes_bf16 = ls_all_bf16,
    .prepare = ls_own_prepare,
    .run = upsample_run,
    .in_place = -1,
};

const struct ls_kernel ls_kernel_upsample_backward = {
    .kind = LS_OP_UPSAMPLE_BACKWARD,
    .bits = LS_BITS_EXACT,
    .name = "upsample backward",
    .prepare = ls_own_prepare,
    .run = upsample_backward_run,
    .in_place = -1,
};

const struct ls_kernel ls_kernel_unpool = {
    .kind = LS_OP_UNPOOL,
    .bits = LS_BITS_EXACT,
    .name = "unpool",
    .takes_bf16 = ls_all_bf16,
    .prepare = ls_own_prepare,
    .run = unpool_run,
    .in_place = -1,
};

const struct ls_kernel ls_kernel_unpool_backward = {
    .kind = LS_OP_UNPOOL_BACKWARD,
    .bits = LS_BITS_EXACT,
    .name = "unpool backward",
    .takes_bf16 = ls_all_bf16,
    .prepare = ls_own_prepare,
    .run = unpool_backward_run,
    .in_place = -1,
};
