/* The loss of scores that are a product, on all devices: LINEAR_LOSS, with or without gradients.
 *
 * Rows that count (their label is not ignored, and is a class) are taken in blocks, in their order;
 * others are not computed, and their gradient is 0. Of a block, with z[v] the score of class v of a
 * row, numbers in fp32 where nothing else is said, each operation rounded, and products P in the
 * declared order (docs/numerics.md, sections 16 and 17, with the terms in the order given here):
 *
 *     z[v] = P(w[v, k] x[k] over the inputs k) + b[v]
 *     m = the largest z;  t[v] = z[v] - m;  e[v] = exp(t[v])
 *     s = the sum of e[v] in double, v by v;  -log p[v] = log(s) - t[v] in double
 *     d[v] = g == 0 ? 0 : e[v] g, with g = a q / s in double;  d[label] = (e[label] / s - 1) a q in
 *            double, where q is the weight of the class and a the loss's factor
 *     dx[k] = P(d[v] w[v, k] over the classes v)
 *     dw[v, k] = P(d[v] x[k] over the rows of the block), added to what earlier blocks gave
 *     db[v] = the sum of d[v] in double over the rows of the block, added in the same way
 *
 * With label smoothing d is as ls_linear_loss_slope has it. A layer in bf16 rounds x, w and d to
 * bf16 for all of their uses in products and in db.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_LINEAR_LOSS_H
#define LS_DEVICE_LINEAR_LOSS_H

#include "device/loss.h"

enum { LS_LINEAR_BLOCK_MAX = 256 }; /* rows */

/* Inputs and outputs of the ops. */
enum { LS_LINEAR_X, LS_LINEAR_LABEL, LS_LINEAR_W, LS_LINEAR_B, LS_LINEAR_BYTES_IN };
enum { LS_LINEAR_DX, LS_LINEAR_DW, LS_LINEAR_DB };

/* Rows of a block: fewer where there are many classes, so that its scores take 64 MiB at most, as
 * long as 32 rows fit into that. */
int64_t ls_linear_loss_block(int64_t classes);

/* What is known of a row. */
struct ls_linear_row {
    int64_t row, label;
    double sum;      /* s */
    float at, power; /* t and e of the label */
    double all;      /* with smoothing: the sum over v of weight[v] t[v], in double, v by v */
    bool hit;        /* no other class has a score as high as the label's */
};

struct ls_linear_sums {
    struct ls_loss_sums loss;
    double figures[LS_LINEAR_FIGURES];
};

/* Finds the next row from `from` on that is computed, and counts those that it passes and this one;
 * returns it, with its label in *label, or the number of rows. */
int64_t ls_linear_loss_next(const struct ls_linear_loss_attr *attr, const float *label,
                            int64_t from, int64_t *class, struct ls_linear_sums *sums);

/* The sum of the weights of all classes, in double, class by class. */
double ls_linear_loss_weights(const struct ls_linear_loss_attr *attr);

/* Adds a row to the sums; `weights` as above, `bytes` NULL where there are none. */
void ls_linear_loss_take(const struct ls_linear_loss_attr *attr, double weights,
                         const struct ls_linear_row *row, const float *bytes,
                         struct ls_linear_sums *sums);

/* Adds the sums to the record of the micro-batch. */
void ls_linear_loss_record(const struct ls_linear_loss_attr *attr, const struct ls_context *context,
                           const struct ls_linear_sums *sums);

/* Without smoothing: g, and d[label]. `scale` is ls_loss_scale. */
float ls_linear_loss_factor(const struct ls_linear_loss_attr *attr, double scale,
                            const struct ls_linear_row *row);
float ls_linear_loss_at_label(const struct ls_linear_loss_attr *attr, double scale,
                              const struct ls_linear_row *row);

/* With smoothing: d[v], of e[v]. */
float ls_linear_loss_slope(const struct ls_linear_loss_attr *attr, double scale, double weights,
                           const struct ls_linear_row *row, int64_t v, float power);

#endif
