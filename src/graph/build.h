/* From a definition to a graph: which layers take part, their inputs, shapes, parameters, the
 * backward pass, rewrites.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_GRAPH_BUILD_H
#define LS_GRAPH_BUILD_H

#include "ir/graph.h"
#include "layers/source.h"
#include "schema/net.h"

struct ls_graph_options {
    const struct ls_net_definition *net; /* filtered for its state; outlives the graph */
    int phase;                           /* LOCKSTEP__PHASE__TRAIN or _TEST */
    int64_t samples;                     /* in a micro-batch */
    bool whole;                          /* a micro-batch is a whole batch */
    int64_t update_samples;              /* in all batches of an update; 0: there are none */
    uint64_t seed;
    bool training;     /* with a backward pass */
    bool round_inputs; /* inputs that layers in bf16 alone read are bf16, as these layers would
                          round them; else numbers of callers, who know of no bf16 */
    struct ls_parameter_set *parameters; /* grows by what the net adds */
    const struct ls_source_shapes *sources;
    /* (optional) A further check of the layers that could be set up; it runs also where others had
     * problems, so that all are reported in one go. */
    int (*check)(const struct ls_graph *graph, struct ls_error *error);
};

/* Builds the graph, or reports all problems that can be seen. The caller frees the graph. */
int ls_graph_build(const struct ls_graph_options *options, struct ls_graph **graph,
                   struct ls_error *error);

/* The layer of the net that mixes samples first, so that its micro-batches must be whole batches
 * (ls_layer_mix); NULL: no layer does. `options` describe a batch. What is wrong with the net the
 * next graph says; this fails only where there is no memory. */
int ls_graph_find_mixer(const struct ls_graph_options *options,
                        const Lockstep__LayerParameter **mixer, struct ls_error *error);

/* Reports the layers whose type is not there, in groups: once for each type (graph/types.c).
 * Building does it first. */
int ls_graph_check_types(const struct ls_net_definition *net, struct ls_error *error);

/* Gives values and ops of layers in bf16 their types (graph/precision.c). */
void ls_graph_set_precision(struct ls_graph *graph);
/* Makes inputs bf16 whose readers all round them. */
void ls_graph_round_inputs(struct ls_graph *graph);
/* Rewrites that keep the numerical contract: graph/rewrite.h. */
void ls_graph_rewrite(struct ls_graph *graph);

/* Attaches parameters to a layer that was set up (graph/parameters.c): new ones, those of an
 * earlier graph, or those that another layer shares by name. */
int ls_graph_attach_parameters(struct ls_graph *graph, struct ls_layer *layer,
                               struct ls_error *error);
/* Emits the backward pass and notes which parameters a loss reaches (graph/backward.c). */
int ls_graph_build_backward(struct ls_graph *graph, struct ls_error *error);

#endif
