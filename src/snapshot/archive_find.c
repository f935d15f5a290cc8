/* Looking things up in an archive.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "snapshot/archive.h"

const struct ls_tensor *ls_archive_find(const struct ls_archive *archive, const char *name)
{
    if (archive->by_name == NULL) { /* under construction */
        for (size_t i = 0; i < archive->tensor_count; i++) {
            if (strcmp(archive->tensors[i].name, name) == 0)
                return &archive->tensors[i];
        }
        return NULL;
    }
    size_t low = 0, high = archive->tensor_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct ls_tensor *tensor = &archive->tensors[archive->by_name[middle]];
        int order = strcmp(name, tensor->name);
        if (order == 0)
            return tensor;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

const char *ls_archive_note(const struct ls_archive *archive, const char *key)
{
    for (size_t i = 0; i < archive->note_count; i++) {
        if (strcmp(archive->notes[i].key, key) == 0)
            return archive->notes[i].value;
    }
    return NULL;
}

int ls_archive_take(const struct ls_archive *archive, const char *name, enum ls_dtype type,
                    int64_t count, void *out, struct ls_error *error)
{
    const struct ls_tensor *tensor = ls_archive_find(archive, name);
    if (tensor == NULL)
        return ls_fail(error, LOCKSTEP_WEIGHTS, archive->path, NULL, "has no tensor '%s'", name);
    if (tensor->type != type)
        return ls_fail(error, LOCKSTEP_WEIGHTS, archive->path, NULL,
                       "tensor '%s' has type %s; %s was expected", name,
                       ls_dtype_name(tensor->type), ls_dtype_name(type));
    if (ls_shape_size(&tensor->shape) != count)
        return ls_fail(error, LOCKSTEP_WEIGHTS, archive->path, NULL,
                       "tensor '%s' has %" PRId64 " elements; %" PRId64 " were expected", name,
                       ls_shape_size(&tensor->shape), count);
    ls_tensor_copy(tensor, out);
    return ls_file_lost(&archive->mapping, archive->path, LOCKSTEP_WEIGHTS, error);
}

int ls_archive_take_integer(const struct ls_archive *archive, const char *key, int64_t *value,
                            struct ls_error *error)
{
    const char *text = ls_archive_note(archive, key);
    if (text == NULL)
        return ls_fail(error, LOCKSTEP_WEIGHTS, archive->path, NULL, "has no note '%s'", key);
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0')
        return ls_fail(error, LOCKSTEP_WEIGHTS, archive->path, NULL,
                       "note '%s' is '%s', which is not an integer", key, text);
    *value = number;
    return 0;
}
