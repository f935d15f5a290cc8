/* The command line of Caffe's program. See cli/caffe_flags.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/caffe_flags.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/report.h"
#include "cli/suggest.h"
#include "lockstep/lockstep.h"

enum kind { TEXT, NUMBER, SWITCH, LIST, IGNORED, IGNORED_SWITCH };

/* Those of Caffe and of its library for logs; ours are workers, input, dummy_data and
 * partial_weights. */
static const struct flag {
    const char *name;
    enum kind kind;
    size_t offset;
} table[] = {
    {"solver", TEXT, offsetof(struct ls_caffe_flags, solver)},
    {"model", TEXT, offsetof(struct ls_caffe_flags, model)},
    {"weights", TEXT, offsetof(struct ls_caffe_flags, weights)},
    {"snapshot", TEXT, offsetof(struct ls_caffe_flags, snapshot)},
    {"gpu", TEXT, offsetof(struct ls_caffe_flags, gpu)},
    {"phase", TEXT, offsetof(struct ls_caffe_flags, phase)},
    {"level", NUMBER, offsetof(struct ls_caffe_flags, level)},
    {"stage", TEXT, offsetof(struct ls_caffe_flags, stage_text)},
    {"iterations", NUMBER, offsetof(struct ls_caffe_flags, iterations)},
    {"sigint_effect", TEXT, offsetof(struct ls_caffe_flags, sigint_effect)},
    {"sighup_effect", TEXT, offsetof(struct ls_caffe_flags, sighup_effect)},
    {"log_dir", TEXT, offsetof(struct ls_caffe_flags, log_dir)},
    {"logtostderr", SWITCH, offsetof(struct ls_caffe_flags, logtostderr)},
    {"alsologtostderr", SWITCH, offsetof(struct ls_caffe_flags, alsologtostderr)},
    {"minloglevel", NUMBER, offsetof(struct ls_caffe_flags, minloglevel)},
    {"stderrthreshold", NUMBER, offsetof(struct ls_caffe_flags, stderrthreshold)},
    {"workers", NUMBER, offsetof(struct ls_caffe_flags, workers)},
    {"input", LIST, 0},
    {"dummy_data", SWITCH, offsetof(struct ls_caffe_flags, dummy_data)},
    {"partial_weights", SWITCH, offsetof(struct ls_caffe_flags, partial_weights)},
    {"help", SWITCH, offsetof(struct ls_caffe_flags, help)},
    {"version", SWITCH, offsetof(struct ls_caffe_flags, version)},
    /* How much is logged and in which files changes nothing here. */
    {"v", IGNORED, 0},
    {"vmodule", IGNORED, 0},
    {"log_link", IGNORED, 0},
    {"logbuflevel", IGNORED, 0},
    {"logbufsecs", IGNORED, 0},
    {"max_log_size", IGNORED, 0},
    {"log_prefix", IGNORED_SWITCH, 0},
    {"colorlogtostderr", IGNORED_SWITCH, 0},
    {"stop_logging_if_full_disk", IGNORED_SWITCH, 0},
};

static const struct flag *find_flag(const char *name)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    return NULL;
}

static bool is_switch(const struct flag *flag)
{
    return flag->kind == SWITCH || flag->kind == IGNORED_SWITCH;
}

static int unknown(const char *argument, const char *name)
{
    const char *names[sizeof table / sizeof *table + 1];
    size_t count = 0;
    for (; count < sizeof table / sizeof *table; count++)
        names[count] = table[count].name;
    names[count] = NULL;
    const char *near = ls_cli_suggest(name, names);
    if (near != NULL)
        return ls_cli_usage_error("unknown command line flag '%s'. hint: did you mean '-%s'?",
                                  argument, near);
    return ls_cli_usage_error("unknown command line flag '%s'. hint: 'caffe -help' lists them",
                              argument);
}

static int set_number(const struct flag *flag, const char *text, int64_t *number)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value > INT32_MAX || value < INT32_MIN)
        return ls_cli_usage_error("illegal value '%s' specified for the flag '%s': it is a whole "
                                  "number",
                                  text, flag->name);
    *number = value;
    return 0;
}

static int set_switch(const struct flag *flag, const char *text, bool *value)
{
    static const char *const yes[] = {"1", "t", "true", "y", "yes"}, *const no[] = {"0", "f",
                                                                                    "false", "n",
                                                                                    "no"};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        if (strcmp(text, yes[i]) == 0 || strcmp(text, no[i]) == 0) {
            *value = strcmp(text, yes[i]) == 0;
            return 0;
        }
    return ls_cli_usage_error("illegal value '%s' specified for the flag '%s': it is true or false",
                              text, flag->name);
}

static int set_flag(const struct flag *flag, const char *text, struct ls_caffe_flags *flags)
{
    char *place = (char *)flags + flag->offset;
    bool ignored;
    switch (flag->kind) {
    case TEXT:
        *(const char **)(void *)place = text[0] != '\0' ? text : NULL;
        return 0;
    case NUMBER:
        return set_number(flag, text, (int64_t *)(void *)place);
    case SWITCH:
        return set_switch(flag, text, (bool *)(void *)place);
    case LIST:
        if (flags->inputs == LS_CAFFE_INPUTS)
            return ls_cli_usage_error("more than %d shapes are given", LS_CAFFE_INPUTS);
        flags->input[flags->inputs++] = text;
        return 0;
    case IGNORED_SWITCH:
        return set_switch(flag, text, &ignored);
    case IGNORED:
        return 0;
    }
    return LOCKSTEP_INTERNAL;
}

/* Parses the flag at arguments[*at], and moves *at to the last argument that belongs to it. */
static int parse_flag(int count, char **arguments, int *at, struct ls_caffe_flags *flags)
{
    char name[64];
    const char *argument = arguments[*at], *text = argument + (argument[1] == '-' ? 2 : 1);
    size_t length = strcspn(text, "=");
    snprintf(name, sizeof name, "%.*s", length < sizeof name ? (int)length : 60, text);
    for (char *c = name; *c != '\0'; c++)
        *c = *c == '-' ? '_' : *c;
    const char *value = text[length] == '=' ? text + length + 1 : NULL;
    const struct flag *flag = find_flag(name);
    if (flag == NULL && value == NULL && strncmp(name, "no", 2) == 0) {
        flag = find_flag(name + 2);
        if (flag != NULL && is_switch(flag))
            return set_flag(flag, "false", flags);
        flag = NULL;
    }
    if (flag == NULL)
        return unknown(argument, name);
    if (value == NULL && is_switch(flag))
        value = "true";
    if (value == NULL) {
        if (*at + 1 >= count)
            return ls_cli_usage_error("flag '%s' is missing its argument", argument);
        value = arguments[++*at];
    }
    return set_flag(flag, value, flags);
}

/* "a,b" to a list; the text becomes a copy that holds the words. */
static int split_stages(struct ls_caffe_flags *flags)
{
    if (flags->stage_text == NULL)
        return 0;
    flags->stage_text = strdup(flags->stage_text);
    if (flags->stage_text == NULL)
        return ls_cli_no_memory();
    char *rest = NULL;
    for (char *word = strtok_r(flags->stage_text, ",", &rest); word != NULL;
         word = strtok_r(NULL, ",", &rest)) {
        if (flags->stages == LS_CAFFE_STAGES)
            return ls_cli_usage_error("more than %d stages are given", LS_CAFFE_STAGES);
        flags->stage[flags->stages++] = word;
    }
    return 0;
}

int ls_caffe_flags_parse(int count, char **arguments, struct ls_caffe_flags *flags)
{
    *flags = (struct ls_caffe_flags){.iterations = 50,
                                     .sigint_effect = "stop",
                                     .sighup_effect = "snapshot",
                                     .alsologtostderr = true,
                                     .stderrthreshold = LS_GLOG_ERROR};
    bool only_arguments = false;
    int status = 0;
    for (int at = 0; at < count && status == 0; at++) {
        const char *argument = arguments[at];
        if (!only_arguments && strcmp(argument, "--") == 0)
            only_arguments = true;
        else if (!only_arguments && argument[0] == '-' && argument[1] != '\0')
            status = parse_flag(count, arguments, &at, flags);
        else if (flags->arguments < LS_CAFFE_ARGUMENTS)
            flags->argument[flags->arguments++] = argument;
        else
            status = ls_cli_usage_error("'%s' is one argument too many", argument);
    }
    if (status != 0)
        flags->stage_text = NULL; /* still the argument itself */
    return status != 0 ? status : split_stages(flags);
}

void ls_caffe_flags_free(struct ls_caffe_flags *flags)
{
    free(flags->stage_text);
    flags->stage_text = NULL;
}

int ls_caffe_flags_log(const struct ls_caffe_flags *flags, struct ls_glog *log)
{
    *log = (struct ls_glog){.minimum = (int)flags->minloglevel};
    if (!flags->logtostderr && !flags->alsologtostderr)
        log->quiet = (int)flags->stderrthreshold;
    if (flags->log_dir == NULL || flags->logtostderr)
        return 0;
    return ls_glog_open(log, flags->log_dir, "caffe");
}
