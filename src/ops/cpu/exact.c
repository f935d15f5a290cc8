/* Exact sums, and double-precision sums of a fixed order.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/exact.h"

#include <math.h>

#include "ops/cpu/vector/exact.h"

uint32_t ls_exact_add(int64_t *sum, const float *gradient, size_t n, int exponent, bool first)
{
    const struct ls_vector_exact *vector = ls_vector_exact();
    double scale = ldexp(1.0, exponent);
    return (first ? vector->store : vector->add)(sum, gradient, n, scale);
}

uint32_t ls_exact_to_float(const int64_t *sum, int exponent, float *out, size_t n)
{
    return ls_vector_exact()->to_float(sum, out, n, ldexp(1.0, -exponent));
}

uint32_t ls_exact_add_each(int64_t *sum, const float *gradient, size_t n, const int32_t *exponent,
                           uint32_t *largest, bool first)
{
    return ls_vector_exact()->add_each(sum, gradient, n, exponent, largest, first);
}

uint32_t ls_exact_add_lanes(int64_t *sum, const float *gradient, size_t n,
                            const int32_t exponent[LS_EXACT_LANES],
                            uint32_t largest[LS_EXACT_LANES], bool first)
{
    return ls_vector_exact()->add_lanes(sum, gradient, n, exponent, largest, first);
}

void ls_exact_to_float_each(const int64_t *sum, const int32_t *exponent, float *out, size_t n)
{
    ls_vector_exact()->to_float_each(sum, out, n, exponent);
}

void ls_exact_to_float_lanes(const int64_t *sum, const int32_t exponent[LS_EXACT_LANES], float *out,
                             size_t n)
{
    ls_vector_exact()->to_float_lanes(sum, out, n, exponent);
}

static size_t chunks_of(size_t n)
{
    return n / LS_EXACT_CHUNK + (n % LS_EXACT_CHUNK != 0);
}

static size_t chunk_length(size_t n, size_t chunk)
{
    size_t left = n - chunk * LS_EXACT_CHUNK;
    return left < LS_EXACT_CHUNK ? left : LS_EXACT_CHUNK;
}

/* Chunks [from, from + count), summed by halves as ls_sum_doubles does. */
static double sum_chunks(double (*sum)(const float *x, size_t n), const float *x, size_t n,
                         size_t from, size_t count)
{
    if (count == 0)
        return 0;
    if (count == 1)
        return sum(x + from * LS_EXACT_CHUNK, chunk_length(n, from));
    size_t half = count - count / 2;
    return sum_chunks(sum, x, n, from, half) + sum_chunks(sum, x, n, from + half, count - half);
}

double ls_sum_floats(const float *x, size_t n)
{
    return sum_chunks(ls_vector_exact()->float_values, x, n, 0, chunks_of(n));
}

double ls_sum_squares(const float *x, size_t n)
{
    return sum_chunks(ls_vector_exact()->float_squares, x, n, 0, chunks_of(n));
}

double ls_sum_magnitudes(const float *x, size_t n)
{
    return sum_chunks(ls_vector_exact()->float_magnitudes, x, n, 0, chunks_of(n));
}

uint32_t ls_largest(const float *x, size_t n)
{
    return ls_vector_exact()->largest(x, n);
}

uint32_t ls_largest_each(const float *x, size_t n, uint32_t *largest)
{
    return ls_vector_exact()->largest_each(x, n, largest);
}

uint32_t ls_largest_lanes(const float *x, size_t n, uint32_t largest[LS_EXACT_LANES])
{
    return ls_vector_exact()->largest_lanes(x, n, largest);
}
