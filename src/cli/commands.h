/* The commands of the program; each one's table is the end of its file.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_COMMANDS_H
#define LS_CLI_COMMANDS_H

#include "cli/options.h"

extern const struct ls_cli_command ls_cli_command_train;
extern const struct ls_cli_command ls_cli_command_sweep;
extern const struct ls_cli_command ls_cli_command_test;
extern const struct ls_cli_command ls_cli_command_predict;
extern const struct ls_cli_command ls_cli_command_classify;
extern const struct ls_cli_command ls_cli_command_generate;
extern const struct ls_cli_command ls_cli_command_verify;
extern const struct ls_cli_command ls_cli_command_replay;
extern const struct ls_cli_command ls_cli_command_plan;
extern const struct ls_cli_command ls_cli_command_shapes;
extern const struct ls_cli_command ls_cli_command_draw;
extern const struct ls_cli_command ls_cli_command_time;
extern const struct ls_cli_command ls_cli_command_tune;
extern const struct ls_cli_command ls_cli_command_check;
extern const struct ls_cli_command ls_cli_command_check_plugin;
extern const struct ls_cli_command ls_cli_command_convert;
extern const struct ls_cli_command ls_cli_command_convert_weights;
extern const struct ls_cli_command ls_cli_command_export;
extern const struct ls_cli_command ls_cli_command_import;
extern const struct ls_cli_command ls_cli_command_mean;
extern const struct ls_cli_command ls_cli_command_tokenize;
extern const struct ls_cli_command ls_cli_command_prune;
extern const struct ls_cli_command ls_cli_command_diff;
extern const struct ls_cli_command ls_cli_command_show;
extern const struct ls_cli_command ls_cli_command_list;
extern const struct ls_cli_command ls_cli_command_report;
extern const struct ls_cli_command ls_cli_command_init;
extern const struct ls_cli_command ls_cli_command_plot;
extern const struct ls_cli_command ls_cli_command_completion;
extern const struct ls_cli_command ls_cli_command_help;

/* All of them, in the order of the help, ending with NULL. */
extern const struct ls_cli_command *const ls_cli_commands[];

/* The command of that name; NULL after a message to stderr if there is none. */
const struct ls_cli_command *ls_cli_find_command(const char *name);

/* The whole program: parses, runs, reports. Returns the exit code. */
int ls_cli_main(int count, char **arguments);

/* As what the program was called: its name or path. */
const char *ls_cli_program(void);

/* The exit codes, in lines. */
extern const char ls_cli_exit_codes[];

/* What "lockstep --help" and "lockstep --version" write to stdout. */
void ls_cli_overview(void);
void ls_cli_version(void);

#endif
