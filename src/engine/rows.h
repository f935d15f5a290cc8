/* Rows: which elements of a parameter share an exponent in the exact sums of gradients
 * (engine/sums.h).
 *
 * A static rule on the shape, so that it does not depend on the layout that a machine likes:
 *
 *     biases, scales, slopes (one axis)              each element
 *     matrices of less than 2^15 elements            each element: inputs of very different size
 *                                                    and outputs that are seldom wanted, alike
 *     what has more than 2^24 output channels        each element
 *     everything else                                the elements of an output channel, or of a
 *                                                    row of a table
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_ROWS_H
#define LS_ENGINE_ROWS_H

#include "engine/store.h"

/* Whether each element of a gradient of this shape is a row; else its first axis of more than one
 * number counts rows. */
bool ls_rows_are_elements(const struct ls_shape *shape);
/* Rows of a gradient in Caffe's order, and as it lies in memory. */
size_t ls_rows_plain(const struct ls_parameter *parameter);
size_t ls_rows_laid_out(const struct ls_parameter *parameter);
/* Bytes that the exponents take. */
size_t ls_rows_bytes(const struct ls_parameter *parameter);

/* Tells the sums of a store. */
int ls_rows_cut(struct ls_store *store, struct ls_error *error);

/* Rows of a parameter of a store in Caffe's order, 0 where nothing is summed; of all. */
size_t ls_rows_count(const struct ls_store *store, int parameter);
size_t ls_rows_all(const struct ls_store *store);
/* The state of a parameter's exponents (see ls_sums_state), in Caffe's order. */
int ls_rows_read(const struct ls_store *store, int parameter, int32_t *plain,
                 struct ls_error *error);
int ls_rows_write(struct ls_store *store, int parameter, const int32_t *plain,
                  struct ls_error *error);

#endif
