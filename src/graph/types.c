/* Layer types that are not there.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "base/text.h"
#include "graph/build.h"
#include "layers/layers.h"
#include "schema/forks.h"
#include "schema/frameworks.h"

enum { TYPES_MAX = 160 }; /* that may have been meant */

static bool same(const char *a, const char *b)
{
    return strcmp(a != NULL ? a : "", b != NULL ? b : "") == 0;
}

static bool is_python(const Lockstep__LayerParameter *layer)
{
    return same(layer->type, "Python") && layer->python_param != NULL;
}

/* Whether two layers lack the same: their type, and of Python's type the class. */
static bool lack_the_same(const Lockstep__LayerParameter *a, const Lockstep__LayerParameter *b)
{
    if (!same(a->type, b->type) || is_python(a) != is_python(b))
        return false;
    return !is_python(a) || (same(a->python_param->module, b->python_param->module) &&
                             same(a->python_param->layer, b->python_param->layer));
}

static void say_hint(const Lockstep__LayerParameter *layer, struct ls_text *hint)
{
    const char *names[TYPES_MAX], *type = layer->type;
    const struct ls_fork_type *fork = ls_fork_type(type);
    size_t count = 0;
    for (size_t i = 0; ls_layer_types[i] != NULL && count < TYPES_MAX; i++)
        names[count++] = ls_layer_types[i]->type;
    const char *near = ls_suggest(type, names, count), *other = ls_framework_type(type);
    if (is_python(layer))
        ls_text_add(hint,
                    ls_fork_python_hint(layer->python_param->module, layer->python_param->layer));
    else if (same(type, "Python"))
        ls_text_add(hint, ls_fork_python_hint(NULL, NULL));
    else if (fork != NULL)
        ls_text_format(hint, "it is of %s: %s", fork->fork, fork->hint);
    else if (other != NULL)
        ls_text_add(hint, other);
    else if (near != NULL)
        ls_text_format(hint, "did you mean '%s'?", near);
    else
        ls_text_add(hint, "a layer type of your own is built as a plugin: --plugin FILE "
                          "(docs/caffe.md)");
}

/* One problem for all layers that lack the same, of all states, so that it is told once. */
static int refuse(const struct ls_net_definition *net, const Lockstep__LayerParameter *layer,
                  struct ls_error *error)
{
    const Lockstep__NetParameter *all = net->all != NULL ? net->all : net->net;
    const Lockstep__LayerParameter *first = NULL;
    char place[LS_PLACE_MAX];
    size_t count = 0;
    for (size_t i = 0; i < all->n_layer; i++)
        if (lack_the_same(all->layer[i], layer)) {
            first = first != NULL ? first : all->layer[i];
            count++;
        }
    first = first != NULL ? first : layer;
    struct ls_text text = {0}, hint = {0};
    ls_text_format(&text, "%s: there is no layer type '%s' in this version",
                   first->name != NULL ? first->name : "(unnamed)", first->type);
    if (is_python(first))
        ls_text_format(&text, ", which runs '%s' of module '%s'",
                       first->python_param->layer != NULL ? first->python_param->layer : "",
                       first->python_param->module != NULL ? first->python_param->module : "");
    if (count > 1)
        ls_text_format(&text, " (%zu layers have it)", count);
    say_hint(layer, &hint);
    ls_place(net->definition, first, "type", place, sizeof place);
    int status = text.failed || hint.failed
                     ? ls_fail_memory(error, "a message")
                     : ls_fail(error, LOCKSTEP_DEFINITION, place, hint.data, "%s", text.data);
    ls_text_free(&text);
    ls_text_free(&hint);
    return status;
}

int ls_graph_check_types(const struct ls_net_definition *net, struct ls_error *error)
{
    int status = 0;
    for (size_t i = 0; i < net->net->n_layer; i++) {
        const Lockstep__LayerParameter *layer = net->net->layer[i];
        char place[LS_PLACE_MAX];
        bool told = layer->type != NULL && ls_layer_type_find(layer->type) != NULL;
        for (size_t k = 0; k < i && !told; k++)
            told = layer->type != NULL && lack_the_same(net->net->layer[k], layer);
        if (told)
            continue;
        if (layer->type != NULL)
            status = refuse(net, layer, error);
        else if (!ls_definition_is_damaged(net->definition, layer))
            status = ls_fail(error, LOCKSTEP_DEFINITION,
                             ls_place(net->definition, layer, NULL, place, sizeof place),
                             "type: \"Convolution\", for example", "%s: the layer has no type",
                             layer->name != NULL ? layer->name : "(unnamed)");
    }
    return status;
}
