/* Which convolutions are Lockstep's own because oneDNN has general products of matrices for them at
 * best: those of few channels a group, with a pad as large as the window, some with dilation.
 *
 * The kernels are those of `algorithm: PORTABLE` (ops/cpu/bf16/convolution.h), in all passes alike.
 * The rule goes by the shapes, the instruction set and what oneDNN says that it has there; not by
 * the number of samples, nor by a measurement (docs/performance.md has those that it rests on).
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_MATRIX_PRODUCTS_H
#define LS_OPS_CPU_MATRIX_PRODUCTS_H

#include "ir/kernel.h"

/* Whether our own kernels compute this op of a convolution or deconvolution in fp32 whose algorithm
 * is AUTO or DIRECT. Where there is no memory to find out it says no, and the next check fails. */
bool ls_replaces_matrix_products(const struct ls_op *op);
/* Fails with LOCKSTEP_RESOURCE if the rule could not be asked for an op since this thread's last
 * check: for the kernel that is taken otherwise, so that memory decides no bit. */
int ls_matrix_products_check(struct ls_error *error);

#endif
