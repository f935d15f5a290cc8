/* Attention, number by number; see struct ls_attention_attr and device/attention.h. Keys come in
 * the blocks of the definition. In portable nets, and in BF16, each operation rounds to float, and
 * products have the declared order; else values are doubles until they are stored.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <sleef.h>
#include <string.h>

#include "base/random.h"
#include "device/attention.h"
#include "device/product_sum.h"
#include "ir/convert.h"
#include "ir/graph.h"
#include "ir/layer.h"
#include "ops/reference/reference.h"

enum { BLOCK = LS_ATTENTION_BLOCK, LANES = 16 };

/* A head of a row of the batch. Scratch memory holds q, k, v, dy of the head, what becomes of a
 * block of queries, and the sums of keys. */
struct heads {
    const struct ls_call *call;
    const struct ls_attention_attr *attr;
    int offset; /* of input q */
    bool portable;
    int64_t n, head, rows; /* rows of a sample */
    double *q, *k, *v, *dy;
    double *weights, *dropped, *slopes; /* [BLOCK, keys] */
    double *dq, *dk, *dv;               /* of a block of queries; of all keys */
    float *angles;
};

/* ---- Arithmetic ------------------------------------------------------------------------------ */

static double product(const struct heads *h, double a, double b)
{
    return h->portable ? (double)((float)a * (float)b) : a * b;
}

static double sum(const struct heads *h, double a, double b)
{
    return h->portable ? (double)((float)a + (float)b) : a + b;
}

static double power(const struct heads *h, double x)
{
    return h->portable ? (double)ls_attention_exp((float)x) : Sleef_cinz_expd1_u10purec(x);
}

static float operand(const struct heads *h, double x)
{
    float number = (float)x;
    uint16_t rounded;
    if (h->attr->bf16) {
        ls_dtype_convert(LS_F32, &number, LS_BF16, &rounded, 1);
        ls_dtype_convert(LS_BF16, &rounded, LS_F32, &number, 1);
    }
    return number;
}

/* A number that is read: rounded in BF16, else as it is. */
static double as_read(const struct heads *h, double x)
{
    return h->attr->bf16 ? (double)operand(h, x) : x;
}

/* start plus the sum over `terms` of a[i step_a] b[i step_b]. */
static double sum_of(const struct heads *h, double start, const double *a, int64_t step_a,
                     const double *b, int64_t step_b, int64_t terms)
{
    struct ls_product_sum sum = {.sum = (float)start};
    double total = start;
    for (int64_t i = 0; i < terms; i++)
        if (h->portable)
            ls_product_sum_add(&sum, operand(h, a[i * step_a]), operand(h, b[i * step_b]));
        else
            total += a[i * step_a] * b[i * step_b];
    return h->portable ? (double)ls_product_sum_end(&sum) : total;
}

/* The sum of n numbers, or of n products, in lanes. */
static double sum_in_lanes(const struct heads *h, const double *a, const double *b, int64_t n)
{
    double lane[LANES] = {0};
    for (int64_t i = 0; i < n; i++)
        lane[i % LANES] = sum(h, lane[i % LANES], b != NULL ? product(h, a[i], b[i]) : a[i]);
    for (int width = LANES / 2; width > 0; width /= 2)
        for (int i = 0; i < width; i++)
            lane[i] = sum(h, lane[i], lane[i + width]);
    return lane[0];
}

/* ---- Inputs ---------------------------------------------------------------------------------- */

static const float *input(const struct heads *h, int which)
{
    return h->call->in[h->offset + which];
}

static void find_angles(const struct heads *h)
{
    const float *positions = input(h, LS_ATTENTION_POSITIONS);
    for (int64_t t = 0; t < h->attr->keys; t++)
        ls_attention_angles(&h->attr->rotary,
                            positions != NULL ? (double)positions[h->n * h->attr->keys + t]
                                              : (double)t,
                            h->angles + t * h->attr->rotary.dims);
}

/* Turned, by pairs as ls_attention_turn does, but in double where nothing rounds. */
static void turn(const struct heads *h, int64_t position, bool back, double *row)
{
    const struct ls_rotary_attr *rotary = &h->attr->rotary;
    const float *angles = h->angles + position * rotary->dims;
    const int64_t pairs = rotary->dims / 2, step = rotary->neighbours ? 2 : 1;
    for (int64_t i = 0; i < pairs; i++) {
        double *first = &row[i * step], *second = &row[i * step + (rotary->neighbours ? 1 : pairs)];
        const double cosine = (double)angles[i];
        const double sine = back ? -(double)angles[pairs + i] : (double)angles[pairs + i];
        const double a = *first, b = *second;
        *first = sum(h, product(h, a, cosine), -product(h, b, sine));
        *second = sum(h, product(h, b, cosine), product(h, a, sine));
    }
}

/* All rows of q, k or v of the head. */
static void read_rows(const struct heads *h, int which, double *to)
{
    const struct ls_attention_attr *attr = h->attr;
    const int64_t head =
        which == LS_ATTENTION_Q ? h->head : h->head / (attr->heads / attr->kv_heads);
    const struct ls_attention_rows rows = ls_attention_rows_of(attr, which, h->n, head);
    const float *from = input(h, ls_attention_input_of(attr, which));
    const int64_t depth = which == LS_ATTENTION_V ? attr->value_depth : attr->depth;
    const int64_t count = which == LS_ATTENTION_Q ? attr->queries : attr->keys;
    const int64_t shift = which == LS_ATTENTION_Q ? attr->keys - attr->queries : 0;
    for (int64_t i = 0; i < count; i++, to += depth) {
        for (int64_t d = 0; d < depth; d++)
            to[d] = as_read(h, (double)from[rows.at + i * rows.pitch + d]);
        if (attr->rotary.dims > 0 && which != LS_ATTENTION_V)
            turn(h, i + shift, false, to);
    }
}

/* Whether a pair counts. */
static bool counts(const struct heads *h, int64_t i, int64_t j)
{
    const struct ls_attention_attr *attr = h->attr;
    const struct ls_attention_range keys = ls_attention_keys_of(attr, i);
    const float *lengths = input(h, LS_ATTENTION_LENGTHS), *seen = input(h, LS_ATTENTION_KEY_MASK);
    const float *mask = input(h, LS_ATTENTION_MASK), *segments = input(h, LS_ATTENTION_SEGMENTS);
    const int64_t row = h->n * attr->keys;
    if (j < keys.begin || j >= keys.end || (lengths != NULL && !((float)j < lengths[h->n])))
        return false;
    if ((seen != NULL && seen[row + j] == 0) ||
        (segments != NULL && segments[row + i] != segments[row + j]))
        return false;
    if (mask == NULL || attr->added)
        return true;
    const struct ls_shape *shape = &h->call->op->input[h->offset + LS_ATTENTION_MASK]->shape;
    return mask[ls_attention_mask_at(attr, shape, h->n, h->head) + i * attr->keys + j] != 0;
}

static double score(const struct heads *h, int64_t i, int64_t j)
{
    const struct ls_attention_attr *attr = h->attr;
    const float *added = attr->added ? input(h, LS_ATTENTION_MASK) : NULL;
    if (!counts(h, i, j))
        return -INFINITY;
    const double s =
        product(h, (double)attr->scale,
                sum_of(h, 0, h->q + i * attr->depth, 1, h->k + j * attr->depth, 1, attr->depth));
    if (added == NULL)
        return s;
    const struct ls_shape *shape = &h->call->op->input[h->offset + LS_ATTENTION_MASK]->shape;
    const int64_t at = ls_attention_mask_at(attr, shape, h->n, h->head) + i * attr->keys + j;
    return sum(h, s, (double)added[at]);
}

/* What dropout makes of a number that belongs to a pair. */
static double drop(const struct heads *h, int64_t i, int64_t j, double x)
{
    const struct ls_attention_attr *attr = h->attr;
    const double ratio = attr->dropout.ratio;
    if (ratio == 0)
        return x;
    const uint64_t ordinal = (uint64_t)(h->call->context->first_ordinal + h->n / h->rows);
    const int64_t row = h->n % h->rows * attr->heads + h->head;
    const uint64_t element = (uint64_t)((row * attr->queries + i) * attr->keys + j);
    const bool kept =
        ls_random_u32(attr->dropout.key, ordinal, element) >= (uint32_t)ceil(ratio * 0x1p32);
    return kept ? product(h, x, (double)(float)(1 / (1 - ratio))) : 0;
}

static int64_t block_end(int64_t begin, int64_t all)
{
    return begin + BLOCK < all ? begin + BLOCK : all;
}

/* ---- Forward --------------------------------------------------------------------------------- */

/* What a query has seen so far; out: sums of values. */
struct seen {
    double largest, sum;
    double *out;
};

/* Of keys [j, j + count) of a block, how many sums of query i have; of queries [i, end), the first
 * that sums of key j have: a block's hidden half is left out. */
static int64_t keys_in_sums(const struct heads *h, int64_t i, int64_t j, int64_t count)
{
    const bool less =
        i % BLOCK < LS_ATTENTION_HALF && ls_attention_half_hidden(h->attr, i / BLOCK * BLOCK, j);
    return less && count > LS_ATTENTION_HALF ? LS_ATTENTION_HALF : count;
}

static int64_t query_in_sums(const struct heads *h, int64_t i, int64_t end, int64_t j)
{
    const bool less =
        j % BLOCK >= LS_ATTENTION_HALF && ls_attention_half_hidden(h->attr, i, j / BLOCK * BLOCK);
    if (!less)
        return i;
    return i + LS_ATTENTION_HALF < end ? i + LS_ATTENTION_HALF : end;
}

/* Adds keys [j, end) to what query i has seen. */
static void add_keys(const struct heads *h, int64_t i, int64_t j, int64_t end, struct seen *seen)
{
    const int64_t depth = h->attr->value_depth, count = end - j;
    double weights[BLOCK], largest = seen->largest;
    for (int64_t c = 0; c < count; c++) {
        weights[c] = score(h, i, j + c);
        largest = weights[c] > largest ? weights[c] : largest;
    }
    const double base = largest == -INFINITY ? 0 : largest;
    const double factor = power(h, sum(h, seen->largest, -base));
    for (int64_t c = 0; c < count; c++)
        weights[c] = power(h, sum(h, weights[c], -base));
    seen->sum = sum(h, product(h, seen->sum, factor), sum_in_lanes(h, weights, NULL, count));
    seen->largest = largest;
    for (int64_t c = 0; c < count; c++)
        weights[c] = drop(h, i, j + c, weights[c]);
    for (int64_t d = 0; d < depth; d++)
        seen->out[d] = sum_of(h, product(h, seen->out[d], factor), weights, 1, h->v + j * depth + d,
                              depth, keys_in_sums(h, i, j, count));
}

static void forward_query(const struct heads *h, int64_t i, const struct ls_attention_range *blocks)
{
    const struct ls_attention_attr *attr = h->attr;
    const int64_t depth = attr->value_depth;
    struct seen seen = {-INFINITY, 0, h->dq};
    float *y = h->call->out[0], *log_sum = h->call->out[1];
    memset(h->dq, 0, (size_t)depth * sizeof *h->dq);
    for (int64_t b = blocks->begin; b < blocks->end; b++)
        add_keys(h, i, b * BLOCK, block_end(b * BLOCK, attr->keys), &seen);
    const bool none = seen.sum == 0;
    const double factor = h->portable ? (double)(1 / (float)seen.sum) : 1 / seen.sum;
    for (int64_t d = 0; d < depth; d++)
        y[((h->n * attr->queries + i) * attr->heads + h->head) * depth + d] =
            none ? 0 : (float)product(h, seen.out[d], factor);
    if (log_sum == NULL)
        return;
    const double log = h->portable ? (double)Sleef_cinz_logf1_u10purec((float)seen.sum)
                                   : Sleef_cinz_logd1_u10purec(seen.sum);
    log_sum[(h->n * attr->heads + h->head) * attr->queries + i] =
        none ? 0 : (float)sum(h, seen.largest, log);
}

/* ---- Backward -------------------------------------------------------------------------------- */

enum { DY, Y, LOG_SUM };

/* The weights of query i and what their gradients are before the softmax, of keys [begin, end). */
static void back_query(const struct heads *h, int64_t first, int64_t i, int64_t begin, int64_t end)
{
    const struct ls_attention_attr *attr = h->attr;
    const int64_t depth = attr->value_depth, row = (i - first) * attr->keys;
    const int64_t at = ((h->n * attr->queries + i) * attr->heads + h->head) * depth;
    const double log_sum =
        ls_at(h->call, LOG_SUM, (h->n * attr->heads + h->head) * attr->queries + i);
    double *y = h->dq; /* not used yet */
    for (int64_t d = 0; d < depth; d++)
        y[d] = as_read(h, ls_at(h->call, Y, at + d));
    const double dot = sum_in_lanes(h, h->dy + i * depth, y, depth);
    for (int64_t j = begin; j < end; j++) {
        const double p = power(h, sum(h, score(h, i, j), -log_sum));
        const double dp = sum_of(h, 0, h->dy + i * depth, 1, h->v + j * depth, 1, depth);
        h->weights[row + j] = p;
        h->dropped[row + j] = drop(h, i, j, p);
        h->slopes[row + j] = product(h, p, sum(h, drop(h, i, j, dp), -dot));
    }
}

static void put(const struct heads *h, int which, int64_t head, int64_t row, double *numbers)
{
    const struct ls_attention_attr *attr = h->attr;
    const struct ls_attention_rows rows = ls_attention_rows_of(attr, which, h->n, head);
    float *to = h->call->out[attr->fused ? 0 : which];
    const int64_t depth = which == LS_ATTENTION_V ? attr->value_depth : attr->depth;
    const int64_t shift = which == LS_ATTENTION_Q ? attr->keys - attr->queries : 0;
    if (to == NULL)
        return;
    for (int64_t d = 0; d < depth && which != LS_ATTENTION_V; d++)
        numbers[d] = product(h, numbers[d], (double)attr->scale);
    if (which != LS_ATTENTION_V && attr->rotary.dims > 0)
        turn(h, row + shift, true, numbers);
    for (int64_t d = 0; d < depth; d++)
        to[rows.at + row * rows.pitch + d] = (float)numbers[d];
}

/* What queries [first, end) and the keys of some blocks give to each other. */
static void back_block(const struct heads *h, int64_t first, int64_t end,
                       const struct ls_attention_range *blocks)
{
    const struct ls_attention_attr *attr = h->attr;
    const int64_t depth = attr->depth, value = attr->value_depth, keys = attr->keys;
    const int64_t begin = blocks->begin * BLOCK;
    const int64_t last = blocks->end * BLOCK < keys ? blocks->end * BLOCK : keys;
    for (int64_t i = first; i < end; i++)
        back_query(h, first, i, begin, last);
    for (int64_t j = begin; j < last; j++) {
        const int64_t from = query_in_sums(h, first, end, j), at = (from - first) * keys + j;
        for (int64_t d = 0; d < value; d++)
            h->dv[j * value + d] = sum_of(h, h->dv[j * value + d], h->dropped + at, keys,
                                          h->dy + from * value + d, value, end - from);
        for (int64_t d = 0; d < depth; d++)
            h->dk[j * depth + d] = sum_of(h, h->dk[j * depth + d], h->slopes + at, keys,
                                          h->q + from * depth + d, depth, end - from);
    }
    for (int64_t i = first; i < end; i++) {
        memset(h->dq, 0, (size_t)depth * sizeof *h->dq);
        for (int64_t b = blocks->begin; b < blocks->end; b++)
            for (int64_t d = 0; d < depth; d++)
                h->dq[d] =
                    sum_of(h, h->dq[d], h->slopes + (i - first) * keys + b * BLOCK, 1,
                           h->k + b * BLOCK * depth + d, depth,
                           keys_in_sums(h, i, b * BLOCK, block_end(b * BLOCK, keys) - b * BLOCK));
        put(h, LS_ATTENTION_Q, h->head, i, h->dq);
    }
}

/* ---- Ops ------------------------------------------------------------------------------------- */

/* Cuts the numbers of `doubles` places out of scratch memory. */
static double *cut(double **from, int64_t doubles)
{
    double *at = *from;
    *from += doubles;
    return at;
}

static size_t scratch_doubles(const struct ls_attention_attr *attr)
{
    const int64_t q = attr->queries, k = attr->keys, d = attr->depth, v = attr->value_depth;
    return (size_t)(q * (d + v) + k * (2 * d + 2 * v) + 3 * BLOCK * k + d + v +
                    k * attr->rotary.dims);
}

static struct heads heads_of(const struct ls_call *call, int offset)
{
    const struct ls_attention_attr *attr = &call->op->attr.attention;
    const struct ls_layer *layer = call->op->layer;
    const struct ls_value *q = call->op->input[offset];
    const bool portable = layer != NULL && layer->graph != NULL && layer->graph->portable;
    double *from = call->scratch;
    struct heads h = {.call = call,
                      .attr = attr,
                      .offset = offset,
                      .portable = portable || attr->bf16,
                      .rows = q->sample_axis == 0 ? q->rows : q->shape.dim[0]};
    h.q = cut(&from, attr->queries * attr->depth);
    h.dy = cut(&from, attr->queries * attr->value_depth);
    h.k = cut(&from, attr->keys * attr->depth);
    h.v = cut(&from, attr->keys * attr->value_depth);
    h.dk = cut(&from, attr->keys * attr->depth);
    h.dv = cut(&from, attr->keys * attr->value_depth);
    h.weights = cut(&from, BLOCK * attr->keys);
    h.dropped = cut(&from, BLOCK * attr->keys);
    h.slopes = cut(&from, BLOCK * attr->keys);
    h.dq = cut(&from, attr->depth + attr->value_depth);
    h.angles = (float *)(void *)from;
    return h;
}

static size_t scratch(const struct ls_op *op)
{
    return scratch_doubles(&op->attr.attention) * sizeof(double);
}

static void read_head(struct heads *h, int64_t head)
{
    h->head = head;
    read_rows(h, LS_ATTENTION_Q, h->q);
    read_rows(h, LS_ATTENTION_K, h->k);
    read_rows(h, LS_ATTENTION_V, h->v);
}

static void forward(const struct ls_call *call)
{
    struct heads h = heads_of(call, 0);
    struct ls_attention_attr now;
    if (h.attr->cache > 0) {
        now = ls_attention_append(call->op, call->in, call->context->position);
        h.attr = &now;
    }
    const struct ls_attention_attr *attr = h.attr;
    for (h.n = 0; h.n < call->op->input[0]->shape.dim[0]; h.n++) {
        find_angles(&h);
        for (int64_t head = 0; head < attr->heads; head++) {
            read_head(&h, head);
            for (int64_t i = 0; i < attr->queries; i++) {
                const int64_t first = i / BLOCK * BLOCK;
                const struct ls_attention_range blocks =
                    ls_attention_blocks_of(attr, first, block_end(first, attr->queries) - first);
                forward_query(&h, i, &blocks);
            }
        }
    }
}

static void read_slopes(const struct heads *h)
{
    const struct ls_attention_attr *attr = h->attr;
    const int64_t depth = attr->value_depth;
    for (int64_t i = 0; i < attr->queries; i++)
        for (int64_t d = 0; d < depth; d++)
            h->dy[i * depth + d] =
                as_read(h, ls_at(h->call, DY,
                                 ((h->n * attr->queries + i) * attr->heads + h->head) * depth + d));
}

static void backward_head(struct heads *h, int64_t kv_head)
{
    const struct ls_attention_attr *attr = h->attr;
    const int64_t group = attr->heads / attr->kv_heads;
    memset(h->dk, 0, (size_t)(attr->keys * attr->depth) * sizeof *h->dk);
    memset(h->dv, 0, (size_t)(attr->keys * attr->value_depth) * sizeof *h->dv);
    for (int64_t head = kv_head * group; head < (kv_head + 1) * group; head++) {
        read_head(h, head);
        read_slopes(h);
        for (int64_t first = 0; first < attr->queries; first += BLOCK) {
            const int64_t end = block_end(first, attr->queries);
            const struct ls_attention_range blocks =
                ls_attention_blocks_of(attr, first, end - first);
            back_block(h, first, end, &blocks);
        }
    }
    for (int64_t j = 0; j < attr->keys; j++) {
        put(h, LS_ATTENTION_K, kv_head, j, h->dk + j * attr->depth);
        put(h, LS_ATTENTION_V, kv_head, j, h->dv + j * attr->value_depth);
    }
}

static void backward(const struct ls_call *call)
{
    struct heads h = heads_of(call, LS_ATTENTION_IN_FRONT);
    const int64_t rows = call->op->input[LS_ATTENTION_IN_FRONT]->shape.dim[0];
    for (h.n = 0; h.n < rows; h.n++) {
        find_angles(&h);
        for (int64_t head = 0; head < h.attr->kv_heads; head++)
            backward_head(&h, head);
    }
}

const struct ls_compute ls_ref_attention[LS_OP_KINDS] = {
    [LS_OP_ATTENTION] = {.run = forward, .scratch = scratch},
    [LS_OP_ATTENTION_BACKWARD] = {.run = backward, .scratch = scratch},
};
