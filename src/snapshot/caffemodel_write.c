/* Writing a caffemodel. Everything but the numbers is put into a text first, so that the lengths
 * that stand before each message are known; the numbers are written from where they are.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "snapshot/caffemodel.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "base/atomic_file.h"
#include "base/text.h"
#include "base/wire.h"
#include "ir/layout.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "files hold numbers as memory does");

/* Field numbers of Caffe's schema. */
enum {
    NET_NAME = 1,
    NET_LAYER = 100,
    LAYER_NAME = 1,
    LAYER_TYPE = 2,
    LAYER_BOTTOM = 3,
    LAYER_TOP = 4,
    LAYER_BLOBS = 7,
    BLOB_DATA = 5,
    BLOB_DIFF = 6,
    BLOB_SHAPE = 7,
    SHAPE_DIM = 1
};

static uint64_t numbers_size(const struct ls_caffemodel_blob *blob)
{
    return ls_layout_bytes(&ls_layout_plain, &blob->shape, LS_F32);
}

/* All of a BlobProto before its numbers: its shape, and their key and length. */
static void add_blob_head(struct ls_text *text, const struct ls_caffemodel_blob *blob)
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

static void add_string(struct ls_text *text, uint32_t number, const char *string)
{
    ls_wire_add_bytes(text, number, string, strlen(string));
}

/* All of a LayerParameter before its blobs. */
static void add_layer_head(struct ls_text *text, const struct ls_caffemodel_layer *layer)
{
    add_string(text, LAYER_NAME, layer->name);
    add_string(text, LAYER_TYPE, layer->type);
    for (size_t i = 0; i < layer->bottom_count; i++)
        add_string(text, LAYER_BOTTOM, layer->bottoms[i]);
    for (size_t i = 0; i < layer->top_count; i++)
        add_string(text, LAYER_TOP, layer->tops[i]);
}

/* Where the bytes go: counted only, as long as there is no file. */
struct output {
    struct ls_atomic_file *file;
    uint64_t size;
    struct ls_error *error;
};

static int put(struct output *output, const void *bytes, uint64_t size)
{
    output->size += size;
    if (output->file == NULL || size == 0)
        return 0;
    return ls_atomic_write(output->file, bytes, (size_t)size, output->error);
}

static int put_text(struct output *output, struct ls_text *text)
{
    int status = text->failed ? ls_fail_memory(output->error, "a caffemodel")
                              : put(output, text->data, text->length);
    ls_text_free(text);
    return status;
}

static int put_blob(struct output *output, const struct ls_caffemodel_blob *blob)
{
    struct ls_text head = {0}, inner = {0}, diff = {0};
    add_blob_head(&inner, blob);
    if (blob->diff != NULL)
        ls_wire_add_head(&diff, BLOB_DIFF, numbers_size(blob));
    uint64_t behind = blob->diff != NULL ? diff.length + numbers_size(blob) : 0;
    ls_wire_add_head(&head, LAYER_BLOBS, inner.length + numbers_size(blob) + behind);
    ls_text_add_bytes(&head, inner.data, inner.length);
    head.failed = head.failed || inner.failed;
    ls_text_free(&inner);
    int status = put_text(output, &head);
    if (status == 0)
        status = put(output, blob->data, numbers_size(blob));
    int ended = put_text(output, &diff); /* nothing without a gradient */
    status = status != 0 ? status : ended;
    return status == 0 && blob->diff != NULL ? put(output, blob->diff, numbers_size(blob)) : status;
}

static int put_layer(struct output *output, const struct ls_caffemodel_layer *layer)
{
    struct output counted = {.error = output->error};
    for (size_t i = 0; i < layer->blob_count; i++)
        LS_TRY(put_blob(&counted, &layer->blobs[i]));
    struct ls_text head = {0}, inner = {0};
    add_layer_head(&inner, layer);
    ls_wire_add_head(&head, NET_LAYER, inner.length + counted.size);
    ls_text_add_bytes(&head, inner.data, inner.length);
    head.failed = head.failed || inner.failed;
    ls_text_free(&inner);
    LS_TRY(put_text(output, &head));
    for (size_t i = 0; i < layer->blob_count; i++)
        LS_TRY(put_blob(output, &layer->blobs[i]));
    return 0;
}

static int put_net(struct output *output, const char *name,
                   const struct ls_caffemodel_layer *layers, size_t count)
{
    struct ls_text head = {0};
    add_string(&head, NET_NAME, name);
    LS_TRY(put_text(output, &head));
    for (size_t i = 0; i < count; i++)
        LS_TRY(put_layer(output, &layers[i]));
    return 0;
}

bool ls_caffemodel_is_hdf5(const char *path)
{
    size_t length = strlen(path);
    return length >= 3 && strcmp(path + length - 3, ".h5") == 0;
}

int ls_caffemodel_write(const char *path, const char *net_name,
                        const struct ls_caffemodel_layer *layers, size_t count,
                        struct ls_error *error)
{
    struct output output = {.error = error};
    LS_TRY(put_net(&output, net_name, layers, count));
    if (output.size > INT_MAX)
        return ls_fail(error, LOCKSTEP_RESOURCE, path, "use safetensors",
                       "the caffemodel would have %" PRIu64
                       " bytes, and Caffe reads no more than 2 GiB",
                       output.size);
    LS_TRY(ls_atomic_open(path, &output.file, error));
    int status = put_net(&output, net_name, layers, count);
    if (status == 0)
        return ls_atomic_commit(output.file, error);
    ls_atomic_abandon(output.file);
    return status;
}
