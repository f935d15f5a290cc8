/* A bottom that nothing makes. See graph/unknown_bottom.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "graph/unknown_bottom.h"

#include <string.h>

#include "base/text.h"

/* Whether a net has a layer; those of a state are copies, which share what they point to. */
static bool is_in(const Lockstep__NetParameter *net, const Lockstep__LayerParameter *layer)
{
    for (size_t i = 0; i < net->n_layer; i++)
        if (net->layer[i] == layer || net->layer[i]->top == layer->top)
            return true;
    return false;
}

static bool makes(const Lockstep__LayerParameter *layer, const char *blob)
{
    for (size_t t = 0; t < layer->n_top; t++)
        if (strcmp(layer->top[t], blob) == 0)
            return true;
    return false;
}

/* The first layer of the definition that makes a blob in other states than this one, or NULL. */
static const Lockstep__LayerParameter *left_out(const Lockstep__NetParameter *all, const char *name)
{
    for (size_t i = 0; all != NULL && i < all->n_layer; i++)
        if (makes(all->layer[i], name))
            return all->layer[i];
    return NULL;
}

/* "phase TRAIN, or with --stage a": states that the rules of a layer ask for. */
static void say_states(const Lockstep__LayerParameter *layer, struct ls_text *hint)
{
    for (size_t i = 0; i < layer->n_include; i++) {
        const Lockstep__NetStateRule *rule = layer->include[i];
        const char *separator = hint->length == 0 ? "it is there with " : ", or with ";
        if (rule->n_stage > 0)
            ls_text_format(hint, "%s--stage ", separator);
        for (size_t s = 0; s < rule->n_stage; s++)
            ls_text_format(hint, "%s%s", s > 0 ? "," : "", rule->stage[s]);
        if (rule->n_stage == 0 && rule->has_phase)
            ls_text_format(hint, "%sphase %s", separator,
                           rule->phase == LOCKSTEP__PHASE__TRAIN ? "TRAIN" : "TEST");
    }
}

/* ", for the state of this net leaves layer 'lstm1' out", and in which states layers make the blob
 * `name`, of which `first` is the first one. */
static void say_left_out(const Lockstep__NetParameter *all, const Lockstep__LayerParameter *first,
                         const char *name, struct ls_text *text, struct ls_text *hint)
{
    ls_text_format(text, ", for the state of this net leaves layer '%s' out",
                   first->name != NULL ? first->name : "(unnamed)");
    for (size_t i = 0; i < all->n_layer; i++)
        if (makes(all->layer[i], name) && (all->layer[i] == first || first->n_bottom == 0))
            say_states(all->layer[i], hint);
}

int ls_graph_unknown_bottom(const struct ls_net_definition *net, const struct ls_layer *layer,
                            int index, const char *const *names, size_t count,
                            struct ls_error *error)
{
    const char *name = layer->definition->bottom[index], *near = ls_suggest(name, names, count);
    const Lockstep__LayerParameter *other = left_out(net->all, name);
    struct ls_text text = {0}, hint = {0};
    ls_text_format(&text, "no layer above produces its bottom '%s' (index %d)", name, index);
    if (other != NULL && !is_in(net->net, other))
        say_left_out(net->all, other, name, &text, &hint);
    else if (near != NULL)
        ls_text_format(&hint, "did you mean '%s'?", near);
    int status = ls_layer_fail(layer, error, NULL, "bottom", hint.data, "%s",
                               text.data != NULL ? text.data : name);
    ls_text_free(&text);
    ls_text_free(&hint);
    return status;
}
