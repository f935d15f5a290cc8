/* Inner products whose gradient is exchanged as its factors: the inputs x and the output gradients
 * dy of all samples of an update. The gradient of the weights, dW = dy^T x, is computed from them
 * tile by tile in the update itself, by the tile's owner: there is no sum of gradients and no
 * memory for one, and between machines rows x (inputs + outputs) numbers are exchanged instead of
 * inputs x outputs.
 *
 * Which do is a static rule on the definition: the shape of the weights, and how many rows an
 * update has.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_IR_FACTORS_H
#define LS_IR_FACTORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ir/dtype.h"

struct ls_parameter;

enum ls_factor_side { LS_FACTOR_INPUT, LS_FACTOR_OUTPUT, LS_FACTOR_SIDES };

/* Of a parameter whose gradient is exchanged as factors (weight is NULL: it is reduced as a sum).
 */
struct ls_factoring {
    struct ls_parameter *weight;   /* [outputs, inputs]; [inputs, outputs] if `transpose` */
    struct ls_parameter *bias;     /* [outputs], its gradient is the sum of dy; NULL: none, or it
                                      does not learn */
    int64_t size[LS_FACTOR_SIDES]; /* numbers in a row of x, of dy */
    int64_t rows;                  /* of an update */
    bool transpose;
    bool portable; /* the inner product is in bf16, or its algorithm is PORTABLE */
};

/* Bytes of `rows` rows of one side of the factors, which are fp32. */
static inline size_t ls_factor_bytes(const struct ls_factoring *factoring, enum ls_factor_side side,
                                     size_t rows)
{
    return rows * (size_t)factoring->size[side] * ls_dtype_size(LS_F32);
}

/* Weights from this size on lie in plain order, and all passes read them so. */
enum { LS_FACTORS_ELEMENTS_MIN = 1 << 15 };

/* Whether an inner product is large enough to be computed from weights in plain order. */
static inline bool ls_product_is_large(int64_t inputs, int64_t outputs)
{
    return inputs >= (LS_FACTORS_ELEMENTS_MIN + outputs - 1) / outputs;
}

/* Whether factors are the smaller thing to keep: rows (inputs + outputs) <= inputs outputs. */
static inline bool ls_factors_pay(int64_t rows, int64_t inputs, int64_t outputs)
{
    return ls_product_is_large(inputs, outputs) &&
           (double)rows * ((double)inputs + (double)outputs) <= (double)inputs * (double)outputs;
}

/* Bytes that are exchanged for a parameter in an update: of factors (the bias comes with its
 * weight), or of a sum. */
size_t ls_parameter_exchange_bytes(const struct ls_parameter *parameter);

#endif
