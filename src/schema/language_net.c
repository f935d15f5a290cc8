/* Nets that say which token comes next. See schema/language_net.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "schema/language_net.h"

#include <string.h>

#include "base/names.h"
#include "schema/data_layers.h"
#include "schema/language_inner.h"
#include "schema/places.h"

static bool is_type(const Lockstep__LayerParameter *layer, const char *type)
{
    return layer->type != NULL && strcmp(layer->type, type) == 0;
}

static bool is_one_of(const char *name, const char *const *names)
{
    while (*names != NULL && strcmp(*names, name) != 0)
        names++;
    return *names != NULL;
}

static bool is_recurrent(const Lockstep__LayerParameter *layer)
{
    static const char *const types[] = {"LSTM", "RNN", "GRU", NULL};
    return layer->type != NULL && is_one_of(layer->type, types);
}

static int language_fail(const struct ls_net_definition *definition,
                         const Lockstep__LayerParameter *layer, const char *hint,
                         struct ls_error *error, const char *format, const char *name)
    __attribute__((format(printf, 5, 0)));
static int language_fail(const struct ls_net_definition *definition,
                         const Lockstep__LayerParameter *layer, const char *hint,
                         struct ls_error *error, const char *format, const char *name)
{
    char place[LS_PLACE_MAX];
    ls_place(definition->definition, layer != NULL ? (const void *)layer : definition->net, NULL,
             place, sizeof place);
    return ls_fail(error, LOCKSTEP_DEFINITION, place, hint, format, name);
}

/* ---- Where a net ends ------------------------------------------------------------------------ */

/* The logits, and how many layers in front of `behind` may have made them. */
struct ending {
    const char *logits;
    size_t behind;
    Lockstep__LayerParameter
        *product; /* what makes them in place of a loss; NULL: they are there */
};

static int end_with_product(const struct ls_net_definition *from, size_t index,
                            struct ending *ending, struct ls_error *error)
{
    *ending = (struct ending){"(logits)", index, NULL};
    return ls_language_product(from, index, ending->logits, &ending->product, error);
}

/* Whether a layer reads a blob that layer `from` has made, before another one writes it. */
static bool is_read(const Lockstep__NetParameter *net, size_t from, const char *blob)
{
    for (size_t i = from + 1; i < net->n_layer; i++)
        for (size_t b = 0; b < net->layer[i]->n_bottom; b++)
            if (strcmp(net->layer[i]->bottom[b], blob) == 0)
                return true;
    return false;
}

/* A net without a loss ends with logits, or a softmax of them. */
static int find_last_top(const struct ls_net_definition *from, struct ending *ending,
                         struct ls_error *error)
{
    static const char *const figures[] = {"Accuracy", "Silence", NULL};
    const Lockstep__NetParameter *net = from->net;
    for (size_t i = net->n_layer; i-- > 0;) {
        const Lockstep__LayerParameter *layer = net->layer[i];
        if (layer->type == NULL || is_one_of(layer->type, figures) || layer->n_bottom == 0 ||
            layer->n_top == 0 || is_read(net, i, layer->top[layer->n_top - 1]))
            continue;
        const bool softmax = is_type(layer, "Softmax");
        *ending = (struct ending){softmax ? layer->bottom[0] : layer->top[layer->n_top - 1],
                                  softmax ? i : i + 1, NULL};
        return 0;
    }
    return language_fail(from, NULL, "it must end with the logits of the next token", error,
                         "the net has no blob that says how a text goes on%s", "");
}

static int find_ending(const struct ls_net_definition *from, const char *output,
                       struct ending *ending, struct ls_error *error)
{
    const Lockstep__NetParameter *net = from->net;
    if (output != NULL) {
        *ending = (struct ending){output, net->n_layer, NULL};
        return 0;
    }
    for (size_t i = net->n_layer; i-- > 0;) {
        const Lockstep__LayerParameter *layer = net->layer[i];
        if (is_type(layer, "LinearSoftmaxLoss") && layer->n_bottom > 0)
            return end_with_product(from, i, ending, error);
        if (is_type(layer, "SoftmaxWithLoss") && layer->n_bottom > 0) {
            *ending = (struct ending){layer->bottom[0], i, NULL};
            return 0;
        }
    }
    return find_last_top(from, ending, error);
}

/* ---- What logits are computed from ----------------------------------------------------------- */

static bool has_top(const struct ls_names *names, const Lockstep__LayerParameter *layer)
{
    size_t ignored;
    for (size_t t = 0; t < layer->n_top; t++)
        if (ls_names_find(names, layer->top[t], &ignored))
            return true;
    return false;
}

static bool is_head(const Lockstep__LayerParameter *layer)
{
    const Lockstep__InnerProductParameter *param = layer->inner_product_param;
    return is_type(layer, "InnerProduct") && layer->n_bottom == 1 && layer->n_top == 1 &&
           param != NULL && (param->axis == 2 || param->axis == -1);
}

/* Leaves out the layers that logits do not depend on. */
static int language_cut(const struct ls_net_definition *from, const struct ending *ending,
                        struct ls_language_net *net, struct ls_error *error)
{
    struct ls_arena *arena = from->definition->arena;
    struct ls_names names = {0};
    const size_t most = from->net->n_layer + 1;
    Lockstep__NetParameter *less = ls_arena_alloc(arena, 1, sizeof *less);
    Lockstep__LayerParameter **layer = ls_arena_alloc(arena, most, sizeof *layer);
    net->logits = ls_arena_copy_string(arena, ending->logits);
    bool made = less != NULL && layer != NULL && net->logits != NULL &&
                ls_places_alias(from->definition->places, less, from->net) &&
                ls_names_set(&names, ending->logits, 0);
    size_t kept = 0; /* at the end of the list */
    if (ending->product != NULL && made) {
        layer[most - ++kept] = ending->product;
        made = ls_names_set(&names, ending->product->bottom[0], 0);
    }
    for (size_t i = ending->behind; i-- > 0 && made;) {
        if (!has_top(&names, from->net->layer[i]))
            continue;
        layer[most - ++kept] = from->net->layer[i];
        for (size_t b = 0; b < from->net->layer[i]->n_bottom; b++)
            made = made && ls_names_set(&names, from->net->layer[i]->bottom[b], 0);
    }
    ls_names_free(&names);
    if (!made)
        return ls_fail_memory(error, "a net");
    if (kept == 0)
        return language_fail(from, NULL, "'lockstep shapes' lists all blobs", error,
                             "the net has no blob '%.200s'", ending->logits);
    *less = *from->net;
    less->layer = layer + (most - kept);
    less->n_layer = kept;
    net->definition = *from;
    net->definition.net = less;
    if (is_head(less->layer[kept - 1]))
        net->head = less->layer[kept - 1];
    return 0;
}

/* Puts inputs in place of the layers that read texts. */
static int language_replace_data(struct ls_language_net *net, struct ls_error *error)
{
    const Lockstep__NetParameter *cut = net->definition.net;
    net->data = ls_arena_alloc(net->definition.definition->arena, cut->n_layer, sizeof *net->data);
    if (net->data == NULL)
        return ls_fail_memory(error, "a net");
    for (size_t i = 0; i < cut->n_layer; i++) {
        if (!ls_data_layer_reads(cut->layer[i]))
            continue;
        net->data[i] = cut->layer[i];

        LS_TRY(ls_language_data_input(&net->definition, cut->layer[i], &cut->layer[i], error));
        if (net->separator < 0)
            net->separator = ls_language_data_separator(net->data[i]);
    }
    return 0;
}

/* ---- Inputs ---------------------------------------------------------------------------------- */

/* What the blob of an Input layer is, by how it is used, what it is called, and what the Data layer
 * says that it is in place of (or NULL). */
static enum ls_token_input input_by_use(const Lockstep__NetParameter *net,
                                        const Lockstep__LayerParameter *data, size_t top,
                                        const char *blob)
{
    static const struct {
        const char *const names[5];
        enum ls_token_input what;
    } known[] = {{{"cont", "clip", NULL}, LS_TOKEN_CONT},
                 {{"position", "positions", "position_ids", NULL}, LS_TOKEN_POSITIONS},
                 {{"segment", "segments", NULL}, LS_TOKEN_SEGMENTS},
                 {{"mask", "attention_mask", NULL}, LS_TOKEN_MASK}};
    bool used = false;
    for (size_t i = 0; i < net->n_layer; i++)
        for (size_t b = 0; b < net->layer[i]->n_bottom; b++)
            if (strcmp(net->layer[i]->bottom[b], blob) == 0) {
                used = true;
                if (b == 1 && is_recurrent(net->layer[i]))
                    return LS_TOKEN_CONT;
            }
    if (!used)
        return LS_TOKEN_UNUSED;
    if (data != NULL)
        return ls_language_data_top(data, top);
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (is_one_of(blob, known[k].names))
            return known[k].what;
    return LS_TOKEN_IDS;
}

/* The tokens of a window, as an input has them. */
static int read_window(struct ls_language_net *net, const struct ls_language_input *input,
                       struct ls_error *error)
{
    const int axis = ls_language_token_axis(input->layer, input->top);
    if (axis < 0)
        return language_fail(&net->definition, input->layer,
                             "input_param { shape { dim: 1 dim: 128 } } takes 128 tokens", error,
                             "input '%.100s' of a net that writes a text must have the shape "
                             "[samples, tokens], or with sample_axis 1 [tokens, samples]",
                             input->layer->top[input->top]);
    const Lockstep__InputParameter *param = input->layer->input_param;
    const int64_t window = param->shape[param->n_shape == 1 ? 0 : input->top]->dim[axis];
    if (window < 1 || window > INT32_MAX || (net->window != 0 && net->window != window))
        return language_fail(&net->definition, input->layer,
                             "all inputs have an element for each token", error,
                             window < 1 || window > INT32_MAX
                                 ? "input '%.100s' has no tokens, or more than 2147483647"
                                 : "input '%.100s' has another number of tokens than that in front "
                                   "of it",
                             input->layer->top[input->top]);
    net->window = window;
    return 0;
}

static int add_input(struct ls_language_net *net, size_t index, int top, struct ls_error *error)
{
    const Lockstep__LayerParameter *layer = net->definition.net->layer[index];
    struct ls_language_input *input = &net->inputs[net->input_count];
    *input = (struct ls_language_input){
        .layer = layer,
        .top = top,
        .what = input_by_use(net->definition.net, net->data[index], (size_t)top, layer->top[top])};
    for (size_t i = 0; i < net->input_count && input->what == LS_TOKEN_IDS; i++)
        if (net->inputs[i].what == LS_TOKEN_IDS)
            return language_fail(&net->definition, layer,
                                 "a net that writes a text has one input of token ids; others are "
                                 "called cont, position, segment or mask",
                                 error, "it is not known what input '%.100s' is", layer->top[top]);
    net->input_count++;
    return input->what == LS_TOKEN_UNUSED ? 0 : read_window(net, input, error);
}

static int find_inputs(struct ls_language_net *net, struct ls_error *error)
{
    const struct ls_net_definition *definition = &net->definition;
    const Lockstep__NetParameter *cut = definition->net;
    size_t tops = 0, ids = 0;
    for (size_t i = 0; i < cut->n_layer; i++)
        tops += cut->layer[i]->n_bottom == 0 ? cut->layer[i]->n_top : 0;
    net->inputs = ls_arena_alloc(definition->definition->arena, tops + 1, sizeof *net->inputs);
    if (net->inputs == NULL)
        return ls_fail_memory(error, "a net");
    for (size_t i = 0; i < cut->n_layer; i++) {
        const Lockstep__LayerParameter *layer = cut->layer[i];
        net->recurrent = net->recurrent || is_recurrent(layer);
        for (size_t t = 0; ls_data_layer_takes_input(layer) && t < layer->n_top; t++)
            LS_TRY(add_input(net, i, (int)t, error));
    }
    for (size_t i = 0; i < net->input_count; i++)
        ids += net->inputs[i].what == LS_TOKEN_IDS;
    return ids == 1 ? 0
                    : language_fail(definition, NULL,
                                    "an Input layer of the shape [samples, tokens] takes them",
                                    error, "the net has no input of token ids%s", "");
}

/* The rows of the table that token ids are looked up in, which may be fewer than there are logits.
 */
static void find_tokens(struct ls_language_net *net)
{
    const Lockstep__NetParameter *cut = net->definition.net;
    for (size_t i = 0; i < net->input_count; i++)
        for (size_t l = 0; l < cut->n_layer && net->inputs[i].what == LS_TOKEN_IDS; l++) {
            const Lockstep__LayerParameter *layer = cut->layer[l];
            if (is_type(layer, "Embed") && layer->n_bottom > 0 && layer->embed_param != NULL &&
                strcmp(layer->bottom[0], net->inputs[i].layer->top[net->inputs[i].top]) == 0 &&
                (net->tokens == 0 || layer->embed_param->input_dim < net->tokens))
                net->tokens = layer->embed_param->input_dim;
        }
}

int ls_language_net_find(const struct ls_net_definition *from, const char *output,
                         struct ls_language_net *net, struct ls_error *error)
{
    struct ending ending = {0};
    *net = (struct ls_language_net){.separator = -1};
    LS_TRY(find_ending(from, output, &ending, error));
    LS_TRY(language_cut(from, &ending, net, error));
    LS_TRY(language_replace_data(net, error));
    LS_TRY(find_inputs(net, error));
    find_tokens(net);
    return 0;
}
