/* lockstep export: a trained net as a model that other programs run.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/dummy.h"
#include "cli/model.h"
#include "cli/report.h"
#include "cli/size.h"
#include "monitor/terminal.h"

struct values {
    struct ls_cli_model_values model;
    struct ls_cli_dummy_values dummy;
    const char *file, *batch;
    int64_t opset;
    int onnx, external, preprocessing;
};

/* "dynamic", or a number of samples. */
static bool read_batch(const char *text, int64_t *batch)
{
    double number;
    *batch = 0;
    if (text == NULL || strcmp(text, "dynamic") == 0)
        return true;
    const char *end = ls_cli_parse_number(text, &number);
    if (end == NULL || *end != '\0' || !(number >= 1 && number <= INT32_MAX) ||
        number != (double)(int64_t)number)
        return false;
    *batch = (int64_t)number;
    return true;
}

static int load(const struct values *values, double scale, struct lockstep_model **model,
                struct lockstep_error *error)
{
    struct lockstep_model_options options;
    struct lockstep_dummy_options dummy;
    lockstep_model_options_init(&options);
    if (ls_cli_dummy_options(&values->dummy, true, &dummy))
        options.dummy = &dummy;
    options.level = (int)values->model.level;
    options.stages = values->model.stages.items;
    options.stage_count = values->model.stages.count;
    options.output = values->model.output;
    options.map = values->model.map;
    options.labels = values->model.labels;
    options.mean = values->model.mean;
    options.scale = scale;
    return lockstep_model_load(values->model.model, values->model.weights, &options, model, error);
}

static int export_model(const struct values *values, int64_t batch, double scale,
                        struct lockstep_error *error)
{
    struct lockstep_model *model = NULL;
    struct lockstep_onnx_options options;
    lockstep_onnx_options_init(&options);
    options.opset = (int)values->opset;
    options.batch = batch;
    options.external = values->external;
    options.preprocessing = values->preprocessing;
    options.tell = ls_cli_tell;
    int status = load(values, scale, &model, error);
    if (status == 0)
        status = lockstep_model_export_onnx(model, values->file, &options, error);
    lockstep_model_free(model);
    return status;
}

static int run(const void *data)
{
    const struct values *values = data;
    int64_t batch;
    double scale;
    if (!values->onnx)
        return ls_cli_usage_error("export: --onnx is missing, the format to write");
    if (values->model.model == NULL || values->model.weights == NULL || values->file == NULL)
        return ls_cli_usage_error("export: --model, --weights and -o are needed");
    if (!read_batch(values->batch, &batch))
        return ls_cli_usage_error("--batch is a number of samples, or dynamic, not '%s'",
                                  values->batch);
    if ((values->model.mean != NULL || values->model.scale != NULL) && !values->preprocessing)
        return ls_cli_usage_error("export: --mean and --scale go with --with-preprocessing");
    int status = ls_cli_read_scale("export", &values->model, &scale);
    if (status != 0)
        return status;
    status = ls_cli_check_model_output("export", values->file, &values->model);
    if (status != 0)
        return status;
    struct lockstep_error *error = lockstep_error_new();
    status = export_model(values, batch, scale, error);
    if (status != 0)
        ls_cli_report(status, error);
    lockstep_error_free(error);
    if (status != 0)
        return status;
    printf("Wrote the model to ");
    ls_put_clean(stdout, values->file);
    printf("\n");
    return 0;
}

static const struct ls_cli_option options[] = {
    LS_CLI_ROW(LS_CLI_FLAG, "onnx", NULL, struct values, onnx, 0,
               "the format: ONNX, which most programs that run models read"),
    LS_CLI_ROW(LS_CLI_TEXT, "model", "FILE", struct values, model.model, 0,
               "the net's definition (prototxt), or a solver's"),
    LS_CLI_ROW(LS_CLI_TEXT, "weights", "FILES", struct values, model.weights, 0,
               "a snapshot, another safetensors file or a caffemodel; several\n"
               "separated by commas"),
    LS_CLI_ROW(LS_CLI_TEXT, "output", "FILE", struct values, file, 0,
               "the model to write (also -o)"),
    LS_CLI_ROW(LS_CLI_TEXT, "blob", "BLOB", struct values, model.output, 0,
               "the blob that is the model's output; default: what the net ends with"),
    LS_CLI_ROW(LS_CLI_INTEGER, "opset", "N", struct values, opset, 13,
               "the version of ONNX's operators, 13 to 17; default: 17"),
    LS_CLI_ROW(LS_CLI_TEXT, "batch", "N", struct values, batch, 0,
               "samples of a run of the model, or dynamic: any number (the default)"),
    LS_CLI_ROW(LS_CLI_FLAG, "with-preprocessing", NULL, struct values, preprocessing, 0,
               "mean and scale of the pictures are part of the model, which takes\n"
               "pixels then; else its metadata have them"),
    LS_CLI_MEAN(struct values, model, "with --with-preprocessing"),
    LS_CLI_ROW(LS_CLI_FLAG, "external", NULL, struct values, external, 0,
               "the weights in a file beside it, FILE.data; larger models than 2 GiB\n"
               "have them there anyway"),
    LS_CLI_ROW(LS_CLI_TEXT, "labels", "FILE", struct values, model.labels, 0,
               "names of the classes, one a line, for the metadata"),
    LS_CLI_MAP(struct values, model.map),
    LS_CLI_ROW(LS_CLI_INTEGER, "level", "N", struct values, model.level, INT32_MIN,
               "the net's level, for its include and exclude rules; default: 0"),
    LS_CLI_ROW(LS_CLI_LIST, "stage", "NAME", struct values, model.stages, 0,
               "a stage for these rules; may be given several times"),
    LS_CLI_DUMMY_INPUT(struct values, dummy),
    {.name = NULL}};

const struct ls_cli_command ls_cli_command_export = {
    .name = "export",
    .summary = "writes a trained net as a model of ONNX",
    .usage = "--onnx --model FILE --weights FILES [OPTIONS] -o FILE",
    .notes = "docs/onnx.md lists what becomes of each layer. The data of the net are not needed.",
    .options = options,
    .example = "lockstep export --onnx --model deploy.prototxt \\\n"
               "    --weights lenet_iter_10000.safetensors -o lenet.onnx",
    .run = run,
    .values_size = sizeof(struct values),
};
