/* Files of text and of token ids, for `lockstep init`.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_INIT_FILE_H
#define LS_CLI_INIT_FILE_H

#include "cli/init_data.h"

/* What ls_init_look does for a file that is no list of pictures. */
int ls_init_file_look(const char *path, const struct ls_init_hints *hints,
                      struct ls_init_data *data);

#endif
