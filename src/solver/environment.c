/* What decides the bits of a training. See solver/environment.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/environment.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "data/decoders.h"
#include "ir/layer.h"
#include "ops/devices.h"

/* Multiply-adds that all probes of a net may take together: some tenths of a second. */
#define WORK_MAX ((uint64_t)1 << 32)

static const struct ls_device_environment *environment_of(const struct ls_net *net)
{
    const struct ls_device_environment *own = net->options.device->environment;
    bool portable = own->portable;
    for (size_t p = 0; p < net->plan_count; p++)
        portable = portable && net->plans[p]->plan->graph->portable;
    return portable ? ls_device_default()->environment : own;
}

/* ---- Steps ----------------------------------------------------------------------------------- */

size_t ls_environment_layers(const struct ls_net *net, const char **names, size_t most)
{
    const struct ls_plan *plan = ls_net_first_plan(net);
    const struct ls_graph *graph = plan->graph;
    bool *library = ls_alloc(graph->layer_count + 1, sizeof *library);
    size_t count = 0;
    for (size_t s = 0; s < plan->step_count && library != NULL; s++) {
        const struct ls_kernel *kernel = plan->steps[s].prepared.kernel;
        const struct ls_layer *layer = plan->steps[s].prepared.op->layer;
        if (kernel != NULL && kernel->library && layer != NULL)
            library[layer->index] = true;
    }
    for (size_t i = 0; i < graph->layer_count && library != NULL; i++) {
        if (library[i] && count < most)
            names[count] = graph->layers[i]->name;
        count += library[i];
    }
    ls_free(library);
    return count;
}

static bool has_library(const struct ls_net *net)
{
    for (size_t p = 0; p < net->plan_count; p++) {
        const struct ls_plan *plan = net->plans[p]->plan;
        for (size_t s = 0; s < plan->step_count; s++)
            if (plan->steps[s].prepared.kernel != NULL && plan->steps[s].prepared.kernel->library)
                return true;
    }
    return false;
}

static int compare_hashes(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* Appends the probes of a plan's steps. Recomputations count as the steps that they repeat: how
 * many there are depends on memory alone. */
static int probe_plan(const struct ls_net *net, const struct ls_plan *plan, uint64_t *work,
                      uint64_t *hashes, size_t *count, struct ls_error *error)
{
    const struct ls_device_environment *device = environment_of(net);
    for (size_t s = 0; s < plan->step_count; s++) {
        const struct ls_step *step = &plan->steps[s];
        if (step->recomputed || step->prepared.kernel == NULL || device->probes == NULL ||
            !device->probes(&step->prepared))
            continue;
        /* Where samples are mixed, a step is for the whole batch. */
        const int64_t samples = plan->graph->whole ? 1 : plan->graph->samples;
        LS_TRY(device->probe(&step->prepared, samples, work, &hashes[*count], error));
        (*count)++;
    }
    return 0;
}

/* One hash of all steps that are different, in whatever order they come. */
static int probe_net(const struct ls_net *net, uint64_t *hash, struct ls_error *error)
{
    size_t most = 0, count = 0;
    uint64_t work = WORK_MAX;
    int status = 0;
    for (size_t p = 0; p < net->plan_count; p++)
        most += net->plans[p]->plan->step_count;
    uint64_t *hashes = ls_alloc(most + 1, sizeof *hashes);
    if (hashes == NULL)
        return ls_fail_memory(error, "the numeric environment");
    for (size_t p = 0; p < net->plan_count && status == 0; p++)
        status = probe_plan(net, net->plans[p]->plan, &work, hashes, &count, error);
    if (status == 0 && count > 1)
        qsort(hashes, count, sizeof *hashes, compare_hashes);
    *hash = 0;
    for (size_t i = 0; i < count; i++)
        if (i == 0 || hashes[i] != hashes[i - 1])
            *hash = ls_hash(&hashes[i], sizeof *hashes, *hash);
    ls_free(hashes);
    return status;
}

/* Norms of the gradient, and of LAMB, are added up as parameters lie. Whether there are test nets
 * does not matter: what only they read (moving averages) will lie in Caffe's order, and what only
 * they have is left out. */
static uint64_t add_layouts(const struct ls_trainer *trainer, uint64_t hash)
{
    if (!(trainer->solver->clip_gradients > 0) && !ls_groups_use(trainer->groups, LS_UPDATE_LAMB))
        return hash;
    for (size_t i = 0; i < trainer->train_parameters; i++) {
        const struct ls_layout *layout = trainer->parameters->items[i]->layout;
        hash = ls_hash_string((layout != NULL ? layout : &ls_layout_plain)->name, hash);
    }
    return hash;
}

/* ---- Functions ------------------------------------------------------------------------------- */

/* What SLEEF's functions in double give here: normal numbers, and a learning rate by each policy.
 */
static uint64_t hash_functions(const struct ls_device *device)
{
    enum { NUMBERS = 64 };
    static const int64_t iterations[] = {1, 7, 50, 99};
    float numbers[NUMBERS];
    const struct ls_filler normal = {
        .kind = LS_FILLER_NORMAL, .second = 1, .keep = (uint64_t)1 << 32};
    device->fill(&normal, 12345, 0, numbers, NUMBERS);
    uint64_t hash = ls_hash(numbers, sizeof numbers, 0);
    for (int policy = LS_POLICY_FIXED; policy <= LS_POLICY_ONECYCLE; policy++) {
        const struct ls_schedule schedule = {.policy = (enum ls_policy)policy,
                                             .base_lr = 0.1,
                                             .gamma = 0.97,
                                             .power = 0.75,
                                             .pct_start = 0.3,
                                             .div_factor = 25,
                                             .final_div_factor = 1e4,
                                             .stepsize = 10,
                                             .max_iter = 100};
        for (size_t i = 0; i < sizeof iterations / sizeof *iterations; i++) {
            double rate = ls_schedule_rate(&schedule, iterations[i]);
            hash = ls_hash(&rate, sizeof rate, hash);
        }
    }
    return hash;
}

static bool decodes(const struct ls_net *net)
{
    for (int d = 0; d < net->dataset_count; d++)
        if (ls_dataset_encoded(net->datasets[d]))
            return true;
    return false;
}

static int add_decoders(struct ls_text *text, struct ls_error *error)
{
    uint64_t hash;
    LS_TRY(ls_decoders_fingerprint(&hash, error));
    ls_text_format(text, "decoders=%016" PRIx64 "\n", hash);
    return 0;
}

/* The layer types of plugins that a net has, by the hashes of their files. */
static void add_plugins(const struct ls_net *net, struct ls_text *text)
{
    const struct ls_graph *graph = ls_net_graph(net);
    for (size_t i = 0; i < graph->layer_count; i++) {
        const struct ls_layer_type *type = graph->layers[i]->type;
        bool told = type->plugin == NULL;
        for (size_t k = 0; k < i && !told; k++)
            told = graph->layers[k]->type == type;
        if (!told)
            ls_text_format(text, "plugin %s=%.16s\n", type->type, type->plugin->hash);
    }
}

/* ---- Making ---------------------------------------------------------------------------------- */

/* Ranks exchange parameters as they lie, also those that only test nets have. */
static uint64_t hash_all_layouts(const struct ls_trainer *trainer)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < trainer->parameters->count; i++) {
        const struct ls_parameter *parameter = trainer->parameters->items[i];
        const size_t elements = ls_parameter_elements(parameter);
        hash = ls_hash(&elements, sizeof elements, hash);
        if (parameter->layout != NULL)
            hash = ls_hash_string(parameter->layout->name, hash);
    }
    return hash;
}

static int describe(const struct ls_trainer *trainer, struct ls_text *text, struct ls_error *error)
{
    const struct ls_net *net = trainer->train;
    uint64_t hash;
    ls_text_format(text, "numerics=%d\n", LOCKSTEP_NUMERICS);
    if (has_library(net) || environment_of(net)->named)
        environment_of(net)->describe(text);
    LS_TRY(probe_net(net, &hash, error));
    ls_text_format(text, "net=%016" PRIx64 "\n", add_layouts(trainer, hash));
    if (environment_of(net)->own != NULL) {
        LS_TRY(environment_of(net)->own(&hash, error));
        ls_text_format(text, "own=%016" PRIx64 "\n", hash);
    }
    ls_text_format(text, "functions=%016" PRIx64 "\n", hash_functions(net->options.device));
    if (decodes(net))
        LS_TRY(add_decoders(text, error));
    add_plugins(net, text);
    return text->failed ? ls_fail_memory(error, "the numeric environment") : 0;
}

/* The lines of an environment in one. */
static void join(const char *environment, struct ls_text *line)
{
    while (*environment != '\0') {
        size_t length = strcspn(environment, "\n");
        if (line->length > 0)
            ls_text_add(line, ", ");
        ls_text_add_bytes(line, environment, length);
        environment += length + (environment[length] == '\n');
    }
}

int ls_environment_add(struct ls_text *history, int64_t iteration, const char *environment,
                       struct ls_error *error)
{
    struct ls_text line = {0};
    join(environment, &line);
    ls_text_format(history, "%" PRId64 " %s\n", iteration, line.data != NULL ? line.data : "");
    bool failed = history->failed || line.failed;
    ls_text_free(&line);
    return failed ? ls_fail_memory(error, "the history of a training") : 0;
}

int ls_environment_make(struct ls_trainer *trainer, struct ls_error *error)
{
    struct ls_text text = {0}, history = {0};
    int status = describe(trainer, &text, error);
    if (status == 0)
        status = ls_environment_add(&history, 0, text.data, error);
    if (status != 0) {
        ls_text_free(&text);
        ls_text_free(&history);
        return status;
    }
    trainer->numerics.environment = text.data;
    trainer->numerics.history = history.data;
    return 0;
}

int ls_environment_for_ranks(const struct ls_trainer *trainer, struct ls_text *text,
                             struct ls_error *error)
{
    bool pictures = decodes(trainer->train);
    if (!has_library(trainer->train)) /* else the instruction set is named */
        ls_text_format(text, "layouts of parameters=%016" PRIx64 "\n", hash_all_layouts(trainer));
    ls_text_add(text, trainer->numerics.environment);
    for (size_t i = 0; i < trainer->test_count; i++) {
        const struct ls_net *net = trainer->tests[i].net;
        uint64_t hash;
        if (has_library(net) && !has_library(trainer->train))
            environment_of(net)->describe(text);
        LS_TRY(probe_net(net, &hash, error));
        ls_text_format(text, "test net #%zu: %016" PRIx64 "\n", i, hash);
        if (decodes(net) && !pictures) {
            pictures = true;
            LS_TRY(add_decoders(text, error));
        }
    }
    return text->failed ? ls_fail_memory(error, "the numeric environment") : 0;
}
