/* One step of the cells of a sequence; see struct ls_recurrent_attr.
 *
 * Gates lie in parts of n numbers, one behind the other. Gradients go to dz (and, GRU, to du), in
 * parts as those of z. Outputs are apart from the inputs, but for what is said to be both.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_VECTOR_RECURRENT_H
#define LS_OPS_CPU_VECTOR_RECURRENT_H

#include <stddef.h>

#include "ops/cpu/isa.h"

/* What a step backwards is given, and what it leaves. dh is the gradient of h[t]. */
struct ls_cell_back {
    const float *gates, *h, *before, *c, *c_before; /* c_before: of the step before; may be NULL */
    const float *dh;
    float cont;
    float *dc; /* of c[t], and in the end of c[t - 1] */
    float *dz, *du;
    float *rest;  /* GRU: what of dh goes to `before` past w */
    float *spare; /* [n] */
};

struct ls_vector_recurrent {
    /* gates = f(z + still + u), still and u may be NULL (u: without a product). */
    void (*lstm_gates)(const float *z, const float *still, const float *u, float *gates, size_t n);
    /* c and h from gates; c_before may be NULL, and may be c. */
    void (*lstm)(const float *gates, const float *c_before, float cont, float *c, float *h,
                 size_t n);
    void (*rnn)(const float *z, const float *still, const float *u, float *h, size_t n);
    /* u includes b; gates: r, z, n, u_n. */
    void (*gru)(const float *z, const float *still, const float *u, const float *before,
                float *gates, float *h, size_t n);
    void (*lstm_back)(const struct ls_cell_back *back, size_t n);
    void (*rnn_back)(const struct ls_cell_back *back, size_t n);
    void (*gru_back)(const struct ls_cell_back *back, size_t n);
};
LS_VECTOR_TABLES(ls_vector_recurrent)

#endif
