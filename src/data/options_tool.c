/* Options of sources from convert and mean, and help; see data/options.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#include "data/options_inner.h"

/* How the options of convert and mean are called there; `negated`: a flag that says the opposite.
 */
static const struct tool_option {
    const char *option, *name;
    enum ls_option_kind kind;
    size_t offset; /* in struct lockstep_source_options */
    bool negated;
} tool_options[] = {
    {"label_source", "label_source", LS_OPTION_FILE,
     offsetof(struct lockstep_source_options, label_source), false},
    {"root_folder", "root_folder", LS_OPTION_FILE,
     offsetof(struct lockstep_source_options, root_folder), false},
    {"new_height", "resize_height", LS_OPTION_INTEGER,
     offsetof(struct lockstep_source_options, resize_height), false},
    {"new_width", "resize_width", LS_OPTION_INTEGER,
     offsetof(struct lockstep_source_options, resize_width), false},
    {"is_color", "gray", LS_OPTION_FLAG, offsetof(struct lockstep_source_options, gray), true},
    {"antialias", "no_antialias", LS_OPTION_FLAG,
     offsetof(struct lockstep_source_options, no_antialias), true},
};
enum { TOOL_OPTIONS = sizeof tool_options / sizeof tool_options[0] };

static int refuse(struct ls_error *error, const char *hint, const char *message)
{
    return ls_fail(error, LOCKSTEP_USAGE, NULL, hint, "%s", message);
}

/* Takes one option of a tool, if it is given. */
static int take_option(const struct lockstep_source_options *given, const struct tool_option *tool,
                       struct ls_source_options *options, struct ls_error *error)
{
    const void *at = (const char *)given + tool->offset;
    bool is_text = tool->kind == LS_OPTION_FILE;
    if (is_text ? *(const char *const *)at == NULL : *(const int *)at == 0)
        return 0;
    const struct ls_option *option = ls_option_find(options->type, tool->option);
    if (option == NULL) {
        struct ls_text text = {0};
        ls_text_format(&text, "%s is for ", tool->name);
        ls_option_add_owners(&text, tool->option);
        int status = refuse(error, NULL, text.data != NULL ? text.data : tool->name);
        ls_text_free(&text);
        return status;
    }
    if (is_text) {
        *(const char **)((char *)options->own + option->offset) = *(const char *const *)at;
        return 0;
    }
    int value = *(const int *)at;
    if (tool->negated)
        value = value == 0;
    if (ls_option_check_range(options, option, tool->name, value, error) != 0)
        return LOCKSTEP_USAGE;
    ls_option_put(option, options->own, value);
    return 0;
}

static int take_files(const struct lockstep_source_options *given,
                      struct ls_source_options *options, struct ls_error *error)
{
    for (const struct ls_option *o = options->type->options; o->name != NULL; o++)
        if (o->kind == LS_OPTION_FILES) {
            struct ls_option_files *files = (void *)((char *)options->own + o->offset);
            *files = (struct ls_option_files){given->source, given->source_count};
            return ls_option_check_count(options, o, files->count, error) == 0 ? 0 : LOCKSTEP_USAGE;
        }
    if (given->source_count == 0)
        return 0;
    return ls_fail(error, LOCKSTEP_USAGE, NULL, options->type->summary,
                   "data of backend %s has no source", options->type->name);
}

int ls_source_options_take(const struct lockstep_source_options *given,
                           struct ls_source_options *options, struct ls_error *error)
{
    *options = (struct ls_source_options){.split = {.all = true}};
    const struct ls_source_type *type =
        given->backend != NULL ? ls_source_type_named(given->backend) : NULL;
    if (type == NULL) {
        struct ls_text hint = {0};
        char message[160] = "no backend is given";
        ls_source_names(true, &hint);
        if (given->backend != NULL)
            snprintf(message, sizeof message, "'%.100s' is not a backend", given->backend);
        int status = refuse(error, hint.data, message);
        ls_text_free(&hint);
        return status;
    }
    LS_TRY(ls_option_start(type, options, error));
    int status = take_files(given, options, error);
    for (int i = 0; i < TOOL_OPTIONS; i++) {
        int found = take_option(given, &tool_options[i], options, error);
        status = status != 0 ? status : found;
    }
    return status;
}

/* ---- Help ---- */

/* "one of CROSS and WHOLE, default CROSS" */
static void describe_choice(const struct ls_option *option, struct ls_text *text)
{
    const Lockstep__LayerParameter nothing = LOCKSTEP__LAYER_PARAMETER__INIT;
    const ProtobufCFieldDescriptor *field =
        ls_option_field(&nothing, option->name, false).descriptor;
    const ProtobufCEnumDescriptor *choices = field->descriptor;
    for (unsigned i = 0; i < choices->n_values; i++)
        ls_text_format(text, "%s%s", i > 0 ? " or " : "", choices->values[i].name);
    ls_text_format(text, ", default %s", ls_option_choice(field, option->fallback));
}

/* What an option is, and its default and limits: "number, 0 .. 1000, default 16". */
static void describe_option(const struct ls_option *option, struct ls_text *text)
{
    static const char *const kinds[] = {"files", "file", "integer", "integer", "number", "flag"};
    bool limited = option->least != 0 || option->most != 0;
    if (option->kind == LS_OPTION_CHOICE) {
        describe_choice(option, text);
        return;
    }
    if (option->kind == LS_OPTION_FILES) {
        ls_text_format(text, option->most == 1 ? "one file or folder" : "%.0f to %.0f files",
                       option->least, option->most);
        return;
    }
    ls_text_add(text, kinds[option->kind]);
    if (option->kind == LS_OPTION_FILE)
        return;
    if (limited)
        ls_text_format(text, ", %.10g .. %.10g", option->least, option->most);
    if (option->kind == LS_OPTION_FLAG)
        ls_text_add(text, option->fallback != 0 ? ", default true" : ", default false");
    else
        ls_text_format(text, ", default %.10g", option->fallback);
}

static void help_option(const struct ls_option *option, struct ls_text *text)
{
    ls_text_format(text, "  %s\n      ", option->name);
    describe_option(option, text);
    ls_text_format(text, "\n      %s\n", option->help);
    for (int i = 0; i < TOOL_OPTIONS; i++)
        if (strcmp(tool_options[i].option, option->name) == 0) {
            char flag[40];
            snprintf(flag, sizeof flag, "%s", tool_options[i].name);
            for (char *c = flag; *c != '\0'; c++)
                *c = *c == '_' ? '-' : *c;
            ls_text_format(text, "      convert, mean: --%s%s\n", flag,
                           tool_options[i].negated ? " for false" : "");
        }
}

int ls_source_help(const char *backend, void (*tell)(void *user, const char *line), void *user,
                   struct ls_error *error)
{
    struct ls_text text = {0};
    const struct ls_source_type *type = backend != NULL ? ls_source_type_named(backend) : NULL;
    if (backend != NULL && type == NULL) {
        ls_source_names(false, &text);
        int status =
            ls_fail(error, LOCKSTEP_USAGE, NULL, text.data, "'%.100s' is not a backend", backend);
        ls_text_free(&text);
        return status;
    }
    for (size_t i = 0; type == NULL && ls_source_types[i] != NULL; i++)
        ls_text_format(&text, "  %-12s %s\n", ls_source_types[i]->name,
                       ls_source_types[i]->summary);
    if (type != NULL) {
        ls_text_format(&text, "%s: %s\n\nfields of data_param:\n", type->name, type->summary);
        for (const struct ls_option *o = type->options; o->name != NULL; o++)
            help_option(o, &text);
        if (type->unconvertible != NULL)
            ls_text_format(&text, "\nconvert and mean do not read it: %s\n", type->unconvertible);
    }
    int status = text.failed ? ls_fail_memory(error, "the help") : 0;
    char *rest = text.data;
    for (char *line; status == 0 && (line = strsep(&rest, "\n")) != NULL && rest != NULL;)
        tell(user, line);
    ls_text_free(&text);
    return status;
}
