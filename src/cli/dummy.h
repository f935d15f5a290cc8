/* What the commands share that can do without the data of a definition.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_DUMMY_H
#define LS_CLI_DUMMY_H

#include <stdbool.h>

#include "cli/options.h"
#include "lockstep/lockstep.h"

struct ls_cli_dummy_values {
    struct ls_cli_list inputs;
    int all;
};

#define LS_CLI_DUMMY_INPUT(type, member)                                                           \
    LS_CLI_ROW(LS_CLI_LIST, "input", "NAME=N,C,H,W", type, member.inputs, 0,                       \
               "the shape of an input, with the batch, in place of its data; may be\n"             \
               "given several times (data=10,3,224,224,label=10)")
#define LS_CLI_DUMMY_OPTIONS(type, member)                                                         \
    LS_CLI_ROW(LS_CLI_FLAG, "dummy-data", NULL, type, member.all, 0,                               \
               "random pictures and labels in place of all data"),                                 \
        LS_CLI_DUMMY_INPUT(type, member)

/* The library's options, with lines of notes to stderr; `missing`: also where data are not there.
 * False: there is nothing to replace. */
bool ls_cli_dummy_options(const struct ls_cli_dummy_values *values, bool missing,
                          struct lockstep_dummy_options *options);
/* Replaces data of a solver as the values say. */
int ls_cli_use_dummy_data(const struct ls_cli_dummy_values *values, bool missing,
                          struct lockstep_solver *solver, struct lockstep_error *error);

#endif
