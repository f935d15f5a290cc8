/* Plans in memory: pointers for every step, and walking down the list. See engine/binding.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/binding.h"

#include "base/hash.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "base/thread.h"
#include "base/timeline.h"
#include "engine/exchange.h"
#include "engine/sample_states.h"
#include "engine/store.h"
#include "engine/reducer.h"
#include "ir/layer.h"

/* What a plan is bound to. Its steps wait for weights themselves: see binding_await_weights. */
struct bound_to {
    const struct ls_store *store;
    float *const *weights; /* by parameter */
};

/* Where a value of a plan lies in a binding; NULL for inputs, which change, and for parameters
 * where `to` is NULL. */
static void *binding_locate(const struct ls_plan *plan, const struct bound_to *to,
                            const struct ls_value *value, const struct ls_binding *binding)
{
    const struct ls_value *root = ls_value_root(value);
    if (root == NULL)
        return NULL;
    switch (root->storage) {
    case LS_STORE_ARENA:
        if (plan->offset[root->index] == SIZE_MAX)
            return NULL;
        return (plan->stashed[root->index] ? binding->stashed : binding->arena) +
               plan->offset[root->index];
    case LS_STORE_PARAMETER:
        if (to == NULL)
            return NULL;
        if (plan->view != NULL && plan->view[root->index] >= 0)
            return to->store->view_memory[plan->view[root->index]].numbers;
        return to->weights[root->parameter->index];
    default:
        return NULL;
    }
}

static int binding_bind_step(const struct ls_plan *plan, const struct ls_step *step,
                             const struct bound_to *to, struct ls_binding *binding, size_t position,
                             void **local, struct ls_error *error)
{
    const struct ls_op *op = step->prepared.op;
    void **in = binding->pointers + position, **out = in + op->inputs;
    for (int i = 0; i < op->inputs; i++)
        in[i] = binding_locate(plan, to, op->input[i], binding);
    for (int i = 0; i < op->outputs; i++)
        out[i] = binding_locate(plan, to, op->output[i], binding);
    if (step->prepared.kernel->bind == NULL)
        return 0;
    void *scratch = binding->arena + step->scratch_offset;
    return step->prepared.kernel->bind(&step->prepared, in, out, scratch, local, error);
}

static int binding_bind_slot(struct ls_net_plan *plan, const struct bound_to *to,
                             struct ls_binding *binding, struct ls_error *error)
{
    const struct ls_plan *what = plan->plan;
    const bool records = what->device->recordings != NULL;
    binding->pointers = ls_alloc(plan->position[what->step_count] + 1, sizeof *binding->pointers);
    binding->local = ls_alloc(what->step_count + 1, sizeof *binding->local);
    binding->recorder = records ? ls_alloc(1, sizeof *binding->recorder) : NULL;
    if (binding->pointers == NULL || binding->local == NULL ||
        (records && binding->recorder == NULL))
        return ls_fail_memory(error, "a worker");
    for (size_t i = 0; i < what->step_count; i++)
        LS_TRY(binding_bind_step(what, &what->steps[i], to, binding, plan->position[i],
                                 &binding->local[i], error));
    return 0;
}

/* Which buckets of weights a step reads, where ranks exchange weights. */
static struct ls_wait binding_wait_of(const struct ls_step *step, const struct ls_store *store)
{
    struct ls_wait wait = {-1, -1};
    const struct ls_op *op = step->prepared.op;
    for (int i = 0; i < op->inputs; i++) {
        const struct ls_value *root = ls_value_root(op->input[i]);
        if (root == NULL || root->storage != LS_STORE_PARAMETER)
            continue;
        int bucket = store->shards->bucket[root->parameter->index];
        if (bucket < 0)
            continue;
        wait.first = wait.first < 0 || bucket < wait.first ? bucket : wait.first;
        wait.last = bucket > wait.last ? bucket : wait.last;
    }
    return wait;
}

static int binding_find_waits(struct ls_net_plan *plan, const struct ls_store *store,
                              struct ls_error *error)
{
    const struct ls_plan *what = plan->plan;
    if (plan->reducer == NULL)
        return 0;
    plan->wait = ls_alloc(what->step_count + 1, sizeof *plan->wait);
    if (plan->wait == NULL)
        return ls_fail_memory(error, "workers");
    for (size_t i = 0; i < what->step_count; i++)
        plan->wait[i] = binding_wait_of(&what->steps[i], store);
    return 0;
}

int ls_binding_begin(const struct ls_net_plan *plan, int slot, const struct ls_inputs *inputs,
                     struct ls_stream *stream, struct ls_error *error)
{
    return ls_staging_begin(&plan->bindings[slot].staging, plan->plan->graph, inputs, stream,
                            error);
}

int ls_binding_buffers(int slots, int workers)
{
    return slots > workers ? 1 : LS_STAGING_BUFFERS;
}

int ls_binding_bind(struct ls_net_plan *plan, const struct ls_store *store,
                    struct ls_reducer *reducer, const struct ls_slots *slots,
                    struct ls_error *error)
{
    struct bound_to to = {.store = store};
    ls_binding_unbind(plan);
    LS_TRY(ls_store_all_weights(store, &to.weights, error));
    plan->bindings = ls_alloc((size_t)slots->count, sizeof *plan->bindings);
    if (plan->bindings == NULL)
        return ls_fail_memory(error, "workers");
    plan->slots = slots->count;
    plan->reducer = reducer;
    int status = binding_find_waits(plan, store, error);
    if (status != 0) {
        ls_binding_unbind(plan);
        return status;
    }
    for (int i = 0; i < slots->count; i++) {
        plan->bindings[i].arena = slots->arenas[i % slots->workers];
        plan->bindings[i].stashed = plan->plan->stashed_bytes > 0 ? slots->stashed[i] : NULL;
        status = binding_bind_slot(plan, &to, &plan->bindings[i], error);
        if (status == 0)
            status =
                ls_staging_create(&plan->bindings[i].staging, plan->plan->device, plan->plan->graph,
                                  ls_binding_buffers(slots->count, slots->workers), error);
        if (status != 0) {
            ls_binding_unbind(plan); /* leave it unbound on failure */
            return status;
        }
    }
    return 0;
}

void ls_binding_unbind(struct ls_net_plan *plan)
{
    for (int slot = 0; slot < plan->slots && plan->bindings != NULL; slot++) {
        struct ls_binding *binding = &plan->bindings[slot];
        for (size_t i = 0; i < plan->plan->step_count && binding->local != NULL; i++) {
            const struct ls_prepared *prepared = &plan->plan->steps[i].prepared;
            if (binding->local[i] != NULL && prepared->kernel->unbind != NULL)
                prepared->kernel->unbind(prepared, binding->local[i]);
        }
        ls_staging_free(&binding->staging, plan->plan->graph);
        if (binding->recorder != NULL)
            ls_recorder_forget(binding->recorder, plan->plan->device->recordings);
        ls_free(binding->recorder);
        ls_free(binding->pointers);
        ls_free(binding->local);
        ls_free(binding->nanoseconds);
    }
    ls_free(plan->bindings);
    ls_free(plan->wait);
    plan->bindings = NULL;
    plan->wait = NULL;
    plan->reducer = NULL;
    plan->slots = 0;
}

int ls_binding_take_time(struct ls_net_plan *plan, bool on, struct ls_error *error)
{
    size_t steps = plan->plan->step_count;
    for (int slot = 0; slot < plan->slots; slot++) {
        struct ls_binding *binding = &plan->bindings[slot];
        ls_free(binding->nanoseconds);
        binding->nanoseconds = on ? ls_alloc(steps + 1, sizeof *binding->nanoseconds) : NULL;
        if (on && binding->nanoseconds == NULL)
            return ls_fail_memory(error, "the time of steps");
    }
    return 0;
}

uint64_t ls_binding_step_time(const struct ls_net_plan *plan, size_t step, int worker, int workers)
{
    uint64_t sum = 0;
    for (int slot = worker; slot < plan->slots; slot += workers)
        if (plan->bindings[slot].nanoseconds != NULL)
            sum += plan->bindings[slot].nanoseconds[step];
    return sum;
}

/* The root of a value that comes from outside, else NULL. */
static const struct ls_value *binding_input_root(const struct ls_value *value)
{
    const struct ls_value *root = ls_value_root(value);
    return root != NULL && root->storage == LS_STORE_INPUT ? root : NULL;
}

bool ls_binding_reads_before(const struct ls_net *net, int input)
{
    const struct ls_plan *plan = ls_net_first_plan(net);
    for (size_t i = 0; i < plan->step_count; i++) {
        const struct ls_op *op = plan->steps[i].prepared.op;
        for (int j = 0; plan->steps[i].before_pass && j < op->inputs; j++) {
            const struct ls_value *root = binding_input_root(op->input[j]);
            if (root != NULL && root->input == input)
                return true;
        }
    }
    return false;
}

/* Inputs lie where the caller says, and so do their views. */
static void binding_set_inputs(const struct ls_op *op, void **pointers, void *const *inputs)
{
    for (int j = 0; j < op->inputs + op->outputs; j++) {
        const struct ls_value *root =
            binding_input_root(j < op->inputs ? op->input[j] : op->output[j - op->inputs]);
        if (root != NULL)
            pointers[j] = inputs[root->input];
    }
}

void *const *ls_binding_step_pointers(const struct ls_net_plan *plan, int slot, size_t step,
                                      void *const *inputs)
{
    const struct ls_binding *binding = &plan->bindings[slot];
    void **pointers = binding->pointers + plan->position[step];
    if (inputs != NULL)
        binding_set_inputs(plan->plan->steps[step].prepared.op, pointers,
                           binding->staging.inputs != NULL ? binding->staging.inputs : inputs);
    return pointers;
}

const void *ls_binding_value(const struct ls_net_plan *plan, int slot, const struct ls_value *value,
                             void *const *inputs)
{
    const struct ls_binding *binding = &plan->bindings[slot];
    const struct ls_value *root = ls_value_root(value);
    if (root->storage == LS_STORE_INPUT)
        return plan->plan->device->memory->host_memory ? inputs[root->input]
                                                       : binding->staging.inputs[root->input];
    return binding_locate(plan->plan, NULL, root, binding);
}

/* A plan that is run on one micro-batch. */
struct run {
    const struct ls_net_plan *plan;
    const struct ls_binding *binding;
    int slot;
    const struct ls_run *what;
    void *const *inputs;        /* where the device finds them */
    struct ls_context *context; /* what kernels see */
};

static void **binding_pointers_of(const struct run *run, size_t i)
{
    return run->binding->pointers + run->plan->position[i];
}

static void *binding_scratch_of(const struct run *run, size_t i)
{
    return run->binding->arena + run->plan->plan->steps[i].scratch_offset;
}

static int binding_merge(const struct run *run, size_t i, int64_t begin, int64_t end)
{
    const struct ls_plan *what = run->plan->plan;
    return ls_exchange_merge_local(what->device, what->graph, what->steps[i].prepared.op->attr.sync,
                                   run->context, begin, end);
}

/* A kernel that failed without a word is given one: the user is told the layer in any case. */
static int binding_check_step(const struct run *run, size_t i, int status)
{
    struct ls_error *error = run->context->error;
    if (status != 0 && error != NULL && error->status == 0)
        return ls_kernel_fail(run->plan->plan->steps[i].prepared.op, error, status,
                              run->plan->plan->device->name);
    return status;
}

static int binding_run_kernel(const struct run *run, size_t i)
{
    const struct ls_step *step = &run->plan->plan->steps[i];
    void **in = binding_pointers_of(run, i);
    binding_set_inputs(step->prepared.op, in, run->inputs);
    return step->prepared.kernel->run(&step->prepared, run->binding->local[i], in,
                                      in + step->prepared.op->inputs, binding_scratch_of(run, i),
                                      run->context);
}

/* The state of the micro-batch's samples, as the window before has left it. */
static int binding_recall(const struct run *run, size_t i)
{
    const struct ls_plan *plan = run->plan->plan;
    const struct ls_op *op = plan->steps[i].prepared.op;
    const struct ls_sample_rows *rows = &run->what->rows;
    const struct ls_context *context = run->context;
    void *value = *binding_pointers_of(run, i);
    if (rows->states == NULL)
        return plan->device->memory->zero(context->stream, value, ls_value_bytes(op->output[0]),
                                          context->error);
    return ls_sample_states_recall(rows->states, op->attr.sample_state, rows->row,
                                   plan->graph->samples, context->stream, value, context->error);
}

/* Gives the accumulator, the factors or the state what an op hands over, where there are any. */
static int binding_give(const struct run *run, size_t i, const void *value)
{
    const struct ls_op *op = run->plan->plan->steps[i].prepared.op;
    const struct ls_sample_rows *rows = &run->what->rows;
    struct ls_context *context = run->context;
    switch (op->kind) {
    case LS_OP_KEEP:
        return rows->states == NULL || !rows->keep
                   ? 0
                   : ls_sample_states_keep(rows->states, op->attr.sample_state, rows->row,
                                           run->plan->plan->graph->samples, context->stream, value,
                                           context->error);
    case LS_OP_RECORD:
        if (run->what->factors == NULL)
            return 0;
        context->factor =
            ls_factors_target(run->what->factors, &op->attr.record, context->micro_batch);
        return binding_run_kernel(run, i);
    default:
        return context->accumulator != NULL ? binding_run_kernel(run, i) : 0;
    }
}

/* An op that hands a part of a gradient over, or a state. */
static int binding_hand_over(const struct run *run, size_t i)
{
    const struct ls_op *op = run->plan->plan->steps[i].prepared.op;
    const struct ls_observer *observer = &run->what->observer;
    void **in = binding_pointers_of(run, i);
    binding_set_inputs(op, in, run->inputs);
    if (observer->before != NULL)
        LS_TRY(observer->before(observer->user, op, in[0], run->context, run->context->error));
    LS_TRY(binding_give(run, i, in[0]));
    return observer->after != NULL
               ? observer->after(observer->user, op, run->context, run->context->error)
               : 0;
}

/* A reduction; a watch is shown what it is of. */
static int binding_reduce(const struct run *run, size_t i)
{
    const struct ls_watch *watch = &run->what->watch;
    LS_TRY(binding_run_kernel(run, i));
    return watch->measured != NULL
               ? watch->measured(watch->user, run->plan->plan->steps[i].prepared.op,
                                 *binding_pointers_of(run, i), run->context, run->context->error)
               : 0;
}

static int binding_run_step(const struct run *run, size_t i, bool all)
{
    const struct ls_plan *what = run->plan->plan;
    const struct ls_step *step = &what->steps[i];
    const struct ls_op *op = step->prepared.op;
    int status = 0;
    uint64_t start = run->binding->nanoseconds != NULL ? ls_nanoseconds() : 0;
    if (op->kind == LS_OP_ACCUMULATE || op->kind == LS_OP_RECORD || op->kind == LS_OP_KEEP)
        status = binding_hand_over(run, i);
    else if (op->kind == LS_OP_RECALL)
        status = binding_recall(run, i);
    else if (op->kind == LS_OP_REDUCE_LOSS)
        status = binding_reduce(run, i);
    else if (op->kind != LS_OP_SYNC)
        status = binding_run_kernel(run, i);
    else if (all || !step->cut)
        status = binding_merge(run, i, 0, ls_sync_padded(&what->graph->syncs[op->attr.sync]));
    if (run->binding->nanoseconds != NULL)
        run->binding->nanoseconds[i] += ls_nanoseconds() - start;
    return binding_check_step(run, i, status);
}

/* What a chain's step does for some channels. */
static int binding_run_channels(const struct run *run, size_t i, int64_t begin, int64_t end)
{
    const struct ls_step *step = &run->plan->plan->steps[i];
    void **in = binding_pointers_of(run, i);
    int status = 0;
    uint64_t start = run->binding->nanoseconds != NULL ? ls_nanoseconds() : 0;
    if (step->prepared.op->kind == LS_OP_SYNC)
        status = binding_merge(run, i, begin, end);
    else
        status = step->prepared.kernel->run_channels(
            &step->prepared, in, in + step->prepared.op->inputs, binding_scratch_of(run, i),
            run->context, begin, end);
    if (run->binding->nanoseconds != NULL)
        run->binding->nanoseconds[i] += ls_nanoseconds() - start;
    return binding_check_step(run, i, status);
}

/* Steps [first, end), some channels at a time; then those that want all channels. */
static int binding_run_chain(const struct run *run, size_t first, size_t end)
{
    const struct ls_step *steps = run->plan->plan->steps;
    const int64_t channels = steps[first].prepared.channels, at_once = steps[first].at_once;
    for (size_t i = first; i < end; i++)
        binding_set_inputs(steps[i].prepared.op, binding_pointers_of(run, i), run->inputs);
    for (int64_t c = 0; c < channels; c += at_once)
        for (size_t i = first; i < end; i++)
            if (steps[i].prepared.channels > 0 || steps[i].prepared.op->kind == LS_OP_SYNC)
                LS_TRY(binding_run_channels(run, i, c,
                                            c + at_once < channels ? c + at_once : channels));
    for (size_t i = first; i < end; i++)
        if (steps[i].prepared.channels == 0 && steps[i].prepared.op->kind != LS_OP_SYNC)
            LS_TRY(binding_run_step(run, i, false));
    return 0;
}

/* Waits for the weights that steps [first, end) read, and notes where this rank is. */
static void binding_await_weights(const struct ls_net_plan *plan, size_t first, size_t end)
{
    const struct ls_layer *layer = plan->plan->steps[first].prepared.op->layer;
    ls_reducer_note_layer(plan->reducer, layer != NULL ? layer->name : NULL);
    for (size_t i = first; i < end; i++)
        if (plan->wait[i].first >= 0)
            ls_reducer_wait_buckets(plan->reducer, plan->wait[i].first, plan->wait[i].last);
}

/* What took since `start` goes to the trace, a chain by its first layer. Returns the time now. */
static inline uint64_t binding_trace(const struct ls_op *op, uint64_t start)
{
    return ls_timeline_add(op->backward ? LS_TIMELINE_BACKWARD : LS_TIMELINE_FORWARD,
                           op->layer != NULL ? op->layer->name : NULL, 0, start);
}

/* One step, of which a watch may want to know. */
static int binding_run_one(const struct run *run, size_t i, bool all)
{
    const struct ls_watch *watch = &run->what->watch;
    const struct ls_op *op = run->plan->plan->steps[i].prepared.op;
    LS_TRY(binding_run_step(run, i, all));
    void **in = binding_pointers_of(run, i);
    return watch->stepped == NULL ? 0
                                  : watch->stepped(watch->user, op, in, in + op->inputs,
                                                   run->context, run->context->error);
}

/* The steps of a segment, until one fails. */
static int binding_run_steps(const struct run *run, int segment)
{
    const struct ls_net_plan *plan = run->plan;
    const struct ls_plan *what = plan->plan;
    size_t begin = segment >= 0 ? what->segment[segment] : 0;
    size_t end = segment >= 0 ? what->segment[segment + 1] : what->step_count;
    uint64_t start = ls_timeline_start();
    for (size_t i = begin; i < end; i++) {
        const struct ls_step *step = &what->steps[i];
        if (segment == LS_RUN_BEFORE ? !step->before_pass : !step->in_pass)
            continue;
        if (plan->reducer != NULL)
            binding_await_weights(plan, i, i + (step->chain > 0 ? step->chain : 1));
        if (step->chain > 0 && segment != LS_RUN_BEFORE && run->what->watch.stepped == NULL) {
            LS_TRY(binding_run_chain(run, i, i + step->chain));
            i += step->chain - 1;
        } else {
            LS_TRY(binding_run_one(run, i, segment == LS_RUN_ALL));
        }
        start = binding_trace(step->prepared.op, start);
    }
    return 0;
}

/* ---- Recordings ------------------------------------------------------------------------------ */

/* Whether steps get the same addresses and numbers each time, but for what lies in the device's
 * memory, and the host has nothing to do between them. */
static bool binding_may_record(const struct run *run)
{
    const struct ls_run *what = run->what;
    return run->binding->recorder != NULL && run->plan->reducer == NULL &&
           what->observer.before == NULL && what->observer.after == NULL &&
           what->watch.measured == NULL && what->watch.stepped == NULL &&
           what->rows.states == NULL && run->binding->nanoseconds == NULL &&
           ls_timeline_start() == 0;
}

static uint64_t binding_name_pointer(const void *pointer, uint64_t hash)
{
    return ls_hash(&pointer, sizeof pointer, hash);
}

/* Names a run by all that its steps are given besides what is the slot's for good. */
static uint64_t binding_name_run(const struct run *run, int segment)
{
    const struct ls_plan *plan = run->plan->plan;
    const struct ls_graph *graph = plan->graph;
    const struct ls_context *context = run->context;
    uint64_t hash = ls_hash(&segment, sizeof segment, 0);
    hash = binding_name_pointer(context->accumulator, hash);
    for (size_t i = 0; i < graph->input_count && !LS_MUTANT(STALE); i++)
        hash = binding_name_pointer(run->inputs[i], hash);
    const size_t syncs = LS_MUTANT(FORMER) ? 0 : graph->sync_count;
    for (size_t s = 0; s < syncs && context->partial != NULL; s++) {
        const int grouping = graph->syncs[s].grouping;
        hash = binding_name_pointer(context->partial[s], hash);
        hash = binding_name_pointer(context->merged[s], hash);
        if (grouping >= 0)
            hash = ls_hash(context->parts[grouping].part,
                           (size_t)context->parts[grouping].count * sizeof(struct ls_part), hash);
    }
    for (size_t i = 0; i < plan->step_count && run->what->factors != NULL; i++)
        if (plan->steps[i].prepared.op->kind == LS_OP_RECORD) {
            const struct ls_factor_target target = ls_factors_target(
                run->what->factors, &plan->steps[i].prepared.op->attr.record, context->micro_batch);
            hash = binding_name_pointer(target.rows, hash);
            hash = binding_name_pointer(target.largest, hash);
        }
    return hash;
}

struct steps {
    const struct run *run;
    int segment;
};

static int binding_give_steps(void *user)
{
    const struct steps *steps = user;
    return binding_run_steps(steps->run, steps->segment);
}

/* Gives the steps of a segment to the stream, as a recording where that is possible. */
static int binding_run_segment(const struct run *run, int segment)
{
    struct steps steps = {run, segment};
    if (!binding_may_record(run))
        return binding_run_steps(run, segment);
    return ls_recorder_run(run->binding->recorder, run->plan->plan->device->recordings,
                           binding_name_run(run, segment), run->context->stream, binding_give_steps,
                           &steps, run->context->error);
}

/* Gives a segment to the stream of its context. */
static int binding_give_segment(const struct run *run, int segment)
{
    struct ls_staging *staging = &run->plan->bindings[run->slot].staging;
    const struct ls_graph *graph = run->plan->plan->graph;
    struct ls_context *context = run->context;
    LS_TRY(ls_staging_tell(staging, graph, context));
    LS_TRY(binding_run_segment(run, segment));
    return ls_staging_note_read(staging, context->stream, context->error);
}

/* The same, from the micro-batch's beginning on. `record`: where the host wants what was measured;
 * NULL: it does not. */
static int binding_give_to_stream(const struct ls_net_plan *plan, int slot, int segment,
                                  const struct ls_run *what, double *record, struct ls_error *error)
{
    const struct ls_binding *binding = &plan->bindings[slot];
    struct ls_staging *staging = &plan->bindings[slot].staging;
    const struct ls_graph *graph = plan->plan->graph;
    struct ls_context context = what->context;
    context.error = error;
    if (staging->device != NULL)
        context.partials = staging->record;
    context.lists = context.partials + graph->record_size;
    const struct ls_inputs inputs = {what->inputs, what->making, what->copying};
    if (segment <= 0) /* the micro-batch begins */
        LS_TRY(ls_staging_begin(staging, graph, &inputs, context.stream, error));
    const struct run run = {.plan = plan,
                            .binding = binding,
                            .slot = slot,
                            .what = what,
                            .inputs = staging->device != NULL ? staging->inputs : what->inputs,
                            .context = &context};
    LS_TRY(binding_give_segment(&run, segment));
    if (staging->device == NULL)
        return 0;
    return record != NULL
               ? ls_staging_read_record(staging, graph, record, context.stream, error)
               : ls_staging_copy_record(staging, graph, what->record, context.stream, error);
}

int ls_binding_give(const struct ls_net_plan *plan, int slot, int segment,
                    const struct ls_run *what, struct ls_error *error)
{
    return binding_give_to_stream(plan, slot, segment, what, NULL, error);
}

int ls_binding_run(const struct ls_net_plan *plan, int slot, int segment, const struct ls_run *what,
                   struct ls_error *error)
{
    int status = binding_give_to_stream(plan, slot, segment, what, what->context.partials, error);
    int left = plan->plan->device->streams->wait(what->context.stream, error);
    return status != 0 ? status : left;
}
