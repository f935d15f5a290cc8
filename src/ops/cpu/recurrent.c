/* Recurrent cells over the steps of a micro-batch's sequences; see struct ls_recurrent_attr.
 *
 * Products of a step, of h with the weights, are those of ops/cpu/bf16/product.h.
 * The weights are packed into panels once and stay in the second cache for all steps; of h, or of
 * the gradient of z, the rows are packed step by step.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "base/align.h"
#include "ops/cpu/bf16/product.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/vector/convert.h"
#include "ops/cpu/vector/elementwise.h"
#include "ops/cpu/vector/recurrent.h"

/* ---- The product of a step ------------------------------------------------------------------- */

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t parts_of(size_t n, size_t part)
{
    return (n + part - 1) / part;
}

/* result = rows [count, terms] times lines [lines, terms]^T */
struct step_product {
    const struct ls_vector_bf16_product *vector;
    bool f32; /* of fp32 numbers, else of bf16 */
    size_t rows, lines, terms;
    size_t a_panel, b_panel; /* bytes */
    size_t pitch;            /* of the result */
    /* Places in scratch memory; panels of a come first. `rounded`: an operand in bf16. */
    size_t b, result, rounded, end;
};

/* AMX's tiles, which products of so few rows do not fill, give these bits, too. */
static const struct ls_vector_bf16_product *tiles_for(bool f32)
{
    return f32 || ls_cpu_unit() == LS_UNIT_AMX ? ls_vector_bf16_product() : ls_bf16_tiles(f32);
}

static struct step_product plan_product(const struct ls_recurrent_attr *attr, int64_t lines,
                                        int64_t terms)
{
    const struct ls_vector_bf16_product *vector = tiles_for(!attr->bf16);
    struct step_product plan = {.vector = vector,
                                .f32 = !attr->bf16,
                                .rows = (size_t)attr->rows,
                                .lines = (size_t)lines,
                                .terms = (size_t)terms};
    const size_t blocks = parts_of(plan.terms, LS_BF16_BLOCK) * vector->block_bytes;
    const size_t tiles = parts_of(plan.rows, vector->rows);
    const size_t panels = parts_of(plan.lines, vector->columns);
    const size_t most = plan.rows > plan.lines ? plan.rows : plan.lines;
    plan.a_panel = vector->rows * blocks;
    plan.b_panel = vector->columns * blocks;
    plan.pitch = panels * vector->columns;
    plan.b = ls_align(tiles * plan.a_panel);
    plan.result = plan.b + ls_align(panels * plan.b_panel);
    plan.rounded = plan.result + ls_align(tiles * vector->rows * plan.pitch * sizeof(float));
    plan.end = plan.rounded + (plan.f32 ? 0 : ls_align(most * plan.terms * sizeof(uint16_t)));
    return plan;
}

static float *result_of(const struct step_product *plan, char *scratch)
{
    return (float *)(void *)(scratch + plan->result);
}

/* Packs lines of fp32 numbers, `width` at a time, into panels from `to` on, which lie in `scratch`.
 */
static void pack(const struct step_product *plan, const struct ls_bf16_lines *from, size_t width,
                 void (*packer)(const struct ls_bf16_lines *from, void *panel), char *scratch,
                 char *to)
{
    const size_t block = width * plan->vector->block_bytes;
    uint16_t *rounded = (uint16_t *)(void *)(scratch + plan->rounded);
    if (!plan->f32)
        ls_vector_convert()->f32_to_bf16((const uint32_t *)(const void *)from->floats, rounded,
                                         from->lines * plan->terms);
    for (size_t line = 0; line < from->lines; line += width) {
        for (size_t term = 0; term < plan->terms; term += LS_BF16_READ_TERMS) {
            struct ls_bf16_lines part = *from;
            const size_t at = from->by_term ? term * from->pitch + line : line * from->pitch + term;
            part.floats = plan->f32 ? from->floats + at : NULL;
            part.data = plan->f32 ? NULL : rounded + at;
            part.lines = smaller(width, from->lines - line);
            part.terms = smaller(LS_BF16_READ_TERMS, plan->terms - term);
            packer(&part, to + term / LS_BF16_BLOCK * block);
        }
        to += parts_of(plan->terms, LS_BF16_BLOCK) * block;
    }
}

/* The weights w [G H, H]: forward lines are its rows, backward its columns. */
static void pack_weights(const struct step_product *plan, const float *w, bool backward,
                         char *scratch)
{
    const struct ls_bf16_lines lines = {.floats = w,
                                        .pitch = backward ? plan->lines : plan->terms,
                                        .by_term = backward,
                                        .lines = plan->lines};
    pack(plan, &lines, plan->vector->columns, plan->vector->pack_b, scratch, scratch + plan->b);
}

static void multiply_rows(const struct step_product *plan, const float *rows, char *scratch)
{
    const struct ls_vector_bf16_product *vector = plan->vector;
    const struct ls_bf16_lines lines = {.floats = rows, .pitch = plan->terms, .lines = plan->rows};
    pack(plan, &lines, vector->rows, vector->pack_a, scratch, scratch);
    for (size_t j = 0; j < plan->lines; j += vector->columns)
        for (size_t k = 0, count; k < plan->terms; k += count) {
            const size_t begin = k / LS_BF16_BLOCK * vector->block_bytes;
            count = smaller(vector->depth, plan->terms - k);
            struct ls_bf16_tile tile = {.b = scratch + plan->b +
                                             j / vector->columns * plan->b_panel +
                                             begin * vector->columns,
                                        .f32 = plan->f32,
                                        .terms = count,
                                        .pitch = plan->pitch,
                                        .columns = smaller(vector->columns, plan->lines - j),
                                        .first = k == 0,
                                        .last = k + count == plan->terms};
            for (size_t i = 0; i < plan->rows; i += vector->rows) {
                tile.a = scratch + i / vector->rows * plan->a_panel + begin * vector->rows;
                tile.c = result_of(plan, scratch) + i * plan->pitch + j;
                tile.rows = smaller(vector->rows, plan->rows - i);
                vector->multiply(&tile);
            }
        }
}

/* ---- Forward --------------------------------------------------------------------------------- */

/* Operands of the op, in its order, and how long they are. */
struct forward {
    const float *z, *cont, *still, *w, *b, *h0, *c0;
    float *h, *gates, *before, *c, *h_last, *c_last;
    enum ls_cell cell;
    size_t steps, rows, hidden, width; /* width: G H */
};

static size_t gates_of(const struct ls_recurrent_attr *attr)
{
    return attr->cell == LS_CELL_RNN ? 0 : 4 * (size_t)attr->hidden;
}

/* Memory for what nothing reads behind a step: gates of a sequence, what was before and c of all.
 */
static size_t spare_floats(const struct ls_recurrent_attr *attr)
{
    return gates_of(attr) + 2 * (size_t)(attr->rows * attr->hidden);
}

static struct step_product forward_product(const struct ls_recurrent_attr *attr)
{
    return plan_product(attr, ls_cell_parts(attr->cell) * attr->hidden, attr->hidden);
}

/* before = cont h, of all sequences; zeros in front of the first step where there is no h0. */
static void take_before(const struct forward *f, size_t t, float *before)
{
    const float *h = t > 0 ? f->h + (t - 1) * f->rows * f->hidden : f->h0;
    for (size_t n = 0; n < f->rows; n++)
        if (h != NULL)
            ls_vector_elementwise()->multiply_by(h + n * f->hidden, f->cont[t * f->rows + n],
                                                 before + n * f->hidden, f->hidden);
        else
            memset(before + n * f->hidden, 0, f->hidden * sizeof *before);
}

/* One sequence in step t; u is its product, or NULL. */
static void run_cell(const struct forward *f, size_t t, size_t n, float *u, const float *before,
                     float *spare_gates, float *spare_c)
{
    const struct ls_vector_recurrent *vector = ls_vector_recurrent();
    const size_t at = t * f->rows + n, H = f->hidden;
    const float *still = f->still != NULL ? f->still + n * f->width : NULL;
    float *gates = f->gates != NULL ? f->gates + at * 4 * H : spare_gates, *h = f->h + at * H;
    if (u != NULL && f->b != NULL)
        ls_vector_elementwise()->add(u, f->b, u, f->width);
    if (f->cell == LS_CELL_RNN) {
        vector->rnn(f->z + at * H, still, u, h, H);
    } else if (f->cell == LS_CELL_GRU) {
        vector->gru(f->z + at * f->width, still, u, before + n * H, gates, h, H);
    } else {
        float *c = f->c != NULL ? f->c + at * H : spare_c + n * H;
        const float *start = f->c0 != NULL ? f->c0 + n * H : NULL;
        const float *c_before = t == 0 ? start : f->c != NULL ? c - f->rows * H : c;
        vector->lstm_gates(f->z + at * f->width, still, u, gates, H);
        vector->lstm(gates, c_before, f->cont[at], c, h, H);
    }
}

static int forward_run(const struct ls_prepared *prepared, void *local, void *const *in,
                       void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)context;
    const struct ls_recurrent_attr *attr = &prepared->op->attr.recurrent;
    const struct step_product plan = forward_product(attr);
    const struct forward f = {in[0],
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
                              (size_t)(ls_cell_parts(attr->cell) * attr->hidden)};
    const size_t state = f.rows * f.hidden;
    float *spare_gates = (float *)(void *)((char *)scratch + plan.end);
    float *spare_before = spare_gates + gates_of(attr), *spare_c = spare_before + state;
    if (f.w != NULL)
        pack_weights(&plan, f.w, false, scratch);
    for (size_t t = 0; t < f.steps; t++) {
        float *before = f.before != NULL ? f.before + t * state : spare_before;
        take_before(&f, t, before);
        if (f.w != NULL)
            multiply_rows(&plan, before, scratch);
        for (size_t n = 0; n < f.rows; n++)
            run_cell(&f, t, n, f.w != NULL ? result_of(&plan, scratch) + n * plan.pitch : NULL,
                     before, spare_gates, spare_c);
    }
    if (f.h_last != NULL)
        memcpy(f.h_last, f.h + (f.steps - 1) * state, state * sizeof(float));
    if (f.c_last != NULL)
        memcpy(f.c_last, f.c != NULL ? f.c + (f.steps - 1) * state : spare_c,
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
    const float *dh, *dh_last, *dc_last, *gates, *h, *before, *c, *c0, *cont, *w;
    float *dz, *du, *dstill, *dh0, *dc0;
    enum ls_cell cell;
    size_t steps, rows, hidden, width;
    /* What goes on from step to step, [rows, hidden]: the gradients of h and c of the step, and the
     * part of dh that goes past w; then [hidden] each. */
    float *carry_h, *carry_c, *rest, *all, *spare;
    float *spare_u; /* GRU, where du is not asked for: [rows, width] */
};

static struct step_product backward_product(const struct ls_recurrent_attr *attr)
{
    return plan_product(attr, attr->hidden, ls_cell_parts(attr->cell) * attr->hidden);
}

static size_t backward_floats(const struct ls_recurrent_attr *attr)
{
    const size_t hidden = (size_t)attr->hidden, rows = (size_t)attr->rows;
    return rows * hidden * 3 + 2 * hidden + (attr->cell == LS_CELL_GRU ? rows * 3 * hidden : 0);
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

/* One sequence in step t. */
static void run_back(const struct backward *b, size_t t, size_t n, float *du)
{
    const struct ls_vector_recurrent *vector = ls_vector_recurrent();
    const size_t at = t * b->rows + n, H = b->hidden;
    const float *carried = b->carry_h + n * H;
    const float *start_c = b->c0 != NULL ? b->c0 + n * H : NULL;
    struct ls_cell_back back = {.dh = carried,
                                .cont = b->cont[at],
                                .dc = b->carry_c + n * H,
                                .dz = b->dz + at * b->width,
                                .du = du,
                                .rest = b->rest + n * H,
                                .spare = b->spare};
    if (b->dh != NULL) {
        ls_vector_elementwise()->add(b->dh + at * H, carried, b->all, H);
        back.dh = b->all;
    }
    if (b->cell == LS_CELL_RNN) {
        back.h = b->h + at * H;
        vector->rnn_back(&back, H);
    } else if (b->cell == LS_CELL_GRU) {
        back.gates = b->gates + at * 4 * H;
        back.before = b->before + at * H;
        vector->gru_back(&back, H);
    } else {
        back.gates = b->gates + at * 4 * H;
        back.c = b->c + at * H;
        back.c_before = t > 0 ? back.c - b->rows * H : start_c;
        vector->lstm_back(&back, H);
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

static void run_steps(const struct backward *b, const struct step_product *plan, char *scratch)
{
    const bool gru = b->cell == LS_CELL_GRU;
    for (size_t t = b->steps; t-- > 0;) {
        const size_t first = t * b->rows * b->width;
        float *du = !gru ? NULL : b->du != NULL ? b->du + first : b->spare_u;
        for (size_t n = 0; n < b->rows; n++)
            run_back(b, t, n, gru ? du + n * b->width : NULL);
        if (t == 0 && b->dh0 == NULL)
            return;
        if (b->w == NULL) { /* h of the step before is not read */
            memset(b->carry_h, 0, b->rows * b->hidden * sizeof *b->carry_h);
            continue;
        }
        multiply_rows(plan, gru ? du : b->dz + first, scratch);
        carry_on(b, t, result_of(plan, scratch), plan->pitch);
    }
}

static int backward_run(const struct ls_prepared *prepared, void *local, void *const *in,
                        void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)context;
    const struct ls_recurrent_attr *attr = &prepared->op->attr.recurrent;
    const struct step_product plan = backward_product(attr);
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
                         .carry_h = (float *)(void *)((char *)scratch + plan.end)};
    b.carry_c = b.carry_h + state;
    b.rest = b.carry_c + state;
    b.all = b.rest + state;
    b.spare = b.all + b.hidden;
    b.spare_u = b.spare + b.hidden;
    start(&b);
    if (b.w != NULL)
        pack_weights(&plan, b.w, true, scratch);
    run_steps(&b, &plan, scratch);
    if (b.dh0 != NULL)
        memcpy(b.dh0, b.carry_h, state * sizeof(float));
    if (b.dc0 != NULL)
        memcpy(b.dc0, b.carry_c, state * sizeof(float));
    return 0;
}

static int backward_prepare(struct ls_prepared *prepared, struct ls_error *error)
{
    const struct ls_recurrent_attr *attr = &prepared->op->attr.recurrent;
    prepared->scratch_bytes = backward_product(attr).end + backward_floats(attr) * sizeof(float);
    return ls_own_prepare(prepared, error);
}

const struct ls_kernel ls_kernel_recurrent = {
    .kind = LS_OP_RECURRENT,
    .bits = LS_BITS_DEFINED,
    .name = "recurrent",
    .prepare = forward_prepare,
    .run = forward_run,
    .in_place = -1,
};

const struct ls_kernel ls_kernel_recurrent_backward = {
    .kind = LS_OP_RECURRENT_BACKWARD,
    .bits = LS_BITS_DEFINED,
    .name = "recurrent backward",
    .prepare = backward_prepare,
    .run = backward_run,
    .in_place = -1,
};
