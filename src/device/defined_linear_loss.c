/* The loss of scores that are a product, in plain C; see device/linear_loss.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <sleef.h>
#include <string.h>

#include "device/defined.h"
#include "device/linear_loss.h"
#include "device/product_sum.h"
#include "ir/convert.h"

/* A block while it is computed. */
struct block {
    const struct ls_defined_call *call;
    const struct ls_linear_loss_attr *attr;
    struct ls_linear_row row[LS_LINEAR_BLOCK_MAX];
    int64_t rows;
    bool first;     /* of the micro-batch */
    double scale;   /* of gradients */
    double weights; /* ls_linear_loss_weights */
    float *z;       /* [rows, classes]: then e, then d */
};

static size_t block_scratch(const struct ls_op *op)
{
    const struct ls_linear_loss_attr *attr = &op->attr.linear_loss;
    return (size_t)(ls_linear_loss_block(attr->classes) * attr->classes) * ls_dtype_size(LS_F32);
}

/* A number as a product takes it. */
static float taken(const struct block *block, float x)
{
    uint32_t wide;
    uint16_t rounded;
    if (!block->call->op->bf16)
        return x;
    ls_dtype_convert(LS_F32, &x, LS_BF16, &rounded, 1);
    wide = (uint32_t)rounded << 16;
    memcpy(&x, &wide, sizeof x);
    return x;
}

static const float *x_of(const struct block *block, int64_t r)
{
    return (const float *)block->call->in[LS_LINEAR_X] + block->row[r].row * block->attr->inputs;
}

static float weight(const struct block *block, int64_t v, int64_t k)
{
    return taken(block, ((const float *)block->call->in[LS_LINEAR_W])[v * block->attr->inputs + k]);
}

static void score_row(const struct block *block, int64_t r)
{
    const struct ls_linear_loss_attr *attr = block->attr;
    const float *bias = attr->bias ? block->call->in[LS_LINEAR_B] : NULL;
    for (int64_t v = 0; v < attr->classes; v++) {
        struct ls_product_sum sum = {.terms = 0};
        for (int64_t k = 0; k < attr->inputs; k++)
            ls_product_sum_add(&sum, weight(block, v, k), taken(block, x_of(block, r)[k]));
        const float z = ls_product_sum_end(&sum);
        block->z[r * attr->classes + v] = bias != NULL ? z + bias[v] : z;
    }
}

/* From scores to exponentials. */
static void measure_row(struct block *block, int64_t r)
{
    const struct ls_linear_loss_attr *attr = block->attr;
    struct ls_linear_row *row = &block->row[r];
    float *z = block->z + r * attr->classes, most = -INFINITY;
    const float label = z[row->label];
    int64_t reach = 0;
    for (int64_t v = 0; v < attr->classes; v++) {
        most = z[v] > most ? z[v] : most;
        reach += z[v] >= label;
    }
    row->hit = attr->hits && reach == 1;
    row->at = label - most;
    for (int64_t v = 0; v < attr->classes; v++) {
        const float t = z[v] - most;
        row->all += ls_loss_weight(&attr->loss, v) * (double)t;
        z[v] = Sleef_cinz_expf1_u10purec(t);
        row->sum += (double)z[v];
    }
    row->power = z[row->label];
}

/* From exponentials to the gradient of the scores. */
static void slope_row(struct block *block, int64_t r)
{
    const struct ls_linear_loss_attr *attr = block->attr;
    const struct ls_linear_row *row = &block->row[r];
    const float factor = ls_linear_loss_factor(attr, block->scale, row);
    float *d = block->z + r * attr->classes;
    for (int64_t v = 0; v < attr->classes; v++) {
        if (attr->loss.smoothing > 0)
            d[v] = ls_linear_loss_slope(attr, block->scale, block->weights, row, v, d[v]);
        else if (v == row->label)
            d[v] = ls_linear_loss_at_label(attr, block->scale, row);
        else
            d[v] = factor == 0 ? 0 : d[v] * factor;
        d[v] = taken(block, d[v]);
    }
}

static void add_data(const struct block *block, float *dx)
{
    const struct ls_linear_loss_attr *attr = block->attr;
    for (int64_t r = 0; r < block->rows; r++)
        for (int64_t k = 0; k < attr->inputs; k++) {
            struct ls_product_sum sum = {.terms = 0};
            for (int64_t v = 0; v < attr->classes; v++)
                ls_product_sum_add(&sum, block->z[r * attr->classes + v], weight(block, v, k));
            dx[block->row[r].row * attr->inputs + k] = ls_product_sum_end(&sum);
        }
}

static void add_weights(const struct block *block, float *dw)
{
    const struct ls_linear_loss_attr *attr = block->attr;
    for (int64_t v = 0; v < attr->classes; v++)
        for (int64_t k = 0; k < attr->inputs; k++) {
            struct ls_product_sum sum = {.terms = 0};
            for (int64_t r = 0; r < block->rows; r++)
                ls_product_sum_add(&sum, block->z[r * attr->classes + v],
                                   taken(block, x_of(block, r)[k]));
            const float part = ls_product_sum_end(&sum);
            float *to = &dw[v * attr->inputs + k];
            *to = block->first ? part : *to + part;
        }
}

static void add_bias(const struct block *block, float *db)
{
    const struct ls_linear_loss_attr *attr = block->attr;
    for (int64_t v = 0; v < attr->classes; v++) {
        double sum = 0;
        for (int64_t r = 0; r < block->rows; r++)
            sum += (double)block->z[r * attr->classes + v];
        db[v] = block->first ? (float)sum : db[v] + (float)sum;
    }
}

/* An output of the op with gradients; NULL where it is absent. */
static float *output(const struct ls_defined_call *call, int k)
{
    return k < call->op->outputs ? call->out[k] : NULL;
}

static void compute_block(struct block *block, struct ls_linear_sums *sums)
{
    const struct ls_defined_call *call = block->call;
    const struct ls_linear_loss_attr *attr = block->attr;
    const float *bytes = attr->bytes ? call->in[LS_LINEAR_BYTES_IN] : NULL;
    const bool gradients = call->op->kind == LS_OP_LINEAR_LOSS_GRADIENT;
    for (int64_t r = 0; r < block->rows; r++) {
        score_row(block, r);
        measure_row(block, r);
        ls_linear_loss_take(attr, block->weights, &block->row[r], bytes, sums);
        if (gradients)
            slope_row(block, r);
    }
    if (output(call, LS_LINEAR_DX) != NULL)
        add_data(block, output(call, LS_LINEAR_DX));
    if (output(call, LS_LINEAR_DW) != NULL)
        add_weights(block, output(call, LS_LINEAR_DW));
    if (output(call, LS_LINEAR_DB) != NULL)
        add_bias(block, output(call, LS_LINEAR_DB));
}

static void linear_loss(const struct ls_defined_call *call)
{
    const struct ls_linear_loss_attr *attr = &call->op->attr.linear_loss;
    const int64_t most = ls_linear_loss_block(attr->classes);
    struct ls_linear_sums sums = {.loss.sum = 0};
    struct block block = {.call = call,
                          .attr = attr,
                          .first = true,
                          .scale = ls_loss_scale(&attr->loss, call->context),
                          .weights = ls_linear_loss_weights(attr),
                          .z = call->scratch};
    for (int k = 0; k < call->op->outputs; k++)
        if (call->out[k] != NULL)
            memset(call->out[k], 0,
                   (size_t)ls_shape_size(&call->op->output[k]->shape) * ls_dtype_size(LS_F32));
    for (int64_t row = 0, label = 0; row < attr->rows; row++) {
        row = ls_linear_loss_next(attr, call->in[LS_LINEAR_LABEL], row, &label, &sums);
        if (row < attr->rows)
            block.row[block.rows++] = (struct ls_linear_row){.row = row, .label = label};
        if (block.rows == most || (row >= attr->rows - 1 && block.rows > 0)) {
            compute_block(&block, &sums);
            block.first = false;
            block.rows = 0;
        }
    }
    ls_linear_loss_record(attr, call->context, &sums);
}

const struct ls_defined ls_defined_linear_loss[LS_OP_KINDS] = {
    [LS_OP_LINEAR_LOSS] = {.run = linear_loss, .scratch = block_scratch},
    [LS_OP_LINEAR_LOSS_GRADIENT] = {.run = linear_loss, .scratch = block_scratch},
};
