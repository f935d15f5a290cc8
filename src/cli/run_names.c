/* Short names of runs. See cli/run_names.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/run_names.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Bytes at the beginning that are the same folders in all paths. */
static size_t common_folders(const char *const *paths, size_t count)
{
    size_t end = 0;
    for (size_t at = 0; paths[0][at] != '\0'; at++) {
        for (size_t i = 1; i < count; i++)
            if (paths[i][at] != paths[0][at])
                return end;
        if (paths[0][at] == '/')
            end = at + 1;
    }
    return end;
}

/* Bytes at the end, with the slash in front of them, that are the same folders and file in all. */
static size_t common_end(const char *const *paths, size_t count, size_t begin)
{
    const size_t length = strlen(paths[0]);
    size_t end = 0;
    for (size_t back = 1; begin + back < length; back++) {
        const char c = paths[0][length - back];
        for (size_t i = 1; i < count; i++) {
            const size_t other = strlen(paths[i]);
            if (begin + back >= other || paths[i][other - back] != c)
                return end;
        }
        if (c == '/')
            end = back;
    }
    return end;
}

static void cut_extension(char *name)
{
    char *slash = strrchr(name, '/'), *dot = strrchr(name, '.');
    if (dot != NULL && dot != name && (slash == NULL || dot > slash + 1))
        *dot = '\0';
}

/* The file without what follows its dot, or the folder of a "log.json". */
static void name_one(const char *path, char name[LS_CLI_RUN_NAME])
{
    const char *slash = strrchr(path, '/');
    if (slash != NULL && slash > path && strcmp(slash, "/log.json") == 0) {
        const char *begin = slash;
        while (begin > path && begin[-1] != '/')
            begin--;
        if (strspn(begin, ".") < (size_t)(slash - begin)) {
            snprintf(name, LS_CLI_RUN_NAME, "%.*s", (int)(slash - begin), begin);
            return;
        }
    }
    snprintf(name, LS_CLI_RUN_NAME, "%s", slash != NULL ? slash + 1 : path);
    cut_extension(name);
}

void ls_cli_run_names(const char *const *paths, size_t count, char (*names)[LS_CLI_RUN_NAME])
{
    if (count == 1) {
        name_one(paths[0], names[0]);
        return;
    }
    const size_t begin = count > 0 ? common_folders(paths, count) : 0;
    const size_t end = count > 0 ? common_end(paths, count, begin) : 0;
    for (size_t i = 0; i < count; i++) {
        const size_t length = strlen(paths[i]) - begin - end;
        bool again = false;
        snprintf(names[i], LS_CLI_RUN_NAME, "%.*s", (int)length, paths[i] + begin);
        if (end == 0)
            cut_extension(names[i]);
        for (size_t k = 0; k < i; k++)
            again = again || strcmp(names[i], names[k]) == 0;
        const size_t used = strlen(names[i]);
        if (again && used + 8 < LS_CLI_RUN_NAME)
            snprintf(names[i] + used, LS_CLI_RUN_NAME - used, " (%zu)", i + 1);
    }
}
