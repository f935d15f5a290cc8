/* Gathered steps: all workers compute them together, for the rows of all micro-batches of a wave
 * (plan/gather.c chooses the steps). Each worker copies the rows of its micro-batches into one
 * matrix, all workers divide the columns of the product, and each copies the results of its
 * micro-batches back. Every rank of a job does this for its own micro-batches.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_GATHER_H
#define LS_ENGINE_GATHER_H

#include <stdatomic.h>

#include "engine/net.h"

struct ls_device_memory;
struct ls_pass;
struct ls_wave;

/* One for all nets: only one runs at a time. */
struct ls_gather {
    unsigned char *in, *out; /* rows of a wave */
    size_t in_size, out_size;
    _Atomic int64_t next; /* the tile that is to be done next */
    _Atomic bool failed;  /* in this pass, for a worker: the rows are not there */
};

/* Makes room for the waves of a pass, whose plans are ready. */
int ls_gather_reserve(struct ls_pass *pass, struct ls_error *error);
void ls_gather_free(struct ls_gather *gather, const struct ls_device_memory *memory);

/* Whether the segment of a plan is gathered. */
bool ls_gather_is(const struct ls_plan *plan, int segment);
/* A worker's part of it. */
void ls_gather_run(struct ls_pass *pass, const struct ls_wave *wave, int segment, int worker);

#endif
