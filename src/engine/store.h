/* The store: parameters and all that belongs to them, shared by all workers and nets of a program.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_STORE_H
#define LS_ENGINE_STORE_H

#include <stdint.h>

#include "engine/factors.h"
#include "engine/shards.h"
#include "engine/thread_pool.h"
#include "ir/graph.h"
#include "device/device.h"
#include "plan/plan.h"
#include "transport/sums.h"

enum { LS_HISTORY_MAX = 2 };

/* One parameter's memory; all arrays are in the parameter's layout, NULL where not used. */
struct ls_parameter_state {
    struct ls_parameter *parameter;
    size_t elements; /* with padding */
    /* What this rank of a job updates: elements [shard_begin, shard_end). History and average are
     * there for those only: element shard_begin is their first. */
    size_t shard_begin, shard_end;
    float *weights;
    float *history[LS_HISTORY_MAX]; /* what the optimizer remembers */
    float *average;                 /* exponential moving average of the weights */
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

struct ls_comm;
struct ls_range;
struct ls_reducer;

struct ls_store {
    const struct ls_device *device;
    struct ls_comm *comm;
    struct ls_parameter_set *set;
    struct ls_view_set *views;
    struct ls_parameter_state *slots;   /* by parameter */
    struct ls_shards *shards;           /* the contents of `flat`, and their owners */
    float *flat;                        /* weights whose gradients are reduced as sums */
    struct ls_reducer *reducer;         /* NULL: single rank */
    _Atomic bool not_converted;         /* a view of weights of other ranks */
    struct ls_view_memory *view_memory; /* by view */
    size_t view_count;
    struct ls_tile *tiles; /* of all trained parameters, in order */
    size_t tile_count;
    struct ls_sums *sums;       /* NULL without training */
    struct ls_factors *factors; /* NULL without training */
    /* What a rank has of history and averages, in bytes of the parameter; by rank, `count` + 1 of
     * the set each. */
    struct ls_range *owned;
};

/* What a store holds besides weights. */
struct ls_store_options {
    struct ls_comm *comm; /* the ranks that divide what is learned */
    bool training;
    int workers;
    int histories; /* arrays that the optimizer needs, 0 to LS_HISTORY_MAX */
    bool average;
    uint64_t seed; /* of the fillers */
};

/* Allocates memory for all parameters and views that plans have asked for, and fills the weights
 * with what their fillers say. Sets and views outlive the store. */
int ls_store_create(const struct ls_device *device, struct ls_parameter_set *set,
                    struct ls_view_set *views, const struct ls_store_options *options,
                    struct ls_store **store, struct ls_error *error);
void ls_store_free(struct ls_store *store);

/* Memory for views that plans have asked for since, brought up to date. */
int ls_store_add_views(struct ls_store *store, struct ls_error *error);

/* Brings views up to date with the weights, all of which are there. */
int ls_store_refresh_views(struct ls_store *store, struct ls_thread_pool *pool,
                           struct ls_error *error);
/* After an update: only those of weights that are not exchanged. */
int ls_store_refresh_own_views(struct ls_store *store, struct ls_thread_pool *pool,
                               struct ls_error *error);
/* Those of the weights in a bucket of the flat array, when they have arrived. */
void ls_store_convert_bucket(struct ls_store *store, int bucket);

enum ls_store_array { LS_WEIGHTS, LS_HISTORY_0, LS_HISTORY_1, LS_AVERAGE };
/* Learns which rank has what of history and averages, when a store is made. */
int ls_store_learn_owners(struct ls_store *store, struct ls_error *error);
/* Whether the parts of an array lie with several ranks; all ranks say the same. */
bool ls_store_is_shared_out(const struct ls_store *store, int parameter, enum ls_store_array array);
/* Copies an array of a parameter out of the store, in Caffe's order of elements. One that is shared
 * out is for rank 0 only (`plain` may be NULL elsewhere), and all ranks call it; a failure is that
 * of all then, with rank 0's message. */
int ls_store_read(const struct ls_store *store, int parameter, enum ls_store_array array,
                  float *plain, struct ls_error *error);
/* The same where it lies here in that order anyway, else NULL: it must be copied. */
const float *ls_store_plain(const struct ls_store *store, int parameter, enum ls_store_array array);
/* Copies a whole array into the store, which keeps what this rank has of it. */
int ls_store_write(struct ls_store *store, int parameter, enum ls_store_array array,
                   const float *plain, struct ls_error *error);
/* The gradient of the last update, in Caffe's order. All ranks call it, and all get it. */
int ls_store_read_gradient(const struct ls_store *store, int parameter, float *plain,
                           struct ls_error *error);
/* Whether the gradient of a parameter is exchanged as factors: it has no sum then. */
static inline bool ls_store_has_factors(const struct ls_store *store, int parameter)
{
    return store->slots[parameter].parameter->factoring.weight != NULL;
}
/* Gives all ranks the weights of all, after owners have changed theirs; waits for them. */
int ls_store_gather_weights(struct ls_store *store, struct ls_error *error);
/* Exchanges weights and their averages (for tests and exports with averaged weights); all ranks
 * call it. */
int ls_store_swap_average(struct ls_store *store, struct ls_error *error);

#endif
