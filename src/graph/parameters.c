/* Which parameter a layer's blob is.
 *
 * A blob is new, or it exists since an earlier graph of the same program (another phase, another
 * number of samples), or another layer owns it and shares it through `param { name: ... }`. The
 * first layer that uses a shared name is the owner, as in Caffe.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "graph/build.h"
#include "graph/masks.h"
#include "ir/layer.h"

static const Lockstep__ParamSpec *spec_of(const struct ls_layer *layer, int blob)
{
    return (size_t)blob < layer->definition->n_param ? layer->definition->param[blob] : NULL;
}

static struct ls_parameter *find_shared(const struct ls_parameter_set *set, const char *share)
{
    size_t index;
    return ls_names_find(&set->shares, share, &index) ? set->items[index] : NULL;
}

/* A file that the layer's definition names. */
static char *find_file(const struct ls_layer *layer, const char *path)
{
    const struct ls_definition *definition = layer->graph->definition;
    return ls_resolve_path(path, definition != NULL ? definition->file : NULL);
}

/* A parameter that is not in the set yet; NULL when there is no memory. */
static struct ls_parameter *new_parameter(const struct ls_layer *layer, int blob, const char *name,
                                          const Lockstep__ParamSpec *spec)
{
    struct ls_parameter *parameter = ls_alloc(1, sizeof *parameter);
    if (parameter == NULL)
        return NULL;
    bool shared = spec != NULL && spec->name != NULL && spec->name[0] != '\0';
    bool masks = spec != NULL && spec->mask != NULL && spec->mask->source != NULL;
    parameter->name = ls_copy_string(name);
    parameter->layer = ls_copy_string(layer->name);
    parameter->share = shared ? ls_copy_string(spec->name) : NULL;
    parameter->blob = blob;
    parameter->shape = layer->request[blob].shape;
    parameter->filler = layer->request[blob].filler;
    parameter->average = layer->request[blob].average;
    parameter->lr_mult = spec != NULL && spec->has_lr_mult ? spec->lr_mult : 1;
    parameter->decay_mult = spec != NULL && spec->has_decay_mult ? spec->decay_mult : 1;
    parameter->mask_definition = spec != NULL ? spec->mask : NULL;
    parameter->mask_file = masks ? find_file(layer, spec->mask->source) : NULL;
    if (parameter->average || layer->request[blob].fixed) /* as Caffe does, whatever is written */
        parameter->lr_mult = parameter->decay_mult = 0;
    if (parameter->name != NULL && parameter->layer != NULL &&
        (!shared || parameter->share != NULL) && (!masks || parameter->mask_file != NULL))
        return parameter;
    ls_parameter_free(parameter);
    return NULL;
}

static struct ls_parameter *create(struct ls_parameter_set *set, const struct ls_layer *layer,
                                   int blob, const char *name, const Lockstep__ParamSpec *spec)
{
    struct ls_parameter *parameter = new_parameter(layer, blob, name, spec);
    if (parameter == NULL || !LS_GROW(set->items, set->count, set->capacity)) {
        ls_parameter_free(parameter);
        return NULL;
    }
    parameter->index = (int)set->count;
    set->items[set->count++] = parameter;
    bool named = ls_names_set(&set->names, parameter->name, set->count - 1);
    if (parameter->share != NULL && find_shared(set, parameter->share) == NULL)
        named = ls_names_set(&set->shares, parameter->share, set->count - 1) && named;
    return named ? parameter : NULL;
}

/* A moving average is shared as such: what is learned, or averages something else, would be
 * overwritten by it. */
static int check_shared_average(const struct ls_layer *layer, int blob,
                                const struct ls_parameter *owner, const Lockstep__ParamSpec *spec,
                                struct ls_error *error)
{
    const struct ls_blob_request *request = &layer->request[blob];
    const char *owned = strrchr(owner->name, '.') + 1;
    if (!owner->average && !request->average)
        return 0;
    if (owner->average && request->average && strcmp(owned, request->name) == 0)
        return 0;
    return ls_layer_fail(layer, error, spec, "name", "a moving average can be shared with its like",
                         "shares '%s' of layer '%s', which is %s, for its %s, which is %s",
                         owner->name, owner->layer, owner->average ? "a moving average" : "learned",
                         request->name, request->average ? "a moving average" : "learned");
}

/* Averages belong together: their sums count the same updates. */
static int check_averages(const struct ls_layer *layer, struct ls_error *error)
{
    const char *owner = NULL;
    for (int i = 0; i < layer->blobs; i++) {
        if (!layer->request[i].average)
            continue;
        if (owner != NULL && strcmp(owner, layer->blob[i]->layer) != 0)
            return ls_layer_fail(layer, error, spec_of(layer, i), NULL,
                                 "give param { name } for each of them, or for none",
                                 "shares some of its moving averages with another layer, but its "
                                 "%s with layer '%s' and not '%s'",
                                 layer->request[i].name, layer->blob[i]->layer, owner);
        owner = layer->blob[i]->layer;
    }
    return 0;
}

/* Whether a layer above, or a blob before this one, says a multiplier of a shared parameter. */
static bool is_given(const struct ls_layer *layer, int blob, const char *share, bool decay)
{
    const struct ls_graph *graph = layer->graph;
    for (size_t i = 0; i < graph->layer_count; i++) {
        const Lockstep__LayerParameter *other = graph->layers[i]->definition;
        bool here = graph->layers[i] == layer;
        for (size_t p = 0; p < other->n_param && (!here || p < (size_t)blob); p++) {
            const Lockstep__ParamSpec *spec = other->param[p];
            if (spec->name != NULL && strcmp(spec->name, share) == 0 &&
                (decay ? spec->has_decay_mult : spec->has_lr_mult))
                return true;
        }
        if (here)
            break;
    }
    return false;
}

/* As in Caffe the first layer that says a multiplier of a shared parameter decides, be it the owner
 * or not; others must say the same, or nothing. */
static int agree_on(const struct ls_layer *layer, int blob, struct ls_parameter *owner,
                    const Lockstep__ParamSpec *spec, bool decay, struct ls_error *error)
{
    const char *field = decay ? "decay_mult" : "lr_mult";
    float *known = decay ? &owner->decay_mult : &owner->lr_mult;
    float mine = decay ? spec->decay_mult : spec->lr_mult;
    if (!(decay ? spec->has_decay_mult : spec->has_lr_mult) || mine == *known)
        return 0;
    if (is_given(layer, blob, owner->share, decay))
        return ls_layer_fail(layer, error, spec, field, "give it in one of the layers only",
                             "shared parameter '%s' has %s %g here and %g in a layer above",
                             owner->share, field, (double)mine, (double)*known);
    if (layer->graph->training)
        *known = mine;
    return 0;
}

/* What a layer that shares another's parameter must agree on. */
static int check_shared(const struct ls_layer *layer, int blob, struct ls_parameter *owner,
                        const Lockstep__ParamSpec *spec, struct ls_error *error)
{
    const struct ls_shape *mine = &layer->request[blob].shape;
    char a[160], b[160];
    bool permissive = spec != NULL && spec->has_share_mode &&
                      spec->share_mode == LOCKSTEP__PARAM_SPEC__DIM_CHECK_MODE__PERMISSIVE;
    bool fits = permissive ? ls_shape_size(mine) == ls_shape_size(&owner->shape)
                           : ls_shape_equal(mine, &owner->shape);
    bool same_blob = strcmp(owner->layer, layer->name) == 0 && owner->blob == blob;
    if (!fits && same_blob)
        return ls_layer_fail(
            layer, error, NULL, NULL, "a layer has one set of weights for all nets and samples",
            "its %s has shape %s, but would have to have shape %s here", layer->request[blob].name,
            ls_shape_text(&owner->shape, a, sizeof a), ls_shape_text(mine, b, sizeof b));
    if (!fits)
        return ls_layer_fail(layer, error, spec, NULL,
                             permissive ? NULL : "share_mode: PERMISSIVE asks for equal size only",
                             "shares '%s' of layer '%s', whose shape is %s, but needs %s",
                             owner->name, owner->layer, ls_shape_text(&owner->shape, a, sizeof a),
                             ls_shape_text(mine, b, sizeof b));
    LS_TRY(ls_graph_check_shared_mask(layer, blob, owner, spec, error));
    if (spec == NULL || same_blob)
        return 0;
    LS_TRY(check_shared_average(layer, blob, owner, spec, error));
    if (owner->average) /* its multipliers are not used */
        return 0;
    LS_TRY(agree_on(layer, blob, owner, spec, false, error));
    return agree_on(layer, blob, owner, spec, true, error);
}

static int check_spec(const struct ls_layer *layer, const Lockstep__ParamSpec *spec,
                      struct ls_error *error)
{
    if (spec == NULL || (isfinite(spec->lr_mult) && isfinite(spec->decay_mult)))
        return 0;
    const char *field = isfinite(spec->lr_mult) ? "decay_mult" : "lr_mult";
    return ls_layer_fail(layer, error, spec, field, NULL, "%s must be a finite number", field);
}

static int attach(struct ls_graph *graph, struct ls_layer *layer, int blob, struct ls_error *error)
{
    const Lockstep__ParamSpec *spec = spec_of(layer, blob);
    LS_TRY(check_spec(layer, spec, error));
    LS_TRY(ls_graph_check_mask(layer, blob, spec, error));
    struct ls_text name = {0};
    ls_text_format(&name, "%s.%s", layer->name, layer->request[blob].name);
    if (name.failed)
        return ls_fail_memory(error, "a parameter's name");
    struct ls_parameter *parameter = NULL;
    if (spec != NULL && spec->name != NULL && spec->name[0] != '\0')
        parameter = find_shared(graph->parameters, spec->name);
    if (parameter == NULL)
        parameter = ls_parameter_find(graph->parameters, name.data);
    int status = 0;
    if (parameter != NULL) {
        status = check_shared(layer, blob, parameter, spec, error);
    } else {
        parameter = create(graph->parameters, layer, blob, name.data, spec);
        status = parameter == NULL ? ls_fail_memory(error, "a parameter")
                                   : ls_graph_make_mask(layer, blob, spec, &parameter->mask, error);
    }
    layer->blob[blob] = parameter;
    ls_text_free(&name);
    return status;
}

int ls_graph_attach_parameters(struct ls_graph *graph, struct ls_layer *layer,
                               struct ls_error *error)
{
    if (layer->definition->n_param > (size_t)layer->blobs)
        return ls_layer_fail(layer, error, layer->definition->param[layer->blobs], NULL, NULL,
                             "has %zu param blocks, but a %s layer like this one has %d learnable "
                             "blobs",
                             layer->definition->n_param, layer->type->type, layer->blobs);
    for (int i = 0; i < layer->blobs; i++)
        LS_TRY(attach(graph, layer, i, error));
    return check_averages(layer, error);
}
