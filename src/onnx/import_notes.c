/* Import: what the user should know of the net, which the model does not say or does not have.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#include "onnx/importer.h"

enum { NAMED = 3 }; /* layers of a kind that are named */

static void list_layer(struct ls_onnx_listed *listed, const char *layer, const char *as)
{
    if (listed->last != NULL && strcmp(listed->last, layer) == 0)
        return;
    listed->last = layer;
    if (++listed->count > NAMED)
        return;
    ls_text_format(&listed->names, "%s'%.100s'", listed->count > 1 ? ", " : "", layer);
    if (as != NULL)
        ls_text_format(&listed->names, " (as '%.100s')", as);
}

/* The layer of a weight "conv1.weight", in the arena. */
static const char *layer_of(struct ls_importer *x, const char *weight)
{
    return ls_arena_copy(x->arena, weight, (size_t)(strrchr(weight, '.') - weight));
}

void ls_import_note_weight(struct ls_importer *x, const char *layer,
                           const struct ls_onnx_value *value, bool tied)
{
    const struct ls_onnx_net *net = x->net;
    const struct ls_onnx_net_weight *own = &net->weights[net->weight_count - 1];
    size_t at;
    if (!ls_import_learns(x, value)) {
        list_layer(&x->frozen, layer, NULL);
        return;
    }
    if (!ls_names_find(&x->names, value->name, &at) || x->values[at].maker != SIZE_MAX)
        return;
    struct ls_onnx_value *from = &x->values[at];
    if (from->weight == 0) {
        from->weight = net->weight_count;
        return;
    }
    const struct ls_onnx_net_weight *first = &net->weights[from->weight - 1];
    if (!tied && ls_shape_equal(&first->shape, &own->shape) &&
        memcmp(first->numbers, own->numbers,
               (size_t)ls_shape_size(&own->shape) * sizeof *own->numbers) == 0)
        list_layer(&x->apart, layer, layer_of(x, first->name));
}

/* ---- Batch norms that were folded ------------------------------------------------------------ */

static bool is_activation(const char *type)
{
    static const char *const types[] = {"Relu",    "LeakyRelu", "PRelu",      "Clip",
                                        "Sigmoid", "HardSwish", "HardSigmoid"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i], type) == 0)
            return true;
    return false;
}

/* Whether a convolution may have taken in a batch norm. torch's older exporter calls its weights
 * otherwise then. */
static bool may_be_folded(const struct ls_importer *x, const Onnx__NodeProto *node)
{
    size_t at;
    if ((strcmp(node->op_type, "Conv") != 0 && strcmp(node->op_type, "ConvTranspose") != 0) ||
        node->n_input < 3 || *node->input[2] == '\0' || node->n_output < 1 ||
        !ls_names_find(&x->names, node->output[0], &at) || x->values[at].user == SIZE_MAX)
        return false;
    if (node->name != NULL && node->name[0] == '/')
        return strncmp(node->input[2], "onnx::", 6) == 0;
    return is_activation(x->graph->node[x->values[at].user]->op_type);
}

static bool has_folded_norms(const struct ls_importer *x)
{
    bool found = false;
    for (size_t i = 0; i < x->graph->n_node; i++) {
        if (strcmp(x->graph->node[i]->op_type, "BatchNormalization") == 0)
            return false;
        found = found || may_be_folded(x, x->graph->node[i]);
    }
    return found;
}

/* ---- All of it ------------------------------------------------------------------------------- */

static void add_listed(struct ls_text *text, const struct ls_onnx_listed *listed, const char *one,
                       const char *many, const char *end)
{
    if (listed->count == 0)
        return;
    if (listed->count == 1)
        ls_text_format(text, "a layer %s", one);
    else
        ls_text_format(text, "%zu layers %s", listed->count, many);
    ls_text_format(text, "%s: %s%s\n", end, listed->names.data != NULL ? listed->names.data : "",
                   listed->count > NAMED ? " and others" : "");
}

int ls_import_write_notes(struct ls_importer *x)
{
    struct ls_text *text = &x->net->notes;
    add_listed(text, &x->frozen, "has constants of the model", "have constants of the model",
               " in place of weights, which do not learn (lr_mult: 0)");
    add_listed(text, &x->apart, "begins with the weights of another",
               "begin with the weights of others",
               "; they learn apart from there on, and --tie keeps them in common");
    if (has_folded_norms(x))
        ls_text_add(text, "the model has no BatchNorm: if it had some, the exporter folded them "
                          "into the convolutions; to keep them, export the training form (torch: "
                          "dynamo=False, training=TrainingMode.TRAINING, "
                          "do_constant_folding=False)\n");
    return text->failed || x->frozen.names.failed || x->apart.names.failed ? ls_import_no_memory(x)
                                                                           : 0;
}
