/* ArgMax: the places of the top_k largest of a list of numbers, largest first.
 *
 * The list is walked once with a heap of the best so far, whose root is the least of them; taking
 * the roots off from the end sorts it. Of equal numbers the later one counts as the larger; a NaN
 * counts as larger than any number (Caffe's order of them is whatever its sort makes of it).
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/kernels.h"

/* Numbers `stride` apart. */
struct list {
    const float *x;
    int64_t stride;
};

static bool is_larger(const struct list *list, int32_t a, int32_t b)
{
    float left = list->x[a * list->stride], right = list->x[b * list->stride];
    bool left_nan = left != left, right_nan = right != right;
    if (left_nan || right_nan)
        return left_nan == right_nan ? a > b : left_nan;
    return left != right ? left > right : a > b;
}

/* Moves the root of heap[0..count) down to where it belongs. */
static void sift(const struct list *list, int32_t *heap, int64_t root, int64_t count)
{
    int32_t place = heap[root];
    for (;;) {
        int64_t child = 2 * root + 1;
        if (child >= count)
            break;
        if (child + 1 < count && is_larger(list, heap[child], heap[child + 1]))
            child++;
        if (!is_larger(list, place, heap[child]))
            break;
        heap[root] = heap[child];
        root = child;
    }
    heap[root] = place;
}

static void find_largest(const struct list *list, int64_t n, int64_t k, int32_t *best)
{
    for (int64_t i = 0; i < k; i++)
        best[i] = (int32_t)i;
    for (int64_t i = k / 2; i-- > 0;)
        sift(list, best, i, k);
    for (int64_t i = k; i < n; i++)
        if (is_larger(list, (int32_t)i, best[0])) {
            best[0] = (int32_t)i;
            sift(list, best, 0, k);
        }
    for (int64_t i = k - 1; i > 0; i--) {
        int32_t least = best[0];
        best[0] = best[i];
        best[i] = least;
        sift(list, best, 0, i);
    }
}

static int argmax_prepare(struct ls_prepared *prepared, struct ls_error *error)
{
    prepared->scratch_bytes = (size_t)prepared->op->attr.argmax.top_k * sizeof(int32_t);
    return ls_own_prepare(prepared, error);
}

/* Writes the places, or the numbers there, `stride` apart. */
static void write_best(const struct list *list, const int32_t *best, int64_t k, bool values,
                       float *y, int64_t stride)
{
    for (int64_t i = 0; i < k; i++)
        y[i * stride] = values ? list->x[best[i] * list->stride] : (float)best[i];
}

static void along_axis(const struct ls_op *op, const float *x, float *y, int32_t *best)
{
    const struct ls_argmax_attr *attr = &op->attr.argmax;
    const struct ls_shape *shape = &op->input[0]->shape;
    int64_t n = shape->dim[attr->axis], k = attr->top_k;
    int64_t inner = ls_shape_count(shape, attr->axis + 1, shape->rank);
    int64_t outer = ls_shape_count(shape, 0, attr->axis);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            const struct list list = {x + o * n * inner + i, inner};
            find_largest(&list, n, k, best);
            write_best(&list, best, k, attr->values, y + o * k * inner + i, inner);
        }
}

static void of_rows(const struct ls_op *op, const float *x, float *y, int32_t *best)
{
    const struct ls_argmax_attr *attr = &op->attr.argmax;
    const struct ls_shape *shape = &op->input[0]->shape;
    int64_t n = ls_shape_count(shape, 1, shape->rank), k = attr->top_k;
    for (int64_t r = 0; r < shape->dim[0]; r++) {
        const struct list list = {x + r * n, 1};
        find_largest(&list, n, k, best);
        write_best(&list, best, k, false, y, 1);
        y += k;
        if (!attr->values)
            continue;
        write_best(&list, best, k, true, y, 1);
        y += k;
    }
}

static int argmax_run(const struct ls_prepared *prepared, void *local, void *const *in,
                      void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)context;
    const struct ls_op *op = prepared->op;
    if (op->attr.argmax.axis >= 0)
        along_axis(op, in[0], out[0], scratch);
    else
        of_rows(op, in[0], out[0], scratch);
    return 0;
}

const struct ls_kernel ls_kernel_argmax = {
    .kind = LS_OP_ARGMAX,
    .bits = LS_BITS_EXACT,
    .name = "argmax",
    .prepare = argmax_prepare,
    .run = argmax_run,
    .in_place = -1,
};
