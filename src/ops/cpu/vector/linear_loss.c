/* See linear_loss.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/linear_loss.h"

#include "ops/cpu/vector/lanes.h"
#include "ops/cpu/vector/math.h"

static void largest(const float *z, size_t classes, size_t rows, size_t pitch, float *most)
{
    for (size_t v = 0; v < classes; v++, z += pitch) {
        LS_ELEMENTWISE
        for (size_t r = 0; r < rows; r++)
            most[r] = z[r] > most[r] ? z[r] : most[r];
    }
}

static void reach(const float *z, size_t classes, size_t rows, size_t pitch, const float *least,
                  int32_t *count)
{
    for (size_t v = 0; v < classes; v++, z += pitch) {
        LS_ELEMENTWISE
        for (size_t r = 0; r < rows; r++)
            count[r] += z[r] >= least[r];
    }
}

static void powers(float *z, size_t classes, size_t rows, size_t pitch, const float *most,
                   double *sum)
{
    for (size_t v = 0; v < classes; v++, z += pitch) {
        LS_ELEMENTWISE
        for (size_t r = 0; r < rows; r++)
            z[r] = z[r] - most[r];
        LS_ISA_NAME(ls_vector_math).exp(z, z, rows);
        LS_ELEMENTWISE
        for (size_t r = 0; r < rows; r++)
            sum[r] += (double)z[r];
    }
}

static void scale(float *e, size_t classes, size_t rows, size_t pitch, const float *factor)
{
    for (size_t v = 0; v < classes; v++, e += pitch) {
        LS_ELEMENTWISE
        for (size_t r = 0; r < rows; r++)
            e[r] = factor[r] == 0 ? 0 : e[r] * factor[r];
    }
}

static void sum_rows(const float *d, size_t classes, size_t rows, size_t pitch, double *sum)
{
    for (size_t v = 0; v < classes; v++, d += pitch) {
        sum[v] = 0;
        for (size_t r = 0; r < rows; r++)
            sum[v] += (double)d[r];
    }
}

const struct ls_vector_linear_loss LS_ISA_NAME(ls_vector_linear_loss) = {
    .largest = largest,
    .reach = reach,
    .powers = powers,
    .scale = scale,
    .sum_rows = sum_rows,
};
