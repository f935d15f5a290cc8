/* See ops/cuda/cublaslt.h. What is said of the library here is in NVIDIA's manual "cuBLAS",
 * sections "Results Reproducibility", "Thread Safety" and "Using the cuBLASLt API", and in
 * cublasLt.h.
 *
 * Bits: the library's routines give the same bits in each run on cards of the same architecture
 * with as many multiprocessors; what may differ between streams is the workspace that it takes by
 * itself, and cublasLtMatmul takes the caller's. CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET stays at 0,
 * which is the number that the card has, whatever else runs on it. A sum is computed in one
 * sequence (CUBLASLT_REDUCTION_SCHEME_NONE): INPLACE adds in the order of arrival to the output,
 * and for the others no order is documented.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/cublaslt.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mutant.h"
#include "base/text.h"
#include "ir/layer.h"
#include "ops/cuda/card.h"

/* ---- Errors ---------------------------------------------------------------------------------- */

/* 0, or fails with what the library said: "card 0 could not carry out inner product of layer 'ip':
 * cuBLASLt: ...". */
static int check(cublasStatus_t code, int card, const char *doing, const struct ls_op *op,
                 struct ls_error *error)
{
    if (code == CUBLAS_STATUS_SUCCESS)
        return 0;
    const bool memory = code == CUBLAS_STATUS_ALLOC_FAILED;
    return ls_fail(error, memory ? LOCKSTEP_RESOURCE : LOCKSTEP_INTERNAL, NULL,
                   memory ? "a smaller micro_batch, or --memory, needs less" : NULL,
                   "card %d could not %s %s%s%s%s: cuBLASLt: %s", card, doing,
                   ls_op_kind_name(op->kind), op->layer != NULL ? " of layer '" : "",
                   op->layer != NULL ? op->layer->name : "", op->layer != NULL ? "'" : "",
                   cublasLtGetStatusString(code));
}

/* ---- Handles --------------------------------------------------------------------------------- */

/* One a card, which all its streams and threads share: the library is safe for that. It is there as
 * long as a product needs it. */
static struct {
    cublasLtHandle_t handle;
    long users;
} handles[LS_CARDS_MAX];
static pthread_mutex_t handles_lock = PTHREAD_MUTEX_INITIALIZER;

static cublasStatus_t take_handle(struct ls_cublaslt_product *product)
{
    cublasStatus_t code = CUBLAS_STATUS_SUCCESS;
    (void)pthread_mutex_lock(&handles_lock);
    cublasLtHandle_t *handle = &handles[product->card].handle;
    if (*handle == NULL)
        code = cublasLtCreate(handle);
    if (code == CUBLAS_STATUS_SUCCESS) {
        handles[product->card].users++;
        product->handle = *handle;
    } else {
        *handle = NULL;
    }
    (void)pthread_mutex_unlock(&handles_lock);
    return code;
}

void ls_cublaslt_free(struct ls_cublaslt_product *product)
{
    if (product->handle == NULL)
        return;
    (void)pthread_mutex_lock(&handles_lock);
    if (--handles[product->card].users == 0) {
        const int before = ls_card_hold_recordings(product->card);
        (void)cublasLtDestroy(product->handle);
        ls_card_permit_recordings(before);
        handles[product->card].handle = NULL;
    }
    (void)pthread_mutex_unlock(&handles_lock);
    product->handle = NULL;
}

/* ---- Descriptors ----------------------------------------------------------------------------- */

/* Keeps the first failure. */
#define SET(code, object, kind, attribute, value)                                                  \
    ((code) = (code) != CUBLAS_STATUS_SUCCESS                                                      \
                  ? (code)                                                                         \
                  : cublasLt##kind##SetAttribute((object), (attribute), &(value), sizeof(value)))

/* A matrix of the library, whose columns lie one behind the other: rows of ours. Of a batch each
 * begins `step` elements behind the one before. */
static cublasStatus_t describe_matrix(cublasLtMatrixLayout_t layout, bool bf16, int64_t rows,
                                      int64_t columns, int64_t batch, int64_t step)
{
    const int32_t count = (int32_t)batch;
    cublasStatus_t code = cublasLtMatrixLayoutInit(layout, bf16 ? CUDA_R_16BF : CUDA_R_32F,
                                                   (uint64_t)rows, (uint64_t)columns, rows);
    if (batch > 1) {
        SET(code, layout, MatrixLayout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, count);
        SET(code, layout, MatrixLayout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, step);
    }
    return code;
}

/* What lies row by row is, column by column, its transpose: out^T = b^T a^T, so that b is the
 * library's left matrix, a its right one, and a bias by columns of out is one by its rows. */
static cublasStatus_t describe_matrices(struct ls_cublaslt_product *product)
{
    const struct ls_cublaslt_shape *of = &product->shape;
    const int64_t l = of->lines, c = of->columns, t = of->terms;
    cublasStatus_t code = describe_matrix(&product->left, of->bf16, of->turned_b ? t : c,
                                          of->turned_b ? c : t, of->batch, of->each_b ? c * t : 0);
    if (code == CUBLAS_STATUS_SUCCESS)
        code = describe_matrix(&product->right, of->bf16, of->turned_a ? l : t,
                               of->turned_a ? t : l, of->batch, of->each_a ? l * t : 0);
    if (code == CUBLAS_STATUS_SUCCESS)
        code = describe_matrix(&product->out, of->bf16_out, c, l, of->batch, c * l);
    return code;
}

/* In the caller's memory, since a bias has another address each time. */
static cublasStatus_t describe_product(const struct ls_cublaslt_shape *of, const void *bias,
                                       cublasLtMatmulDesc_t out)
{
    const int32_t left = of->turned_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    const int32_t right = of->turned_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    const uint32_t epilogue = of->bias && of->relu ? CUBLASLT_EPILOGUE_RELU_BIAS
                              : of->bias           ? CUBLASLT_EPILOGUE_BIAS
                              : of->relu           ? CUBLASLT_EPILOGUE_RELU
                                                   : CUBLASLT_EPILOGUE_DEFAULT;
    cublasStatus_t code = cublasLtMatmulDescInit(
        out, of->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F);
    SET(code, out, MatmulDesc, CUBLASLT_MATMUL_DESC_TRANSA, left);
    SET(code, out, MatmulDesc, CUBLASLT_MATMUL_DESC_TRANSB, right);
    SET(code, out, MatmulDesc, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    if (of->bias)
        SET(code, out, MatmulDesc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    return code;
}

/* ---- Algorithms ------------------------------------------------------------------------------ */

enum { CANDIDATES = 8 };

static cublasStatus_t describe_limits(cublasLtMatmulPreference_t out)
{
    const uint64_t workspace = LS_CUBLASLT_WORKSPACE;
    const uint32_t alignment = LS_MUTANT(ALIGNED) ? 256 : LS_CUBLASLT_ALIGNMENT;
    const uint32_t reduction = LS_MUTANT(SPLIT) ? (uint32_t)CUBLASLT_REDUCTION_SCHEME_MASK
                                                : (uint32_t)CUBLASLT_REDUCTION_SCHEME_NONE;
    cublasStatus_t code = cublasLtMatmulPreferenceInit(out);
    SET(code, out, MatmulPreference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace);
    SET(code, out, MatmulPreference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reduction);
    SET(code, out, MatmulPreference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment);
    SET(code, out, MatmulPreference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment);
    SET(code, out, MatmulPreference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment);
    SET(code, out, MatmulPreference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment);
    return code;
}

/* A number that an algorithm is made of. */
static cublasStatus_t read_part(const cublasLtMatmulAlgo_t *algorithm,
                                cublasLtMatmulAlgoConfigAttributes_t of, int32_t *number)
{
    size_t written = 0;
    *number = -1;
    return cublasLtMatmulAlgoConfigGetAttribute(algorithm, of, number, sizeof *number, &written);
}

/* Whether the library kept to the limits: what it names is not taken on trust. */
static cublasStatus_t check_limits(const cublasLtMatmulHeuristicResult_t *found, bool *within)
{
    int32_t scheme, parts;
    cublasStatus_t code = read_part(&found->algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, &scheme);
    if (code == CUBLAS_STATUS_SUCCESS)
        code = read_part(&found->algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &parts);
    *within = code == CUBLAS_STATUS_SUCCESS && found->workspaceSize <= LS_CUBLASLT_WORKSPACE &&
              (LS_MUTANT(SPLIT) || (scheme == CUBLASLT_REDUCTION_SCHEME_NONE && parts <= 1));
    return code;
}

/* NOT_SUPPORTED where there is none. */
static cublasStatus_t find_algorithm(struct ls_cublaslt_product *product)
{
    cublasLtMatmulHeuristicResult_t found[CANDIDATES];
    cublasLtMatmulPreferenceOpaque_t limits;
    cublasLtMatmulDescOpaque_t what;
    int count = 0;
    /* The heuristic does not follow a bias's address, but takes its alignment from it. */
    cublasStatus_t code =
        describe_product(&product->shape, (const void *)(uintptr_t)LS_CUBLASLT_ALIGNMENT, &what);
    if (code == CUBLAS_STATUS_SUCCESS)
        code = describe_limits(&limits);
    if (code == CUBLAS_STATUS_SUCCESS)
        code = cublasLtMatmulAlgoGetHeuristic(product->handle, &what, &product->left,
                                              &product->right, &product->out, &product->out,
                                              &limits, CANDIDATES, found, &count);
    if (code != CUBLAS_STATUS_SUCCESS)
        return code;
    for (int i = 0; i < count; i++) {
        bool within = false;
        if (found[i].state != CUBLAS_STATUS_SUCCESS)
            continue;
        code = check_limits(&found[i], &within);
        if (code != CUBLAS_STATUS_SUCCESS)
            return code;
        if (within) {
            product->algorithm = found[i].algo;
            product->workspace = found[i].workspaceSize;
            return CUBLAS_STATUS_SUCCESS;
        }
    }
    return CUBLAS_STATUS_NOT_SUPPORTED;
}

static int no_algorithm(const struct ls_op *op, int card, struct ls_error *error)
{
    static const char hint[] = "algorithm: PORTABLE has kernels of Lockstep's own";
    if (op->layer != NULL)
        return ls_layer_fail(op->layer, error, NULL, NULL, hint,
                             "cuBLASLt has no algorithm for this %s on card %d",
                             ls_op_kind_name(op->kind), card);
    return ls_fail(error, LOCKSTEP_DEFINITION, NULL, hint,
                   "cuBLASLt has no algorithm for %s on card %d", ls_op_kind_name(op->kind), card);
}

bool ls_cublaslt_takes(const struct ls_cublaslt_shape *shape)
{
    const int64_t extents[] = {shape->lines, shape->columns, shape->terms, shape->batch};
    for (size_t i = 0; i < sizeof extents / sizeof *extents; i++)
        if (extents[i] < 1 || extents[i] > INT32_MAX)
            return false;
    return true;
}

int ls_cublaslt_choose(const struct ls_op *op, const struct ls_cublaslt_shape *shape,
                       struct ls_cublaslt_product *product, struct ls_error *error)
{
    static const char doing[] = "choose an algorithm for";
    *product = (struct ls_cublaslt_product){.shape = *shape};
    LS_TRY(ls_card_enter(error));
    LS_TRY(ls_card_check(cudaGetDevice(&product->card), "be found", error));
    if (product->card < 0 || product->card >= LS_CARDS_MAX)
        return ls_fail(error, LOCKSTEP_USAGE, NULL, NULL, "there is no card %d", product->card);
    cublasStatus_t code = take_handle(product);
    if (code == CUBLAS_STATUS_SUCCESS)
        code = describe_matrices(product);
    if (code == CUBLAS_STATUS_SUCCESS)
        code = find_algorithm(product);
    if (code == CUBLAS_STATUS_SUCCESS)
        return 0;
    ls_cublaslt_free(product);
    return code == CUBLAS_STATUS_NOT_SUPPORTED ? no_algorithm(op, product->card, error)
                                               : check(code, product->card, doing, op, error);
}

int ls_cublaslt_name(const struct ls_cublaslt_product *product, const struct ls_op *op, char *out,
                     size_t size, struct ls_error *error)
{
    static const cublasLtMatmulAlgoConfigAttributes_t parts[] = {
        CUBLASLT_ALGO_CONFIG_ID, CUBLASLT_ALGO_CONFIG_TILE_ID, CUBLASLT_ALGO_CONFIG_STAGES_ID};
    int32_t number[3];
    for (int i = 0; i < 3; i++)
        LS_TRY(check(read_part(&product->algorithm, parts[i], &number[i]), product->card,
                     "name the algorithm of", op, error));
    snprintf(out, size, "cublaslt:%s%d:%d:%d",
             product->shape.bf16   ? "bf16:"
             : product->shape.tf32 ? "tf32:"
                                   : "",
             (int)number[0], (int)number[1], (int)number[2]);
    return 0;
}

/* ---- Products -------------------------------------------------------------------------------- */

int ls_cublaslt_run(struct ls_cublaslt_product *product, const struct ls_card_call *call,
                    const void *a, const void *b, const float *bias, void *out, void *workspace)
{
    const float scale = product->shape.scale, none = 0;
    cublasLtMatmulDescOpaque_t what;
    cublasStatus_t code = describe_product(&product->shape, bias, &what);
    /* Nothing is added to: with a factor of 0 the library does not read what was there. */
    if (code == CUBLAS_STATUS_SUCCESS)
        code = cublasLtMatmul(product->handle, &what, &scale, b, &product->left, a, &product->right,
                              &none, out, &product->out, out, &product->out, &product->algorithm,
                              product->workspace > 0 ? workspace : NULL, product->workspace,
                              call->stream);
    return check(code, product->card, "carry out", call->op, call->context->error);
}

/* ---- Environment ----------------------------------------------------------------------------- */

/* Variables that change which algorithms the library names, or what they compute. */
static const char *const variables[] = {"NVIDIA_TF32_OVERRIDE", "CUBLAS_EMULATE_SINGLE_PRECISION",
                                        "CUBLAS_EMULATION_STRATEGY",
                                        "CUBLASLT_HEURISTICS_LUT_FILE"};

void ls_cublaslt_describe(struct ls_text *text)
{
    ls_text_format(text, "cublaslt=%zu\n", cublasLtGetVersion());
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = getenv(variables[i]);
        if (value != NULL) /* a line ends where the value's first does */
            ls_text_format(text, "%s=%.*s\n", variables[i], (int)strcspn(value, "\r\n"), value);
    }
}
