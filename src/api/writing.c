/* The public interface: files that a program writes.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/output.h"

#include "api/api.h"
#include "base/atomic_file.h"
#include "base/memory.h"

struct lockstep_whole_file {
    struct ls_atomic_file *file; /* NULL once committed */
};

int lockstep_file_open(const char *path, enum lockstep_file_how how, int named, int *descriptor,
                       struct lockstep_error *error)
{
    struct ls_error *inner = ls_api_error(error);
    LS_TRY(ls_api_require(path, "path", inner));
    return ls_output_open(path, (enum ls_output_how)how, named, descriptor, inner);
}

int lockstep_folder_make(const char *path, struct lockstep_error *error)
{
    struct ls_error *inner = ls_api_error(error);
    LS_TRY(ls_api_require(path, "path", inner));
    return ls_output_folder(path, inner);
}

int lockstep_whole_file_new(const char *path, struct lockstep_whole_file **output,
                            struct lockstep_error *error)
{
    struct ls_error *inner = ls_api_error(error);
    *output = NULL;
    LS_TRY(ls_api_require(path, "path", inner));
    struct lockstep_whole_file *made = ls_alloc(1, sizeof *made);
    if (made == NULL)
        return ls_fail_memory(inner, path);
    const int status = ls_atomic_open(path, &made->file, inner);
    if (status != 0)
        ls_free(made);
    else
        *output = made;
    return status;
}

int lockstep_whole_file_descriptor(const struct lockstep_whole_file *output)
{
    return output->file != NULL ? ls_atomic_descriptor(output->file) : -1;
}

int lockstep_whole_file_commit(struct lockstep_whole_file *output, struct lockstep_error *error)
{
    struct ls_error *inner = ls_api_error(error);
    struct ls_atomic_file *file = output->file;
    if (file == NULL)
        return ls_fail(inner, LOCKSTEP_USAGE, NULL, NULL, "the file is in its place already");
    output->file = NULL;
    return ls_atomic_commit(file, inner);
}

void lockstep_whole_file_free(struct lockstep_whole_file *output)
{
    if (output == NULL)
        return;
    ls_atomic_abandon(output->file);
    ls_free(output);
}
