/* Builds the graph of a net from text, and describes it as text.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_ONE_NET_H
#define LS_TESTS_ONE_NET_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/text.h"
#include "graph/build.h"
#include "ir/layer.h"
#include "schema/net.h"
#include "schema/text_format.h"
#include "schema/upgrade.h"

struct one_net {
    struct ls_net_definition net;
    struct ls_parameter_set *parameters;
    struct ls_graph *graph; /* NULL: it was refused */
    struct ls_error error;
    int status;
};

/* What a Data layer called "data" reads: 3 x 16 x 16. */
static struct ls_source_tensor one_net_tensors[] = {{{3, {3, 16, 16}}, LS_F32}, {{0, {0}}, LS_F32}};
static const struct ls_source_shape one_net_sample = {
    .layer = "data", .tensor = one_net_tensors, .tensors = 2};
static const struct ls_source_shapes one_net_sources = {.item = &one_net_sample, .count = 1};

/* Builds the graph of a net for `samples` samples; training has a backward pass. */
static inline void open_net(struct one_net *one, const char *text, bool training, int64_t samples)
{
    *one = (struct one_net){0};
    struct ls_definition *definition = NULL;
    int phase = training ? LOCKSTEP__PHASE__TRAIN : LOCKSTEP__PHASE__TEST;
    struct ls_net_state state = {.phase = (Lockstep__Phase)phase};
    int status = ls_text_read("net.prototxt", text, strlen(text),
                              &lockstep__net_parameter__descriptor, &definition, &one->error);
    if (status == 0)
        status =
            ls_net_upgrade(definition, (Lockstep__NetParameter *)definition->message, &one->error);
    if (status == 0)
        status = ls_net_filter(definition, (Lockstep__NetParameter *)definition->message, &state,
                               &one->net, &one->error);
    if (status != 0)
        fail_msg("%s: %s", one->error.problems[0].place, one->error.problems[0].message);
    one->net.definition = definition;
    one->parameters = ls_parameter_set_new();
    const struct ls_graph_options options = {.net = &one->net,
                                             .phase = phase,
                                             .samples = samples,
                                             .seed = 1,
                                             .training = training,
                                             .parameters = one->parameters,
                                             .sources = &one_net_sources};
    one->status = ls_graph_build(&options, &one->graph, &one->error);
}

static inline void close_net(struct one_net *one)
{
    ls_graph_free(one->graph);
    ls_parameter_set_free(one->parameters);
    ls_definition_free(one->net.definition);
}

/* "conv1 2x20x12x12\n" for every top that has bytes, in the order of the net. */
static inline void describe_blobs(struct ls_text *text, const struct ls_graph *graph)
{
    for (size_t i = 0; i < graph->layer_count; i++) {
        const struct ls_layer *layer = graph->layers[i];
        for (int t = 0; t < layer->tops; t++) {
            const struct ls_value *value = layer->top[t];
            if (value->storage == LS_STORE_NONE)
                continue;
            ls_text_format(text, "%s ", layer->definition->top[t]);
            for (int d = 0; d < value->shape.rank; d++)
                ls_text_format(text, "%s%lld", d > 0 ? "x" : "", (long long)value->shape.dim[d]);
            ls_text_add(text, "\n");
        }
    }
}

/* "conv1: convolution\n" for every op of one direction. */
static inline void describe_kinds(struct ls_text *text, const struct ls_graph *graph, bool backward)
{
    for (size_t i = 0; i < graph->op_count; i++) {
        const struct ls_op *op = graph->ops[i];
        if (op->backward == backward)
            ls_text_format(text, "%s: %s\n", op->layer->name, ls_op_kind_name(op->kind));
    }
}

#endif
