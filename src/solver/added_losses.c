/* Losses for a net that has none. See solver/added_losses.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/added_losses.h"

#include <stdio.h>
#include <string.h>

#include "layers/layers.h"

static bool is_loss(const Lockstep__LayerParameter *layer)
{
    static const char ending[] = "Loss";
    const char *type = layer->type != NULL ? layer->type : "";
    size_t length = strlen(type);
    for (size_t i = 0; i < layer->n_loss_weight; i++)
        if (layer->loss_weight[i] != 0)
            return true;
    return layer->n_loss_weight == 0 &&
           (strcmp(type, "SoftmaxWithLoss") == 0 ||
            (length >= sizeof ending - 1 &&
             strcmp(type + length - (sizeof ending - 1), ending) == 0));
}

/* Whether gradients go through layers of this type: not through Accuracy, for example. */
static bool has_gradient(const Lockstep__LayerParameter *layer)
{
    const struct ls_layer_type *type = layer->type != NULL ? ls_layer_type_find(layer->type) : NULL;
    return type == NULL || type->backward != NULL;
}

/* Whether a layer with gradients behind number `from` reads a blob. */
static bool is_read(const Lockstep__NetParameter *net, size_t from, const char *name)
{
    for (size_t i = from + 1; i < net->n_layer; i++)
        for (size_t b = 0; b < net->layer[i]->n_bottom && has_gradient(net->layer[i]); b++)
            if (strcmp(net->layer[i]->bottom[b], name) == 0)
                return true;
    return false;
}

static Lockstep__LayerParameter *make_loss(struct ls_arena *arena, const char *blob,
                                           Lockstep__Phase phase)
{
    char name[256];
    snprintf(name, sizeof name, "mean_%s", blob);
    Lockstep__LayerParameter *layer = (Lockstep__LayerParameter *)(void *)ls_arena_message(
        arena, &lockstep__layer_parameter__descriptor);
    char **bottom = ls_arena_alloc(arena, 1, sizeof *bottom);
    char **top = ls_arena_alloc(arena, 1, sizeof *top);
    float *weight = ls_arena_alloc(arena, 1, sizeof *weight);
    Lockstep__ReductionParameter *param = (Lockstep__ReductionParameter *)(void *)ls_arena_message(
        arena, &lockstep__reduction_parameter__descriptor);
    if (layer == NULL || bottom == NULL || top == NULL || weight == NULL || param == NULL)
        return NULL;
    *bottom = ls_arena_copy_string(arena, blob);
    *top = layer->name = ls_arena_copy_string(arena, name);
    layer->type = ls_arena_copy_string(arena, "Reduction");
    *weight = 1;
    param->has_operation = 1;
    param->operation = LOCKSTEP__REDUCTION_PARAMETER__REDUCTION_OP__MEAN;
    layer->reduction_param = param;
    layer->has_phase = 1;
    layer->phase = phase;
    layer->n_bottom = layer->n_top = layer->n_loss_weight = 1;
    layer->bottom = bottom;
    layer->top = top;
    layer->loss_weight = weight;
    return *bottom != NULL && layer->name != NULL && layer->type != NULL ? layer : NULL;
}

int ls_add_losses(struct ls_net_definition *definition, struct ls_error *error)
{
    const Lockstep__NetParameter *net = definition->net;
    struct ls_arena *arena = definition->definition->arena;
    size_t tops = 0;
    for (size_t i = 0; i < net->n_layer; i++) {
        if (is_loss(net->layer[i]))
            return 0;
        tops += net->layer[i]->n_top;
    }
    Lockstep__NetParameter *more = ls_arena_alloc(arena, 1, sizeof *more);
    if (more == NULL)
        return ls_fail_memory(error, "a loss");
    *more = *net;
    more->layer = ls_arena_alloc(arena, net->n_layer + tops + 1, sizeof *more->layer);
    if (more->layer == NULL)
        return ls_fail_memory(error, "a loss");
    if (net->n_layer > 0)
        memcpy(more->layer, net->layer, net->n_layer * sizeof *more->layer);
    for (size_t i = 0; i < net->n_layer; i++) /* what comes from outside needs no gradient */
        for (size_t t = 0; t < net->layer[i]->n_top && net->layer[i]->n_bottom > 0; t++) {
            if (!has_gradient(net->layer[i]) || is_read(net, i, net->layer[i]->top[t]))
                continue;
            Lockstep__LayerParameter *loss =
                make_loss(arena, net->layer[i]->top[t], net->state->phase);
            if (loss == NULL)
                return ls_fail_memory(error, "a loss");
            more->layer[more->n_layer++] = loss;
        }
    definition->net = more;
    return 0;
}
