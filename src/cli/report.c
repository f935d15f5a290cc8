/* Messages to stderr.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/report.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "monitor/terminal.h"

enum { STEP_BACK = 2 /* seconds */ };

/* "lockstep: " and a line; of an error this is red on a terminal. */
static void put_line(FILE *stream, const char *line, bool error, enum ls_colours colours)
{
    bool coloured = error && colours != LS_COLOURS_NONE;
    fprintf(stream, "%slockstep:%s ", coloured ? "\033[1;31m" : "", coloured ? "\033[0m" : "");
    ls_put_marked(stream, line, colours);
    putc('\n', stream);
}

static void put_message(bool error, const char *format, va_list arguments)
{
    char text[4096];
    vsnprintf(text, sizeof text, format, arguments);
    put_line(stderr, text, error, ls_terminal_colours(stderr));
}

void ls_cli_let_rank_0_speak(void)
{
    int rank;
    if (lockstep_job_launched(&rank) > 1 && rank != 0)
        sleep(STEP_BACK);
}

int ls_cli_usage_error(const char *format, ...)
{
    va_list arguments;
    ls_cli_let_rank_0_speak();
    va_start(arguments, format);
    put_message(true, format, arguments);
    va_end(arguments);
    return LOCKSTEP_USAGE;
}

int ls_cli_error(int status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    put_message(status != 0, format, arguments);
    va_end(arguments);
    return status;
}

int ls_cli_no_memory(void)
{
    return ls_cli_error(LOCKSTEP_RESOURCE, "out of memory");
}

static void put_lines(FILE *stream, const char *text, bool error)
{
    enum ls_colours colours = ls_terminal_colours(stderr);
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        char line[4096];
        snprintf(line, sizeof line, "%.*s", (int)length, text);
        put_line(stream, line, error, colours);
        text += length + (text[length] == '\n');
    }
}

void ls_cli_put_line(void *user, const char *line)
{
    (void)user;
    if (ls_terminal(stdout))
        ls_put_wrapped(stdout, line, 0, ls_terminal_width(stdout));
    else
        ls_put_clean(stdout, line);
    putchar('\n');
}

/* In one write: stderr has no buffer, and a launcher that mixes the output of several processes
 * would cut lines to pieces. */
static void put_together(const char *text, bool error)
{
    char *all = NULL;
    size_t size;
    FILE *memory = open_memstream(&all, &size);
    if (memory == NULL) {
        put_lines(stderr, text, error);
        return;
    }
    put_lines(memory, text, error);
    if (fclose(memory) == 0)
        fwrite(all, 1, size, stderr);
    free(all);
}

void ls_cli_tell(void *user, const char *line)
{
    (void)user;
    if (!ls_quiet())
        put_together(line, false);
}

void ls_cli_put_event(void *user, const struct lockstep_event *event)
{
    if (event->text == NULL)
        return;
    if (event->kind == LOCKSTEP_EVENT_WARNING)
        ls_cli_error(0, "%s", event->text);
    if (event->kind == LOCKSTEP_EVENT_NOTICE ||
        (event->kind == LOCKSTEP_EVENT_DETAIL && ls_verbose()))
        ls_cli_tell(user, event->text);
}

void ls_cli_put_lines(const char *text)
{
    put_together(text, false);
}

int ls_cli_report(int status, struct lockstep_error *error)
{
    const char *text = error != NULL ? lockstep_error_text(error) : "";
    if (text[0] == '\0')
        text = error != NULL ? "failed without saying why" : "out of memory";
    put_together(text, true);
    return status;
}

int ls_cli_finish_output(void)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    return ls_cli_error(LOCKSTEP_RESOURCE, "cannot write the output: %s",
                        errno != 0 ? strerror(errno) : "an earlier write failed");
}
