/* Messages to stderr.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/report.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "monitor/terminal.h"

static void put_message(const char *format, va_list arguments)
{
    char text[4096];
    vsnprintf(text, sizeof text, format, arguments);
    fputs("lockstep: ", stderr);
    ls_put_clean(stderr, text);
    putc('\n', stderr);
}

int ls_cli_usage_error(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    put_message(format, arguments);
    va_end(arguments);
    return LOCKSTEP_USAGE;
}

int ls_cli_error(int status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    put_message(format, arguments);
    va_end(arguments);
    return status;
}

void ls_cli_put_lines(const char *text)
{
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        char line[4096];
        snprintf(line, sizeof line, "%.*s", (int)length, text);
        fputs("lockstep: ", stderr);
        ls_put_clean(stderr, line);
        putc('\n', stderr);
        text += length + (text[length] == '\n');
    }
}

int ls_cli_report(int status, struct lockstep_error *error)
{
    const char *text = error != NULL ? lockstep_error_text(error) : "";
    if (text[0] == '\0')
        text = error != NULL ? "failed without saying why" : "out of memory";
    ls_cli_put_lines(text);
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
