/* Events as JSON.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "monitor/log.h"

#include <inttypes.h>
#include <math.h>
#include <time.h>

#include "monitor/json.h"

static const char *const names[] = {
    [LOCKSTEP_EVENT_START] = "start",       [LOCKSTEP_EVENT_WARNING] = "warning",
    [LOCKSTEP_EVENT_NOTICE] = "notice",     [LOCKSTEP_EVENT_PROGRESS] = "progress",
    [LOCKSTEP_EVENT_DISPLAY] = "display",   [LOCKSTEP_EVENT_TEST] = "test",
    [LOCKSTEP_EVENT_SNAPSHOT] = "snapshot", [LOCKSTEP_EVENT_END] = "end",
    [LOCKSTEP_EVENT_RUN] = "run",           [LOCKSTEP_EVENT_AUDIT] = "audit",
    [LOCKSTEP_EVENT_HASH] = "hash",         [LOCKSTEP_EVENT_STATISTICS] = "statistics",
    [LOCKSTEP_EVENT_DETAIL] = "detail",
};

static void put_outputs(struct ls_json_writer *json, const struct lockstep_event *event)
{
    ls_json_open(json, "outputs", '[');
    for (size_t i = 0; i < event->output_count; i++) {
        const struct lockstep_output *output = &event->outputs[i];
        ls_json_open(json, NULL, '{');
        ls_json_string(json, "name", output->name);
        ls_json_open(json, "values", '[');
        for (size_t v = 0; v < output->count; v++)
            ls_json_number(json, NULL, output->values[v]);
        ls_json_close(json, ']');
        ls_json_number(json, "loss_weight", output->loss_weight);
        if (output->classes != NULL) {
            ls_json_open(json, "classes", '[');
            for (size_t v = 0; v < output->count; v++)
                ls_json_string(json, NULL, output->classes[v]);
            ls_json_close(json, ']');
        }
        if (output->better != 0)
            ls_json_string(json, "better", output->better > 0 ? "max" : "min");
        ls_json_close(json, '}');
    }
    ls_json_close(json, ']');
}

static void put_training(struct ls_json_writer *json, const struct lockstep_event *event)
{
    ls_json_integer(json, "iteration_end", event->iteration_end);
    ls_json_number(json, "epoch", event->epoch);
    ls_json_number(json, "loss", event->loss);
    ls_json_number(json, "data_loss", event->data_loss);
    ls_json_number(json, "penalty", event->penalty);
    ls_json_number(json, "learning_rate", event->learning_rate);
    ls_json_number(json, "samples_per_second", event->samples_per_second);
    ls_json_number(json, "seconds", event->seconds);
}

static void put_run(struct ls_json_writer *json, const struct lockstep_run *run)
{
    ls_json_string(json, "version", run->version);
    ls_json_string(json, "environment", run->environment);
    if (run->net != NULL)
        ls_json_string(json, "net", run->net);
    ls_json_string(json, "solver", run->solver);
    ls_json_string(json, "lr_policy", run->lr_policy);
    ls_json_number(json, "base_lr", run->base_lr);
    ls_json_bytes(json, "seed", run->seed);
    ls_json_integer(json, "iteration_end", run->iteration_end);
    ls_json_integer(json, "max_iter", run->max_iter);
    ls_json_integer(json, "display", run->display);
    ls_json_integer(json, "test_interval", run->test_interval);
    ls_json_integer(json, "snapshot_interval", run->snapshot_interval);
    ls_json_integer(json, "batch", run->batch);
    ls_json_integer(json, "iter_size", run->iter_size);
    ls_json_integer(json, "micro_batches", run->micro_batches);
    ls_json_integer(json, "micro_batch", run->micro_batch);
    ls_json_integer(json, "samples", run->samples);
    ls_json_number(json, "iterations_per_epoch", run->iterations_per_epoch);
    ls_json_integer(json, "ranks", run->ranks);
    ls_json_integer(json, "workers", run->workers);
    ls_json_integer(json, "parameters_learned", run->learned);
    ls_json_integer(json, "parameters_fixed", run->fixed);
    ls_json_number(json, "flops_per_sample", run->flops_per_sample);
    ls_json_bytes(json, "memory", run->memory);
    ls_json_bytes(json, "memory_limit", run->memory_limit);
}

static void put_audit(struct ls_json_writer *json, const struct lockstep_audit *audit)
{
    ls_json_string(json, "wrong", audit->own ? "update" : "audit");
    ls_json_string(json, "host", audit->host);
    ls_json_integer(json, "rank", audit->rank);
    ls_json_integer(json, "worker", audit->worker);
    ls_json_integer(json, "core", audit->core);
    ls_json_integer(json, "micro_batch", audit->micro_batch);
    ls_json_integer(json, "first_sample", audit->first_sample);
    ls_json_integer(json, "last_sample", audit->last_sample);
    ls_json_string(json, "name", audit->name);
    ls_json_integer(json, "differing", audit->differing);
}

/* Numbers of 64 bits are texts: many readers of JSON keep 53 bits of a number. */
static void put_hashes(struct ls_json_writer *json, const struct lockstep_event *event)
{
    char weights[17], chain[17];
    snprintf(weights, sizeof weights, "%016" PRIx64, event->weights_hash);
    snprintf(chain, sizeof chain, "%016" PRIx64, event->chain);
    ls_json_string(json, "weights", weights);
    ls_json_string(json, "chain", chain);
    ls_json_integer(json, "chain_begin", event->chain_begin);
}

static void put_histogram(struct ls_json_writer *json, const char *key,
                          const struct lockstep_histogram *histogram)
{
    ls_json_open(json, key, '{');
    ls_json_open(json, "edges", '[');
    for (size_t i = 0; i <= histogram->count; i++)
        ls_json_number(json, NULL, histogram->edges[i]);
    ls_json_close(json, ']');
    ls_json_open(json, "counts", '[');
    for (size_t i = 0; i < histogram->count; i++)
        ls_json_bytes(json, NULL, histogram->counts[i]);
    ls_json_close(json, ']');
    ls_json_close(json, '}');
}

static void put_statistics(struct ls_json_writer *json,
                           const struct lockstep_statistics *statistics)
{
    ls_json_open(json, "parameters", '[');
    for (size_t i = 0; i < statistics->parameter_count; i++) {
        const struct lockstep_parameter_statistics *parameter = &statistics->parameters[i];
        ls_json_open(json, NULL, '{');
        ls_json_string(json, "name", parameter->name);
        ls_json_number(json, "weight_norm", parameter->weight_norm);
        ls_json_number(json, "gradient_norm", parameter->gradient_norm);
        ls_json_number(json, "update_norm", parameter->update_norm);
        put_histogram(json, "weight_histogram", &parameter->weights);
        put_histogram(json, "gradient_histogram", &parameter->gradient);
        ls_json_close(json, '}');
    }
    ls_json_close(json, ']');
    ls_json_number(json, "weight_norm", statistics->weight_norm);
    ls_json_number(json, "gradient_norm", statistics->gradient_norm);
    ls_json_number(json, "update_norm", statistics->update_norm);
}

/* In UTC, with thousandths (RFC 3339). */
static void put_time(struct ls_json_writer *json, double time)
{
    char text[40], whole[32];
    const double seconds = floor(time);
    struct tm parts;
    strftime(whole, sizeof whole, "%Y-%m-%dT%H:%M:%S",
             gmtime_r(&(time_t){(time_t)seconds}, &parts));
    snprintf(text, sizeof text, "%s.%03dZ", whole, (int)(1000 * (time - seconds)));
    ls_json_string(json, "time", text);
}

void ls_log_event(FILE *log, const struct lockstep_event *event, double time, double elapsed)
{
    struct ls_json_writer json = {log, false};
    bool training = event->kind == LOCKSTEP_EVENT_PROGRESS || event->kind == LOCKSTEP_EVENT_DISPLAY;
    bool test = event->kind == LOCKSTEP_EVENT_TEST;
    ls_json_open(&json, NULL, '{');
    ls_json_string(&json, "event", names[event->kind]);
    ls_json_integer(&json, "iteration", event->iteration);
    put_time(&json, time);
    ls_json_number(&json, "elapsed", elapsed);
    if (event->text != NULL)
        ls_json_string(&json, "text", event->text);
    if (event->run != NULL)
        put_run(&json, event->run);
    if (training)
        put_training(&json, event);
    if (event->audit != NULL)
        put_audit(&json, event->audit);
    if (event->kind == LOCKSTEP_EVENT_HASH)
        put_hashes(&json, event);
    if (event->statistics != NULL)
        put_statistics(&json, event->statistics);
    if (test) {
        ls_json_number(&json, "epoch", event->epoch);
        ls_json_integer(&json, "test_net", event->test_net);
        ls_json_integer(&json, "samples", event->samples);
        if (event->data_loss != 0) {
            ls_json_number(&json, "loss", event->loss);
            ls_json_number(&json, "data_loss", event->data_loss);
        }
    }
    if (test || event->kind == LOCKSTEP_EVENT_END)
        ls_json_integer(&json, "skipped", event->skipped);
    if (event->kind == LOCKSTEP_EVENT_END) {
        ls_json_integer(&json, "iteration_end", event->iteration_end);
        ls_json_number(&json, "loss", event->loss);
        ls_json_number(&json, "data_loss", event->data_loss);
    }
    if (test || event->kind == LOCKSTEP_EVENT_DISPLAY)
        put_outputs(&json, event);
    ls_json_close(&json, '}');
    putc('\n', log);
}
