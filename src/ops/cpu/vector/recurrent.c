/* Cells of recurrent layers, number by number: each operation rounds.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/recurrent.h"

#include "ops/cpu/vector/elementwise.h"
#include "ops/cpu/vector/lanes.h"
#include "ops/cpu/vector/math.h"

#define VECTOR(table) LS_ISA_NAME(table)

/* 2 / (1 + exp(-2x)) - 1, tanh as Caffe's LSTM has it. */
static inline void lanes_tanh(const float *x, float *y)
{
    float power[LS_LANES];
    for (int i = 0; i < LS_LANES; i++)
        power[i] = -2.0F * x[i];
    ls_lanes_exp(power, power);
    for (int i = 0; i < LS_LANES; i++)
        y[i] = 2.0F / (1.0F + power[i]) - 1.0F;
}

static void bounded(const float *x, float *y, size_t n)
{
    size_t i = 0;
    for (; i + LS_LANES <= n; i += LS_LANES)
        lanes_tanh(x + i, y + i);
    if (i < n) {
        float rest[LS_LANES] = {0};
        memcpy(rest, x + i, (n - i) * sizeof *x);
        lanes_tanh(rest, rest);
        memcpy(y + i, rest, (n - i) * sizeof *y);
    }
}

/* z + still + u, in this order. */
static void add_up(const float *z, const float *still, const float *u, float *sum, size_t n)
{
    if (still != NULL && u != NULL) {
        LS_ELEMENTWISE
        for (size_t i = 0; i < n; i++)
            sum[i] = (z[i] + still[i]) + u[i];
    } else if (still != NULL || u != NULL) {
        const float *other = still != NULL ? still : u;
        LS_ELEMENTWISE
        for (size_t i = 0; i < n; i++)
            sum[i] = z[i] + other[i];
    } else {
        memcpy(sum, z, n * sizeof *sum);
    }
}

static void lstm_gates(const float *z, const float *still, const float *u, float *gates, size_t n)
{
    add_up(z, still, u, gates, 4 * n);
    VECTOR(ls_vector_elementwise).sigmoid(gates, gates, 3 * n);
    bounded(gates + 3 * n, gates + 3 * n, n);
}

static void lstm(const float *gates, const float *c_before, float cont, float *c, float *h,
                 size_t n)
{
    const float *in = gates, *forget = gates + n, *out = gates + 2 * n, *g = gates + 3 * n;
    if (c_before != NULL) {
        LS_ELEMENTWISE
        for (size_t i = 0; i < n; i++)
            c[i] = forget[i] * (cont * c_before[i]) + in[i] * g[i];
    } else {
        LS_ELEMENTWISE
        for (size_t i = 0; i < n; i++)
            c[i] = in[i] * g[i];
    }
    bounded(c, h, n);
    LS_ELEMENTWISE
    for (size_t i = 0; i < n; i++)
        h[i] = out[i] * h[i];
}

static void rnn(const float *z, const float *still, const float *u, float *h, size_t n)
{
    add_up(z, still, u, h, n);
    VECTOR(ls_vector_math).tanh(h, h, n);
}

static void gru(const float *z, const float *still, const float *u, const float *before,
                float *gates, float *h, size_t n)
{
    float *r = gates, *keep = gates + n, *fresh = gates + 2 * n, *inner = gates + 3 * n;
    add_up(z, still, u, gates, 2 * n);
    VECTOR(ls_vector_elementwise).sigmoid(gates, gates, 2 * n);
    add_up(z + 2 * n, still != NULL ? still + 2 * n : NULL, NULL, fresh, n);
    memcpy(inner, u + 2 * n, n * sizeof *inner);
    LS_ELEMENTWISE
    for (size_t i = 0; i < n; i++)
        fresh[i] = fresh[i] + r[i] * inner[i];
    bounded(fresh, fresh, n);
    LS_ELEMENTWISE
    for (size_t i = 0; i < n; i++)
        h[i] = fresh[i] + keep[i] * (before[i] - fresh[i]);
}

/* ---- Backward -------------------------------------------------------------------------------- */

static void lstm_back(const struct ls_cell_back *back, size_t n)
{
    const float *in = back->gates, *forget = in + n, *out = in + 2 * n, *g = in + 3 * n;
    const float *dh = back->dh, *before = back->c_before, cont = back->cont;
    float *di = back->dz, *df = di + n, *d_out = di + 2 * n, *dg = di + 3 * n;
    float *dc = back->dc, *y = back->spare;
    bounded(back->c, y, n);
    LS_ELEMENTWISE
    for (size_t i = 0; i < n; i++) {
        const float all = dc[i] + dh[i] * out[i] * (1.0F - y[i] * y[i]);
        d_out[i] = dh[i] * y[i] * (out[i] * (1.0F - out[i]));
        di[i] = all * g[i] * (in[i] * (1.0F - in[i]));
        dg[i] = all * in[i] * (1.0F - g[i] * g[i]);
        df[i] = all * (forget[i] * (1.0F - forget[i]));
        dc[i] = all * forget[i] * cont;
    }
    for (size_t i = 0; before == NULL && i < n; i++)
        df[i] = 0;
    if (before != NULL) {
        LS_ELEMENTWISE
        for (size_t i = 0; i < n; i++)
            df[i] = df[i] * (cont * before[i]);
    }
}

static void rnn_back(const struct ls_cell_back *back, size_t n)
{
    const float *dh = back->dh, *h = back->h;
    float *dz = back->dz;
    LS_ELEMENTWISE
    for (size_t i = 0; i < n; i++)
        dz[i] = dh[i] * (1.0F - h[i] * h[i]);
}

static void gru_back(const struct ls_cell_back *back, size_t n)
{
    const float *r = back->gates, *keep = r + n, *fresh = r + 2 * n, *inner = r + 3 * n;
    const float *dh = back->dh, *before = back->before;
    float *dr = back->dz, *dkeep = dr + n, *dfresh = dr + 2 * n, *rest = back->rest;
    float *du = back->du + 2 * n;
    LS_ELEMENTWISE
    for (size_t i = 0; i < n; i++) {
        const float d = dh[i] * (1.0F - keep[i]) * (1.0F - fresh[i] * fresh[i]);
        dkeep[i] = dh[i] * (before[i] - fresh[i]) * (keep[i] * (1.0F - keep[i]));
        dr[i] = d * inner[i] * (r[i] * (1.0F - r[i]));
        du[i] = d * r[i];
        dfresh[i] = d;
        rest[i] = dh[i] * keep[i];
    }
    memcpy(back->du, back->dz, 2 * n * sizeof(float));
}

const struct ls_vector_recurrent LS_ISA_NAME(ls_vector_recurrent) = {
    .lstm_gates = lstm_gates,
    .lstm = lstm,
    .rnn = rnn,
    .gru = gru,
    .lstm_back = lstm_back,
    .rnn_back = rnn_back,
    .gru_back = gru_back,
};
