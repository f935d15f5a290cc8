/* Events as JSON.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "monitor/log.h"

#include "monitor/json.h"

static const char *const names[] = {
    [LOCKSTEP_EVENT_START] = "start",       [LOCKSTEP_EVENT_WARNING] = "warning",
    [LOCKSTEP_EVENT_NOTICE] = "notice",     [LOCKSTEP_EVENT_PROGRESS] = "progress",
    [LOCKSTEP_EVENT_DISPLAY] = "display",   [LOCKSTEP_EVENT_TEST] = "test",
    [LOCKSTEP_EVENT_SNAPSHOT] = "snapshot", [LOCKSTEP_EVENT_END] = "end",
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

void ls_log_event(FILE *log, const struct lockstep_event *event, double elapsed)
{
    struct ls_json_writer json = {log, false};
    bool training = event->kind == LOCKSTEP_EVENT_PROGRESS || event->kind == LOCKSTEP_EVENT_DISPLAY;
    bool test = event->kind == LOCKSTEP_EVENT_TEST;
    ls_json_open(&json, NULL, '{');
    ls_json_string(&json, "event", names[event->kind]);
    ls_json_integer(&json, "iteration", event->iteration);
    ls_json_number(&json, "elapsed", elapsed);
    if (event->text != NULL)
        ls_json_string(&json, "text", event->text);
    if (training)
        put_training(&json, event);
    if (test) {
        ls_json_number(&json, "epoch", event->epoch);
        ls_json_integer(&json, "test_net", event->test_net);
        ls_json_integer(&json, "samples", event->samples);
        if (event->data_loss != 0)
            ls_json_number(&json, "data_loss", event->data_loss);
    }
    if (test || event->kind == LOCKSTEP_EVENT_DISPLAY)
        put_outputs(&json, event);
    ls_json_close(&json, '}');
    putc('\n', log);
}
