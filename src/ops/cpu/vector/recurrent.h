/* One step of the cells of a sequence; see struct ls_recurrent_attr.
 *
 * Gates lie in parts of n numbers, one behind the other. Gradients go to dz (and, GRU, to du), in
 * parts as those of z. Outputs are apart from the inputs, but for what is said to be both.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_VECTOR_RECURRENT_H
#define LS_OPS_CPU_VECTOR_RECURRENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ops/cpu/isa.h"

/* A step of LSTM. What may be bf16 is so where `bf16` says it. */
struct ls_lstm_step {
    const void *z;                     /* maybe bf16 */
    const float *still, *u, *c_before; /* each may be NULL (u: without a product) */
    float cont;
    float *gates;      /* NULL: they are not kept */
    float *c;          /* may be c_before */
    float *h;          /* fp32 */
    uint16_t *rounded; /* h once more, as bf16; NULL: it is not asked for */
    bool bf16;         /* z */
};

/* A step of LSTM backwards. dh is the gradient of h[t] that comes from above, `carried` the rest of
 * it, which the step behind has left. */
struct ls_lstm_back {
    const float *gates, *c, *c_before; /* c_before: of the step before; may be NULL */
    const void *dh;                    /* maybe bf16; may be NULL */
    const float *carried;
    float cont;
    float *dc;     /* of c[t], and in the end of c[t - 1] */
    void *dz;      /* maybe bf16 */
    float *dstill; /* gets dz added, before that is rounded; may be NULL */
    bool dh_bf16, dz_bf16;
};

/* What a step backwards of the others is given, and what it leaves. dh is the gradient of h[t]. */
struct ls_cell_back {
    const float *gates, *h, *before, *dh;
    float *dz, *du;
    float *rest; /* GRU: what of dh goes to `before` past w */
};

struct ls_vector_recurrent {
    /* c and h. */
    void (*lstm)(const struct ls_lstm_step *step, size_t n);
    /* From f(z + still + u), still and u may be NULL. */
    void (*rnn)(const float *z, const float *still, const float *u, float *h, size_t n);
    /* u includes b; gates: r, z, n, u_n. */
    void (*gru)(const float *z, const float *still, const float *u, const float *before,
                float *gates, float *h, size_t n);
    void (*lstm_back)(const struct ls_lstm_back *back, size_t n);
    void (*rnn_back)(const struct ls_cell_back *back, size_t n);
    void (*gru_back)(const struct ls_cell_back *back, size_t n);
};
LS_VECTOR_TABLES(ls_vector_recurrent)

#endif
