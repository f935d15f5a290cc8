/* See recurrent.h. Each step is a product with all rows and parts, and a kernel with a thread for
 * each number of the state. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/kernels/recurrent.h"

#include "device/elementary.h"
#include "ops/cuda/kernels/operand.h"
#include "ops/cuda/kernels/product_tile.h"

namespace
{

__device__ float sigmoid(float x)
{
    return 1.0F / (1.0F + ls_float_exp(-x));
}

/* As LSTM and GRU have it. */
__device__ float bounded(float x)
{
    return 2.0F / (1.0F + ls_float_exp(-2.0F * x)) - 1.0F;
}

__device__ float sigmoid_slope(float y)
{
    return y * (1 - y);
}

__device__ float tanh_slope(float y)
{
    return 1 - y * y;
}

__device__ float rounded(bool bf16, float x)
{
    ls_bf16 number;
    if (!bf16)
        return x;
    ls_put(&number, x);
    return ls_number(number);
}

/* Element i of an array, 0 where it is absent. */
__device__ float number_of(const float *x, int64_t i)
{
    return x != NULL ? x[i] : 0;
}

__device__ void put(float *x, int64_t i, float number)
{
    if (x != NULL)
        x[i] = number;
}

/* Weights [parts hidden, hidden], by part or by number. */
struct weights {
    const float *w;
    int64_t hidden;
    bool by_term, bf16;
    __device__ float operator()(int64_t, int64_t line, int64_t t) const
    {
        return rounded(bf16, w[by_term ? t * hidden + line : line * hidden + t]);
    }
};

__device__ inline bool ls_tile_by_line(const struct weights &weights)
{
    return !weights.by_term;
}

/* ---- Forward --------------------------------------------------------------------------------- */

/* What goes on from step to step in fp32: [rows, hidden] each. */
struct state {
    float *h, *c;
};

/* cont[t] h[t - 1] of sequence n. */
__device__ float before_of(const struct ls_cuda_recurrent &of, const struct state &state, int64_t t,
                           int64_t n, int64_t i)
{
    const int64_t at = n * of.cells.hidden + i;
    const float last = t > 0 ? state.h[at] : number_of(of.h0, at);
    return of.cont[t * of.cells.rows + n] * last;
}

struct before_rows {
    struct ls_cuda_recurrent of;
    struct state state;
    int64_t t;
    __device__ float operator()(int64_t, int64_t n, int64_t i) const
    {
        return rounded(of.cells.bf16, before_of(of, state, t, n, i));
    }
};

__device__ inline bool ls_tile_by_line(const struct before_rows &)
{
    return true;
}

/* u [rows, parts hidden], its bias included. */
struct to_u {
    float *u;
    int64_t width;
    const float *b;
    __device__ void operator()(int64_t, int64_t n, int64_t j, float sum) const
    {
        u[n * width + j] = b != NULL ? sum + b[j] : sum;
    }
};

/* z + static + u of part p, number i, of sequence n. */
__device__ float add_up(const struct ls_cuda_recurrent &of, const float *u, int64_t t, int64_t n,
                        int64_t j, bool with_u)
{
    const int64_t width = of.cells.parts * of.cells.hidden;
    const struct ls_operand z = {of.z, of.z_bf16};
    float a = z[(t * of.cells.rows + n) * width + j];
    if (of.still != NULL)
        a = a + of.still[n * width + j];
    return with_u && of.w != NULL ? a + u[n * width + j] : a;
}

__device__ float run_lstm(const struct ls_cuda_recurrent &of, const float *u, float *c, int64_t t,
                          int64_t n, int64_t i)
{
    const int64_t all = of.cells.hidden, at = t * of.cells.rows + n;
    float gate[4];
    for (int p = 0; p < 4; p++) {
        const float a = add_up(of, u, t, n, p * all + i, true);
        gate[p] = p < 3 ? sigmoid(a) : bounded(a);
        put(of.gates, at * 4 * all + p * all + i, gate[p]);
    }
    float state = gate[0] * gate[3];
    if (t > 0 || of.c0 != NULL) {
        const float kept = of.cont[at] * (t > 0 ? c[n * all + i] : of.c0[n * all + i]);
        state = gate[1] * kept + state;
    }
    c[n * all + i] = state;
    put(of.c, at * all + i, state);
    if (t == of.cells.steps - 1)
        put(of.c_last, n * all + i, state);
    return gate[2] * bounded(state);
}

__device__ float run_gru(const struct ls_cuda_recurrent &of, const float *u, int64_t t, int64_t n,
                         int64_t i, float before)
{
    const int64_t all = of.cells.hidden, at = (t * of.cells.rows + n) * 4 * all;
    const float r = sigmoid(add_up(of, u, t, n, i, true));
    const float keep = sigmoid(add_up(of, u, t, n, all + i, true));
    const float inner = u[n * 3 * all + 2 * all + i];
    const float fresh = bounded(add_up(of, u, t, n, 2 * all + i, false) + r * inner);
    put(of.gates, at + i, r);
    put(of.gates, at + all + i, keep);
    put(of.gates, at + 2 * all + i, fresh);
    put(of.gates, at + 3 * all + i, inner);
    return fresh + keep * (before - fresh);
}

__global__ void run_cells(struct ls_cuda_recurrent of, const float *u, struct state state,
                          int64_t t)
{
    const int64_t all = of.cells.hidden;
    for (LS_EACH(e, of.cells.rows * all)) {
        const int64_t n = (int64_t)e / all, i = (int64_t)e % all;
        const int64_t at = (t * of.cells.rows + n) * all + i;
        const float before = before_of(of, state, t, n, i);
        put(of.before, at, before);
        const float h = of.cells.lstm  ? run_lstm(of, u, state.c, t, n, i)
                        : of.cells.gru ? run_gru(of, u, t, n, i, before)
                                       : ls_float_tanh(add_up(of, u, t, n, i, true));
        const struct ls_result to = {of.h, of.h_bf16};
        to.put(at, h);
        state.h[n * all + i] = h;
        if (t == of.cells.steps - 1)
            put(of.h_last, n * all + i, h);
    }
}

/* ---- Backward -------------------------------------------------------------------------------- */

/* What goes on from step to step, in scratch memory: [rows, hidden] each, and du [rows, width]. */
struct carried {
    float *h, *c, *rest, *du;
};

/* From dh and the gradient of c[t], then of c[t - 1], the gradients of z. */
__device__ void back_lstm(const struct ls_cuda_recurrent_back &of, int64_t t, int64_t n, int64_t i,
                          float dh, float *dc, float *dz)
{
    const int64_t all = of.cells.hidden, at = t * of.cells.rows + n;
    const float *const gate = of.gates + at * 4 * all + i;
    const float in = gate[0], forget = gate[all], out = gate[2 * all], g = gate[3 * all];
    const float y = bounded(of.c[at * all + i]), cont = of.cont[at];
    const float through = dh * out * tanh_slope(y), all_c = *dc + through;
    const bool has_c = t > 0 || of.c0 != NULL;
    const float c_before = !has_c  ? 0
                           : t > 0 ? of.c[(at - of.cells.rows) * all + i]
                                   : of.c0[n * all + i];
    dz[0] = all_c * g * sigmoid_slope(in);
    dz[1] = has_c ? all_c * sigmoid_slope(forget) * (cont * c_before) : 0;
    dz[2] = dh * y * sigmoid_slope(out);
    dz[3] = all_c * in * tanh_slope(g);
    *dc = all_c * forget * cont;
}

/* The same; du: the gradients of u. Returns what goes to `before` past w. */
__device__ float back_gru(const struct ls_cuda_recurrent_back &of, int64_t t, int64_t n, int64_t i,
                          float dh, float *dz, float *du)
{
    const int64_t all = of.cells.hidden, at = t * of.cells.rows + n;
    const float *const gate = of.gates + at * 4 * all + i;
    const float r = gate[0], keep = gate[all], fresh = gate[2 * all], inner = gate[3 * all];
    dz[2] = dh * (1 - keep) * tanh_slope(fresh);
    dz[1] = dh * (of.before[at * all + i] - fresh) * sigmoid_slope(keep);
    dz[0] = dz[2] * inner * sigmoid_slope(r);
    du[0] = dz[0];
    du[1] = dz[1];
    du[2] = dz[2] * r;
    return dh * keep;
}

__global__ void begin_backward(struct ls_cuda_recurrent_back of, struct carried carried)
{
    const int64_t state = of.cells.rows * of.cells.hidden;
    for (LS_EACH(e, state * of.cells.parts)) {
        const int64_t i = (int64_t)e;
        put(of.dstill, i, 0);
        if (i >= state)
            continue;
        carried.h[i] = number_of(of.dh_last, i);
        carried.c[i] = number_of(of.dc_last, i);
    }
}

__global__ void back_cells(struct ls_cuda_recurrent_back of, struct carried carried, int64_t t)
{
    const int64_t all = of.cells.hidden, width = of.cells.parts * all;
    for (LS_EACH(e, of.cells.rows * all)) {
        const int64_t n = (int64_t)e / all, i = (int64_t)e % all, at = t * of.cells.rows + n;
        float dz[4] = {0, 0, 0, 0}, du[4] = {0, 0, 0, 0}, dh = carried.h[e];
        const struct ls_operand from = {of.dh, of.dh_bf16}, h = {of.h, of.h_bf16};
        const struct ls_result to = {of.dz, of.dz_bf16};
        if (of.dh != NULL)
            dh = from[at * all + i] + dh;
        if (of.cells.lstm)
            back_lstm(of, t, n, i, dh, &carried.c[e], dz);
        else if (of.cells.gru)
            carried.rest[e] = back_gru(of, t, n, i, dh, dz, du);
        else
            dz[0] = dh * tanh_slope(h[at * all + i]);
        for (int64_t p = 0; p < of.cells.parts; p++) {
            const int64_t j = p * all + i;
            to.put(at * width + j, dz[p]);
            put(of.du, at * width + j, du[p]);
            carried.du[n * width + j] = of.cells.gru ? du[p] : dz[p];
            if (of.dstill != NULL)
                of.dstill[n * width + j] = of.dstill[n * width + j] + dz[p];
        }
        if (of.w == NULL) /* h of the step before is not read */
            carried.h[e] = 0;
    }
}

/* du of all sequences as lines. */
struct du_rows {
    const float *du;
    int64_t width;
    bool bf16;
    __device__ float operator()(int64_t, int64_t n, int64_t j) const
    {
        return rounded(bf16, du[n * width + j]);
    }
};

__device__ inline bool ls_tile_by_line(const struct du_rows &)
{
    return true;
}

/* dh of the step before. */
struct to_before {
    struct carried carried;
    const float *cont; /* of the step */
    int64_t hidden;
    bool gru;
    __device__ void operator()(int64_t, int64_t n, int64_t i, float sum) const
    {
        const int64_t at = n * hidden + i;
        carried.h[at] = (gru ? carried.rest[at] + sum : sum) * cont[n];
    }
};

__global__ void end_backward(struct ls_cuda_recurrent_back of, struct carried carried)
{
    for (LS_EACH(i, of.cells.rows * of.cells.hidden)) {
        put(of.dh0, (int64_t)i, carried.h[i]);
        put(of.dc0, (int64_t)i, carried.c[i]);
    }
}

int step_backward(cudaStream_t stream, const struct ls_cuda_recurrent_back *of,
                  const struct carried *carried, int64_t t)
{
    const struct ls_cuda_recurrent_back by = *of;
    const struct carried there = *carried;
    const int64_t rows = by.cells.rows, hidden = by.cells.hidden, width = by.cells.parts * hidden;
    const int code = LS_LAUNCH(back_cells, ls_blocks((uint64_t)(rows * hidden)), LS_THREADS, stream,
                               by, there, t);
    if (code != 0 || by.w == NULL)
        return code;
    const struct du_rows du = {carried->du, width, by.cells.bf16};
    const struct weights w = {by.w, hidden, true, by.cells.bf16};
    const struct to_before to = {there, by.cont + t * rows, hidden, by.cells.gru};
    return ls_tile_launch(stream, du, w, to, {rows, hidden, width, 1});
}

} // namespace

/* u [rows, width], then h and c [rows, hidden]. */
size_t ls_cuda_recurrent_scratch(const struct ls_cuda_cells *cells)
{
    return (size_t)(cells->rows * (cells->parts + 2) * cells->hidden) * sizeof(float);
}

int ls_cuda_run_cells(cudaStream_t stream, const struct ls_cuda_recurrent *of)
{
    const struct ls_cuda_recurrent by = *of;
    const int64_t rows = by.cells.rows, hidden = by.cells.hidden, width = by.cells.parts * hidden;
    float *const u = (float *)by.scratch;
    const struct state state = {u + rows * width, u + rows * (width + hidden)};
    int code = 0;
    for (int64_t t = 0; t < by.cells.steps && code == 0; t++) {
        const struct before_rows before = {by, state, t};
        const struct weights w = {by.w, hidden, false, by.cells.bf16};
        const struct to_u to = {u, width, by.b};
        if (by.w != NULL)
            code = ls_tile_launch(stream, before, w, to, {rows, width, hidden, 1});
        if (code == 0)
            code = LS_LAUNCH(run_cells, ls_blocks((uint64_t)(rows * hidden)), LS_THREADS, stream,
                             by, (const float *)u, state, t);
    }
    return code;
}

size_t ls_cuda_recurrent_back_scratch(const struct ls_cuda_cells *cells)
{
    return (size_t)(cells->rows * (cells->parts + 3) * cells->hidden) * sizeof(float);
}

int ls_cuda_run_cells_backward(cudaStream_t stream, const struct ls_cuda_recurrent_back *of)
{
    const struct ls_cuda_recurrent_back by = *of;
    const int64_t state = by.cells.rows * by.cells.hidden;
    float *const at = (float *)by.scratch;
    const struct carried carried = {at, at + state, at + 2 * state, at + 3 * state};
    int code = LS_LAUNCH(begin_backward, ls_blocks((uint64_t)(state * by.cells.parts)), LS_THREADS,
                         stream, by, carried);
    for (int64_t t = by.cells.steps; t-- > 0 && code == 0;)
        code = step_backward(stream, of, &carried, t);
    if (code != 0)
        return code;
    return LS_LAUNCH(end_backward, ls_blocks((uint64_t)state), LS_THREADS, stream, by, carried);
}
