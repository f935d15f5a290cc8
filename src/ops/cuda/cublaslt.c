/* Products with weights and of matrices by cuBLASLt, where their definition does not say PORTABLE.
 * What is not accepted here has kernels of our own (ops/cuda/products.c). docs/numerics.md, section
 * 27, says which bits these are. See ops/cuda/ops.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/cublaslt.h"

#include "base/memory.h"
#include "ir/layer.h"
#include "ops/cuda/kernels/finish.h"

enum { WORKSPACE_ALIGNMENT = 256 };

/* A step: the product, and what follows it by a kernel of our own. */
struct step {
    struct ls_cublaslt_product product;
    bool bias, relu; /* behind the product */
    float slope;
    size_t staged; /* bytes of scratch that the product is written to; 0: to the output */
};

/* ---- Shapes ---------------------------------------------------------------------------------- */

static bool is_bf16(const struct ls_value *value)
{
    return value->type == LS_BF16;
}

/* y = x w^T, dx = dy w, dw = dy^T x; with `transpose` w and dw are turned around. */
static struct ls_cublaslt_shape inner_shape(const struct ls_op *op)
{
    const struct ls_inner_product_attr *attr = &op->attr.inner_product;
    const bool transpose = attr->transpose;
    struct ls_cublaslt_shape of = {.batch = 1, .scale = 1, .bf16 = op->bf16, .tf32 = op->tf32};
    switch (op->kind) {
    case LS_OP_INNER_PRODUCT:
        of.lines = attr->m;
        of.columns = attr->n;
        of.terms = attr->k;
        of.turned_b = !transpose;
        break;
    case LS_OP_INNER_PRODUCT_DATA:
        of.lines = attr->m;
        of.columns = attr->k;
        of.terms = attr->n;
        of.turned_b = transpose;
        break;
    default: /* by weights */
        of.lines = transpose ? attr->k : attr->n;
        of.columns = transpose ? attr->n : attr->k;
        of.terms = attr->m;
        of.turned_a = true;
        break;
    }
    of.bf16_out = is_bf16(op->output[0]);
    return of;
}

/* The places in front of the matrices, if a and b each have all of them, or one; 0: it is not so.
 * One place of y where others have more is a sum. */
static int64_t batch_of(const struct ls_op *op, bool *each_a, bool *each_b)
{
    const struct ls_shape *a = &op->input[0]->shape, *b = &op->input[1]->shape;
    const struct ls_shape *y = &op->output[0]->shape;
    const int outer = y->rank - 2;
    const int64_t all = ls_shape_count(y, 0, outer);
    const int64_t of_a = ls_shape_count(a, 0, outer), of_b = ls_shape_count(b, 0, outer);
    *each_a = of_a > 1;
    *each_b = of_b > 1;
    return (of_a == all || of_a == 1) && (of_b == all || of_b == 1) ? all : 0;
}

static struct ls_cublaslt_shape matmul_shape(const struct ls_op *op)
{
    const struct ls_matmul_attr *attr = &op->attr.matmul;
    const struct ls_shape *a = &op->input[0]->shape, *y = &op->output[0]->shape;
    struct ls_cublaslt_shape of = {.lines = y->dim[y->rank - 2],
                                   .columns = y->dim[y->rank - 1],
                                   .terms = a->dim[a->rank - (attr->transpose_a ? 2 : 1)],
                                   .turned_a = attr->transpose_a,
                                   .turned_b = attr->transpose_b,
                                   .bf16 = op->bf16,
                                   .tf32 = op->tf32,
                                   .bf16_out = is_bf16(op->output[0]),
                                   .scale = attr->scale};
    of.batch = batch_of(op, &of.each_a, &of.each_b);
    return of;
}

static struct ls_cublaslt_shape shape_of(const struct ls_op *op)
{
    return op->kind == LS_OP_MATMUL ? matmul_shape(op) : inner_shape(op);
}

/* ---- What is taken --------------------------------------------------------------------------- */

static bool accepts_inner(const struct ls_op *op)
{
    const struct ls_cublaslt_shape shape = inner_shape(op);
    return !op->attr.inner_product.portable && ls_cublaslt_takes(&shape);
}

/* In fp32 its sums have a declared order in every training, and in BF16 where the solver says
 * PORTABLE. A scale of 0 makes the library read nothing, so that a NaN would be lost. */
static bool accepts_matmul(const struct ls_op *op)
{
    const struct ls_cublaslt_shape shape = matmul_shape(op);
    const bool portable = op->layer != NULL && op->layer->portable;
    return (op->tf32 || (op->bf16 && !portable)) && shape.scale != 0 && ls_cublaslt_takes(&shape);
}

static bool takes_bf16(const struct ls_op *op)
{
    return op->bf16;
}

/* Everything as it lies; weights that are rounded come as views in bf16. */
static int layouts(const struct ls_op *op, struct ls_op_layouts *layouts, struct ls_error *error)
{
    (void)error;
    for (int i = 0; i < op->inputs; i++) {
        layouts->in[i] = &ls_layout_plain;
        if (op->bf16 && i < 2)
            layouts->in_type[i] = LS_BF16;
    }
    return 0;
}

/* ---- Making ready ---------------------------------------------------------------------------- */

/* What the library does behind the sum, and what is left to a kernel of ours. A bias is fp32, which
 * the library takes beside an fp32 output alone (cublasLt.h, BIAS_DATA_TYPE): for an output in bf16
 * the sum is written as fp32 first, so that it is rounded once. */
static void split_ending(const struct ls_op *op, struct step *step, struct ls_cublaslt_shape *shape)
{
    const struct ls_inner_product_attr *attr = &op->attr.inner_product;
    if (op->kind != LS_OP_INNER_PRODUCT)
        return;
    const bool bias = op->inputs > 2 && op->input[2] != NULL;
    const bool sloped = attr->relu && attr->relu_slope != 0;
    const bool staged = shape->bf16_out && (bias || sloped);
    shape->bias = bias && !staged;
    shape->relu = attr->relu && !sloped && !staged;
    step->bias = bias && staged;
    step->relu = attr->relu && !shape->relu;
    step->slope = attr->relu_slope;
    if (staged) {
        shape->bf16_out = false;
        step->staged = (size_t)(shape->lines * shape->columns) * sizeof(float);
        step->staged =
            (step->staged + WORKSPACE_ALIGNMENT - 1) & ~(size_t)(WORKSPACE_ALIGNMENT - 1);
    }
}

static void release(void *state)
{
    struct step *step = state;
    ls_cublaslt_free(&step->product);
    ls_free(step);
}

static int prepare(struct ls_prepared *prepared, struct ls_error *error)
{
    struct step *step = ls_alloc(1, sizeof *step);
    if (step == NULL)
        return ls_fail_memory(error, "a product on a card");
    struct ls_cublaslt_shape shape = shape_of(prepared->op);
    split_ending(prepared->op, step, &shape);
    int status = ls_cublaslt_choose(prepared->op, &shape, &step->product, error);
    if (status == 0)
        status = ls_cublaslt_name(&step->product, prepared->op, prepared->implementation,
                                  sizeof prepared->implementation, error);
    prepared->scratch_bytes = step->staged + step->product.workspace;
    if (status == 0)
        prepared->state = step;
    else
        release(step);
    return status;
}

/* ---- Running --------------------------------------------------------------------------------- */

static int run_product(const struct ls_card_call *call, const void *a, const void *b,
                       const float *bias, void *out)
{
    struct step *step = call->state;
    char *scratch = call->scratch;
    return ls_cublaslt_run(&step->product, call, a, b, bias, out,
                           scratch != NULL ? scratch + step->staged : NULL);
}

static int multiply(const struct ls_card_call *call)
{
    return run_product(call, call->in[0], call->in[1], NULL, call->out[0]);
}

/* The status of a kernel of ours. */
static int finish(const struct ls_card_call *call, int code)
{
    return ls_card_check_op(code, call->op, "carry out", call->context->error);
}

static int inner_product(const struct ls_card_call *call)
{
    const struct step *step = call->state;
    const struct ls_cublaslt_shape *shape = &step->product.shape;
    const float *bias = ls_card_in(call, 2);
    void *sum = step->staged > 0 ? call->scratch : call->out[0];
    LS_TRY(run_product(call, call->in[0], call->in[1], shape->bias ? bias : NULL, sum));
    if (!step->relu && step->staged == 0)
        return 0;
    const struct ls_cuda_ending ending = {.columns = shape->columns,
                                          .bias = step->bias ? bias : NULL,
                                          .relu = step->relu,
                                          .slope = step->slope};
    return finish(call, ls_cuda_end_sums(call->stream, &ending, sum, is_bf16(call->op->output[0]),
                                         call->out[0], shape->lines * shape->columns));
}

/* dw, and db by a kernel of ours: for the library's (CUBLASLT_EPILOGUE_BGRADA and BGRADB) no order
 * of the sum is documented. */
static int inner_product_weights(const struct ls_card_call *call)
{
    const struct ls_inner_product_attr *attr = &call->op->attr.inner_product;
    const bool transpose = attr->transpose;
    const void *x = call->in[0], *dy = call->in[1];
    float *db = ls_card_out(call, 1);
    LS_TRY(run_product(call, transpose ? x : dy, transpose ? dy : x, NULL, call->out[0]));
    if (db == NULL)
        return 0;
    return finish(call,
                  ls_cuda_sum_columns(call->stream, dy, call->op->bf16, attr->m, attr->n, db));
}

#define BY_CUBLASLT(run, takes)                                                                    \
    {                                                                                              \
        .try_run = (run), .accepts = (takes), .layouts = layouts, .takes_bf16 = takes_bf16,        \
        .prepare = prepare, .release = release, .library = true                                    \
    }

const struct ls_card_op ls_card_cublaslt[LS_OP_KINDS] = {
    [LS_OP_INNER_PRODUCT] = BY_CUBLASLT(inner_product, accepts_inner),
    [LS_OP_INNER_PRODUCT_DATA] = BY_CUBLASLT(multiply, accepts_inner),
    [LS_OP_INNER_PRODUCT_WEIGHTS] = BY_CUBLASLT(inner_product_weights, accepts_inner),
    [LS_OP_MATMUL] = BY_CUBLASLT(multiply, accepts_matmul),
};
