/* What the commands share that use a trained net: options, and loading.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_MODEL_H
#define LS_CLI_MODEL_H

#include "cli/options.h"
#include "lockstep/lockstep.h"

struct ls_cli_model_values {
    const char *model, *weights, *map, *isa, *device;
    int64_t workers, level;
    struct ls_cli_list stages;
    const char *labels, *mean, *scale; /* of commands that tell classes of pictures */
    int64_t resize;
    int oversample;
    const char *output;
};

#define LS_CLI_MEAN(type, member, when)                                                            \
    LS_CLI_ROW(LS_CLI_TEXT, "mean", "MEAN", type, member.mean, 0,                                  \
               when ": a mean picture (.binaryproto), or\n"                                        \
                    "means of channels (104,117,123); default: those of the training"),            \
        LS_CLI_ROW(LS_CLI_TEXT, "scale", "F", type, member.scale, 0,                               \
                   "the same: what pixels are multiplied by, behind the mean")
#define LS_CLI_PICTURE_OPTIONS(type, member)                                                       \
    LS_CLI_ROW(LS_CLI_TEXT, "labels", "FILE", type, member.labels, 0,                              \
               "names of the classes, one a line (synset_words.txt)"),                             \
        LS_CLI_MEAN(type, member, "for a net without data layer"),                                 \
        LS_CLI_ROW(LS_CLI_INTEGER, "resize", "N", type, member.resize, 1,                          \
                   "the same: the side that pictures get before their centre is cut out"),         \
        LS_CLI_ROW(LS_CLI_FLAG, "oversample", NULL, type, member.oversample, 0,                    \
                   "the same: the mean of ten predictions, of the corners and the\n"               \
                   "centre, and of these mirrored"),                                               \
        LS_CLI_ROW(LS_CLI_TEXT, "output", "BLOB", type, member.output, 0,                          \
                   "what is predicted, where the net ends with several blobs")

/* The rows of an option table for these values at `member` of the command's struct. */
#define LS_CLI_MODEL_OPTIONS(type, member)                                                         \
    LS_CLI_ROW(LS_CLI_TEXT, "model", "FILE", type, member.model, 0,                                \
               "the net's definition (prototxt), or a solver's"),                                  \
        LS_CLI_ROW(LS_CLI_TEXT, "weights", "FILES", type, member.weights, 0,                       \
                   "a snapshot, another safetensors file or a caffemodel; several\n"               \
                   "separated by commas"),                                                         \
        LS_CLI_MAP(type, member.map), LS_CLI_WORKER_COUNT(type, member.workers, ""),               \
        LS_CLI_ROW(LS_CLI_INTEGER, "level", "N", type, member.level, INT32_MIN,                    \
                   "the net's level, for its include and exclude rules; default: 0"),              \
        LS_CLI_ROW(LS_CLI_LIST, "stage", "NAME", type, member.stages, 0,                           \
                   "a stage for these rules; may be given several times"),                         \
        LS_CLI_ISA(type, member.isa), LS_CLI_DEVICE_ONE(type, member.device)

/* Loads the model for the command of that name. Messages go to stderr. */
int ls_cli_load_model(const char *command, const struct ls_cli_model_values *values,
                      int64_t iterations, uint64_t memory, struct lockstep_callbacks callbacks,
                      struct lockstep_model **model);

/* The number of --scale; 0: there is none. */
int ls_cli_read_scale(const char *command, const struct ls_cli_model_values *values, double *scale);

/* ls_cli_check_output() for what is read with a model. */
int ls_cli_check_model_output(const char *command, const char *output,
                              const struct ls_cli_model_values *values);

#endif
