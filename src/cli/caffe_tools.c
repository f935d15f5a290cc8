/* Caffe's tools. See cli/caffe_tools.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/caffe_tools.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/caffe.h"
#include "cli/report.h"
#include "lockstep/lockstep.h"
#include "monitor/monitor.h"
#include "monitor/progress.h"

/* Flags of Caffe's library for logs, which change nothing: messages go to stderr. */
struct log_values {
    int to_stderr, also_to_stderr;
};
#define LOG_OPTIONS(type, member)                                                                  \
    LS_CLI_ROW(LS_CLI_FLAG, "logtostderr", NULL, type, member.to_stderr, 0,                        \
               "as always: messages go to stderr"),                                                \
        LS_CLI_ROW(LS_CLI_FLAG, "alsologtostderr", NULL, type, member.also_to_stderr, 0,           \
                   "the same")

enum { BACKEND_ROOM = 32 };

/* "lmdb" as the library writes it. */
static const char *upper(const char *name, char buffer[BACKEND_ROOM])
{
    size_t i = 0;
    for (; name[i] != '\0' && i + 1 < BACKEND_ROOM; i++)
        buffer[i] = (char)toupper((unsigned char)name[i]);
    buffer[i] = '\0';
    return buffer;
}

/* Databases are written as LMDB. */
static int check_written_backend(const char *backend)
{
    if (backend == NULL || strcmp(backend, "lmdb") == 0)
        return 0;
    return ls_cli_usage_error(
        "--backend %s: databases are written as lmdb. hint: leave it out, and "
        "write backend: LMDB in data_param",
        backend);
}

/* ---- convert_imageset ------------------------------------------------------------------------ */

struct convert_values {
    struct ls_cli_list arguments; /* root, list, database */
    const char *backend, *encode_type;
    int64_t height, width, seed;
    int gray, shuffle, check_size, encoded;
    struct log_values log;
};

static int convert(const void *data)
{
    const struct convert_values *values = data;
    const char *root = values->arguments.items[0], *database = values->arguments.items[2];
    int status = check_written_backend(values->backend);
    if (status != 0)
        return status;
    struct lockstep_source_options options;
    lockstep_source_options_init(&options);
    options.backend = "IMAGES";
    options.source = &values->arguments.items[1];
    options.source_count = 1;
    options.root_folder = strcmp(root, "/") != 0 && root[0] != '\0' ? root : NULL;
    options.resize_height = (int)values->height;
    options.resize_width = (int)values->width;
    options.no_antialias = 1;
    options.gray = values->gray;
    options.shuffle = values->shuffle;
    options.seed = values->seed;
    options.encoded = values->encoded || values->encode_type != NULL;
    options.encode_type = values->encode_type;
    options.any_size = !values->check_size;
    struct ls_progress progress;
    ls_progress_init(&progress, stderr, NULL);
    options.callbacks = (struct lockstep_callbacks){&progress, ls_progress_event, NULL};
    struct lockstep_error *error = lockstep_error_new();
    int64_t records = 0;
    status = lockstep_convert(&options, database, &records, error);
    ls_progress_clear(&progress);
    if (status != 0)
        ls_cli_report(status, error);
    else
        fprintf(stderr, "Processed %" PRId64 " files.\n", records);
    lockstep_error_free(error);
    return status;
}

static void convert_defaults(void *data)
{
    struct convert_values *values = data;
    values->seed = 1;
}

static const struct ls_cli_option convert_options[] = {
    LS_CLI_ROW(LS_CLI_FLAG, "gray", NULL, struct convert_values, gray, 0,
               "pictures get one channel"),
    LS_CLI_ROW(LS_CLI_FLAG, "shuffle", NULL, struct convert_values, shuffle, 0,
               "in a random order, the same for the same seed"),
    LS_CLI_ROW(LS_CLI_INTEGER, "seed", "N", struct convert_values, seed, 0,
               "of this order; default: 1"),
    LS_CLI_ROW(LS_CLI_TEXT, "backend", "NAME", struct convert_values, backend, 0, "lmdb"),
    LS_CLI_ROW(LS_CLI_INTEGER, "resize-width", "N", struct convert_values, width, 0,
               "resize pictures to this width; 0: as they are"),
    LS_CLI_ROW(LS_CLI_INTEGER, "resize-height", "N", struct convert_values, height, 0,
               "and to this height"),
    LS_CLI_ROW(LS_CLI_FLAG, "check-size", NULL, struct convert_values, check_size, 0,
               "refuse records that differ in size"),
    LS_CLI_ROW(LS_CLI_FLAG, "encoded", NULL, struct convert_values, encoded, 0,
               "records hold picture files"),
    LS_CLI_CHOICE("encode-type", "TYPE", struct convert_values, encode_type, "jpg png",
                  "of which type: jpg or png"),
    LOG_OPTIONS(struct convert_values, log),
    {.name = NULL}};

const struct ls_cli_command ls_cli_convert_imageset = {
    .name = "convert_imageset",
    .summary = "writes the pictures of a list file into a database",
    .usage = "[FLAGS] ROOTFOLDER/ LISTFILE DB_NAME",
    .options = convert_options,
    .arguments = offsetof(struct convert_values, arguments),
    .arguments_min = 3,
    .arguments_max = 3,
    .arguments_name = "ROOTFOLDER/, LISTFILE and DB_NAME",
    .example = "convert_imageset --resize_height=256 --resize_width=256 --shuffle \\\n"
               "    pictures/ train.txt train_lmdb",
    .defaults = convert_defaults,
    .run = convert,
    .values_size = sizeof(struct convert_values),
};

/* ---- compute_image_mean ---------------------------------------------------------------------- */

struct mean_values {
    struct ls_cli_list arguments; /* database, output */
    const char *backend;
    struct log_values log;
};

enum { CHANNELS_MAX = 16 };

static int mean(const void *data)
{
    const struct mean_values *values = data;
    char backend[BACKEND_ROOM];
    double means[CHANNELS_MAX];
    int channels = 0;
    struct lockstep_source_options options;
    lockstep_source_options_init(&options);
    options.backend = upper(values->backend != NULL ? values->backend : "lmdb", backend);
    options.source = values->arguments.items;
    options.source_count = 1;
    struct ls_progress progress;
    ls_progress_init(&progress, stderr, NULL);
    options.callbacks = (struct lockstep_callbacks){&progress, ls_progress_event, NULL};
    struct lockstep_error *error = lockstep_error_new();
    const char *output = values->arguments.count > 1 ? values->arguments.items[1] : NULL;
    int status = lockstep_mean(&options, output, means, &channels, error);
    ls_progress_clear(&progress);
    if (status == 0 && output != NULL)
        fprintf(stderr, "Write to %s\n", output);
    if (status == 0)
        fprintf(stderr, "Number of channels: %d\n", channels);
    for (int c = 0; status == 0 && c < channels && c < CHANNELS_MAX; c++)
        fprintf(stderr, "mean_value channel [%d]: %.6g\n", c, means[c]);
    if (status != 0)
        ls_cli_report(status, error);
    lockstep_error_free(error);
    return status;
}

static const struct ls_cli_option mean_options[] = {LS_CLI_ROW(LS_CLI_TEXT, "backend", "NAME",
                                                               struct mean_values, backend, 0,
                                                               "the database's; default: lmdb"),
                                                    LOG_OPTIONS(struct mean_values, log),
                                                    {.name = NULL}};

const struct ls_cli_command ls_cli_compute_image_mean = {
    .name = "compute_image_mean",
    .summary = "computes the mean picture of a database",
    .usage = "[FLAGS] INPUT_DB [OUTPUT_FILE]",
    .options = mean_options,
    .arguments = offsetof(struct mean_values, arguments),
    .arguments_min = 1,
    .arguments_max = 2,
    .arguments_name = "INPUT_DB",
    .example = "compute_image_mean train_lmdb mean.binaryproto",
    .run = mean,
    .values_size = sizeof(struct mean_values),
};

/* ---- extract_features ------------------------------------------------------------------------ */

struct extract_values {
    struct ls_cli_list arguments; /* weights, net, blobs, databases, batches, kind, device */
    int64_t workers;
    struct log_values log;
};

enum { WEIGHTS, NET, BLOBS, DATABASES, BATCHES, KIND, NAME_ROOM = 512 };

/* The next word of a list with commas; false: there is none, or it is too long. */
static bool next_name(const char **list, char name[NAME_ROOM])
{
    size_t length = strcspn(*list, ",");
    if (length == 0 || length >= NAME_ROOM)
        return false;
    memcpy(name, *list, length);
    name[length] = '\0';
    *list += length + ((*list)[length] == ',');
    return true;
}

/* Without batches it only finds out whether the net has the blob. */
static int extract(const struct extract_values *values, const char *blob, const char *database,
                   int64_t batches)
{
    struct lockstep_model *model = NULL;
    struct lockstep_model_options options;
    struct ls_progress progress;
    int64_t records = 0;
    lockstep_model_options_init(&options);
    ls_progress_init(&progress, stderr, NULL);
    options.workers = (int)values->workers;
    options.output = blob;
    options.callbacks = (struct lockstep_callbacks){&progress, ls_progress_event, NULL};
    struct lockstep_error *error = lockstep_error_new();
    int status = lockstep_model_load(values->arguments.items[NET], values->arguments.items[WEIGHTS],
                                     &options, &model, error);
    if (status == 0 && batches > 0)
        status = lockstep_model_extract(model, batches, database, &records, error);
    ls_progress_clear(&progress);
    if (status != 0)
        ls_cli_report(status, error);
    else if (batches > 0)
        fprintf(stderr, "Extracted features of %" PRId64 " query images for feature blob %s\n",
                records, blob);
    lockstep_model_free(model);
    lockstep_error_free(error);
    return status;
}

/* Nothing is written before all names are there. */
static int check_names(const char *blobs, const char *databases)
{
    char blob[NAME_ROOM], database[NAME_ROOM];
    do {
        const bool both = next_name(&blobs, blob) && next_name(&databases, database);
        if (!both || (*blobs == '\0') != (*databases == '\0'))
            return ls_cli_usage_error("extract_features: the number of blob names and dataset "
                                      "names must be equal");
        if (access(database, F_OK) == 0)
            return ls_cli_usage_error("%s: exists already; a database is never written over "
                                      "something else. hint: remove it, or take another name",
                                      database);
    } while (*blobs != '\0');
    return 0;
}

static int extract_each(const struct extract_values *values, int64_t batches)
{
    const char *blobs = values->arguments.items[BLOBS];
    const char *databases = values->arguments.items[DATABASES];
    char blob[NAME_ROOM], database[NAME_ROOM];
    int status = 0;
    while (status == 0 && next_name(&blobs, blob) && next_name(&databases, database))
        status = extract(values, blob, database, batches);
    return status;
}

static int extract_all(const void *data)
{
    const struct extract_values *values = data;
    const char *const *arguments = values->arguments.items;
    char *end;
    const long long batches = strtoll(arguments[BATCHES], &end, 10);
    if (*end != '\0' || batches < 1 || batches > INT32_MAX)
        return ls_cli_usage_error("extract_features: '%s' is no number of batches",
                                  arguments[BATCHES]);
    int status = check_written_backend(arguments[KIND]);
    if (status == 0)
        status = check_names(arguments[BLOBS], arguments[DATABASES]);
    if (status == 0 &&
        (strchr(arguments[BLOBS], ',') != NULL || strchr(arguments[DATABASES], ',') != NULL))
        status = extract_each(values, 0); /* all blobs are there before one is written */
    return status == 0 ? extract_each(values, batches) : status;
}

static const struct ls_cli_option extract_options[] = {
    LS_CLI_WORKER_COUNT(struct extract_values, workers, ""),
    LOG_OPTIONS(struct extract_values, log),
    {.name = NULL}};

const struct ls_cli_command ls_cli_extract_features = {
    .name = "extract_features",
    .summary = "writes what blobs of a net have for its data into databases",
    .usage = "WEIGHTS NET BLOB,... DB,... NUM_BATCHES lmdb [CPU|GPU] [DEVICE_ID=N]",
    .notes = "What the device is said to be changes nothing: the CPU computes.",
    .options = extract_options,
    .arguments = offsetof(struct extract_values, arguments),
    .arguments_min = 6,
    .arguments_max = 8,
    .arguments_name = "WEIGHTS, NET, BLOBS, DBS, NUM_BATCHES and the kind of database",
    .example = "extract_features caffenet.caffemodel val.prototxt fc7 features_lmdb 10 lmdb",
    .run = extract_all,
    .values_size = sizeof(struct extract_values),
};

/* ---- upgrade_... ----------------------------------------------------------------------------- */

struct upgrade_values {
    struct ls_cli_list arguments; /* from, to */
    struct log_values log;
};

static int report_upgrade(const struct upgrade_values *values, const char *what, int status,
                          struct lockstep_error *error)
{
    if (status != 0)
        ls_cli_report(status, error);
    else
        fprintf(stderr, "Wrote upgraded %s to %s\n", what, values->arguments.items[1]);
    lockstep_error_free(error);
    return status;
}

static int upgrade_text(const void *data)
{
    const struct upgrade_values *values = data;
    struct lockstep_error *error = lockstep_error_new();
    int status =
        lockstep_upgrade_net(values->arguments.items[0], values->arguments.items[1], 0, error);
    return report_upgrade(values, "NetParameter text proto", status, error);
}

static int upgrade_binary(const void *data)
{
    const struct upgrade_values *values = data;
    struct lockstep_error *error = lockstep_error_new();
    int status =
        lockstep_upgrade_net(values->arguments.items[0], values->arguments.items[1], 1, error);
    return report_upgrade(values, "NetParameter binary proto", status, error);
}

static int upgrade_solver(const void *data)
{
    const struct upgrade_values *values = data;
    struct lockstep_error *error = lockstep_error_new();
    int status =
        lockstep_upgrade_solver(values->arguments.items[0], values->arguments.items[1], error);
    return report_upgrade(values, "SolverParameter text proto", status, error);
}

static const struct ls_cli_option upgrade_options[] = {LOG_OPTIONS(struct upgrade_values, log),
                                                       {.name = NULL}};

#define UPGRADE(tool, text, function, file)                                                        \
    {                                                                                              \
        .name = tool, .summary = text, .usage = "INPUT OUTPUT", .options = upgrade_options,        \
        .arguments = offsetof(struct upgrade_values, arguments), .arguments_min = 2,               \
        .arguments_max = 2, .arguments_name = "INPUT and OUTPUT",                                  \
        .example = tool " old." file " new." file, .run = function,                                \
        .values_size = sizeof(struct upgrade_values)                                               \
    }

const struct ls_cli_command ls_cli_upgrade_net_proto_text =
    UPGRADE("upgrade_net_proto_text", "writes a net's definition in the newest form", upgrade_text,
            "prototxt");
const struct ls_cli_command ls_cli_upgrade_net_proto_binary =
    UPGRADE("upgrade_net_proto_binary", "writes a caffemodel in the newest form", upgrade_binary,
            "caffemodel");
const struct ls_cli_command ls_cli_upgrade_solver_proto_text =
    UPGRADE("upgrade_solver_proto_text", "writes a solver's definition in the newest form",
            upgrade_solver, "prototxt");
