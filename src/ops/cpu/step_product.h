/* The product of each step of a recurrent layer, of h with the weights, or backwards of a gradient
 * with them: those of ops/cpu/bf16/product.h. The weights are packed into panels once and stay in
 * the second cache for all steps; the rows of h, or of the gradient, are packed step by step.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_STEP_PRODUCT_H
#define LS_OPS_CPU_STEP_PRODUCT_H

#include "ir/op.h"
#include "ops/cpu/bf16/product.h"

/* result = rows [count, terms] times lines [lines, terms]^T */
struct ls_step_product {
    const struct ls_vector_bf16_product *vector;
    bool f32; /* of fp32 numbers, else of bf16 */
    size_t rows, lines, terms;
    size_t a_panel, b_panel; /* bytes */
    size_t pitch;            /* of the result */
    /* Places in scratch memory; panels of a come first. `rounded`: an operand in bf16. */
    size_t b, result, rounded, end;
};

/* Plans products of the attribute's rows with as many `lines` of `terms` numbers. Scratch memory
 * has `end` bytes of it. */
struct ls_step_product ls_step_product_plan(const struct ls_recurrent_attr *attr, int64_t lines,
                                            int64_t terms);
/* Packs the weights w [G H, H] for all products that follow: forward lines are its rows, backward
 * its columns. */
void ls_step_product_weights(const struct ls_step_product *plan, const float *w, bool backward,
                             char *scratch);
/* Multiplies rows with the packed weights; `bf16`: the rows are bf16, else fp32. */
void ls_step_product_multiply(const struct ls_step_product *plan, const void *rows, bool bf16,
                              char *scratch);
/* Where the result of the last product lies: a row for each of the rows, `pitch` apart. */
float *ls_step_product_result(const struct ls_step_product *plan, char *scratch);

#endif
