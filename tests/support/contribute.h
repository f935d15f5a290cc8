/* What ACCUMULATE and RECORD ops do, without a net around them.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_SUPPORT_CONTRIBUTE_H
#define LS_TESTS_SUPPORT_CONTRIBUTE_H

#include <stdlib.h>

#include "engine/factors.h"
#include "engine/sums.h"

static inline void contribute_run(const struct ls_device *device, const struct ls_op *op,
                                  const float *numbers, const struct ls_context *context)
{
    const struct ls_kernel *kernel = ls_kernel_find(device->kernels(), op);
    struct ls_prepared prepared = {.kernel = kernel, .op = op};
    void *in[1] = {(float *)(uintptr_t)numbers};
    if (kernel == NULL || (kernel->prepare != NULL && kernel->prepare(&prepared, NULL) != 0) ||
        kernel->run(&prepared, NULL, in, in + 1, NULL, context) != 0)
        abort();
    if (kernel->release != NULL)
        kernel->release(&prepared);
}

/* Adds a contribution of a micro-batch. */
static inline void contribute_to_sum(const struct ls_device *device, struct ls_accumulator *to,
                                     int worker, int micro_batch, int parameter,
                                     const float *gradient)
{
    struct ls_parameter what = {.index = parameter};
    struct ls_value value = {.type = LS_F32}, *input = &value;
    const struct ls_op op = {
        .kind = LS_OP_ACCUMULATE, .inputs = 1, .input = &input, .attr.parameter = &what};
    const struct ls_context context = {
        .worker = worker, .micro_batch = micro_batch, .accumulator = to};
    contribute_run(device, &op, gradient, &context);
}

/* Records `rows` rows of one side. */
static inline void contribute_rows(const struct ls_device *device, const struct ls_factors *to,
                                   int micro_batch, struct ls_parameter *parameter,
                                   enum ls_factor_side side, const float *numbers, size_t rows)
{
    struct ls_value value = {.type = LS_F32}, *input = &value;
    const struct ls_op op = {.kind = LS_OP_RECORD,
                             .inputs = 1,
                             .input = &input,
                             .attr.record = {.parameter = parameter,
                                             .side = side,
                                             .rows = (int64_t)rows,
                                             .columns = (int64_t)parameter->factoring.size[side]}};
    const struct ls_context context = {
        .micro_batch = micro_batch, .factor = ls_factors_target(to, &op.attr.record, micro_batch)};
    contribute_run(device, &op, numbers, &context);
}

#endif
