/* Files that are there as a whole. See cli/output_file.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/output_file.h"

#include <errno.h>
#include <fcntl.h>
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

/* A stream on a copy of a descriptor, or on the descriptor itself. NULL and errno. */
static FILE *stream_of(int descriptor, bool copy)
{
    const int fd = copy ? fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1) : descriptor;
    if (fd < 0)
        return NULL;
    const int flags = fcntl(fd, F_GETFL);
    FILE *stream = fdopen(fd, (flags & O_ACCMODE) != O_RDWR ? "w"
                              : (flags & O_APPEND) != 0     ? "a+"
                                                            : "w+");
    const int reason = errno;
    if (stream == NULL)
        close(fd);
    errno = reason;
    return stream;
}

/* Reports what a call of the library has said, and returns its status. */
static int reported(int status, struct lockstep_error *error)
{
    if (status != 0)
        ls_cli_report(status, error);
    lockstep_error_free(error);
    return status;
}

int ls_cli_output_open(const char *path, struct ls_cli_output_file *file)
{
    struct lockstep_error *error = lockstep_error_new();
    *file = (struct ls_cli_output_file){.path = path};
    const int status = reported(lockstep_whole_file_new(path, &file->whole, error), error);
    if (status != 0)
        return status;
    file->stream = stream_of(lockstep_whole_file_descriptor(file->whole), true);
    if (file->stream != NULL)
        return 0;
    const int reason = errno;
    ls_cli_output_abandon(file);
    return fail(path, reason);
}

int ls_cli_output_commit(struct ls_cli_output_file *file)
{
    errno = 0;
    const bool failed = ferror(file->stream) != 0;
    const bool whole = fclose(file->stream) == 0 && !failed;
    const int reason = errno != 0 ? errno : EIO;
    file->stream = NULL;
    int status;
    if (whole) {
        struct lockstep_error *error = lockstep_error_new();
        status = reported(lockstep_whole_file_commit(file->whole, error), error);
    } else {
        status = fail(file->path, reason);
    }
    ls_cli_output_abandon(file);
    return status;
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
    if (file->stream != NULL)
        (void)fclose(file->stream); /* it goes away */
    lockstep_whole_file_free(file->whole);
    *file = (struct ls_cli_output_file){.stream = NULL};
}

FILE *ls_cli_output_stream(const char *path, enum lockstep_file_how how, bool named)
{
    struct lockstep_error *error = lockstep_error_new();
    int descriptor;
    if (reported(lockstep_file_open(path, how, named, &descriptor, error), error) != 0)
        return NULL;
    FILE *stream = stream_of(descriptor, false);
    if (stream == NULL)
        fail(path, errno);
    return stream;
}

int ls_cli_output_folder(const char *path)
{
    struct lockstep_error *error = lockstep_error_new();
    return reported(lockstep_folder_make(path, error), error);
}
