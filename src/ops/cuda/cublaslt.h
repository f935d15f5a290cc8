/* Products of matrices by cuBLASLt, for ops/cuda/cublaslt.c.
 *
 * The algorithm of a product is chosen once, by a static rule: the first that the library's
 * heuristic names among those that fit the limits below. It depends on the shapes, the types, the
 * model of the card and the library's version: never on timing, addresses or other streams.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CUDA_CUBLASLT_H
#define LS_OPS_CUDA_CUBLASLT_H

#include <cublasLt.h>

#include "ops/cuda/ops.h"

struct ls_text;

enum {
    LS_CUBLASLT_WORKSPACE = 32 << 20, /* bytes at most: what NVIDIA recommends for Hopper */
    /* Of all matrices and biases, in bytes. The engine's arena, weights, views and inputs have it;
     * with a larger one algorithms could be chosen that fail for some addresses. */
    LS_CUBLASLT_ALIGNMENT = 64
};

/* out[l, c] = scale * sum over t of a(l, t) b(t, c), then + bias[c], then ReLU. Rows lie one behind
 * the other without gaps. */
struct ls_cublaslt_shape {
    int64_t lines, columns, terms;
    bool turned_a;       /* a lies [terms, lines], else [lines, terms] */
    bool turned_b;       /* b lies [columns, terms], else [terms, columns] */
    int64_t batch;       /* at least 1: so many products */
    bool each_a, each_b; /* of a batch each has an a of its own; else all have the same one */
    bool bf16;           /* a and b are bf16; else fp32 */
    bool tf32;           /* of fp32 the first 10 bits of fraction count */
    bool bf16_out;       /* else out is fp32 */
    bool bias, relu;     /* a bias is fp32; with bf16_out there is none */
    float scale;
};

/* A product whose algorithm is chosen. */
struct ls_cublaslt_product {
    struct ls_cublaslt_shape shape;
    int card;
    cublasLtHandle_t handle;                       /* the card's; NULL: nothing to free */
    cublasLtMatrixLayoutOpaque_t left, right, out; /* of the library's, which are columns first */
    cublasLtMatmulAlgo_t algorithm;
    size_t workspace;
};

/* Whether its extents are such as the library takes. */
bool ls_cublaslt_takes(const struct ls_cublaslt_shape *shape);

/* Chooses the algorithm, on the calling thread's card. What was made is freed after a failure. */
int ls_cublaslt_choose(const struct ls_op *op, const struct ls_cublaslt_shape *shape,
                       struct ls_cublaslt_product *product, struct ls_error *error);
void ls_cublaslt_free(struct ls_cublaslt_product *product);

/* Names the algorithm, for `plan`. */
int ls_cublaslt_name(const struct ls_cublaslt_product *product, const struct ls_op *op, char *out,
                     size_t size, struct ls_error *error);

/* Gives the product to the call's stream; `workspace` is aligned to 256 bytes. The status of what
 * failed, with a message. */
int ls_cublaslt_run(struct ls_cublaslt_product *product, const struct ls_card_call *call,
                    const void *a, const void *b, const float *bias, void *out, void *workspace);

/* Appends lines "key=value" of what decides the library's arithmetic: its version, and variables of
 * the process's environment that it follows. */
void ls_cublaslt_describe(struct ls_text *text);

#endif
