/* Gradients from factors. See ops/cpu/factors.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/factors.h"

#include "ops/cpu/bf16/units.h"
#include "ops/cpu/vector/product.h"

/* Row i, column j of dw [outputs, inputs] is the sum of dy[r, i] x[r, j] over rows r; of its
 * transpose, x and dy change places. */
int ls_factors_weight_gradient(const struct ls_factoring *factoring,
                               const struct ls_factor_rows *factors,
                               const struct ls_gradient_piece *piece, float *gradient,
                               struct ls_error *error)
{
    (void)error;
    enum ls_factor_side down = factoring->transpose ? LS_FACTOR_INPUT : LS_FACTOR_OUTPUT;
    enum ls_factor_side along = factoring->transpose ? LS_FACTOR_OUTPUT : LS_FACTOR_INPUT;
    size_t width = (size_t)factoring->size[along];
    size_t i = piece->begin / width, j = piece->begin % width;
    struct ls_product product = {
        .rows = piece->rows,
        .columns = piece->columns,
        .depth = factors->rows,
        .p = {.data = factors->side[down] + i, .row = 1, .step = (size_t)factoring->size[down]},
        .q = factors->side[along] + j,
        .q_row = width,
        .out = gradient,
        .out_row = piece->columns,
        .next_row = piece->row};
    _Static_assert((int)LS_GRADIENT_NEXT == (int)LS_PRODUCT_NEXT, "each is passed on");
    for (int a = 0; a < LS_GRADIENT_NEXT; a++)
        product.next[a] = piece->next[a] != NULL ? piece->next[a] + piece->begin : NULL;
    ls_bf16_combine *combine = ls_bf16_unit_combine();
    if (combine == NULL || !combine(&product)) /* in FP32 the first numbers say no */
        ls_vector_product()->combine(&product);
    return 0;
}

int ls_factors_bias_gradient(const struct ls_factoring *factoring,
                             const struct ls_factor_rows *factors,
                             const struct ls_gradient_piece *piece, float *gradient,
                             struct ls_error *error)
{
    (void)error;
    ls_vector_product()->add_rows(factors->side[LS_FACTOR_OUTPUT] + piece->begin,
                                  (size_t)factoring->size[LS_FACTOR_OUTPUT], factors->rows,
                                  gradient, piece->columns);
    return 0;
}
