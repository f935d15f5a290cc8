/* Recurrent cells over the steps of a micro-batch's sequences; see struct ls_recurrent_attr.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "ops/cpu/bf16/kernel.h"
#include "ops/cpu/convert.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/step_product.h"
#include "ops/cpu/vector/elementwise.h"
#include "ops/cpu/vector/recurrent.h"

/* ---- Forward --------------------------------------------------------------------------------- */

/* Operands of the op, in its order, and how long they are. */
struct forward {
    const void *z; /* bf16 where `bf16` says it, as h */
    const float *cont, *still, *w, *b, *h0, *c0;
    void *h;
    float *gates, *before, *c, *h_last, *c_last;
    enum ls_cell cell;
    size_t steps, rows, hidden, width; /* width: G H */
    bool z_bf16, h_bf16;
    /* What nothing reads behind a step: gates of a sequence (GRU), then what was before, c, and h
     * in fp32 where it is rounded, of all sequences. */
    float *spare_gates, *spare_before, *spare_c, *spare_h;
};

static size_t gates_of(const struct ls_recurrent_attr *attr)
{
    return attr->cell == LS_CELL_RNN ? 0 : 4 * (size_t)attr->hidden;
}

static size_t spare_floats(const struct ls_recurrent_attr *attr)
{
    return gates_of(attr) + 3 * (size_t)(attr->rows * attr->hidden);
}

static struct ls_step_product forward_product(const struct ls_recurrent_attr *attr)
{
    return ls_step_product_plan(attr, ls_cell_parts(attr->cell) * attr->hidden, attr->hidden);
}

/* h of step t, in fp32, of all sequences. */
static float *hidden_of(const struct forward *f, size_t t)
{
    return f->h_bf16 ? f->spare_h : (float *)f->h + t * f->rows * f->hidden;
}

/* before = cont h, of all sequences; zeros in front of the first step where there is no h0. */
static void take_before(const struct forward *f, size_t t, float *before)
{
    const float *h = t > 0 ? hidden_of(f, t - 1) : f->h0;
    for (size_t n = 0; n < f->rows; n++)
        if (h != NULL)
            ls_vector_elementwise()->multiply_by(h + n * f->hidden, f->cont[t * f->rows + n],
                                                 before + n * f->hidden, f->hidden);
        else
            memset(before + n * f->hidden, 0, f->hidden * sizeof *before);
}

static void run_lstm(const struct forward *f, size_t t, size_t n, const float *u)
{
    const size_t at = t * f->rows + n, H = f->hidden;
    float *c = f->c != NULL ? f->c + at * H : f->spare_c + n * H;
    const float *start = f->c0 != NULL ? f->c0 + n * H : NULL;
    const struct ls_lstm_step step = {
        .z = ls_bf16_element(f->z, !f->z_bf16, (int64_t)(at * f->width)),
        .bf16 = f->z_bf16,
        .still = f->still != NULL ? f->still + n * f->width : NULL,
        .u = u,
        .c_before = t == 0         ? start
                    : f->c != NULL ? c - f->rows * H
                                   : c,
        .cont = f->cont[at],
        .gates = f->gates != NULL ? f->gates + at * 4 * H : NULL,
        .c = c,
        .h = hidden_of(f, t) + n * H,
        .rounded = f->h_bf16 ? (uint16_t *)f->h + at * H : NULL};
    ls_vector_recurrent()->lstm(&step, H);
}

/* One sequence in step t; u is its product, or NULL. */
static void run_cell(const struct forward *f, size_t t, size_t n, float *u, const float *before)
{
    const struct ls_vector_recurrent *vector = ls_vector_recurrent();
    const size_t at = t * f->rows + n, H = f->hidden;
    const float *z = f->z, *still = f->still != NULL ? f->still + n * f->width : NULL;
    float *gates = f->gates != NULL ? f->gates + at * 4 * H : f->spare_gates;
    if (u != NULL && f->b != NULL)
        ls_vector_elementwise()->add(u, f->b, u, f->width);
    if (f->cell == LS_CELL_RNN)
        vector->rnn(z + at * H, still, u, (float *)f->h + at * H, H);
    else if (f->cell == LS_CELL_GRU)
        vector->gru(z + at * f->width, still, u, before + n * H, gates, (float *)f->h + at * H, H);
    else
        run_lstm(f, t, n, u);
}

static int forward_run(const struct ls_prepared *prepared, void *local, void *const *in,
                       void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)context;
    const struct ls_recurrent_attr *attr = &prepared->op->attr.recurrent;
    const struct ls_step_product plan = forward_product(attr);
    struct forward f = {in[0],
                        in[1],
                        in[2],
                        in[3],
                        in[4],
                        in[5],
                        in[6],
                        out[0],
                        out[1],
                        out[2],
                        out[3],
                        out[4],
                        out[5],
                        attr->cell,
                        (size_t)attr->steps,
                        (size_t)attr->rows,
                        (size_t)attr->hidden,
                        (size_t)(ls_cell_parts(attr->cell) * attr->hidden),
                        .z_bf16 = prepared->op->input[0]->type == LS_BF16,
                        .h_bf16 = prepared->op->output[0]->type == LS_BF16,
                        .spare_gates = (float *)(void *)((char *)scratch + plan.end)};
    const size_t state = f.rows * f.hidden;
    f.spare_before = f.spare_gates + gates_of(attr);
    f.spare_c = f.spare_before + state;
    f.spare_h = f.spare_c + state;
    if (f.w != NULL)
        ls_step_product_weights(&plan, f.w, false, scratch);
    for (size_t t = 0; t < f.steps; t++) {
        float *before = f.before != NULL ? f.before + t * state : f.spare_before;
        take_before(&f, t, before);
        if (f.w != NULL)
            ls_step_product_multiply(&plan, before, false, scratch);
        for (size_t n = 0; n < f.rows; n++)
            run_cell(&f, t, n,
                     f.w != NULL ? ls_step_product_result(&plan, scratch) + n * plan.pitch : NULL,
                     before);
    }
    if (f.h_last != NULL)
        memcpy(f.h_last, hidden_of(&f, f.steps - 1), state * sizeof(float));
    if (f.c_last != NULL)
        memcpy(f.c_last, f.c != NULL ? f.c + (f.steps - 1) * state : f.spare_c,
               state * sizeof(float));
    return 0;
}

static int forward_prepare(struct ls_prepared *prepared, struct ls_error *error)
{
    const struct ls_recurrent_attr *attr = &prepared->op->attr.recurrent;
    prepared->scratch_bytes = forward_product(attr).end + spare_floats(attr) * sizeof(float);
    return ls_own_prepare(prepared, error);
}

/* ---- Backward -------------------------------------------------------------------------------- */

struct backward {
    const void *dh; /* bf16 where `dh_bf16` says it */
    const float *dh_last, *dc_last, *gates, *h, *before, *c, *c0, *cont, *w;
    void *dz; /* bf16 where `dz_bf16` says it */
    float *du, *dstill, *dh0, *dc0;
    enum ls_cell cell;
    size_t steps, rows, hidden, width;
    bool dh_bf16, dz_bf16;
    /* What goes on from step to step, [rows, hidden]: the gradients of h and c of the step, and the
     * part of dh that goes past w; then [hidden]. */
    float *carry_h, *carry_c, *rest, *all;
    float *spare; /* [rows, width]: du of GRU where it is not asked for, dstill that is rounded */
};

static struct ls_step_product backward_product(const struct ls_recurrent_attr *attr)
{
    return ls_step_product_plan(attr, attr->hidden, ls_cell_parts(attr->cell) * attr->hidden);
}

static size_t backward_floats(const struct ls_recurrent_attr *attr)
{
    const size_t hidden = (size_t)attr->hidden, rows = (size_t)attr->rows;
    return rows * hidden * 3 + hidden + rows * (size_t)ls_cell_parts(attr->cell) * hidden;
}

static void start(const struct backward *b)
{
    const size_t bytes = b->rows * b->hidden * sizeof(float);
    if (b->dh_last != NULL)
        memcpy(b->carry_h, b->dh_last, bytes);
    else
        memset(b->carry_h, 0, bytes);
    if (b->dc_last != NULL)
        memcpy(b->carry_c, b->dc_last, bytes);
    else
        memset(b->carry_c, 0, bytes);
    if (b->dstill != NULL)
        memset(b->dstill, 0, b->rows * b->width * sizeof(float));
}

static void run_lstm_back(const struct backward *b, size_t t, size_t n)
{
    const size_t at = t * b->rows + n, H = b->hidden;
    const struct ls_lstm_back back = {
        .gates = b->gates + at * 4 * H,
        .c = b->c + at * H,
        .c_before = t > 0           ? b->c + (at - b->rows) * H
                    : b->c0 != NULL ? b->c0 + n * H
                                    : NULL,
        .dh = b->dh != NULL ? ls_bf16_element(b->dh, !b->dh_bf16, (int64_t)(at * H)) : NULL,
        .dh_bf16 = b->dh_bf16,
        .carried = b->carry_h + n * H,
        .cont = b->cont[at],
        .dc = b->carry_c + n * H,
        .dz = (char *)b->dz + at * b->width * (b->dz_bf16 ? sizeof(uint16_t) : sizeof(float)),
        .dz_bf16 = b->dz_bf16,
        .dstill = b->dstill != NULL ? b->dstill + n * b->width : NULL};
    ls_vector_recurrent()->lstm_back(&back, H);
}

/* One sequence in step t. */
static void run_back(const struct backward *b, size_t t, size_t n, float *du)
{
    const size_t at = t * b->rows + n, H = b->hidden;
    struct ls_cell_back back = {.dh = b->carry_h + n * H,
                                .dz = (float *)b->dz + at * b->width,
                                .du = du,
                                .rest = b->rest + n * H};
    if (b->cell == LS_CELL_LSTM) {
        run_lstm_back(b, t, n);
        return;
    }
    if (b->dh != NULL) {
        ls_vector_elementwise()->add((const float *)b->dh + at * H, back.dh, b->all, H);
        back.dh = b->all;
    }
    if (b->cell == LS_CELL_RNN) {
        back.h = b->h + at * H;
        ls_vector_recurrent()->rnn_back(&back, H);
    } else {
        back.gates = b->gates + at * 4 * H;
        back.before = b->before + at * H;
        ls_vector_recurrent()->gru_back(&back, H);
    }
    if (b->dstill != NULL)
        ls_vector_elementwise()->add(b->dstill + n * b->width, back.dz, b->dstill + n * b->width,
                                     b->width);
}

/* The gradient of h of the step before: cont times that of `before`. */
static void carry_on(const struct backward *b, size_t t, const float *product, size_t pitch)
{
    const struct ls_vector_elementwise *vector = ls_vector_elementwise();
    for (size_t n = 0; n < b->rows; n++) {
        float *to = b->carry_h + n * b->hidden;
        const float cont = b->cont[t * b->rows + n], *from = product + n * pitch;
        if (b->cell == LS_CELL_GRU) {
            vector->add(b->rest + n * b->hidden, from, to, b->hidden);
            from = to;
        }
        vector->multiply_by(from, cont, to, b->hidden);
    }
}

static void run_steps(const struct backward *b, const struct ls_step_product *plan, char *scratch)
{
    const bool gru = b->cell == LS_CELL_GRU;
    for (size_t t = b->steps; t-- > 0;) {
        const size_t first = t * b->rows * b->width;
        float *du = !gru ? NULL : b->du != NULL ? b->du + first : b->spare;
        for (size_t n = 0; n < b->rows; n++)
            run_back(b, t, n, gru ? du + n * b->width : NULL);
        if (t == 0 && b->dh0 == NULL)
            return;
        if (b->w == NULL) { /* h of the step before is not read */
            memset(b->carry_h, 0, b->rows * b->hidden * sizeof *b->carry_h);
            continue;
        }
        if (gru)
            ls_step_product_multiply(plan, du, false, scratch);
        else
            ls_step_product_multiply(plan, ls_bf16_element(b->dz, !b->dz_bf16, (int64_t)first),
                                     b->dz_bf16, scratch);
        carry_on(b, t, ls_step_product_result(plan, scratch), plan->pitch);
    }
}

/* Puts fp32 numbers where an output lies, as it is typed. */
static void put_out(const struct ls_op *op, int output, void *to, const float *from, size_t count)
{
    if (to != NULL)
        ls_cpu_convert(LS_F32, from, op->output[output]->type, to, count);
}

static int backward_run(const struct ls_prepared *prepared, void *local, void *const *in,
                        void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)context;
    const struct ls_op *op = prepared->op;
    const struct ls_recurrent_attr *attr = &op->attr.recurrent;
    const struct ls_step_product plan = backward_product(attr);
    const size_t state = (size_t)(attr->rows * attr->hidden);
    struct backward b = {in[0],
                         in[1],
                         in[2],
                         in[3],
                         in[4],
                         in[5],
                         in[6],
                         in[7],
                         in[8],
                         in[9],
                         out[0],
                         out[1],
                         out[2],
                         out[3],
                         out[4],
                         attr->cell,
                         (size_t)attr->steps,
                         (size_t)attr->rows,
                         (size_t)attr->hidden,
                         (size_t)(ls_cell_parts(attr->cell) * attr->hidden),
                         .dh_bf16 = op->input[0] != NULL && op->input[0]->type == LS_BF16,
                         .dz_bf16 = op->output[0]->type == LS_BF16,
                         .carry_h = (float *)(void *)((char *)scratch + plan.end)};
    b.carry_c = b.carry_h + state;
    b.rest = b.carry_c + state;
    b.all = b.rest + state;
    b.spare = b.all + b.hidden;
    const bool rounds_still = out[2] != NULL && op->output[2]->type == LS_BF16;
    if (rounds_still)
        b.dstill = b.spare;
    start(&b);
    if (b.w != NULL)
        ls_step_product_weights(&plan, b.w, true, scratch);
    run_steps(&b, &plan, scratch);
    if (rounds_still)
        put_out(op, 2, out[2], b.dstill, b.rows * b.width);
    put_out(op, 3, out[3], b.carry_h, state);
    put_out(op, 4, out[4], b.carry_c, state);
    return 0;
}

static int backward_prepare(struct ls_prepared *prepared, struct ls_error *error)
{
    const struct ls_recurrent_attr *attr = &prepared->op->attr.recurrent;
    prepared->scratch_bytes = backward_product(attr).end + backward_floats(attr) * sizeof(float);
    return ls_own_prepare(prepared, error);
}

/* ---- Types ----------------------------------------------------------------------------------- */

/* LSTM reads z and dh, and writes h and the gradients, in bf16 where they are; what its products
 * round is rounded anyhow. */
static bool takes_bf16(const struct ls_op *op)
{
    return op->attr.recurrent.cell == LS_CELL_LSTM && op->attr.recurrent.bf16;
}

/* Input 0, z or dh, comes as it is, all else in fp32. */
static int layouts(const struct ls_op *op, struct ls_op_layouts *result, struct ls_error *error)
{
    (void)error;
    for (int i = 0; i < op->inputs; i++) {
        result->in[i] = &ls_layout_plain;
        if (i > 0 || !takes_bf16(op))
            result->in_type[i] = LS_F32;
    }
    for (int i = 0; i < op->outputs; i++)
        result->out[i] = &ls_layout_plain;
    return 0;
}

const struct ls_kernel ls_kernel_recurrent = {
    .kind = LS_OP_RECURRENT,
    .bits = LS_BITS_DEFINED,
    .name = "recurrent",
    .takes_bf16 = takes_bf16,
    .layouts = layouts,
    .prepare = forward_prepare,
    .run = forward_run,
    .in_place = -1,
};

const struct ls_kernel ls_kernel_recurrent_backward = {
    .kind = LS_OP_RECURRENT_BACKWARD,
    .bits = LS_BITS_DEFINED,
    .name = "recurrent backward",
    .takes_bf16 = takes_bf16,
    .layouts = layouts,
    .prepare = backward_prepare,
    .run = backward_run,
    .in_place = -1,
};
