/* A plan as one JSON object. See cli/plan_table.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/plan_json.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/plan_table.h"
#include "monitor/json.h"

static void put_layer(struct ls_json_writer *json, const struct lockstep_plan_layer *layer)
{
    ls_json_open(json, NULL, '{');
    ls_json_string(json, "name", layer->name);
    ls_json_string(json, "type", layer->type);
    ls_json_bytes(json, "output", layer->output);
    ls_json_bytes(json, "kept", layer->kept);
    ls_json_bytes(json, "scratch", layer->scratch);
    ls_json_bytes(json, "parameters", layer->parameters);
    ls_json_bytes(json, "views", layer->views);
    ls_json_bytes(json, "gradients", layer->gradients);
    ls_json_bytes(json, "optimizer", layer->state);
    ls_json_bytes(json, "learned", layer->learned);
    ls_json_bytes(json, "fixed", layer->fixed);
    ls_json_bytes(json, "masked", layer->masked);
    ls_json_close(json, '}');
}

static void put_step(struct ls_json_writer *json, const struct lockstep_plan_step *step,
                     bool onednn)
{
    ls_json_open(json, NULL, '{');
    ls_json_string(json, "layer", step->layer);
    ls_json_string(json, "op", step->op);
    ls_json_string(json, "implementation", step->implementation);
    ls_json_string(json, "layout", step->layout);
    ls_json_bytes(json, "scratch", step->scratch);
    ls_json_integer(json, "backward", step->backward);
    ls_json_integer(json, "slow", step->slow);
    ls_json_integer(json, "recomputed", step->recomputed);
    ls_json_integer(json, "sync", step->sync);
    ls_json_integer(json, "gathered", step->gathered);
    ls_json_integer(json, "chain", (int64_t)step->chain);
    ls_json_integer(json, "channels", step->channels);
    ls_json_integer(json, "onednn", onednn && step->library);
    ls_json_close(json, '}');
}

/* onednn: what libraries compute is oneDNN's. */
static void put_net(struct ls_json_writer *json, const struct lockstep_plan_net *net,
                    const struct ls_cli_largest *largest, bool onednn)
{
    ls_json_open(json, NULL, '{');
    ls_json_string(json, "name", net->name);
    ls_json_integer(json, "training", net->training);
    ls_json_integer(json, "batch", net->batch);
    ls_json_integer(json, "micro_batch", net->micro_batch);
    ls_json_integer(json, "micro_batches", net->micro_batches);
    ls_json_string(json, "mixes_samples", net->mixer);
    ls_json_integer(json, "segments", (int64_t)net->segments);
    ls_json_bytes(json, "arena", net->arena);
    ls_json_bytes(json, "stashed", net->stashed);
    ls_json_number(json, "recomputed_part", net->recomputed_part);
    if (largest != NULL) {
        ls_json_integer(json, "largest_batch", largest->batch);
        ls_json_integer(json, "largest_batch_bounded", largest->bounded);
    }
    ls_json_integer(json, "computing_layers", (int64_t)net->computing_layers);
    ls_json_integer(json, "bf16_layers", (int64_t)net->bf16_layers);
    ls_json_integer(json, "any_processor", net->any_processor);
    ls_json_integer(json, "depends_on_onednn", onednn && net->library_layer_count > 0);
    ls_json_open(json, "depends_through", '[');
    for (size_t i = 0; i < net->library_layer_count; i++)
        ls_json_string(json, NULL, net->library_layers[i]);
    ls_json_close(json, ']');
    ls_json_integer(json, "depends_on_library", net->library_layer_count > 0);
    ls_json_open(json, "layers", '[');
    for (size_t i = 0; i < net->layer_count; i++)
        put_layer(json, &net->layers[i]);
    ls_json_close(json, ']');
    ls_json_open(json, "steps", '[');
    for (size_t i = 0; i < net->step_count; i++)
        put_step(json, &net->steps[i], onednn);
    ls_json_close(json, ']');
    ls_json_close(json, '}');
}

static void put_memory(struct ls_json_writer *json, const struct lockstep_plan *plan)
{
    const struct lockstep_plan_memory *memory = lockstep_plan_memory(plan);
    ls_json_open(json, "memory", '{');
    ls_json_integer(json, "workers", memory->workers);
    ls_json_integer(json, "stashes", memory->stashes);
    ls_json_bytes(json, "arena", memory->arena);
    ls_json_bytes(json, "stashed", memory->stashed);
    ls_json_bytes(json, "parameters", memory->parameters);
    ls_json_bytes(json, "views", memory->views);
    ls_json_bytes(json, "gradients", memory->gradients);
    ls_json_bytes(json, "optimizer", memory->state);
    ls_json_bytes(json, "averages", memory->averages);
    ls_json_bytes(json, "statistics", memory->statistics);
    ls_json_bytes(json, "sample_states", memory->sample_states);
    ls_json_bytes(json, "data", memory->data);
    ls_json_bytes(json, "device_data", lockstep_plan_device_data(plan));
    ls_json_bytes(json, "staging", lockstep_plan_staging(plan));
    ls_json_bytes(json, "host", lockstep_plan_host(plan));
    ls_json_bytes(json, "snapshot", memory->snapshot);
    ls_json_bytes(json, "code", memory->code);
    ls_json_bytes(json, "runtime", memory->runtime);
    ls_json_bytes(json, "total", memory->total);
    ls_json_bytes(json, "cache", memory->cache);
    ls_json_bytes(json, "limit", memory->limit);
    ls_json_close(json, '}');
}

static void put_parameters(struct ls_json_writer *json, const struct lockstep_plan *plan)
{
    ls_json_open(json, "parameters", '[');
    for (size_t i = 0; i < lockstep_plan_parameter_count(plan); i++) {
        const struct lockstep_plan_parameter *parameter = lockstep_plan_parameter(plan, i);
        ls_json_open(json, NULL, '{');
        ls_json_string(json, "name", parameter->name);
        ls_json_string(json, "group", parameter->group);
        ls_json_string(json, "type", parameter->type);
        ls_json_number(json, "rate", parameter->rate);
        ls_json_number(json, "weight_decay", parameter->decay);
        ls_json_close(json, '}');
    }
    ls_json_close(json, ']');
}

void ls_cli_put_plan_json(const struct lockstep_plan *plan, const struct ls_cli_largest *largest)
{
    struct ls_json_writer json = {.stream = stdout};
    const char *library = lockstep_plan_library(plan);
    const bool onednn = library != NULL && strstr(library, "oneDNN") != NULL;
    ls_json_open(&json, NULL, '{');
    put_memory(&json, plan);
    ls_json_open(&json, "nets", '[');
    for (size_t i = 0; i < lockstep_plan_net_count(plan); i++)
        put_net(&json, lockstep_plan_net(plan, i), largest != NULL ? &largest[i] : NULL, onednn);
    ls_json_close(&json, ']');
    put_parameters(&json, plan);
    ls_json_close(&json, '}');
    putchar('\n');
}
