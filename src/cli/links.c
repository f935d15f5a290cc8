/* The names of Caffe's programs. See cli/links.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/links.h"

#include <string.h>

#include "cli/caffe.h"
#include "cli/caffe_tools.h"

static const char caffe[] = "train, test, time and device_query with Caffe's flags and log lines";

/* One a line: cmake/library.cmake reads the names. */
const struct ls_cli_alias ls_cli_links[] = {
    {"caffe", NULL, caffe, ls_caffe_usage, ls_caffe_main},
    {"caffe.bin", NULL, "the same as caffe", ls_caffe_usage, ls_caffe_main},
    {"convert_imageset", &ls_cli_convert_imageset, NULL, NULL, NULL},
    {"compute_image_mean", &ls_cli_compute_image_mean, NULL, NULL, NULL},
    {"extract_features", &ls_cli_extract_features, NULL, NULL, NULL},
    {"upgrade_net_proto_text", &ls_cli_upgrade_net_proto_text, NULL, NULL, NULL},
    {"upgrade_net_proto_binary", &ls_cli_upgrade_net_proto_binary, NULL, NULL, NULL},
    {"upgrade_solver_proto_text", &ls_cli_upgrade_solver_proto_text, NULL, NULL, NULL},
    {"device_query", &ls_cli_device_query, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL}};

const struct ls_cli_alias *ls_cli_find_link(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    for (const struct ls_cli_alias *link = ls_cli_links; link->name != NULL; link++)
        if (strcmp(link->name, name) == 0)
            return link;
    return NULL;
}
