/* Plans in memory: pointers for every step, and walking down the list.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "base/memory.h"
#include "engine/net.h"
#include "engine/store.h"

/* Where a value of a plan lies for one worker; NULL for inputs, which change. */
static void *locate(const struct ls_plan *plan, const struct ls_store *store,
                    const struct ls_value *value, unsigned char *arena)
{
    if (value == NULL)
        return NULL;
    const struct ls_value *root = value;
    while (root->same_memory != NULL)
        root = root->same_memory;
    switch (root->storage) {
    case LS_STORE_ARENA:
        return plan->offset[root->index] == SIZE_MAX ? NULL : arena + plan->offset[root->index];
    case LS_STORE_PARAMETER:
        if (plan->view != NULL && plan->view[root->index] >= 0)
            return store->view_memory[plan->view[root->index]];
        return store->slots[root->parameter->index].weights;
    default:
        return NULL;
    }
}

static int bind_step(const struct ls_plan *plan, const struct ls_step *step,
                     const struct ls_store *store, struct ls_binding *binding, size_t position,
                     void **local, struct ls_error *error)
{
    const struct ls_op *op = step->prepared.op;
    void **in = binding->pointers + position, **out = in + op->inputs;
    for (int i = 0; i < op->inputs; i++)
        in[i] = locate(plan, store, op->input[i], binding->arena);
    for (int i = 0; i < op->outputs; i++)
        out[i] = locate(plan, store, op->output[i], binding->arena);
    if (step->prepared.kernel->bind == NULL)
        return 0;
    void *scratch = binding->arena + step->scratch_offset;
    return step->prepared.kernel->bind(&step->prepared, in, out, scratch, local, error);
}

static int bind_plan(struct ls_net_plan *plan, const struct ls_store *store,
                     struct ls_binding *binding, struct ls_error *error)
{
    const struct ls_plan *what = plan->plan;
    binding->pointers = ls_alloc(plan->pointer_count + 1, sizeof *binding->pointers);
    binding->local = ls_alloc(what->step_count + 1, sizeof *binding->local);
    if (binding->pointers == NULL || binding->local == NULL)
        return ls_fail_memory(error, "a worker");
    size_t position = 0;
    for (size_t i = 0; i < what->step_count; i++) {
        const struct ls_op *op = what->steps[i].prepared.op;
        LS_TRY(
            bind_step(what, &what->steps[i], store, binding, position, &binding->local[i], error));
        position += (size_t)(op->inputs + op->outputs);
    }
    return 0;
}

int ls_net_bind(struct ls_net *net, const struct ls_store *store, void *const *arenas, int workers,
                struct ls_error *error)
{
    net->workers = workers;
    for (size_t p = 0; p < net->plan_count; p++) {
        struct ls_net_plan *plan = &net->plans[p];
        if (plan->bindings != NULL)
            continue;
        plan->pointer_count = 0;
        for (size_t i = 0; i < plan->plan->step_count; i++) {
            const struct ls_op *op = plan->plan->steps[i].prepared.op;
            plan->pointer_count += (size_t)(op->inputs + op->outputs);
        }
        plan->bindings = ls_alloc((size_t)workers, sizeof *plan->bindings);
        if (plan->bindings == NULL)
            return ls_fail_memory(error, "workers");
        for (int w = 0; w < workers; w++) {
            plan->bindings[w].arena = arenas[w];
            LS_TRY(bind_plan(plan, store, &plan->bindings[w], error));
        }
    }
    return 0;
}

static void unbind_plan(struct ls_net_plan *plan, int workers)
{
    for (int w = 0; w < workers && plan->bindings != NULL; w++) {
        struct ls_binding *binding = &plan->bindings[w];
        for (size_t i = 0; i < plan->plan->step_count && binding->local != NULL; i++) {
            const struct ls_prepared *prepared = &plan->plan->steps[i].prepared;
            if (binding->local[i] != NULL && prepared->kernel->unbind != NULL)
                prepared->kernel->unbind(prepared, binding->local[i]);
        }
        ls_free(binding->pointers);
        ls_free(binding->local);
    }
    ls_free(plan->bindings);
    plan->bindings = NULL;
}

void ls_net_close(struct ls_net *net)
{
    if (net == NULL)
        return;
    for (size_t i = 0; i < net->plan_count; i++) {
        unbind_plan(&net->plans[i], net->workers);
        ls_plan_free(net->plans[i].plan);
    }
    for (int i = 0; i < net->dataset_count; i++)
        ls_dataset_close(net->datasets[i]);
    ls_free(net->datasets);
    ls_free(net->data_layers);
    ls_free(net->shapes);
    ls_free(net->inputs);
    ls_free(net->plans);
    ls_free(net);
}

/* The root of a value that comes from outside, else NULL. */
static const struct ls_value *input_root(const struct ls_value *value)
{
    while (value != NULL && value->same_memory != NULL)
        value = value->same_memory;
    return value != NULL && value->storage == LS_STORE_INPUT ? value : NULL;
}

bool ls_net_reads_before(const struct ls_net *net, int input)
{
    const struct ls_plan *plan = net->plans[0].plan;
    for (size_t i = 0; i < plan->step_count; i++) {
        const struct ls_op *op = plan->steps[i].prepared.op;
        for (int j = 0; plan->steps[i].before_pass && j < op->inputs; j++) {
            const struct ls_value *root = input_root(op->input[j]);
            if (root != NULL && root->input == input)
                return true;
        }
    }
    return false;
}

void ls_net_run(const struct ls_net_plan *plan, int worker, float *const *inputs,
                const struct ls_context *context, bool before)
{
    const struct ls_plan *what = plan->plan;
    const struct ls_binding *binding = &plan->bindings[worker];
    void **pointers = binding->pointers;
    for (size_t i = 0; i < what->step_count; i++) {
        const struct ls_step *step = &what->steps[i];
        const struct ls_op *op = step->prepared.op;
        void **in = pointers, **out = in + op->inputs;
        pointers = out + op->outputs;
        if (before ? !step->before_pass : !step->in_pass)
            continue;
        for (int j = 0; j < op->inputs + op->outputs; j++) { /* outputs: views of the data */
            bool is_input = j < op->inputs;
            const struct ls_value *root =
                input_root(is_input ? op->input[j] : op->output[j - op->inputs]);
            if (root != NULL)
                in[j] = inputs[root->input];
        }
        step->prepared.kernel->run(&step->prepared, binding->local[i], in, out,
                                   binding->arena + step->scratch_offset, context);
    }
}
