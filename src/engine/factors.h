/* The factors of the gradients that are exchanged as such: x and dy of all samples of an update,
 * each micro-batch's rows at a place that follows from the cut of the update into micro-batches.
 * The order of writes changes nothing.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_FACTORS_H
#define LS_ENGINE_FACTORS_H

#include "device/device.h"
#include "ir/graph.h"

enum {
    LS_FACTOR_TILE_ROWS = 12, /* of a gradient that one worker computes at a time */
    LS_FACTOR_TILE_COLUMNS = 1024
};

struct ls_factors;

/* For all parameters of the set whose gradient is exchanged as factors; `workers` compute tiles. */
int ls_factors_create(const struct ls_device *device, const struct ls_parameter_set *set,
                      int workers, struct ls_factors **factors, struct ls_error *error);
void ls_factors_free(struct ls_factors *factors);
/* How many there are: weights, each with its bias. */
size_t ls_factors_count(const struct ls_factors *factors);

/* Finds where the rows of an update's micro-batches go, which run through these graphs, and makes
 * room for them. */
int ls_factors_place(struct ls_factors *factors, const struct ls_graph *const *graphs,
                     size_t micro_batches, struct ls_error *error);

/* For ranks that record a part of the rows each. The memory of one side of a factor, rows of *width
 * numbers; and the first row of a micro-batch, or behind the last. */
float *ls_factors_side(const struct ls_factors *factors, size_t factor, enum ls_factor_side side,
                       size_t *width);
size_t ls_factors_row(const struct ls_factors *factors, size_t factor, size_t micro_batch);
/* The weight whose gradient it is. */
const struct ls_parameter *ls_factors_weight(const struct ls_factors *factors, size_t factor);
/* Notes that all ranks exchange about their rows before ls_factors_find_not_finite. */
struct ls_factor_note {
    uint32_t largest[LS_FACTOR_SIDES]; /* bits */
    int32_t first_not_finite;          /* micro-batch; INT_MAX: none */
};
void ls_factors_note(const struct ls_factors *factors, struct ls_factor_note *notes);
void ls_factors_hear(struct ls_factors *factors, const struct ls_factor_note *notes);

/* Begins an update. */
int ls_factors_begin(struct ls_factors *factors, struct ls_error *error);
/* Where the RECORD op of a micro-batch writes, and which factor it is of. */
struct ls_factor_target ls_factors_target(const struct ls_factors *factors,
                                          const struct ls_record_attr *record, int micro_batch);
size_t ls_factors_of(const struct ls_factors *factors, const struct ls_parameter *parameter);
/* Learns what was recorded, after all workers are done. */
int ls_factors_collect(struct ls_factors *factors, struct ls_error *error);
/* After that: the first micro-batch whose rows make a factor or, where all micro-batches have run,
 * a gradient not finite, and the parameter that it is of. *micro_batch is INT_MAX, and *parameter
 * stays as it was, where all are finite. */
int ls_factors_find_not_finite(const struct ls_factors *factors, bool all_have_run, int *parameter,
                               int *micro_batch, struct ls_error *error);

/* A piece of the gradient of a parameter, of weights or a bias. */
int ls_factors_gradient(const struct ls_factors *factors, const struct ls_parameter *parameter,
                        const struct ls_gradient_piece *piece, float *gradient,
                        struct ls_error *error);
/* Memory of a worker for a tile of a gradient. */
float *ls_factors_tile(const struct ls_factors *factors, int worker);

#endif
