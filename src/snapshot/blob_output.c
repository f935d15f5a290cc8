/* Caffe's binary messages. See snapshot/blob_output.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "snapshot/blob_output.h"

#include <inttypes.h>
#include <limits.h>

#include "base/wire.h"
#include "ir/layout.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "files hold numbers as memory does");

/* Field numbers of Caffe's schema. */
enum { BLOB_DATA = 5, BLOB_DIFF = 6, BLOB_SHAPE = 7, SHAPE_DIM = 1 };

int ls_blob_output_put(struct ls_blob_output *output, const void *bytes, uint64_t size)
{
    output->size += size;
    if (output->file == NULL || size == 0)
        return 0;
    return ls_atomic_write(output->file, bytes, (size_t)size, output->error);
}

int ls_blob_output_text(struct ls_blob_output *output, struct ls_text *text)
{
    int status = text->failed ? ls_fail_memory(output->error, "a file for Caffe")
                              : ls_blob_output_put(output, text->data, text->length);
    ls_text_free(text);
    return status;
}

static uint64_t numbers_size(const struct ls_caffemodel_blob *blob)
{
    return ls_layout_bytes(&ls_layout_plain, &blob->shape, LS_F32);
}

/* All of a BlobProto before its numbers: its shape, and their key and length. */
static void add_head(struct ls_text *text, const struct ls_caffemodel_blob *blob)
{
    struct ls_text dims = {0}, shape = {0};
    for (int axis = 0; axis < blob->shape.rank; axis++)
        ls_wire_add_varint(&dims, (uint64_t)blob->shape.dim[axis]);
    if (dims.length > 0)
        ls_wire_add_bytes(&shape, SHAPE_DIM, dims.data, dims.length);
    ls_wire_add_bytes(text, BLOB_SHAPE, shape.data, shape.length);
    ls_wire_add_head(text, BLOB_DATA, numbers_size(blob));
    text->failed = text->failed || dims.failed || shape.failed;
    ls_text_free(&dims);
    ls_text_free(&shape);
}

int ls_blob_output_blob(struct ls_blob_output *output, uint32_t number,
                        const struct ls_caffemodel_blob *blob)
{
    struct ls_text head = {0}, inner = {0}, diff = {0};
    uint64_t size = numbers_size(blob);
    add_head(&inner, blob);
    if (blob->diff != NULL)
        ls_wire_add_head(&diff, BLOB_DIFF, size);
    ls_wire_add_head(&head, number,
                     inner.length + size + diff.length + (blob->diff != NULL ? size : 0));
    ls_text_add_bytes(&head, inner.data, inner.length);
    head.failed = head.failed || inner.failed || diff.failed;
    ls_text_free(&inner);
    int status = ls_blob_output_text(output, &head);
    if (status == 0)
        status = ls_blob_output_put(output, blob->data, size);
    if (status == 0 && blob->diff != NULL)
        status = ls_blob_output_put(output, diff.data, diff.length);
    if (status == 0 && blob->diff != NULL)
        status = ls_blob_output_put(output, blob->diff, size);
    ls_text_free(&diff);
    return status;
}

int ls_blob_output_write(const char *path, const char *what,
                         int (*put)(struct ls_blob_output *output, const void *user),
                         const void *user, struct ls_error *error)
{
    struct ls_blob_output output = {.error = error};
    LS_TRY(put(&output, user));
    if (output.size > INT_MAX)
        return ls_fail(error, LOCKSTEP_RESOURCE, path, "use safetensors, or HDF5",
                       "the %s would have %" PRIu64 " bytes, and Caffe reads no more than 2 GiB",
                       what, output.size);
    LS_TRY(ls_atomic_open(path, &output.file, error));
    int status = put(&output, user);
    if (status == 0)
        return ls_atomic_commit(output.file, error);
    ls_atomic_abandon(output.file);
    return status;
}
