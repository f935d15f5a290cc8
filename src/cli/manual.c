/* Manual pages. See cli/manual.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/manual.h"

#include <stdbool.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/common.h"
#include "lockstep/lockstep.h"

/* Text as it is: what roff would read as a command or would print as another character is escaped.
 * A line that begins with '.' or '\'' gets a mark of no width in front. */
static void put_roff(FILE *out, const char *text, size_t length)
{
    bool begins = true;
    for (const char *end = text + length; text < end; text++) {
        if (begins && *text == '.')
            fputs("\\&", out);
        begins = *text == '\n';
        switch (*text) {
        case '\\':
            fputs("\\e", out);
            break;
        case '-':
            fputs("\\-", out);
            break;
        case '\'':
            fputs("\\(aq", out);
            break;
        case '`':
            fputs("\\(ga", out);
            break;
        case '^':
            fputs("\\(ha", out);
            break;
        case '~':
            fputs("\\(ti", out);
            break;
        default:
            putc(*text, out);
        }
    }
}

static void put_text(FILE *out, const char *text)
{
    put_roff(out, text, strlen(text));
}

/* The title in capitals. `name` is that of the page, `words` what is written to start it. */
static void put_title(FILE *out, const char *name, const char *words, const char *summary)
{
    fputs(".TH ", out);
    for (const char *c = name; *c != '\0'; c++)
        fprintf(out, *c == '-' ? "\\-" : "%c", *c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
    fprintf(out, " 1 \"\" \"Lockstep %s\" \"Lockstep\"\n.SH NAME\n", lockstep_version());
    put_text(out, name);
    fputs(" \\- ", out);
    put_text(out, summary);
    fputs("\n.SH SYNOPSIS\n.B ", out);
    put_text(out, words);
    putc('\n', out);
}

static void put_example(FILE *out, const char *example)
{
    fputs(".SH EXAMPLES\n.nf\n", out);
    put_text(out, example);
    fputs("\n.fi\n", out);
}

static void put_item(FILE *out, const char *name, const char *argument, const char *text)
{
    fputs(".TP\n\\fB", out);
    put_text(out, name);
    fputs("\\fR", out);
    if (argument != NULL) {
        fputs(" \\fI", out);
        put_text(out, argument);
        fputs("\\fR", out);
    }
    putc('\n', out);
    put_text(out, text);
    putc('\n', out);
}

static void put_options(FILE *out, const struct ls_cli_option *options)
{
    for (const struct ls_cli_option *option = options; option->name != NULL; option++) {
        char name[64];
        snprintf(name, sizeof name, "--%s", option->name);
        put_item(out, name, option->argument, option->help);
    }
}

static void put_see_also(FILE *out)
{
    fputs(".SH SEE ALSO\n.BR lockstep (1)\n", out);
}

static void put_command_manual(FILE *out, const char *name, const char *words,
                               const struct ls_cli_command *command)
{
    put_title(out, name, words, command->summary);
    put_text(out, command->usage);
    putc('\n', out);
    if (command->notes != NULL) {
        fputs(".SH DESCRIPTION\n", out);
        put_text(out, command->notes);
        putc('\n', out);
    }
    fputs(".SH OPTIONS\n", out);
    put_options(out, command->options);
    put_options(out, ls_cli_common_options);
    put_item(out, "--help", NULL, "say what the command does");
    fputs(".SH EXIT STATUS\n", out);
    put_text(out, ls_cli_exit_codes);
    fputs(".\n", out);
    put_example(out, command->example);
    put_see_also(out);
}

void ls_cli_put_link_manual(FILE *out, const struct ls_cli_alias *link)
{
    if (link->command != NULL) {
        put_command_manual(out, link->name, link->name, link->command);
        return;
    }
    put_title(out, link->name, link->name, link->summary);
    fputs("\\fICOMMAND\\fR \\fIFLAGS\\fR\n.SH DESCRIPTION\n.nf\n", out);
    put_text(out, link->help);
    fputs("\n.fi\n", out);
    put_see_also(out);
}

void ls_cli_put_manual(FILE *out, const struct ls_cli_command *command)
{
    if (command != NULL) {
        char name[64], words[64];
        snprintf(name, sizeof name, "lockstep-%s", command->name);
        snprintf(words, sizeof words, "lockstep %s", command->name);
        put_command_manual(out, name, words, command);
        return;
    }
    put_title(out, "lockstep", "lockstep",
              "trains neural networks; the same bits on any number of workers");
    fputs("\\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n.SH DESCRIPTION\n"
          "Lockstep trains networks that a prototxt describes, on all cores of one machine or of\n"
          "several. What a training gives depends on definition, data and seed alone.\n"
          ".SH COMMANDS\nEach has a page of its own, as \\fBlockstep\\-train\\fR(1).\n",
          out);
    for (size_t i = 0; ls_cli_commands[i] != NULL; i++)
        put_item(out, ls_cli_commands[i]->name, NULL, ls_cli_commands[i]->summary);
    fputs(".SH OPTIONS\nEvery command takes these, before or behind its name:\n", out);
    put_options(out, ls_cli_common_options);
    fputs(".SH PROGRAMS OF CAFFE\nThese names work as commands and as links:\n", out);
    for (const struct ls_cli_alias *link = ls_cli_links; link->name != NULL; link++)
        put_item(out, link->name, NULL,
                 link->command != NULL ? link->command->summary : link->summary);
    fputs(".SH EXIT STATUS\n", out);
    put_text(out, ls_cli_exit_codes);
    fputs(".\n", out);
    put_example(out, "lockstep train --solver lenet_solver.prototxt");
}
