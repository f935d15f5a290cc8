/* Which layers are there: include and exclude rules against a state. And what no state makes right.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "schema/data_layers.h"
#include "schema/fields.h"
#include "schema/net_state.h"
#include "schema/places.h"

bool ls_state_merge(struct ls_arena *arena, Lockstep__NetState *state,
                    const Lockstep__NetState *more)
{
    if (more == NULL)
        return true;
    if (more->has_phase)
        state->phase = more->phase;
    if (more->has_level)
        state->level = more->level;
    state->has_phase = state->has_level = 1;
    const ProtobufCFieldDescriptor *stage = ls_field_named(state->base.descriptor, "stage");
    for (size_t i = 0; i < more->n_stage; i++)
        if (!ls_field_put(arena, &state->base, stage, &more->stage[i]))
            return false;
    return true;
}

bool ls_state_add(struct ls_arena *arena, Lockstep__NetState *state,
                  const struct ls_net_state *more)
{
    const ProtobufCFieldDescriptor *stages = ls_field_named(state->base.descriptor, "stage");
    state->has_phase = state->has_level = 1;
    state->phase = more->phase;
    if (more->level != 0)
        state->level = more->level;
    for (size_t i = 0; i < more->stage_count; i++) {
        char *stage = ls_arena_copy_string(arena, more->stages[i]);
        if (stage == NULL || !ls_field_put(arena, &state->base, stages, &stage))
            return false;
    }
    return true;
}

/* Whether a stage is among those of a state. */
static bool has_stage(const Lockstep__NetState *state, const char *name)
{
    for (size_t i = 0; i < state->n_stage; i++)
        if (strcmp(state->stage[i], name) == 0)
            return true;
    return false;
}

/* What a rule does not mention cannot fail it; an empty rule always holds. */
static bool rule_holds(const Lockstep__NetState *state, const Lockstep__NetStateRule *rule)
{
    if ((rule->has_phase && rule->phase != state->phase) ||
        (rule->has_min_level && state->level < rule->min_level) ||
        (rule->has_max_level && state->level > rule->max_level))
        return false;
    for (size_t i = 0; i < rule->n_stage; i++)
        if (!has_stage(state, rule->stage[i]))
            return false;
    for (size_t i = 0; i < rule->n_not_stage; i++)
        if (has_stage(state, rule->not_stage[i]))
            return false;
    return true;
}

/* Caffe's rule: out if any exclude rule holds, in if any include rule does; by default in. */
static bool is_included(const Lockstep__NetState *state, const Lockstep__LayerParameter *layer)
{
    for (size_t i = 0; i < layer->n_exclude; i++)
        if (rule_holds(state, layer->exclude[i]))
            return false;
    for (size_t i = 0; i < layer->n_include; i++)
        if (rule_holds(state, layer->include[i]))
            return true;
    return layer->n_include == 0;
}

/* Reports a field of the net or of one of its layers. */
static int refuse(const struct ls_definition *definition, const void *message, const char *field,
                  const char *hint, struct ls_error *error, const char *format, ...)
    __attribute__((format(printf, 6, 7)));
static int refuse(const struct ls_definition *definition, const void *message, const char *field,
                  const char *hint, struct ls_error *error, const char *format, ...)
{
    char place[LS_PLACE_MAX], text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    ls_place(definition, message, field, place, sizeof place);
    return ls_fail(error, LOCKSTEP_DEFINITION, place, hint, "%s", text);
}

/* What is wrong in any state. With both kinds of rules a layer would have to be there and not be
 * there. */
static int check_net(const struct ls_definition *definition, const Lockstep__NetParameter *net,
                     struct ls_error *error)
{
    int status = 0;
    for (size_t i = 0; i < net->n_layer; i++) {
        const Lockstep__LayerParameter *layer = net->layer[i];
        if (layer->n_include > 0 && layer->n_exclude > 0)
            status = refuse(definition, layer, "exclude", "say it with one kind of rule", error,
                            "layer '%s' has both include and exclude rules",
                            layer->name != NULL ? layer->name : "");
    }
    return status;
}

/* In Caffe a layer's own phase does not choose where the layer is, as many seem to expect, but
 * makes it behave as in that phase. Told once: a net that Caffe wrote says it in every layer. */
static int check_phases(const struct ls_definition *definition, const Lockstep__NetParameter *net,
                        const Lockstep__NetState *state, struct ls_error *error)
{
    const char *names[] = {"TRAIN", "TEST"};
    const Lockstep__LayerParameter *first = NULL;
    bool test = state->phase == LOCKSTEP__PHASE__TEST;
    char all[48] = "";
    size_t count = 0;
    for (size_t i = 0; i < net->n_layer; i++) {
        const Lockstep__LayerParameter *layer = net->layer[i];
        if (!layer->has_phase || layer->phase == state->phase || !is_included(state, layer))
            continue;
        first = first != NULL ? first : layer;
        count++;
    }
    if (first == NULL)
        return 0;
    if (count > 1)
        snprintf(all, sizeof all, " (%zu layers have it)", count);
    return refuse(
        definition, first, "phase",
        test ? "remove it, or write include { phase: TRAIN } for a layer of that phase only"
             : "remove it, or write include { phase: TEST } for a layer of that phase only",
        error, "layer '%s' has phase %s in a net of phase %s%s",
        first->name != NULL ? first->name : "", names[!test], names[test], all);
}

/* A copy of a layer that says its phase; what it points to is shared. */
static Lockstep__LayerParameter *copy_layer(struct ls_definition *definition,
                                            const Lockstep__LayerParameter *layer,
                                            Lockstep__Phase phase)
{
    Lockstep__LayerParameter *copy = ls_arena_alloc(definition->arena, 1, sizeof *copy);
    if (copy == NULL || !ls_places_alias(definition->places, copy, layer))
        return NULL;
    *copy = *layer;
    copy->phase = phase;
    copy->has_phase = 1;
    return copy;
}

int ls_net_filter_state(struct ls_definition *definition, const Lockstep__NetParameter *net,
                        Lockstep__NetState *state, struct ls_net_definition *out,
                        struct ls_error *error)
{
    LS_TRY(check_net(definition, net, error));
    struct ls_arena *arena = definition->arena;
    Lockstep__NetParameter *filtered = ls_arena_alloc(arena, 1, sizeof *filtered);
    if (filtered == NULL || !ls_places_alias(definition->places, filtered, net))
        return ls_fail_memory(error, "a definition");
    *filtered = *net;
    filtered->state = state;
    filtered->n_layer = 0;
    filtered->layer = ls_arena_alloc(arena, net->n_layer, sizeof *filtered->layer);
    if (filtered->layer == NULL)
        return ls_fail_memory(error, "a definition");
    int status = check_phases(definition, net, state, error);
    for (size_t i = 0; i < net->n_layer; i++) {
        if (!is_included(state, net->layer[i]))
            continue;
        Lockstep__LayerParameter *layer = copy_layer(definition, net->layer[i], state->phase);
        if (layer == NULL)
            return ls_fail_memory(error, "a definition");
        int found = ls_data_layer_complete(definition, layer, error);
        status = status != 0 ? status : found;
        filtered->layer[filtered->n_layer++] = layer;
    }
    *out = (struct ls_net_definition){.net = filtered, .definition = definition, .all = net};
    return status;
}

int ls_net_filter(struct ls_definition *definition, const Lockstep__NetParameter *net,
                  const struct ls_net_state *state, struct ls_net_definition *out,
                  struct ls_error *error)
{
    struct ls_arena *arena = definition->arena;
    Lockstep__NetState *complete =
        (Lockstep__NetState *)ls_arena_message(arena, &lockstep__net_state__descriptor);
    if (complete == NULL || !ls_state_add(arena, complete, state))
        return ls_fail_memory(error, "a definition");
    return ls_net_filter_state(definition, net, complete, out, error);
}
