/* lockstep convert-weights: weights from one format to another.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/dummy.h"
#include "cli/output_file.h"
#include "cli/report.h"

struct values {
    const char *model, *map;
    int64_t level;
    struct ls_cli_list stages, files;
    struct ls_cli_dummy_values dummy;
};

/* The net says which blob each tensor is, and what shape it has. Data that are not there are not
 * needed: dummy ones stand in for them. */
static int convert_with_net(const struct values *values, struct lockstep_error *error)
{
    struct lockstep_model_options options;
    struct lockstep_dummy_options dummy;
    lockstep_model_options_init(&options);
    if (ls_cli_dummy_options(&values->dummy, true, &dummy))
        options.dummy = &dummy;
    options.level = (int)values->level;
    options.map = values->map;
    options.stages = values->stages.items;
    options.stage_count = values->stages.count;
    struct lockstep_model *model;
    int status =
        lockstep_model_load(values->model, values->files.items[0], &options, &model, error);
    if (status == 0)
        status = lockstep_model_save(model, values->files.items[1], error);
    lockstep_model_free(model);
    return status;
}

static int run(const void *data)
{
    const struct values *values = data;
    const char *const *files = values->files.items;
    int status;
    /* What else a snapshot holds, the state of its training, would be gone. */
    if (ls_cli_same_file(files[0], files[1]))
        return ls_cli_usage_error(
            "convert-weights: INPUT and OUTPUT are the same file, '%s'. hint: "
            "give the output another name",
            files[0]);
    struct lockstep_error *error = lockstep_error_new();
    if (values->model != NULL)
        status = convert_with_net(values, error);
    else if (values->map != NULL)
        status = lockstep_convert_weight_names(files[0], files[1], values->map, ls_cli_tell, NULL,
                                               error);
    else
        status = lockstep_convert_weights(files[0], files[1], ls_cli_tell, NULL, error);
    if (status != 0)
        ls_cli_report(status, error);
    lockstep_error_free(error);
    if (status == 0)
        printf("Wrote the weights to %s\n", files[1]);
    return status;
}

static const struct ls_cli_option options[] = {
    LS_CLI_ROW(LS_CLI_TEXT, "model", "FILE", struct values, model, 0,
               "the net's definition (prototxt): only this net's layers, with their\n"
               "types and the names of their blobs"),
    LS_CLI_MAP(struct values, map),
    LS_CLI_ROW(LS_CLI_INTEGER, "level", "N", struct values, level, INT32_MIN,
               "the net's level, for its include and exclude rules; default: 0"),
    LS_CLI_ROW(LS_CLI_LIST, "stage", "NAME", struct values, stages, 0,
               "a stage for these rules; may be given several times"),
    LS_CLI_DUMMY_INPUT(struct values, dummy),
    {.name = NULL}};

const struct ls_cli_command ls_cli_command_convert_weights = {
    .name = "convert-weights",
    .summary = "weights between caffemodel, HDF5, safetensors and other names",
    .usage = "[OPTIONS] INPUT OUTPUT",
    .options = options,
    .arguments = offsetof(struct values, files),
    .arguments_min = 2,
    .arguments_max = 2,
    .arguments_name = "INPUT and OUTPUT (.caffemodel, .h5 or .safetensors)",
    .example = "lockstep convert-weights lenet_iter_10000.caffemodel lenet.safetensors\n"
               "lockstep convert-weights --map gpt2 model.safetensors gpt2.safetensors",
    .run = run,
    .values_size = sizeof(struct values),
};
