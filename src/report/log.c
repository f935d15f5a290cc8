/* Logs, line by line. See report/log.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "report/log.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"

struct lockstep_log *ls_log_new(void)
{
    struct lockstep_log *log = ls_alloc(1, sizeof *log);
    if (log == NULL)
        return NULL;
    log->series = ls_alloc(LS_LOG_SERIES, sizeof *log->series);
    log->shown = ls_alloc(LS_LOG_SERIES, sizeof *log->shown);
    if (log->series == NULL || log->shown == NULL) {
        ls_log_free(log);
        return NULL;
    }
    return log;
}

void ls_log_free(struct lockstep_log *log)
{
    if (log == NULL)
        return;
    for (size_t i = 0; i < log->series_count; i++)
        ls_series_free(&log->series[i]);
    for (size_t i = 0; i < log->fact_count; i++) {
        ls_free((char *)log->facts[i].name);
        ls_free((char *)log->facts[i].value);
    }
    for (size_t i = 0; i < log->message_count; i++)
        ls_free((char *)log->messages[i].text);
    for (size_t i = 0; i < log->parameter_count; i++)
        ls_free((char *)log->parameters[i].name);
    for (size_t i = 0; i < log->spread_count; i++)
        ls_free(log->spreads[i].name);
    ls_series_free(&log->hashes);
    ls_free(log->series);
    ls_free(log->shown);
    ls_free(log->facts);
    ls_free(log->messages);
    ls_free(log->parameters);
    ls_free(log->spreads);
    ls_free(log->last_snapshot);
    ls_free(log->best_snapshot);
    ls_free(log);
}

const struct ls_series *ls_log_find(const struct lockstep_log *log, const char *name)
{
    for (size_t i = 0; i < log->series_count; i++)
        if (strcmp(log->series[i].name, name) == 0)
            return &log->series[i];
    return NULL;
}

const char *ls_log_fact(const struct lockstep_log *log, const char *name)
{
    for (size_t i = 0; i < log->fact_count; i++)
        if (strcmp(log->facts[i].name, name) == 0)
            return log->facts[i].value;
    return NULL;
}

static bool is_empty(const char *line, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (strchr(" \t\r\n", line[i]) == NULL || line[i] == '\0')
            return false;
    return true;
}

static void note_bad(struct lockstep_log *log)
{
    if (log->state.bad++ == 0)
        log->state.first_bad = log->state.lines;
}

int ls_log_line(struct lockstep_log *log, const char *line, size_t length, struct ls_error *error)
{
    struct ls_json_tree tree = {0};
    struct ls_error inner = {0};
    if (log->state.cut_off) { /* what was read before goes on */
        log->state.cut_off = 0;
        note_bad(log);
    }
    log->state.lines++;
    if (is_empty(line, length))
        return 0;
    int status = ls_json_tree_read("log", line, length, LOCKSTEP_DATA, &tree, &inner);
    if (status == LOCKSTEP_RESOURCE) {
        ls_error_add(error, &inner);
    } else if (status != 0) {
        note_bad(log);
        status = 0;
    } else if (ls_json_find(&tree, &tree.nodes[0], "event") == NULL) {
        note_bad(log);
    } else {
        status = ls_log_take(log, &tree, error);
    }
    ls_json_tree_free(&tree);
    return status;
}

/* Whether a line that has no end is an event nevertheless. */
static bool is_whole(const char *line, size_t length)
{
    while (length > 0 && strchr(" \t\r", line[length - 1]) != NULL)
        length--;
    struct ls_json_tree tree = {0};
    const bool whole = length > 0 && line[length - 1] == '}' &&
                       ls_json_tree_read("log", line, length, LOCKSTEP_DATA, &tree, NULL) == 0;
    ls_json_tree_free(&tree);
    return whole;
}

/* A file's lines through one buffer. */
struct lines {
    struct ls_text line;
    bool too_long; /* what is read belongs to a line that is left out */
};

static int end_line(struct lockstep_log *log, struct lines *lines, struct ls_error *error)
{
    int status = 0;
    if (lines->too_long) {
        log->state.lines++;
        note_bad(log);
    } else {
        status = ls_log_line(log, lines->line.data != NULL ? lines->line.data : "",
                             lines->line.length, error);
    }
    lines->line.length = 0;
    lines->too_long = false;
    return status;
}

static int take_block(struct lockstep_log *log, struct lines *lines, const char *block,
                      size_t length, struct ls_error *error)
{
    while (length > 0) {
        const char *end = memchr(block, '\n', length);
        const size_t part = end != NULL ? (size_t)(end - block) : length;
        if (lines->line.length + part > LS_LOG_LINE)
            lines->too_long = true;
        if (!lines->too_long)
            ls_text_add_bytes(&lines->line, block, part);
        if (lines->line.failed)
            return ls_fail_memory(error, "a line of a log");
        if (end != NULL)
            LS_TRY(end_line(log, lines, error));
        block += part + (end != NULL);
        length -= part + (end != NULL);
    }
    return 0;
}

/* A pipe has an end, a device may have none. */
static int check_kind(struct lockstep_log *log, FILE *file, const char *path,
                      struct ls_error *error)
{
    static const char hint[] = "name the file that --log-json wrote";
    struct stat info;
    if (fstat(fileno(file), &info) != 0)
        return ls_fail_errno(error, LOCKSTEP_DATA, path, "cannot read");
    if (S_ISDIR(info.st_mode))
        return ls_fail(error, LOCKSTEP_DATA, path, hint, "this is a folder");
    if (S_ISCHR(info.st_mode) || S_ISBLK(info.st_mode))
        return ls_fail(error, LOCKSTEP_DATA, path, hint, "this is a device");
    log->written = info.st_mtime;
    return 0;
}

static int read_lines(struct lockstep_log *log, const char *path, struct lines *lines,
                      struct ls_error *error)
{
    enum { BLOCK = 1 << 16 };
    FILE *file = fopen(path, "re");
    char *block = ls_alloc(BLOCK, 1);
    int status = 0;
    if (file == NULL)
        status = ls_fail_errno(error, LOCKSTEP_DATA, path, "cannot open");
    else if (block == NULL)
        status = ls_fail_memory(error, path);
    else
        status = check_kind(log, file, path, error);
    while (status == 0) {
        const size_t length = fread(block, 1, BLOCK, file);
        if (length == 0 && ferror(file))
            status = ls_fail_errno(error, LOCKSTEP_DATA, path, "cannot read");
        if (length == 0)
            break;
        status = take_block(log, lines, block, length, error);
    }
    if (status == 0 && (lines->line.length > 0 || lines->too_long)) {
        log->state.cut_off = lines->too_long || !is_whole(lines->line.data, lines->line.length);
        if (log->state.cut_off)
            log->state.lines++;
        else
            status = end_line(log, lines, error);
    }
    if (file != NULL)
        fclose(file);
    ls_free(block);
    return status;
}

int ls_log_read(struct lockstep_log *log, const char *path, struct ls_error *error)
{
    struct lines lines = {.too_long = false};
    const int64_t before = log->state.events;
    int status = read_lines(log, path, &lines, error);
    ls_text_free(&lines.line);
    if (status != 0 || log->state.events > before)
        return status;
    return ls_fail(error, LOCKSTEP_DATA, path,
                   "a log is what 'lockstep train --log-json FILE' writes: a JSON object with "
                   "\"event\" on each line",
                   log->state.lines == 0 ? "the log is empty" : "there is no event in this file");
}
