/* Columns of tables. See cli/column.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/column.h"

#include <stdio.h>
#include <string.h>

void ls_cli_put_name(const char *name, int width)
{
    int length = (int)strlen(name);
    if (length > width)
        printf("~%s ", name + (length - width + 1));
    else
        printf("%-*s ", width, name);
}
