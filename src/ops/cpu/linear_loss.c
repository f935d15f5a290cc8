/* The loss of scores that are a product, with or without its gradients; device/linear_loss.h says
 * what it computes, in which order.
 *
 * The scores of a block of rows lie class by class, [classes, rows]: the products with the weights
 * write and read them so without transposing anything. They become exponentials and then gradients
 * where they are. Each of the three products reads the weights, or writes their gradient, once a
 * block, which is why blocks have many rows.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <string.h>

#include "device/linear_loss.h"
#include "ops/cpu/bf16/product.h"
#include "ops/cpu/bf16/wide.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/vector/convert.h"
#include "ops/cpu/vector/elementwise.h"
#include "ops/cpu/vector/linear_loss.h"

enum { ROWS = LS_LINEAR_BLOCK_MAX, LINE = 64, CLASSES_AT_ONCE = 128 };

/* Where in the scratch what lies. */
struct room {
    size_t scores, x, product, end;
    int64_t rows, pitch; /* of a block; numbers from a class to the next */
};

/* A block while it is computed. */
struct block {
    const struct ls_op *op;
    const struct ls_linear_loss_attr *attr;
    void *const *in, *const *out;
    struct ls_linear_row row[ROWS];
    int64_t rows, pitch;
    bool first;     /* of the micro-batch */
    double scale;   /* of gradients */
    double weights; /* ls_linear_loss_weights */
    float *z;       /* [classes, pitch]: then e, then d, which may be bf16 (2 pitch a class) */
    void *x;        /* [rows, inputs], maybe bf16 */
    void *product;  /* scratch of products */
};

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t line_end(size_t bytes)
{
    return (bytes + LINE - 1) / LINE * LINE;
}

/* Scratch of the products. How many rows of a block count is known when it is computed. */
static size_t product_bytes(const struct ls_op *op, int64_t rows)
{
    const struct ls_linear_loss_attr *attr = &op->attr.linear_loss;
    const int64_t classes = attr->classes, inputs = attr->inputs;
    const bool f32 = !op->bf16;
    size_t bytes = ls_bf16_product_scratch_up_to(f32, classes, rows, inputs);
    bytes = larger(bytes, ls_bf16_product_scratch_up_to(f32, rows, inputs, classes));
    for (int64_t some = 1; some <= rows; some++)
        bytes = larger(bytes, ls_bf16_product_scratch(f32, classes, inputs, some));
    return bytes;
}

static struct room room_of(const struct ls_op *op)
{
    const struct ls_linear_loss_attr *attr = &op->attr.linear_loss;
    const int64_t most = ls_linear_loss_block(attr->classes), unit = LINE / (int64_t)sizeof(float);
    struct room room = {.rows = attr->rows < most ? attr->rows : most};
    room.pitch = (room.rows + unit - 1) / unit * unit;
    room.x = (size_t)(attr->classes * room.pitch) * sizeof(float);
    room.product = line_end(room.x + (size_t)(room.rows * attr->inputs) * sizeof(float));
    room.end = room.product + product_bytes(op, room.rows);
    return room;
}

/* ---- Products -------------------------------------------------------------------------------- */

/* `rows` lines of `terms` numbers each that lie one behind the other; by_term the other way. */
static struct ls_bf16_operand operand(const void *data, bool by_term, int64_t lines, size_t pitch)
{
    return (struct ls_bf16_operand){
        .lines = lines, .by_term = by_term, .data = data, .pitch = pitch};
}

static struct ls_bf16_operand weights(const struct block *block, bool by_term,
                                      struct ls_bf16_wide *wide)
{
    const struct ls_linear_loss_attr *attr = block->attr;
    struct ls_bf16_operand w =
        operand(block->in[LS_LINEAR_W], by_term, by_term ? attr->inputs : attr->classes,
                (size_t)attr->inputs);
    if (block->op->bf16) {
        *wide = (struct ls_bf16_wide){.data = block->in[LS_LINEAR_W], .columns = attr->inputs};
        w.read = ls_bf16_read_wide;
        w.user = wide;
    }
    return w;
}

/* Gradients of the scores: those of a class (by_term: of a row) are a line. */
static struct ls_bf16_operand slopes(const struct block *block, bool by_term)
{
    return operand(block->z, by_term, by_term ? block->rows : block->attr->classes,
                   (size_t)(block->op->bf16 ? 2 * block->pitch : block->pitch));
}

static void write_scores(const struct ls_bf16_product *product, int64_t i, int64_t rows, int64_t j,
                         int64_t columns, float *tile, size_t pitch)
{
    const struct block *block = product->user;
    const float *bias = block->attr->bias ? block->in[LS_LINEAR_B] : NULL;
    for (int64_t v = i; v < i + rows; v++, tile += pitch) {
        float *to = block->z + v * block->pitch + j;
        for (int64_t r = 0; r < columns; r++)
            to[r] = bias != NULL ? tile[r] + bias[v] : tile[r];
    }
}

static void write_data(const struct ls_bf16_product *product, int64_t i, int64_t rows, int64_t j,
                       int64_t columns, float *tile, size_t pitch)
{
    const struct block *block = product->user;
    float *dx = block->out[LS_LINEAR_DX];
    for (int64_t r = i; r < i + rows; r++, tile += pitch)
        memcpy(dx + block->row[r].row * block->attr->inputs + j, tile,
               (size_t)columns * sizeof *dx);
}

static void write_weights(const struct ls_bf16_product *product, int64_t i, int64_t rows, int64_t j,
                          int64_t columns, float *tile, size_t pitch)
{
    const struct block *block = product->user;
    for (int64_t v = i; v < i + rows; v++, tile += pitch) {
        float *to = (float *)block->out[LS_LINEAR_DW] + v * block->attr->inputs + j;
        if (block->first)
            memcpy(to, tile, (size_t)columns * sizeof *to);
        else
            ls_vector_elementwise()->add(to, tile, to, (size_t)columns);
    }
}

static void multiply(const struct block *block, struct ls_bf16_product *product)
{
    product->f32 = !block->op->bf16;
    product->user = block;
    ls_bf16_multiply(product, block->product);
}

static void make_scores(const struct block *block)
{
    struct ls_bf16_wide wide;
    struct ls_bf16_product product = {
        .a = weights(block, false, &wide),
        .b = operand(block->x, false, block->rows, (size_t)block->attr->inputs),
        .depth = block->attr->inputs,
        .write = write_scores};
    multiply(block, &product);
}

static void add_data(const struct block *block)
{
    struct ls_bf16_wide wide;
    struct ls_bf16_product product = {.a = slopes(block, true),
                                      .b = weights(block, true, &wide),
                                      .depth = block->attr->classes,
                                      .write = write_data};
    multiply(block, &product);
}

static void add_weights(const struct block *block)
{
    const int64_t inputs = block->attr->inputs;
    struct ls_bf16_product product = {.a = slopes(block, false),
                                      .b = operand(block->x, true, inputs, (size_t)inputs),
                                      .depth = block->rows,
                                      .write = write_weights};
    multiply(block, &product);
}

/* ---- Rows ------------------------------------------------------------------------------------ */

/* Copies what the rows of the block have of x, rounded where the layer computes in bf16. */
static void take_rows(const struct block *block)
{
    const int64_t inputs = block->attr->inputs;
    const float *x = block->in[LS_LINEAR_X];
    for (int64_t r = 0; r < block->rows; r++) {
        const float *from = x + block->row[r].row * inputs;
        if (block->op->bf16)
            ls_vector_convert()->f32_to_bf16((const uint32_t *)(const void *)from,
                                             (uint16_t *)block->x + r * inputs, (size_t)inputs);
        else
            memcpy((float *)block->x + r * inputs, from, (size_t)inputs * sizeof *from);
    }
}

/* With smoothing: what all classes are worth to a row. */
static void sum_all(struct block *block, const float *most)
{
    for (int64_t v = 0; v < block->attr->classes; v++) {
        const double weight = ls_loss_weight(&block->attr->loss, v);
        const float *z = block->z + v * block->pitch;
        for (int64_t r = 0; r < block->rows; r++) {
            const float t = z[r] - most[r];
            block->row[r].all += weight * (double)t;
        }
    }
}

static void find_hits(struct block *block)
{
    float label[ROWS];
    int32_t count[ROWS] = {0};
    for (int64_t r = 0; r < block->rows; r++)
        label[r] = block->z[block->row[r].label * block->pitch + r];
    ls_vector_linear_loss()->reach(block->z, (size_t)block->attr->classes, (size_t)block->rows,
                                   (size_t)block->pitch, label, count);
    for (int64_t r = 0; r < block->rows; r++)
        block->row[r].hit = count[r] == 1;
}

/* From scores to exponentials. */
static void measure(struct block *block)
{
    const struct ls_vector_linear_loss *vector = ls_vector_linear_loss();
    const size_t classes = (size_t)block->attr->classes, rows = (size_t)block->rows;
    const size_t pitch = (size_t)block->pitch;
    float most[ROWS];
    double sum[ROWS] = {0};
    for (size_t r = 0; r < rows; r++)
        most[r] = -INFINITY;
    vector->largest(block->z, classes, rows, pitch, most);
    if (block->attr->hits)
        find_hits(block);
    if (block->attr->loss.smoothing > 0)
        sum_all(block, most);
    for (size_t r = 0; r < rows; r++)
        block->row[r].at = block->z[(size_t)block->row[r].label * pitch + r] - most[r];
    vector->powers(block->z, classes, rows, pitch, most, sum);
    for (size_t r = 0; r < rows; r++) {
        block->row[r].sum = sum[r];
        block->row[r].power = block->z[(size_t)block->row[r].label * pitch + r];
    }
}

/* From exponentials to the gradient of the scores. */
static void make_slopes(struct block *block)
{
    const struct ls_linear_loss_attr *attr = block->attr;
    float factor[ROWS];
    if (attr->loss.smoothing > 0) {
        for (int64_t v = 0; v < attr->classes; v++)
            for (int64_t r = 0; r < block->rows; r++) {
                float *d = &block->z[v * block->pitch + r];
                *d =
                    ls_linear_loss_slope(attr, block->scale, block->weights, &block->row[r], v, *d);
            }
        return;
    }
    for (int64_t r = 0; r < block->rows; r++)
        factor[r] = ls_linear_loss_factor(attr, block->scale, &block->row[r]);
    ls_vector_linear_loss()->scale(block->z, (size_t)attr->classes, (size_t)block->rows,
                                   (size_t)block->pitch, factor);
    for (int64_t r = 0; r < block->rows; r++)
        block->z[block->row[r].label * block->pitch + r] =
            ls_linear_loss_at_label(attr, block->scale, &block->row[r]);
}

static void add_bias(const struct block *block)
{
    double sum[CLASSES_AT_ONCE];
    float *db = block->out[LS_LINEAR_DB];
    for (int64_t v = 0; v < block->attr->classes; v += CLASSES_AT_ONCE) {
        const int64_t left = block->attr->classes - v;
        const int64_t count = left < CLASSES_AT_ONCE ? left : CLASSES_AT_ONCE;
        ls_vector_linear_loss()->sum_rows(block->z + v * block->pitch, (size_t)count,
                                          (size_t)block->rows, (size_t)block->pitch, sum);
        for (int64_t c = 0; c < count; c++)
            db[v + c] = block->first ? (float)sum[c] : db[v + c] + (float)sum[c];
    }
}

/* Gradients of the scores become bf16; `widen`: in fp32, else where slopes() looks for them. */
static void round_slopes(const struct block *block, bool widen)
{
    const struct ls_vector_convert *vector = ls_vector_convert();
    uint16_t line[ROWS];
    for (int64_t v = 0; v < block->attr->classes; v++) {
        uint32_t *d = (uint32_t *)(void *)(block->z + v * block->pitch);
        vector->f32_to_bf16(d, line, (size_t)block->rows);
        if (widen)
            vector->bf16_to_f32(line, d, (size_t)block->rows);
        else
            memcpy(d, line, (size_t)block->rows * sizeof *line);
    }
}

/* ---- The kernels ----------------------------------------------------------------------------- */

static bool has_output(const struct block *block, int k)
{
    return k < block->op->outputs && block->out[k] != NULL;
}

static void compute_block(struct block *block, struct ls_linear_sums *sums)
{
    const float *bytes = block->attr->bytes ? block->in[LS_LINEAR_BYTES_IN] : NULL;
    take_rows(block);
    make_scores(block);
    measure(block);
    for (int64_t r = 0; r < block->rows; r++)
        ls_linear_loss_take(block->attr, block->weights, &block->row[r], bytes, sums);
    if (block->op->kind != LS_OP_LINEAR_LOSS_GRADIENT)
        return;
    make_slopes(block);
    if (has_output(block, LS_LINEAR_DB)) {
        if (block->op->bf16)
            round_slopes(block, true);
        add_bias(block);
    }
    if (block->op->bf16)
        round_slopes(block, false);
    if (has_output(block, LS_LINEAR_DX))
        add_data(block);
    if (has_output(block, LS_LINEAR_DW))
        add_weights(block);
}

/* Rows that are not computed have a gradient of 0; where none is, so have the weights. */
static void clear(const struct block *block, int k)
{
    if (has_output(block, k))
        memset(block->out[k], 0,
               (size_t)ls_shape_size(&block->op->output[k]->shape) * sizeof(float));
}

static int linear_loss_run(const struct ls_prepared *prepared, void *local, void *const *in,
                           void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local;
    const struct ls_op *op = prepared->op;
    const struct ls_linear_loss_attr *attr = &op->attr.linear_loss;
    const struct room room = room_of(op);
    struct ls_linear_sums sums = {.loss.sum = 0};
    struct block block = {.op = op,
                          .attr = attr,
                          .in = in,
                          .out = out,
                          .pitch = room.pitch,
                          .first = true,
                          .scale = ls_loss_scale(&attr->loss, context),
                          .weights = ls_linear_loss_weights(attr),
                          .z = (float *)((char *)scratch + room.scores),
                          .x = (char *)scratch + room.x,
                          .product = (char *)scratch + room.product};
    clear(&block, LS_LINEAR_DX);
    for (int64_t row = 0, label = 0; row < attr->rows; row++) {
        row = ls_linear_loss_next(attr, in[LS_LINEAR_LABEL], row, &label, &sums);
        if (row < attr->rows)
            block.row[block.rows++] = (struct ls_linear_row){.row = row, .label = label};
        if (block.rows == room.rows || (row >= attr->rows - 1 && block.rows > 0)) {
            compute_block(&block, &sums);
            block.first = false;
            block.rows = 0;
        }
    }
    if (block.first) {
        clear(&block, LS_LINEAR_DW);
        clear(&block, LS_LINEAR_DB);
    }
    ls_linear_loss_record(attr, context, &sums);
    return 0;
}

static int linear_loss_prepare(struct ls_prepared *prepared, struct ls_error *error)
{
    (void)error;
    prepared->scratch_bytes = room_of(prepared->op).end;
    return ls_own_prepare_bf16(prepared, prepared->op->bf16 ? ls_bf16_tiles_name() : NULL);
}

const struct ls_kernel ls_kernel_linear_loss = {
    .kind = LS_OP_LINEAR_LOSS,
    .bits = LS_BITS_DEFINED,
    .name = "linear softmax loss",
    .prepare = linear_loss_prepare,
    .run = linear_loss_run,
    .in_place = -1,
};

const struct ls_kernel ls_kernel_linear_loss_gradient = {
    .kind = LS_OP_LINEAR_LOSS_GRADIENT,
    .bits = LS_BITS_DEFINED,
    .name = "linear softmax loss and gradient",
    .prepare = linear_loss_prepare,
    .run = linear_loss_run,
    .in_place = -1,
};
