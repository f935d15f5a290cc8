/* Loading a trained net.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/model.h"

#include "cli/cards.h"
#include "cli/output_file.h"
#include "cli/report.h"
#include "cli/size.h"

int ls_cli_read_scale(const char *command, const struct ls_cli_model_values *values, double *scale)
{
    *scale = 0;
    if (values->scale == NULL)
        return 0;
    const char *end = ls_cli_parse_number(values->scale, scale);
    if (end != NULL && *end == '\0' && *scale > 0)
        return 0;
    return ls_cli_usage_error("%s: --scale '%s' is no number above 0", command, values->scale);
}

int ls_cli_load_model(const char *command, const struct ls_cli_model_values *values,
                      int64_t iterations, uint64_t memory, struct lockstep_callbacks callbacks,
                      struct lockstep_model **model)
{
    *model = NULL;
    if (values->model == NULL)
        return ls_cli_usage_error("%s: --model FILE is missing", command);
    if (values->weights == NULL)
        return ls_cli_usage_error("%s: --weights FILE is missing", command);
    struct lockstep_model_options options;
    lockstep_model_options_init(&options);
    options.workers = (int)values->workers;
    options.isa = values->isa;
    options.device = values->device;
    ls_cli_note_cards(values->device);
    options.level = (int)values->level;
    options.stages = values->stages.items;
    options.stage_count = values->stages.count;
    options.iterations = iterations;
    options.memory = memory;
    options.callbacks = callbacks;
    if (callbacks.event == NULL)
        options.callbacks.event = ls_cli_put_event;
    options.labels = values->labels;
    options.mean = values->mean;
    options.resize = (int)values->resize;
    options.oversample = values->oversample;
    options.output = values->output;
    options.map = values->map;
    int status = ls_cli_read_scale(command, values, &options.scale);
    if (status != 0)
        return status;
    struct lockstep_error *error = lockstep_error_new();
    status = lockstep_model_load(values->model, values->weights, &options, model, error);
    if (status != 0)
        ls_cli_report(status, error);
    lockstep_error_free(error);
    return status;
}

int ls_cli_check_model_output(const char *command, const char *output,
                              const struct ls_cli_model_values *values)
{
    const char *read[] = {values->model, values->weights, values->labels, values->mean,
                          values->map};
    return ls_cli_check_output(command, output, read, sizeof read / sizeof *read);
}
