/* Windows and products with weights, on the reference device: what its two ways to add up share.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_REFERENCE_WINDOWS_H
#define LS_OPS_REFERENCE_WINDOWS_H

#include "ops/reference/reference.h"

enum { LS_REF_AXES = 3 };

/* Windows that move over x and make y: sizes by axis, and in all; unused axes have windows of 1. */
struct ls_ref_windows {
    struct ls_window of;
    int64_t x[LS_REF_AXES], y[LS_REF_AXES], x_points, y_points, k_points;
};

struct ls_ref_windows ls_ref_windows_of(const struct ls_window *window, const struct ls_value *x,
                                        const struct ls_value *y);

/* Positions of x and of the kernel that belong together. */
struct ls_ref_pair {
    int64_t x, k;
};

/* Lists what belongs to position `at` of y, in the order of the kernel; returns how many. */
int64_t ls_ref_list_pairs(const struct ls_ref_windows *windows, int64_t at,
                          struct ls_ref_pair *pair);
size_t ls_ref_pair_bytes(const struct ls_op *op); /* of the list */

/* By what the average of output `at` is divided: positions of the window that lie in the padded
 * input, as Caffe counts them. */
double ls_ref_pool_size(const struct ls_ref_windows *windows, int64_t at);

enum ls_ref_role { LS_REF_X, LS_REF_W, LS_REF_Y, LS_REF_ROLES };

/* What inputs 0 and 1 and output 0 of an op are. A deconvolution has x and y exchanged. */
extern const enum ls_ref_role ls_ref_roles[LS_OP_KINDS][LS_REF_ROLES];

/* A product: x [n, channels, points], w and y. */
struct ls_ref_product {
    struct ls_ref_windows windows; /* of a convolution */
    struct ls_axes x, y;
    int64_t groups, w_out, w_in; /* steps of w from one channel of y and of x to the next */
};

struct ls_ref_product ls_ref_product_of(const struct ls_op *op);

#endif
