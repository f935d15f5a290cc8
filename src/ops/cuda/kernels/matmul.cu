/* Products of matrices in the declared order. See sequences.h. SPDX-License-Identifier:
 * BSD-2-Clause
 */
#include "ops/cuda/kernels/numbers.h"
#include "ops/cuda/kernels/product_tile.h"
#include "ops/cuda/kernels/sequences.h"

namespace
{

/* Where the matrix of a place begins. */
__device__ inline int64_t matrix_at(const struct ls_matmul_axes &axes, int operand, int64_t place)
{
    int64_t at = 0;
    for (int i = axes.count - 1; i >= 0; i--) {
        at += place % axes.extent[i] * axes.step[operand][i];
        place /= axes.extent[i];
    }
    return at;
}

/* Matrices of one place of the outer axes: terms are (place of the axes that are added up, k). */
template <class T> struct one_group {
    const T *data;
    const struct ls_matmul_axes *terms; /* NULL: there is one place */
    int operand;
    int64_t depth, line, term; /* steps */
    __device__ float operator()(int64_t, int64_t at, int64_t t) const
    {
        if (terms == NULL)
            return ls_number(data[at * line + t * term]);
        return ls_number(
            data[matrix_at(*terms, operand, t / depth) + at * line + t % depth * term]);
    }
};

template <class T> struct operand_of_all {
    const T *data;
    struct ls_matmul_axes outer, terms;
    int operand;
    int64_t depth, line, term;
};

template <class T>
__device__ inline struct one_group<T> ls_tile_group(const struct operand_of_all<T> &all,
                                                    int64_t group) {
    struct one_group<T> one;
    one.data = all.data + matrix_at(all.outer, all.operand, group);
    one.terms = all.terms.places > 1 ? &all.terms : NULL;
    one.operand = all.operand;
    one.depth = all.depth;
    one.line = all.line;
    one.term = all.term;
    return one;
}

template <class T>
__device__ inline bool ls_tile_by_line(const struct one_group<T> &operand)
{
    return operand.term == 1;
}

template <class T> struct matrices {
    T *data;
    int64_t rows, columns;
    float scale;
    __device__ void operator()(int64_t group, int64_t at, int64_t c, float sum) const
    {
        ls_put(&data[(group * rows + at) * columns + c], scale == 1 ? sum : sum * scale);
    }
};

template <class T>
struct operand_of_all<T> operand_of(const struct ls_cuda_matmul *of, int which, const T *data) {
    const bool a = which == 0, by_term = a ? of->transpose_a : !of->transpose_b;
    const int64_t lines = a ? of->of.rows : of->of.columns;
    struct operand_of_all<T> operand = {
        data, of->of.outer, of->of.terms, which, of->of.depth, by_term ? 1 : of->of.depth,
            by_term ? lines : 1
    };
    return operand;
}

} // namespace

int ls_cuda_multiply_matrices(cudaStream_t stream, const struct ls_cuda_matmul *of, const void *a,
                              const void *b, void *y)
{
    const struct ls_tile_size size = {of->of.rows, of->of.columns,
                                      of->of.terms.places * of->of.depth, of->of.outer.places};
    return ls_by_type(of->bf16, [&](auto in) {
        using T = decltype(in);
        const struct operand_of_all<T> left = operand_of(of, 0, (const T *)a);
        const struct operand_of_all<T> right = operand_of(of, 1, (const T *)b);
        return ls_by_type(of->out_bf16, [&](auto out) {
            using U = decltype(out);
            const struct matrices<U> to = {
                (U *)y, of->of.rows, of->of.columns, of->scale
            };
            return ls_tile_launch(stream, left, right, to, size);
        });
    });
}
