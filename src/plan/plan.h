/* The plan: a graph bound to kernels, layouts and memory.
 *
 * A plan is for one number of samples in a micro-batch. All that is decided is decided here, by
 * static rules from the graph: which kernel does an op, in which layout each value lies, where in
 * the arena. Running it is walking down a list.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_PLAN_PLAN_H
#define LS_PLAN_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "ir/graph.h"
#include "device/device.h"

/* A parameter in a layout or a type other than its own, because a kernel wants it so (the weights
 * for a convolution's backward pass, for example). Converted anew after every update. */
struct ls_view {
    struct ls_parameter *parameter;
    const struct ls_layout *layout;
    enum ls_dtype type;
};

/* The views that any plan of a program asked for. */
struct ls_view_set {
    struct ls_view *items;
    size_t count, capacity;
};

struct ls_step {
    struct ls_prepared prepared; /* prepared.op: its inputs and outputs */
    size_t scratch_offset;       /* in the arena */
    bool in_pass;                /* part of the pass */
    bool before_pass;            /* part of what runs before it (label counts) */
    bool cut;                    /* a sync point that other micro-batches are waited for at */
    bool gathered;               /* done by all workers for the rows of all micro-batches, in a
                                    segment of its own (plan/gather.c) */
    bool recomputed; /* done before, and once more in the backward pass (plan/recompute.c) */
    /* A chain begins: this step and those behind it, so many in all, are carried out together,
     * `at_once` channels at a time (plan/chain.c). 0: it does not. */
    size_t chain;
    int64_t at_once;
};

/* Memory that a plan may take: of `workers` arenas, and of `slots` micro-batches that hold. */
struct ls_memory_budget {
    size_t bytes; /* 0: no limit */
    int workers, slots;
};

struct ls_plan {
    struct ls_graph *graph; /* owned */
    const struct ls_device *device;
    struct ls_step *steps;
    size_t step_count;
    bool has_before;      /* some step must run before the pass */
    bool may_gather;      /* there are steps that could be gathered, whether they are or not */
    size_t *offset;       /* by value index: in the arena; SIZE_MAX: not in the arena */
    int *view;            /* by value index: in the view set; -1: the parameter itself, or none */
    bool *stashed;        /* by value index: offset is in what the micro-batch holds */
    size_t arena_bytes;   /* what a worker needs, scratch included */
    size_t stashed_bytes; /* what a micro-batch holds across sync points */
    size_t scratch_bytes; /* of the largest step */
    size_t *segment;      /* segment i is steps [segment[i], segment[i + 1]) */
    size_t segments;      /* 1 + the number of cuts, of two sorts: */
    size_t sync_cuts;     /* at sync points; where there are none micro-batches need no other */
    size_t live_bytes;    /* the most that is alive in the arena at once: no packing is smaller */
    size_t stashed_live_bytes; /* the same of stashed_bytes */
    size_t recomputations;     /* steps that are recomputations */
    double work;           /* estimate of all steps that are not, in FLOPs and what memory traffic
                              is worth in FLOPs */
    double recompute_work; /* estimate of the recomputations, the same way */
};

/* What a graph is planned for. */
struct ls_plan_options {
    const struct ls_device *device;
    struct ls_view_set *views; /* those that are missing are added */
    /* Values that must still be there after the pass (predictions); NULL ones are left out. */
    struct ls_value *const *keep;
    size_t keep_count;
    /* Whether groups of so many samples (0: the batch) lie within every micro-batch, so that their
     * sync points need no other. NULL: all do. */
    bool (*local)(const void *user, int64_t group);
    const void *user;
    /* Whether large inner products are gathered, where micro-batches can wait for each other. */
    enum ls_gathering { LS_GATHER_NEVER, LS_GATHER_WHERE_IT_PAYS, LS_GATHER_ALWAYS } gather;
    int64_t gather_samples; /* of the micro-batch by whose rows that is decided: one for all plans
                               of a net, since those of a batch wait for each other */
    /* Forward steps are recomputed in the backward pass until the plan fits. Where nothing fits the
     * plan is the smallest that was found: its arena_bytes and stashed_bytes say what it takes. */
    struct ls_memory_budget budget;
};

/* Plans `graph`, which it takes over (also on failure). */
int ls_plan_build(struct ls_graph *graph, const struct ls_plan_options *options,
                  struct ls_plan **plan, struct ls_error *error);
void ls_plan_free(struct ls_plan *plan);
void ls_view_set_free(struct ls_view_set *views);
static inline size_t ls_view_bytes(const struct ls_view *view)
{
    return ls_layout_bytes(view->layout, &view->parameter->shape, view->type);
}

/* Whether a plan is cut behind a step: at a sync point, and around what is gathered. */
static inline bool ls_plan_cut_behind(const struct ls_plan *plan, size_t step)
{
    const struct ls_step *steps = plan->steps;
    bool last = step + 1 == plan->step_count;
    return steps[step].cut || (!last && (steps[step].gathered || steps[step + 1].gathered));
}

/* The numbers in a row of input 0, and of output 0, of a gathered step, how many bytes they take,
 * and how many rows a micro-batch has. */
struct ls_gathered {
    int64_t in, out, rows;
    size_t in_bytes, out_bytes;
};
struct ls_gathered ls_plan_gathered(const struct ls_step *step);
/* Whether anything is. */
static inline bool ls_plan_gathers(const struct ls_plan *plan)
{
    return plan->segments > 1 + plan->sync_cuts;
}
/* Bytes of the rows of a micro-batch, for the largest input and output of gathered steps. */
size_t ls_plan_gathered_bytes(const struct ls_plan *plan);

/* The passes of ls_plan_build. */
/* Marks what may be gathered (plan/gather.c), or nothing, by the rows that micro-batches of so many
 * samples have; whether that pays if arenas and what micro-batches hold are that large then. */
bool ls_plan_gather(struct ls_plan *plan, int64_t samples);
void ls_plan_scatter(struct ls_plan *plan);
bool ls_plan_gather_pays(const struct ls_plan *plan, size_t arena, size_t stashed,
                         const struct ls_memory_budget *budget);
void ls_plan_set_segments(struct ls_plan *plan);
int ls_plan_layouts(struct ls_plan *plan, struct ls_view_set *views, struct ls_error *error);
int ls_plan_memory(struct ls_plan *plan, const struct ls_plan_options *options,
                   struct ls_error *error);

#endif
