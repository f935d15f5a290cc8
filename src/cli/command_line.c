/* Command lines that a user can copy.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/command_line.h"

#include <stdbool.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/common.h"

void ls_cli_put_word(FILE *line, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789_-+=./:,@%";
    const char *quote = word[0] == '\0' || word[strspn(word, plain)] != '\0' ? "'" : "";
    fprintf(line, " %s", quote);
    for (; *word != '\0'; word++)
        fprintf(line, *word == '\'' ? "'\\''" : "%c", *word);
    fputs(quote, line);
}

void ls_cli_put_option(FILE *line, const char *option, const char *value)
{
    if (value == NULL)
        return;
    ls_cli_put_word(line, option);
    ls_cli_put_word(line, value);
}

void ls_cli_put_device(FILE *line, const char *device)
{
    static const char cards[] = "cuda:";
    const bool gpu = device != NULL && strncmp(device, cards, sizeof cards - 1) == 0;
    ls_cli_put_option(line, gpu ? "--gpu" : "--device", gpu ? device + sizeof cards - 1 : device);
}

void ls_cli_put_each(FILE *line, const char *option, const struct ls_cli_list *values)
{
    for (size_t i = 0; i < values->count; i++)
        ls_cli_put_option(line, option, values->items[i]);
}

void ls_cli_put_command(FILE *line, const char *command)
{
    ls_cli_put_word(line, ls_cli_program());
    ls_cli_put_word(line, command);
    for (size_t i = 0; ls_cli_plugin(i) != NULL; i++)
        ls_cli_put_option(line, "--plugin", ls_cli_plugin(i));
}
