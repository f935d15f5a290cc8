/* The store: parameters and all that belongs to them, shared by all workers and nets of a program.
 * It knows which part of them is this rank's, but no other ranks: what goes between ranks is the
 * reducer's (engine/reducer.h).
 *
 * Weights can be on their way from the ranks that have updated them. No pointer to weights can be
 * had without a wait for them: see ls_store_weights.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_STORE_H
#define LS_ENGINE_STORE_H

#include <stdatomic.h>
#include <stdint.h>

#include "engine/factors.h"
#include "engine/shards.h"
#include "engine/sums.h"
#include "engine/thread_pool.h"
#include "ir/graph.h"
#include "device/device.h"
#include "plan/plan.h"

enum { LS_HISTORY_MAX = 2 };

/* What the optimizer remembers of a parameter that is trained. */
struct ls_optimizer_state {
    bool history[LS_HISTORY_MAX]; /* which of the arrays of the parameter's size there are */
    bool norms;                   /* its rule asks for norms of the parameter (engine/lamb.h) */
    bool whole;      /* its rule asks for the whole parameter on one rank (engine/whole.h) */
    bool orthogonal; /* its rule is Muon's */
    bool factored;   /* moments of its rows and columns (engine/adafactor.h) */
};

/* One parameter's memory; all arrays are in the parameter's layout, NULL where not used. */
struct ls_parameter_state {
    struct ls_parameter *parameter;
    size_t elements; /* with padding */
    /* What this rank of a job updates: elements [shard_begin, shard_end). History and average are
     * there for those only: element shard_begin is their first. */
    size_t shard_begin, shard_end;
    float *history[LS_HISTORY_MAX]; /* what the optimizer remembers */
    float *rows, *columns; /* the host's: moments of them, for the rank that owns the parameter */
    float *average;        /* exponential moving average of the weights */
    uint32_t *mask;        /* device/device.h, clear_masked: a bit for each element; NULL: none */
};

/* A piece of a parameter that one worker handles at a time. Where the gradient is reduced as a sum
 * it has one row of LS_SUMS_TILE elements at most. */
struct ls_tile {
    int parameter;
    struct ls_gradient_piece piece;
};

/* A view's numbers and what brings them up to date. */
struct ls_view_memory {
    void *numbers; /* of the view's type */
    struct ls_converter *converter;
};

struct ls_stored_weights; /* where weights lie: see ls_store_weights */

struct ls_store {
    const struct ls_device *device;
    struct ls_parameter_set *set;
    struct ls_view_set *views;
    struct ls_parameter_state *slots; /* by parameter */
    struct ls_shards *shards;         /* the flat array of weights, and its owners */
    struct ls_stored_weights *weights;
    struct ls_view_memory *view_memory; /* by view */
    size_t view_count;
    struct ls_tile *tiles; /* of all trained parameters, in order */
    size_t tile_count;
    struct ls_sums *sums;       /* NULL without training */
    struct ls_factors *factors; /* NULL without training */
};

/* In place of the rank that owns a tile: all ranks handle it. */
enum { LS_ALL_RANKS = -1 };
/* For workers that take tiles as they get free: the next one that `owner` (by tile) gives to a
 * rank; false: there are none left. */
static inline bool ls_store_next_tile(const struct ls_store *store, _Atomic size_t *next,
                                      const int *owner, int rank, size_t *index)
{
    do
        *index = atomic_fetch_add_explicit(next, 1, memory_order_relaxed);
    while (*index < store->tile_count && owner[*index] != rank && owner[*index] != LS_ALL_RANKS);
    return *index < store->tile_count;
}

/* What a store holds besides weights. */
struct ls_store_options {
    int rank, ranks; /* which part of what is learned is here: see engine/shards.h */
    bool training;
    int workers;
    const struct ls_optimizer_state *state; /* by parameter; NULL: nothing is remembered */
    bool average;
    uint64_t seed; /* of the fillers: for ls_store_fill */
};
/* Arrays of a parameter's size that are kept beside its weights in training. */
static inline int ls_store_arrays(const struct ls_store_options *options,
                                  const struct ls_parameter *parameter)
{
    if (!options->training || !parameter->trained)
        return 0;
    int arrays = options->average ? 1 : 0;
    for (int h = 0; h < LS_HISTORY_MAX && options->state != NULL; h++)
        arrays += options->state[parameter->index].history[h];
    return arrays;
}

/* Bytes of moments of rows and columns that are kept. */
size_t ls_store_factored_bytes(const struct ls_store_options *options,
                               const struct ls_parameter *parameter);

/* Allocates memory for all parameters and views that plans have asked for. Sets and views outlive
 * the store. */
int ls_store_create(const struct ls_device *device, struct ls_parameter_set *set,
                    struct ls_view_set *views, const struct ls_store_options *options,
                    struct ls_store **store, struct ls_error *error);
void ls_store_free(struct ls_store *store);
/* Fills the weights and averages with what their fillers say; views are not brought up to date. */
int ls_store_fill(struct ls_store *store, const struct ls_store_options *options,
                  struct ls_thread_pool *pool, struct ls_error *error);

/* The weights of a parameter, in its layout: waits for those that other ranks have updated. They
 * are there until ls_reducer_send_weights. Any thread. */
int ls_store_weights(const struct ls_store *store, int parameter, float **weights,
                     struct ls_error *error);
/* The same for all parameters: a table. */
int ls_store_all_weights(const struct ls_store *store, float *const **weights,
                         struct ls_error *error);
/* For the reducer, which sends the weights: `wait` is called before anything reads or changes those
 * of a bucket, or (LS_BUCKETS_ALL) of all. Returns the flat array. */
enum { LS_BUCKETS_ALL = -1 };
float *ls_store_send_from(struct ls_store *store,
                          int (*wait)(void *user, int bucket, struct ls_error *error), void *user);

/* Clears those of `n` numbers of a parameter, of which the first belongs to element `first` of its
 * layout, whose weights are masked. They lie in the device's memory. */
int ls_store_clear_masked(const struct ls_store *store, int parameter, size_t first, float *numbers,
                          size_t n, struct ls_error *error);

enum ls_store_array {
    LS_WEIGHTS,
    LS_HISTORY_0,
    LS_HISTORY_1,
    LS_AVERAGE,
    LS_ROWS, /* a number for each row of the parameter's matrices, which the last two axes are, */
    LS_COLUMNS, /* and for each column */
    LS_STORE_ARRAYS
};
/* The shape of a parameter's array. */
struct ls_shape ls_store_array_shape(const struct ls_shape *parameter, enum ls_store_array array);
/* The part of an array that this rank has: all weights, and its shard of the others. NULL where the
 * parameter has no such array. Waits for weights. */
int ls_store_array(const struct ls_store *store, int parameter, enum ls_store_array array,
                   float **numbers, struct ls_error *error);
/* Copies a whole array into the store, which keeps what this rank has of it. */
int ls_store_write(struct ls_store *store, int parameter, enum ls_store_array array,
                   const float *plain, struct ls_error *error);
/* Whether the gradient of a parameter is exchanged as factors: it has no sum then. */
static inline bool ls_store_has_factors(const struct ls_store *store, int parameter)
{
    return store->slots[parameter].parameter->factoring.weight != NULL;
}

#endif
