/* lockstep import: an ONNX model as a net that can be trained.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/report.h"

struct values {
    const char *output, *loss;
    int solver, tie;
    struct ls_cli_list shapes, files;
};

static void tell(void *user, const char *line)
{
    (void)user;
    printf("Wrote %s\n", line);
}

static void note(void *user, const char *sentence)
{
    (void)user;
    ls_cli_error(0, "note: %s", sentence);
}

static int run(const void *data)
{
    const struct values *values = data;
    struct lockstep_import_options options;
    struct lockstep_error *error = lockstep_error_new();
    lockstep_import_options_init(&options);
    options.shapes = values->shapes.items;
    options.shape_count = values->shapes.count;
    options.loss = values->loss;
    options.solver = values->solver;
    options.tie = values->tie;
    options.note = note;
    int status = lockstep_import_onnx(values->files.items[0],
                                      values->output != NULL ? values->output : "imported",
                                      &options, tell, NULL, error);
    if (status != 0)
        ls_cli_report(status, error);
    lockstep_error_free(error);
    return status;
}

static const struct ls_cli_option options[] = {
    LS_CLI_ROW(LS_CLI_TEXT, "output", "PREFIX", struct values, output, 0,
               "what the files that are written begin with; default: imported"),
    LS_CLI_ROW(LS_CLI_TEXT, "loss", "NAME", struct values, loss, 0,
               "also write PREFIX_train_test.prototxt, with this loss behind the model's\n"
               "first output: softmax or euclidean"),
    LS_CLI_ROW(LS_CLI_FLAG, "solver", NULL, struct values, solver, 0,
               "also write PREFIX_solver.prototxt, to begin with; needs --loss"),
    LS_CLI_ROW(LS_CLI_FLAG, "tie", NULL, struct values, tie, 0,
               "layers that begin with the same weights of the model keep them in common"),
    LS_CLI_ROW(LS_CLI_LIST, "shape", "NAME=N,C,H,W", struct values, shapes, 0,
               "the shape of an input, where the model leaves it open; may be given\n"
               "several times"),
    {.name = NULL}};

const struct ls_cli_command ls_cli_command_import = {
    .name = "import",
    .summary = "an ONNX model as a net with weights, to be trained",
    .notes = "Writes PREFIX_deploy.prototxt and PREFIX.safetensors. Operators that have no\n"
             "equivalent are named, all of them at once, and nothing is written (docs/onnx.md).",
    .usage = "[OPTIONS] MODEL",
    .options = options,
    .arguments = offsetof(struct values, files),
    .arguments_min = 1,
    .arguments_max = 1,
    .arguments_name = "MODEL (.onnx)",
    .example = "lockstep import -o resnet18 --loss softmax --solver resnet18.onnx\n"
               "lockstep train --solver resnet18_solver.prototxt --weights resnet18.safetensors",
    .run = run,
    .values_size = sizeof(struct values),
};
