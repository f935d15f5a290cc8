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

/* ---- LSTM: registers of a step, from z to h ------------------------------------------------- */

#define ALWAYS_INLINE inline __attribute__((always_inline))

/* `count` numbers, at most a register of them, and zeros. */
static ALWAYS_INLINE LS_REGISTER load(const float *from, size_t count)
{
    float some[LS_WIDTH] = {0};
    if (count >= LS_WIDTH)
        return LS_LOAD(from);
    memcpy(some, from, count * sizeof *some);
    return LS_LOAD(some);
}

static ALWAYS_INLINE LS_REGISTER load_any(const void *from, size_t at, bool bf16, size_t count)
{
    uint16_t some[LS_WIDTH] = {0};
    if (!bf16)
        return load((const float *)from + at, count);
    if (count >= LS_WIDTH)
        return ls_load_bf16((const uint16_t *)from + at);
    memcpy(some, (const uint16_t *)from + at, count * sizeof *some);
    return ls_load_bf16(some);
}

static ALWAYS_INLINE void store(float *to, LS_REGISTER value, size_t count)
{
    float some[LS_WIDTH];
    if (count >= LS_WIDTH) {
        LS_STORE(to, value);
        return;
    }
    LS_STORE(some, value);
    memcpy(to, some, count * sizeof *some);
}

static ALWAYS_INLINE void store_bf16(uint16_t *to, LS_REGISTER value, size_t count)
{
    uint16_t some[LS_WIDTH];
    if (count >= LS_WIDTH) {
        ls_store_bf16(to, value);
        return;
    }
    ls_store_bf16(some, value);
    memcpy(to, some, count * sizeof *some);
}

static ALWAYS_INLINE LS_REGISTER sigmoid_of(LS_REGISTER x)
{
    const LS_REGISTER one = LS_SPREAD(1.0F);
    return one / (one + LS_SLEEF(exp)(-x));
}

static ALWAYS_INLINE LS_REGISTER bounded_of(LS_REGISTER x)
{
    const LS_REGISTER one = LS_SPREAD(1.0F), two = LS_SPREAD(2.0F);
    return two / (one + LS_SLEEF(exp)(LS_SPREAD(-2.0F) * x)) - one;
}

/* z + still + u, in this order. */
static ALWAYS_INLINE LS_REGISTER put_in(const struct ls_lstm_step *step, size_t at, size_t count)
{
    LS_REGISTER sum = load_any(step->z, at, step->bf16, count);
    if (step->still != NULL)
        sum = sum + load(step->still + at, count);
    if (step->u != NULL)
        sum = sum + load(step->u + at, count);
    return sum;
}

/* Cells [i, i + count). */
static ALWAYS_INLINE void lstm_cells(const struct ls_lstm_step *step, size_t n, size_t i,
                                     size_t count)
{
    const LS_REGISTER in = sigmoid_of(put_in(step, i, count));
    const LS_REGISTER forget = sigmoid_of(put_in(step, n + i, count));
    const LS_REGISTER out = sigmoid_of(put_in(step, 2 * n + i, count));
    const LS_REGISTER g = bounded_of(put_in(step, 3 * n + i, count));
    LS_REGISTER c = in * g;
    if (step->c_before != NULL)
        c = forget * (LS_SPREAD(step->cont) * load(step->c_before + i, count)) + c;
    const LS_REGISTER h = out * bounded_of(c);
    if (step->gates != NULL) {
        store(step->gates + i, in, count);
        store(step->gates + n + i, forget, count);
        store(step->gates + 2 * n + i, out, count);
        store(step->gates + 3 * n + i, g, count);
    }
    store(step->c + i, c, count);
    store(step->h + i, h, count);
    if (step->rounded != NULL)
        store_bf16(step->rounded + i, h, count);
}

static void lstm(const struct ls_lstm_step *step, size_t n)
{
    size_t i = 0;
    for (; i + LS_WIDTH <= n; i += LS_WIDTH)
        lstm_cells(step, n, i, LS_WIDTH);
    if (i < n)
        lstm_cells(step, n, i, n - i);
}

/* What has been found of dz goes on to its place, and to dstill. */
static ALWAYS_INLINE void put_back(const struct ls_lstm_back *back, size_t at, LS_REGISTER dz,
                                   size_t count)
{
    if (back->dz_bf16)
        store_bf16((uint16_t *)back->dz + at, dz, count);
    else
        store((float *)back->dz + at, dz, count);
    if (back->dstill != NULL)
        store(back->dstill + at, load(back->dstill + at, count) + dz, count);
}

static ALWAYS_INLINE void lstm_cells_back(const struct ls_lstm_back *back, size_t n, size_t i,
                                          size_t count)
{
    const LS_REGISTER one = LS_SPREAD(1.0F), cont = LS_SPREAD(back->cont);
    const LS_REGISTER y = bounded_of(load(back->c + i, count));
    const LS_REGISTER in = load(back->gates + i, count);
    const LS_REGISTER forget = load(back->gates + n + i, count);
    const LS_REGISTER out = load(back->gates + 2 * n + i, count);
    const LS_REGISTER g = load(back->gates + 3 * n + i, count);
    LS_REGISTER dh = load(back->carried + i, count), df = LS_SPREAD(0.0F);
    if (back->dh != NULL)
        dh = load_any(back->dh, i, back->dh_bf16, count) + dh;
    const LS_REGISTER all = load(back->dc + i, count) + dh * out * (one - y * y);
    if (back->c_before != NULL)
        df = all * (forget * (one - forget)) * (cont * load(back->c_before + i, count));
    put_back(back, i, all * g * (in * (one - in)), count);
    put_back(back, n + i, df, count);
    put_back(back, 2 * n + i, dh * y * (out * (one - out)), count);
    put_back(back, 3 * n + i, all * in * (one - g * g), count);
    store(back->dc + i, all * forget * cont, count);
}

static void lstm_back(const struct ls_lstm_back *back, size_t n)
{
    size_t i = 0;
    for (; i + LS_WIDTH <= n; i += LS_WIDTH)
        lstm_cells_back(back, n, i, LS_WIDTH);
    if (i < n)
        lstm_cells_back(back, n, i, n - i);
}

/* ---- The others ------------------------------------------------------------------------------ */

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
    .lstm = lstm,
    .rnn = rnn,
    .gru = gru,
    .lstm_back = lstm_back,
    .rnn_back = rnn_back,
    .gru_back = gru_back,
};
