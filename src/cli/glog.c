/* Log lines as Caffe writes them. See cli/glog.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/glog.h"

#include <errno.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/output_file.h"
#include "cli/report.h"
#include "lockstep/lockstep.h"
#include "monitor/terminal.h"

enum { LINE_MAX_LENGTH = 4096 };

static void name_user(char *text, size_t size)
{
    const struct passwd *user = getpwuid(geteuid());
    if (user != NULL)
        snprintf(text, size, "%s", user->pw_name);
    else
        snprintf(text, size, "%u", (unsigned)geteuid());
}

int ls_glog_open(struct ls_glog *log, const char *folder, const char *program)
{
    char host[128] = "unknown", user[64], date[32], path[1024], link[1024];
    time_t now = time(NULL);
    struct tm local;
    struct stat info;
    gethostname(host, sizeof host - 1);
    host[strcspn(host, ".")] = '\0';
    name_user(user, sizeof user);
    localtime_r(&now, &local);
    strftime(date, sizeof date, "%Y%m%d-%H%M%S", &local);
    snprintf(path, sizeof path, "%s/%s.%s.%s.log.INFO.%s.%ld", folder, program, host, user, date,
             (long)getpid());
    snprintf(link, sizeof link, "%s/%s.INFO", folder, program);
    log->file = ls_cli_output_stream(path, LOCKSTEP_FILE_ANEW, false);
    if (log->file == NULL)
        return LOCKSTEP_RESOURCE;
    if (lstat(link, &info) == 0 && S_ISLNK(info.st_mode))
        unlink(link); /* a log without its link is as good */
    if (symlink(strrchr(path, '/') + 1, link) != 0)
        errno = 0;
    return 0;
}

void ls_glog_close(struct ls_glog *log)
{
    if (log->file != NULL)
        fclose(log->file);
    log->file = NULL;
}

void ls_glog_put(const struct ls_glog *log, enum ls_glog_level level, const char *place,
                 const char *format, ...)
{
    char text[LINE_MAX_LENGTH], *line = NULL;
    size_t size;
    struct timespec now;
    struct tm local;
    va_list arguments;
    if ((int)level < log->minimum)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &local);
    FILE *memory = open_memstream(&line, &size);
    if (memory == NULL)
        return;
    fprintf(memory, "%c%02d%02d %02d:%02d:%02d.%06ld %5ld %s] ", "IWEF"[level], local.tm_mon + 1,
            local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec, now.tv_nsec / 1000,
            (long)getpid(), place);
    ls_put_clean(memory, text);
    putc('\n', memory);
    if (fclose(memory) == 0) { /* in one write, so that readers never see half a line */
        if ((int)level >= log->quiet)
            fwrite(line, 1, size, stderr);
        if (log->file != NULL) {
            fwrite(line, 1, size, log->file);
            fflush(log->file);
        }
    }
    free(line);
}
