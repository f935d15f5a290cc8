/* Ops of nets that compute the same on every processor and device (ls_graph.portable): with the
 * sums and roundings that docs/numerics.md declares (sections 16 to 18), in place of sums in double
 * that are rounded once. An op that gives the same bits either way is not here.
 *
 * Each operation on floats rounds to float. Sums in lanes: term i of a run is added to lane i % 16,
 * and lanes are folded by halves.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_REFERENCE_PORTABLE_H
#define LS_OPS_REFERENCE_PORTABLE_H

#include "ops/reference/reference.h"

/* By kind; empty where another file has it, or where the tables of reference.h have these bits. */
extern const struct ls_compute ls_portable_elements[LS_OP_KINDS], ls_portable_losses[LS_OP_KINDS],
    ls_portable_norms[LS_OP_KINDS], ls_portable_products[LS_OP_KINDS],
    ls_portable_sequences[LS_OP_KINDS], ls_portable_windows[LS_OP_KINDS];

/* f(x) of an activation, and dx = dy f'(x), given x or y (ls_activation_keeps_x). */
float ls_portable_activation(const struct ls_activation_attr *attr, float x);
float ls_portable_slope(const struct ls_activation_attr *attr, float dy, float given);

enum { LS_REF_LANES = 16 };

/* A sum in lanes, in double. */
struct ls_lane_sum {
    double lane[LS_REF_LANES];
};

static inline double ls_lane_fold(const struct ls_lane_sum *sum)
{
    double part[LS_REF_LANES];
    for (int i = 0; i < LS_REF_LANES; i++)
        part[i] = sum->lane[i];
    for (int half = LS_REF_LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            part[i] += part[i + half];
    return part[0];
}

/* The same in fp32. */
struct ls_float_lanes {
    float lane[LS_REF_LANES];
};

static inline float ls_float_fold(const struct ls_float_lanes *sum)
{
    float part[LS_REF_LANES];
    for (int i = 0; i < LS_REF_LANES; i++)
        part[i] = sum->lane[i];
    for (int half = LS_REF_LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            part[i] += part[i + half];
    return part[0];
}

/* Element i of input k. */
static inline float ls_number(const struct ls_call *call, int k, int64_t i)
{
    return ((const float *)call->in[k])[i];
}

#endif
