/* HDF5Output: what two blobs hold of all samples of a test, written to an HDF5 file.
 *
 * Bottoms data [N, ...] and label [N, ...] become the data sets "data" and "label" of the file
 * hdf5_output_param.file_name, with a row for each sample of the test in the order of the data.
 * Rows that a Filter layer leaves out are not written. As in Caffe each has four axes, filled up
 * with ones; more axes than that stay. Each test phase writes the file as a whole when it has
 * ended; until then one that was there before stays.
 *
 * Caffe writes one batch and fails at the second; in training the layer is refused, since a
 * training has no last sample.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "ir/filter.h"
#include "layers/common.h"

static int check_file(const struct ls_layer *layer, struct ls_error *error)
{
    const struct ls_graph *graph = layer->graph;
    const Lockstep__HDF5OutputParameter *param = layer->definition->hdf5_output_param;
    if (param == NULL || param->file_name == NULL || param->file_name[0] == '\0')
        return ls_layer_fail(layer, error, param, NULL,
                             "write hdf5_output_param { file_name: \"rows.h5\" }",
                             "it needs the name of a file to write");
    for (size_t i = 0; i < graph->row_file_count; i++)
        if (strcmp(graph->row_files[i].path, param->file_name) == 0)
            return ls_layer_fail(layer, error, param, "file_name", "give it a file of its own",
                                 "layer '%s' writes '%s', too", graph->row_files[i].layer->name,
                                 param->file_name);
    return 0;
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    const struct ls_value *data = layer->bottom[0], *label = layer->bottom[1];
    char a[160], b[160];
    LS_TRY(ls_layer_begin(layer, error, NULL));
    LS_TRY(check_file(layer, error));
    LS_TRY(ls_layer_check_samples(layer, error, 0));
    LS_TRY(ls_layer_check_samples(layer, error, 1));
    const bool mixed = ls_layer_is_mixed(layer, data) || ls_layer_is_mixed(layer, label);
    if (data->shape.dim[0] != label->shape.dim[0] || (data->rows != label->rows && !mixed))
        return ls_layer_fail(layer, error, NULL, "bottom", NULL,
                             "its bottoms must agree in axis 0, but '%s' is %s and '%s' is %s",
                             data->name, ls_shape_text(&data->shape, a, sizeof a), label->name,
                             ls_shape_text(&label->shape, b, sizeof b));
    if (data->selected != label->selected)
        return ls_layer_fail(layer, error, NULL, "bottom",
                             "let both be tops of the same Filter layer",
                             "its bottoms have not the same samples: a Filter layer leaves out "
                             "other ones of '%s' than of '%s'",
                             data->name, label->name);
    if (layer->graph->phase != LOCKSTEP__PHASE__TEST)
        return ls_layer_fail(layer, error, NULL, "type",
                             "write include { phase: TEST } into the layer",
                             "an HDF5Output layer writes what a test computes, and this net is "
                             "trained");
    return 0;
}

/* A plain copy in fp32, whatever the value is in the plan. */
static int collect(struct ls_layer *layer, const char *name, struct ls_value *value)
{
    struct ls_graph *graph = layer->graph;
    struct ls_value *copy = ls_graph_value(graph, value->name, &value->shape, value);
    ls_filter_emit(graph, value, NULL, 0, copy);
    return ls_graph_collect(graph, name, copy);
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    static const char *const datasets[LS_ROW_FILE_TENSORS] = {"data", "label"};
    struct ls_row_file file = {
        .layer = layer, .path = layer->definition->hdf5_output_param->file_name, .selected = -1};
    for (int i = 0; i < LS_ROW_FILE_TENSORS; i++) {
        file.dataset[i] = datasets[i];
        file.state[i] = collect(layer, datasets[i], layer->bottom[i]);
    }
    if (layer->bottom[0]->selected != NULL)
        file.selected = collect(layer, "selected", layer->bottom[0]->selected);
    ls_graph_row_file(layer->graph, file);
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    for (int i = 0; i < layer->bottoms; i++)
        cost->forward_bytes += 2 * ls_layer_bytes(layer->bottom[i]);
}

const struct ls_layer_type ls_layer_hdf5_output = {
    .type = "HDF5Output",
    .parameter = "hdf5_output_param",
    .bottoms_min = 2,
    .bottoms_max = 2,
    .tops_max = 0,
    .filtered = LS_FILTERED_COUNTED,
    .setup = setup,
    .forward = forward,
    .cost = cost,
};
