/* Writing a caffemodel.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "snapshot/caffemodel.h"

#include <string.h>

#include "base/wire.h"
#include "snapshot/blob_output.h"

/* Field numbers of Caffe's schema. */
enum {
    NET_NAME = 1,
    NET_LAYER = 100,
    LAYER_NAME = 1,
    LAYER_TYPE = 2,
    LAYER_BOTTOM = 3,
    LAYER_TOP = 4,
    LAYER_BLOBS = 7
};

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

static int put_layer(struct ls_blob_output *output, const struct ls_caffemodel_layer *layer)
{
    struct ls_blob_output counted = {.error = output->error};
    for (size_t i = 0; i < layer->blob_count; i++)
        LS_TRY(ls_blob_output_blob(&counted, LAYER_BLOBS, &layer->blobs[i]));
    struct ls_text head = {0}, inner = {0};
    add_layer_head(&inner, layer);
    ls_wire_add_head(&head, NET_LAYER, inner.length + counted.size);
    ls_text_add_bytes(&head, inner.data, inner.length);
    head.failed = head.failed || inner.failed;
    ls_text_free(&inner);
    LS_TRY(ls_blob_output_text(output, &head));
    for (size_t i = 0; i < layer->blob_count; i++)
        LS_TRY(ls_blob_output_blob(output, LAYER_BLOBS, &layer->blobs[i]));
    return 0;
}

struct net {
    const char *name;
    const struct ls_caffemodel_layer *layers;
    size_t count;
};

static int put_net(struct ls_blob_output *output, const void *user)
{
    const struct net *net = user;
    struct ls_text head = {0};
    add_string(&head, NET_NAME, net->name);
    LS_TRY(ls_blob_output_text(output, &head));
    for (size_t i = 0; i < net->count; i++)
        LS_TRY(put_layer(output, &net->layers[i]));
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
    struct net net = {net_name, layers, count};
    return ls_blob_output_write(path, "caffemodel", put_net, &net, error);
}
