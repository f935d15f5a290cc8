/* Logits in place of losses that have none. See schema/language_net.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#include "base/names.h"
#include "schema/language_inner.h"
#include "schema/places.h"

static bool is_linear_loss(const Lockstep__LayerParameter *layer)
{
    return layer->type != NULL && strcmp(layer->type, "LinearSoftmaxLoss") == 0 &&
           layer->n_bottom > 0;
}

/* The sums are those of the loss. */
static Lockstep__InnerProductParameter *make_param(struct ls_arena *arena,
                                                   const Lockstep__LayerParameter *loss)
{
    const Lockstep__LinearSoftmaxLossParameter *given = loss->linear_softmax_loss_param;
    Lockstep__InnerProductParameter *param = (Lockstep__InnerProductParameter *)ls_arena_message(
        arena, &lockstep__inner_product_parameter__descriptor);
    if (param == NULL)
        return NULL;
    param->has_num_output = param->has_bias_term = param->has_axis = param->has_algorithm = 1;
    param->num_output = given != NULL ? given->num_output : 0;
    param->bias_term = given != NULL && given->bias_term;
    param->axis = given != NULL ? given->axis : -1;
    param->algorithm = LOCKSTEP__INNER_PRODUCT_PARAMETER__ALGORITHM__PORTABLE;
    return param;
}

int ls_language_product(const struct ls_net_definition *from, size_t index, const char *logits,
                        Lockstep__LayerParameter **product, struct ls_error *error)
{
    struct ls_definition *definition = from->definition;
    const Lockstep__LayerParameter *loss = from->net->layer[index];
    const Lockstep__LinearSoftmaxLossParameter *given = loss->linear_softmax_loss_param;
    Lockstep__LayerParameter *layer = ls_language_copy(definition, loss);
    Lockstep__InnerProductParameter *param = make_param(definition->arena, loss);
    char **top = ls_arena_alloc(definition->arena, 1, sizeof *top);
    if (layer == NULL || param == NULL || top == NULL ||
        (*top = ls_arena_copy_string(definition->arena, logits)) == NULL ||
        !ls_places_alias(definition->places, param, given != NULL ? (const void *)given : loss))
        return ls_fail_memory(error, "a net");
    layer->type = ls_arena_copy_string(definition->arena, "InnerProduct");
    if (layer->type == NULL)
        return ls_fail_memory(error, "a net");
    layer->inner_product_param = param;
    layer->linear_softmax_loss_param = NULL;
    layer->loss_param = NULL;
    layer->n_bottom = layer->n_top = 1;
    layer->top = top;
    layer->n_loss_weight = layer->n_propagate_down = 0;
    *product = layer;
    return 0;
}

/* ---- A whole net ----------------------------------------------------------------------------- */

struct rest {
    struct ls_names blobs; /* of the net, and logits that were made */
    struct ls_names gone;  /* losses and their figures */
    char name[256];
};

static bool add_tops(struct ls_names *names, const Lockstep__LayerParameter *layer)
{
    for (size_t t = 0; t < layer->n_top; t++)
        if (!ls_names_set(names, layer->top[t], 0))
            return false;
    return true;
}

static bool reads_any(const struct ls_names *names, const Lockstep__LayerParameter *layer)
{
    size_t ignored;
    for (size_t b = 0; b < layer->n_bottom; b++)
        if (ls_names_find(names, layer->bottom[b], &ignored))
            return true;
    return false;
}

/* "logits"; where the net has a blob called so, LAYER_logits, and "_" behind it until none is. */
static bool name_logits(struct rest *rest, const Lockstep__LayerParameter *loss)
{
    size_t ignored;
    snprintf(rest->name, sizeof rest->name, "logits");
    if (ls_names_find(&rest->blobs, rest->name, &ignored))
        snprintf(rest->name, sizeof rest->name, "%.100s_logits",
                 loss->name != NULL ? loss->name : "");
    for (size_t end = strlen(rest->name);
         end + 1 < sizeof rest->name && ls_names_find(&rest->blobs, rest->name, &ignored); end++) {
        rest->name[end] = '_';
        rest->name[end + 1] = '\0';
    }
    return ls_names_set(&rest->blobs, rest->name, 0);
}

/* Puts products in the place of losses, and leaves out what reads these losses. */
static int replace_losses(const struct ls_net_definition *from, Lockstep__NetParameter *less,
                          struct rest *rest, struct ls_error *error)
{
    const Lockstep__NetParameter *net = from->net;
    bool made = true;
    for (size_t i = 0; i < net->n_layer; i++)
        made = made && add_tops(&rest->blobs, net->layer[i]);
    for (size_t i = 0; i < net->n_layer && made; i++) {
        Lockstep__LayerParameter *layer = net->layer[i];
        const bool loss = is_linear_loss(layer);
        if (loss || reads_any(&rest->gone, layer))
            made = add_tops(&rest->gone, layer) && (!loss || name_logits(rest, layer));
        if (loss && made)
            LS_TRY(ls_language_product(from, i, rest->name, &layer, error));
        if (loss || !reads_any(&rest->gone, layer))
            less->layer[less->n_layer++] = layer;
    }
    return made ? 0 : ls_fail_memory(error, "a net");
}

int ls_language_net_with_logits(const struct ls_net_definition *from, struct ls_net_definition *to,
                                struct ls_error *error)
{
    struct ls_arena *arena = from->definition->arena;
    bool any = false;
    *to = *from;
    for (size_t i = 0; i < from->net->n_layer; i++)
        any = any || is_linear_loss(from->net->layer[i]);
    if (!any)
        return 0;
    struct rest rest = {.name = ""};
    Lockstep__NetParameter *less = ls_arena_alloc(arena, 1, sizeof *less);
    if (less == NULL || !ls_places_alias(from->definition->places, less, from->net))
        return ls_fail_memory(error, "a net");
    *less = *from->net;
    less->n_layer = 0;
    less->layer = ls_arena_alloc(arena, from->net->n_layer, sizeof(Lockstep__LayerParameter *));
    int status = less->layer != NULL ? replace_losses(from, less, &rest, error)
                                     : ls_fail_memory(error, "a net");
    ls_names_free(&rest.blobs);
    ls_names_free(&rest.gone);
    to->net = less;
    return status;
}
