/* Writing weights as HDF5. See snapshot/caffemodel_hdf5.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "snapshot/caffemodel_hdf5.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/hdf5_arrays.h"
#include "base/hdf5_write.h"
#include "base/text.h"

static int fail_name(const char *problem, const char *layer, struct ls_error *error)
{
    return ls_fail(error, LOCKSTEP_WEIGHTS, NULL,
                   "rename the layer, or write a caffemodel or safetensors", "layer '%s' %s", layer,
                   problem);
}

static const char taken_name[] = "would lie in HDF5 where another layer has a blob or a group";

static int put_blob(struct ls_hdf5 *file, const char *root, const char *layer, size_t number,
                    const struct ls_shape *shape, const float *data, struct ls_error *error)
{
    struct ls_text path = {0};
    ls_text_format(&path, "%s/%s/%zu", root, layer, number);
    int status = path.failed ? ls_fail_memory(error, "weights")
                 : ls_hdf5_kind(file, path.data) != LS_HDF5_ABSENT
                     ? fail_name(taken_name, layer, error)
                     : ls_hdf5_add_floats(file, path.data, shape->rank, shape->dim, data, error);
    ls_text_free(&path);
    return status;
}

/* A name with slashes makes groups within groups, and a dot alone is the group itself: such names
 * would be read back as others. A group cannot have the name of another layer's blob. */
static int check_name(struct ls_hdf5 *file, const char *root, const char *layer,
                      struct ls_error *error)
{
    bool good = true, taken = false;
    const char *part = layer;
    for (size_t length; good && !taken; part += length + 1) {
        length = strcspn(part, "/");
        good = length > 0 && !(length == 1 && part[0] == '.');
        struct ls_text path = {0};
        ls_text_format(&path, "%s/%.*s", root, (int)(part - layer + (ptrdiff_t)length), layer);
        taken = good && !path.failed && ls_hdf5_kind(file, path.data) == LS_HDF5_ARRAY;
        ls_text_free(&path);
        if (part[length] == '\0')
            break;
    }
    if (good && !taken)
        return 0;
    return fail_name(taken ? taken_name : "has a name that HDF5 cannot hold", layer, error);
}

static int put_group(struct ls_hdf5 *file, const char *root, const char *layer,
                     struct ls_error *error)
{
    struct ls_text path = {0};
    ls_text_format(&path, "%s/%s", root, layer);
    int status =
        path.failed ? ls_fail_memory(error, "weights") : ls_hdf5_add_group(file, path.data, error);
    ls_text_free(&path);
    return status;
}

static int put_layer(struct ls_hdf5 *file, const struct ls_caffemodel_layer *layer, bool diff,
                     struct ls_error *error)
{
    const char *root = diff ? "/diff" : "/data";
    const bool needed = layer->blob_count > 0; /* a group of nothing can be left out */
    const int status = check_name(file, root, layer->name, needed ? error : NULL);
    if (status != 0)
        return needed ? status : 0;
    LS_TRY(put_group(file, root, layer->name, error));
    for (size_t i = 0; i < layer->blob_count; i++) {
        const struct ls_caffemodel_blob *blob = &layer->blobs[i];
        const float *numbers = diff ? blob->diff : blob->data;
        if (!blob->shared && numbers != NULL)
            LS_TRY(put_blob(file, root, layer->name, i, &blob->shape, numbers, error));
    }
    return 0;
}

static int put_all(struct ls_hdf5 *file, const struct ls_caffemodel_layer *layers, size_t count,
                   bool diff, struct ls_error *error)
{
    LS_TRY(ls_hdf5_add_group(file, "/data", error));
    for (size_t i = 0; i < count; i++)
        LS_TRY(put_layer(file, &layers[i], false, error));
    for (size_t i = 0; diff && i < count; i++)
        LS_TRY(put_layer(file, &layers[i], true, error));
    return 0;
}

int ls_caffemodel_write_hdf5(const char *path, const struct ls_caffemodel_layer *layers,
                             size_t count, bool diff, struct ls_error *error)
{
    struct ls_hdf5 *file;
    LS_TRY(ls_hdf5_create(path, &file, error));
    int status = put_all(file, layers, count, diff, error);
    if (status == 0)
        return ls_hdf5_commit(file, error);
    ls_hdf5_abandon(file);
    return status;
}
