/* The names of Caffe's programs. See cli/links.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/links.h"

#include <string.h>

#include "cli/caffe.h"

const struct ls_cli_alias ls_cli_links[] = {
    {"caffe", "train, test, time and device_query with Caffe's flags and log lines", ls_caffe_main,
     1},
    {"caffe.bin", "the same", ls_caffe_main, 1},
    {NULL, NULL, NULL, 0}};

const struct ls_cli_alias *ls_cli_find_link(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    for (const struct ls_cli_alias *link = ls_cli_links; link->name != NULL; link++)
        if (strcmp(link->name, name) == 0)
            return link;
    return NULL;
}
