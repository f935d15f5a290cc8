/* A net that can run: its data, and a plan for each number of samples that a micro-batch can have.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_NET_H
#define LS_ENGINE_NET_H

#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"
#include "data/batching.h"
#include "data/dataset.h"
#include "data/prefetcher.h"
#include "engine/room.h"
#include "engine/recorder.h"
#include "engine/staging.h"
#include "graph/build.h"
#include "plan/plan.h"

struct ls_reducer;
struct ls_residents;

/* A plan in the memory of one slot: of a worker or, where micro-batches go through the net
 * together, of one of them. */
struct ls_binding {
    void **pointers; /* of all steps' inputs and outputs, in order */
    void **local;    /* by step: what kernel->bind made */
    unsigned char *arena, *stashed;
    struct ls_staging staging;
    struct ls_recorder *recorder; /* NULL: the device has no recordings */
    uint64_t *nanoseconds;        /* by step, since ls_binding_take_time; NULL: timing off */
};

struct ls_net_plan {
    int64_t samples;
    int64_t shape[3]; /* of a sample; zeros where sizes do not vary */
    struct ls_plan *plan;
    size_t *position;            /* by step: of its pointers in a binding, and behind the last */
    struct ls_binding *bindings; /* by slot; NULL until ls_binding_bind */
    int slots;
    int generation;             /* of the memory that they are bound to */
    struct ls_reducer *reducer; /* of the store that they are bound to; NULL: no other ranks */
    struct ls_wait {
        int first, last;
    } * wait;                /* by step: the buckets of weights that it reads; -1: none */
    int64_t used;            /* when it was wanted last */
    bool kept;               /* in use: not to be evicted */
    struct ls_value *output; /* the value to keep (ls_net_options.output), or NULL */
};

struct ls_net_options {
    const struct ls_net_definition *definition; /* outlives the net */
    int phase;                                  /* LOCKSTEP__PHASE__TRAIN or _TEST */
    bool training;                              /* with a backward pass */
    bool augment;      /* random crops and the like, where the phase has them */
    bool forgiving;    /* bad records are no failure: for ls_net_check_data */
    bool from_outside; /* inputs are handed in by the caller, sample by sample */
    uint64_t seed;
    int64_t micro_batch;             /* 0: the rule */
    bool follow_groups;              /* micro-batches are made of whole groups of batch norm */
    const char *follow_groups_place; /* where that was asked for, while the net is opened */
    int iter_size;
    int64_t samples; /* use only the first of the data; 0: all */
    const struct ls_device *device;
    struct ls_parameter_set *parameters; /* shared by the nets of a program */
    struct ls_view_set *views;
    /* What activations of `workers` workers may take, each plan by itself; 0: no limit. Plans that
     * do not fit are the smallest there are: compare with ls_net_memory_bytes. */
    size_t activation_bytes;
    int workers;
    struct ls_share share; /* what is this rank's of each batch; all zeros: everything */
    /* (optional) Names the value whose contents are wanted after a pass: that of `blob`, or, where
     * it is NULL, of the net's choice. */
    struct ls_value *(*output)(const struct ls_graph *graph, const char *blob);
    const char *blob;
    /* What the numbers of classes mean: as in the data of the net that is trained, which outlives
     * this one's opening; or as a file of weights says. NULL: the data say it. */
    const struct ls_net *trained;
    const struct ls_class_names *classes;
};

struct ls_net {
    struct ls_net_options options;
    struct ls_dataset **datasets; /* by Data layer; NULL entries with from_outside */
    const Lockstep__LayerParameter **data_layers;
    struct ls_source_shape *shapes;
    struct ls_source_shapes sources;
    int dataset_count;
    int (*inputs)[2]; /* by graph input: data set, and which tensor of its samples */
    size_t *runs;     /* by graph input: in how many parts a sample lies (struct ls_sample_place) */
    bool *rounded;    /* by graph input: it is bf16, of fp32 samples (the same) */
    int input_count;
    struct ls_residents *residents; /* data sets in the device's memory; NULL: none can be */
    struct ls_batching batching;
    struct ls_own_batch *own; /* by Data layer; for `batching` where they differ */
    /* The layer that mixes samples, so that each batch is one micro-batch; NULL: there is none. */
    const Lockstep__LayerParameter *mixer;
    struct ls_net_plan **plans; /* the first is that of record 0 and a whole micro-batch */
    size_t plan_count, plan_capacity;
    int64_t wanted;         /* plans so far, to find those that were not for long */
    int64_t wanted_before;  /* `wanted` when the pass at hand began */
    int varying;            /* the data set whose samples differ in size; -1: none */
    int64_t size[3];        /* of its image that `shapes` are for */
    bool counts_on_the_way; /* labels are counted at a sync point */
    bool gathers;           /* large inner products are computed for all micro-batches together */
    /* There are products that could be: the same on all ranks, whatever memory and workers each of
     * them has. */
    bool may_gather;
    struct ls_micro *cut; /* room for the micro-batches of a batch */
};

/* Opens the net's data and plans it for every number of samples that micro-batches of its data can
 * have. All problems of the definition are reported in one go. */
int ls_net_open(const struct ls_net_options *options, struct ls_net **net, struct ls_error *error);
void ls_net_close(struct ls_net *net);

/* What a layer that mixes samples is called, where there is one. */
static inline const char *ls_net_mixer_name(const struct ls_net *net)
{
    return net->mixer->name != NULL ? net->mixer->name : "(unnamed)";
}

/* What a prediction is of: a sample, or the batch of a net that mixes samples. */
static inline int64_t ls_net_sample_count(const struct ls_net *net)
{
    return net->mixer != NULL ? net->batching.batch : 1;
}

/* As if the batch were another one (for forecasts; nothing is planned anew). */
int ls_net_assume_batch(struct ls_net *net, int64_t batch, struct ls_error *error);
/* Bytes of activations that the largest of the net's plans takes on so many workers. */
size_t ls_net_memory_bytes(const struct ls_net *net, int workers);
/* Bytes of a graph input in the largest micro-batch there can be. */
size_t ls_net_input_bytes(const struct ls_net *net, int input);
/* A graph of the net (they differ in the number of samples only), and its plan. */
static inline const struct ls_plan *ls_net_first_plan(const struct ls_net *net)
{
    return net->plans[0]->plan;
}
static inline const struct ls_graph *ls_net_graph(const struct ls_net *net)
{
    return ls_net_first_plan(net)->graph;
}

/* Opens a prefetcher of the net's data, which begins with update 0. The caller closes it. The room
 * is shared with the prefetchers of other nets (data/prefetcher.h); NULL: it is not. */
int ls_net_prefetcher(const struct ls_net *net, int64_t updates_end,
                      struct ls_prefetch_memory *room, struct ls_prefetcher **prefetcher,
                      struct ls_error *error);
/* What that prefetcher's decoded samples will take, and its threads. */
int ls_net_prefetcher_bytes(const struct ls_net *net, size_t *samples, size_t *threads,
                            struct ls_error *error);

#endif
