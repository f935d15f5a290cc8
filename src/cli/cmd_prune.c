/* lockstep prune: masks of the smallest weights.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/column.h"
#include "cli/commands.h"
#include "cli/output_file.h"
#include "cli/report.h"
#include "monitor/terminal.h"

struct values {
    const char *weights, *scope, *output;
    double sparsity;
    struct ls_cli_list layers;
};

enum { NAME = 40 };

static void defaults(void *data)
{
    struct values *values = data;
    values->sparsity = -1;
}

static double percent(int64_t part, int64_t size)
{
    return size > 0 ? 100 * (double)part / (double)size : 0;
}

static void put_parameter(void *user, const char *parameter, int64_t weights, int64_t masked)
{
    (void)user;
    ls_cli_put_name(parameter, NAME);
    printf("%12" PRId64 " weights, %12" PRId64 " masked (%.2f %%)\n", weights, masked,
           percent(masked, weights));
}

static int prune(const struct values *values, struct lockstep_error *error)
{
    struct lockstep_prune_options options;
    int64_t weights = 0, masked = 0;
    lockstep_prune_options_init(&options);
    options.sparsity = values->sparsity;
    options.layers = values->layers.items;
    options.layer_count = values->layers.count;
    options.global = values->scope != NULL && strcmp(values->scope, "global") == 0;
    options.tell = put_parameter;
    int status =
        lockstep_prune(values->weights, values->output, &options, &weights, &masked, error);
    if (status != 0)
        return status;
    printf("Wrote masks to ");
    ls_put_clean(stdout, values->output);
    printf(": %" PRId64 " of %" PRId64 " weights stay zero (%.2f %%)\n", masked, weights,
           percent(masked, weights));
    return 0;
}

static int run(const void *data)
{
    const struct values *values = data;
    if (values->weights == NULL || values->output == NULL || values->sparsity < 0)
        return ls_cli_usage_error("prune: --weights, --sparsity and -o are needed");
    if (values->scope != NULL && strcmp(values->scope, "layer") != 0 &&
        strcmp(values->scope, "global") != 0)
        return ls_cli_usage_error("--scope is layer or global, not '%s'", values->scope);
    int status = ls_cli_check_output("prune", values->output, &values->weights, 1);
    if (status != 0)
        return status;
    struct lockstep_error *error = lockstep_error_new();
    status = prune(values, error);
    if (status != 0)
        ls_cli_report(status, error);
    lockstep_error_free(error);
    return status;
}

static const struct ls_cli_option options[] = {
    LS_CLI_ROW(LS_CLI_TEXT, "weights", "FILE", struct values, weights, 0,
               "trained weights: a snapshot (of its averaged weights, if it has some),\n"
               "safetensors, caffemodel or Caffe's HDF5"),
    LS_CLI_ROW(LS_CLI_PART, "sparsity", "P", struct values, sparsity, 0,
               "the part of the weights that becomes zero, 0 to 1"),
    LS_CLI_ROW(LS_CLI_LIST, "layers", "PATTERN", struct values, layers, 0,
               "layers with such names ('conv*'); may be given several times; default:\n"
               "all. Pruned are weights, not biases or statistics"),
    LS_CLI_CHOICE("scope", "SCOPE", struct values, scope, "layer global",
                  "layer: the part of each layer's weights (the default); global: of all\n"
                  "together"),
    LS_CLI_ROW(LS_CLI_TEXT, "output", "FILE", struct values, output, 0,
               "the file of masks (safetensors; also -o)"),
    {.name = NULL}};

const struct ls_cli_command ls_cli_command_prune = {
    .name = "prune",
    .summary = "masks of the smallest weights, which stay zero in a training",
    .usage = "--weights FILE --sparsity P [OPTIONS] -o FILE",
    .notes = "The smallest magnitudes are masked; of equal ones those that come first in the file.",
    .options = options,
    .example = "lockstep prune --weights lenet_iter_10000.safetensors --sparsity 0.8 -o "
               "mask.safetensors\n"
               "lockstep train --solver solver.prototxt --set mask=mask.safetensors --weights \\\n"
               "    lenet_iter_10000.safetensors",
    .defaults = defaults,
    .run = run,
    .values_size = sizeof(struct values),
};
