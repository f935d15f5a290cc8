/* Files that are there as a whole. See cli/output_file.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/output_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/report.h"

bool ls_cli_same_file(const char *a, const char *b)
{
    struct stat first, second;
    return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

/* Whether a file is one of several with commas between. */
static bool is_among(const char *file, const char *list)
{
    bool found = ls_cli_same_file(list, file);
    while (*list != '\0' && !found) {
        const size_t length = strcspn(list, ",");
        char *name = strndup(list, length);
        found = name != NULL && ls_cli_same_file(name, file);
        free(name);
        list += length + (list[length] == ',');
    }
    return found;
}

int ls_cli_check_output(const char *command, const char *output, const char *const *read,
                        size_t count)
{
    for (size_t i = 0; i < count && output != NULL; i++)
        if (read[i] != NULL && is_among(output, read[i]))
            return ls_cli_usage_error("%s: %s is read; what is written would take its place",
                                      command, output);
    return 0;
}

static int fail(const char *path, int reason)
{
    ls_cli_error(LOCKSTEP_RESOURCE, "%s: cannot write: %s", path, strerror(reason));
    return LOCKSTEP_RESOURCE;
}

/* The rename would take the place of a device or a pipe. */
static int check_kind(const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0 || S_ISREG(info.st_mode))
        return 0;
    return ls_cli_error(LOCKSTEP_RESOURCE,
                        "%s: cannot write: names %s. hint: give the name of a file", path,
                        S_ISDIR(info.st_mode) ? "a directory" : "a device or a pipe");
}

int ls_cli_output_open(const char *path, struct ls_cli_output_file *file)
{
    const size_t room = strlen(path) + 32;
    int status = check_kind(path);
    if (status != 0)
        return status;
    *file = (struct ls_cli_output_file){.path = path, .part = malloc(room)};
    if (file->part == NULL)
        return fail(path, ENOMEM);
    snprintf(file->part, room, "%s.part-%ld", path, (long)getpid());
    file->stream = fopen(file->part, "we");
    if (file->stream != NULL)
        return 0;
    const int reason = errno;
    free(file->part);
    file->part = NULL;
    return fail(path, reason);
}

int ls_cli_output_commit(struct ls_cli_output_file *file)
{
    errno = 0;
    bool whole =
        fflush(file->stream) == 0 && !ferror(file->stream) && fsync(fileno(file->stream)) == 0;
    int reason = errno != 0 ? errno : EIO;
    if (fclose(file->stream) != 0 && whole) {
        reason = errno;
        whole = false;
    }
    file->stream = NULL;
    if (whole && rename(file->part, file->path) != 0) {
        reason = errno;
        whole = false;
    }
    if (!whole)
        unlink(file->part);
    free(file->part);
    file->part = NULL;
    return whole ? 0 : fail(file->path, reason);
}

int ls_cli_output_write(const char *path, const char *text, size_t length)
{
    struct ls_cli_output_file file;
    int status = ls_cli_output_open(path, &file);
    if (status != 0)
        return status;
    (void)fwrite(text, 1, length, file.stream); /* whether it failed is asked below */
    return ls_cli_output_commit(&file);
}

void ls_cli_output_abandon(struct ls_cli_output_file *file)
{
    if (file->stream != NULL) {
        (void)fclose(file->stream); /* it goes away */
        unlink(file->part);
    }
    free(file->part);
    *file = (struct ls_cli_output_file){.stream = NULL};
}
