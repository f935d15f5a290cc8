/* Commands and their options as data. From these tables come parsing, messages with "did you
 * mean", --help, the manual pages and the completion of shells.
 *
 * An option is written --name VALUE or --name=VALUE; one dash instead of two and '_' for '-' are
 * accepted, as the flags of Caffe's program are written (-solver FILE). "--" ends the options.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_OPTIONS_H
#define LS_CLI_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

/* Texts that were given for an option or as arguments, in order; they belong to argv. */
struct ls_cli_list {
    const char **items; /* freed by ls_cli_free_values */
    size_t count;
};

enum ls_cli_kind {
    LS_CLI_TEXT,    /* const char * */
    LS_CLI_INTEGER, /* int64_t, at most INT32_MAX */
    LS_CLI_SIZE,    /* uint64_t: bytes, at least 1 */
    LS_CLI_PART,    /* double, 0 to 1 */
    LS_CLI_FLAG,    /* int */
    LS_CLI_CARDS,   /* const char *, that of --device, which becomes "cuda:" and the text */
    LS_CLI_LIST     /* struct ls_cli_list: may be given several times */
};

enum { LS_CLI_EMPTY = -1 }; /* the text may be empty */

struct ls_cli_option {
    const char *name;     /* "snapshot-prefix"; NULL ends a table */
    const char *argument; /* "FILE"; NULL for a flag */
    enum ls_cli_kind kind;
    size_t offset;       /* of its place in the command's values */
    int64_t minimum;     /* LS_CLI_INTEGER: the smallest allowed; LS_CLI_TEXT: LS_CLI_EMPTY, or 0 */
    const char *help;    /* may have several lines */
    const char *choices; /* (optional) what its value may be, for completion: words with a space
                          * between; FILE: or a file; SOURCES: the kinds of sources of data */
};

/* A row of a table whose value is `member` of the struct `type`. */
#define LS_CLI_ROW(kind, name, argument, type, member, minimum, help)                              \
    {                                                                                              \
        name, argument, kind, offsetof(type, member), minimum, help, NULL                          \
    }

/* A row for a text that is one of some words, its `choices`. */
#define LS_CLI_CHOICE(name, argument, type, member, choices, help)                                 \
    {                                                                                              \
        name, argument, LS_CLI_TEXT, offsetof(type, member), 0, help, choices                      \
    }

/* Rows that several commands have. `note` is a literal that goes on behind the help. */
#define LS_CLI_SOLVER(type, member, note)                                                          \
    LS_CLI_ROW(LS_CLI_TEXT, "solver", "FILE", type, member, 0,                                     \
               "the solver's definition (prototxt)" note)
#define LS_CLI_SET(type, member)                                                                   \
    LS_CLI_ROW(LS_CLI_LIST, "set", "FIELD=VALUE", type, member, 0,                                 \
               "override a field of the solver; may be given several times. batch=N:\n"            \
               "batch_size of the data that is trained on")
#define LS_CLI_WORKER_COUNT(type, member, note)                                                    \
    LS_CLI_ROW(LS_CLI_INTEGER, "workers", "N", type, member, 1,                                    \
               "workers that compute; default: the cores that this process may\n"                  \
               "use" note)
#define LS_CLI_ISA(type, member)                                                                   \
    LS_CLI_CHOICE("isa", "NAME", type, member, "generic sse41 avx2 avx512 avx512_bf16 amx",        \
                  "pin the instruction set: generic, sse41, avx2, avx512, avx512_bf16, amx\n"      \
                  "(avx512 and what these have for BF16); default: best")
#define LS_CLI_DEVICE_ALONE(type, member)                                                          \
    LS_CLI_CHOICE("device", "NAME", type, member, "cpu reference cuda",                            \
                  "what computes: one of those that lockstep --version lists; default: cpu,\n"     \
                  "or the card that the solver's solver_mode and device_id ask for")
#define LS_CLI_DEVICE(type, member)                                                                \
    LS_CLI_DEVICE_ALONE(type, member),                                                             \
        LS_CLI_ROW(LS_CLI_CARDS, "gpu", "LIST", type, member, 0,                                   \
                   "compute on NVIDIA's cards of these numbers: 0 or 0,1 or all; a training\n"     \
                   "has a rank for each, and 0,0 are two on one card (docs/gpu.md)")
/* The same where one card computes. */
#define LS_CLI_DEVICE_ONE(type, member)                                                            \
    LS_CLI_DEVICE_ALONE(type, member),                                                             \
        LS_CLI_ROW(LS_CLI_CARDS, "gpu", "N", type, member, 0,                                      \
                   "compute on NVIDIA's card of this number, such as 0 (docs/gpu.md)")
#define LS_CLI_MAP(type, member)                                                                   \
    LS_CLI_CHOICE("map", "MAP", type, member, "gpt2 bert vit torchvision FILE",                    \
                  "names of weights of another program: gpt2, bert, vit, torchvision, or\n"        \
                  "a file (docs/weights.md)")
#define LS_CLI_JSON(type, member)                                                                  \
    LS_CLI_ROW(LS_CLI_FLAG, "json", NULL, type, member, 0, "one JSON object instead")

enum { LS_CLI_OPTIONS_MAX = 64 }; /* rows of a command's table */

struct ls_cli_command {
    const char *name;
    const char *summary; /* one line */
    const char *usage;   /* what follows "lockstep <name> " */
    const char *notes;   /* (optional) lines behind it */
    const struct ls_cli_option *options;
    /* Arguments that are no options: where they go, how many. */
    size_t arguments; /* offset of a struct ls_cli_list; unused if at most 0 are allowed */
    size_t arguments_min, arguments_max;
    const char *arguments_name;    /* "INPUTS" */
    const char *arguments_choices; /* (optional) as an option's; COMMANDS: those of the program.
                                    * Without it arguments are completed as files */
    const char *example;           /* lines of examples and what they do */
    /* Sets defaults in zeroed values (optional), and does the work; the result is the exit code. */
    void (*defaults)(void *values);
    int (*run)(const void *values);
    size_t values_size;
};

/* Fills `values` from the arguments behind the command's name. 0, or LOCKSTEP_USAGE after a message
 * to stderr, or -1 after --help was answered on stdout. */
int ls_cli_parse(const struct ls_cli_command *command, int count, char **arguments, void *values);
void ls_cli_free_values(const struct ls_cli_command *command, void *values);

/* Takes the options of a table, the words before "--", out of the arguments; the others stay, in
 * their order. Of one that is given twice the last one counts. 0, or LOCKSTEP_USAGE after a
 * message. Lists in `values` are the caller's to free. */
int ls_cli_take_options(const struct ls_cli_option *options, int *count, char **arguments,
                        void *values);

/* Writes the options of a table, with their help, to stdout. */
void ls_cli_put_options(const struct ls_cli_option *options);
/* Writes a command's help to stdout. */
void ls_cli_help(const struct ls_cli_command *command);

#endif
