/* What the source layers (Data, Input, DummyData) share. See layers/source.h and source_layer.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/source.h"

#include <string.h>

#include "layers/source_layer.h"
#include "schema/data_layers.h"

/* The extent of an axis of the first shape. */
static int64_t first_dim(const Lockstep__BlobShape *const *shapes, size_t count, size_t axis)
{
    return count > 0 && shapes[0]->n_dim > axis ? shapes[0]->dim[axis] : 0;
}

size_t ls_input_sample_axis(const Lockstep__InputParameter *param, size_t top)
{
    if (param->n_sample_axis == 0)
        return 0;
    return param->sample_axis[param->n_sample_axis == 1 || top >= param->n_sample_axis ? 0 : top];
}

int ls_source_axis(const Lockstep__LayerParameter *layer, int top)
{
    const Lockstep__DataParameter *data = layer->data_param;
    if (ls_data_layer_takes_input(layer) && layer->input_param != NULL)
        return (int)ls_input_sample_axis(layer->input_param, (size_t)top);
    if (!ls_data_layer_reads(layer) || data == NULL || (size_t)top >= data->n_tensor)
        return 0;
    return (int)data->tensor[top]->sample_axis;
}

int64_t ls_source_batch(const Lockstep__LayerParameter *layer)
{
    const char *type = layer->type != NULL ? layer->type : "";
    int64_t batch = 0;
    if (ls_data_layer_reads(layer) && layer->data_param != NULL)
        batch = layer->data_param->batch_size;
    if (ls_data_layer_takes_input(layer) && layer->input_param != NULL)
        batch = first_dim((const Lockstep__BlobShape *const *)layer->input_param->shape,
                          layer->input_param->n_shape, ls_input_sample_axis(layer->input_param, 0));
    if (strcmp(type, "DummyData") == 0 && layer->dummy_data_param != NULL) {
        const Lockstep__DummyDataParameter *param = layer->dummy_data_param;
        batch = param->n_num > 0 ? param->num[0]
                                 : first_dim((const Lockstep__BlobShape *const *)param->shape,
                                             param->n_shape, 0);
    }
    return batch > 0 ? batch : 0;
}

int ls_source_check_batch(const struct ls_layer *layer, struct ls_error *error, const void *message,
                          const char *field, int64_t batch)
{
    const struct ls_source_shapes *sources = layer->graph->sources;
    int64_t expected = sources != NULL ? sources->batch : 0;
    if (expected < 0)
        return 0;
    if (batch < 1)
        return ls_layer_fail(layer, error, message, field, NULL,
                             "a batch of %lld samples is not possible", (long long)batch);
    /* What a source brings for a batch may have other rows than samples: those of all regions of
     * its pictures, for example. */
    if (expected != 0 && batch != expected && !ls_layer_mix(layer))
        return ls_layer_fail(layer, error, message, field, NULL,
                             "has batches of %lld samples, but those of the net have %lld",
                             (long long)batch, (long long)expected);
    return 0;
}

int ls_source_read_shape(const struct ls_layer *layer, struct ls_error *error,
                         const Lockstep__BlobShape *shape, size_t sample_axis, struct ls_shape *out)
{
    if (shape->n_dim < 1 || shape->n_dim > LS_RANK_MAX)
        return ls_layer_fail(layer, error, shape, NULL, NULL,
                             "a shape needs 1 to %d extents (dim), the first one being the batch; "
                             "this one has %zu",
                             LS_RANK_MAX, shape->n_dim);
    if (sample_axis >= shape->n_dim)
        return ls_layer_fail(layer, error, shape, NULL, NULL,
                             "samples are to lie along axis %zu, which a shape of %zu extents does "
                             "not have",
                             sample_axis, shape->n_dim);
    *out = (struct ls_shape){.rank = (int)shape->n_dim};
    for (int i = 0; i < out->rank; i++) {
        out->dim[i] = shape->dim[i];
        if (shape->dim[i] < 1)
            return ls_layer_fail(layer, error, shape, "dim", NULL,
                                 "extent %lld of axis %d is not possible", (long long)shape->dim[i],
                                 i);
    }
    LS_TRY(ls_source_check_batch(layer, error, shape, "dim", out->dim[sample_axis]));
    LS_TRY(ls_layer_check_shape(layer, error, "the top", out));
    ls_source_cut(layer, sample_axis, out);
    return 0;
}

void ls_source_cut(const struct ls_layer *layer, size_t sample_axis, struct ls_shape *shape)
{
    const struct ls_source_shapes *sources = layer->graph->sources;
    bool differs = sources != NULL && sources->batch > 0 && layer->graph->whole &&
                   shape->dim[sample_axis] != sources->batch;
    if (!differs)
        shape->dim[sample_axis] = layer->graph->samples;
}
