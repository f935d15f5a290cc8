/* Softmax along an axis, and softmax with the logarithmic loss on top.
 *
 *   p = softmax(x);  loss = sum of -log max(p[label], FLT_MIN);  dx = (p - onehot(label)) * factor
 *
 * A position whose label is ignored, or names no class, gets the gradient 0; the latter also makes
 * the loss NaN (see ops/cpu/loss.h).
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <float.h>

#include "ops/cpu/kernels.h"
#include "ops/cpu/label.h"
#include "ops/cpu/loss.h"
#include "ops/cpu/vector/elementwise.h"
#include "ops/cpu/vector/softmax.h"

static struct ls_softmax_shape shape_of(const struct ls_value *x, int axis)
{
    return (struct ls_softmax_shape){.outer = ls_shape_count(&x->shape, 0, axis),
                                     .classes = x->shape.dim[axis],
                                     .inner = ls_shape_count(&x->shape, axis + 1, x->shape.rank)};
}

static void softmax_run(const struct ls_prepared *prepared, void *local, void *const *in,
                        void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)scratch, (void)context;
    const struct ls_op *op = prepared->op;
    const struct ls_softmax_shape shape = shape_of(op->input[0], op->attr.axis);
    ls_vector_softmax()->forward(&shape, in[0], out[0]);
}

static void softmax_backward_run(const struct ls_prepared *prepared, void *local, void *const *in,
                                 void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)scratch, (void)context;
    const struct ls_op *op = prepared->op;
    const struct ls_softmax_shape shape = shape_of(op->input[0], op->attr.axis);
    ls_vector_softmax()->backward(&shape, in[0], in[1], out[0]);
}

/* Collects the probabilities of the true classes of a few positions, then takes the logarithms of
 * all of them. */
static void sum_losses(const struct ls_softmax_shape *shape, const struct ls_loss_attr *attr,
                       const float *p, const float *label, struct ls_loss_sums *sums)
{
    enum { CHUNK = 256 };
    float wanted[CHUNK];
    int64_t count = 0, inner = shape->inner;
    for (int64_t i = 0; i < sums->positions; i++) {
        if (ls_label_ignored(label[i], attr->has_ignore, attr->ignore_label))
            continue;
        sums->valid++;
        int64_t class = ls_label_class(label[i], shape->classes);
        if (class < 0) {
            sums->bad_label = true;
            continue;
        }
        wanted[count++] = p[(i / inner * shape->classes + class) * inner + i % inner];
        if (count == CHUNK) {
            ls_loss_add_logs(wanted, FLT_MIN, count, &sums->sum);
            count = 0;
        }
    }
    ls_loss_add_logs(wanted, FLT_MIN, count, &sums->sum);
}

static void softmax_loss_run(const struct ls_prepared *prepared, void *local, void *const *in,
                             void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)scratch;
    const struct ls_op *op = prepared->op;
    const struct ls_loss_attr *attr = &op->attr.loss;
    const struct ls_softmax_shape shape = shape_of(op->input[0], attr->axis);
    struct ls_loss_sums sums = {.positions = shape.outer * shape.inner, .samples = shape.outer};
    ls_vector_softmax()->forward(&shape, in[0], out[0]);
    sum_losses(&shape, attr, out[0], in[1], &sums);
    ls_loss_add(attr, context, &sums);
}

static void softmax_loss_backward_run(const struct ls_prepared *prepared, void *local,
                                      void *const *in, void *const *out, void *scratch,
                                      const struct ls_context *context)
{
    (void)local, (void)scratch;
    const struct ls_op *op = prepared->op;
    const struct ls_loss_attr *attr = &op->attr.loss;
    const struct ls_softmax_shape shape = shape_of(op->input[0], attr->axis);
    const float *p = in[0], *label = in[1];
    float *dx = out[0], factor = ls_loss_factor(attr, context);
    int64_t positions = shape.outer * shape.inner, inner = shape.inner;
    ls_vector_elementwise()->multiply_by(p, factor, dx, (size_t)(positions * shape.classes));
    for (int64_t i = 0; i < positions; i++) {
        int64_t first = i / inner * shape.classes * inner + i % inner;
        int64_t class = ls_label_class(label[i], shape.classes);
        if (ls_label_ignored(label[i], attr->has_ignore, attr->ignore_label) || class < 0) {
            for (int64_t c = 0; c < shape.classes; c++)
                dx[first + c * inner] = 0;
        } else {
            int64_t at = first + class * inner;
            dx[at] = (p[at] - 1.0F) * factor;
        }
    }
}

const struct ls_kernel ls_kernel_softmax = {
    .kind = LS_OP_SOFTMAX,
    .name = "softmax",
    .prepare = ls_own_prepare,
    .run = softmax_run,
    .in_place = -1,
};

const struct ls_kernel ls_kernel_softmax_backward = {
    .kind = LS_OP_SOFTMAX_BACKWARD,
    .name = "softmax backward",
    .prepare = ls_own_prepare,
    .run = softmax_backward_run,
    .in_place = -1,
};

const struct ls_kernel ls_kernel_softmax_loss = {
    .kind = LS_OP_SOFTMAX_LOSS,
    .name = "softmax loss",
    .prepare = ls_own_prepare,
    .run = softmax_loss_run,
    .in_place = -1,
};

const struct ls_kernel ls_kernel_softmax_loss_backward = {
    .kind = LS_OP_SOFTMAX_LOSS_BACKWARD,
    .name = "softmax loss backward",
    .prepare = ls_own_prepare,
    .run = softmax_loss_backward_run,
    .in_place = -1,
};
