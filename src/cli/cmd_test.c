/* lockstep test: tests a trained net on its own test data.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>

#include "cli/commands.h"
#include "cli/confusion_table.h"
#include "cli/model.h"
#include "cli/report.h"
#include "monitor/json.h"
#include "monitor/monitor.h"
#include "monitor/outputs.h"

struct values {
    struct ls_cli_model_values model;
    int64_t iterations;
    uint64_t memory;
    int confusion, per_class, json;
};

/* What a test has found. */
struct found {
    const struct lockstep_output *outputs;
    size_t count;
    int64_t samples;
    const struct lockstep_confusion *confusion; /* NULL: not asked for */
};

static void put_text(const struct values *values, const struct found *found)
{
    ls_put_outputs(stdout, "Test net", found->outputs, found->count);
    printf("Tested %" PRId64 " samples.\n", found->samples);
    if (found->confusion != NULL && values->per_class)
        ls_cli_put_class_figures(stdout, found->confusion);
    if (found->confusion != NULL && values->confusion)
        ls_cli_put_confusion(stdout, found->confusion);
}

static void put_json(const struct found *found)
{
    struct ls_json_writer json = {stdout, false};
    ls_json_open(&json, NULL, '{');
    ls_json_integer(&json, "samples", found->samples);
    ls_json_open(&json, "outputs", '[');
    for (size_t i = 0; i < found->count; i++) {
        const struct lockstep_output *output = &found->outputs[i];
        ls_json_open(&json, NULL, '{');
        ls_json_string(&json, "name", output->name);
        ls_json_open(&json, "values", '[');
        for (size_t v = 0; v < output->count; v++)
            ls_json_number(&json, NULL, output->values[v]);
        ls_json_close(&json, ']');
        ls_json_number(&json, "loss_weight", output->loss_weight);
        if (output->classes != NULL) {
            ls_json_open(&json, "classes", '[');
            for (size_t v = 0; v < output->count; v++)
                ls_json_string(&json, NULL, output->classes[v]);
            ls_json_close(&json, ']');
        }
        ls_json_close(&json, '}');
    }
    ls_json_close(&json, ']');
    if (found->confusion != NULL)
        ls_cli_put_confusion_json(&json, found->confusion);
    ls_json_close(&json, '}');
    putchar('\n');
}

static int run(const void *data)
{
    const struct values *values = data;
    struct ls_monitor monitor;
    struct lockstep_model *model;
    struct found found = {.count = 0};
    ls_monitor_init(&monitor, values->json ? stderr : stdout, NULL, NULL);
    int status =
        ls_cli_load_model("test", &values->model, values->iterations, values->memory,
                          (struct lockstep_callbacks){&monitor, ls_monitor_event, NULL}, &model);
    if (status != 0)
        return status;
    struct lockstep_error *error = lockstep_error_new();
    status = lockstep_model_test(model, &found.outputs, &found.count, &found.samples, error);
    if (status == 0 && (values->confusion || values->per_class))
        status = lockstep_model_confusion(model, found.samples, 0, &found.confusion, error);
    ls_monitor_clear(&monitor);
    if (found.count > 0 && values->json) /* even where one of them is not finite */
        put_json(&found);
    else if (found.count > 0)
        put_text(values, &found);
    if (status != 0)
        ls_cli_report(status, error);
    lockstep_error_free(error);
    lockstep_model_free(model);
    return status;
}

static const struct ls_cli_option options[] = {
    LS_CLI_MODEL_OPTIONS(struct values, model),
    LS_CLI_ROW(LS_CLI_INTEGER, "iterations", "N", struct values, iterations, 1,
               "test N batches; default: every sample once"),
    LS_CLI_ROW(LS_CLI_SIZE, "memory", "SIZE", struct values, memory, 0,
               "limit on memory (600MiB, 1.5GiB): needing more is an error"),
    LS_CLI_ROW(LS_CLI_TEXT, "labels", "FILE", struct values, model.labels, 0,
               "names of the classes, one a line, in place of those of the weights"),
    LS_CLI_ROW(LS_CLI_FLAG, "per-class", NULL, struct values, per_class, 0,
               "precision, recall, F1 and count of each class, and the intersection\n"
               "over union where every position of a picture is classified"),
    LS_CLI_ROW(LS_CLI_FLAG, "confusion", NULL, struct values, confusion, 0,
               "how often each class was taken for which; the net computes the\n"
               "samples a second time for this and --per-class"),
    LS_CLI_ROW(LS_CLI_FLAG, "json", NULL, struct values, json, 0,
               "one JSON object instead; with --confusion or --per-class all of both"),
    {.name = NULL}};

const struct ls_cli_command ls_cli_command_test = {
    .name = "test",
    .summary = "tests a trained net on its test data",
    .usage = "--model FILE --weights FILE [OPTIONS]",
    .options = options,
    .example = "lockstep test --model lenet.prototxt --weights lenet_iter_10000.safetensors",
    .run = run,
    .values_size = sizeof(struct values),
};
