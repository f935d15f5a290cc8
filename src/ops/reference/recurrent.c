/* Recurrent cells, number by number; see struct ls_recurrent_attr. In portable nets each operation
 * rounds to float, and products have the declared order; else values are doubles until they are
 * stored.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <sleef.h>
#include <string.h>

#include "device/product_sum.h"
#include "ir/convert.h"
#include "ir/graph.h"
#include "ir/layer.h"
#include "ops/reference/portable.h"

struct cells {
    const struct ls_call *call;
    enum ls_cell cell;
    int64_t steps, rows, hidden, width;
    bool portable, bf16;
};

static struct cells cells_of(const struct ls_call *call)
{
    const struct ls_recurrent_attr *attr = &call->op->attr.recurrent;
    const struct ls_layer *layer = call->op->layer;
    return (struct cells){call,
                          attr->cell,
                          attr->steps,
                          attr->rows,
                          attr->hidden,
                          ls_cell_parts(attr->cell) * attr->hidden,
                          attr->bf16 ||
                              (layer != NULL && layer->graph != NULL && layer->graph->portable),
                          attr->bf16};
}

static double product(const struct cells *cells, double a, double b)
{
    return cells->portable ? (double)((float)a * (float)b) : a * b;
}

static double sum(const struct cells *cells, double a, double b)
{
    return cells->portable ? (double)((float)a + (float)b) : a + b;
}

static double sigmoid(const struct cells *cells, double x)
{
    if (cells->portable)
        return (double)(1.0F / (1.0F + Sleef_cinz_expf1_u10purec(-(float)x)));
    return 1 / (1 + Sleef_cinz_expd1_u10purec(-x));
}

/* As Caffe's LSTM has it; cells that are one function (RNN) have another one. */
static double hyperbolic(const struct cells *cells, double x)
{
    if (!cells->portable)
        return Sleef_cinz_tanhd1_u10purec(x);
    if (cells->cell == LS_CELL_RNN)
        return (double)Sleef_cinz_tanhf1_u10purec((float)x);
    return (double)(2.0F / (1.0F + Sleef_cinz_expf1_u10purec(-2.0F * (float)x)) - 1.0F);
}

/* y (1 - y) and 1 - y y */
static double sigmoid_slope(const struct cells *cells, double y)
{
    return product(cells, y, sum(cells, 1, -y));
}

static double tanh_slope(const struct cells *cells, double y)
{
    return sum(cells, 1, -product(cells, y, y));
}

static float operand(const struct cells *cells, float x)
{
    if (!cells->bf16)
        return x;
    uint16_t rounded;
    float back;
    ls_dtype_convert(LS_F32, &x, LS_BF16, &rounded, 1);
    ls_dtype_convert(LS_BF16, &rounded, LS_F32, &back, 1);
    return back;
}

/* The sum over `terms` of a[i] b[i * pitch]. */
static double sum_of(const struct cells *cells, const float *a, const float *b, int64_t terms,
                     int64_t pitch)
{
    struct ls_product_sum sum = {.terms = 0};
    double total = 0;
    for (int64_t i = 0; i < terms; i++)
        if (cells->portable)
            ls_product_sum_add(&sum, operand(cells, a[i]), operand(cells, b[i * pitch]));
        else
            total += (double)a[i] * (double)b[i * pitch];
    return cells->portable ? (double)ls_product_sum_end(&sum) : total;
}

static const float *input(const struct cells *cells, int k)
{
    return cells->call->in[k];
}

/* Element `at` of input k, 0 where it is absent. */
static double number(const struct cells *cells, int k, int64_t at)
{
    return cells->call->in[k] != NULL ? ls_at(cells->call, k, at) : 0;
}

static void put(const struct cells *cells, int k, int64_t at, double x)
{
    if (cells->call->out[k] != NULL)
        ((float *)cells->call->out[k])[at] = (float)x;
}

/* ---- Forward --------------------------------------------------------------------------------- */

enum { Z, CONT, STILL, W, B, H0, C0 };
enum { H, GATES, BEFORE, C, H_LAST, C_LAST };

/* Scratch: what was before, [hidden], then c, [rows, hidden], as floats. */
static size_t forward_scratch(const struct ls_op *op)
{
    const struct ls_recurrent_attr *attr = &op->attr.recurrent;
    return (size_t)((attr->rows + 1) * attr->hidden) * sizeof(float);
}

/* u of number j of the product, b included. */
static double u_of(const struct cells *cells, const float *before, int64_t j)
{
    const double u = sum_of(cells, before, input(cells, W) + j * cells->hidden, cells->hidden, 1);
    return input(cells, B) != NULL ? sum(cells, u, number(cells, B, j)) : u;
}

/* z + static + u of part p, number i, of sequence n in step t. */
static double sum_up(const struct cells *cells, int64_t t, int64_t n, int64_t j,
                     const float *before, bool with_u)
{
    double a = number(cells, Z, (t * cells->rows + n) * cells->width + j);
    if (input(cells, STILL) != NULL)
        a = sum(cells, a, number(cells, STILL, n * cells->width + j));
    if (with_u && input(cells, W) != NULL)
        a = sum(cells, a, u_of(cells, before, j));
    return a;
}

static double lstm_number(const struct cells *cells, int64_t t, int64_t n, int64_t i,
                          const float *before, float *c)
{
    const int64_t at = t * cells->rows + n, all = cells->hidden;
    double gate[4];
    for (int p = 0; p < 4; p++) {
        const double a = sum_up(cells, t, n, p * all + i, before, true);
        gate[p] = p < 3 ? sigmoid(cells, a) : hyperbolic(cells, a);
        put(cells, GATES, at * 4 * all + p * all + i, gate[p]);
    }
    double state = product(cells, gate[0], gate[3]);
    const bool has_c = t > 0 || input(cells, C0) != NULL;
    if (has_c) {
        const double c_before = t > 0 ? (double)*c : number(cells, C0, n * all + i);
        const double kept = product(cells, number(cells, CONT, at), c_before);
        state = sum(cells, product(cells, gate[1], kept), state);
    }
    *c = (float)state;
    put(cells, C, at * all + i, state);
    if (t == cells->steps - 1)
        put(cells, C_LAST, n * all + i, state);
    return product(cells, gate[2], hyperbolic(cells, state));
}

static double gru_number(const struct cells *cells, int64_t t, int64_t n, int64_t i,
                         const float *before)
{
    const int64_t all = cells->hidden, at = (t * cells->rows + n) * 4 * all;
    const double r = sigmoid(cells, sum_up(cells, t, n, i, before, true));
    const double keep = sigmoid(cells, sum_up(cells, t, n, all + i, before, true));
    const double inner = u_of(cells, before, 2 * all + i);
    const double a = sum_up(cells, t, n, 2 * all + i, before, false);
    const double fresh = hyperbolic(cells, sum(cells, a, product(cells, r, inner)));
    const double gates[] = {r, keep, fresh, inner};
    for (int p = 0; p < 4; p++)
        put(cells, GATES, at + p * all + i, gates[p]);
    return sum(cells, fresh, product(cells, keep, sum(cells, (double)before[i], -fresh)));
}

static void forward(const struct ls_call *call)
{
    const struct cells cells = cells_of(call);
    const int64_t all = cells.hidden;
    float *before = call->scratch, *c = before + all, *h = call->out[H];
    for (int64_t t = 0; t < cells.steps; t++)
        for (int64_t n = 0; n < cells.rows; n++) {
            const int64_t at = (t * cells.rows + n) * all;
            for (int64_t i = 0; i < all; i++) {
                const double last =
                    t > 0 ? (double)h[at - cells.rows * all + i] : number(&cells, H0, n * all + i);
                before[i] = (float)(number(&cells, CONT, t * cells.rows + n) * last);
                put(&cells, BEFORE, at + i, (double)before[i]);
            }
            for (int64_t i = 0; i < all; i++) {
                const double y = cells.cell == LS_CELL_LSTM
                                     ? lstm_number(&cells, t, n, i, before, &c[n * all + i])
                                 : cells.cell == LS_CELL_GRU
                                     ? gru_number(&cells, t, n, i, before)
                                     : hyperbolic(&cells, sum_up(&cells, t, n, i, before, true));
                h[at + i] = (float)y;
                if (t == cells.steps - 1)
                    put(&cells, H_LAST, n * all + i, y);
            }
        }
}

/* ---- Backward -------------------------------------------------------------------------------- */

enum { DH, DH_LAST, DC_LAST, GATES_IN, H_IN, BEFORE_IN, C_IN, C0_IN, CONT_IN, W_IN };
enum { DZ, DU, DSTILL, DH0, DC0 };

/* Scratch: dh and dc that go on, and what goes past w, [rows, hidden] each; du of a sequence. */
static size_t backward_scratch(const struct ls_op *op)
{
    const struct ls_recurrent_attr *attr = &op->attr.recurrent;
    return (size_t)((3 * attr->rows + ls_cell_parts(attr->cell)) * attr->hidden) * sizeof(float);
}

/* Number i of a sequence: from dh and *dc (of c[t], then of c[t - 1]) the gradients of z. */
static void lstm_back(const struct cells *cells, int64_t t, int64_t n, int64_t i, double dh,
                      float *dc, double dz[4])
{
    const int64_t all = cells->hidden, at = t * cells->rows + n;
    double gate[4];
    for (int p = 0; p < 4; p++)
        gate[p] = number(cells, GATES_IN, (at * 4 + p) * all + i);
    const double in = gate[0], forget = gate[1], out = gate[2], g = gate[3];
    const double y = hyperbolic(cells, number(cells, C_IN, at * all + i));
    const double through = product(cells, product(cells, dh, out), tanh_slope(cells, y));
    const double all_c = sum(cells, (double)*dc, through), cont = number(cells, CONT_IN, at);
    dz[0] = product(cells, product(cells, all_c, g), sigmoid_slope(cells, in));
    dz[1] = product(cells, all_c, sigmoid_slope(cells, forget));
    dz[2] = product(cells, product(cells, dh, y), sigmoid_slope(cells, out));
    dz[3] = product(cells, product(cells, all_c, in), tanh_slope(cells, g));
    const double c_before = t > 0 ? number(cells, C_IN, (at - cells->rows) * all + i)
                                  : number(cells, C0_IN, n * all + i);
    const bool has_c = t > 0 || input(cells, C0_IN) != NULL;
    dz[1] = has_c ? product(cells, dz[1], product(cells, cont, c_before)) : 0;
    *dc = (float)product(cells, product(cells, all_c, forget), cont);
}

/* The same; du: the gradients of u. Returns what goes to `before` past w. */
static double gru_back(const struct cells *cells, int64_t t, int64_t n, int64_t i, double dh,
                       double dz[3], double du[3])
{
    const int64_t all = cells->hidden, at = t * cells->rows + n;
    double gate[4];
    for (int p = 0; p < 4; p++)
        gate[p] = number(cells, GATES_IN, (at * 4 + p) * all + i);
    const double r = gate[0], keep = gate[1], fresh = gate[2], inner = gate[3];
    const double before = number(cells, BEFORE_IN, at * all + i);
    const double fresh_part = product(cells, dh, sum(cells, 1, -keep));
    dz[2] = product(cells, fresh_part, tanh_slope(cells, fresh));
    const double keep_part = product(cells, dh, sum(cells, before, -fresh));
    dz[1] = product(cells, keep_part, sigmoid_slope(cells, keep));
    dz[0] = product(cells, product(cells, dz[2], inner), sigmoid_slope(cells, r));
    du[0] = dz[0];
    du[1] = dz[1];
    du[2] = product(cells, dz[2], r);
    return product(cells, dh, keep);
}

/* Where the backward pass keeps what goes on from step to step. */
struct carried {
    float *h, *c, *rest, *du; /* du of a sequence */
};

static void back_numbers(const struct cells *cells, int64_t t, int64_t n,
                         const struct carried *carried)
{
    const int64_t all = cells->hidden, at = t * cells->rows + n, row = n * all;
    for (int64_t i = 0; i < all; i++) {
        double dz[4] = {0}, du[4] = {0}, dh = (double)carried->h[row + i];
        if (input(cells, DH) != NULL)
            dh = sum(cells, number(cells, DH, at * all + i), dh);
        if (cells->cell == LS_CELL_LSTM) {
            lstm_back(cells, t, n, i, dh, &carried->c[row + i], dz);
        } else if (cells->cell == LS_CELL_GRU) {
            carried->rest[row + i] = (float)gru_back(cells, t, n, i, dh, dz, du);
        } else {
            dz[0] = product(cells, dh, tanh_slope(cells, number(cells, H_IN, at * all + i)));
        }
        for (int64_t p = 0; p < cells->width / all; p++) {
            const int64_t j = p * all + i;
            const bool gru = cells->cell == LS_CELL_GRU;
            put(cells, DZ, at * cells->width + j, dz[p]);
            put(cells, DU, at * cells->width + j, du[p]);
            carried->du[j] = (float)(gru ? du[p] : dz[p]);
            float *still = cells->call->out[DSTILL];
            if (still != NULL)
                still[n * cells->width + j] += (float)dz[p];
        }
    }
}

/* dh of the step before. */
static void carry_on(const struct cells *cells, int64_t t, int64_t n, const struct carried *carried)
{
    const int64_t all = cells->hidden;
    for (int64_t i = 0; i < all; i++) {
        float *h = &carried->h[n * all + i];
        if (input(cells, W_IN) == NULL) { /* h of the step before is not read */
            *h = 0;
            continue;
        }
        double back = sum_of(cells, carried->du, input(cells, W_IN) + i, cells->width, all);
        if (cells->cell == LS_CELL_GRU)
            back = sum(cells, (double)carried->rest[n * all + i], back);
        *h = (float)product(cells, back, number(cells, CONT_IN, t * cells->rows + n));
    }
}

static void backward(const struct ls_call *call)
{
    const struct cells cells = cells_of(call);
    const int64_t state = cells.rows * cells.hidden;
    struct carried carried = {.h = call->scratch};
    carried.c = carried.h + state;
    carried.rest = carried.c + state;
    carried.du = carried.rest + state;
    for (int64_t i = 0; i < state; i++) {
        carried.h[i] = (float)number(&cells, DH_LAST, i);
        carried.c[i] = (float)number(&cells, DC_LAST, i);
    }
    if (call->out[DSTILL] != NULL)
        memset(call->out[DSTILL], 0, (size_t)(cells.rows * cells.width) * sizeof(float));
    for (int64_t t = cells.steps; t-- > 0;)
        for (int64_t n = 0; n < cells.rows; n++) {
            back_numbers(&cells, t, n, &carried);
            carry_on(&cells, t, n, &carried);
        }
    for (int64_t i = 0; i < state; i++) {
        put(&cells, DH0, i, (double)carried.h[i]);
        put(&cells, DC0, i, (double)carried.c[i]);
    }
}

const struct ls_compute ls_ref_recurrent[LS_OP_KINDS] = {
    [LS_OP_RECURRENT] = {.run = forward, .scratch = forward_scratch},
    [LS_OP_RECURRENT_BACKWARD] = {.run = backward, .scratch = backward_scratch},
};
