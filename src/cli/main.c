/* The program's entry.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/commands.h"

int main(int argc, char **argv)
{
    return ls_cli_main(argc, argv);
}
