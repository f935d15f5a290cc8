/* The page of a training that is under way. See cli/live_page.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/live_page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/output_file.h"
#include "cli/report.h"
#include "monitor/clock.h"
#include "monitor/log.h"

enum { INTERVAL = 5, REFRESH = 15 }; /* seconds: between two pages; until a browser looks again */

static char *path_in(const char *folder, const char *name)
{
    char *path = NULL;
    size_t size;
    FILE *out = open_memstream(&path, &size);
    if (out == NULL)
        return NULL;
    fprintf(out, "%s/%s", folder, name);
    return fclose(out) == 0 ? path : NULL;
}

static int fail(const char *path, const char *what)
{
    return ls_cli_error(LOCKSTEP_RESOURCE, "%s: %s: %s", path, what, strerror(errno));
}

/* ---- The folder ------------------------------------------------------------------------------ */

/* A page that lockstep did not write stays. */
static int check_page(const char *path)
{
    char head[4096];
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return errno == ENOENT ? 0 : fail(path, "cannot be opened");
    const size_t length = fread(head, 1, sizeof head - 1, file);
    fclose(file);
    head[length] = '\0';
    if (length == 0 || strstr(head, "content=\"lockstep\"") != NULL)
        return 0;
    return ls_cli_usage_error("train: %s was not written by lockstep. hint: name another folder "
                              "with --report",
                              path);
}

/* Events of an earlier run, to which this one may add its own. */
static int check_events(const char *path, struct lockstep_log *log)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return errno == ENOENT ? 0 : fail(path, "cannot be opened");
    if (info.st_size == 0)
        return 0;
    struct lockstep_error *error = lockstep_error_new();
    int status = lockstep_log_read(log, path, error);
    if (status != 0)
        ls_cli_report(status, error);
    lockstep_error_free(error);
    return status;
}

static int make_log(struct lockstep_log **log)
{
    struct lockstep_error *error = lockstep_error_new();
    int status = lockstep_log_new(log, error);
    if (status != 0)
        ls_cli_report(status, error);
    lockstep_error_free(error);
    return status;
}

int ls_cli_live_page_open(struct ls_cli_live_page *page, const char *folder, const char *name)
{
    *page = (struct ls_cli_live_page){.folder = folder, .name = name, .begun = ls_monitor_clock()};
    page->events = path_in(folder, "log.json");
    page->page = path_in(folder, "report.html");
    int status = make_log(&page->log);
    if (status != 0)
        return status;
    if (page->events == NULL || page->page == NULL)
        return ls_cli_no_memory();
    status = ls_cli_output_folder(folder);
    if (status == 0)
        status = check_page(page->page);
    return status == 0 ? check_events(page->events, page->log) : status;
}

/* ---- Events ---------------------------------------------------------------------------------- */

/* What was said before the log was begun anew. */
static void take_early(struct ls_cli_live_page *page)
{
    for (size_t at = 0; at < page->early_length && page->log != NULL;) {
        const char *line = page->early + at, *end = memchr(line, '\n', page->early_length - at);
        const size_t length = end != NULL ? (size_t)(end - line) + 1 : page->early_length - at;
        if (lockstep_log_line(page->log, line, length, NULL) != 0)
            page->failed = true;
        at += length;
    }
}

void ls_cli_end_last_line(FILE *log)
{
    const bool cut_off = fseek(log, -1, SEEK_END) == 0 && getc(log) != '\n';
    fseek(log, 0, SEEK_END);
    if (cut_off)
        putc('\n', log);
}

/* The training begins: where it is not resumed, with a log of its own. */
static void begin(struct ls_cli_live_page *page, bool resumed)
{
    page->file = ls_cli_output_stream(page->events,
                                      resumed ? LOCKSTEP_FILE_APPEND : LOCKSTEP_FILE_ANEW, false);
    if (page->file == NULL) {
        page->failed = true;
        return;
    }
    if (!resumed) {
        lockstep_log_free(page->log);
        page->log = NULL;
        page->failed = make_log(&page->log) != 0;
        take_early(page);
    } else {
        ls_cli_end_last_line(page->file);
    }
    if (page->early != NULL)
        fwrite(page->early, 1, page->early_length, page->file);
}

static void keep_early(struct ls_cli_live_page *page, const char *line, size_t length)
{
    enum { MOST = 1 << 20 };
    char *longer = page->early_length + length < MOST
                       ? realloc(page->early, page->early_length + length + 1)
                       : NULL;
    if (longer == NULL)
        return; /* such a line is missing in the log */
    memcpy(longer + page->early_length, line, length);
    page->early = longer;
    page->early_length += length;
}

static void write_page(struct ls_cli_live_page *page, int refresh)
{
    struct lockstep_page_options options;
    lockstep_page_options_init(&options);
    options.names = &page->name;
    options.definition = page->parts.definition;
    options.net = page->parts.net;
    options.refresh = refresh;
    page->written = ls_monitor_clock();
    if (page->log == NULL ||
        lockstep_page_write(page->page, (const struct lockstep_log *const[]){page->log}, 1,
                            &options, NULL) != 0)
        page->failed = true;
}

static void take_line(struct ls_cli_live_page *page, const char *line, size_t length)
{
    if (page->file == NULL)
        keep_early(page, line, length);
    else if (fwrite(line, 1, length, page->file) != length)
        page->failed = true;
    if (page->log != NULL && lockstep_log_line(page->log, line, length, NULL) != 0)
        page->failed = true;
}

void ls_cli_live_page_event(struct ls_cli_live_page *page, const struct lockstep_event *event)
{
    char *line = NULL;
    size_t length;
    if (event->kind == LOCKSTEP_EVENT_RUN && page->file == NULL && event->run != NULL)
        begin(page, event->run->first_iteration > 0);
    FILE *out = open_memstream(&line, &length);
    if (out == NULL) {
        page->failed = true;
        return;
    }
    ls_log_event(out, event, ls_monitor_time(), ls_monitor_clock() - page->begun);
    if (fclose(out) == 0)
        take_line(page, line, length);
    free(line);
    const bool often = event->kind == LOCKSTEP_EVENT_PROGRESS || event->kind == LOCKSTEP_EVENT_HASH;
    if (page->file == NULL || often || ls_monitor_clock() - page->written < INTERVAL)
        return;
    fflush(page->file);
    write_page(page, REFRESH);
}

/* ---- The definition -------------------------------------------------------------------------- */

void ls_cli_live_page_define(struct ls_cli_live_page *page, struct lockstep_solver *solver,
                             const char *path, const struct lockstep_dummy_options *dummy)
{
    const char *text = lockstep_solver_text(solver, NULL);
    if (text != NULL)
        page->parts.definition = strdup(text);
    ls_cli_page_draw(&page->parts, path, dummy, NULL);
}

int ls_cli_live_page_close(struct ls_cli_live_page *page, int status)
{
    if (page->file != NULL) {
        write_page(page, 0);
        page->failed = ferror(page->file) != 0 || page->failed;
        page->failed = fclose(page->file) != 0 || page->failed;
    }
    if (page->failed) {
        ls_cli_error(LOCKSTEP_RESOURCE, "%s: the report could not be written completely",
                     page->folder);
        status = status != 0 ? status : LOCKSTEP_RESOURCE;
    }
    lockstep_log_free(page->log);
    ls_cli_page_free(&page->parts);
    free(page->events);
    free(page->page);
    free(page->early);
    *page = (struct ls_cli_live_page){.folder = NULL};
    return status;
}
