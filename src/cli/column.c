/* Columns of tables. See cli/column.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/column.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cli/size.h"
#include "monitor/terminal.h"

void ls_cli_put_name(const char *name, int width)
{
    int length = (int)strlen(name);
    if (length > width) {
        putchar('~');
        name += length - width + 1;
        length = width;
    }
    ls_put_clean(stdout, name); /* a definition names its layers as it likes */
    printf("%*s ", width - length, "");
}

void ls_cli_put_size(uint64_t bytes)
{
    char text[LS_CLI_SIZE_ROOM];
    printf(" %10s", ls_cli_format_size(bytes, text));
}

int ls_cli_table_width(void)
{
    return ls_terminal(stdout) ? ls_terminal_width(stdout) - 1 : INT_MAX;
}
