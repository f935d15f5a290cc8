/* Rankings: what a test finds in all of its samples, judged as a whole.
 *
 * An average precision cannot be merged from those of micro-batches. A micro-batch leaves lists
 * of the boxes of its samples behind its record (struct ls_ranking), which are not added up but put
 * together in the order of the samples. When the test is over they are sorted, the highest score
 * first, of equal ones the first sample, then the first in its list. So the order is one, on any
 * number of workers and ranks.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_RANKINGS_H
#define LS_ENGINE_RANKINGS_H

#include "engine/pass.h"

/* Makes what a pass needs; pass->rankings stays NULL where its net ranks nothing. */
int ls_rankings_create(struct ls_pass *pass, struct ls_error *error);
void ls_rankings_free(struct ls_rankings *rankings);
/* Bytes for a test of so many samples, at most. */
size_t ls_rankings_bytes(const struct ls_graph *graph, int64_t samples);

/* A test begins. */
void ls_rankings_begin(struct ls_rankings *rankings);
/* Takes the lists of the pass's units, before their records are merged. */
int ls_rankings_add(struct ls_pass *pass, struct ls_error *error);
/* The test is over: sets the figures in pass->total. All ranks find the same. */
int ls_rankings_conclude(struct ls_pass *pass, struct ls_error *error);

#endif
