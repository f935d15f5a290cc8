/* Columns of tables that several commands write.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_COLUMN_H
#define LS_CLI_COLUMN_H

#include <stdint.h>

/* Writes a name and a space to stdout, `width` columns wide without the space; a name that is too
 * long keeps its end behind a '~', which tells it from others. */
void ls_cli_put_name(const char *name, int width);
/* Writes a space and a size of memory, 10 columns wide. */
void ls_cli_put_size(uint64_t bytes);

/* Columns that a table on stdout may take: those of the terminal less one, or as many as it likes
 * where stdout is none. */
int ls_cli_table_width(void);

#endif
