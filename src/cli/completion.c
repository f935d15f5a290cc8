/* What shells offer, and scripts for bash, zsh and fish. See cli/completion.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/completion.h"

#include <string.h>

#include "cli/commands.h"
#include "cli/common.h"
#include "cli/links.h"
#include "lockstep/lockstep.h"

static void add_word(struct ls_cli_offer *offer, const char *word, size_t length)
{
    size_t used = strlen(offer->words);
    if (used + length + 2 > sizeof offer->words)
        return;
    snprintf(offer->words + used, sizeof offer->words - used, "%s%.*s", used > 0 ? " " : "",
             (int)length, word);
}

/* A line of lockstep_source_help: "  NAME  what it is". */
static void add_source(void *user, const char *line)
{
    const char *name = line + strspn(line, " ");
    add_word(user, name, strcspn(name, " "));
}

static void add_commands(struct ls_cli_offer *offer)
{
    for (size_t i = 0; ls_cli_commands[i] != NULL; i++)
        add_word(offer, ls_cli_commands[i]->name, strlen(ls_cli_commands[i]->name));
}

static void add_choices(struct ls_cli_offer *offer, const char *choices)
{
    while (*choices != '\0') {
        size_t length = strcspn(choices, " ");
        if (length == 4 && memcmp(choices, "FILE", 4) == 0)
            offer->files = true;
        else if (length == 7 && memcmp(choices, "SOURCES", 7) == 0)
            lockstep_source_help(NULL, add_source, offer, NULL);
        else if (length == 8 && memcmp(choices, "COMMANDS", 8) == 0)
            add_commands(offer);
        else
            add_word(offer, choices, length);
        choices += length;
        choices += *choices == ' ';
    }
}

void ls_cli_offer_value(const struct ls_cli_option *option, struct ls_cli_offer *offer)
{
    static const char *const paths[] = {"FILE", "FILES", "PATH", "MEAN", "LOG", "SNAPSHOT"};
    *offer = (struct ls_cli_offer){.files = false};
    if (option->choices != NULL) {
        add_choices(offer, option->choices);
        return;
    }
    offer->folders = option->argument != NULL && strcmp(option->argument, "DIR") == 0;
    offer->files = strcmp(option->name, "snapshot-prefix") == 0;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        if (option->argument != NULL && strcmp(option->argument, paths[i]) == 0)
            offer->files = true;
}

void ls_cli_offer_argument(const struct ls_cli_command *command, struct ls_cli_offer *offer)
{
    *offer = (struct ls_cli_offer){.files = false};
    if (command->arguments_choices != NULL)
        add_choices(offer, command->arguments_choices);
    else
        offer->files = command->arguments_max > 0;
}

void ls_cli_first_sentence(const struct ls_cli_option *option, char *text, size_t size)
{
    const char *help = option->help;
    size_t length = 0;
    for (; help[length] != '\0' && help[length] != ';' && length + 1 < size; length++) {
        if (help[length] == '.' && (help[length + 1] == ' ' || help[length + 1] == '\n'))
            break;
        text[length] = help[length] == '\n' ? ' ' : help[length];
    }
    text[length] = '\0';
}

/* ---- bash ------------------------------------------------------------------------------------ */

/* The words that stand for a value in the case of the script that it belongs to. */
static void put_offer(FILE *out, const struct ls_cli_offer *offer)
{
    if (offer->words[0] != '\0')
        fprintf(out, " words='%s'", offer->words);
    if (offer->files || offer->folders)
        fprintf(out, " paths=%s", offer->files ? "-f" : "-d");
    if (offer->words[0] == '\0' && !offer->files && !offer->folders)
        fputs(" return", out);
    fputs(" ;;\n", out);
}

/* What may follow the options of a table. `command` is a pattern of the shell. */
static void put_values(FILE *out, const char *command, const struct ls_cli_option *options)
{
    struct ls_cli_offer offer;
    for (const struct ls_cli_option *option = options; option->name != NULL; option++) {
        if (option->kind == LS_CLI_FLAG)
            continue;
        ls_cli_offer_value(option, &offer);
        fprintf(out, "    %s:--%s)", command, option->name);
        put_offer(out, &offer);
    }
}

static void put_names(FILE *out, const struct ls_cli_option *options)
{
    for (const struct ls_cli_option *option = options; option->name != NULL; option++)
        fprintf(out, "--%s ", option->name);
}

static void put_command(FILE *out, const struct ls_cli_command *command)
{
    struct ls_cli_offer offer;
    ls_cli_offer_argument(command, &offer);
    fprintf(out, "    %s)\n        options='", command->name);
    put_names(out, command->options);
    put_names(out, ls_cli_common_options);
    fputs("--help'\n", out);
    if (offer.words[0] != '\0')
        fprintf(out, "        words='%s'\n", offer.words);
    if (offer.files)
        fputs("        paths=-f\n", out);
    fputs("        ;;\n", out);
}

static const char bash_begin[] =
    "# Completion of lockstep for bash, which 'lockstep completion bash' has written.\n"
    "_lockstep()\n"
    "{\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
    "    local command=${COMP_WORDS[1]} options='' words='' paths=''\n"
    "    COMPREPLY=()\n"
    "    # bash cuts --option=value at the '='\n"
    "    if [[ $cur == '=' ]]; then\n"
    "        cur=''\n"
    "    elif [[ $prev == '=' && COMP_CWORD -gt 2 ]]; then\n"
    "        prev=${COMP_WORDS[COMP_CWORD-2]}\n"
    "    fi\n"
    "    if ((COMP_CWORD == 1)); then\n";

static const char bash_end[] =
    "        esac\n"
    "        # Options where they are begun, or where nothing else can follow.\n"
    "        if [[ $cur == -* || -z $words$paths ]]; then\n"
    "            words=$options paths=''\n"
    "        fi\n"
    "        ;;\n"
    "    esac\n"
    "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\"\n"
    "        [[ -z $paths ]] || compgen \"$paths\" -- \"$cur\")\n"
    "    [[ -z $paths ]] || compopt -o filenames 2>/dev/null\n"
    "}\n"
    "complete -F _lockstep lockstep\n";

void ls_cli_complete_bash(FILE *out)
{
    fputs(bash_begin, out);
    fputs("        mapfile -t COMPREPLY < <(compgen -W '", out);
    for (size_t i = 0; ls_cli_commands[i] != NULL; i++)
        fprintf(out, "%s ", ls_cli_commands[i]->name);
    for (const struct ls_cli_alias *link = ls_cli_links; link->name != NULL; link++)
        fprintf(out, "%s ", link->name);
    put_names(out, ls_cli_common_options);
    fputs("--help --version' -- \"$cur\")\n        return\n    fi\n", out);
    fputs("    case $command:$prev in\n", out);
    for (size_t i = 0; ls_cli_commands[i] != NULL; i++)
        put_values(out, ls_cli_commands[i]->name, ls_cli_commands[i]->options);
    put_values(out, "*", ls_cli_common_options);
    fputs("    *)\n        case $command in\n", out);
    for (size_t i = 0; ls_cli_commands[i] != NULL; i++)
        put_command(out, ls_cli_commands[i]);
    fputs("        *) paths=-f ;;\n", out);
    fputs(bash_end, out);
}

/* Text inside of single quotes; characters of `special` get a backslash. */
static void put_quoted(FILE *out, const char *text, const char *special)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            fputs("'\\''", out);
        else if (strchr(special, *text) != NULL)
            fprintf(out, "\\%c", *text);
        else
            putc(*text, out);
    }
}

/* ---- zsh ------------------------------------------------------------------------------------- */

/* The action of _arguments behind the last ':'. */
static void put_action(FILE *out, const struct ls_cli_offer *offer)
{
    if (offer->words[0] != '\0' && offer->files)
        fprintf(out, "{compadd %s; _files}", offer->words);
    else if (offer->words[0] != '\0')
        fprintf(out, "(%s)", offer->words);
    else if (offer->folders)
        fputs("_files -/", out);
    else
        fputs(offer->files ? "_files" : " ", out);
}

static void put_zsh_option(FILE *out, const struct ls_cli_option *option)
{
    struct ls_cli_offer offer;
    char help[256];
    bool flag = option->kind == LS_CLI_FLAG;
    ls_cli_first_sentence(option, help, sizeof help);
    fprintf(out, "            '%s--%s%s[", option->kind == LS_CLI_LIST ? "*" : "", option->name,
            flag ? "" : "=");
    put_quoted(out, help, "[]\\");
    putc(']', out);
    if (!flag) {
        ls_cli_offer_value(option, &offer);
        putc(':', out);
        put_quoted(out, option->argument, ":\\");
        putc(':', out);
        put_action(out, &offer);
    }
    fputs("' \\\n", out);
}

static void put_zsh_command(FILE *out, const struct ls_cli_command *command)
{
    struct ls_cli_offer offer;
    fprintf(out, "    %s)\n        _arguments \\\n", command->name);
    for (const struct ls_cli_option *option = command->options; option->name != NULL; option++)
        put_zsh_option(out, option);
    for (const struct ls_cli_option *option = ls_cli_common_options; option->name != NULL; option++)
        put_zsh_option(out, option);
    fputs("            '--help[say what the command does]'", out);
    ls_cli_offer_argument(command, &offer);
    if (command->arguments_max > 0) {
        fputs(" \\\n            '*:", out);
        put_quoted(out, command->arguments_name, ":\\");
        putc(':', out);
        put_action(out, &offer);
        putc('\'', out);
    }
    fputs("\n        ;;\n", out);
}

static void put_zsh_summary(FILE *out, const char *name, const char *summary)
{
    fprintf(out, "        '%s:", name);
    put_quoted(out, summary, "\\");
    fputs("'\n", out);
}

void ls_cli_complete_zsh(FILE *out)
{
    fputs("#compdef lockstep\n"
          "# Completion of lockstep for zsh, which 'lockstep completion zsh' has written.\n"
          "_lockstep()\n{\n    local -a commands\n    commands=(\n",
          out);
    for (size_t i = 0; ls_cli_commands[i] != NULL; i++)
        put_zsh_summary(out, ls_cli_commands[i]->name, ls_cli_commands[i]->summary);
    for (const struct ls_cli_alias *link = ls_cli_links; link->name != NULL; link++)
        put_zsh_summary(out, link->name,
                        link->command != NULL ? link->command->summary : link->summary);
    fputs("    )\n"
          "    if ((CURRENT == 2)); then\n"
          "        _describe command commands\n"
          "        compadd -- --help --version\n"
          "        return\n"
          "    fi\n"
          "    shift words\n"
          "    ((CURRENT--))\n"
          "    case $words[1] in\n",
          out);
    for (size_t i = 0; ls_cli_commands[i] != NULL; i++)
        put_zsh_command(out, ls_cli_commands[i]);
    fputs("    *) _files ;;\n    esac\n}\n"
          "if [[ $funcstack[1] == _lockstep ]]; then\n"
          "    _lockstep \"$@\"\n"
          "else\n"
          "    compdef _lockstep lockstep\n"
          "fi\n",
          out);
}

/* ---- fish ------------------------------------------------------------------------------------ */

static void put_fish_words(FILE *out, const struct ls_cli_offer *offer)
{
    if (offer->words[0] != '\0')
        fprintf(out, " -a '%s'", offer->words);
    else if (offer->folders)
        fputs(" -a '(__fish_complete_directories)'", out);
}

static void put_fish_option(FILE *out, const char *command, const struct ls_cli_option *option)
{
    struct ls_cli_offer offer;
    char help[256];
    ls_cli_first_sentence(option, help, sizeof help);
    fprintf(out, "complete -c lockstep -n '__fish_seen_subcommand_from %s' -l %s", command,
            option->name);
    if (option->kind != LS_CLI_FLAG) {
        ls_cli_offer_value(option, &offer);
        fputs(offer.files ? " -r -F" : " -x", out);
        put_fish_words(out, &offer);
    }
    fputs(" -d '", out);
    put_quoted(out, help, "\\");
    fputs("'\n", out);
}

static void put_fish_command(FILE *out, const struct ls_cli_command *command)
{
    struct ls_cli_offer offer;
    for (const struct ls_cli_option *option = command->options; option->name != NULL; option++)
        put_fish_option(out, command->name, option);
    for (const struct ls_cli_option *option = ls_cli_common_options; option->name != NULL; option++)
        put_fish_option(out, command->name, option);
    ls_cli_offer_argument(command, &offer);
    fprintf(out, "complete -c lockstep -n '__fish_seen_subcommand_from %s'%s", command->name,
            offer.files ? " -F" : " -f");
    put_fish_words(out, &offer);
    putc('\n', out);
}

static void put_fish_summary(FILE *out, const char *name, const char *summary)
{
    fprintf(out, "complete -c lockstep -n __fish_use_subcommand -x -a %s -d '", name);
    put_quoted(out, summary, "\\");
    fputs("'\n", out);
}

void ls_cli_complete_fish(FILE *out)
{
    fputs("# Completion of lockstep for fish, which 'lockstep completion fish' has written.\n"
          "complete -c lockstep -n __fish_use_subcommand -f\n"
          "complete -c lockstep -l help -d 'say what the program or a command does'\n"
          "complete -c lockstep -n __fish_use_subcommand -l version -d 'what it is built on'\n",
          out);
    for (size_t i = 0; ls_cli_commands[i] != NULL; i++)
        put_fish_summary(out, ls_cli_commands[i]->name, ls_cli_commands[i]->summary);
    for (const struct ls_cli_alias *link = ls_cli_links; link->name != NULL; link++)
        put_fish_summary(out, link->name,
                         link->command != NULL ? link->command->summary : link->summary);
    for (size_t i = 0; ls_cli_commands[i] != NULL; i++)
        put_fish_command(out, ls_cli_commands[i]);
}
