/* What the kernels of losses share, and the losses that are a loop over elements.
 *
 *   log loss:  sum of -w[label] log max(p[label], 1e-20)  (MultinomialLogisticLoss)
 *   sigmoid:   sum of log(1 + exp(-|x|)) - x (t - [x >= 0])  (SigmoidCrossEntropyLoss)
 *   euclidean: sum of (a - b)^2 / 2
 *
 * Sums are kept in double and run over the elements in a fixed order.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/loss.h"

#include <math.h>
#include <string.h>

#include "ops/cpu/kernels.h"
#include "device/label.h"
#include "ops/cpu/vector/elementwise.h"
#include "ops/cpu/vector/math.h"

enum { CHUNK = 256 };

void ls_loss_logs(const float *p, float least, int64_t n, float *logs)
{
    for (int64_t i = 0; i < n; i++)
        logs[i] = p[i] < least ? least : p[i]; /* written so that a NaN stays one */
    ls_vector_math()->log(logs, logs, (size_t)n);
}

void ls_loss_add_logs(const float *p, const double *weight, float least, int64_t n, double *sum)
{
    float logs[CHUNK];
    for (int64_t first = 0; first < n; first += CHUNK) {
        int64_t count = n - first < CHUNK ? n - first : CHUNK;
        ls_loss_logs(p + first, least, count, logs);
        for (int64_t i = 0; i < count; i++)
            *sum -= weight[first + i] * (double)logs[i];
    }
}

static int64_t elements(const struct ls_op *op)
{
    return ls_shape_size(&op->input[0]->shape);
}

/* ---- Log loss -------------------------------------------------------------------------------- */

static int log_run(const struct ls_prepared *prepared, void *local, void *const *in,
                   void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)out, (void)scratch;
    const struct ls_op *op = prepared->op;
    const struct ls_loss_attr *attr = &op->attr.loss;
    const float *p = in[0], *label = in[1];
    int64_t samples = op->input[0]->shape.dim[0], classes = elements(op) / samples;
    struct ls_loss_sums sums = {.positions = samples, .samples = samples};
    for (int64_t n = 0; n < samples; n++) {
        if (ls_label_ignored(label[n], attr->has_ignore, attr->ignore_label))
            continue;
        sums.valid++;
        int64_t class = ls_label_class(label[n], classes);
        if (class < 0) {
            sums.bad_label = true;
            continue;
        }
        double weight = ls_loss_weight(attr, class);
        sums.weights += weight;
        ls_loss_add_logs(p + n * classes + class, &weight, LS_LEAST_PROBABILITY, 1, &sums.sum);
    }
    ls_loss_add(attr, context, &sums);
    return 0;
}

static int log_backward_run(const struct ls_prepared *prepared, void *local, void *const *in,
                            void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)scratch;
    const struct ls_op *op = prepared->op;
    const struct ls_loss_attr *attr = &op->attr.loss;
    const float *p = in[0], *label = in[1];
    float *dp = out[0];
    double scale = ls_loss_scale(attr, context);
    int64_t samples = op->input[0]->shape.dim[0], classes = elements(op) / samples;
    memset(dp, 0, (size_t)elements(op) * sizeof *dp);
    for (int64_t n = 0; n < samples; n++) {
        int64_t class = ls_label_class(label[n], classes);
        if (class < 0 || ls_label_ignored(label[n], attr->has_ignore, attr->ignore_label))
            continue;
        float probability = p[n * classes + class];
        if (probability < LS_LEAST_PROBABILITY)
            probability = LS_LEAST_PROBABILITY;
        dp[n * classes + class] =
            (float)(-(scale * ls_loss_weight(attr, class)) / (double)probability);
    }
    return 0;
}

/* ---- Sigmoid cross-entropy ------------------------------------------------------------------- */

/* log(1 + exp(-|x|)) of up to CHUNK elements. */
static void soft_part(const float *x, int64_t n, float *soft)
{
    for (int64_t i = 0; i < n; i++)
        soft[i] = -fabsf(x[i]);
    ls_vector_math()->exp(soft, soft, (size_t)n);
    for (int64_t i = 0; i < n; i++)
        soft[i] += 1.0F;
    ls_vector_math()->log(soft, soft, (size_t)n);
}

static int sigmoid_run(const struct ls_prepared *prepared, void *local, void *const *in,
                       void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)out, (void)scratch;
    const struct ls_op *op = prepared->op;
    const struct ls_loss_attr *attr = &op->attr.loss;
    const float *x = in[0], *target = in[1];
    int64_t n = elements(op);
    struct ls_loss_sums sums = {.positions = n, .samples = ls_value_sample_rows(op->input[0])};
    for (int64_t first = 0; first < n; first += CHUNK) {
        float soft[CHUNK];
        int64_t count = n - first < CHUNK ? n - first : CHUNK;
        soft_part(x + first, count, soft);
        for (int64_t i = 0; i < count; i++) {
            float value = x[first + i], wanted = target[first + i];
            if (ls_label_ignored(wanted, attr->has_ignore, attr->ignore_label))
                continue;
            sums.sum +=
                (double)soft[i] - (double)value * ((double)wanted - (value >= 0 ? 1.0 : 0.0));
            sums.valid++;
        }
    }
    ls_loss_add(attr, context, &sums);
    return 0;
}

static int sigmoid_backward_run(const struct ls_prepared *prepared, void *local, void *const *in,
                                void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)scratch;
    const struct ls_op *op = prepared->op;
    const struct ls_loss_attr *attr = &op->attr.loss;
    const float *target = in[1];
    float *dx = out[0], factor = ls_loss_factor(attr, context);
    int64_t n = elements(op);
    ls_vector_elementwise()->sigmoid(in[0], dx, (size_t)n);
    for (int64_t i = 0; i < n; i++)
        dx[i] = (dx[i] - target[i]) * factor;
    for (int64_t i = 0; attr->has_ignore && i < n; i++)
        if (ls_label_ignored(target[i], true, attr->ignore_label))
            dx[i] = 0;
    return 0;
}

/* ---- Euclidean ------------------------------------------------------------------------------- */

static int euclidean_run(const struct ls_prepared *prepared, void *local, void *const *in,
                         void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)out, (void)scratch;
    enum { LANES = 16 };
    const struct ls_op *op = prepared->op;
    const float *a = in[0], *b = in[1];
    int64_t n = elements(op), samples = ls_value_sample_rows(op->input[0]);
    double lane[LANES] = {0};
    for (int64_t first = 0; first < n; first += LANES) {
        int64_t count = n - first < LANES ? n - first : LANES;
        for (int64_t l = 0; l < count; l++) {
            double difference = (double)a[first + l] - (double)b[first + l];
            lane[l] += difference * difference;
        }
    }
    struct ls_loss_sums sums = {.valid = samples, .positions = samples, .samples = samples};
    for (int l = 0; l < LANES; l++)
        sums.sum += lane[l];
    sums.sum /= 2;
    ls_loss_add(&op->attr.loss, context, &sums);
    return 0;
}

static int euclidean_backward_run(const struct ls_prepared *prepared, void *local, void *const *in,
                                  void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)scratch;
    const struct ls_op *op = prepared->op;
    const float *a = in[0], *b = in[1];
    float *dx = out[0];
    float factor = op->attr.loss.scale * ls_loss_factor(&op->attr.loss, context);
    int64_t n = elements(op);
    for (int64_t i = 0; i < n; i++)
        dx[i] = (a[i] - b[i]) * factor;
    return 0;
}

#define LOSS_KERNEL(symbol, kind_, bits_, name_, run_)                                             \
    const struct ls_kernel symbol = {                                                              \
        .kind = kind_,                                                                             \
        .bits = bits_,                                                                             \
        .name = name_,                                                                             \
        .prepare = ls_own_prepare,                                                                 \
        .run = run_,                                                                               \
        .in_place = -1,                                                                            \
    }

LOSS_KERNEL(ls_kernel_log_loss, LS_OP_LOG_LOSS, LS_BITS_OWN, "log loss", log_run);
LOSS_KERNEL(ls_kernel_log_loss_backward, LS_OP_LOG_LOSS_BACKWARD, LS_BITS_OWN, "log loss backward",
            log_backward_run);
LOSS_KERNEL(ls_kernel_sigmoid_loss, LS_OP_SIGMOID_LOSS, LS_BITS_OWN, "sigmoid loss", sigmoid_run);
LOSS_KERNEL(ls_kernel_sigmoid_loss_backward, LS_OP_SIGMOID_LOSS_BACKWARD, LS_BITS_OWN,
            "sigmoid loss backward", sigmoid_backward_run);
LOSS_KERNEL(ls_kernel_euclidean_loss, LS_OP_EUCLIDEAN_LOSS, LS_BITS_OWN, "euclidean loss",
            euclidean_run);
LOSS_KERNEL(ls_kernel_euclidean_loss_backward, LS_OP_EUCLIDEAN_LOSS_BACKWARD, LS_BITS_NOT_PROBED,
            "euclidean loss backward", euclidean_backward_run);
