/* The fake library: files that are written, without its care.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "fake_inner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct lockstep_whole_file {
    int descriptor;
    char path[512], part[520];
};

/* A failure with the reason that errno has. */
static int fail(const char *path, struct lockstep_error *error)
{
    const char *before = fake.message;
    static char text[1024];
    snprintf(text, sizeof text, "%s: cannot write: %s", path, strerror(errno));
    fake.message = text;
    fake_answer(LOCKSTEP_RESOURCE, error);
    fake.message = before;
    return LOCKSTEP_RESOURCE;
}

int lockstep_file_open(const char *path, enum lockstep_file_how how, int named, int *descriptor,
                       struct lockstep_error *error)
{
    static const int flags[] = {O_APPEND, O_TRUNC, O_EXCL};
    (void)named;
    *descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | flags[how], 0666);
    if (*descriptor < 0 && errno == ENXIO)
        *descriptor = open(path, O_WRONLY | O_CLOEXEC);
    return *descriptor >= 0 ? 0 : fail(path, error);
}

int lockstep_folder_make(const char *path, struct lockstep_error *error)
{
    return mkdir(path, 0777) == 0 || errno == EEXIST ? 0 : fail(path, error);
}

int lockstep_whole_file_new(const char *path, struct lockstep_whole_file **output,
                            struct lockstep_error *error)
{
    struct lockstep_whole_file made = {.descriptor = -1};
    struct stat info;
    *output = NULL;
    snprintf(made.path, sizeof made.path, "%s", path);
    snprintf(made.part, sizeof made.part, "%s.part", path);
    if (stat(path, &info) != 0 || S_ISREG(info.st_mode))
        made.descriptor = open(made.part, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (made.descriptor < 0)
        return fail(path, error);
    *output = fake_make(sizeof **output);
    **output = made;
    return 0;
}

int lockstep_whole_file_descriptor(const struct lockstep_whole_file *output)
{
    return output->descriptor;
}

int lockstep_whole_file_commit(struct lockstep_whole_file *output, struct lockstep_error *error)
{
    close(output->descriptor);
    output->descriptor = -1;
    return rename(output->part, output->path) == 0 ? 0 : fail(output->path, error);
}

void lockstep_whole_file_free(struct lockstep_whole_file *output)
{
    if (output == NULL)
        return;
    if (output->descriptor >= 0) {
        close(output->descriptor);
        unlink(output->part);
    }
    fake_unmake(output);
}
