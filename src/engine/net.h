/* A net that can run: its data, and a plan for each number of samples that a micro-batch can have.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_NET_H
#define LS_ENGINE_NET_H

#include <stdbool.h>
#include <stdint.h>

#include "data/batching.h"
#include "data/dataset.h"
#include "data/feed.h"
#include "graph/build.h"
#include "plan/plan.h"

/* A plan in one worker's memory. */
struct ls_binding {
    void **pointers; /* of all steps' inputs and outputs, in order */
    void **local;    /* by step: what kernel->bind made */
    unsigned char *arena;
};

struct ls_net_plan {
    int64_t samples;
    struct ls_plan *plan;
    size_t pointer_count;
    struct ls_binding *bindings; /* by worker; NULL until ls_net_bind */
    struct ls_value *output;     /* the value to keep (ls_net_options.output), or NULL */
};

struct ls_net_options {
    const struct ls_net_definition *definition; /* outlives the net */
    int phase;                                  /* LOCKSTEP__PHASE__TRAIN or _TEST */
    bool training;                              /* with a backward pass */
    bool augment;      /* random crops and the like, where the phase has them */
    bool from_outside; /* inputs are handed in by the caller, sample by sample */
    uint64_t seed;
    int64_t micro_batch; /* 0: the rule */
    int iter_size;
    int64_t samples; /* use only the first of the data; 0: all */
    const struct ls_backend *backend;
    struct ls_parameter_set *parameters; /* shared by the nets of a program */
    struct ls_view_set *views;
    /* (optional) Names the value whose contents are wanted after a pass. */
    struct ls_value *(*output)(const struct ls_graph *graph);
};

struct ls_net {
    struct ls_net_options options;
    struct ls_dataset **datasets; /* by Data layer; NULL entries with from_outside */
    const Lockstep__LayerParameter **data_layers;
    struct ls_source_shape *shapes;
    struct ls_source_shapes sources;
    int dataset_count;
    int (*inputs)[2]; /* by graph input: data set and 0 for data, 1 for label */
    int input_count;
    struct ls_batching batching;
    struct ls_net_plan *plans;
    size_t plan_count, plan_capacity;
    int workers; /* that plans are bound for */
};

/* Opens the net's data and plans it for every number of samples that micro-batches of its data can
 * have. All problems of the definition are reported in one go. */
int ls_net_open(const struct ls_net_options *options, struct ls_net **net, struct ls_error *error);
void ls_net_close(struct ls_net *net);

/* The plan for micro-batches of `samples`; NULL if there is none. */
struct ls_net_plan *ls_net_plan_for(struct ls_net *net, int64_t samples);
/* Adds one. */
int ls_net_add_plan(struct ls_net *net, int64_t samples, struct ls_error *error);
/* The arena that the largest plan needs. */
size_t ls_net_arena_bytes(const struct ls_net *net);
/* A graph of the net (they differ in the number of samples only). */
const struct ls_graph *ls_net_graph(const struct ls_net *net);

struct ls_store;
/* Binds all plans to workers' arenas and the store's parameters. */
int ls_net_bind(struct ls_net *net, const struct ls_store *store, void *const *arenas, int workers,
                struct ls_error *error);

/* Runs a bound plan on one micro-batch: what comes before the pass, or the pass. `inputs` holds a
 * pointer by graph input. */
void ls_net_run(const struct ls_net_plan *plan, int worker, float *const *inputs,
                const struct ls_context *context, bool before);

/* Whether anything that runs before the pass reads an input of the graph. */
bool ls_net_reads_before(const struct ls_net *net, int input);

/* Feeds the net's data to workers, beginning with update 0. */
int ls_net_feed(const struct ls_net *net, int64_t updates_end, struct ls_feed **feed,
                struct ls_error *error);

#endif
