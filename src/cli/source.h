/* What the commands share that read a source of data: its options.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_SOURCE_H
#define LS_CLI_SOURCE_H

#include "cli/options.h"
#include "lockstep/lockstep.h"

struct ls_cli_source_values {
    const char *backend, *label_source, *root_folder, *split;
    struct ls_cli_list source;
    int64_t resize_height, resize_width;
    int gray, no_antialias;
};

#define LS_CLI_SOURCE_OPTIONS(type, member)                                                        \
    LS_CLI_CHOICE("backend", "KIND", type, member.backend, "SOURCES",                              \
                  "the kind of source; 'lockstep help sources' lists them"),                       \
        LS_CLI_ROW(LS_CLI_LIST, "source", "PATH", type, member.source, 0,                          \
                   "a file or folder; may be given several times where the kind allows it"),       \
        LS_CLI_ROW(LS_CLI_TEXT, "label-source", "FILE", type, member.label_source, 0,              \
                   "the file of labels, where they are apart"),                                    \
        LS_CLI_ROW(LS_CLI_TEXT, "root-folder", "DIR", type, member.root_folder, 0,                 \
                   "with a list file: what to put before each path"),                              \
        LS_CLI_ROW(LS_CLI_INTEGER, "resize-height", "N", type, member.resize_height, 1,            \
                   "resize pictures to this height"),                                              \
        LS_CLI_ROW(LS_CLI_INTEGER, "resize-width", "N", type, member.resize_width, 1,              \
                   "resize pictures to this width"),                                               \
        LS_CLI_ROW(LS_CLI_FLAG, "no-antialias", NULL, type, member.no_antialias, 0,                \
                   "the same, as OpenCV and so Caffe do it; else every pixel counts"),             \
        LS_CLI_ROW(LS_CLI_FLAG, "gray", NULL, type, member.gray, 0, "pictures get one channel"),   \
        LS_CLI_ROW(LS_CLI_TEXT, "split", "PART", type, member.split, 0,                            \
                   "a part of the records, as data_param.split: \"train:0.9\"")

/* Fills the library's options from these values. LOCKSTEP_USAGE after a message to stderr if
 * something is missing. */
int ls_cli_source_options(const char *command, const struct ls_cli_source_values *values,
                          struct lockstep_source_options *options);

#endif
