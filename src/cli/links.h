/* The names of Caffe's programs, which this one answers to where it is called by one of them (a
 * link), or has one as its first argument. The install target makes a link of each name.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_LINKS_H
#define LS_CLI_LINKS_H

#include "cli/options.h"

struct ls_cli_alias {
    const char *name;
    /* The command behind it; or, where that is NULL, a summary, the text of its help and a function
     * that takes the arguments behind the name. */
    const struct ls_cli_command *command;
    const char *summary, *help;
    int (*run)(int count, char **arguments);
};

/* Ending with a NULL name. */
extern const struct ls_cli_alias ls_cli_links[];

/* The one that a path leads to by its last part, or NULL. */
const struct ls_cli_alias *ls_cli_find_link(const char *path);

#endif
