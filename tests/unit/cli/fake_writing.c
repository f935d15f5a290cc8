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

int lockstep_file_open(const char *path, enum lockstep_file_how how, int named, int *descriptor,
                       struct lockstep_error *error)
{
    static const int flags[] = {O_APPEND, O_TRUNC, O_EXCL};
    (void)named;
    *descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | flags[how], 0666);
    if (*descriptor < 0 && errno == ENXIO)
        *descriptor = open(path, O_WRONLY | O_CLOEXEC);
    return fake_answer(*descriptor >= 0 ? 0 : LOCKSTEP_RESOURCE, error);
}

int lockstep_folder_make(const char *path, struct lockstep_error *error)
{
    return fake_answer(mkdir(path, 0777) == 0 || errno == EEXIST ? 0 : LOCKSTEP_RESOURCE, error);
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
        return fake_answer(LOCKSTEP_RESOURCE, error);
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
    return fake_answer(rename(output->part, output->path) == 0 ? 0 : LOCKSTEP_RESOURCE, error);
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
