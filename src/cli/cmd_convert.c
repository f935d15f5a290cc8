/* lockstep convert: any source of data to an LMDB database of Caffe's records.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>

#include "cli/commands.h"
#include "cli/report.h"
#include "cli/source.h"
#include "monitor/monitor.h"
#include "monitor/progress.h"

struct values {
    struct ls_cli_source_values source;
    int shuffle, encoded, any_size;
    const char *encode_type, *classes;
    int64_t seed;
    struct ls_cli_list output;
};

static int run(const void *data)
{
    const struct values *values = data;
    const char *path = values->output.items[0];
    struct lockstep_source_options options;
    int status = ls_cli_source_options("convert", &values->source, &options);
    if (status != 0)
        return status;
    struct ls_monitor monitor;
    struct ls_progress progress;
    ls_monitor_init(&monitor, stdout, NULL, NULL);
    ls_progress_init(&progress, stdout, NULL);
    options.shuffle = values->shuffle;
    options.seed = values->seed;
    options.encoded = values->encoded || values->encode_type != NULL;
    options.encode_type = values->encode_type;
    options.any_size = values->any_size;
    options.classes = values->classes;
    options.callbacks = (struct lockstep_callbacks){&progress, ls_progress_event, NULL};
    struct lockstep_error *error = lockstep_error_new();
    int64_t records;
    status = lockstep_convert(&options, path, &records, error);
    ls_progress_clear(&progress);
    if (status == 0)
        ls_monitor_say(&monitor, "Wrote %" PRId64 " records to %s", records, path);
    else
        ls_cli_report(status, error);
    lockstep_error_free(error);
    return status;
}

static void defaults(void *data)
{
    struct values *values = data;
    values->seed = 1;
}

static const struct ls_cli_option options[] = {
    LS_CLI_SOURCE_OPTIONS(struct values, source),
    LS_CLI_ROW(LS_CLI_FLAG, "shuffle", NULL, struct values, shuffle, 0, "in a random order"),
    LS_CLI_ROW(LS_CLI_INTEGER, "seed", "N", struct values, seed, 0, "of this order; default: 1"),
    LS_CLI_ROW(LS_CLI_FLAG, "encoded", NULL, struct values, encoded, 0,
               "records hold picture files: those of the source, as they are, or\n"
               "made of its pictures"),
    LS_CLI_CHOICE("encode-type", "TYPE", struct values, encode_type, "jpg png",
                  "the same, as jpg (quality 95) or png; default: as the files are"),
    LS_CLI_ROW(LS_CLI_FLAG, "any-size", NULL, struct values, any_size, 0,
               "records may differ in size"),
    LS_CLI_ROW(LS_CLI_TEXT, "classes", "FILE", struct values, classes, 0,
               "number classes as there, by their names: a snapshot, the folder that was\n"
               "trained on, its database, or a text with a name on each line"),
    {.name = NULL}};

const struct ls_cli_command ls_cli_command_convert = {
    .name = "convert",
    .summary = "writes the records of any source into an LMDB database",
    .usage = "--backend KIND --source PATH [OPTIONS] OUTPUT",
    .options = options,
    .arguments = offsetof(struct values, output),
    .arguments_min = 1,
    .arguments_max = 1,
    .arguments_name = "OUTPUT, the database's folder,",
    .example = "lockstep convert --backend IMAGES --source photos --resize-height 64 \\\n"
               "    --resize-width 64 --shuffle photos_lmdb",
    .defaults = defaults,
    .run = run,
    .values_size = sizeof(struct values),
};
