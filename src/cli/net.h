/* What the commands share that look at a net's layers: options, and loading.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_NET_H
#define LS_CLI_NET_H

#include <stdio.h>

#include "cli/dummy.h"
#include "cli/options.h"
#include "lockstep/lockstep.h"

struct ls_cli_net_values {
    const char *model, *phase;
    int64_t level;
    struct ls_cli_list stages;
    struct ls_cli_dummy_values dummy;
};

#define LS_CLI_NET_OPTIONS(type, member)                                                           \
    LS_CLI_ROW(LS_CLI_TEXT, "model", "FILE", type, member.model, 0,                                \
               "the net's definition (prototxt), or a solver's; its data may be missing"),         \
        LS_CLI_CHOICE("phase", "PHASE", type, member.phase, "TRAIN TEST",                          \
                      "TRAIN or TEST; default: TEST, if it has data, else TRAIN"),                 \
        LS_CLI_ROW(LS_CLI_INTEGER, "level", "N", type, member.level, INT32_MIN,                    \
                   "the net's level, for its include and exclude rules; default: 0"),              \
        LS_CLI_ROW(LS_CLI_LIST, "stage", "NAME", type, member.stages, 0,                           \
                   "a stage for these rules; may be given several times"),                         \
        LS_CLI_DUMMY_INPUT(type, member.dummy)

/* Loads the net for the command of that name. Messages go to stderr. */
int ls_cli_load_net(const char *command, const struct ls_cli_net_values *values,
                    struct lockstep_net **net);

enum { LS_CLI_SHAPE_ROOM = 192 };
/* "64 x 3 x 28 x 28"; "" for one number. The buffer is returned. */
const char *ls_cli_format_shape(const struct lockstep_blob *blob, char buffer[LS_CLI_SHAPE_ROOM]);
/* How many numbers a blob has. */
double ls_cli_blob_size(const struct lockstep_blob *blob);

#endif
