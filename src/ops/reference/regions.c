/* Rows by number, and maxima and averages over bins of regions.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "device/regions.h"

#include <float.h>

#include "ops/reference/reference.h"

static double pick(const struct ls_call *call, int64_t i)
{
    const struct ls_value *y = call->op->output[0];
    const int64_t run = ls_size(y) / y->shape.dim[0];
    return ls_at(call, 0, (int64_t)ls_in(call, 1)[i / run] * run + i % run);
}

static void pick_backward(const struct ls_call *call)
{
    const struct ls_value *dy = call->op->input[0];
    const int64_t run = ls_size(dy) / dy->shape.dim[0];
    for (int64_t i = 0; i < ls_size(dy); i++)
        call->sum[0][(int64_t)ls_in(call, 1)[i / run] * run + i % run] += ls_at(call, 0, i);
}

/* An element of y, or of dy: its region, its bin, and where its plane of x begins. */
struct element {
    const float *region;
    struct ls_bin bin;
    int64_t plane, width;
};

static struct element element_of(const struct ls_call *call, int64_t at)
{
    const struct ls_op *op = call->op;
    const enum ls_op_kind kind = op->kind;
    const bool forward = kind == LS_OP_REGION_MAX || kind == LS_OP_REGION_AVERAGE;
    const bool maximum = kind == LS_OP_REGION_MAX || kind == LS_OP_REGION_MAX_BACKWARD;
    const int64_t *x = (forward ? op->input[0] : op->output[0])->shape.dim;
    const int64_t *y = (forward ? op->output[0] : op->input[0])->shape.dim;
    const int64_t j = at % y[3], i = at / y[3] % y[2], c = at / y[3] / y[2] % y[1];
    const int64_t r = at / y[3] / y[2] / y[1];
    const float *region =
        ls_in(call, kind == LS_OP_REGION_MAX_BACKWARD ? 2 : 1) + r * LS_REGION_NUMBERS;
    const int64_t plane = maximum ? c : (c * y[2] + i) * y[3] + j;
    return (struct element){.region = region,
                            .bin = (maximum ? ls_region_bin : ls_region_fine_bin)(
                                &op->attr.regions, region, i, j, x[2], x[3]),
                            .plane = ((int64_t)region[0] * x[1] + plane) * x[2] * x[3],
                            .width = x[3]};
}

static void region_max(const struct ls_call *call)
{
    int32_t *index = call->op->outputs > 1 ? call->out[1] : NULL;
    for (int64_t at = 0; at < ls_size(call->op->output[0]); at++) {
        const struct element e = element_of(call, at);
        double largest = ls_bin_is_empty(&e.bin) ? 0 : -(double)FLT_MAX;
        int64_t winner = -1;
        for (int64_t h = e.bin.begin[0]; h < e.bin.end[0]; h++)
            for (int64_t w = e.bin.begin[1]; w < e.bin.end[1]; w++) {
                const double number = ls_at(call, 0, e.plane + h * e.width + w);
                winner = number > largest ? h * e.width + w : winner;
                largest = number > largest ? number : largest;
            }
        call->sum[0][at] = largest;
        if (index != NULL)
            index[at] = (int32_t)winner;
    }
}

static void region_max_backward(const struct ls_call *call)
{
    const int32_t *index = call->in[1];
    for (int64_t at = 0; at < ls_size(call->op->input[0]); at++)
        if (index[at] >= 0)
            call->sum[0][element_of(call, at).plane + index[at]] += ls_at(call, 0, at);
}

static void region_average(const struct ls_call *call)
{
    const bool backward = call->op->kind == LS_OP_REGION_AVERAGE_BACKWARD;
    const struct ls_value *y = backward ? call->op->input[0] : call->op->output[0];
    for (int64_t at = 0; at < ls_size(y); at++) {
        const struct element e = element_of(call, at);
        const double size = (double)ls_bin_size(&e.bin);
        for (int64_t h = e.bin.begin[0]; h < e.bin.end[0]; h++)
            for (int64_t w = e.bin.begin[1]; w < e.bin.end[1]; w++) {
                const int64_t from = e.plane + h * e.width + w;
                if (backward)
                    call->sum[0][from] += ls_at(call, 0, at) / size;
                else
                    call->sum[0][at] += ls_at(call, 0, from);
            }
        if (!backward && !ls_bin_is_empty(&e.bin))
            call->sum[0][at] /= size;
    }
}

const struct ls_compute ls_ref_regions[LS_OP_KINDS] = {
    [LS_OP_PICK] = {.element = pick},
    [LS_OP_PICK_BACKWARD] = {.add = pick_backward},
    [LS_OP_REGION_MAX] = {.add = region_max},
    [LS_OP_REGION_MAX_BACKWARD] = {.add = region_max_backward},
    [LS_OP_REGION_AVERAGE] = {.add = region_average},
    [LS_OP_REGION_AVERAGE_BACKWARD] = {.add = region_average},
};
