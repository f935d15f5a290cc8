/* The solver's message is copied, what does not belong is cleared, the filtered net is put in, and
 * the rest is the text writer's work: what is not set is not written, so that a definition does not
 * change when a default gets a name.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "schema/canonical.h"

#include <string.h>

#include "schema/fields.h"
#include "schema/text_format.h"

/* Where and on what a run happens, and what only its start needs; the nets are put in anew. */
static const char *const left_out[] = {
    "net",
    "net_param",
    "train_net",
    "train_net_param",
    "test_net",
    "test_net_param",
    "train_state",
    "test_state",
    "snapshot_prefix",
    "weights",
    "mask", /* known by its content */
    "device_id",
    "layer_wise_reduce",
    "debug_info",
    "snapshot_diff",
};

/* Where files lie is no part of what a training is: what is in them is known by fingerprints. */
static const struct {
    const char *message, *inner,
        *field; /* inner (optional): the message in it that has the field */
} paths[] = {
    {"data_param", NULL, "source"},
    {"data_param", NULL, "label_source"},
    {"data_param", NULL, "root_folder"},
    {"data_param", NULL, "mean_file"},
    {"data_param", "tokens_param", "bytes_file"},
    {"data_param", "text_param", "vocabulary"},
    {"transform_param", NULL, "mean_file"},
    {"window_data_param", NULL, "mean_file"},
    {"infogain_loss_param", NULL, "source"},
};
enum { PATHS = sizeof paths / sizeof paths[0] };

/* The type of the message that has a path. */
static const void *path_holder(size_t i)
{
    const ProtobufCFieldDescriptor *holder =
        ls_field_named(&lockstep__layer_parameter__descriptor, paths[i].message);
    if (paths[i].inner != NULL)
        holder = ls_field_named(holder->descriptor, paths[i].inner);
    return holder->descriptor;
}

bool ls_canonical_is_path(const ProtobufCMessage *message, const char *field)
{
    if (message->descriptor == &lockstep__mask_parameter__descriptor)
        return strcmp(field, "source") == 0;
    for (size_t i = 0; i < PATHS; i++)
        if (path_holder(i) == message->descriptor && strcmp(paths[i].field, field) == 0)
            return true;
    return false;
}

/* Puts a copy in place of a message in a field of `holder`, which is a copy itself. *copy is NULL
 * where there is none. */
static bool copy_message(struct ls_arena *arena, ProtobufCMessage *holder, const char *name,
                         ProtobufCMessage **copy)
{
    const ProtobufCFieldDescriptor *field = ls_field_named(holder->descriptor, name);
    ProtobufCMessage **at = (ProtobufCMessage **)((char *)holder + field->offset);
    *copy = NULL;
    if (*at == NULL)
        return true;
    size_t size = (*at)->descriptor->sizeof_message;
    *copy = ls_arena_alloc(arena, size, 1);
    if (*copy == NULL)
        return false;
    memcpy(*copy, *at, size);
    *at = *copy;
    return true;
}

/* Puts copies without paths in place of a layer's messages that have some; the layer is a copy. */
static bool strip_paths(struct ls_arena *arena, Lockstep__LayerParameter *layer)
{
    for (size_t i = 0; i < PATHS; i++) {
        ProtobufCMessage *copy;
        if (!copy_message(arena, &layer->base, paths[i].message, &copy))
            return false;
        if (copy != NULL && paths[i].inner != NULL &&
            !copy_message(arena, copy, paths[i].inner, &copy))
            return false;
        if (copy != NULL)
            ls_field_clear(copy, ls_field_named(copy->descriptor, paths[i].field));
    }
    return true;
}

/* The same for files of masks; the masks are known by their content. */
static bool strip_masks(struct ls_arena *arena, Lockstep__LayerParameter *layer)
{
    Lockstep__ParamSpec **specs = ls_arena_alloc(arena, layer->n_param + 1, sizeof *specs);
    if (specs == NULL)
        return false;
    for (size_t i = 0; i < layer->n_param; i++) {
        specs[i] = layer->param[i];
        if (specs[i]->mask == NULL || specs[i]->mask->source == NULL)
            continue;
        Lockstep__MaskParameter *mask = ls_arena_alloc(arena, 1, sizeof *mask);
        specs[i] = ls_arena_alloc(arena, 1, sizeof **specs);
        if (mask == NULL || specs[i] == NULL)
            return false;
        *specs[i] = *layer->param[i];
        *mask = *specs[i]->mask;
        mask->source = NULL;
        specs[i]->mask = mask;
    }
    layer->param = specs;
    return true;
}

/* A layer without paths, and without rules and phase, which have done their work. */
static Lockstep__LayerParameter *strip_layer(struct ls_arena *arena,
                                             const Lockstep__LayerParameter *layer)
{
    Lockstep__LayerParameter *copy = ls_arena_alloc(arena, 1, sizeof *copy);
    if (copy == NULL)
        return NULL;
    *copy = *layer;
    copy->n_include = copy->n_exclude = 0;
    copy->has_phase = 0;
    return strip_paths(arena, copy) && strip_masks(arena, copy) ? copy : NULL;
}

/* A net of stripped layers whose state is its phase alone: level and stages, too, have done their
 * work. */
static Lockstep__NetParameter *strip_net(struct ls_arena *arena, const Lockstep__NetParameter *net)
{
    Lockstep__NetParameter *copy = ls_arena_alloc(arena, 1, sizeof *copy);
    Lockstep__NetState *state =
        (Lockstep__NetState *)ls_arena_message(arena, &lockstep__net_state__descriptor);
    if (copy == NULL || state == NULL)
        return NULL;
    *copy = *net;
    state->has_phase = 1;
    state->phase = net->state->phase;
    copy->state = state;
    copy->has_debug_info = 0;
    copy->layer = ls_arena_alloc(arena, net->n_layer, sizeof *copy->layer);
    if (copy->layer == NULL)
        return NULL;
    for (size_t i = 0; i < net->n_layer; i++) {
        copy->layer[i] = strip_layer(arena, net->layer[i]);
        if (copy->layer[i] == NULL)
            return NULL;
    }
    return copy;
}

int ls_definition_canonical(const struct ls_solver_definition *solver, int32_t micro_batch,
                            struct ls_text *out, struct ls_error *error)
{
    struct ls_arena *arena = ls_arena_new(SIZE_MAX / 2);
    if (arena == NULL)
        return ls_fail_memory(error, "the canonical definition");
    Lockstep__SolverParameter copy = *solver->solver;
    const ProtobufCMessageDescriptor *type = copy.base.descriptor;
    for (size_t i = 0; i < sizeof left_out / sizeof left_out[0]; i++)
        ls_field_clear(&copy.base, ls_field_named(type, left_out[i]));
    copy.train_net_param = strip_net(arena, solver->train.net);
    copy.has_random_seed = 1;
    copy.random_seed = (int64_t)ls_solver_seed(solver->solver);
    if (micro_batch > 0) { /* the one that is used; solver_mode changes no number */
        copy.has_micro_batch = 1;
        copy.micro_batch = micro_batch;
        copy.has_solver_mode = 0;
    }
    bool made = copy.train_net_param != NULL;
    if (made)
        ls_text_write(&copy.base, out);
    ls_arena_free(arena);
    return made && !out->failed ? 0 : ls_fail_memory(error, "the canonical definition");
}

int ls_net_canonical(const struct ls_net_definition *net, struct ls_text *out,
                     struct ls_error *error)
{
    struct ls_arena *arena = ls_arena_new(SIZE_MAX / 2);
    const Lockstep__NetParameter *copy = arena != NULL ? strip_net(arena, net->net) : NULL;
    if (copy != NULL)
        ls_text_write(&copy->base, out);
    ls_arena_free(arena);
    return copy != NULL && !out->failed ? 0 : ls_fail_memory(error, "the canonical definition");
}
