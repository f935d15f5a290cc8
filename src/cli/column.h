/* Columns of tables that several commands write.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_COLUMN_H
#define LS_CLI_COLUMN_H

/* Writes a name and a space to stdout, `width` columns wide without the space; a name that is too
 * long keeps its end behind a '~', which tells it from others. */
void ls_cli_put_name(const char *name, int width);

#endif
