/* Reading Caffe's weights in HDF5: array "/data/<layer>/<n>" is blob n of a layer. A layer's name
 * may have slashes in it, which make groups within groups.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "base/hdf5_arrays.h"
#include "base/memory.h"
#include "base/text.h"
#include "snapshot/weights_build.h"

/* More than this is an attack; groups can also lead back to themselves. */
enum { DEPTH_MAX = 16, GROUPS_MAX = 20000 };

static const char root[] = "/data";

/* The number that a name is, without leading zeros; -1: it is none. */
static int blob_number(const char *name)
{
    size_t length = strlen(name);
    if (length < 1 || length > 4 || strspn(name, "0123456789") != length ||
        (name[0] == '0' && length > 1))
        return -1;
    int number = 0;
    for (const char *p = name; *p != '\0'; p++)
        number = number * 10 + (*p - '0');
    return number;
}

/* Takes over an array; the weights' last layer is its own. */
static int add_array(struct ls_weights *weights, struct ls_hdf5 *file, const char *path, int number,
                     struct ls_error *error)
{
    struct ls_weight_layer *layer = &weights->layers[weights->layer_count - 1];
    struct ls_hdf5_shape found;
    struct ls_shape shape = {0};
    LS_TRY(ls_hdf5_shape(file, path, &found, error));
    for (int i = 0; i < found.rank && i < LS_RANK_MAX; i++)
        shape.dim[i] = found.dim[i];
    shape.rank = found.rank;
    if (found.rank > LS_RANK_MAX || !ls_shape_valid(&shape, true))
        return ls_fail(error, LOCKSTEP_WEIGHTS, weights->path, NULL,
                       "blob %d of layer '%s' has an impossible shape", number, layer->name);
    struct ls_weight_blob *blob;
    LS_TRY(ls_weights_add_blob(weights, layer, number, &shape, &blob, error));
    LS_TRY(ls_weights_make_copy(weights, blob, error));
    return found.count > 0 ? ls_hdf5_read(file, path, blob->copy, error) : 0;
}

struct walk {
    struct ls_weights *weights;
    struct ls_hdf5 *file;
    int groups, depth;
    struct ls_error *error;
};

static int read_group(struct walk *walk, const char *path);

/* An array: the first one makes its group a layer. */
static int read_array(struct walk *walk, const char *group, const char *name, const char *path,
                      bool *layer)
{
    struct ls_weights *weights = walk->weights;
    int number = blob_number(name);
    if (number < 0 || strlen(group) < sizeof root)
        return 0; /* no blob: nothing of Caffe's */
    if (!*layer) {
        char *copy = ls_copy_string(group + sizeof root);
        if (copy == NULL)
            return ls_fail_memory(walk->error, weights->path);
        LS_TRY(ls_weights_add_layer(weights, copy, walk->error));
    }
    *layer = true;
    return add_array(weights, walk->file, path, number, walk->error);
}

/* The groups in a group, or the arrays: blobs go to the layer that was added last. */
static int read_entries(struct walk *walk, const char *group, const struct ls_hdf5_names *names,
                        enum ls_hdf5_kind wanted)
{
    bool layer = false;
    int status = 0;
    for (size_t i = 0; i < names->count && status == 0; i++) {
        struct ls_text path = {0};
        ls_text_format(&path, "%s/%s", group, names->items[i]);
        if (path.failed)
            status = ls_fail_memory(walk->error, walk->weights->path);
        else if (ls_hdf5_kind(walk->file, path.data) == wanted)
            status = wanted == LS_HDF5_GROUP
                         ? read_group(walk, path.data)
                         : read_array(walk, group, names->items[i], path.data, &layer);
        ls_text_free(&path);
    }
    return status;
}

static int read_group(struct walk *walk, const char *path)
{
    struct ls_hdf5_names names;
    if (++walk->groups > GROUPS_MAX || walk->depth == DEPTH_MAX)
        return ls_fail(walk->error, LOCKSTEP_WEIGHTS, walk->weights->path, NULL,
                       "has more groups than a net has layers");
    LS_TRY(ls_hdf5_list(walk->file, path, &names, walk->error));
    walk->depth++;
    int status = read_entries(walk, path, &names, LS_HDF5_ARRAY);
    if (status == 0)
        status = read_entries(walk, path, &names, LS_HDF5_GROUP);
    walk->depth--;
    ls_hdf5_names_free(&names);
    return status;
}

static int read_file(struct ls_weights *weights, struct ls_hdf5 *file, struct ls_error *error)
{
    struct walk walk = {.weights = weights, .file = file, .error = error};
    if (ls_hdf5_kind(file, root) != LS_HDF5_GROUP) {
        if (ls_hdf5_kind(file, "/history") == LS_HDF5_GROUP)
            return ls_fail(error, LOCKSTEP_WEIGHTS, weights->path,
                           "give the .caffemodel.h5 of the same iteration",
                           "holds no weights; it looks like a .solverstate.h5");
        return ls_fail(error, LOCKSTEP_WEIGHTS, weights->path,
                       "HDF5 weights are arrays named /data/<layer>/<n>, as Caffe writes them",
                       "has no group '%s'", root);
    }
    LS_TRY(read_group(&walk, root));
    if (weights->layer_count == 0)
        return ls_fail(error, LOCKSTEP_WEIGHTS, weights->path,
                       "HDF5 weights are arrays named /data/<layer>/<n>, as Caffe writes them",
                       "has no layer with weights");
    return 0;
}

int ls_weights_from_hdf5(const char *path, struct ls_weights *weights, struct ls_error *error)
{
    struct ls_hdf5 *file;
    LS_TRY(ls_hdf5_open(path, LOCKSTEP_WEIGHTS, &file, error));
    int status = read_file(weights, file, error);
    ls_hdf5_close(file);
    return status;
}
