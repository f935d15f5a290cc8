/* Mean files: a BlobProto of extents 1 x C x H x W, as Caffe's compute_image_mean writes it.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/mean_file.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/atomic_file.h"
#include "base/memory.h"
#include "data/source.h"
#include "schema/binary.h"

/* The extents of a blob, in either form, without leading ones down to three. False if there are
 * more, or fewer. */
static bool blob_shape(const Lockstep__BlobProto *blob, int64_t shape[3])
{
    int64_t dim[4] = {blob->num, blob->channels, blob->height, blob->width};
    size_t rank = 4;
    if (blob->shape != NULL) {
        rank = blob->shape->n_dim;
        if (rank < 3 || rank > 4)
            return false;
        memcpy(dim, blob->shape->dim, rank * sizeof *dim);
    }
    if (rank == 4 && dim[0] != 1)
        return false;
    memcpy(shape, dim + rank - 3, 3 * sizeof *shape);
    return true;
}

static int copy_mean(const char *path, const Lockstep__BlobProto *blob, const int64_t shape[3],
                     float **mean, struct ls_error *error)
{
    const char *hint = "a mean file has the size of the records, before any crop; `lockstep mean` "
                       "makes one";
    int64_t have[3];
    if (!blob_shape(blob, have))
        return ls_fail(error, LOCKSTEP_DATA, path, hint, "is not the mean of pictures");
    if (memcmp(have, shape, sizeof have) != 0)
        return ls_fail(error, LOCKSTEP_DATA, path, hint,
                       "is a mean of %" PRId64 " x %" PRId64 " x %" PRId64
                       " numbers; the records have %" PRId64 " x %" PRId64 " x %" PRId64,
                       have[0], have[1], have[2], shape[0], shape[1], shape[2]);
    size_t size = (size_t)ls_record_size(shape);
    bool in_double = blob->n_data == 0 && blob->n_double_data > 0;
    if ((in_double ? blob->n_double_data : blob->n_data) != size)
        return ls_fail(error, LOCKSTEP_DATA, path, NULL, "has %zu numbers where %zu should be",
                       in_double ? blob->n_double_data : blob->n_data, size);
    *mean = ls_alloc(size, sizeof **mean);
    if (*mean == NULL)
        return ls_fail_memory(error, "a mean picture");
    for (size_t i = 0; i < size; i++) {
        (*mean)[i] = in_double ? (float)blob->double_data[i] : blob->data[i];
        if (!isfinite((*mean)[i]))
            return ls_fail(error, LOCKSTEP_DATA, path, NULL, "number %zu is not finite", i);
    }
    return 0;
}

int ls_mean_shape(const char *path, int64_t shape[3], struct ls_error *error)
{
    struct ls_definition *file = NULL;
    LS_TRY(ls_definition_read_file(path, &lockstep__blob_proto__descriptor, LOCKSTEP_DATA, &file,
                                   error));
    bool good = blob_shape((const Lockstep__BlobProto *)file->message, shape) &&
                ls_record_shape_valid(shape);
    ls_definition_free(file);
    return good ? 0 : ls_fail(error, LOCKSTEP_DATA, path, NULL, "is not the mean of pictures");
}

int ls_mean_read(const char *path, const int64_t shape[3], float **mean, struct ls_error *error)
{
    *mean = NULL;
    struct ls_definition *file = NULL;
    LS_TRY(ls_definition_read_file(path, &lockstep__blob_proto__descriptor, LOCKSTEP_DATA, &file,
                                   error));
    int status = copy_mean(path, (const Lockstep__BlobProto *)file->message, shape, mean, error);
    ls_definition_free(file);
    if (status != 0) {
        ls_free(*mean);
        *mean = NULL;
    }
    return status;
}

int ls_mean_write(const char *path, const int64_t shape[3], const float *mean,
                  struct ls_error *error)
{
    Lockstep__BlobProto blob = LOCKSTEP__BLOB_PROTO__INIT;
    blob.has_num = blob.has_channels = blob.has_height = blob.has_width = 1;
    blob.num = 1;
    blob.channels = (int32_t)shape[0];
    blob.height = (int32_t)shape[1];
    blob.width = (int32_t)shape[2];
    blob.n_data = (size_t)ls_record_size(shape);
    blob.data = (float *)(uintptr_t)mean;
    uint8_t *bytes = NULL;
    size_t length = 0;
    LS_TRY(ls_binary_write(&blob.base, &bytes, &length, error));
    int status = ls_atomic_replace(path, bytes, length, error);
    ls_free(bytes);
    return status;
}
