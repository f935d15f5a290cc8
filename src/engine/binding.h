/* Bindings: plans in memory, and running them.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_BINDING_H
#define LS_ENGINE_BINDING_H

#include "engine/net.h"

struct ls_sample_states;
struct ls_store;
/* Memory to bind a plan to: slot i works in arena i % workers and holds in memory i. */
struct ls_slots {
    int count, workers;
    void *const *arenas;
    void *const *stashed;
};
/* Binds a plan to slots and the store's parameters; earlier bindings go. */
int ls_binding_bind(struct ls_net_plan *plan, const struct ls_store *store,
                    struct ls_reducer *reducer, const struct ls_slots *slots,
                    struct ls_error *error);

void ls_binding_unbind(struct ls_net_plan *plan);

enum { LS_RUN_BEFORE = -2, LS_RUN_ALL = -1 };
/* Brings the inputs of a micro-batch to a slot, before anything of it runs; ls_binding_run does so
 * for segments up to the first. Nothing to do where the device works in the host's memory. */
int ls_binding_begin(const struct ls_net_plan *plan, int slot, const struct ls_inputs *inputs,
                     struct ls_stream *stream, struct ls_error *error);
/* How many micro-batches' inputs a slot has at a time: one where there are slots enough. */
int ls_binding_buffers(int slots, int workers);
/* Is told of the ops that hand something over, a part of a gradient (ACCUMULATE and RECORD) or a
 * state (KEEP): before it runs (or in place of that), what it takes, in the device's memory;
 * afterwards, that it was given to the stream. Either may be NULL. A status other than 0 ends the
 * run. */
struct ls_observer {
    int (*before)(void *user, const struct ls_op *op, const void *numbers,
                  const struct ls_context *context, struct ls_error *error);
    int (*after)(void *user, const struct ls_op *op, const struct ls_context *context,
                 struct ls_error *error);
    void *user;
};

/* Is told of what ops measure that LS_OP_REDUCE_LOSS stands for, by several threads at once: the
 * numbers, in the device's memory, as they are then. */
struct ls_watch {
    int (*measured)(void *user, const struct ls_op *op, const void *numbers,
                    const struct ls_context *context, struct ls_error *error); /* may be NULL */
    /* (may be NULL) Called behind each step that was given to the stream, with what it reads and
     * has written, in the device's memory; chains are taken apart for it. A status other than 0
     * ends the run. */
    int (*stepped)(void *user, const struct ls_op *op, void *const *in, void *const *out,
                   const struct ls_context *context, struct ls_error *error);
    void *user;
};

/* Which rows of the states per sample a micro-batch has. */
struct ls_sample_rows {
    const struct ls_sample_states *states; /* NULL: zeros are recalled, and nothing is kept */
    int64_t row;                           /* of its first sample */
    bool keep;
};

/* A micro-batch that runs. */
struct ls_run {
    void *const *inputs; /* a pointer by graph input, in the host's memory */
    const struct ls_sample_making *const *making; /* as in struct ls_inputs */
    struct ls_copying copying;
    struct ls_context context;
    double *record; /* in the device's memory: where ls_binding_give leaves what was measured */
    struct ls_factors *factors; /* where RECORD ops write; NULL: these do not run. Likewise
                                   ACCUMULATE ops without an accumulator in `context` */
    struct ls_sample_rows rows;
    struct ls_observer observer;
    struct ls_watch watch;
};

/* Runs a bound plan on one micro-batch, in a slot: a segment of it, all of it (sync points then
 * concern this micro-batch alone), or what comes before the pass. All is done when it returns.
 * Fails where a kernel does, naming the layer. */
int ls_binding_run(const struct ls_net_plan *plan, int slot, int segment, const struct ls_run *run,
                   struct ls_error *error);

/* The same, but what is given to the stream may not be over when it returns, unless the device's
 * memory is the host's: nothing waits. Inputs must stay as they are until `copying.over`. */
int ls_binding_give(const struct ls_net_plan *plan, int slot, int segment, const struct ls_run *run,
                    struct ls_error *error);

/* Pointers to the inputs of a step in a slot, its outputs behind them; `inputs` as in struct
 * ls_run, NULL: those that lie there are not asked for. */
void *const *ls_binding_step_pointers(const struct ls_net_plan *plan, int slot, size_t step,
                                      void *const *inputs);

/* Where a value lies after a run in a slot, in the device's memory: one of the arena, or an input
 * under another shape. */
const void *ls_binding_value(const struct ls_net_plan *plan, int slot, const struct ls_value *value,
                             void *const *inputs);

/* Begins (on) to take the time that each step of a bound plan takes, from zero, or ends it; it ends
 * by itself when the plan is bound anew. Not while workers run. */
int ls_binding_take_time(struct ls_net_plan *plan, bool on, struct ls_error *error);
/* What a step took since then, in nanoseconds, as the sum over the slots of one of `workers`. */
uint64_t ls_binding_step_time(const struct ls_net_plan *plan, size_t step, int worker, int workers);

/* Whether anything that runs before the pass reads an input of the graph. */
bool ls_binding_reads_before(const struct ls_net *net, int input);

#endif
