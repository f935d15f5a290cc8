/* Copies of what is learned, out of the ranks that have it and back: what snapshots, exports and
 * comparisons read. History and averages lie with the ranks that update them (engine/shards.h).
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_COPIES_H
#define LS_ENGINE_COPIES_H

#include "engine/store.h"

struct ls_engine;

/* Whether the parts of an array lie with several ranks; all ranks say the same. */
bool ls_copies_in_parts(const struct ls_engine *engine, int parameter, enum ls_store_array array);
/* Copies an array of a parameter, in Caffe's order of elements. One whose parts lie with several
 * ranks is for rank 0 only (`plain` may be NULL elsewhere), and all ranks call it; a failure is
 * that of all then, with rank 0's message. */
int ls_copies_read(const struct ls_engine *engine, int parameter, enum ls_store_array array,
                   float *plain, struct ls_error *error);
/* The same where it lies here in that order anyway, else NULL: it must be copied. */
const float *ls_copies_plain(const struct ls_engine *engine, int parameter,
                             enum ls_store_array array);
/* The gradient of the last update, in Caffe's order. All ranks call it, and all get it. */
int ls_copies_read_gradient(const struct ls_engine *engine, int parameter, float *plain,
                            struct ls_error *error);
/* Gives all ranks the weights of all, after owners have changed theirs; waits for them. */
int ls_copies_gather_weights(struct ls_engine *engine, struct ls_error *error);
/* Exchanges weights and their averages (for tests and exports with averaged weights); all ranks
 * call it. */
int ls_copies_swap_average(struct ls_engine *engine, struct ls_error *error);

#endif
